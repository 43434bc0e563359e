"""Check data files by digest, and build the container that all loaders return."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from commod.exceptions import DatasetError

if TYPE_CHECKING:
    from pandas import DataFrame, Series
    from sklearn.utils import Bunch

WHITE, NOT_WHITE = "white", "not white"


def check_digest(content: bytes, expected: str, *, source: str, way_out: str) -> None:
    """Raise `DatasetError` unless the SHA-256 of `content` is `expected`."""
    digest = hashlib.sha256(content).hexdigest()
    if digest != expected:
        raise DatasetError(f"{source} has SHA-256 {digest}, expected {expected}. {way_out}")


def white_or_not(is_white: Series) -> Series:
    """Return the labels "white" and "not white" as a Series named "race"."""
    return is_white.map({True: WHITE, False: NOT_WHITE}).rename("race")


def as_bunch(
    data: DataFrame,
    target: Series,
    sensitive_features: Series,
    *,
    as_frame: bool,
    return_X_y: bool,
    description: str,
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
