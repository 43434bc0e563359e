"""Time the page of an update in Chromium: moves of the target, and edits of points.

A move is timed in the browser: from the event of the slider, or of the number, to the frame that
shows the new figures. Every fifth move of the target comes while slower parts of the page are
computed for the update that was kept before.
"""

from __future__ import annotations

import shutil
import time
import tracemalloc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from report import show, show_at_most
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import commod
from commod import ControlledDebiaser
from commod._explore.edits import PeopleOfFit
from commod._explore.server import open_session
from commod.datasets import load_compas, make_biased

N_ROWS = 100_000
MAX_EDIT_SECONDS = 0.3
MOVES = {"COMPAS": 200, "make_biased": 30}
BARS = {"COMPAS": (0.2, 0.5), "make_biased": (1.5, 3.0)}  # seconds: median, worst
N_EDITS = 20
N_STOPS = 2_000
MAX_SAVE_SECONDS = 2.0
MAX_STOPS_MIB = 100.0

# Sets a control, and returns the milliseconds from its event to the frame with the new figures.
MOVE = """([where, value, event]) => new Promise((done) => {
  const control = document.querySelector(where);
  const figures = document.getElementById("figures");
  control.value = String(value);
  figures.setAttribute("data-old", ""); // an answer has none, even with the same figures
  const start = performance.now();
  new MutationObserver((_, observer) => {
    observer.disconnect();
    requestAnimationFrame(() => {
      const channel = new MessageChannel(); // its message comes after the frame is painted
      channel.port1.onmessage = () => done(performance.now() - start);
      channel.port2.postMessage(0);
    });
  }).observe(figures, { attributes: true });
  control.dispatchEvent(new Event(event, { bubbles: true }));
})"""
TARGET = "[data-for=target]"
AT_REST = '#wishes[aria-busy="false"]'


def explore() -> None:
    """Time moves of the target on two tables, and edits on the larger one."""
    stops()
    if shutil.which("chromium") is None:
        show("explore", "Chromium is missing", "", False)
        return
    warnings.simplefilter("ignore")
    with _page(_compas()) as page:
        _moves(page, "COMPAS")
    with _page(_biased()) as page:
        _moves(page, "make_biased")
        _edits(page)


def stops(n_stops: int = N_STOPS) -> None:
    """Time saving after many stops of sliders on COMPAS, and measure the memory that they hold."""
    update, rows = _compas()
    session = open_session(update, PeopleOfFit(**rows))
    names = [name for name, _ in update.scorecard_.rows()]
    tracemalloc.start()
    for i in range(n_stops):
        edit = {names[i % len(names)]: round(0.0005 * (i + 1), 4)}
        session.edit(session._version, edit, by="Ada")
    held = tracemalloc.get_traced_memory()[0] / 2**20
    tracemalloc.stop()
    start = time.perf_counter()
    session.save(by="Ada")
    text = f"explore, COMPAS, {n_stops:,} stops of sliders"
    show_at_most(f"{text}: seconds to save", time.perf_counter() - start, MAX_SAVE_SECONDS)
    show_at_most(f"{text}: MiB held", held, MAX_STOPS_MIB)


def _compas() -> tuple[ControlledDebiaser, dict[str, Any]]:
    """Return an update of COMPAS with 1,850 fit rows."""
    people = load_compas()
    parts = train_test_split(people.data, people.target, people.race, random_state=0, test_size=0.7)
    X, rest, y, y_rest, _, race = parts
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
        remainder="passthrough",
    )
    model = make_pipeline(encoder, LogisticRegression(max_iter=2000)).fit(X, y)
    race = race.where(race == "African-American", "others")
    rows = {"X": rest[:1850], "y": y_rest[:1850], "sensitive_features": race[:1850]}
    return ControlledDebiaser(model, target=0.8, favorable_label=0).fit(**rows), rows


def _biased() -> tuple[ControlledDebiaser, dict[str, Any]]:
    """Return an update of 100,000 rows and 20 columns."""
    data = make_biased(N_ROWS, n_features=18, n_categories=12, random_state=0)
    numbers = data.data.select_dtypes("number")
    model = LogisticRegression(max_iter=1000).fit(numbers.to_numpy()[:5000], data.target[:5000])
    X = numbers.assign(category=data.data["category"])
    X["score"] = model.predict_proba(numbers.to_numpy())[:, 1]
    rows = {"X": X, "y": data.target, "sensitive_features": data.sensitive_features}
    return ControlledDebiaser(commod.ScoreColumn("score"), target=0.8).fit(**rows), rows


@contextmanager
def _page(fitted: tuple[ControlledDebiaser, dict[str, Any]]) -> Iterator[Any]:
    """Yield the page of an update in Chromium, at rest."""
    from playwright.sync_api import sync_playwright

    update, rows = fitted
    with commod.explore(update, **rows) as served, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page()
        page.set_default_timeout(120_000)
        page.goto(served.url)
        page.wait_for_selector(AT_REST)
        yield page
        browser.close()


def _moves(page: Any, table: str) -> None:
    """Time moves of the slider of the target to random places on it."""
    random, times = np.random.default_rng(0), []
    low, high = (float(page.locator(TARGET).get_attribute(end)) for end in ("min", "max"))
    for i in range(MOVES[table]):
        if i % 5 == 4:  # the hand rests, and moves again while slower parts are computed
            page.evaluate(MOVE, [TARGET, round(random.uniform(low, high), 3), "change"])
            page.wait_for_timeout(420 + 60 * int(random.integers(8)))
        place = [TARGET, round(random.uniform(low, high), 3), "input"]
        times.append(page.evaluate(MOVE, place) / 1000)
    median, worst = BARS[table]
    n_rows = page.locator("#figures .big").first.text_content().split(" of ")[1]
    text = f"explore, {table}, {n_rows} rows: seconds from a move of the target to the figures"
    show_at_most(f"{text}, median of {len(times)}", float(np.median(times)), median)
    show_at_most(f"{text}, worst", max(times), worst)


def _edits(page: Any) -> None:
    """Time edits of the points of the first term."""
    for event, part in (("input", "range"), ("change", "number")):
        where, times = f"#terms input[type={part}]", []
        for i in range(N_EDITS):
            page.wait_for_selector(AT_REST)
            value = float(page.locator(where).first.input_value()) * (0.9 if i % 2 else 1.1)
            times.append(page.evaluate(MOVE, [where, value, event]) / 1000)
        text = f"explore, {N_ROWS:,} rows: seconds from an edit ({event}) to the figures"
        show_at_most(f"{text}, median of {N_EDITS}", float(np.median(times)), MAX_EDIT_SECONDS)
        show_at_most(f"{text}, worst of {N_EDITS}", max(times), MAX_EDIT_SECONDS)


if __name__ == "__main__":
    explore()
