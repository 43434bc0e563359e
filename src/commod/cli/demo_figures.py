"""The three pictures of the demo: rates by group, where r falls below 0, and the points."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from commod import metrics

if TYPE_CHECKING:
    from commod.cli.demo import Demo

__all__ = ["rates", "ratio", "scorecard"]

BEFORE, AFTER, LOSS = "#9aa5b1", "#1f6f8b", "#c44536"


def _figure(width: float, height: float, columns: int = 1) -> tuple[Figure, Any]:
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)  # no window, no global state
    return figure, figure.subplots(1, columns, squeeze=False)[0]


def rates(demo: Demo, path: Path) -> None:
    """Draw how often each group is called high risk, before and after."""
    figure, (axes,) = _figure(6.5, 3.4)
    groups = {"sensitive_features": demo.groups}
    tables = [metrics.group_rates(demo.y, d, **groups) for d in (demo.before, demo.after)]
    names = [str(name) for name in tables[0]]
    x = np.arange(len(names))
    for shift, table, color, label in (
        (-0.2, tables[0], BEFORE, "before"),
        (0.2, tables[1], AFTER, "after"),
    ):
        heights = [cell["selection_rate"] for cell in table.values()]
        bars = axes.bar(x + shift, heights, width=0.38, color=color, label=label)
        axes.bar_label(bars, fmt="{:.0%}")
    values = [metrics.p_rule(demo.y, d, **groups) for d in (demo.before, demo.after)]
    axes.set_title(f"Called high risk, by group: P-rule {values[0]:.2f} → {values[1]:.2f}")
    axes.set_xticks(x, names)
    axes.yaxis.set_major_formatter("{x:.0%}")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def ratio(demo: Demo, path: Path) -> None:
    """Draw the distribution of r over the test rows: decisions change left of 0."""
    figure, (axes,) = _figure(6.5, 3.4)
    r = demo.update.ratio(demo.X)
    changes = demo.update.changes(demo.X)
    width = max(np.ptp(r) / 60, 1e-6)
    # 0 is an edge of a bin: no bar is partly changed and partly not
    bins = np.arange(np.floor(r.min() / width), np.ceil(r.max() / width) + 1) * width
    axes.hist(
        [r[~changes.changed], r[changes.gain], r[changes.loss]],
        bins=bins,
        stacked=True,
        color=[BEFORE, AFTER, LOSS],
        label=["kept", f"gains ({changes.n_gains})", f"losses ({changes.n_losses})"],
    )
    axes.axvline(0, color="black", linewidth=1)
    axes.axvline(1, color="black", linewidth=0.6, linestyle=":")
    axes.set_xlabel("r(x): 1 leaves the score alone, below 0 the decision changes")
    axes.set_ylabel("people")
    axes.set_title(f"{changes.n_changes} of {len(r):,} decisions change ({changes.rate:.1%})")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def scorecard(demo: Demo, path: Path, n_lines: int = 12) -> None:
    """Draw the strongest lines of the scorecard, per standard deviation, towards a change."""
    update = demo.update
    push = -(update.concept_contributions_ @ update.concept_weights_)
    strongest = [i for i in np.argsort(-np.abs(push))[:n_lines] if push[i]][::-1]
    figure, (axes,) = _figure(7.5, 1.2 + 0.3 * max(len(strongest), 1))
    axes.barh(
        [update.term_names_[i] for i in strongest],
        push[strongest],
        color=[LOSS if push[i] > 0 else BEFORE for i in strongest],
    )
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_xlabel("push towards a change (−r) per standard deviation")
    figure.suptitle(f"What decides: the {len(strongest)} strongest lines of the scorecard")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
