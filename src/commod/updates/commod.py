"""COMMOD: the paper's update, a ratio trained against an adversary that predicts the group."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from commod._data.disclosure import MIN_CATEGORY_SIZE
from commod._data.encoding import Encoding, TermTable
from commod._data.parameters import check_choice, check_number
from commod._solvers.problem import RatioSchedule, TrainedLayers, raw_scorecard
from commod.exceptions import InputError
from commod.metrics._language import AllOf
from commod.scorecard import new_decisions
from commod.updates._fit_rows import FitRows
from commod.updates._interface import (
    FittedCandidate,
    Grid,
    RawRows,
    Sweep,
    check_grid,
    check_no_bounds,
)
from commod.updates._status import calibration_of, n_small_terms
from commod.updates._trained import (
    TRAINING,
    Moments,
    check_trainable,
    check_training,
    fit_together,
    raw_network,
    readable_concepts,
)
from commod.updates.base import LARGEST_WEIGHT, naming_successors
from commod.updates.ratio import Network, RatioFunction, RatioUpdate

DEFAULT_GRID = {
    "lambda_fair": (0.0, 0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 4.5, 7.0, 10.0),
    "lambda_ratio": (0.05, 0.1, 0.2, 0.5),
}
SWEEP_SIZE = 64  # models of a sweep that are trained together: bounds memory
ARCHITECTURES = ("concepts", "mlp")
CONCEPT_ATTRIBUTES = ("concept_weights_", "concept_contributions_", "intercept_")

# `COMMOD.as_in_the_paper` says which sentence of the paper each setting comes from.
PAPER_SETTINGS: dict[str, Any] = {"architecture": "concepts", "threshold": 0.5}
PAPER_TRAINING: dict[str, Any] = {
    "adaptive_fairness": False,
    "reads_score": False,
    "concepts_by_column": False,
    "init": "zero",
    "adversary_hidden": (64, 32, 16),
}


class COMMOD(RatioUpdate):
    """The smallest explainable update of a fitted classifier, trained as in the COMMOD paper.

    The edited score is g(x) = sigmoid(r(x)·z(x) + logit(threshold)) with z the margin of the base
    model. The ratio r(x) = b + Σ_j v_j (W_j · x) is a linear combination of k sparse concepts or,
    for comparison, a small network. A decision changes exactly where r(x) < 0. Only `fit` sees the
    sensitive features.

    Each epoch of `fit` does this:

    1. Shuffle the rows and cut them into batches.
    2. On each batch, train each adversary for some steps to predict the group from the
       edited margin r(x)·z(x). There is one adversary per constraint.
    3. Take one step on r: lower the loss of the labels, raise the adversaries' losses (weight
       `lambda_fair`), keep r near 1 (`lambda_ratio`), shrink the concepts (`lambda_sparsity`) and
       keep them apart (`lambda_diversity`).

    The first epochs, `training["warmup_epochs"]`, train the adversaries only.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model f. It is never refitted.
    constraints : str or object of commod.constraints, default="demographic_parity"
        What the adversary looks at: "demographic_parity" (the edited margin), "equalized_odds" (the
        margin and the true label), "true_positive_rate_parity" or "false_positive_rate_parity"
        (rows of one true label), "accuracy_parity" (whether, and by how much, the decision is
        right). Within a column, it also sees the stratum. ``A & B`` are two adversaries. There is
        no target: a bound is refused, and so are other constraints of `commod.constraints`.
    architecture : str, default="concepts"
        What r is. "concepts": a bottleneck of sparse concepts, which is a scorecard. "mlp": a
        network of hidden layers, which need not be linear and has no scorecard.
    n_concepts : int, default=2
        k, the number of concepts, for "concepts".
    lambda_fair : float, default=2.0
        Weight of each adversary's loss: how much fairness matters. 0 ignores fairness.
    lambda_ratio : float, default=0.1
        Weight of mean (r − 1)², an upper bound of the share of changed decisions.
    lambda_sparsity : float, default=0.003
        Weight of the L1 path norm ``Σ_j |v_j| ‖W_j‖₁``, in standard deviations of the terms. An
        "mlp" has no concepts and ignores this weight and the next.
    lambda_diversity : float, default=0.1
        Weight of the mean squared cosine between concepts.
    epochs : int, default=150
        Passes over the rows in which r is trained. 0 leaves r = 1: nothing changes.
    training : mapping, default=None
        Details of the training; what it leaves out keeps its default:

        - ``"batch_size"`` (512): rows per step; batches of an epoch differ by at most one row.
        - ``"learning_rate"`` (0.01): Adam's step for r; it falls to 0 along a cosine, as the
          adversary's does.
        - ``"adversary_hidden"`` ((32,)): sizes of the adversary's hidden layers (ReLU). See
          docs/decisions for why it is small.
        - ``"adversary_steps"`` (10): steps of the adversary for each step of r.
        - ``"adversary_learning_rate"`` (0.003): Adam's step for the adversary.
        - ``"adaptive_fairness"`` (True): lower the weight of fairness as the adversary loses its
          advantage: from 5 `lambda_fair` at the base model to `lambda_fair` where the group cannot
          be predicted. Each of several adversaries has its own factor. This gives a smooth
          trade-off. False keeps the paper's constant weight, where the trade-off tends to jump.
        - ``"warmup_epochs"`` (10): epochs before `epochs` in which only the adversary is trained.
        - ``"ramp_epochs"`` (20): epochs over which `lambda_fair` grows from 0 to its value.
        - ``"init"`` ("balanced"): where training starts; r = 1 either way. "balanced": equal v, and
          random concepts in pairs that cancel, so that every term can move at once. "zero": v = 0
          and random concepts. An "mlp" ignores it.
        - ``"hidden"`` ((64,)): sizes of the hidden layers (ReLU) of an "mlp"; () makes r linear,
          without concepts.
        - ``"reads_score"`` (False): let r also read the base model's margin, logit(score) −
          logit(threshold). The changed rows then need not be a half-space of X.
        - ``"concepts_by_column"`` (True): show a partition of r in place of the trained concepts.
          Each raw column lies in one concept, and columns whose contributions to r are correlated
          share one. False keeps the concepts as they were trained. The update is the same.
        - ``"progress"`` (None): show a progress bar; None shows it on a terminal only.
    locked_features : collection of str, default=()
        Columns that r must not read; the base model still gets them.
    min_category_size : int, default=20
        People that a category or "missing" needs to get points: fit rows with a positive weight.
        Rarer categories count as unseen. Below 20, the library's bar for naming a value,
        `status_` and the patch say how many terms rest on fewer people.
    min_group_size : int, default=30
        Fit rows that a group needs to be part of the constraint. Smaller ones are left out; see
        `groups_left_out_`.
    threshold : float, default=0.5
        The base decision is score > threshold.
    pos_label : label, default=None
        The label whose rates count. If None, `favorable_label`, or else `classes_[1]`.
    favorable_label : label, default=None
        The label that is good for the person; `pos_label` if None. Only names directions.
    random_state : int, RandomState or None, default=None
        Same seed, same machine: the same bits.

    Attributes
    ----------
    scorecard_ : Scorecard or None
        r and its concepts as points on the raw columns; None for an "mlp".
    concept_weights_ : ndarray of shape (k, d)
        W per standard deviation of a term: rows of norm 1, exact zeros. It is a partition by
        column, and not the trained W, unless `training` asks for the latter. An "mlp" has
        neither this attribute nor the next two.
    concept_contributions_ : ndarray of shape (k,)
        v, sorted by size; a positive contribution raises r, which keeps decisions.
    intercept_ : float
        Mean of r over the fit rows.
    network_ : Network or None
        The layers of an "mlp".
    term_names_ : list of str
        Names of the d terms.
    history_ : dict of str to list of float
        Mean of each loss term and of the share of changes, per epoch. The loss of the adversary is
        "adversary"; several have "adversary_1", "adversary_2" and so on.
    n_iter_ : int
        Epochs done; less than `epochs` after a keyboard interrupt.
    fairness_, base_fairness_, accuracy_, base_accuracy_, change_rate_ : float
        Figures of the update and of the base model on the fit rows. The fairness is that of the
        first constraint; `status_` has the others.
    outscoring_ : dict
        For "gain" and "loss": how those who change score; see `metrics.outscoring_probability`.
    n_gains_, n_losses_, n_rows_ : int
        People who gain and who lose the favourable outcome, and the number of fit rows. Totals do
        not count people of groups left out with fewer than five rows.
    groups_left_out_ : tuple of LeftOutGroup
        The groups with fewer than `min_group_size` rows: `name`, `n`, `rate_before`, `rate_after`.
        A saved update keeps `n` alone.
    status_ : str
        The same figures in sentences.

    Notes
    -----
    The data identify only the total w = v'W: other concepts with the same total are the same
    update. `scorecard_` therefore shows the total beside the concepts. `docs/decisions` explains
    how the losses of the paper are read. `COMMOD.as_in_the_paper` has the paper's settings. Without
    y (demographic parity only) the base model's scores replace the labels.

    References
    ----------
    Di Gennaro, Laugel, Grari, Detyniecki: "Controlled Model Debiasing through Minimal and
    Interpretable Updates", TMLR 2025.

    Examples
    --------
    >>> from commod import COMMOD
    >>> from commod.datasets import make_biased
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> update = COMMOD(model, lambda_fair=3, random_state=0)
    >>> update = update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> bool(update.fairness_ > update.base_fairness_)
    True
    >>> update.predict(data.data).shape
    (800,)
    """

    network_: Network | None

    @naming_successors
    def __init__(
        self,
        estimator: Any,
        *,
        constraints: Any = "demographic_parity",
        architecture: str = "concepts",
        n_concepts: int = 2,
        lambda_fair: float = 2.0,
        lambda_ratio: float = 0.1,
        lambda_sparsity: float = 0.003,
        lambda_diversity: float = 0.1,
        epochs: int = 150,
        training: Mapping[str, Any] | None = None,
        locked_features: Collection[str] = (),
        min_category_size: int = MIN_CATEGORY_SIZE,
        min_group_size: int = 30,
        threshold: float = 0.5,
        pos_label: Any = None,
        favorable_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.constraints = constraints
        self.architecture = architecture
        self.n_concepts = n_concepts
        self.lambda_fair = lambda_fair
        self.lambda_ratio = lambda_ratio
        self.lambda_sparsity = lambda_sparsity
        self.lambda_diversity = lambda_diversity
        self.epochs = epochs
        self.training = training
        self.locked_features = locked_features
        self.min_category_size = min_category_size
        self.min_group_size = min_group_size
        self.threshold = threshold
        self.pos_label = pos_label
        self.favorable_label = favorable_label
        self.random_state = random_state

    @classmethod
    def as_in_the_paper(cls, estimator: Any, **params: Any) -> Self:
        """Return an unfitted COMMOD with the paper's settings instead of our defaults.

        The paper states these settings; some are keys of `training`:

        - r reads X (section 5; appendix C.1 also has the logit): ``"reads_score": False``.
        - r combines linear concepts linearly (section 5.2): `architecture="concepts"`; concepts
          are the trained weights: ``"concepts_by_column": False``.
        - The weight of L_S is a constant (the loss in section 5.3): ``"adaptive_fairness": False``.
        - A decision is positive where g(x) > 0.5 (section 5): `threshold=0.5`.

        The paper is silent about these settings, and the plainest reading is taken:

        - The start: v = 0 and random W, so that r = 1 (``"init": "zero"``).
        - The adversary has "non-linear activations" (section 5.3), but no size: layers of 64, 32
          and 16 units, as in other code of the authors' group.
        - Optimiser, learning rates, epochs, batches, scaling of features, "epoch gates" (appendix
          C.1): our defaults.

        Where formulas contradict each other, docs/decisions/0001 says how they are read.

        Parameters
        ----------
        estimator : fitted classifier or ScoreColumn
            The base model f.
        **params
            Other parameters of COMMOD. The paper has `n_concepts` 2 (Law School) and 5 (COMPAS)
            (section 6.1); `lambda_fair` up to 10, `lambda_ratio` up to 0.5, weights of concepts up
            to 1 (appendix C.2).

        Returns
        -------
        COMMOD

        Examples
        --------
        >>> from commod.datasets import make_biased
        >>> from sklearn.linear_model import LogisticRegression
        >>> data = make_biased(800, random_state=0)
        >>> model = LogisticRegression().fit(data.data, data.target)
        >>> update = COMMOD.as_in_the_paper(model, lambda_fair=6, epochs=60, random_state=0)
        >>> update.training["init"], update.training["adversary_hidden"]
        ('zero', (64, 32, 16))
        >>> update = update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
        >>> bool(update.fairness_ > update.base_fairness_)
        True
        """
        return cls(estimator, **paper_settings(params))

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        ratio_weight: Any = None,
    ) -> Self:
        """Fit the update, best on rows that are new to the base model.

        Parameters
        ----------
        X : table of shape (n, n_features)
            NumPy array, pandas or polars frame; passed to the base model untouched.
        y : array-like of shape (n,)
            True labels. May be None for demographic parity.
        sensitive_features : array-like of shape (n,) or (n, n_sensitive)
            The group of each row; several columns mean their intersections.
        sample_weight : array-like of shape (n,), default=None
            Weight of each row in the losses, in fairness and in accuracy. Changes are counted in
            people, whatever their weight.
        ratio_weight : array-like of shape (n,), default=None
            Extra weight of each row in the ratio loss: how much a change of this row costs.

        Returns
        -------
        self

        Notes
        -----
        A keyboard interrupt ends the training, not the program. The update keeps what it has
        learned so far; `status_` and a warning say so.
        """
        with self._as_it_was_on_error():
            fit_together([self], X, y, sensitive_features, sample_weight, ratio_weight)
        return self

    def _stated(self) -> AllOf:
        """Return the constraints, one adversary each; figures are those of the first."""
        asked = super()._stated()
        check_no_bounds(asked, "COMMOD", "lambda_fair")
        check_trainable(asked.constraints)
        return asked

    def _bounds(self) -> tuple[None, ...]:
        """Return None for each constraint: none has a bound."""
        return (None,) * len(self._stated().parts)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.architecture, "architecture", ARCHITECTURES)
        for name in ("lambda_fair", "lambda_ratio", "lambda_sparsity", "lambda_diversity"):
            check_number(self, name, low=0.0, high=LARGEST_WEIGHT)
        check_number(self, "epochs", low=0, whole=True)
        for name in ("n_concepts", "min_category_size"):
            check_number(self, name, low=1, whole=True)
        check_training(self.training)

    @property
    def _training(self) -> dict[str, Any]:
        """Return all details of the training of the last fit, with defaults for the others."""
        return {**TRAINING, **(self._fitted_param("training") or {})}

    def _schedule(self) -> RatioSchedule:
        given = self._training
        return RatioSchedule(
            n_concepts=0 if self.architecture == "mlp" else int(self.n_concepts),
            epochs=int(self.epochs),
            hidden=tuple(map(int, given["hidden"])),
            batch_size=int(given["batch_size"]),
            warmup_epochs=int(given["warmup_epochs"]),
            ramp_epochs=int(given["ramp_epochs"]),
            learning_rate=float(given["learning_rate"]),
            adversary_hidden=tuple(map(int, given["adversary_hidden"])),
            adversary_steps=int(given["adversary_steps"]),
            adversary_learning_rate=float(given["adversary_learning_rate"]),
            adaptive_fairness=bool(given["adaptive_fairness"]),
            init=given["init"],
        )

    def _store(
        self,
        rows: FitRows,
        encoding: Encoding,
        terms: TermTable,
        moments: Moments,
        trained: TrainedLayers,
        i: int,
    ) -> None:
        """Store the i-th trained model: r, history and figures on the fit rows."""
        self.term_names_, self.network_, self.scorecard_ = encoding.term_names, None, None
        if self.architecture == "mlp":
            self.network_ = raw_network(encoding, trained.of_model(i), terms, rows.weight)
            for name in CONCEPT_ATTRIBUTES:  # an earlier fit may have set them
                self.__dict__.pop(name, None)
        else:
            whole = bool(self._training["concepts_by_column"])
            known = encoding, terms, rows.weight, moments
            concepts = readable_concepts(trained.concepts(i), *known, whole_columns=whole)
            self.concept_weights_, self.intercept_ = concepts.weights, concepts.intercept
            self.concept_contributions_ = concepts.contributions
            self.scorecard_ = raw_scorecard(encoding, concepts, *moments[:2])
        self.history_ = {name: values[i].tolist() for name, values in trained.history.items()}
        self.n_iter_ = trained.epochs_done
        ratio = self._ratio_function().evaluate(terms)
        self._why_uncalibrated, self.calibration_ = calibration_of(rows, ratio, "all")
        self._store_outcome(rows, new_decisions(rows.base, ratio))
        if self.scorecard_ is not None:
            n_small = n_small_terms(terms.n_people(rows.weight), self.scorecard_.points)
            self._facts = replace(self._facts, n_small_terms=n_small)
        notes = []
        if trained.interrupted:
            notes.append(f"Training was interrupted after {self.n_iter_} of {self.epochs} epochs.")
        is_known = not np.isnan(self.base_fairness_)
        if self.n_iter_ and not self.change_rate_ and self.lambda_fair and is_known:
            notes.append(
                f"No decision changes at lambda_fair={self.lambda_fair:g} and lambda_ratio="
                f"{self.lambda_ratio:g}: raise the first or lower the second to change some."
            )
        self._note(*notes)

    # -- applying -----------------------------------------------------------------------------

    def _reads_margin(self) -> bool:
        return bool(self._training["reads_score"])

    def _ratio_function(self) -> RatioFunction:
        return super()._ratio_function() if self.network_ is None else self.network_

    # -- internal interface: see _interface.py -----------------------------------------------------

    def _sweep(
        self, rows: RawRows, targets: Sequence[float] | None = None, grid: Grid | None = None
    ) -> Sweep:
        """Return fitted copies at every combination of the grid (None: `DEFAULT_GRID`)."""
        if targets is not None:
            raise InputError("COMMOD has lambdas, not targets: pass grid={'lambda_fair': [...]}.")
        check_grid(grid)
        grid = DEFAULT_GRID if grid is None else grid
        settings = [dict(zip(grid, v, strict=True)) for v in itertools.product(*grid.values())]
        if not grid or not settings:
            raise InputError("grid is empty: give at least one value of one lambda.")
        X, y, groups = rows
        candidates: list[FittedCandidate] = []
        for start in range(0, len(settings), SWEEP_SIZE):
            batch = settings[start : start + SWEEP_SIZE]
            models = fit_grid(self, batch, X, y, sensitive_features=groups)
            candidates += map(FittedCandidate, batch, models)
        for candidate in candidates:
            if candidate.update.scorecard_ is not None:
                candidate.settings["n_terms"] = candidate.update.scorecard_.n_terms_used
        return Sweep(candidates, candidates[0].update)


def paper_settings(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the paper's settings and the user's other parameters as one dictionary.

    Raises InputError where the user asks for another value of a setting of the paper.

    Examples
    --------
    >>> paper_settings({"lambda_fair": 3})["lambda_fair"]
    3
    >>> paper_settings({"training": {"adaptive_fairness": True}})
    Traceback (most recent call last):
    commod.exceptions.InputError: adaptive_fairness=True is not the paper's: ...
    """
    training = check_training(params.get("training"))
    for stated, given in ((PAPER_SETTINGS, params), (PAPER_TRAINING, training)):
        for name, setting in stated.items():
            value = given.get(name, setting)
            value = tuple(value) if isinstance(value, list) else value
            if type(value) is not type(setting) or value != setting:
                raise InputError(
                    f"{name}={given[name]!r} is not the paper's: COMMOD.as_in_the_paper sets "
                    f"{name}={setting!r}. Leave it out, or use COMMOD itself.",
                    parameter=name if given is params else "training",
                )
    return {**params, **PAPER_SETTINGS, "training": {**training, **PAPER_TRAINING}}


def fit_grid(
    update: COMMOD,
    settings: Iterable[dict[str, Any]],
    X: Any,
    y: Any = None,
    *,
    sensitive_features: Any = None,
    sample_weight: Any = None,
    ratio_weight: Any = None,
) -> list[COMMOD]:
    """Return fitted copies of `update`, one for each setting; the rows are read once.

    A setting may change `lambda_fair`, `lambda_ratio`, `lambda_sparsity`, `lambda_diversity` and
    `random_state`; the copies share all other parameters. Each copy equals one fitted alone. On a
    GPU this holds up to rounding, which strong weights of fairness amplify with each epoch. Copies
    whose `random_state` is None share one random seed: give each its own to compare seeds.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> weak, strong = fit_grid(
    ...     COMMOD(model, random_state=0),
    ...     [{"lambda_fair": 1}, {"lambda_fair": 5}],
    ...     data.data,
    ...     data.target,
    ...     sensitive_features=data.sensitive_features,
    ... )
    >>> weak.change_rate_ < strong.change_rate_
    True
    """
    allowed = {"lambda_fair", "lambda_ratio", "lambda_sparsity", "lambda_diversity", "random_state"}
    models = []
    for setting in settings:
        if not allowed.issuperset(setting):
            raise InputError(
                f"A grid may change {', '.join(sorted(allowed))}; got {', '.join(setting)}. "
                "Fit updates with other parameters one by one."
            )
        models.append(clone(update).set_params(**setting))
    if models:
        fit_together(models, X, y, sensitive_features, sample_weight, ratio_weight)
    return models
