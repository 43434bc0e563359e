"""Pictures of the experiments: drawn from tables alone, the same bytes every time."""

from functools import cache

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from experiments.frames import read_frames
from experiments.methods import AS_IN_PAPER, FEWER, LIMIT, METHODS
from experiments.paper import CELLS, COMPAS, DP, EO, LAW_SCHOOL
from experiments.pictures.changes import draw_table_1
from experiments.pictures.explanations import draw_locality
from experiments.pictures.style import LOOKS
from experiments.pictures.tradeoffs import draw_pareto, draw_pareto_adult, draw_post_hoc
from experiments.protocol import ADULT

from experiments import pictures

TABLES, SHORT = ("law_school", "compas", "adult"), ("dp", "eo")
NAMES = [
    "table_1",
    "deciding",
    *(f"figure_1_{table}_{notion}" for table in TABLES for notion in SHORT),
    *(f"robustness_{table}_def{i}" for table in TABLES[:2] for i in (2, 3)),
    *("pareto", "pareto_adult", "illustration", "concepts", "locality", "sensitivity"),
    *("architectures", "agreement", "post_hoc", "limits", "gains_only", "all_methods"),
]
WRITTEN = ["gains_only"]  # writing takes longest, and is the same for all
DECIDING = ("table", "notion", "level", "max_loss", "method", "changes", "times_limit")
SEGMENTS = ("table", "notion", "definition", "edges", "fairness_q", "method", "accuracy_change")


def tiny() -> dict[str, pd.DataFrame]:
    """Return what one split of two methods leaves: no spread, no Adult, nothing matched."""
    both = [(table, notion) for table in (LAW_SCHOOL, COMPAS) for notion in (DP, EO)]
    reached = {"sd": np.nan, "n_reached": 1, "n_splits": 1}
    deciding = [
        (table, notion, level, loss, method, 0.1, 1.5)
        for table, notion in both
        for level in ((0.6, 0.8) if notion == DP else (0.75, 0.25))
        for loss in (0.05, 1.0)
        for method in ("COMMOD", LIMIT)
    ]
    segments = [
        (LAW_SCHOOL, DP, definition, "shifted", 1, method, change)
        for definition in (1, 2, 3)
        for method in ("COMMOD", "RejectOption")
        for change in ((-0.1, 0.0) if method == "COMMOD" else (-0.3, -0.1, 0.0))
    ]
    segments = pd.DataFrame(segments, columns=SEGMENTS).assign(changes=0.1, n_splits=1)
    return {
        "table_1": table_1(),
        "deciding": pd.DataFrame(deciding, columns=DECIDING).assign(**reached),
        "figure_1": segments[segments["definition"] == 1],
        "robustness": segments[segments["definition"] > 1],
        "pareto": pd.DataFrame(
            {"table": LAW_SCHOOL, "notion": DP, "method": "COMMOD", "level": [0.5, 0.9]}
        ).assign(accuracy=[0.8, np.nan], sd=np.nan, n_reached=[2, 0], n_splits=2),
        "gains_only": pd.DataFrame(
            {"table": COMPAS, "direction": ["any", "gains_only"], "level": 0.8, "limit": 0.02}
        ).assign(changes=[0.1, np.nan], sd=np.nan, n_reached=[1, 0], n_splits=1),
        "illustration_points": pd.DataFrame(
            {"concept": 0, "term": ["age", "charge = $5"], "unit": ["per unit", None]}
        ).assign(points=[0.1, -2.0], spread=[0.2, 0.3]),
        "illustration_concepts": pd.DataFrame(
            {"concept": [0], "change_if_active": [0.2], "change_if_inactive": [0.0]}
        ),
        "sensitivity": pd.DataFrame(
            {"table": COMPAS, "weight": "adaptive", "outcome": ["accuracy"], "r2": [0.5]}
        ).assign(r2_means=0.6, r2_uncentred=np.nan),
        "architectures": pd.DataFrame({"architecture": ["MLP 64"], "level": 0.5}).assign(
            accuracy=0.7, **reached
        ),
        "concepts": pd.DataFrame({"kind": ["COMMOD"], "mean_changes": [0.1]}).assign(
            sparsity=0.1, sparsity_sd=np.nan, redundancy=0.2, redundancy_sd=np.nan
        ),
        "post_hoc": pd.DataFrame(columns=["model", "depth", "p_rule", "p_rule_sd"]),
        **dict.fromkeys(("locality", "agreement", "agreement_grid", "quartiles"), pd.DataFrame()),
    }


def table_1() -> pd.DataFrame:
    cells = pd.DataFrame(CELLS, columns=["fairness_q", "accuracy_q"])
    fixed = {"table": COMPAS, "notion": DP, "definition": 1, "edges": "shifted", "n_splits": 1}
    return cells.assign(method="COMMOD", changes=0.01 * (1 + cells.index), **fixed)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    for name, frame in tiny().items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    before = dict(matplotlib.rcParams)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "DPI", 20)  # sharp pictures take longer
        patch.setattr(pictures, "FIGURES", {name: pictures.FIGURES[name] for name in WRITTEN})
        names = pictures.draw_all(folder)
    assert dict(matplotlib.rcParams) == before
    return folder, names


@cache
def figure_of(name):
    """Return a picture of the tables of one split, drawn once for all tests."""
    return pictures.FIGURES[name](tiny())


def line_of(ax, label):
    return next(line for line in ax.get_lines() if line.get_label() == label)


def texts_of(ax):
    return [text.get_text() for text in ax.texts]


def test_every_picture_is_written_in_both_formats(drawn):
    folder, names = drawn
    assert names == WRITTEN and sorted(pictures.FIGURES) == sorted(NAMES)
    for name in WRITTEN:
        assert (folder / f"{name}.svg").read_text().lstrip().startswith("<?xml")
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_tables_give_the_same_bytes(drawn, tmp_path, monkeypatch):
    (folder, _), (name,) = drawn, WRITTEN
    monkeypatch.setattr(pictures, "DPI", 20)
    figure = pictures.FIGURES[name](read_frames(folder))
    pictures._save(figure, tmp_path / name)
    for kind in (".svg", ".png"):
        written = (tmp_path / name).with_suffix(kind).read_bytes()
        assert written == (folder / name).with_suffix(kind).read_bytes()


def test_tables_of_one_split_are_drawn_and_those_that_are_not_there_leave_a_word():
    for name in NAMES:
        assert figure_of(name).axes, name
        if name.startswith(("figure_1", "robustness")) and "law_school_d" not in name:
            continue  # drawn by the function of an earlier picture
        said = [text for ax in pictures.FIGURES[name]({}).axes for text in texts_of(ax)]
        if name != "table_1":  # it always has the paper's values
            assert any(text.startswith("no ") for text in said), name
        plt.close("all")


def test_methods_are_told_apart_without_colour_too():
    assert set(LOOKS) == {*METHODS, LIMIT}
    looks = [(look.color, look.marker) for look in LOOKS.values()]
    assert len(set(looks)) == len(looks)
    assert len({look.marker for look in LOOKS.values()}) == len(LOOKS)


def test_post_hoc_shows_the_tree_and_both_levels():
    frame = pd.DataFrame(
        [("COMMOD", 0, 0.83, 0.02), ("FRAPPE", 0, 0.8, 0.03)]
        + [("FRAPPE + tree", depth, 0.4 + depth / 20, 0.05) for depth in (1, 2, 3)],
        columns=["model", "depth", "p_rule", "p_rule_sd"],
    )
    (ax,) = draw_post_hoc({"post_hoc": frame}).axes
    tree = line_of(ax, "FRAPPE + tree")
    np.testing.assert_allclose(tree.get_xdata(), [1, 2, 3])
    np.testing.assert_allclose(tree.get_ydata(), [0.45, 0.5, 0.55])
    assert line_of(ax, "COMMOD").get_ydata()[0] == 0.83
    assert line_of(ax, "FRAPPE").get_ydata()[0] == 0.8


def test_locality_shows_f1_by_depth_and_names_the_sweep():
    frame = pd.DataFrame({"table": LAW_SCHOOL, "method": FEWER, "depth": [1, 4]})
    frame = frame.assign(f1=[0.5, 0.9], f1_sd=[0.1, np.nan])
    law_school, compas = draw_locality({"locality": frame}).axes
    line = line_of(law_school, FEWER)
    np.testing.assert_allclose(line.get_xdata(), [1, 4], atol=0.25)
    np.testing.assert_allclose(line.get_ydata(), [0.5, 0.9])
    assert texts_of(compas) == ["no update in this range"]


def test_table_1_has_the_value_and_the_papers_in_every_cell():
    compas = draw_table_1({"table_1": table_1()}).axes[1]
    ours = [line for line in compas.get_lines() if line.get_label() == "COMMOD, adaptive"]
    np.testing.assert_allclose([line.get_ydata()[0] for line in ours], np.arange(1, 8) / 100)
    paper = [line for line in compas.get_lines() if line.get_label() == "paper"]
    np.testing.assert_allclose([line.get_xdata()[0] for line in paper], range(7), atol=0.45)
    assert [line.get_ydata()[0] for line in paper] == [0.05, 0.01, 0.09, 0.09, 0.05, 0.2, 0.06]


def test_both_variants_of_commod_are_drawn_and_named():
    frame = pd.concat([table_1(), table_1().assign(method=AS_IN_PAPER, changes=0.3)])
    figure = draw_table_1({"table_1": frame})
    labels = [line.get_label() for line in figure.axes[1].get_lines()]
    assert labels.count("COMMOD, adaptive") == labels.count("COMMOD, as in the paper") == 7
    for name in ("table_1", "figure_1_law_school_dp", "robustness_compas_def2", "pareto", "limits"):
        (legend,) = figure_of(name).legends
        named = {text.get_text() for text in legend.get_texts()}
        assert {"COMMOD, adaptive", "COMMOD, as in the paper"} <= named, name
        assert "COMMOD" not in named, f"{name} does not say which variant it shows"
    for name in ("figure_1_adult_dp", "pareto_adult"):  # only the adaptive variant is run on Adult
        (legend,) = figure_of(name).legends
        named = {text.get_text() for text in legend.get_texts()}
        assert "COMMOD, adaptive" in named and "COMMOD, as in the paper" not in named


def test_levels_reached_in_few_splits_are_left_out_and_in_some_hollow():
    frame = pd.DataFrame({"level": [0.5, 0.7, 0.9], "n_reached": [4, 2, 1]})
    frame = frame.assign(table=LAW_SCHOOL, notion=DP, method="COMMOD", accuracy=0.7, n_splits=4)
    ax = draw_pareto({"pareto": frame}).axes[0]
    assert line_of(ax, "COMMOD, adaptive").get_xdata().tolist() == [0.5, 0.7]
    full, hollow = [line for line in ax.get_lines() if line.get_marker() == "o"]
    assert (full.get_xdata().tolist(), hollow.get_xdata().tolist()) == ([0.5], [0.7])
    assert hollow.get_markerfacecolor() == "white"


def test_fairer_is_to_the_right_in_both_notions():
    frame = pd.DataFrame({"notion": [DP, DP, EO, EO], "level": [0.5, 0.6, 0.5, 0.6]})
    frame = frame.assign(table=ADULT, method="LPP", accuracy=0.7, n_reached=1, n_splits=1)
    p_rule, mistreatment = draw_pareto_adult({"pareto": frame}).axes
    assert not p_rule.xaxis_inverted()
    assert mistreatment.xaxis_inverted()


def test_what_is_off_the_picture_is_named():
    axes = figure_of("figure_1_law_school_dp").axes
    assert "losses of more than 10 points are off" in axes[2].get_xlabel()
    drawn = np.sort(line_of(axes[0], "ROC, sees the group").get_xdata())
    np.testing.assert_allclose(drawn[[0, -1]], [-0.1, 0], atol=0.01)


def test_a_line_is_broken_where_a_method_has_nothing():
    axes = figure_of("figure_1_law_school_dp").axes
    assert np.isnan(line_of(axes[0], "COMMOD, adaptive").get_ydata()).sum() == 1


def test_the_limit_is_a_bar_at_its_level():
    axes = figure_of("deciding").axes
    bars = [segment for lines in axes[0].collections for segment in lines.get_segments()]
    assert [bar[:, 1].tolist() for bar in bars] == [[0.1, 0.1], [0.1, 0.1]]
    assert [bar[:, 0].mean() for bar in bars] == [0, 1]
