"""What an update needs, as tags beside those of scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass

from sklearn.utils import Tags


@dataclass(slots=True)
class UpdateTags(Tags):  # type: ignore[misc]
    """scikit-learn's tags, and what an update needs to learn and to decide.

    Attributes
    ----------
    needs_sensitive_features : bool
        Whether `predict` takes the sensitive features.
    randomised : bool
        Whether random draws decide some rows.
    needs_labels : bool
        Whether `fit` needs y for every constraint; an error-based constraint always needs it.
    needs_tree : bool
        Whether the base model must be a fitted decision tree.
    needs_network : bool
        Whether the method works on the layers of a neural network. They are the base model's layers
        where it is a network; otherwise the method trains a network of its own.
    needs_group_in_model : bool
        Whether the base model must read the group as a column of X.
    trained_anew : bool
        Whether a new model replaces the base model, so that even a small strength changes the
        decisions that retraining alone would change.
    """

    needs_sensitive_features: bool = False
    randomised: bool = False
    needs_labels: bool = False
    needs_tree: bool = False
    needs_network: bool = False
    needs_group_in_model: bool = False
    trained_anew: bool = False
