"""Give `ControlledDebiaser` its methods `edit` and `undo`: change the scorecard by hand."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from typing import Any, Literal, Self

from sklearn.utils.validation import check_is_fitted

from commod._data.codes import check_text
from commod._data.parameters import check_choice, check_flag
from commod._record import EditRecord
from commod._text import shown
from commod.edit import read_edits
from commod.exceptions import InputError, TargetWarning
from commod.updates._controlled_parameters import given_groups
from commod.updates._edit import EditPlan, EditRows, edited_update


class EditableScorecard:
    """A part of `ControlledDebiaser`: edit the points of a fitted update."""

    edits_: tuple[EditRecord, ...] = ()
    _earlier_update: Any = None
    _terms_by_hand: tuple[str, ...] = ()
    scorecard_: Any
    status_: str
    reached_: bool
    change_rate_: float
    fitted_param: Any
    fitted_params: Any
    _prepare: Any

    def edit(
        self,
        edits: Any,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        sensitive_probabilities: Any = None,
        sample_weight: Any = None,
        offset: Literal["target", "keep"] = "target",
        refit: bool = False,
        pin: Collection[str] = (),
        by: str | None = None,
        note: str | None = None,
    ) -> Self:
        """Return a new update with points that were changed by hand; this one stays as it is.

        Parameters
        ----------
        edits : mapping, edit of `commod.edit`, or list of these
            What to change: ``{"town = Paris": 0.5, "age": "drop"}``. `commod.edit` lists all forms.
            Terms are named as in the scorecard.
        X, y, sensitive_features, sensitive_probabilities, sample_weight
            Rows to count the cut and to measure on, as in `fit`: the fit rows, or others.
        offset : str, default="target"
            "target": count the cut for the target again. "keep": the cut stays as it is.
        refit : bool, default=False
            Fit all terms that are neither edited nor pinned again, for the fewest changes. Edited
            and pinned terms keep their points exactly.
        pin : collection of str, default=()
            Further terms, or columns, that keep their points in a refit.
        by, note : str, default=None
            Who edits, and why: texts for the history.

        Returns
        -------
        ControlledDebiaser
            Fitted, with all figures on these rows. `edits_` has one more record.

        Notes
        -----
        Where the points cannot reach the target, the cut that comes closest is kept. Then
        `reached_` is False, and `status_` and a TargetWarning say so.

        Examples
        --------
        >>> from commod import ControlledDebiaser
        >>> from commod.datasets import make_biased
        >>> from sklearn.linear_model import LogisticRegression
        >>> data = make_biased(800, random_state=0)
        >>> model = LogisticRegression().fit(data.data, data.target)
        >>> rows = data.data, data.target
        >>> groups = {"sensitive_features": data.sensitive_features}
        >>> update = ControlledDebiaser(model, target=0.7).fit(*rows, **groups)
        >>> name, points = update.scorecard_.rows()[0]
        >>> edited = update.edit({name: round(points, 1)}, *rows, **groups, by="Ann")
        >>> dict(edited.scorecard_.rows())[name] == round(points, 1), len(edited.edits_)
        (True, 1)
        >>> edited.undo() is update
        True
        """
        check_is_fitted(self)
        plan = _read_plan(edits, offset, refit, pin, by, note)
        if self.fitted_param("confidence") is not None:
            raise InputError(
                "edit would break the promise of this update: it was tested with "
                f"confidence={self.fitted_param('confidence')}, and edited points were not. Fit "
                "with confidence=None, then edit.",
                parameter="confidence",
            )
        given = X, y, sensitive_features, sensitive_probabilities, sample_weight
        edited = edited_update(self, self.edit_rows(*given), plan)
        if not edited.reached_:
            warnings.warn(edited.status_, TargetWarning, stacklevel=2)
        return edited

    def undo(self) -> Self:
        """Return the update before the last edit, as it was."""
        check_is_fitted(self)
        if self._earlier_update is None:
            raise InputError("undo has nothing to undo: this update was not edited.")
        return self._earlier_update

    # -- internal interface: the page for edits calls these -------------------------------------

    def edit_rows(
        self,
        X: Any,
        y: Any = None,
        sensitive_features: Any = None,
        sensitive_probabilities: Any = None,
        sample_weight: Any = None,
    ) -> EditRows:
        """Return rows that were read once, for several edits of this update."""
        reader = type(self)(**self.fitted_params())
        groups = given_groups(reader, X, sensitive_features, sensitive_probabilities)
        encoding = self.scorecard_.encoding
        problem = reader._prepare(X, y, groups, sample_weight, encoding)
        return EditRows(reader, problem)

    def _record_params(self) -> None:
        """Keep the present parameters; a new fit begins a new history."""
        for name in ("edits_", "_earlier_update", "_terms_by_hand"):
            vars(self).pop(name, None)
        super()._record_params()  # type: ignore[misc]


def _read_plan(edits: Any, offset: Any, refit: Any, pin: Any, by: Any, note: Any) -> EditPlan:
    """Return the checked parameters of an edit."""
    check_choice(offset, "offset", ("target", "keep"))
    check_flag(refit, "refit")
    if refit and offset == "keep":
        raise InputError(
            "refit=True fits points for the target, so the offset must follow. Pass "
            "offset='target', or refit=False.",
            parameter="offset",
        )
    if isinstance(pin, str) or not all(isinstance(name, str) for name in pin):
        raise InputError(
            f"pin={shown(pin)} must be a list of names of terms or columns.", parameter="pin"
        )
    if pin and not refit:
        raise InputError(
            "pin says which terms keep their points in a refit, but refit is False. Pass "
            "refit=True, or leave pin out.",
            parameter="pin",
        )
    for name, text in (("by", by), ("note", note)):
        if text is not None and not isinstance(text, str):
            raise InputError(f"{name}={shown(text)} must be text or None.", parameter=name)
        check_text([text or ""], name, name)
    return EditPlan(read_edits(edits), tuple(pin), offset, bool(refit), by, note)
