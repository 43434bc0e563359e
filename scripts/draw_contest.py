"""Draw the three pictures of docs/contest-it.md, and print its table. Run from the root.

    .venv/bin/python scripts/draw_contest.py

The model, the rows and the steps are those of the page. Needs Chromium and Playwright.
"""

from __future__ import annotations

import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

from commod import ControlledDebiaser, audit, explain, explore, metrics, report
from commod.datasets import load_compas
from commod.edit import Round

IMAGES = Path(__file__).parents[1] / "docs" / "images"
COLORS = {"African-American": "#4477aa", "others": "#cc6677"}
LABELS = {0: "low risk", 1: "high risk"}
LICENCE = "c_charge_desc = Driving While License Revoked"
RECORD = ["priors_count", "juv_fel_count", "juv_misd_count", "juv_other_count"]


class People(NamedTuple):
    """The base model, and two tables that it has not seen: to fit on, and to measure on."""

    model: Any
    fit: dict[str, Any]
    held_out: dict[str, Any]


def read_people() -> People:
    """Return the base model and the rows of the README."""
    people = load_compas()
    X, y = people.data, people.target
    race = people.race.where(people.race == "African-American", "others")
    old, new = train_test_split(X.index, test_size=0.6, random_state=0)
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
        remainder=MinMaxScaler(),
    )
    model = make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(X.loc[old], y[old])
    parts = train_test_split(new, test_size=0.5, random_state=0)
    return People(
        model,
        *({"X": X.loc[i], "y": y[i], "sensitive_features": race[i]} for i in parts),
    )


def contested(people: People) -> dict[str, Any]:
    """Return the update after each objection, first to last."""
    rows = people.fit
    first = ControlledDebiaser(people.model, target=0.8, pos_label=1, favorable_label=0)
    gains = ControlledDebiaser(
        people.model, target=0.8, favorable_label=0, direction="gains_only", max_margin=0.2
    )
    first, gains = first.fit(**rows), gains.fit(**rows)
    short = clone(gains).set_params(max_lines=6, monotone=dict.fromkeys(RECORD, -1)).fit(**rows)
    note = "age is off limits"
    ageless = short.edit(
        {"age": "lock", "age_cat": "lock"}, **rows, refit=True, by="Ann", note=note
    )
    note = "no danger to anybody"
    charged = ageless.edit({LICENCE: 0}, **rows, refit=True, by="Ben", note=note)
    signed = charged.edit(Round(0.1), **rows, by="Cleo", note="a clerk adds one digit")
    return {
        "the first update": first,
        "“nobody may lose”": gains,
        "“a longer record must\nnot help”, fewer numbers": short,
        "“not by age”": ageless,
        "“this charge must\nnot count”": charged,
        "“round numbers”: signed": signed,
    }


def main() -> None:
    """Print the figures of each step, and draw the three pictures."""
    warnings.simplefilter("ignore")
    people = read_people()
    updates = contested(people)
    _draw_steps(people, updates)
    *_, ageless, _, signed = updates.values()
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        chromium = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        _draw_page(browser, people, ageless)
        _draw_edits(browser, people, signed, Path(folder) / "report.html")
        browser.close()


def _draw_steps(people: People, updates: dict[str, Any]) -> None:
    """Draw gains to the right and losses to the left for each step, on held-out people."""
    X, y, race = (people.held_out[name] for name in ("X", "y", "sensitive_features"))
    base = people.model.predict(X)
    figure, axis = plt.subplots(figsize=(9.6, 4.2), layout="constrained")
    y_places = np.arange(len(updates))
    ends = {"gain": np.zeros(len(updates)), "loss": np.zeros(len(updates))}
    changes = [update.changes(X) for update in updates.values()]
    for group, color in COLORS.items():
        of_group = (race == group).to_numpy()
        for kind, sign in (("gain", 1), ("loss", -1)):
            counts = [sign * int((getattr(one, kind) & of_group).sum()) for one in changes]
            axis.barh(
                y_places,
                counts,
                0.6,
                left=ends[kind],
                color=color,
                label=group if kind == "gain" else None,
            )
            ends[kind] += counts
    for place, (name, update) in enumerate(updates.items()):
        after = update.predict(X)
        fair = [
            metrics.p_rule(y, decisions, sensitive_features=race, pos_label=label)
            for label in LABELS
            for decisions in (base, after)
        ]
        accuracy = float((after == y).mean())
        people_text = f"{changes[place].n_gains} gain, {changes[place].n_losses} lose"
        print(
            f"{' '.join(name.split())}: fit rows {update.n_gains_} gains, {update.n_losses_} "
            f"losses; held-out {people_text}, P-rule of low risk {fair[0]:.3f} → {fair[1]:.3f}, of "
            f"high risk {fair[2]:.3f} → {fair[3]:.3f}, accuracy {accuracy:.3f}, terms "
            f"{update.scorecard_.n_terms_used}"
        )
        text = f"{people_text}\nP-rule: low risk {fair[1]:.2f}, high risk {fair[3]:.2f}"
        axis.text(ends["gain"][place] + 5, place, text, va="center", fontsize=9)
    print(f"accuracy of the base model {float((base == y).mean()):.3f}")
    axis.set_yticks(y_places, list(updates))
    axis.invert_yaxis()
    axis.axvline(0, color="black", linewidth=0.8)
    axis.set_xlim(min(ends["loss"]) - 10, max(ends["gain"]) + 210)
    axis.set_xlabel(f"people, of {len(X):,} held-out ones: losses ← → gains of “low risk”")
    axis.legend(frameon=False, loc="upper right")
    figure.savefig(IMAGES / "contest.png", dpi=110)
    print(IMAGES / "contest.png")


def _draw_page(browser: Any, people: People, ageless: Any) -> None:
    """Draw the page of `commod explore` after a charge was dropped."""
    page = browser.new_page(viewport={"width": 1280, "height": 1040})
    with explore(ageless, **people.fit, label_names=LABELS) as served:
        page.goto(served.url)
        page.wait_for_selector('#segments[aria-busy="false"]')
        page.get_by_label("Your name").fill("Ben")
        page.get_by_label("Reason").fill("no danger to anybody")
        term = page.locator("tr", has_text=LICENCE)
        term.get_by_role("button", name="Drop").click()
        page.wait_for_selector("#history li:nth-child(2)")
        page.wait_for_selector('#segments[aria-busy="false"]')
        page.evaluate(
            "document.getElementById('columns-title').scrollIntoView({behavior: 'instant'})"
        )
        page.screenshot(path=IMAGES / "contest-page.png")
        _shrink(IMAGES / "contest-page.png")
    page.close()
    print(IMAGES / "contest-page.png")


def _shrink(path: Path) -> None:
    """Store a picture of the screen with few colours: it needs a third of the bytes."""
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(64).save(path, optimize=True)


def _draw_edits(browser: Any, people: People, signed: Any, path: Path) -> None:
    """Draw the section "Edits" of the report on held-out people."""
    X, y, race = (people.held_out[name] for name in ("X", "y", "sensitive_features"))
    why = explain(signed, X)
    result = audit(
        why.y_before,
        why.y_after,
        sensitive_features=race,
        y_true=y,
        X=X,
        explanation=why,
        rows="held-out people",
        label_names=LABELS,
    )
    report(result, path, patch=signed.to_patch(audit=result))
    page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
    page.goto(path.as_uri())
    page.locator("#edits").screenshot(path=IMAGES / "contest-edits.png")
    page.close()
    print(IMAGES / "contest-edits.png")


if __name__ == "__main__":
    main()
