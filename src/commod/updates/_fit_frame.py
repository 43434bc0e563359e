"""Give `ControlledDebiaser` its method `fit_frame`: fit where the table is."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Self

from commod.exceptions import TargetWarning


class FitsFrames:
    """A part of `ControlledDebiaser`: fit on a frame that stays in its engine."""

    estimator: Any
    reached_: bool
    promised_: bool | None
    change_rate_: float
    status_: str
    stated: Any
    _as_it_was_on_error: Any

    def fit_frame(
        self,
        frame: Any,
        *,
        sensitive_features: str | Sequence[str],
        y_true: str | None = None,
        sample_weight: str | None = None,
        features: Sequence[str] | None = None,
        key: str | None = None,
    ) -> Self:
        """Fit the update on a table that stays where it is, such as in DuckDB or Spark.

        It is the same fit as `fit`. A table of at most a million rows comes whole. Of a larger
        table, the rows with the smallest hash of the key come onto this machine, and points come
        from them. The engine counts groups, rates, the exact limit, the cut and all figures on all
        rows. A base model that is no `ScoreColumn` scores the rows by batches, where they are.

        Parameters
        ----------
        frame : DuckDB relation, polars (lazy) frame, PySpark frame, pyarrow table or dataset, \
pandas frame, or path of Parquet files
            One row per person. A path may be a file, a folder or a pattern (``lake/*.parquet``).
        sensitive_features : str or list of str
            Column with the group of each row. Several columns mean their intersections.
        y_true : str, default=None
            Column with the true labels. May be None for demographic parity.
        sample_weight : str, default=None
            Column with the weight of each row; see `fit`.
        features : list of str, default=None
            The columns that the update may use. None: all columns that no other parameter names
            and, where a base model knows its columns, that it reads. X of `predict` has these
            columns and the column of scores. With a base model, X has the columns of the model
            first, and then the others.
        key : str, default=None
            Column of whole numbers or text that differs from row to row. Folds, and the rows that
            points come from, go by a hash of it, which is the same in every engine. So every engine
            and every order of the rows gives the same update. None: they go by the content of the
            rows, or by their number where a table does not come whole.

        Returns
        -------
        self

        Examples
        --------
        >>> import duckdb
        >>> from commod import ControlledDebiaser, ScoreColumn
        >>> people = duckdb.sql(
        ...     '''SELECT i AS id, i % 3 = 0 AS minority, (i * 7919) % 1000 / 1000 AS income,
        ...               0.2 + 0.5 * income + CASE WHEN minority THEN 0 ELSE 0.2 END AS score
        ...        FROM range(60000) AS t(i)'''
        ... )
        >>> update = ControlledDebiaser(ScoreColumn("score"), target=0.8)
        >>> update = update.fit_frame(people, sensitive_features="minority", key="id")
        >>> bool(update.expected_fairness_ >= 0.8), update.n_rows_
        (True, 60000)
        """
        from commod.updates._frames.columns import name_columns
        from commod.updates._frames.fit import fit_frame
        from commod.updates._frames.models import score_column

        conditions = [one.within.column for one in self.stated().constraints if one.within]
        named = name_columns(
            self.estimator,
            sensitive_features,
            conditions,
            features,
            y_true=y_true,
            sample_weight=sample_weight,
            key=key,
        )
        scoring = score_column(self, frame, named)
        with self._as_it_was_on_error(), scoring as (scored, with_score):
            fit_frame(self, scored, with_score)
        if not self.reached_ or self.promised_ is False:
            warnings.warn(self.status_, TargetWarning, stacklevel=2)
        return self
