"""Entry: updates with gains only."""

from __future__ import annotations

from experiments.entries.entry import BEYOND, NOT_IN_PAPER, Entry, Frames, tables_in
from experiments.markdown import NOTHING, number, picture, spread, table


def gains_only(frames: Frames, base: str) -> Entry:
    """Say how many more changes it takes if nobody may lose the favourable outcome."""
    results = frames["gains_only"]
    lines = [
        [
            f"{line['table']}, P-rule ≥ {line['level']:g}, {line['direction'].replace('_', ' ')}",
            spread(line["changes"], line["sd"]),
            number(line["limit"]),
            number(line["accuracy"]),
            *(number(line[n], 0) for n in ("gains", "losses")),
            f"{line['n_reached']:.0f} of {line['n_splits']:.0f}",
        ]
        for line in results.to_dict("records")
    ]
    prices = frames["gains_only_price"].groupby("table", sort=False)[["price", "price_of_limit"]]
    price = prices.median().reindex(tables_in(results))
    prices_text = ", ".join(f"{name} {number(value, 2)}" for name, value in price["price"].items())
    limit = ", ".join(f"{n} {number(value, 2)}" for n, value in price["price_of_limit"].items())
    header = ["ControlledDebiaser", "changes", "limit", "accuracy", "gains", "losses", "reached"]
    return Entry(
        "Gains only",
        f"{NOT_IN_PAPER}: nobody loses the favourable outcome",
        NOTHING,
        f"multiple of the changes in any direction: {prices_text}",
        BEYOND,
        "With gains only, an update needs this multiple of the changes that it needs in any "
        f"direction: {prices_text}. The multiples are medians over the splits in which both reach "
        f"a level, then over levels. The ratio of the two limits is: {limit}.",
        (
            picture("gains_only", "Changes needed, any direction and gains only", base),
            table(header, lines),
        ),
    )
