"""Small random tables of people, their tasks, and their terms written out by hand."""

import itertools

import numpy as np
import pandas as pd

from commod import ControlledDebiaser, ScoreColumn
from commod._data.encoding import BinTerms, NumericTerms
from commod._data.groups import read_group_probabilities
from commod._evidence.task import N_FOLDS
from commod.updates._problem import evidence_task


class People:
    """Random people: numbers, gaps, texts and flags; scores, labels, groups and weights."""

    def __init__(self, seed, n=240, n_groups=2):
        rng = np.random.default_rng(seed)
        self.rng, self.n, self.n_groups = rng, n, n_groups
        self.group = np.arange(n) % n_groups
        rng.shuffle(self.group)
        shift = self.group / n_groups
        town = rng.choice(["a", "b", "c", "d"], n, p=[0.3, 0.3, 0.2, 0.2])
        self.X = pd.DataFrame(
            {
                "number": np.round(rng.normal(1000 + shift, 1.0, n), 3),
                "gaps": np.where(rng.random(n) < 0.2, np.nan, np.round(rng.gamma(2.0, 1, n), 3)),
                "town": np.where(rng.random(n) < 0.3 * shift, "a", town),
                "text": rng.choice(["x", "y", None], n, p=[0.5, 0.3, 0.2]),
                "flag": rng.random(n) < 0.3 + 0.3 * shift,
                "band": rng.choice(["low", "high"], n),
                "score": np.round(np.clip(rng.normal(0.55 - 0.2 * shift, 0.2, n), 0.01, 0.99), 6),
            }
        )
        self.y = rng.random(n) < self.X["score"].to_numpy()
        self.base = self.X["score"].to_numpy() > 0.5
        self.weight = rng.choice([0.5, 1.0, 2.0], n)
        self.shares = rng.dirichlet(np.full(n_groups, 0.7), n)

    def problem(
        self,
        constraints="demographic_parity",
        groups="known",
        weight=None,
        *,
        by_content=False,
        **others,
    ):
        parameters = {"min_group_size": 1, "min_category_size": 2, "locked_features": ["score"]}
        update = ControlledDebiaser(
            ScoreColumn("score"), constraints=constraints, **{**parameters, **others}
        )
        known = self.group
        if groups == "probable":
            known = read_group_probabilities(self.shares)
        elif groups == "partly":
            known = np.where(np.arange(self.n) % 5 == 0, None, known.astype(object))
        hashes = None
        if not by_content:  # rows stay in their order, and each of them has a random fold
            folds = np.random.default_rng(0).integers(0, N_FOLDS, self.n)
            hashes = (np.arange(self.n) * N_FOLDS + folds).astype(np.uint64)
        problem = update._prepare(self.X, self.y, known, weight, hashes=hashes)
        return problem, update._target

    def task(self, *args, for_new=False, **others):
        problem, target = self.problem(*args, **others)
        return evidence_task(problem, target, for_new=for_new)


def written_out(encoding, X):
    """Return the terms of all rows as a dense matrix, read off the frame by their definition."""
    columns = []
    for spec in encoding.columns:
        values = X[spec.name]
        is_missing = values.isna().to_numpy()
        if isinstance(spec, NumericTerms):
            columns.append(values.fillna(spec.fill).to_numpy(dtype=float) - spec.centre)
        elif isinstance(spec, BinTerms):
            edges = [-np.inf, *spec.edges, np.inf]
            columns += [(values >= a) & (values < b) for a, b in itertools.pairwise(edges)]
        else:
            columns += [is_missing if c is None else values == c for c in spec.categories]
            continue
        if spec.has_missing_term:
            columns.append(is_missing)
    return np.column_stack([np.asarray(column, dtype=float) for column in columns])


def membership(task):
    """Return with which probability each person is in each cell, (n, C)."""
    members = np.zeros((len(task), task.n_cells + 1))
    for cell, share in zip(task.cell.T, task.share.T, strict=True):
        members[np.arange(len(task)), cell] += share
    return members[:, :-1]
