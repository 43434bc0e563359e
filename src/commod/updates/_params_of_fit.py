"""Keep the parameters that an update was fitted with: what was fitted decides.

A later `set_params` waits for the next `fit`. A `fit` that fails leaves the earlier one in force.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

COPIED = (list, set, dict, np.ndarray)  # a user may change these in place


class ParamsOfFit:
    """A part of `BaseUpdate`: the parameters of the last `fit`, beside the present ones.

    Examples
    --------
    >>> from commod import ControlledDebiaser, ScoreColumn
    >>> update = ControlledDebiaser(ScoreColumn("score"))
    >>> update.fitted_param("threshold")
    0.5
    """

    get_params: Any  # of scikit-learn's BaseEstimator
    _params_of_fit: dict[str, Any]

    def _record_params(self) -> None:
        """Keep the present parameters. `fit` calls this before it reads any of them."""
        self._params_of_fit = {
            name: copy.copy(value) if isinstance(value, COPIED) else value
            for name, value in self.get_params().items()
        }

    @contextmanager
    def _as_it_was_on_error(self) -> Iterator[None]:
        """Undo what a failing `fit` has set, so that an earlier fit goes on deciding."""
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    def fitted_params(self) -> dict[str, Any]:
        """Return the parameters that the update was fitted with; the present ones before `fit`."""
        return {**self.get_params(), **vars(self).get("_params_of_fit", {})}

    def fitted_param(self, name: str, default: Any = None) -> Any:
        """Return one of `fitted_params`; the default where the update has no such parameter."""
        fitted = vars(self).get("_params_of_fit", {})  # updates stored by version 0.1 have none
        return fitted[name] if name in fitted else getattr(self, name, default)
