"""Define `Patch`, a thin object around the content of a patch file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commod._data.columns import check_text
from commod._data.parameters import check_flag
from commod._io.files import write_whole
from commod._record.audit import Audit, Shipped
from commod._record.edits import EditRecord
from commod._record.plain import from_plain, to_plain
from commod._text import list_names, plain, shown
from commod.exceptions import InputError
from commod.patch.checking import check_content
from commod.patch.content import Content, before_last_edit, scorecard_of
from commod.patch.description import differences, page_text
from commod.patch.file import content_digest, from_bytes, read_bytes, to_bytes
from commod.patch.frames import (
    PatchCounts,
    added_columns,
    apply_to,
    check_calibrated,
    count_changes,
    revert_from,
)
from commod.patch.pairing import contradictions, shipped_of
from commod.scorecard import Scorecard

if TYPE_CHECKING:
    from commod.patch.verification import Verification

PREFIX = "commod_"
MOST_NAMED = 10  # fields that differ, in one message


class Patch:
    """An update as a small file that edits an existing score column anywhere.

    `update.to_patch()` and `Patch.load` return one. A patch holds the scorecard, the gate of an
    update with one direction, threshold, labels, request, figures, fingerprints and the digest of
    its audit. It holds no row and no sensitive value. Two patches are equal if their contents are.

    Parameters
    ----------
    content : Content
        The content of a file; docs/patch.md has the schema.

    Attributes
    ----------
    content : Content
        The checked content.

    Examples
    --------
    >>> from commod import ControlledDebiaser, Patch
    >>> from commod.datasets import make_biased
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> update = ControlledDebiaser(model, target=0.8)
    >>> update = update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> patch = update.to_patch()
    >>> scored = data.data.assign(score=model.predict_proba(data.data)[:, 1])
    >>> edited = patch.apply(scored, score="score")
    >>> (edited["commod_decision"] == update.predict(data.data)).all()
    np.True_
    >>> patch.count(edited).n_changed == edited["commod_changed"].sum()
    np.True_
    """

    def __init__(self, content: Content) -> None:
        if not isinstance(content, Content):
            raise InputError(
                f"A Patch is made of the content of a file; got {type(content).__name__}. Use "
                "update.to_patch() or Patch.load(path)."
            )
        self.content = from_plain(
            Content, to_plain(content)
        )  # integers become floats where floats are expected
        check_content(self.content)

    # -- files ----------------------------------------------------------------------------------

    @classmethod
    def load(cls, path: str | os.PathLike[str], sha256: str | None = None) -> Patch:
        """Return the patch of a file; refuse one that is damaged, too large or too new.

        Parameters
        ----------
        path : path
            The file.
        sha256 : str, default=None
            SHA-256 of the file that was signed off, as `patch.sha256` or `sha256sum` tells it.
            Without it a file whose content and digest were both changed passes as a patch.
        """
        return cls(from_bytes(read_bytes(path, sha256), repr(str(Path(path)))))

    @classmethod
    def from_json(cls, text: str) -> Patch:
        """Return the patch of a text that `to_json` wrote, with the checks of `load`."""
        if not isinstance(text, str):
            raise InputError(f"A patch is read from text; got {type(text).__name__}.")
        return cls(from_bytes(text.encode("utf-8", "surrogatepass")))

    def to_json(self) -> str:
        """Return the text of the file."""
        return to_bytes(self.content).decode()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the whole file or nothing, in place of an earlier one; return its path."""
        return write_whole(path, to_bytes(self.content))

    @property
    def sha256(self) -> str:
        """Return the SHA-256 of the file that `save` writes; a validator signs it."""
        return hashlib.sha256(to_bytes(self.content)).hexdigest()

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the content, which does not depend on the layout of a file."""
        return content_digest(self.content)

    # -- edits by hand ----------------------------------------------------------------------------

    @property
    def history(self) -> tuple[EditRecord, ...]:
        """Return the edits by hand, oldest first; see `ControlledDebiaser.edit`."""
        return tuple(edit.record for edit in self.content.history)

    def undo(self) -> Patch:
        """Return the patch before its last edit, with the points and figures that it had.

        The audit of the edited patch does not belong to it, so it carries none.
        """
        if not self.content.history:
            raise InputError("undo has nothing to undo: this patch was not edited.")
        return Patch(before_last_edit(self.content))

    # -- signing ----------------------------------------------------------------------------------

    def with_audit(self, audit: Audit) -> Patch:
        """Return the patch with the digest of an audit, which then belongs to it.

        `commod.report(audit, path, patch=patch)` writes the SHA-256 of the returned patch into the
        report, and `commod.verify_report` checks the two files.

        Parameters
        ----------
        audit : Audit
            An audit of this update: with the same target, constraint, labels and scorecard.
        """
        _check_audit(self.content, audit)
        return Patch(replace(self.content, audit=audit.digest))

    def shipped_with(self, audit: Audit) -> Shipped:
        """Return what the report of an audit states about this patch, as a record."""
        _check_audit(self.content, audit)
        if self.content.audit != audit.digest:
            carried = "no audit" if self.content.audit is None else "the digest of another audit"
            raise InputError(
                f"The patch carries {carried}, so the report would not belong to it. Pass "
                "patch.with_audit(audit), and save that patch.",
                parameter="patch",
            )
        return shipped_of(self.content, self.sha256, audit)

    # -- applying ---------------------------------------------------------------------------------

    @property
    def scorecard(self) -> Scorecard:
        """Return points, concepts and rule as a `Scorecard`, which NumPy evaluates."""
        return scorecard_of(self.content)

    def apply(
        self,
        frame: Any,
        score: str = "score",
        *,
        prefix: str = PREFIX,
        calibrated: bool = False,
        columns: Sequence[str] | None = None,
    ) -> Any:
        """Return the frame with the edited score and decision next to the base score.

        Parameters
        ----------
        frame : pandas, polars (eager or lazy), pyarrow, DuckDB or PySpark frame
            It has the columns that the patch reads. A lazy frame stays lazy.
        score : str, default="score"
            The column of the base model's scores of the positive label, in [0, 1]. It stays.
        prefix : str, default="commod_"
            Before the names of the new columns.
        calibrated : bool, default=False
            Whether to add `commod_calibrated`, too: the edited score as a calibrated probability
            of the positive label. `update.calibrated_proba` returns the same numbers.
        columns : sequence of str, default=None
            Names of the columns to add, with their prefix and in this order. They are the four
            below, `commod_calibrated` and `commod_r`. Only what they need is computed. None means
            the four. With `calibrated=True`, `commod_calibrated` comes last if it is not named.

        Returns
        -------
        frame of the same kind
            With `commod_score`, the edited score; `commod_decision`, a label; `commod_changed`,
            whether it differs from the base decision; `commod_direction`: "gain", "loss" or "kept".
            A score that is missing or outside [0, 1] gives NULL for score, decision and direction,
            False for changed, and NULL for the calibrated probability and for r.

            `commod_r` is the ratio that `update.ratio` returns. It is 1 if the patch forbids a
            change in that direction.

        Notes
        -----
        A missing number is NaN, NULL or infinite. Columns that the patch does not read stay as
        they are.
        """
        _check_text("score", score)
        _check_text("prefix", prefix)
        chosen = added_columns(self.content, prefix, calibrated, columns)
        return apply_to(self.content, frame, score, prefix, chosen)

    def revert(self, frame: Any, *, prefix: str = PREFIX) -> Any:
        """Return the frame without the columns that `apply` added."""
        _check_text("prefix", prefix)
        return revert_from(frame, prefix)

    def count(self, frame: Any, *, prefix: str = PREFIX) -> PatchCounts:
        """Return how many decisions of an edited frame changed, counted inside its engine."""
        _check_text("prefix", prefix)
        return count_changes(frame, prefix)

    def to_sql(
        self,
        dialect: str,
        table: str,
        score: str = "score",
        *,
        prefix: str = PREFIX,
        columns: Any = None,
        calibrated: bool = False,
    ) -> str:
        """Return one SELECT that adds the same columns to a table of a database.

        Parameters
        ----------
        dialect : str
            "duckdb", "postgres" and "spark" are run in our tests; "snowflake", "bigquery" and
            "tsql" are written and parsed, but not run.
        table : str
            The table, as the dialect writes it: ``scores`` or ``"my schema"."scores"``.
        score : str, default="score"
            The column of the base model's scores.
        prefix : str, default="commod_"
            Before the names of the new columns.
        columns : mapping of str to str, default=None
            What the table calls columns of the patch where it calls them otherwise.
        calibrated : bool, default=False
            Whether to add `commod_calibrated`, too; see `apply`.
        """
        from commod.patch.sql import write_sql

        _check_text("score", score)
        _check_text("prefix", prefix)
        calibrated = check_calibrated(self.content, calibrated)
        names = score, prefix, columns
        return write_sql(self.content, dialect, table, *names, calibrated=calibrated)

    def to_onnx(self, *, calibrated: bool = False) -> Any:
        """Return the edit of the score as an ONNX model in double precision.

        Inputs, one value per row: `score` and the numbers the patch reads (double, NaN if
        missing) and its categories (text); `onnx_inputs` makes them of a frame. Outputs:
        `commod_score` (double, NaN without a base score), `commod_decision` (1 positive, 0
        negative, -1 without a base score) and `commod_changed`. With `calibrated`, there is a
        fourth output, `commod_calibrated` (double, NaN without a base score); see `apply`.
        """
        from commod.patch.onnx import write_onnx

        return write_onnx(self.content, check_calibrated(self.content, calibrated))

    def onnx_inputs(self, frame: Any, score: str = "score") -> dict[str, Any]:
        """Return the inputs of `to_onnx` for the rows of a frame in memory, by name."""
        from commod.patch.onnx import read_inputs

        _check_text("score", score)
        return read_inputs(self.content, frame, score)

    # -- people -----------------------------------------------------------------------------------

    def verify(self, X: Any, sensitive_features: Any, *, estimator: Any = None) -> Verification:
        """Check that the patch holds nothing of the data that it must not hold.

        The checks are: no value of the sensitive features, no category or bin edge that few
        people share, no column that determines the group or nearly does, and the columns of the fit
        rows.

        Parameters
        ----------
        X : table of shape (n, n_features)
            The fit rows of the update; in other rows a category may be rare.
        sensitive_features : array-like of shape (n,) or (n, n_sensitive)
            The group of each row. Rows without one are left out of the checks on groups.
        estimator : classifier, default=None
            The base model, to compare its fingerprint.
        """
        from commod.patch.verification import verify_against

        return verify_against(self.content, X, sensitive_features, estimator)

    def diff(self, other: Patch) -> list[str]:
        """Return the differences to another patch in words; empty if only the dates differ."""
        if not isinstance(other, Patch):
            raise InputError(f"diff compares with another Patch; got {type(other).__name__}.")
        return differences(self.content, other.content)

    def print(self) -> None:
        """Print the patch as a scorecard on one page."""
        import rich

        rich.get_console().print(str(self), markup=False, highlight=False, soft_wrap=True)

    def to_text(self, *, every_term: bool = False) -> str:
        """Return the patch as text: on one page, or with every term of the scorecard."""
        check_flag(every_term, "every_term")
        return page_text(self.content, self.digest, every_term=every_term)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def __repr__(self) -> str:
        content = self.content
        names = [column.name for column in content.ratio.columns]
        model, read = plain(content.base.model), list_names(names, 6) if names else "no column"
        return f"<Patch of {model} on {read}: {self.digest[:12]}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Patch) and self.content == other.content

    def __hash__(self) -> int:
        return hash(self.digest)


def _check_audit(content: Content, audit: Any) -> None:
    """Refuse what is no audit, and the audit of another update, by the fields that differ."""
    if not isinstance(audit, Audit):
        raise InputError(
            f"A patch needs an Audit to be tied to; got {type(audit).__name__}. Make one with "
            "commod.audit(y_before, y_after, sensitive_features=…).",
            parameter="audit",
        )
    found = [
        f"{field} is {own} in the patch and {audited} in the audit"
        for field, own, audited in contradictions(content, audit)
    ]
    if found:
        listed = "; ".join(found[:MOST_NAMED])
        more = f"; and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
        raise InputError(
            f"This audit does not belong to the patch: {listed}{more}. Audit the update that the "
            "patch was made of, with explanation=commod.explain(update, X).",
            parameter="audit",
        )


def _check_text(name: str, value: Any) -> None:
    if not isinstance(value, str) or not value:
        message = f"{name}={shown(value)} must be the name of a column, as text."
        raise InputError(message, parameter=name)
    check_text([value], name, name)
