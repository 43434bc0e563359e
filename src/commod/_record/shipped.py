"""Records of what ships: the patch behind a signed report, and how its figures carry over."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from commod._record.explanation import Value
from commod._record.plain import ADDED_LATER
from commod._record.stated import FurtherConstraint

REPORT_SCHEMA = "commod.report/1"


@dataclass(frozen=True)
class Gap:
    """One figure of the update on the rows of the fit and on the audited rows.

    `difference` is `test` minus `fit`. None where a figure is undefined or not known.
    """

    name: str
    kind: Literal["number", "percent"]
    fit: float | None
    test: float | None
    difference: float | None


@dataclass(frozen=True)
class Shipped:
    """The patch that a report belongs to, as the report states it.

    - `patch_sha256`: of the patch file; `audit_digest`: of the audit, as the patch carries it.
    - `base_digest`: fingerprint of the base model. `scores_digest`: SHA-256 of its scores on the
      fit rows. None where not known.
    - `n_fit_rows`: rows that `fit` got. The figures of the fit are of `n_figure_rows` of them,
      which `fit_rows` names ("fit rows", or "held-out rows" with `confidence`). `n_test_rows`: rows
      of the audit.
    - `same_figures`: whether both have the same number of rows and the same figures. The audited
      rows are then most likely the fit rows, and the gap says nothing about new people.
    - `n_groups_left_out`, `n_people_left_out`: groups too small for the constraint of the fit.
    - `versions`: of Python and packages when the patch was made.
    - `promised`: whether the target is promised for new people; None where this was not asked for.
    - `positive_label`: the label whose rates are compared.
    - `score_is_for`: the label that a high score predicts; None where not known.
    - `constraints`, `target`: the first constraint and its bound; `further`: the other ones.
    """

    patch_sha256: str
    audit_digest: str | None
    created: str
    method: str
    base_model: str
    base_digest: str | None
    score_column: str | None
    scores_digest: str | None
    threshold: float
    negative_label: Value
    positive_label: Value
    favorable_label: Value
    constraints: str
    target: float | None
    direction: str
    fit_rows: str
    n_fit_rows: int | None
    n_figure_rows: int
    n_test_rows: int
    same_figures: bool
    gaps: tuple[Gap, ...]
    n_groups_left_out: int | None
    n_people_left_out: int | None
    versions: dict[str, str] | None
    promised: bool | None = field(default=None, metadata=ADDED_LATER)
    score_is_for: Value | None = field(default=None, metadata=ADDED_LATER)
    further: tuple[FurtherConstraint, ...] = field(default=(), metadata=ADDED_LATER)
