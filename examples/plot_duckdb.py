"""
Fit where the table is: a DuckDB frame
======================================

A table of millions of decisions need not come into memory. ``fit_frame`` counts in the engine:
groups, rates, the limit and the offset are exact on all rows. Only a sample of rows comes onto
this machine, to search for the points.

The upper bars compare the 60,000 rows of the table with those that were pulled. The lower ones
show the rates of both regions before and after. They are counted by DuckDB on all 60,000 rows,
which are the fit rows. The patch writes the same decisions as a query.
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
update = update.fit_frame(loans, sensitive_features="region", features=["income", "debt"], key="id")
print(update.status_)

# %%
# Apply the patch in DuckDB and count there.

decided = update.to_patch().apply(loans, score="score")
counts = decided.aggregate("region, avg((score > 0.5)::INT), avg(commod_decision)").fetchall()
rates = {region: (before, after) for region, before, after in sorted(counts)}

plt.rcParams.update({"font.size": 12, "axes.spines.top": False, "axes.spines.right": False})
figure, (top, low) = plt.subplots(
    2, 1, figsize=(7, 4.8), height_ratios=(2, 3), layout="constrained"
)
sizes = [update.n_rows_, update.n_search_rows_]
bars = top.barh(["counted in DuckDB", "pulled as a sample"], sizes, color=["#1f6f8b", "#9aa5b1"])
top.bar_label(bars, [f"{n:,} rows" for n in sizes], padding=4)
top.invert_yaxis()
top.set_xlim(0, 1.25 * sizes[0])
top.set_xticks([])
for place, (before, after) in enumerate(rates.values()):
    low.plot([before, after], [place, place], color="#9aa5b1", linewidth=3, zorder=0)
    low.plot(before, place, "o", color="white", markeredgecolor="#9aa5b1", mew=3, markersize=14)
    low.plot(after, place, "o", color="#1f6f8b", markersize=14)
low.set_yticks(range(2), list(rates))
low.set_ylim(-0.6, 1.6)
low.xaxis.set_major_formatter("{x:.0%}")
low.set_xlabel("share of approved loans, on all rows: before ○, after ●")
low.set_title(f"P-rule {update.base_fairness_:.2f} → {update.fairness_:.2f}", loc="left")
for ax in (top, low):
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
plt.show()
