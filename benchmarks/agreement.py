"""Compare our reject option and adversarial debiasing with AIF360's, on the same rows.

AIF360 runs in its own environment, which the first run creates. AIF360's adversary is of the
equalized-odds kind, and its projection goes tensor by tensor. Ours is configured in the same way.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from blind_peers import write_rows
from environments import HERE, python_of
from protocol import TABLES, Split, first_splits, make_split
from report import show

from commod.exceptions import CommodWarning
from commod.rivals import AdversarialDebiasing, RejectOption

JOB = {
    "margins": [0.0, 0.05, 0.1, 0.2],
    "bound": 0.05,
    "weights": [0.1, 1.0],
    "seeds": 5,
    "batch_size": 128,
}
STEPS = 2000  # of each training; in 50 epochs of Law School AIF360 does not learn the labels


def agreement() -> None:
    """Compare decisions on the test rows of splits 0 and 1 of both tables."""
    for name in TABLES:
        for seed in first_splits(2):
            split = make_split(name, seed)
            theirs = _decisions_of_aif360(split)
            where = f"{name}, split {seed}"
            _compare_reject_option(where, split, theirs)
            _compare_adversarial(where, split, theirs)


def _decisions_of_aif360(split: Split) -> Any:
    """Return AIF360's decisions; group 1 is the group with the higher selection rate."""
    with tempfile.TemporaryDirectory() as folder:
        rows, answer = Path(folder) / "rows.npz", Path(folder) / "answer.npz"
        write_rows(split, rows)
        table = dict(np.load(rows))
        decided = split.model.predict(split.train.X)
        if decided[table["s"] == 0].mean() > decided[table["s"] == 1].mean():
            table["s"], table["s_test"] = 1 - table["s"], 1 - table["s_test"]
        table["f"] = split.model.predict_proba(split.train.X)[:, 1]
        table["f_test"] = split.model.predict_proba(split.test.X)[:, 1]
        np.savez(rows, **table)
        command = [python_of("aif360"), HERE / "peers" / "aif360_rivals.py", rows, answer]
        job = json.dumps({**JOB, "epochs": _epochs(split)})
        done = subprocess.run([*command, job], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"AIF360 failed:\n{done.stderr[-4000:]}")
        return dict(np.load(answer))


def _epochs(split: Split) -> int:
    return -(-STEPS // (len(split.train.y) // JOB["batch_size"]))


def _compare_reject_option(where: str, split: Split, theirs: dict[str, Any]) -> None:
    groups = {"sensitive_features": split.test.s}
    for margin in JOB["margins"]:
        update = _fit(RejectOption(split.model, strength=margin), split)
        n_other = int((update.predict(split.test.X, **groups) != theirs[f"margin {margin}"]).sum())
        show(
            f"{where}: reject option, margin {margin}: decisions that differ from AIF360's",
            f"{n_other} of {len(split.test.y)}",
            "0",
            n_other == 0,
        )
    decided = split.model.predict(split.train.X)
    rates = [decided[split.train.s == group].mean() for group in np.unique(split.train.s)]
    strength = 1 - JOB["bound"] / np.ptp(rates)
    update = _fit(RejectOption(split.model, search=True, strength=strength), split)
    n_other = int((update.predict(split.test.X, **groups) != theirs["search"]).sum())
    threshold, margin = theirs["searched"]
    show(
        f"{where}: searched threshold and margin {update.threshold_:.3f}, {update.margin_:.3f}",
        f"AIF360 {threshold:.3f}, {margin:.3f}",
        f"{n_other} decisions differ",
        n_other == 0,
    )


def _compare_adversarial(where: str, split: Split, theirs: dict[str, Any]) -> None:
    for weight in JOB["weights"]:
        ours = [_adversarial(split, weight, seed) for seed in range(JOB["seeds"])]
        runs = [split.evaluate(decisions) for decisions in theirs[f"weight {weight}"]]
        mine = [split.evaluate(decisions) for decisions in ours]
        for metric in ("accuracy", "dm", "p_rule"):
            a, b = ([run[metric] for run in part] for part in (mine, runs))
            noise = float(np.hypot(np.nanstd(a, ddof=1), np.nanstd(b, ddof=1)))
            gap = float(np.nanmean(a) - np.nanmean(b))
            show(
                f"{where}: adversarial, weight {weight}: {metric} {np.nanmean(a):.3f}",
                f"AIF360 {np.nanmean(b):.3f}",
                f"|{gap:.3f}| <= 2 sd {2 * noise:.3f}",
                abs(gap) <= 2 * noise,
            )


def _adversarial(split: Split, weight: float, seed: int) -> Any:
    update = AdversarialDebiasing(
        split.model,
        constraints="equalized_odds",
        strength=weight,
        projection="tensor",
        epochs=_epochs(split),
        batch_size=JOB["batch_size"],
        min_category_size=1,  # AIF360 has a column for every category
        adversary_learning_rate=0.001,  # and trains both from the start, at one rate
        warmup_epochs=0,
        progress=False,
        random_state=seed,
    )
    return _fit(update, split).predict(split.test.X)


def _fit(update: Any, split: Split) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CommodWarning)
        return update.fit(split.train.X, split.train.y, sensitive_features=split.train.s)
