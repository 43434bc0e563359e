"""Pack the built site into one file: the same pages give the same bytes.

`make docs-archive` runs ``python scripts/archive_site.py docs/_build/html archive.tar.gz``.
"""

from __future__ import annotations

import gzip
import io
import sys
import tarfile
from pathlib import Path

LEFT_OUT = {".buildinfo", ".doctrees", ".nojekyll"}


def archive(site: Path) -> bytes:
    """Return the site as tar.gz: sorted names, no times, no owners."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for path in sorted(p for p in site.rglob("*") if p.is_file()):
            name = path.relative_to(site)
            if LEFT_OUT.isdisjoint(name.parts):
                content = path.read_bytes()
                entry = tarfile.TarInfo(name.as_posix())
                entry.size, entry.mode, entry.mtime = len(content), 0o644, 0
                tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


if __name__ == "__main__":
    Path(sys.argv[2]).write_bytes(archive(Path(sys.argv[1])))
