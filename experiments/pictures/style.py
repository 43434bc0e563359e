"""Shared helpers of the pictures: looks of methods, axes, legends, and selection of rows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from experiments.methods import AS_IN_PAPER, FEWER, LIMIT, WEIGHED, label_of
from experiments.protocol import ADULT

Frames = Mapping[str, pd.DataFrame]

DPI = 150
WIDTH = 10.0  # inches; a page shows them 1000 pixels wide, so that 9 points are 12 pixels
RC = {
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.labelsize": 10,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "legend.fontsize": 10,
    "legend.frameon": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "svg.fonttype": "none",
    "svg.hashsalt": "commod",  # random ids would change the file every time
}
NOTHING = "no update in this range"
GREY = "#555555"
FEWER_CHANGES = "← fewer is better"  # the label is turned: this arrow points down
CHANGES = f"decisions changed\n{FEWER_CHANGES}"


@dataclass(frozen=True)
class Look:
    """Colour, marker and line of a method in every picture; distinct in grey, too."""

    color: str
    marker: str
    line: Any = "-"
    width: float = 1.3
    size: float = 5.0
    rim: float = 1.4  # of hollow markers


LOOKS = {
    "ControlledDebiaser": Look("#D55E00", "s", "-", 2.6, 6.0),
    AS_IN_PAPER: Look("#56B4E9", "*", (0, (2.5, 1.0)), 1.8, 10.0),  # drawn over the next one
    "COMMOD": Look("#0072B2", "o", "-", 2.6, 6.5),
    "FRAPPE": Look("#009E73", "^", (0, (6, 1.5)), 1.4, 6.0),
    "AdversarialDebiasing": Look("#B5478A", "D", (0, (1.2, 1.2)), 1.6, 5.0),
    "LPP": Look("#E69F00", "v", (0, (6, 1.5, 1.2, 1.5)), 1.4, 6.0),
    "LPP (aware)": Look("#7d7d7d", "X", (0, (3, 2.5)), 1.2, 6.0, 0.9),
    "RejectOption": Look("#a3a3a3", "P", (0, (3, 2.5)), 1.2, 6.0, 0.9),
    LIMIT: Look("#000000", "_", "-", 1.4, 9.0),
    FEWER: Look("#D55E00", "h", "-", 1.4, 5.5),
    WEIGHED: Look("#8C2D04", "p", "-", 1.4, 5.5),
}
SHOWN = tuple(method for method in LOOKS if method not in (LIMIT, FEWER, WEIGHED))


def styled(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Draw with our settings of matplotlib, and restore the user's settings afterwards."""

    @functools.wraps(draw)
    def drawn(*args: Any, **kwargs: Any) -> Figure:
        with matplotlib.rc_context(RC):
            return draw(*args, **kwargs)

    return drawn


# ---------------------------------------------------------------------------------------------
# Frames


def rows(frames: Frames, name: str, **values: Any) -> pd.DataFrame:
    """Return the rows of a table in which columns have these values."""
    frame = frames.get(name, pd.DataFrame())
    if frame.empty:
        return frame
    keep = np.ones(len(frame), dtype=bool)
    for column, value in values.items():
        keep &= (frame[column] == value).to_numpy()
    return frame[keep]


def column(frame: pd.DataFrame, name: str) -> list[Any]:
    """Return the distinct values of a column in order; an empty frame has none."""
    return [] if frame.empty else list(dict.fromkeys(frame[name]))


def of(frame: pd.DataFrame, name: str, value: Any) -> pd.DataFrame:
    """Return the rows of a frame in which a column has a value."""
    return frame if frame.empty else frame[frame[name] == value]


def often_reached(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that at least half of the splits reach."""
    if frame.empty:
        return frame
    return frame[(frame["n_reached"] > 0) & (2 * frame["n_reached"] >= frame["n_splits"])]


# ---------------------------------------------------------------------------------------------
# Panels


def panels(
    n_rows: int, n_columns: int, height: float, width: float = WIDTH, **shared: Any
) -> tuple[Figure, np.ndarray]:
    """Return a figure and its axes, always as a table of axes."""
    figure = Figure(figsize=(width, height), layout="constrained", dpi=DPI)
    figure.get_layout_engine().set(h_pad=0.07)  # the legend not too near the labels
    return figure, figure.subplots(n_rows, n_columns, squeeze=False, **shared)


def write_empty_note(ax: Axes, text: str = NOTHING) -> None:
    """Write into a panel why it is empty."""
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", color=GREY)
    ax.grid(False)


def percent(axis: Any) -> None:
    """Show shares as percents at round steps; steps of 2.5 would be rounded to wrong numbers."""
    axis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda share, _: f"{round(100 * share, 1) + 0.0:g}%"))


def draw_line(
    ax: Axes,
    x: Any,
    y: Any,
    look: Look,
    label: str,
    sd: Any = None,
    full: Any = None,
) -> None:
    """Draw a line with markers: hollow where `full` is false, with bars if `sd` is given."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    full = np.ones(len(x), dtype=bool) if full is None else np.asarray(full, dtype=bool)
    order = 3 if look.width > 1.7 else 2  # in the order of drawing, the last on top
    joined = np.where(full, y, np.nan)  # means over different splits are not joined
    drawn = {"color": look.color, "linestyle": look.line, "linewidth": look.width}
    ax.plot(x, joined, **drawn, zorder=order, label=label)
    if sd is not None:
        spread = np.nan_to_num(np.asarray(sd, dtype=float))
        bars = {"ecolor": look.color, "elinewidth": 1.0, "alpha": 0.6, "zorder": order}
        ax.errorbar(x, y, yerr=spread, fmt="none", **bars)
    for kind, face in ((full, look.color), (~full, "white")):
        ax.plot(x[kind], y[kind], **marks(look, face), zorder=order + 0.5)


def marks(look: Look, face: str | None = None) -> dict[str, Any]:
    """Return the style of markers; a white rim separates close markers."""
    filled = face in (None, look.color)
    return {
        "linestyle": "none",
        "marker": look.marker,
        "markersize": look.size,
        "markerfacecolor": look.color if filled else face,
        "markeredgecolor": "white" if filled and look.marker not in "_|" else look.color,
        "markeredgewidth": 0.5 if filled and look.marker not in "_|" else look.rim,
    }


# ---------------------------------------------------------------------------------------------
# Legends


def key(look: Look, label: str, hollow: bool = False, line: bool = True) -> Line2D:
    """Return the entry of a legend."""
    drawn = marks(look, "white" if hollow else None)
    if line:
        drawn |= {"linestyle": look.line, "linewidth": look.width}
    return Line2D([], [], color=look.color, label=label, **drawn)


def hollow_key(label: str = "hollow: not in every split\n(fewer than half: not drawn)") -> Line2D:
    """Return the legend entry that explains hollow markers."""
    return key(Look(GREY, "o"), label, hollow=True, line=False)


def run_on(*tables: str) -> tuple[str, ...]:
    """Return the methods that were run on any of the tables: the paper's COMMOD has no Adult."""
    return tuple(name for name in SHOWN if set(tables) != {ADULT} or name != AS_IN_PAPER)


def keys_of(methods: Iterable[str], line: bool = True) -> list[Line2D]:
    """Return the legend entries of methods, in the same order in every picture."""
    here = set(methods)
    return [key(LOOKS[name], label_of(name), line=line) for name in LOOKS if name in here]


def legend_below(figure: Figure, entries: Sequence[Any], columns: int = 4) -> None:
    """Put one legend for all panels below them."""
    only_marks = all(entry.get_linestyle() == "None" for entry in entries)
    figure.legend(
        handles=list(entries),
        loc="outside lower center",
        ncols=min(columns, max(len(entries), 1)),
        handlelength=1.2 if only_marks else 3.2,
        columnspacing=1.8,
    )
