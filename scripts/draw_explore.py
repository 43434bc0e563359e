"""Draw docs/images/explore.png: the page of `commod explore` on COMPAS, in Chromium.

Run with `python scripts/draw_explore.py`. Playwright and Chromium must be installed.
"""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from commod import ControlledDebiaser, explore
from commod.datasets import load_compas

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "explore.png"


def main() -> None:
    """Fit, edit one column away on the page, and draw what is on the screen."""
    data = load_compas()
    parts = train_test_split(
        data.data, data.target, data.sensitive_features, test_size=0.5, random_state=0
    )
    X_train, X, y_train, y, _, groups = parts
    texts = make_column_selector(dtype_exclude="number")
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), texts), remainder="passthrough"
    )
    model = make_pipeline(encoder, LogisticRegression(max_iter=2000)).fit(X_train, y_train)
    update = ControlledDebiaser(model, target=0.8, favorable_label=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        update.fit(X, y, sensitive_features=groups)
    names = {0: "low risk", 1: "high risk"}
    chromium = shutil.which("chromium")
    with (
        explore(update, X, y, sensitive_features=groups, label_names=names) as served,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(served.url)
        page.wait_for_selector('#segments[aria-busy="false"]')
        page.get_by_label("Your name").fill("Ada")
        page.get_by_role("button", name="Lock").first.click()
        page.wait_for_selector("#history li:nth-child(2)")
        page.wait_for_selector('#segments[aria-busy="false"]')
        page.screenshot(path=PICTURE)
        browser.close()
    with Image.open(PICTURE) as picture:  # few colours need a third of the bytes
        picture.convert("RGB").quantize(64).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
