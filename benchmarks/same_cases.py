"""The cases of `same_fits.py`: what users ask for, each with a digest of all that they get."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from sklearn.utils import get_tags

from benchmarks.same_outputs import OUTPUTS
from benchmarks.same_rows import (
    FitRows,
    biased,
    compas,
    fitted,
    intersections,
    loans,
    three,
    unknown_groups,
    weighted,
    with_gaps,
)
from commod import (
    COMMOD,
    ControlledDebiaser,
    Patch,
    ScoreColumn,
    audit,
    audit_frame,
    compare,
    explain,
    frontier,
    frontier_frame,
    report,
    stability,
)
from commod.constraints import (
    AccuracyParity,
    DemographicParity,
    EqualizedOdds,
    ErrorRatio,
    MinimumRate,
    MinimumTruePositiveRate,
    Parity,
    PredictiveParity,
)
from commod.edit import Cap, Merge, Round
from commod.rivals import MinimalFlip, RejectOption, lineup

ODDS, TPR, FPR = (
    "equalized_odds",
    "true_positive_rate_parity",
    "false_positive_rate_parity",
)
DATED = {"created", "when", "library", "versions", "digest", "fit_seconds"}  # change with the day
WORDS = {"in_words"}  # the status, which is compared as a text
DIALECTS = ("duckdb", "postgres", "spark", "snowflake", "bigquery", "tsql")
STORED_PATCHES = Path(__file__).parents[1] / "tests" / "patch"
Case = Callable[[], dict[str, Any]]


# ---------------------------------------------------------------------------------------------
# What is compared


def digest(value: Any) -> str:
    """Return the digest of bytes, a text, or plain data."""
    if not isinstance(value, bytes):
        text = value if isinstance(value, str) else json.dumps(plain(value), sort_keys=True)
        value = text.encode("utf-8")
    return hashlib.sha256(value).hexdigest()[:16]


def plain(value: Any) -> Any:
    """Return data without dates and versions, floats with 12 digits."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items() if k not in DATED | WORDS}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return float(f"{value:.12g}") if isinstance(value, float) else value


def decided(decisions: Any) -> str:
    """Return the digest of decisions."""
    return digest(np.packbits(np.asarray(decisions) == 1).tobytes())


def outcome(decisions: Any = (), **parts: Any) -> dict[str, Any]:
    """Return the parts of one case: `numbers`, `bytes` and `texts` by name."""
    empty: dict[str, Any] = {"numbers": {}, "bytes": {}, "texts": {}}
    return {"decisions": decided(decisions), **empty, **parts}


def query(sql: str) -> str:
    """Return the digest of a query without its comments, which name the digest of the file."""
    return digest("\n".join(line for line in sql.splitlines() if not line.startswith("--")))


def shipped(update: Any) -> dict[str, str]:
    """Return digests of the patch of an update, its SQL and its ONNX graph."""
    patch = update.to_patch()
    found = {f"patch {k}": digest(v) for k, v in plain(json.loads(patch.to_json())).items()}
    for dialect in DIALECTS:
        found[f"SQL {dialect}"] = query(patch.to_sql(dialect, "people", score="score"))
    found["ONNX"] = digest(patch.to_onnx().graph.SerializeToString(deterministic=True))
    return found


def audited(one: Any) -> dict[str, str]:
    """Return digests of the parts of an audit without their sentences, and of its ledger."""
    return {f"audit {k}": digest(_split(v, [])) for k, v in one.to_dict().items() if k != "answer"}


def _split(tree: Any, sentences: list[str]) -> Any:
    """Return data without its sentences, which are added to a list."""
    if isinstance(tree, dict):
        return {name: _split(value, sentences) for name, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [_split(value, sentences) for value in tree]
    if isinstance(tree, str) and " " in tree and tree.endswith((".", ":")):
        sentences.append(tree)
        return ""
    return tree


def described(one: Any) -> dict[str, str]:
    """Return the sentences of an audit, and the digest of its report."""
    sentences: list[str] = []
    _split(one.to_dict(), sentences)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(report(one, Path(folder) / "r.md")).read_text()
    return {"sentences": "\n".join(sentences), "report": digest(_undated(page))}


def _undated(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if "20" not in line or "-" not in line)


def result(update: Any, rows: FitRows, *, ships: bool = True) -> dict[str, Any]:
    """Return what an update decides, says and ships; trained ones `ships` nothing comparable."""
    needs = get_tags(update).needs_sensitive_features
    by_group = {"sensitive_features": rows.groups} if needs else {}
    scores = update.predict_proba(rows.X, **by_group)[:, 1]
    numbers = {"scores": [float(scores.mean()), float(scores.std())]}
    if getattr(update, "concept_weights_", None) is not None:
        total = update.concept_contributions_ @ update.concept_weights_
        numbers["points"] = [float(update.intercept_), *map(float, total)]
    for name in ("fairness_", "change_rate_", "limit_"):
        if hasattr(update, name):
            numbers[name] = [float(getattr(update, name))]
    if hasattr(update, "expected_"):
        numbers["expected_fairness_"] = [float(update.expected_.fairness)]
    parts: dict[str, Any] = {"numbers": numbers}
    if ships:
        parts["texts"] = {"status": update.status_}
    if ships and isinstance(update, ControlledDebiaser):
        parts["bytes"] = shipped(update)
    return outcome(update.predict(rows.X, **by_group), **parts)


# ---------------------------------------------------------------------------------------------
# Cases


def controlled(rows: Callable[[], FitRows] = biased, **params: Any) -> Case:
    """Return a case that fits ControlledDebiaser."""

    def case() -> dict[str, Any]:
        given = rows()
        return result(fitted(ControlledDebiaser(given.model, **params), given), given)

    return case


def trained(method: Any, rows: Callable[[], FitRows] = biased, **params: Any) -> Case:
    """Return a case that trains with JAX."""

    def case() -> dict[str, Any]:
        given = rows()
        update = method(given.model, random_state=0, **params)
        return result(fitted(update, given), given, ships=False)

    return case


def rival(name: str, constraints: str = "demographic_parity") -> Case:
    """Return a case that fits a method of the line-up with its last default strength but one."""

    def case() -> dict[str, Any]:
        given = biased()
        update = lineup(given.model, constraints=constraints, random_state=0)[name]
        quick = {"epochs": 5} if "epochs" in update.get_params() else {}
        update.set_params(strength=update.default_strengths[-2], **quick)
        return result(fitted(update, given), given, ships=not quick)

    return case


def edited(edits: Any, **how: Any) -> Case:
    """Return a case that edits an update by hand."""

    def case() -> dict[str, Any]:
        given, update = _update_to_edit()
        told = {"sensitive_features": given.groups}
        return result(update.edit(edits, given.X, given.y, **told, **how), given)

    return case


@cache
def _update_to_edit() -> tuple[FitRows, ControlledDebiaser]:
    given = with_gaps()
    return given, fitted(ControlledDebiaser(given.model, max_lines=None), given)


@cache
def _default_update(rows: Callable[[], FitRows]) -> tuple[FitRows, ControlledDebiaser]:
    given = rows()
    return given, fitted(ControlledDebiaser(given.model), given)


def in_engine(kind: str, **params: Any) -> Case:
    """Return a case that fits in an engine, audits there, and applies the patch."""

    def case() -> dict[str, Any]:
        table = loans()
        frame = _frames()[kind](table)
        told = {"sensitive_features": "region", "y_true": "y"}
        update = ControlledDebiaser(ScoreColumn("score"), **params)
        update.fit_frame(frame, **told, key="id")
        decisions = update.to_patch().apply(table)["commod_decision"]
        texts = {"status": update.status_}
        return outcome(decisions, bytes=shipped(update), texts=texts)

    return case


def _frames() -> dict[str, Callable[[pd.DataFrame], Any]]:
    import duckdb

    return {
        "polars": pl.from_pandas,
        "polars, lazy": lambda table: pl.from_pandas(table).lazy(),
        "pyarrow": lambda table: pa.Table.from_pandas(table, preserve_index=False),
        "DuckDB": lambda table: duckdb.connect().from_arrow(
            pa.Table.from_pandas(table, preserve_index=False)
        ),
    }


def frontier_in_engine() -> dict[str, Any]:
    """Return the frontier of a table in DuckDB."""
    told = {"sensitive_features": "region", "y_true": "y", "key": "id"}
    frame = _frames()["DuckDB"](loans())
    curve = frontier_frame(
        ControlledDebiaser(ScoreColumn("score")), frame, **told, targets=[0.6, 0.7, 0.8]
    )
    return outcome(numbers={"curve": _numbers_of(curve.frame())})


def audit_in_engine() -> dict[str, Any]:
    """Return the audit of a patched table in DuckDB."""
    table = loans()
    update = ControlledDebiaser(ScoreColumn("score"))
    told = {"sensitive_features": "region", "y_true": "y"}
    update.fit_frame(_frames()["DuckDB"](table), **told, key="id")
    after = update.to_patch().apply(table).assign(before=(table["score"] > 0.5).astype(int))
    one = audit_frame(
        _frames()["DuckDB"](after), before="before", after="commod_decision", **told, update=update
    )
    return outcome(bytes=audited(one), texts=described(one))


def _numbers_of(frame: Any) -> list[float]:
    numbers = pd.DataFrame(frame).select_dtypes("number").drop(columns=list(DATED), errors="ignore")
    return numbers.to_numpy(float).ravel().tolist()


def curve_of(
    rows: Callable[[], FitRows] = biased, method: Any = None, params: Any = None, **how: Any
) -> Case:
    """Return a case with the figures and the steps of a whole trade-off."""

    def case() -> dict[str, Any]:
        given = rows()
        update = (method or ControlledDebiaser)(given.model, **(params or {}))
        curve = frontier(update, given.X, given.y, sensitive_features=given.groups, **how)
        steps = [(s.n_changes, s.fairness) for s in curve.trade_off().steps]
        return outcome(
            numbers={"curve": _numbers_of(curve.frame())}, bytes={"steps": digest(steps)}
        )

    return case


def compared() -> dict[str, Any]:
    """Return the figures of several methods side by side."""
    given = biased()
    methods = [ControlledDebiaser(given.model), MinimalFlip(given.model), RejectOption(given.model)]
    found = compare(methods, given.X, given.y, sensitive_features=given.groups)
    return outcome(numbers={"frame": _numbers_of(found.frame())})


def refitted() -> dict[str, Any]:
    """Return who changes when an update is fitted again."""
    given = biased()
    update = ControlledDebiaser(given.model)
    found = stability(
        update, given.X, given.y, sensitive_features=given.groups, n_refits=4, random_state=0
    )
    return outcome(numbers={"agreement": found.change_share.tolist()})


def audit_of(rows: Callable[[], FitRows], *, whole: bool = False, **params: Any) -> Case:
    """Return a case that audits an update, of arrays alone or with all that it knows."""

    def case() -> dict[str, Any]:
        given, update = _default_update(rows)
        if params:
            update = fitted(ControlledDebiaser(given.model, **params), given)
        scores = given.model.predict_proba(given.X)[:, 1]
        more: dict[str, Any] = {}
        if whole:
            more = {"explanation": explain(update, given.X), "request": update.request()}
            more |= {"X": given.X, "scores_before": scores}
            more["scores_after"] = update.predict_proba(given.X)[:, 1]
        told = {"sensitive_features": given.groups, "y_true": given.y}
        after = update.predict(given.X)
        one = audit((scores > 0.5).astype(int), after, **told, **more)
        return outcome(after, bytes=audited(one), texts=described(one))

    return case


def explained() -> dict[str, Any]:
    """Return the segments and one person's reasons."""
    given, update = _default_update(compas)
    why = explain(update, given.X)
    person = int(np.flatnonzero(why.before != why.after)[0])
    texts = {"explanation": digest(repr(why)), "person": digest(str(why.person(person)))}
    return outcome(why.after, texts=texts)


def read(texts: Callable[[], dict[str, str]]) -> Case:
    """Return a case that compares what users read."""
    return lambda: outcome(texts={name: digest(text) for name, text in texts().items()})


def stored_patch(name: str) -> dict[str, Any]:
    """Return what a patch of an earlier version decides and compiles to."""
    patch = Patch.load(STORED_PATCHES / name)
    random, n = np.random.RandomState(0), 500
    table = {"score": random.random_sample(n)}
    for column in patch.content.ratio.columns:
        known = getattr(column, "categories", None)
        names = [*map(str, known), "another"] if known else None
        table[column.name] = random.choice(names, n) if names else random.normal(size=n).round(3)
    changed = patch.apply(pd.DataFrame(table))["commod_changed"]
    sql = {f"SQL {dialect}": query(patch.to_sql(dialect, "people")) for dialect in DIALECTS}
    return outcome(changed.astype(int), bytes=sql, texts={"text": digest(patch.to_text())})


PARITY = DemographicParity(ratio=0.8)
REQUESTS: dict[str, Case] = {
    "demographic parity": controlled(compas, target=0.8),
    "equalized odds": controlled(compas, constraints=ODDS, target=0.1),
    "true positive rates": controlled(compas, constraints=TPR, target=0.05),
    "false positive rates": controlled(compas, constraints=FPR, target=0.05),
    "three groups": controlled(three, target=0.85),
    "three groups, equalized odds": controlled(three, constraints=ODDS, target=0.2),
    "intersections": controlled(intersections, target=0.7),
    "weights, equalized odds": controlled(weighted, constraints=ODDS, target=0.2),
    "weights, gains only": controlled(weighted, target=0.8, direction="gains_only"),
    "losses only": controlled(target=0.8, direction="losses_only"),
    "fewest changes, all lines": controlled(target=0.8, borderline=0, max_lines=None),
    "nearest": controlled(target=0.8, borderline=1),
    "few lines": controlled(compas, target=0.8, max_lines=4),
    "no labels": controlled(lambda: biased()._replace(y=None), target=0.8),
    "fit rows": controlled(target=0.9, target_on="fit_rows"),
    "many rows": controlled(partial(biased, 60_000), target=0.8),
    "whole numbers": controlled(target=0.8, points="integers"),
    "bins": controlled(target=0.8, points="per bin"),
    "gaps, text and a boolean": controlled(with_gaps, target=0.8),
    "locks and signs": controlled(
        with_gaps, target=0.8, locked_features=["town"], monotone={"x0": 1}
    ),
    "a budget": controlled(target=None, max_changes=0.03),
    "caps": controlled(
        target=0.95, max_changes=0.05, max_accuracy_loss=0.01, max_volume_change=0.05
    ),
    "a margin": controlled(target=0.7, max_margin=0.2),
    "confidence": controlled(partial(biased, 4000), target=0.7, confidence=0.9),
    "unknown groups": controlled(unknown_groups, target=0.8, unknown_groups="ignore"),
    "the continuous edit": controlled(target=0.8, score_edit="all"),
    "the other label": controlled(compas, target=0.8, pos_label=1, favorable_label=0),
    "another threshold": controlled(target=0.8, threshold=0.4),
    "a difference": controlled(constraints=DemographicParity(difference=0.05)),
    "odds as a sum": controlled(constraints=EqualizedOdds(0.2)),
    "predictive parity": controlled(constraints=PredictiveParity(difference=0.05)),
    "accuracy parity": controlled(constraints=AccuracyParity(difference=0.03)),
    "error ratio": controlled(constraints=ErrorRatio(ratio=0.6)),
    "labels per selection": controlled(constraints=Parity("labels per selection", ratio=0.8)),
    "a minimum rate": controlled(constraints=PARITY & MinimumRate(0.3)),
    "three constraints": controlled(
        three, constraints=PARITY & AccuracyParity(difference=0.15) & MinimumTruePositiveRate(0.5)
    ),
    "within strata": controlled(with_gaps, constraints=PARITY.within("town")),
    "within strata, on average": controlled(
        with_gaps, constraints=PARITY.within("town", over="average")
    ),
}
EDITS: dict[str, Case] = {
    "points": edited({"town = Rome": 0.5, "x1": -0.1}),
    "drop and lock": edited({"town": "drop", "x0": "lock"}),
    "cap and round": edited([Cap(-0.5, 0.5), Round(0.05)]),
    "merge": edited(Merge("town", ["Paris", "Oslo"])),
    "refit beside pinned points": edited({"town = Rome": 0.3}, refit=True),
    "the cut stays": edited({"x1": 0.0}, offset="keep"),
}
ENGINES: dict[str, Case] = {
    "polars": in_engine("polars"),
    "polars, lazy, three-digit points": in_engine("polars, lazy", target=0.9),
    "pyarrow, equalized odds": in_engine("pyarrow", constraints=ODDS, target=0.1),
    "DuckDB": in_engine("DuckDB"),
    "DuckDB, whole numbers": in_engine("DuckDB", points="integers"),
    "DuckDB, a frontier": frontier_in_engine,
    "DuckDB, an audit": audit_in_engine,
}
STUDIES: dict[str, Case] = {
    "a frontier": curve_of(targets=[0.5, 0.6, 0.7, 0.8, 0.9]),
    "the default frontier": curve_of(compas),
    "a frontier of odds": curve_of(params={"constraints": ODDS}, targets=[0.05, 0.1, 0.2]),
    "a frontier of MinimalFlip": curve_of(method=MinimalFlip),
    "a comparison": compared,
    "stability": refitted,
    "an explanation": explained,
    "an audit": audit_of(biased),
    "an audit of three groups": audit_of(three, target=0.85),
    "an audit of all that is known": audit_of(compas, whole=True),
    "an audit of stated constraints": audit_of(
        biased, whole=True, constraints=PARITY & MinimumRate(0.3)
    ),
}
AWARE = ("CalibratedEqualizedOdds", "CFBC")
METHODS = {name: method for name, method in lineup(None).items() if hasattr(method, "strength")}
NETWORKS = [name for name, method in METHODS.items() if "epochs" in method.get_params()]
RIVALS: dict[str, Case] = {
    **{
        name: rival(name, ODDS if name.startswith(AWARE) else "demographic_parity")
        for name in METHODS
    },
    "LPP, equalized odds": rival("LPP", ODDS),
    "BayesPlugIn, equalized odds": rival("BayesPlugIn", ODDS),
}
TRAINED: dict[str, Case] = {
    **{name: RIVALS.pop(name) for name in NETWORKS},
    "COMMOD": trained(COMMOD, epochs=20),
    "COMMOD, equalized odds": trained(COMMOD, compas, constraints=ODDS, epochs=10),
    "COMMOD, a network": trained(COMMOD, architecture="mlp", epochs=10),
    "COMMOD, as in the paper": trained(COMMOD.as_in_the_paper, epochs=10),
}
PATCHES: dict[str, Case] = {
    f"{path.parent.name}/{path.stem}": partial(stored_patch, f"{path.parent.name}/{path.name}")
    for path in sorted(STORED_PATCHES.glob("*/*.json"))
}
KINDS = {
    "ControlledDebiaser": REQUESTS,
    "Edit": EDITS,
    "Engine": ENGINES,
    "Study": STUDIES,
    "Method": RIVALS,
    "Training": TRAINED,
    "Output": {name: read(texts) for name, texts in OUTPUTS.items()},
    "Patch": PATCHES,
}
CASES: dict[str, Case] = {
    f"{kind}: {name}": case for kind, cases in KINDS.items() for name, case in cases.items()
}
