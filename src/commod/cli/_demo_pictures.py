"""Draw the pictures of the demo: changes by group, the concepts, and the distribution of r."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from commod._displays import ChangeDisplay, ConceptDisplay
from commod._io.files import write_whole
from commod._text.drawing import AFTER, BEFORE, LOSS

if TYPE_CHECKING:
    from commod import Audit, Explanation


def save_pictures(audit: Audit, explanation: Explanation, folder: Path) -> None:
    """Save changes.png, concepts.png and ratio.png in a folder."""
    by_group = {g.name: (g.n, g.n_gains or 0, g.n_losses or 0) for g in audit.groups}
    assert audit.card is not None
    changes, concepts, ratio = _axes(7.5, 2.4), _axes(9.5, 5.5), _axes(6.5, 3.4)
    ChangeDisplay(by_group=by_group).plot(changes)
    ConceptDisplay(card=audit.card).plot(concepts)
    _draw_ratio(explanation, ratio)
    for name, axes in (("changes", changes), ("concepts", concepts), ("ratio", ratio)):
        content = io.BytesIO()
        axes.figure.savefig(content, format="png", dpi=150)
        write_whole(folder / f"{name}.png", content.getvalue())


def _axes(width: float, height: float) -> Any:
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)  # needs no window and no global state
    return figure.subplots()


def _draw_ratio(explanation: Explanation, axes: Any) -> None:
    """Draw the distribution of r. Decisions change left of 0."""
    r, gain, loss = explanation.ratio, explanation.gain, explanation.loss
    assert r is not None
    n_gains, n_losses = int(gain.sum()), int(loss.sum())
    width = max(np.ptp(r) / 60, 1e-6)
    # 0 is an edge of a bin, so that each bar holds either changed or kept decisions
    bins = np.arange(np.floor(r.min() / width), np.ceil(r.max() / width) + 1) * width
    axes.hist(
        [r[~(gain | loss)], r[gain], r[loss]],
        bins=bins,
        stacked=True,
        color=[BEFORE, AFTER, LOSS],
        label=["kept", f"gains ({n_gains})", f"losses ({n_losses})"],
    )
    axes.axvline(0, color="black", linewidth=1)
    axes.axvline(1, color="black", linewidth=0.6, linestyle=":")
    axes.set_xlabel("r(x): 1 leaves the score alone, below 0 the decision changes")
    axes.set_ylabel("people")
    n_changed, n = n_gains + n_losses, explanation.n
    axes.set_title(f"{n_changed} of {n:,} decisions change ({n_changed / n:.1%})")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
