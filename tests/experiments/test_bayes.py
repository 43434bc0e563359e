"""The paper's Bayes-optimal update, on populations of five points: against every decision."""

import itertools

import numpy as np
import pytest
from experiments.bayes import (
    balanced_cost_margin,
    bayes_optimal_scores,
    equalized_odds_margin,
    p_rule_margin,
)
from hypothesis import given, settings
from hypothesis import strategies as st

quick = settings(deadline=None, max_examples=35)


class Population:
    """Five points x with P(x), P(Y=1|x), P(S=1|x) and P(base decision=1|x)."""

    def __init__(self, seed, aware=False):
        rng = np.random.default_rng(seed)
        self.mass = rng.dirichlet(np.ones(5))
        self.joint = rng.dirichlet(np.ones(4), size=5).reshape(5, 2, 2)  # [x, y, s]
        self.target, self.group = self.joint[:, 1].sum(axis=1), self.joint[:, :, 1].sum(axis=1)
        if aware:  # the group is part of x
            self.group = np.array([0.0, 1, 0, 1, rng.integers(2)])
            known = np.stack([1 - self.group, self.group], axis=1)
            self.joint = self.joint.sum(axis=2)[:, :, None] * known[:, None, :]
        decided = np.array([0.0, 1, *rng.integers(0, 2, 3)])
        self.base = decided if rng.random() < 0.5 else rng.random(5)
        self.share = float(self.mass @ self.group)
        self.cost, self.cost_group = rng.uniform(0.2, 0.8, 2)

    def risk(self, decisions):
        """Cost-sensitive risk: (1 − c) P(Y=1, decision 0) + c P(Y=0, decision 1)."""
        missed = self.mass @ (self.target * (1 - decisions))
        wrong = self.mass @ ((1 - self.target) * decisions)
        return (1 - self.cost) * missed + self.cost * wrong

    def rate(self, decisions, proba):
        """P(decision 1 | event), where `proba` is P(event | x)."""
        return self.mass @ (proba * decisions) / (self.mass @ proba)

    def changes(self, decisions):
        return self.mass @ (self.base * (1 - decisions) + (1 - self.base) * decisions)

    def balanced_cost(self, decisions):
        missed = 1 - self.rate(decisions, self.group)
        wrong = self.rate(decisions, 1 - self.group)
        return (1 - self.cost_group) * missed + self.cost_group * wrong


CLASSIFIERS = np.array(list(itertools.product((0.0, 1.0), repeat=5)))
seeds, multipliers = st.integers(0, 2**32 - 1), st.floats(-1, 1)


def least(risk):
    return pytest.approx(min(risk(g) for g in CLASSIFIERS), abs=1e-12)


def decisions_of(population, margin, lambda_ratio):
    scores = bayes_optimal_scores(
        population.target,
        population.base,
        margin,
        cost=population.cost,
        lambda_ratio=lambda_ratio,
    )
    return (scores > 0).astype(float)


@quick
@given(seeds, st.booleans(), multipliers, st.floats(0, 1))
def test_the_lagrangian_score_attains_the_minimum(seed, aware, lambda_fair, lambda_ratio):
    p = Population(seed, aware)
    margin = balanced_cost_margin(
        p.group, lambda_fair=lambda_fair, cost_group=p.cost_group, group_share=p.share
    )

    def risk(g):
        return p.risk(g) - lambda_fair * p.balanced_cost(g) + lambda_ratio * p.changes(g)

    assert risk(decisions_of(p, margin, lambda_ratio)) == least(risk)


@quick
@given(seeds, st.booleans(), st.floats(0, 1), st.floats(0, 1), st.integers(0, 1))
def test_the_p_rule_score_attains_the_minimum(seed, aware, mu, lambda_ratio, disadvantaged):
    p = Population(seed, aware)
    margin = p_rule_margin(
        p.group, multiplier=mu, target=0.8, disadvantaged=disadvantaged, group_share=p.share
    )

    def risk(g):
        rates = p.rate(g, 1 - p.group), p.rate(g, p.group)
        slack = rates[disadvantaged] - 0.8 * rates[1 - disadvantaged]
        return p.risk(g) - mu * slack + lambda_ratio * p.changes(g)

    assert risk(decisions_of(p, margin, lambda_ratio)) == least(risk)


@quick
@given(seeds, st.booleans(), multipliers, multipliers, st.floats(0, 1))
def test_the_equalized_odds_score_attains_the_minimum(seed, aware, nu_0, nu_1, lambda_ratio):
    p = Population(seed, aware)
    shares = np.tensordot(p.mass, p.joint, axes=1)
    margin = equalized_odds_margin(p.joint, multipliers=(nu_0, nu_1), cell_shares=shares)

    def risk(g):
        gaps = [p.rate(g, p.joint[:, y, 1]) - p.rate(g, p.joint[:, y, 0]) for y in (0, 1)]
        return p.risk(g) + nu_0 * gaps[0] + nu_1 * gaps[1] + lambda_ratio * p.changes(g)

    assert risk(decisions_of(p, margin, lambda_ratio)) == least(risk)


@quick
@given(seeds, st.floats(0.1, 1))
def test_the_balanced_cost_says_whether_the_ratio_of_rates_is_reached(seed, tau):
    p = Population(seed)
    p.cost_group = 1 / (1 + tau)
    for g in CLASSIFIERS[1:]:
        ratio = p.rate(g, 1 - p.group) / p.rate(g, p.group)
        difference = p.balanced_cost(g) - tau / (1 + tau)
        assert abs(ratio - tau) < 1e-9 or (difference > 0) == (ratio > tau)


@quick
@given(seeds)
def test_changes_are_a_balanced_cost_with_the_share_of_base_negatives(seed):
    p = Population(seed)
    for g in CLASSIFIERS:
        missed, wrong = 1 - p.rate(g, p.base), p.rate(g, 1 - p.base)
        c = 1 - p.mass @ p.base
        assert (1 - c) * missed + c * wrong == pytest.approx(p.changes(g))


def test_the_papers_cost_of_changes_is_wrong():
    # Two points of equal mass, base decisions 1 and 0; the update says 1 to both.
    base, new = np.array([1, 0]), np.array([1, 1])
    missed, wrong = np.mean(new[base == 1] == 0), np.mean(new[base == 0] == 1)
    printed = np.mean(new == 1)  # the paper's c*
    assert (1 - printed) * missed + printed * wrong == 1.0
    assert np.mean(base != new) == 0.5


def test_the_papers_score_is_mostly_worse_than_the_corrected_one():
    lambda_fair, lambda_ratio, n_worse = 0.1, 0.4, 0
    for seed in range(100):
        p = Population(seed)
        margin = balanced_cost_margin(
            p.group, lambda_fair=lambda_fair, cost_group=p.cost_group, group_share=p.share
        )
        new_share = 0.5  # the paper's c*; whatever it is, the signs and multipliers are wrong
        printed = p.target - p.cost - lambda_ratio * (p.group - p.cost_group)
        printed -= lambda_fair * (p.base - new_share)
        corrected = decisions_of(p, margin, lambda_ratio)
        risks = [
            p.risk(g) - lambda_fair * p.balanced_cost(g) + lambda_ratio * p.changes(g)
            for g in (corrected, (printed > 0).astype(float))
        ]
        assert risks[0] <= risks[1] + 1e-12
        n_worse += risks[0] < risks[1] - 1e-6
    assert n_worse > 75


def test_large_cost_of_changes_keeps_every_base_decision():
    p = Population(1)
    base = np.array([0, 1, 0, 1, 1])
    margin = p_rule_margin(p.group, multiplier=0.1, target=0.8, group_share=p.share)
    scores = bayes_optimal_scores(p.target, base, margin, lambda_ratio=100.0)
    assert ((scores > 0) == base).all()


def test_shares_default_to_the_means_of_the_rows():
    p = Population(2)
    explicit = {"group_share": p.group.mean()}
    for margin in (
        lambda **more: p_rule_margin(p.group, multiplier=0.3, target=0.8, **more),
        lambda **more: balanced_cost_margin(p.group, lambda_fair=0.3, **more),
    ):
        np.testing.assert_array_equal(margin(), margin(**explicit))
    np.testing.assert_array_equal(
        equalized_odds_margin(p.joint, multipliers=(0.1, 0.2)),
        equalized_odds_margin(p.joint, multipliers=(0.1, 0.2), cell_shares=p.joint.mean(axis=0)),
    )
