"""Tables of the strata that conditional metrics compare."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from commod._record import Audit, Fairness, Stratum, StratumTable
from commod._reporting.render import texts
from commod._reporting.render.cells import Cell, ReportTable, figure, table_of, text
from commod._text import n_of, percent

MAX_STRATA = 30  # in a report; the JSON of the audit has all of them


def strata(audit: Audit) -> list[tuple[Fairness, ReportTable]]:
    """Return each conditional metric with a table of its strata, the least fair first."""
    return [(f, _strata(audit, f, f.strata)) for f in audit.fairness if f.strata is not None]


def _strata(audit: Audit, metric: Fairness, found: StratumTable) -> ReportTable:
    """Return one row per stratum and group; a stratum is named and measured in its first row."""
    rows = [
        (stratum if i == 0 else None, group)
        for stratum in found.listed[:MAX_STRATA]
        for i, group in enumerate(stratum.groups)
    ]

    def rates(values: Sequence[float | None]) -> Cell:
        return Cell(" / ".join(percent(value) for value in values), kind="number")

    def value(stratum: Stratum | None, when: str) -> Cell:
        if stratum is None:
            return text("")
        number = getattr(stratum, when)
        return figure(number, partial(texts.bounded_number, bound=metric.bound), "undefined here")

    n_more = len(found.listed) - MAX_STRATA
    return table_of(
        "strata",
        f"{texts.sentence_case(metric.name)} in each stratum, the least fair first, with the "
        f"groups' {' / '.join(found.measures)}. Measured on {n_of(found.n_people, 'person')}, "
        "without intervals.",
        rows,
        (
            (found.column, lambda row: text("" if row[0] is None else row[0].name)),
            ("Metric before", lambda row: value(row[0], "before")),
            ("Metric after", lambda row: value(row[0], "after")),
            ("Group", lambda row: text(row[1].name)),
            ("People", lambda row: figure(row[1].n)),
            ("Before", lambda row: rates(row[1].before)),
            ("After", lambda row: rates(row[1].after)),
        ),
        sortable=False,
        more=f"{n_of(n_more, 'stratum')} more are in the JSON of the audit." if n_more > 0 else "",
    )
