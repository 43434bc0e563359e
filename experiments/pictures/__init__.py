"""Draw the pictures of the experiments from the tables in a folder.

`draw_all` writes every picture of `FIGURES` as SVG and PNG. The same tables give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure
from PIL import Image

from experiments.frames import read_frames
from experiments.paper import COMPAS, DP, EO, LAW_SCHOOL
from experiments.pictures.all_methods import draw_all_methods
from experiments.pictures.changes import (
    draw_deciding,
    draw_figure_1,
    draw_gains_only,
    draw_limits,
    draw_robustness,
    draw_table_1,
)
from experiments.pictures.explanations import (
    draw_agreement,
    draw_concepts,
    draw_illustration,
    draw_locality,
    draw_sensitivity,
)
from experiments.pictures.style import DPI, RC, Frames
from experiments.pictures.tradeoffs import (
    draw_architectures,
    draw_pareto,
    draw_pareto_adult,
    draw_post_hoc,
)
from experiments.protocol import ADULT

__all__ = ["FIGURES", "draw_all"]

N_COLOURS = 256
_TABLES = {"law_school": LAW_SCHOOL, "compas": COMPAS, "adult": ADULT}

FIGURES: dict[str, Callable[[Frames], Figure]] = {
    "table_1": draw_table_1,
    "deciding": draw_deciding,
    **{
        f"figure_1_{name}_{short}": partial(draw_figure_1, table=table, notion=notion)
        for name, table in _TABLES.items()
        for short, notion in (("dp", DP), ("eo", EO))
    },
    **{
        f"robustness_{name}_def{definition}": partial(
            draw_robustness, table=_TABLES[name], definition=definition
        )
        for name in ("law_school", "compas")
        for definition in (2, 3)
    },
    "pareto": draw_pareto,
    "pareto_adult": draw_pareto_adult,
    "illustration": draw_illustration,
    "concepts": draw_concepts,
    "locality": draw_locality,
    "sensitivity": draw_sensitivity,
    "architectures": draw_architectures,
    "agreement": draw_agreement,
    "post_hoc": draw_post_hoc,
    "limits": draw_limits,
    "gains_only": draw_gains_only,
    "all_methods": draw_all_methods,
}


def draw_all(folder: Path) -> list[str]:
    """Draw every picture from the tables in a folder into that folder; return their names."""
    frames = read_frames(folder)
    for name, draw in FIGURES.items():
        _save(draw(frames), folder / name)
    return list(FIGURES)


def _save(figure: Figure, stem: Path) -> None:
    """Write a figure without the time, so that the same figure gives the same file."""
    with matplotlib.rc_context(RC):
        figure.get_layout_engine().execute(figure)
        figure.set_layout_engine("none")  # computed once for both files
        figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None})
        figure.savefig(stem.with_suffix(".png"), dpi=DPI)
    _make_small(stem.with_suffix(".png"))


def _make_small(path: Path) -> None:
    """Reduce the palette to `N_COLOURS`: a third of the size, without a visible difference."""
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(N_COLOURS, method=Image.Quantize.FASTOCTREE)
    small.save(path, optimize=True)
