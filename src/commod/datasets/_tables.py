"""What the loaders share: files checked by digest, and tables made Bunches."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from commod.exceptions import DatasetError

if TYPE_CHECKING:
    from pandas import DataFrame, Series
    from sklearn.utils import Bunch

WHITE, NOT_WHITE = "white", "not white"


def check_digest(content: bytes, expected: str, *, source: str, way_out: str) -> None:
    """Raise `DatasetError` unless the SHA-256 of `content` is `expected`."""
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise DatasetError(f"{source} has SHA-256 {found}, expected {expected}. {way_out}")


def white_or_not(is_white: Series) -> Series:
    """Return the labels "white" and "not white" as a Series named "race"."""
    return is_white.map({True: WHITE, False: NOT_WHITE}).rename("race")


def as_bunch(
    data: DataFrame,
    target: Series,
    sensitive_features: Series,
    *,
    as_frame: bool,
    description: str,
    **more: Any,
) -> Bunch:
    """Return the table in scikit-learn's usual container, as pandas objects or as arrays."""
    from sklearn.utils import Bunch

    table: dict[str, Any] = {
        "data": data,
        "target": target,
        "sensitive_features": sensitive_features,
        "frame": None,
    }
    if as_frame:
        columns = {str(column.name): column for column in (target, sensitive_features)}
        table["frame"] = data.assign(**columns)
    else:
        table["data"] = data.to_numpy()
        table["target"] = target.to_numpy()
        table["sensitive_features"] = sensitive_features.to_numpy(dtype=object)
    return Bunch(**table, feature_names=list(data.columns), DESCR=description, **more)
