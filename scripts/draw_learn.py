"""Draw the pictures of docs/start.md, docs/tutorials and docs/concepts. Run from the root.

    .venv/bin/python scripts/draw_learn.py            # all of them
    .venv/bin/python scripts/draw_learn.py promises   # one

A picture shows the objects of its page: the code of the page runs first, and the picture is drawn
from the variables that the page leaves. So a page and its picture cannot disagree.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser, bounds, metrics
from commod.datasets import make_biased

DOCS = Path(__file__).parents[1] / "docs"
IMAGES = DOCS / "images" / "learn"
BLUE, RED, YELLOW, GREY = "#4477aa", "#cc6677", "#ccbb44", "#bbbbbb"
N_SAMPLES = 20  # of the picture of promises


def page(name: str) -> dict[str, Any]:
    """Return the variables that the code of a page leaves behind."""
    text = (DOCS / name).read_text("utf-8")
    variables: dict[str, Any] = {"__name__": name}
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for example in doctest.DocTestParser().get_examples(text):
            if doctest.SKIP not in example.options and not example.exc_msg:
                exec(compile(example.source, name, "single"), variables)
    return variables


def main(names: Sequence[str]) -> None:
    """Draw the named pictures, or all."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    for name in names or PICTURES:
        figure = PICTURES[name]()
        path = IMAGES / f"{name}.png"
        figure.savefig(path, dpi=110)
        plt.close(figure)
        print(path.relative_to(DOCS.parent), path.stat().st_size // 1024, "kB")


def clean(axis: Any, title: str = "") -> None:
    """Remove the frame at the top and at the right; put the title to the left."""
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_title(title, fontsize=10, loc="left")


# -- concepts --------------------------------------------------------------------------------------


def draw_paper() -> Any:
    """Draw the edited score for some ratios, and an update of two columns in their plane."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.0), layout="constrained")
    score = np.linspace(0.001, 0.999, 400)
    ratios = {1.0: GREY, 0.4: YELLOW, -0.3: RED, -1.0: BLUE}
    for ratio, color in ratios.items():
        odds = np.log(score / (1 - score))
        edited = 1 / (1 + np.exp(-ratio * odds))
        text = "r = 1: as it was" if ratio == 1 else f"r = {ratio:g}".replace("-", "−")
        left.plot(score, edited, color=color, linewidth=2.2, label=text)
    left.axhline(0.5, color="black", linewidth=0.6)
    left.axvline(0.5, color="black", linewidth=0.6)
    left.set_xlabel("base score f(x)")
    left.set_ylabel("edited score g(x)")
    left.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, fontsize=8)
    clean(left)
    left.set_title("r < 0 moves a score to the other side of 0.5", fontsize=10, loc="left", pad=22)
    _draw_plane(right)
    return figure


def _draw_plane(axis: Any) -> None:
    columns = ["x0", "x2"]
    old, rows = (make_biased(1500, bias=1.6, random_state=seed) for seed in (1, 2))
    X, group = rows.data[columns], rows.sensitive_features
    model = LogisticRegression().fit(old.data[columns], old.target)
    update = ControlledDebiaser(model, target=0.8, direction="gains_only", borderline=0)
    update = update.fit(X, rows.target, sensitive_features=group)
    gain = update.changes(X).gain
    for name, marker, color in (("g0", "o", BLUE), ("g1", "^", RED)):
        inside = (group == name).to_numpy()
        for chosen, alpha, size in ((inside & ~gain, 0.25, 9), (inside & gain, 1.0, 20)):
            axis.scatter(
                *X[chosen].to_numpy().T, s=size, color=color, alpha=alpha, marker=marker, lw=0
            )
        axis.scatter([], [], color=color, marker=marker, label=f"group {name}")
    grid = np.meshgrid(np.linspace(-4, 4, 200), np.linspace(-4, 4, 200))
    points = X.iloc[:0].reindex(range(grid[0].size))
    points["x0"], points["x2"] = grid[0].ravel(), grid[1].ravel()
    base = model.predict_proba(points)[:, 1].reshape(grid[0].shape)
    rule = update.scorecard_.rule  # r of people whom the base model rejects
    ratio = rule.costs(abs(base - 0.5)) - update.raw_ratio(points).reshape(base.shape) / rule.cut
    ratio = np.where(base < 0.5, ratio, np.nan)
    axis.contour(*grid, base, levels=[0.5], colors="black", linewidths=1.6)
    axis.contour(*grid, ratio, levels=[0], colors="black", linewidths=1.6, linestyles="dashed")
    changed = ratio < 0
    axis.contourf(*grid, changed, levels=[0.5, 1.5], colors=[YELLOW], alpha=0.25)
    axis.plot([], [], color="black", label="score = 0.5")
    axis.plot([], [], color="black", linestyle="dashed", label="r = 0")
    axis.set(xlim=(-4, 4), ylim=(-4, 4), xlabel="column x0", ylabel="column x2")
    axis.legend(frameon=True, framealpha=0.9, edgecolor="white", loc="upper left", fontsize=8)
    clean(axis, f"{int(gain.sum())} of {len(X):,} people gain: the yellow region")


def draw_fewest() -> Any:
    """Draw base scores of people who gain and of those who stay rejected, for two updates."""
    it = page("concepts/fewest-changes.md")
    score, X = it["score"], it["new"].data
    rejected = it["before"] == 0
    figure, axes = plt.subplots(2, 1, figsize=(8.0, 4.6), sharex=True, layout="constrained")
    titles = {0: "fewest changes (borderline=0)", 1: "up to twice as many (borderline=1)"}
    for axis, (borderline, update) in zip(axes, it["updates"].items(), strict=True):
        gain = update.changes(X).gain
        parts = [score[gain], score[rejected & ~gain]]
        axis.hist(
            parts,
            bins=np.linspace(0, 0.5, 26),
            stacked=True,
            color=[BLUE, "#dddddd"],
            label=["gain", "stay rejected"],
        )
        axis.set_ylabel("people")
        clean(axis, f"{titles[borderline]}: {int(gain.sum())} gain")
    axes[0].legend(frameon=False)
    axes[1].set_xlabel("base score of people whom the base model rejects; the threshold is 0.5")
    return figure


def draw_levelling() -> Any:
    """Draw gains and losses of three requests, and the exact limit of each direction."""
    it = page("concepts/levelling-down.md")
    X, race, test = it["X"], it["race"], it["test"]
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10.4, 3.8), width_ratios=(3, 2), layout="constrained"
    )
    places = np.arange(len(it["updates"]))
    ends = np.zeros((2, len(places)))
    for group, color in zip(sorted(race.unique()), (BLUE, RED), strict=True):
        inside = (race[test] == group).to_numpy()
        for row, (kind, sign) in enumerate((("gain", 1), ("loss", -1))):
            counts = [
                sign * int((getattr(one.changes(X.loc[test]), kind) & inside).sum())
                for one in it["updates"].values()
            ]
            label = group if sign == 1 else None
            left.barh(places, counts, 0.55, left=ends[row], color=color, label=label)
            ends[row] += counts
    for place in places:
        gains, losses = int(ends[0, place]), -int(ends[1, place])
        left.text(
            ends[0, place] + 8, place, f"{gains} gain, {losses} lose", va="center", fontsize=9
        )
    names = [name.replace(", ", ",\n").replace(" of ", "\nof ") for name in it["updates"]]
    left.set_yticks(places, names)
    left.invert_yaxis()
    left.axvline(0, color="black", linewidth=0.8)
    left.set_xlim(ends[1].min() - 15, ends[0].max() + 170)
    left.set_xlabel(f"people of {len(test):,}: lose ← → gain “low risk”")
    left.legend(frameon=False, loc="lower right")
    clean(left, "who changes")
    _draw_direction_limits(right, it)
    return figure


def _draw_direction_limits(axis: Any, it: dict[str, Any]) -> None:
    decisions = it["model"].predict(it["X"].loc[it["test"]])
    request = {"sensitive_features": it["race"][it["test"]], "favorable_label": 0, "pos_label": 1}
    targets = np.linspace(0.6, 0.95, 36)
    lines = {"losses_only": ("losses only", RED), "gains_only": ("gains only", BLUE)}
    for direction, (name, color) in lines.items():
        rates = [
            bounds.minimal_changes(decisions, target=t, direction=direction, **request).rate
            for t in targets
        ]
        axis.plot(targets, 100 * np.array(rates), color=color, linewidth=2.2, label=name)
    axis.set_xlabel("P-rule of “high risk”")
    axis.set_ylabel("fewest changes possible, in %")
    axis.legend(frameon=False)
    clean(axis, "the exact limit of each direction")


def draw_promises() -> Any:
    """Draw the P-rule of new people for 20 samples and three kinds of statements."""
    it = page("concepts/promises.md")
    many, model, target = it["many"], it["model"], 0.7
    values: dict[str, list[tuple[float, bool]]] = {name: [] for name in it["statements"]}
    for seed in range(100, 100 + N_SAMPLES):
        rows = make_biased(1500, bias=1.2, n_categories=12, random_state=seed)
        for name, settings in it["statements"].items():
            update = ControlledDebiaser(model, target=target, direction="gains_only", **settings)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                update.fit(rows.data, rows.target, sensitive_features=rows.sensitive_features)
            fair = metrics.p_rule(
                None, update.predict(many.data), sensitive_features=many.sensitive_features
            )
            is_given = name != "promised" or bool(update.promised_)
            values[name].append((fair, is_given))
    figure, axis = plt.subplots(figsize=(8.0, 3.4), layout="constrained")
    jitter = np.linspace(-0.28, 0.28, N_SAMPLES)
    for place, (name, pairs) in enumerate(values.items()):
        fair, is_given = (np.array(part) for part in zip(*pairs, strict=True))
        order = np.argsort(fair)
        colors = np.where(fair[order] >= target, BLUE, RED)
        filled = np.where(is_given[order], colors, "white")
        axis.scatter(fair[order], place + jitter, color=filled, edgecolor=colors, s=26)
        reached = int((fair >= target).sum())
        wrong = int((is_given & (fair < target)).sum())
        print(
            f"| {name} | {np.mean(fair):.3f} | {reached} of {N_SAMPLES} | "
            + (f"{int(is_given.sum())} promises, {wrong} wrong |" if name == "promised" else "|")
        )
    axis.axvline(target, color="black", linewidth=1)
    axis.set_yticks(range(len(values)), list(values))
    axis.invert_yaxis()
    axis.set_xlabel("P-rule of 20,000 new people; each dot is a fit on 1,500 other people")
    clean(axis, f"target {target}: blue reaches it, red does not; an empty dot was not promised")
    return figure


def draw_limits() -> Any:
    """Draw the exact limits and the changes of updates with and without a telling column."""
    it = page("limits.md")
    rows, model = it["rows"], it["model"]
    decisions, group = model.predict(rows.data), rows.sensitive_features
    figure, axis = plt.subplots(figsize=(8.0, 4.0), layout="constrained")
    targets = np.linspace(0.5, 0.95, 10)
    for locked, color, name in (
        (["x2"], RED, "updates without column x2, which predicts the group"),
        ([], BLUE, "updates with all columns"),
    ):
        found = []
        for target in targets:
            update = ControlledDebiaser(
                model,
                target=float(target),
                direction="gains_only",
                target_on="fit_rows",
                locked_features=locked,
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                update.fit(rows.data, rows.target, sensitive_features=group)
            found.append((update.fairness_, 100 * update.change_rate_))
        axis.plot(*np.array(found).T, "o-", color=color, label=name, markersize=5)
    fine = np.linspace(0.42, 0.99, 58)
    for direction, style in (("gains_only", "-"), ("any", ":")):
        rates = [
            bounds.minimal_changes(
                decisions, sensitive_features=group, target=t, direction=direction
            ).rate
            for t in fine
        ]
        label = f"exact limit, {direction.replace('_', ' ')}".replace("any", "any direction")
        axis.plot(fine, 100 * np.array(rates), color="black", linestyle=style, label=label)
    axis.fill_between(fine, 0, 100 * np.array(rates), color="#eeeeee")
    axis.text(0.86, 1.0, "impossible", color="#777777")
    axis.set(xlabel=f"P-rule of {len(group):,} fit rows", ylabel="changed decisions, in %")
    axis.set_ylim(0)
    axis.legend(frameon=False, fontsize=9)
    clean(axis)
    return figure


def draw_record() -> Any:
    """Draw how many approved people of each group are good, by the record and in truth."""
    it = page("concepts/what-this-is-not.md")
    new, after = it["new"], it["after_record"]
    labels = {"by the record": it["recorded"](new, 3), "in truth": new.target}
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.0), sharey=True, layout="constrained")
    for axis, group in zip(axes, ("g0", "g1"), strict=True):
        inside = new.sensitive_features == group
        for place, label in enumerate(labels.values()):
            approved = inside & (after == 1)
            parts = [int((approved & (label == value)).sum()) for value in (1, 0)]
            names = ["good", "not good"] if place == 0 else [None, None]
            axis.barh(place, parts[0], 0.55, color=BLUE, label=names[0])
            axis.barh(place, parts[1], 0.55, left=parts[0], color="#dddddd", label=names[1])
            text = f"{parts[0] / sum(parts):.0%} are good"
            place_of_text = {"transform": axis.get_yaxis_transform(), "va": "center"}
            axis.text(0.02, place, text, color="white", **place_of_text)
        axis.set_xlabel("people whom the update approves")
        clean(axis, f"group {group}")
    axes[0].set_yticks(range(2), list(labels))
    axes[0].invert_yaxis()
    handles = axes[1].get_legend_handles_labels()
    figure.legend(*handles, frameon=False, loc="outside upper right", ncols=2)
    return figure


# -- start and tutorials ---------------------------------------------------------------------------


def draw_start() -> Any:
    """Draw rates of low risk before and after, and the base scores of people who gain."""
    it = page("start.md")
    race, gain = it["race"][it["third"]], it["changes"].gain
    score = it["model"].predict_proba(it["X"].loc[it["third"]])[:, 1]
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(9.6, 3.6), width_ratios=(2, 3), layout="constrained"
    )
    for place, (group, color) in enumerate((("African-American", BLUE), ("others", RED))):
        inside = (race == group).to_numpy()
        rates = [float((one[inside] == 0).mean()) for one in (it["before"], it["after"])]
        left.plot([0, 1], rates, "o-", color=color, linewidth=2.4, label=group)
        for x, rate in enumerate(rates):
            shift = -0.035 if place == 0 else 0.02
            left.text(x, rate + shift, f"{rate:.0%}", ha="center", color=color)
    left.set_xticks([0, 1], ["before", "after"])
    left.set(xlim=(-0.4, 1.4), ylim=(0.4, 0.95), ylabel="share with “low risk”")
    left.legend(frameon=False, loc="upper left")
    clean(left, f"rates of {len(score):,} new people")
    right.hist(
        [score[gain], score[~gain]],
        bins=np.linspace(0, 1, 41),
        stacked=True,
        color=[YELLOW, "#dddddd"],
        label=["gain “low risk”", "decision stays"],
    )
    right.axvline(0.5, color="black", linewidth=1)
    right.set(xlabel="base score: above 0.5 is “high risk”", ylabel="people")
    right.legend(frameon=False)
    clean(right, f"{int(gain.sum())} people change")
    return figure


def draw_recidivism() -> Any:
    """Draw the records of people who gain under two updates, and error rates before and after."""
    it = page("tutorials/recidivism.md")
    X, race = it["X"].loc[it["third"]], it["race"][it["third"]]
    figure, axes = plt.subplots(1, 3, figsize=(10.4, 3.6), layout="constrained")
    bins = np.arange(-0.5, 31.5)
    for axis, name, key in zip(
        axes[:2], ("first update", "last update"), ("update", "final"), strict=True
    ):
        gain = it[key].changes(X).gain
        stay = (it["before"] == 1) & ~gain
        priors = X["priors_count"]
        axis.hist(
            [priors[gain], priors[stay]],
            bins=bins,
            stacked=True,
            color=[YELLOW, "#dddddd"],
            label=["gain “low risk”", "stay at high risk"],
        )
        axis.set(xlabel="earlier charges", ylabel="people")
        axis.legend(frameon=False, fontsize=9)
        clean(axis, f"{name}: {int(gain.sum())} gain")
    after = it["final"].predict(X)
    for shift, decisions, alpha in ((-0.2, it["before"], 0.45), (0.2, after, 1.0)):
        rates = metrics.group_rates(it["y"][it["third"]], decisions, sensitive_features=race)
        for offset, (group, color) in enumerate((("African-American", BLUE), ("others", RED))):
            heights = [rates[group]["tpr"], rates[group]["fpr"]]
            places = np.array([0.0, 2.0]) + shift + 0.85 * offset
            axes[2].bar(places, heights, 0.36, color=color, alpha=alpha)
    axes[2].set_xticks([0.42, 2.42], ["of those arrested\nagain", "of those not\narrested again"])
    axes[2].set_ylabel("called “high risk”")
    axes[2].bar([0], [0], color=BLUE, label="African-American")
    axes[2].bar([0], [0], color=RED, label="others")
    axes[2].legend(frameon=False, fontsize=9)
    clean(axes[2], "pale: before, full: after")
    return figure


def draw_credit() -> Any:
    """Draw the loans that two updates add, and P-rules with their intervals."""
    it = page("tutorials/credit.md")
    amounts = it["new_rows"]["credit_amount"]
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(9.6, 3.4), width_ratios=(3, 2), layout="constrained"
    )
    names = {"update": "few changes", "nearer": "near the threshold", "tight": "at most 2 %"}
    for place, key in enumerate(names):
        gain = it[key].changes(it["new_rows"]).gain
        ends = 0.0
        for young, color in ((True, BLUE), (False, "#aaaaaa")):
            inside = (it["group"][it["new"]] == "25 or younger").to_numpy() == young
            for amount in sorted(amounts[gain & inside]):
                left.barh(place, amount, 0.55, left=ends, color=color, edgecolor="white")
                ends += amount
        left.text(ends + 400, place, f"{int(gain.sum())} loans, {ends:,.0f} DM", va="center")
    left.barh([0], [0], color=BLUE, label="25 or younger")
    left.barh([0], [0], color="#aaaaaa", label="older")
    left.set_yticks(range(len(names)), list(names.values()))
    left.invert_yaxis()
    left.set_xlim(0, 1.8 * left.dataLim.x1)
    left.set_xlabel("amounts of the loans that an update adds, in DM")
    left.legend(frameon=False, loc="lower right")
    clean(left, "one block is one loan")
    metric = it["result"].fairness[0]
    for place, value in enumerate((metric.before, metric.after)):
        right.plot([place, place], [value.low, value.high], color=BLUE, linewidth=3)
        right.plot(place, value.value, "o", color=BLUE, markersize=9)
        right.text(place + 0.08, value.value + 0.02, f"{value.value:.2f}", va="bottom")
    right.axhline(0.8, color="black", linewidth=1)
    right.set_xticks([0, 1], ["before", "near the threshold"])
    right.set(xlim=(-0.5, 1.5), ylim=(0, 1.05), ylabel="P-rule, 95% interval")
    clean(right, "400 new people, 76 of them young")
    return figure


def draw_hiring() -> Any:
    """Draw invitation rates of four groups in two departments, before and after each update."""
    it = page("tutorials/hiring.md")
    X, people = it["X_new"], it["people_new"]
    decisions = {"before": it["before"]}
    for name, key in (("by sex", "by_sex"), ("by sex\nand age", "by_both"), ("floor", "at_least")):
        decisions[name] = it[key].predict(X)
    figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.8), sharex=True, layout="constrained")
    styles = {
        ("men", "under 40"): (RED, "o--"),
        ("men", "40 or older"): (RED, "s-"),
        ("women", "under 40"): (BLUE, "o--"),
        ("women", "40 or older"): (BLUE, "s-"),
    }
    for axis, department in zip(axes, ("care", "engineering"), strict=True):
        for (sex, age), (color, style) in styles.items():
            inside = (people["sex"] == sex) & (people["age"] == age)
            inside = (inside & (X["department"] == department)).to_numpy()
            rates = [float(one[inside].mean()) for one in decisions.values()]
            axis.plot(rates, style, color=color, label=f"{sex}, {age}", linewidth=1.8)
        axis.set_xticks(range(len(decisions)), list(decisions))
        clean(axis, department)
    axes[0].set_ylabel("share invited")
    axes[0].axhline(0.2, color=GREY, linewidth=1)
    axes[0].text(0, 0.205, "floor", color="#777777", fontsize=9)
    axes[0].set_ylim(0, 0.4)
    axes[1].set_ylim(0.4, 0.9)
    axes[1].legend(frameon=False, fontsize=9, loc="lower right", ncols=2)
    return figure


PICTURES: dict[str, Callable[[], Any]] = {
    "start": draw_start,
    "recidivism": draw_recidivism,
    "credit": draw_credit,
    "hiring": draw_hiring,
    "paper": draw_paper,
    "fewest": draw_fewest,
    "levelling": draw_levelling,
    "promises": draw_promises,
    "limits": draw_limits,
    "record": draw_record,
}


if __name__ == "__main__":
    main(sys.argv[1:])
