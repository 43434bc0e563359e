"""Say what was counted in the engine of a frame, and what rests on the sample."""

from __future__ import annotations

from collections.abc import Iterator

from commod.updates._frames.columns import FrameTable
from commod.updates._frames.offset import FrameFit


def frame_texts(table: FrameTable, fitted: FrameFit, n_rows: int) -> Iterator[str]:
    """Yield what was counted on all `n_rows` rows, and what rests on the sample."""
    counted = "groups, rates, the limit, the offset and all figures on all"
    if "held out" in table.keys:
        counted = "both halves: groups, rates, the limit, the offset and all figures, on"
    yield (
        f"{table.engine} counted {counted} {n_rows:,} rows. The direction and the calibration rest "
        f"on the {fitted.n_pulled:,} rows of the sample."
    )
    if table.named.scored:
        yield table.named.scored
    if not fitted.kept.outcome.verified and fitted.cut is not None:
        larger = "a larger sample may need fewer changes"
        if fitted.n_larger is not None:
            larger = f"a sample of {fitted.n_larger:,} rows found no better update"
        yield (
            "The share of changed decisions does not agree with the sample within sampling error; "
            f"{larger}."
        )
    if table.named.key is None:
        yield (
            "Rows were drawn by their number, because no key was named: another engine, or another "
            "order of the rows, draws another sample."
        )
