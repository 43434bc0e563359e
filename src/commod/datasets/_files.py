"""Keep the files of public tables in one folder: read them there, or fetch them once."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commod._io.files import write_whole, written_together
from commod.exceptions import DatasetError

if TYPE_CHECKING:
    from pandas import DataFrame, Series
    from sklearn.utils import Bunch

DATA_HOME_VARIABLE = "COMMOD_DATA_HOME"
TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True)
class TableFile:
    """One file of a public table: its name in the data home, its digest, and its public address.

    Where the address is a ZIP archive, `member` is the path of the file inside it.
    """

    name: str
    sha256: str
    url: str
    member: str | None = None


def read_files(
    wanted: Sequence[TableFile],
    data_home: str | os.PathLike[str] | None,
    download_if_missing: bool,
) -> list[bytes]:
    """Return the contents of all files, fetched and kept where the data home lacks them.

    Digests are checked every time. A missing file is downloaded from its address. All missing files
    are written, or none.
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
    """Return the contents by file name, from their public addresses."""
    # Imported here, because network modules load slowly and most calls do not need them.
    from http.client import HTTPException
    from urllib.request import urlopen

    contents = {}
    for file in missing:
        problem = f"{file.url} cannot be fetched"
        try:
            with urlopen(file.url, timeout=TIMEOUT_SECONDS) as response:
                content: bytes = response.read()
            if file.member is not None:
                problem = f"{file.url} is no ZIP archive with {file.member}"
                with zipfile.ZipFile(io.BytesIO(content)) as archive:
                    content = archive.read(file.member)
        except (OSError, HTTPException, zipfile.BadZipFile, KeyError) as error:
            first, names = home / missing[0].name, " and ".join(file.name for file in missing)
            raise DatasetError(
                f"{first} does not exist. {problem} ({error}). There are three ways to correct "
                "this: (1) try again with a working connection; (2) get the file by other means "
                f"and save it as {first}; (3) pass data_home=, or set {DATA_HOME_VARIABLE}, to a "
                f"folder that already has {names}."
            ) from error
        source = f"{file.member or 'The response'} of {file.url}"
        way_out = "Nothing was saved. Get the right file by other means and save it as "
        check_digest(content, file.sha256, source, f"{way_out}{home / file.name}.")
        contents[file.name] = content
    return contents


def check_digest(content: bytes, expected: str, source: str, way_out: str) -> None:
    """Raise `DatasetError` unless the SHA-256 of `content` is `expected`."""
    digest = hashlib.sha256(content).hexdigest()
    if digest != expected:
        raise DatasetError(f"{source} has SHA-256 {digest}, expected {expected}. {way_out}")


def as_bunch(
    data: DataFrame,
    target: Series,
    sensitive_features: Series,
    description: str,
    as_frame: bool,
    return_X_y: bool,
    **more: Any,
) -> Bunch | tuple[Any, Any]:
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
