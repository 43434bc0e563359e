"""
Fit where the table is: a DuckDB frame
======================================

A table of millions of decisions need not come into memory. ``fit_frame`` is the same fit as
``fit``. A table of at most a million rows comes whole. Of a larger one, points come from the rows
with the smallest hash of the key, and the engine counts the cut and all figures on all rows.

Here the 60,000 rows are fitted once in memory and once in DuckDB, and both give the same
scorecard. The picture shows the rates of both regions before and after. DuckDB counts them on all
60,000 rows, which are the fit rows. The patch writes the same decisions as a query.
"""

# %%
# A table of loans that DuckDB makes up. Any relation, also over Parquet files, works alike.

import duckdb
import matplotlib.pyplot as plt

from commod import ControlledDebiaser, ScoreColumn

loans = duckdb.sql(
    """
    SELECT *, 1 / (1 + exp(-(income - 0.5 * debt - 0.2))) AS score
    FROM (
        SELECT i AS id, CASE WHEN i % 5 < 2 THEN 'west' ELSE 'east' END AS region,
               (i * 7919) % 1009 / 500 - 1 + 0.8 * (i % 5 >= 2)::INT AS income,
               (i * 104729) % 1013 / 500 - 1 AS debt
        FROM range(60000) AS numbers(i))
    """
)
update = ControlledDebiaser(ScoreColumn("score"), target=0.8)
named = {"sensitive_features": "region", "features": ["income", "debt"], "key": "id"}
update = update.fit_frame(loans, **named)
print(update.status_)
in_memory = ControlledDebiaser(ScoreColumn("score"), target=0.8).fit_frame(loans.df(), **named)
print(f"The same scorecard in memory: {in_memory.scorecard_ == update.scorecard_}")

# %%
# Apply the patch in DuckDB and count there.

decided = update.to_patch().apply(loans, score="score")
counts = decided.aggregate("region, avg((score > 0.5)::INT), avg(commod_decision)").fetchall()
rates = {region: (before, after) for region, before, after in sorted(counts)}

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
for place, (before, after) in enumerate(rates.values()):
    ax.plot([before, after], [place, place], color="#9aa5b1", linewidth=3, zorder=0)
    ax.plot(before, place, "o", color="white", markeredgecolor="#9aa5b1", mew=3, markersize=14)
    ax.plot(after, place, "o", color="#1f6f8b", markersize=14)
ax.set_yticks(range(2), list(rates))
ax.set_ylim(-0.6, 1.6)
ax.xaxis.set_major_formatter("{x:.0%}")
ax.set_xlabel("share of approved loans, on all rows: before ○, after ●")
ax.set_title(f"P-rule {update.base_fairness_:.2f} → {update.fairness_:.2f}", loc="left")
ax.spines["left"].set_visible(False)
ax.tick_params(axis="y", length=0)
plt.show()
