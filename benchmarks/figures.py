"""Print every figure that the project promises of its results beside its bar: `make figures`.

Run a part with e.g. `make figures FIGURES="table-1 smoothness"`. Each finished part is stored in
docs/measured/figures.json and shown on docs/figures.md. A run without names leaves out the parts
that the same source has measured, so an interrupted run goes on. `make bench` measures speed and
memory.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable
from typing import Any

import agreement
import blind_peers
import borderline
import constraints_on_test_rows
import controlled
import every_constraint
import expected
import expected_cost
import expected_odds
import explore
import frames
import heart
import heart_blind
import heart_lpp
import heart_new_rows
import heart_stable
import hostile_rivals
import integers
import known_populations
import limits
import measured
import new_rows
import numpy as np
import oxonfair_pairs
import oxonfair_values
import pinned
import promises
import rival_speed
import rnf_direction
import signing
import simpson
import starts
import unknown_groups
from experiments.paper import BASE, CELLS, DP, EDGES, EO, TABLE_1
from experiments.protocol import quartile
from protocol import N_CONCEPTS, TABLES, Split, make_split
from report import show, shown
from sklearn.linear_model import LogisticRegression

import rivals
from benchmarks.harness import machine
from benchmarks.harness.results import read
from commod import COMMOD, metrics
from commod.datasets import make_biased
from commod.updates.commod import DEFAULT_GRID, fit_grid

GRID = [
    dict(zip(DEFAULT_GRID, values, strict=True))
    for values in itertools.product(*DEFAULT_GRID.values())
]


def base_models() -> None:
    """Compare the base model's mean figures over splits 0..19 with known values."""
    known = {"Law School": (0.261, 0.595, 0.800), "COMPAS": (0.625, 0.286, 0.673)}
    for name in TABLES:
        runs = [make_split(name, seed).base() for seed in range(20)]
        for metric, value in zip(("p_rule", "dm", "accuracy"), known[name], strict=True):
            mean = float(np.mean([run[metric] for run in runs]))
            paper = _paper_base(name)[metric]
            show(
                f"{name}: base {metric}, mean over splits 0..19 (paper {paper})",
                f"{mean:.4f}",
                f"{value} ± 0.005",
                abs(mean - value) <= 0.005,
            )


def _paper_base(name: str) -> dict[str, float]:
    p_rule, accuracy = BASE[name, DP]
    return {"p_rule": p_rule, "dm": BASE[name, EO][0], "accuracy": accuracy}


def trained(split: Split, name: str, constraints: str, **settings: Any) -> list[dict[str, float]]:
    """Return the test figures of the published grid on one split."""
    update = COMMOD(
        split.model,
        constraints=constraints,
        n_concepts=N_CONCEPTS[name],
        random_state=0,
        training={"progress": False},
        **settings,
    )
    train = split.train
    models = fit_grid(update, GRID, train.X, train.y, sensitive_features=train.s)
    return [split.evaluate(model.predict(split.test.X)) for model in models]


def table_1() -> None:
    """Compare Table 1 of the paper, demographic parity, splits 0..9, with the published grid."""
    for name in TABLES:
        medians: dict[tuple[int, int], list[float]] = {}
        highest, lowest, bases = [], [], []
        for seed in range(10):
            split = make_split(name, seed)
            base = split.base()
            runs = trained(split, name, "demographic_parity")
            shift = base["accuracy"] - BASE[name, DP][1]
            fairness, accuracy = EDGES[name, DP, "AdversarialDebiasing"]
            cells = [
                (quartile(run["p_rule"], fairness), quartile(run["accuracy"] - shift, accuracy))
                for run in runs
            ]
            for cell in set(cells):
                rates = [r["changes"] for r, c in zip(runs, cells, strict=True) if c == cell]
                medians.setdefault(cell, []).append(float(np.median(rates)))
            bases.append(base["p_rule"])
            highest.append(np.nanmax([run["p_rule"] for run in runs]))
            lowest.append(np.nanmin([run["p_rule"] for run in runs]))
        must = name == "Law School"
        show(
            f"{name}: test P-rules from base {np.mean(bases):.3f} (lowest {np.mean(lowest):.3f})",
            f"to {np.mean(highest):.3f}, worst split {min(highest):.3f}",
            ">= 0.9" if must else "reported",
            float(np.mean(highest)) >= 0.9 if must else None,
        )
        show_cells(name, medians, must)


def show_cells(name: str, medians: dict[tuple[int, int], list[float]], must: bool) -> None:
    """Print the cells of Table 1 beside the paper's."""
    n_counted = 0
    for cell, paper in zip(CELLS, TABLE_1[name]["COMMOD"], strict=True):
        values = medians.get(cell, [])
        label = f"{name}: Table 1, Q{cell[0]} fairness / Q{cell[1]} accuracy"
        if len(values) < 3:
            show(label, f"{len(values)} splits: not counted", f"paper {paper}")
            continue
        n_counted += 1
        mean = float(np.mean(values))
        bar = f"<= {1.15 * paper:.4f}" if must else f"paper {paper}"
        held = mean <= 1.15 * paper if must else None
        show(label, f"{mean:.4f} ({len(values)} splits)", bar, held)
    if must:
        show(f"{name}: cells counted", str(n_counted), ">= 5 of 7", n_counted >= 5)


def equalized_odds() -> None:
    """Compare the lowest test DM of the published grid at a floor on accuracy, splits 0..9."""
    for name, floor, bar in (("Law School", 0.72, 0.33), ("COMPAS", 0.62, 0.21)):
        lowest, bases = [], []
        for seed in range(10):
            split = make_split(name, seed)
            runs = trained(split, name, "equalized_odds")
            lowest.append(min(run["dm"] for run in runs if run["accuracy"] >= floor))
            bases.append(split.base()["dm"])
        show(
            f"{name}: lowest test DM at accuracy >= {floor} (base {np.mean(bases):.3f})",
            f"{np.mean(lowest):.4f} ± {np.std(lowest):.3f}",
            f"<= {bar}",
            float(np.mean(lowest)) <= bar,
        )


def smoothness() -> None:
    """Check the spread over 10 seeds at every point of the default grid, and steps along it."""
    for name in TABLES:
        split = make_split(name, seed=0)
        settings = [{**point, "random_state": seed} for point in GRID for seed in range(10)]
        update = COMMOD(split.model, n_concepts=N_CONCEPTS[name], training={"progress": False})
        train = split.train
        models = fit_grid(update, settings, train.X, train.y, sensitive_features=train.s)
        runs = [split.evaluate(model.predict(split.test.X)) for model in models]
        fairness = np.array([run["p_rule"] for run in runs]).reshape(len(GRID), 10)
        changes = np.array([run["changes"] for run in runs]).reshape(len(GRID), 10)
        n_ratio = len(DEFAULT_GRID["lambda_ratio"])
        steps = np.abs(np.diff(fairness.mean(axis=1).reshape(-1, n_ratio), axis=0))
        where = f"{name}, split 0:"
        for what, spread, bar in (
            ("P-rule", fairness.std(axis=1), 0.05),
            ("change rate", changes.std(axis=1), 0.02),
        ):
            worst = tuple(GRID[spread.argmax()].values())
            show(
                f"{where} largest sd of test {what} over 10 seeds",
                f"{spread.max():.4f} at {worst}",
                f"<= {bar}",
                bool(spread.max() <= bar),
            )
        show(
            f"{where} largest step of mean P-rule along lambda_fair",
            f"{steps.max():.4f}",
            "<= 0.2",
            bool(steps.max() <= 0.2),
        )


def choices() -> None:
    """Show the choices of docs/decisions/0002 about the weight and the adversary."""
    data, new = (make_biased(1200, bias=1.5, random_state=seed) for seed in (0, 1))
    model = LogisticRegression().fit(data.data, data.target)
    groups = {"sensitive_features": new.sensitive_features}
    points = [(value, seed) for value in (1, 2, 3, 4, 6) for seed in range(4)]
    for adaptive in (False, True):
        training = {"adaptive_fairness": adaptive, "progress": False}
        update = COMMOD(model, lambda_ratio=0.2, training=training)
        models = fit_grid(
            update,
            [{"lambda_fair": value, "random_state": seed} for value, seed in points],
            data.data,
            data.target,
            sensitive_features=data.sensitive_features,
        )
        runs = [
            (metrics.p_rule(None, m.predict(new.data), **groups), m.changes(new.data).rate)
            for m in models
        ]
        values = np.array(runs).reshape(-1, 4, 2)
        for value, mean, sd in zip(
            (1, 2, 3, 4, 6), values.mean(axis=1), values.std(axis=1), strict=True
        ):
            show(
                f"make_biased, adaptive_fairness={adaptive}, lambda_fair {value}: P-rule",
                f"{mean[0]:.2f} ± {sd[0]:.3f}",
                f"changes {mean[1]:.1%} ± {sd[1]:.1%}",
            )
    for hidden in ((32,), (64, 32, 16)):
        runs, start = [], time.perf_counter()
        for seed in range(3):
            split = make_split("Law School", seed)
            training = {"adversary_hidden": hidden, "progress": False}
            update = COMMOD(split.model, training=training, random_state=0)
            update.fit(split.train.X, split.train.y, sensitive_features=split.train.s)
            runs.append(split.evaluate(update.predict(split.test.X)))
        show(
            f"Law School, splits 0..2, defaults, adversary_hidden={hidden}: P-rule",
            f"{np.mean([r['p_rule'] for r in runs]):.3f}",
            f"changes {np.mean([r['changes'] for r in runs]):.1%}, "
            f"{time.perf_counter() - start:.1f} s with compilation",
        )


def fairlearn_values() -> None:
    """Compare values of constraints with Fairlearn's; the other figures run without Fairlearn."""
    from fairlearn_values import fairlearn_values as compare_values

    compare_values()


FIGURES: dict[str, Callable[[], None]] = {
    "base-models": base_models,
    "table-1": table_1,
    "equalized-odds": equalized_odds,
    "smoothness": smoothness,
    "choices": choices,
    "starts": starts.starts,
    "heart": heart.heart,
    "heart-stable": heart_stable.heart_stable,
    "heart-new-rows": heart_new_rows.heart_new_rows,
    "degenerate": signing.degenerate,
    "worse-than-base": signing.worse_than_base,
    "intervals": signing.intervals,
    "heart-lpp": heart_lpp.heart_lpp,
    "heart-blind": heart_blind.heart_blind,
    "training-rows": controlled.training_rows,
    "test-rows": new_rows.test_rows,
    "scorecard-size": controlled.scorecard_size,
    "new-rows-targets": expected.new_rows_targets,
    "new-rows-price": expected.new_rows_price,
    "new-rows-odds": expected_odds.new_rows_odds,
    "known-populations": known_populations.known_populations,
    "unknown-groups": unknown_groups.unknown_groups,
    "group-probabilities": unknown_groups.group_probabilities,
    "expected-cost": expected_cost.expected_cost,
    "blind-peers": blind_peers.blind_peers,
    "oxonfair-pairs": oxonfair_pairs.oxonfair_pairs,
    "oxonfair-values": oxonfair_values.oxonfair_values,
    "gains-only": controlled.gains_only,
    "borderline": borderline.borderline,
    "integers": integers.integers,
    "directions": borderline.directions,
    "pinned": pinned.pinned,
    "explore": explore.explore,
    "promises": promises.promises,
    "rivals": rivals.rivals,
    "hostile-rivals": hostile_rivals.hostile_rivals,
    "rival-speed": rival_speed.rival_speed,
    "rnf-direction": rnf_direction.rnf_direction,
    "constraints": every_constraint.constraints,
    "pairs": every_constraint.pairs,
    "constraints-test": constraints_on_test_rows.constraints_test,
    "simpson": simpson.simpson,
    "agreement": agreement.agreement,
    "fairlearn-values": fairlearn_values,
    "limits": limits.limits_by_brute_force,
    "limits-many-rows": limits.limits_on_many_rows,
    "frame-changes": frames.frame_changes,
    "frame-seconds": frames.frame_seconds,
}


def main(names: list[str]) -> None:
    """Measure the named figures; without names, those that this source has not measured yet."""
    unknown = [name for name in names if name not in FIGURES]
    if unknown:
        sys.exit(f"unknown figures: {', '.join(unknown)}; choose from {', '.join(FIGURES)}")
    stored = read(measured.STORED)
    done = [name for name, part in stored.items() if machine.is_of_this_source(part)]
    if done and not names:
        print(f"The same source has measured: {', '.join(done)}")
    for name in names or [name for name in FIGURES if name not in done]:
        provenance, start = machine.describe(), time.perf_counter()
        print(f"\n{name}")
        shown.clear()
        FIGURES[name]()
        seconds = round(time.perf_counter() - start)
        print(f"({seconds} s)", flush=True)
        if not measured.is_changed():
            part = {**provenance, "seconds": seconds, "rows": [*shown]}
            measured.keep(name, part, list(FIGURES))


if __name__ == "__main__":
    main(sys.argv[1:])
