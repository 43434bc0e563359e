"""Draw docs/images/report.png: the first screen of a report. Run from the root.

    .venv/bin/python scripts/draw_report.py commod-demo/report.html

Needs Chromium and Playwright, as the tests of the report do.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

IMAGE = Path(__file__).parents[1] / "docs" / "images" / "report.png"


def main(report: Path, image: Path = IMAGE) -> None:
    """Write a screenshot of the first screen of a report."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("Chromium is missing: apt-get install chromium")
    if not report.is_file():
        sys.exit(f"There is no report at {report}: `make demo` writes one.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(
            viewport={"width": 1280, "height": 900}, device_scale_factor=1.25, color_scheme="light"
        )
        page.goto(report.resolve().as_uri())
        page.screenshot(path=image)
        browser.close()
    print(image)


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:] or ["commod-demo/report.html"]))
