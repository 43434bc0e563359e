"""Updates whose points are evidence, made by hand from a fitted update."""

import copy
from dataclasses import replace

import numpy as np

from commod._data.encoding import Encoding, NumericTerms
from commod.scorecard import EvidenceRule, Scorecard


def with_evidence(update, X, *, share=0.15, seed=0, **rule):
    """Return a copy of a fitted update with points of evidence, random ones, and a rule.

    About `share` of the rows of X have enough evidence for a change if their base decision is the
    other one; so both gains and losses occur. Numbers are centred, and there are two concepts,
    which are centred on the rows of X.
    """
    rng = np.random.default_rng(seed)
    specs = update.scorecard_.encoding.columns
    columns = [
        replace(spec, centre=round(spec.fill)) if isinstance(spec, NumericTerms) else spec
        for spec in specs
        if spec.name != "distance from the threshold"
    ]
    encoding = Encoding(tuple(columns))
    base, read = update._scored_columns(X)
    scale = encoding.encode(read).moments(np.ones(len(X)))[1]
    points = rng.normal(size=encoding.n_terms) / np.where(scale > 0, scale, 1)
    names = list(dict.fromkeys(encoding.term_columns))
    is_first = np.array([names.index(name) % 2 == 0 for name in encoding.term_columns])
    card = Scorecard(
        encoding=encoding,
        intercept=0.0,
        contributions=np.array([0.5, -0.25]),
        concept_points=np.array([2 * points * is_first, -4 * points * ~is_first]),
        concept_intercepts=np.zeros(2),
    )
    card = replace(card, concept_intercepts=-card.concepts(read).mean(axis=0))
    card = replace(card, intercept=0.1 - float(card.ratio(read).mean()))
    distance = np.abs(base.scores - base.threshold)
    made = EvidenceRule(
        **{
            "cut": float(np.quantile(np.abs(card.ratio(read)), 1 - share)),
            "mean_distance": float(distance.mean()),
            "favorable_above": bool(update._score_label() == update._favorable_label),
            **rule,
        }
    )
    other = copy.copy(update)
    other.search_ = replace(update.search_, direction="any")
    other.scorecard_ = replace(card, rule=made)
    return other
