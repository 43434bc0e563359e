"""Time the page of an update in Chromium: edits on the screen, and fits, at 100,000 rows.

An edit is timed in the browser: from the event of the slider, or of the number, to the frame that
shows the new figures. A fit is timed from the request to the new state, beside a fit in Python.
"""

from __future__ import annotations

import shutil
import time
import warnings
from typing import Any

import numpy as np
from report import show, show_at_most
from sklearn.linear_model import LogisticRegression

import commod
from commod import ControlledDebiaser
from commod.datasets import make_biased

N_ROWS = 100_000
N_EDITS = 20
MAX_SECONDS = 0.3
MAX_MORE_SECONDS = 1.0

# Moves the first slider and returns the milliseconds until the figures have changed.
MOVE = """([event, factor]) => new Promise((done) => {
  const slider = document.querySelector("#terms input[type=range]");
  const figures = document.getElementById("figures");
  const start = performance.now();
  new MutationObserver((_, observer) => {
    observer.disconnect();
    requestAnimationFrame(() => done(performance.now() - start));
  }).observe(figures, { childList: true, subtree: true });
  const number = document.querySelector("#terms input[type=number]");
  if (event === "change") {
    number.value = String(number.valueAsNumber * factor);
    number.dispatchEvent(new Event("change"));
  } else {
    slider.value = String(slider.valueAsNumber * factor);
    slider.dispatchEvent(new Event("input"));
  }
})"""


def explore() -> None:
    """Time edits and a fit on the page."""
    chromium = shutil.which("chromium")
    if chromium is None:
        show("explore", "Chromium is missing", f"at most {MAX_SECONDS} s", False)
        return
    from playwright.sync_api import sync_playwright

    data = make_biased(N_ROWS, n_features=8, n_categories=12, random_state=0)
    numbers = data.data.select_dtypes("number")
    model = LogisticRegression().fit(numbers.to_numpy()[:5000], data.target[:5000])
    X = numbers.assign(category=data.data["category"])
    X["score"] = model.predict_proba(numbers.to_numpy())[:, 1]
    update = ControlledDebiaser(commod.ScoreColumn("score"), target=0.8)
    groups = {"sensitive_features": data.sensitive_features}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        update.fit(X, data.target, **groups)
        with commod.explore(update, X, data.target, **groups) as served, sync_playwright() as pw:
            browser = pw.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = browser.new_page()
            page.goto(served.url)
            page.wait_for_selector('#segments[aria-busy="false"]')
            _edits(page)
            _edits(page, in_between=True)
            fit_here = _seconds_of_fit(update, X, data.target, groups)
            _fit(served, fit_here)
            browser.close()


def _edits(page: Any, *, in_between: bool = False) -> None:
    """Time edits after the slower parts of the page; with `in_between`, while these are computed.

    The page asks for the slower parts 0.4 s after an edit.
    """
    while_what = ", while trade-off and rules are computed" if in_between else ""
    for event, what in (("input", "a slider moves"), ("change", "a number is kept")):
        times = []
        for i in range(N_EDITS):
            if in_between:
                page.evaluate(MOVE, ["change", 0.95 if i % 2 else 1.05])
                page.wait_for_timeout(420 + 40 * (i % 8))
            times.append(page.evaluate(MOVE, [event, 0.9 if i % 2 else 1.1]) / 1000)
            page.wait_for_selector('#segments[aria-busy="false"]')  # nothing else is computed
        text = f"explore, {N_ROWS:,} rows: seconds until figures are on the screen, {what}"
        text += while_what
        show_at_most(f"{text}, largest of {N_EDITS}", max(times), MAX_SECONDS)
        show(f"{text}, median", f"{np.median(times):.3f}", "reported")


def _seconds_of_fit(update: Any, X: Any, y: Any, groups: dict[str, Any]) -> float:
    other = ControlledDebiaser(**{**update.get_params(), "target": 0.85})
    start = time.perf_counter()
    other.fit(X, y, **groups)
    return time.perf_counter() - start


def _fit(served: Any, fit_here: float) -> None:
    session = served._session
    start = time.perf_counter()
    session.fit(session.state()["version"], {"target": 0.85})
    while session.state(session._version)["job"]["state"] == "running":
        time.sleep(0.02)
    seconds = time.perf_counter() - start
    text = f"explore, {N_ROWS:,} rows: seconds of a fit beyond those of a fit in Python"
    show_at_most(f"{text} ({fit_here:.1f} s)", seconds - fit_here, MAX_MORE_SECONDS)


if __name__ == "__main__":
    explore()
