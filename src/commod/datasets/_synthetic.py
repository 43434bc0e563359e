"""Draw rows of a synthetic population with exact probabilities of the target and the group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats
from commod._data.parameters import check_number_parameter, check_seed
from commod.datasets._files import as_bunch
from commod.exceptions import InputError


def make_biased(
    n_samples: int = 1000,
    *,
    n_features: int = 4,
    n_informative: int | None = None,
    group_shares: Sequence[float] = (0.7, 0.3),
    bias: float = 1.0,
    signal: float = 2.0,
    intercept: float = 0.0,
    correlation: float = 0.0,
    n_categories: int = 0,
    random_state: Any = None,
    as_frame: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Return rows of a biased population with their exact P(Y=1|x) and P(S=s|x).

    The target depends on the first `n_informative` columns. Every second column (x0, x2, …) has a
    mean that depends on the group. So with the default four columns, x0 is informative and biased,
    x1 is only informative, x2 is only a proxy of the group, and x3 is noise.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows, at least 1.
    n_features : int, default=4
        Number of numeric columns, at least 1.
    n_informative : int, default=None
        Number of columns that the target depends on; None means half of them, rounded up.
    group_shares : sequence of float, default=(0.7, 0.3)
        Probability of each group: two or more positive numbers whose sum is 1.
    bias : float, default=1.0
        Distance between the means of the first and the last group in every second column, in
        standard deviations; other groups are evenly spaced between them. It also sets how much
        the category depends on the group. At 0, the columns do not depend on the group.
    signal : float, default=2.0
        Length of `coef`: how strongly the target depends on the informative columns.
    intercept : float, default=0.0
        Mean of the logit of P(Y=1|x) over the whole population.
    correlation : float, default=0.0
        Correlation between any two numeric columns within a group, between -1/(n_features - 1)
        and 1, both excluded.
    n_categories : int, default=0
        Number of values of an extra text column `category`; 0 means no such column. Its shares
        depend on the group, and the target does not depend on it. The other columns, the groups
        and the target are the same with and without it.
    random_state : int, RandomState or None, default=None
        The same seed gives the same rows.
    as_frame : bool, default=True
        Return pandas objects for data, target and sensitive_features; otherwise NumPy arrays.
    return_X_y : bool, default=False
        Return only `(data, target)`.

    Returns
    -------
    Bunch
        With the fields

        - `data` of shape (n_samples, n_features), with one more column for `n_categories`;
        - `target` of shape (n_samples,): 0 or 1;
        - `sensitive_features` of shape (n_samples,): "g0", "g1", …, named "group";
        - `frame`: the three side by side (None without `as_frame`);
        - `proba_target` of shape (n_samples,): exact P(Y=1|x);
        - `proba_sensitive` of shape (n_samples, n_groups): exact P(S=s|x), category included;
        - `group_names` and `group_shares` of shape (n_groups,), in the order of those columns;
        - `group_means` of shape (n_groups, n_features), `covariance` of shape (n_features,
          n_features), `coef` of shape (n_features,), `intercept`, and `category_shares` of shape
          (n_groups, n_categories): the population itself;
        - `feature_names` and `DESCR`.

    Notes
    -----
    In group s the logit of P(Y=1|x) is Gaussian with mean intercept + coef·group_means[s] and
    variance coefᵀ·covariance·coef, so population rates are one-dimensional integrals.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> population = make_biased(500, random_state=0)
    >>> population.data.shape
    (500, 4)
    >>> population.group_means.round(2).tolist()
    [[0.3, 0.0, 0.3, 0.0], [-0.7, 0.0, -0.7, 0.0]]
    >>> population.proba_sensitive.sum(axis=1).round(12).min()
    np.float64(1.0)
    """
    counts = {"n_samples": (n_samples, 1), "n_features": (n_features, 1)}
    counts["n_categories"] = (n_categories, 0)
    for name, (value, least) in counts.items():
        check_number_parameter(value, name, Integral, min_val=least)
    rng = check_seed(random_state)
    if n_categories == 1:
        raise InputError(
            "n_categories=1 must not be 1, a column with one value. Pass 0 for none, or 2 or more.",
            parameter="n_categories",
        )
    if n_informative is None:
        n_informative = (n_features + 1) // 2
    check_number_parameter(n_informative, "n_informative", Integral, min_val=0, max_val=n_features)
    numbers = {"bias": bias, "signal": signal, "intercept": intercept, "correlation": correlation}
    for name, number in numbers.items():
        check_number_parameter(number, name, Real)
    shares = _check_shares(group_shares)
    shift = bias * np.linspace(0.5, -0.5, len(shares))
    means, coef = np.zeros((len(shares), n_features)), np.zeros(n_features)
    # Centred, so that `intercept` is the mean logit for any shares.
    means[:, ::2] = (shift - shares @ shift)[:, None]
    coef[:n_informative] = signal / math.sqrt(max(n_informative, 1))
    population = {
        "group_shares": shares,
        "group_means": means,
        "covariance": _covariance(n_features, correlation),
        "coef": coef,
        "intercept": float(intercept),
        "category_shares": _category_shares(shift, n_categories),
    }
    group, columns, target, category = _draw(n_samples, population, rng)
    return as_bunch(
        *_as_pandas(columns, category, target, group),
        "biased",
        as_frame,
        return_X_y,
        proba_target=_proba_target(columns, population),
        proba_sensitive=_proba_sensitive(columns, category, population),
        group_names=[f"g{s}" for s in range(len(group_shares))],
        **population,
    )


# ---------------------------------------------------------------------------------------------
# The population


def _covariance(n_features: int, correlation: float) -> Floats:
    lowest = -1 / (n_features - 1) if n_features > 1 else -1.0
    if not lowest < correlation < 1:
        raise InputError(
            f"correlation={correlation!r} must lie between {lowest:g} and 1, both excluded, where "
            f"n_features={n_features}.",
            parameter="correlation",
        )
    return (1 - correlation) * np.eye(n_features) + correlation


def _category_shares(shift: Floats, n_categories: int) -> Floats:
    from scipy.special import softmax

    if n_categories == 0:
        return np.empty((len(shift), 0))
    return np.asarray(softmax(np.outer(shift, np.linspace(1, -1, n_categories)), axis=1))


# ---------------------------------------------------------------------------------------------
# Rows of the population


def _draw(
    n_samples: int, population: dict[str, Any], rng: np.random.RandomState
) -> tuple[NDArray[np.intp], Floats, NDArray[np.int64], NDArray[np.intp] | None]:
    shares, means = population["group_shares"], population["group_means"]
    group = rng.choice(len(shares), size=n_samples, p=shares)
    noise = rng.standard_normal((n_samples, means.shape[1]))
    numbers = means[group] + noise @ np.linalg.cholesky(population["covariance"]).T
    target = (rng.uniform(size=n_samples) < _proba_target(numbers, population)).astype(np.int64)
    category = _draw_category(population["category_shares"][group], rng)
    return group, numbers, target, category


def _draw_category(shares: Floats, rng: np.random.RandomState) -> NDArray[np.intp] | None:
    if shares.shape[1] == 0:
        return None
    upper = shares.cumsum(axis=1)[:, :-1]  # without the last sum, which rounding may leave below 1
    return np.asarray((rng.uniform(size=(len(shares), 1)) >= upper).sum(axis=1))


def _proba_target(numbers: Floats, population: dict[str, Any]) -> Floats:
    """Return P(Y=1|x), shape (n,)."""
    from scipy.special import expit

    return np.asarray(expit(population["intercept"] + numbers @ population["coef"]))


def _proba_sensitive(
    numbers: Floats, category: NDArray[np.intp] | None, population: dict[str, Any]
) -> Floats:
    """Return P(S=s|x, category) by Bayes' rule, shape (n, n_groups)."""
    from scipy.special import softmax

    means = population["group_means"]
    direction = np.linalg.solve(population["covariance"], means.T)  # covariance⁻¹·mean
    # The covariance is the same in all groups, so the quadratic part in x cancels.
    log_weight = numbers @ direction - 0.5 * np.sum(means.T * direction, axis=0)
    log_weight += np.log(population["group_shares"])
    if category is not None:
        with np.errstate(divide="ignore"):  # a share may underflow to 0
            log_weight += np.log(population["category_shares"].T[category])
    return np.asarray(softmax(log_weight, axis=1))


def _as_pandas(
    numbers: Floats,
    category: NDArray[np.intp] | None,
    target: NDArray[np.int64],
    group: NDArray[np.intp],
) -> tuple[Any, Any, Any]:
    import pandas as pd

    data = pd.DataFrame(numbers, columns=[f"x{j}" for j in range(numbers.shape[1])])
    if category is not None:
        data["category"] = [f"c{value}" for value in category]
    groups = pd.Series([f"g{value}" for value in group], name="group")
    return data, pd.Series(target, name="target"), groups


# ---------------------------------------------------------------------------------------------
# Parameters


def _check_shares(group_shares: Sequence[float]) -> Floats:
    def refuse(rule: str) -> InputError:
        return InputError(f"group_shares={group_shares!r} {rule}", parameter="group_shares")

    try:
        shares = np.asarray(group_shares, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise refuse("must be numbers.") from error
    if shares.ndim != 1 or len(shares) < 2:
        raise refuse("must list two or more groups, e.g. (0.7, 0.3).")
    if not (np.isfinite(shares).all() and (shares > 0).all()):
        raise refuse("must be positive.")
    total = float(shares.sum())
    if abs(total - 1) > 1e-9:
        raise refuse(f"must sum to 1, not to {total:g}. Divide each share by the sum.")
    return shares / total
