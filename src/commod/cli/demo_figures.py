"""The pictures of the demo: who changes by group, the concepts, and where r falls below 0."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from commod._displays import ChangeDisplay, ConceptDisplay
from commod._text.drawing import AFTER, BEFORE, LOSS

if TYPE_CHECKING:
    from commod import Explanation
    from commod.cli.demo import Demo

__all__ = ["draw"]


def draw(demo: Demo, folder: Path) -> None:
    """Save the three pictures in a folder."""
    axes = _axes(7.5, 2.4)
    by_group = {g.name: (g.n, g.n_gains or 0, g.n_losses or 0) for g in demo.found.groups}
    _save(ChangeDisplay(by_group=by_group).plot(axes), folder / "changes.png")
    assert demo.found.card is not None
    _save(ConceptDisplay(card=demo.found.card).plot(_axes(9.5, 5.5)), folder / "concepts.png")
    axes = _axes(6.5, 3.4)
    _ratio(demo.why, axes)
    axes.figure.savefig(folder / "ratio.png", dpi=150)


def _axes(width: float, height: float) -> Any:
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)  # no window, no global state
    return figure.subplots()


def _save(display: Any, path: Path) -> None:
    display.figure_.savefig(path, dpi=150)


def _ratio(why: Explanation, axes: Any) -> None:
    """Draw the distribution of r: decisions change left of 0."""
    r = why.ratio
    assert r is not None
    n_gains, n_losses = int(why.gain.sum()), int(why.loss.sum())
    width = max(np.ptp(r) / 60, 1e-6)
    # 0 is an edge of a bin: no bar is partly changed and partly not
    bins = np.arange(np.floor(r.min() / width), np.ceil(r.max() / width) + 1) * width
    axes.hist(
        [r[~(why.gain | why.loss)], r[why.gain], r[why.loss]],
        bins=bins,
        stacked=True,
        color=[BEFORE, AFTER, LOSS],
        label=["kept", f"gains ({n_gains})", f"losses ({n_losses})"],
    )
    axes.axvline(0, color="black", linewidth=1)
    axes.axvline(1, color="black", linewidth=0.6, linestyle=":")
    axes.set_xlabel("r(x): 1 leaves the score alone, below 0 the decision changes")
    axes.set_ylabel("people")
    changed = n_gains + n_losses
    axes.set_title(f"{changed} of {why.n:,} decisions change ({changed / why.n:.1%})")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
