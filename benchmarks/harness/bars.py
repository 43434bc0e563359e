"""Every figure that `make bench` reports, with its bar if it has one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from benchmarks.harness.figures import Figure
from benchmarks.harness.results import Value
from benchmarks.speed.names import (
    FIT_ROWS,
    PIPELINE,
    START,
    audit_of,
    categories_of,
    files_of,
    first_rows_of,
    lake_of,
    predictions_of,
    rows_of,
    spark_of,
)
from benchmarks.speed.settings import Settings

FAIRLEARN = ("Fairlearn, linear", "Fairlearn, its guide")
AIF360 = "AIF360"
OXONFAIR = "OxonFair, inferred"
CALLS = {"seconds": "next calls", "first_call": "first call"}


def figures(settings: Settings) -> list[Figure]:
    """Return the figures of a run of this size."""
    return [
        *_start(),
        *_peers(settings),
        *_rows(settings),
        *_categories(settings),
        *_predict(settings),
        *_audit(settings),
        *_shipping(settings),
        *_engines(settings),
    ]


def _start() -> Iterator[Figure]:
    bars = {"commod --help": 0.5, "import commod": 1.0, "from commod import COMMOD": None}
    for name, bar in bars.items():
        yield Figure("start", f"`{name}`, seconds", Value(START, name), bar=bar)


def _peers(settings: Settings) -> Iterator[Figure]:
    for table in settings.tables:
        for peer in (*FAIRLEARN, AIF360):
            yield _faster(table, peer, "COMMOD", "seconds", bar=8, goal=20)
        for ours in ("COMMOD", "COMMOD, compiled before"):
            yield from _at_least_as_fast(table, ours, "first_call")
        for quantity in ("seconds", "first_call"):
            yield from _at_least_as_fast(table, f"frontier of {settings.n_models}", quantity)
        yield _beside_oxonfair(table, "seconds", bar=5)
        yield _beside_oxonfair(table, "first_call", goal=1)
        yield _beside_oxonfair(table, "seconds", ours=FIT_ROWS)
        yield _frontier(table, f"frontier of {settings.n_models}")
    yield _beside_oxonfair(first_rows_of(*settings.first_rows), "first_call", bar=1)


def _frontier(table: str, name: str) -> Figure:
    """Return the seconds of a whole frontier over those of one fit."""
    fit = "ControlledDebiaser"
    return Figure("peers", f"{table}: {name} / {fit}", Value(table, name), Value(table, fit), bar=3)


def _at_least_as_fast(table: str, ours: str, quantity: str) -> Iterator[Figure]:
    for peer in FAIRLEARN:
        yield _faster(table, peer, ours, quantity, bar=1)
    yield _faster(table, AIF360, ours, quantity, goal=1)


def _faster(
    table: str,
    peer: str,
    ours: str,
    quantity: str,
    *,
    bar: float | None = None,
    goal: float | None = None,
) -> Figure:
    """Return how many times faster our program is than one fit of an adversarial peer."""
    label = f"{table}, {CALLS[quantity]}: {peer} / {ours}"
    top, bottom = Value(table, peer, quantity), Value(table, ours, quantity)
    return Figure("peers", label, top, bottom, bar=bar, goal=goal, sense=">=")


def _beside_oxonfair(
    table: str,
    quantity: str,
    *,
    ours: str = "ControlledDebiaser",
    bar: float | None = None,
    goal: float | None = None,
) -> Figure:
    label = f"{table}, {CALLS[quantity]}: {ours} / {OXONFAIR}"
    top, bottom = Value(table, ours, quantity), Value(table, OXONFAIR, quantity)
    return Figure("peers", label, top, bottom, bar=bar, goal=goal)


def _rows(settings: Settings) -> Iterator[Figure]:
    for n in settings.rows:
        where = rows_of(n, "category")
        for name in ("fit", "predict", "apply", "audit"):
            for other in ("copy", "LogisticRegression"):
                label = f"{where}: {name} / {other}"
                yield Figure("rows", label, Value(where, name), Value(where, other))
        label = f"{where}: fit, changes / exact limit"
        yield Figure("rows", label, Value(where, "fit", "over_limit"))
    yield from _beside_pipeline(settings)
    yield from _growth(settings)
    yield from _most_rows(settings)
    yield from _text(settings)


def _beside_pipeline(settings: Settings) -> Iterator[Figure]:
    """Yield fits over the fit of the base pipeline; the bars are those of 10,000 rows."""
    for n in settings.rows:
        if n <= 1_000_000:
            where = rows_of(n, "category")
            for name, bar in (("fit", 5), ("fit, odds", 15)):
                label = f"{where}: {name} / {PIPELINE}"
                top, bottom = Value(where, name), Value(where, PIPELINE)
                yield Figure("rows", label, top, bottom, bar=bar if n == 10_000 else None)


def _growth(settings: Settings) -> Iterator[Figure]:
    few, many = settings.rows[:2][-1], settings.rows[-1]
    if few == many:
        return
    for name, bar in (("fit", 1.3), ("predict", None), ("audit", None)):
        yield _per_row(name, few, many, bar)
    sizes = [n for n in settings.rows if n <= 1_000_000]
    for few, many in itertools.pairwise(sizes):
        yield _per_row("fit, model's predictions included", few, many, 1)


def _per_row(name: str, few: int, many: int, bar: float | None) -> Figure:
    """Return the ratio of seconds per row, at many rows over few rows."""
    top, bottom = (Value(rows_of(n, "category"), name) for n in (many, few))
    label = f"{name}: seconds per row at {many:,} rows / at {few:,}"
    return Figure("rows", label, top, bottom, scale=few / many, bar=bar)


def _most_rows(settings: Settings) -> Iterator[Figure]:
    where = rows_of(settings.rows[-1], "category")
    for name in ("fit", "predict", "apply", "audit"):
        label = f"{where}: {name}, GB held by the process"
        yield Figure("rows", label, Value(where, name, "process_peak_gb"), bar=24)


def _text(settings: Settings) -> Iterator[Figure]:
    # Only default fits of stored scores have a bar: scikit-learn's predictions take most of the
    # time and memory of the fits that include them.
    names = ("fit, target on fit rows", "fit, model's predictions included")
    for n, name in itertools.product(settings.text_rows, ("fit", *names)):
        where, is_default = rows_of(n, "text"), name == "fit"
        for other, bar in ((PIPELINE, 5), ("LogisticRegression", None)):
            label, top, bottom = (
                f"{where}: {name} / {other}",
                Value(where, name),
                Value(where, other),
            )
            yield Figure("rows", label, top, bottom, bar=bar if is_default else None)
        for kind in ("text", "category"):
            where = rows_of(n, kind)
            label, share = f"{where}: {name}, memory / data", Value(where, name, "peak_over_data")
            yield Figure("rows", label, share, bar=3 if is_default else None)
    for n, kind in itertools.product(settings.text_rows, ("text", "category")):
        where, name = rows_of(n, kind), "the model's predictions"
        label = f"{where}: {name} alone, memory / data"
        yield Figure("rows", label, Value(where, name, "peak_over_data"))


def _categories(settings: Settings) -> Iterator[Figure]:
    least = settings.categories[0]
    for n_levels in settings.categories[1:]:
        for name in ("ControlledDebiaser", "COMMOD, 5 epochs", "predict"):
            yield Figure(
                "categories",
                f"{name}: {n_levels:,} categories / {least:,}",
                Value(categories_of(settings.category_rows, n_levels), name),
                Value(categories_of(settings.category_rows, least), name),
            )

    for n_levels in settings.spark_categories:
        where = spark_of(settings.category_rows, n_levels)
        ours = Value(where, "apply", "over_copy")
        bar = 3 if n_levels <= 5000 else None
        yield Figure("categories", f"{where}: apply / copy", ours, bar=bar)


def _predict(settings: Settings) -> Iterator[Figure]:
    for kind, n in itertools.product(settings.base_models, settings.predict_rows):
        where = predictions_of(n, kind)
        bars = {"predict": 1.2 if kind.startswith("LightGBM") else None}
        if kind.endswith("frame"):
            bars["apply"] = None
        for name, bar in bars.items():
            label = f"{where}: {name} / predict_proba"
            yield Figure("predict", label, Value(where, name, "over_base"), bar=bar)


def _audit(settings: Settings) -> Iterator[Figure]:
    for kind in settings.audit_kinds:
        where = audit_of(settings.audit_rows, kind)
        yield Figure("audit", f"{where}: audit, seconds", Value(where, "audit"), bar=10)
        yield Figure("audit", f"{where}: report, seconds", Value(where, "report"), bar=3)
        share = Value(where, "audit", "peak_over_data")
        yield Figure("audit", f"{where}: audit, memory / data", share, bar=2)
    where = audit_of(settings.report_rows, "category")
    yield Figure("audit", f"{where}: report, MB on disk", Value(where, "report", "size_mb"), bar=5)


def _shipping(settings: Settings) -> Iterator[Figure]:
    where = files_of(settings.apply_rows)
    ours, copy = Value(where, "commod apply"), Value(where, "copy by DuckDB")
    yield Figure("shipping", f"{where}: commod apply / copy by DuckDB", ours, copy, bar=2)
    held = Value(where, "commod apply", "process_peak_gb")
    yield Figure("shipping", f"{where}: commod apply, GB held", held, bar=2.15)  # 2 GiB
    where = files_of(settings.debias_rows)
    seconds = Value(where, "commod debias")
    yield Figure("shipping", f"{where}: commod debias, seconds", seconds, bar=60)


def _engines(settings: Settings) -> Iterator[Figure]:
    places = [lake_of(n, "DuckDB") for n in settings.lake_rows]
    for where in (*places, lake_of(settings.spark_rows, "Spark")):
        fit, scan = Value(where, "fit_frame"), Value(where, "one scan")
        yield Figure("engines", f"{where}: fit_frame / one scan", fit, scan)
        # fit / (3 scans + 60 s) is a third of fit / (scan + 20 s)
        is_largest = where == places[-1]
        yield Figure(
            "engines",
            f"{where}: fit_frame / (3 scans + 60 s)",
            fit,
            scan,
            scale=1 / 3,
            allowance=20.0,
            bar=1 if is_largest else None,
        )
        held = Value(where, "fit_frame", "process_peak_gb")
        bar = 4 if is_largest else None
        yield Figure("engines", f"{where}: fit_frame, GB held by the process", held, bar=bar)
    yield from _beside_memory(lake_of(settings.lake_rows[0], "DuckDB"))
    where = lake_of(settings.spark_rows, "Spark")
    held = Value(where, "fit_frame", "jvm_peak_gb")
    yield Figure("engines", f"{where}: fit_frame, GB held by the JVM", held)


def _beside_memory(where: str) -> Iterator[Figure]:
    """Yield the figures of a fit where the table is, over those of a fit in memory."""
    names, label = ("fit_frame", "fit in memory"), f"{where}: fit_frame / fit in memory"
    yield Figure("engines", label, *(Value(where, name) for name in names))
    changes = (Value(where, name, "changes") for name in names)
    yield Figure("engines", f"{label}, changes", *changes, bar=1.05)
