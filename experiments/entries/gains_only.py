"""Gains only."""

from __future__ import annotations

from experiments.entries.entry import BEYOND, NOT_THERE, Entry, Frames, tables_in
from experiments.markdown import NOTHING, number, picture, spread, table


def gains_only(frames: Frames, base: str) -> Entry:
    """Say what it costs that nobody loses the favourable outcome."""
    found = frames["gains_only"]
    lines = [
        [
            f"{line['table']}, P-rule ≥ {line['level']:g}, {line['direction'].replace('_', ' ')}",
            spread(line["changes"], line["sd"]),
            number(line["limit"]),
            number(line["accuracy"]),
            *(number(line[n], 0) for n in ("gains", "losses")),
            f"{line['n_reached']:.0f} of {line['n_splits']:.0f}",
        ]
        for line in found.to_dict("records")
    ]
    prices = frames["gains_only_price"].groupby("table", sort=False)[["price", "price_of_limit"]]
    price = prices.median().reindex(tables_in(found))
    told = ", ".join(f"{name} {number(value, 2)}" for name, value in price["price"].items())
    limit = ", ".join(f"{n} {number(value, 2)}" for n, value in price["price_of_limit"].items())
    header = ["ControlledDebiaser", "changes", "limit", "accuracy", "gains", "losses", "reached"]
    return Entry(
        "Gains only",
        f"{NOT_THERE}: nobody loses the favourable outcome",
        NOTHING,
        f"changes against any direction, times: {told}",
        BEYOND,
        f"Gains only costs, in times the changes of any direction, {told} (medians over splits in "
        f"which both reach a level, then over levels); the limits' own ratio is {limit}.",
        (
            picture("gains_only", "Changes needed, any direction and gains only", base),
            table(header, lines),
        ),
    )
