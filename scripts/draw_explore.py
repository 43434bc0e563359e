"""Ask the five questions of a validator on the page of `commod explore`, and draw what is seen.

Run with `python scripts/draw_explore.py`. It writes docs/images/explore.png and explore.webp, and
prints what each question takes. Playwright and Chromium must be installed.

The hand is a mouse; only the name and the reason are typed. A person needs time to find a control,
and to read the answer: the script counts ACTION_SECONDS for each action, beside the page.
"""

from __future__ import annotations

import io
import re
import shutil
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from draw_contest import LABELS, read_people
from PIL import Image
from playwright.sync_api import Locator, Page, expect, sync_playwright

from commod import ControlledDebiaser, explore

IMAGES = Path(__file__).parents[1] / "docs" / "images"
SIZE = {"width": 1280, "height": 900}
FRAME = (800, 562)
ACTION_SECONDS = 5.0
MOST_SECONDS = 180.0

# A dot that shows where the mouse is: Chromium's pictures have no pointer.
POINTER = """() => {
  const dot = document.createElement("div");
  Object.assign(dot.style, { position: "fixed", width: "18px", height: "18px", borderRadius: "50%",
    background: "#c2611f", opacity: ".85", zIndex: 9, pointerEvents: "none", left: "-40px" });
  document.body.append(dot);
  addEventListener("mousemove", (event) => {
    dot.style.left = `${event.clientX - 9}px`;
    dot.style.top = `${event.clientY - 9}px`;
  });
}"""


class Hand:
    """A mouse on the page; it counts its actions, and pictures are taken on the way."""

    def __init__(self, page: Page) -> None:
        self.page, self.n_actions = page, 0
        self.frames: list[Image.Image] = []
        self.seconds: list[int] = []  # thousandths that each frame is shown

    def look(self, shown: int) -> None:
        """Take a picture that is shown for some thousandths of a second."""
        picture = Image.open(io.BytesIO(self.page.screenshot())).convert("RGB")
        self.frames.append(picture.resize(FRAME, Image.Resampling.LANCZOS))
        self.seconds.append(shown)

    def click(self, control: Locator) -> None:
        """Point at a control, and click."""
        control.scroll_into_view_if_needed()
        control.hover()
        self.look(500)
        control.click()
        self.n_actions += 1

    def drag(self, slider: Locator, value: float) -> None:
        """Drag a slider with the mouse until it has a value; the figures follow on the way."""
        slider.scroll_into_view_if_needed()
        box = slider.bounding_box()
        assert box is not None
        low, high = (float(slider.get_attribute(end) or 0) for end in ("min", "max"))
        y, thumb = box["y"] + box["height"] / 2, 16.0

        def place(at: float) -> float:
            return box["x"] + thumb / 2 + (at - low) / (high - low) * (box["width"] - thumb)

        start = float(slider.input_value())
        self.page.mouse.move(place(start), y)
        self.page.mouse.down()
        for step in range(1, 5):
            self.page.mouse.move(place(start + step / 4 * (value - start)), y)
            self.page.wait_for_timeout(250)
            self.look(250)
        for pixels in range(-8, 9):  # as a hand that looks at the number
            if float(slider.input_value()) == value:
                break
            self.page.mouse.move(place(value) + pixels, y)
        self.page.mouse.up()
        assert float(slider.input_value()) == value
        self.n_actions += 1

    def write(self, field: Locator, text: str) -> None:
        """Click into a field and type."""
        field.click()
        field.fill(text)
        self.n_actions += 1


def questions(page: Page, hand: Hand) -> list[tuple[str, Callable[[], None], str]]:
    """Return each question: its words, what the hand does, and what the history then says."""

    def save() -> None:
        hand.write(page.get_by_label("Your name"), "Ada")
        hand.write(page.get_by_label("Reason"), "signed off")
        with page.expect_download():
            hand.click(page.get_by_role("button", name="Save", exact=True))

    def lock() -> None:
        for name in ("age", "age_cat"):
            hand.click(page.locator(f'#locked input[value="{name}"]'))
            said(page, rf"locked columns .*{name}")

    return [
        ("fewer losses", lambda: hand.click(page.locator("#gains-only")), "gains_only"),
        ("no age", lock, "age_cat"),
        ("target 0.9", lambda: hand.drag(page.get_by_label("Move the target"), 0.9), "→ 0.9"),
        (
            "at most ten terms",
            lambda: hand.drag(page.get_by_label("Move the number of terms"), 10),
            "→ 10",
        ),
        ("sign", save, "SHA-256"),
    ]


def said(page: Page, words: str) -> None:
    """Wait until the page says that something is done."""
    expect(page.locator("#message")).to_contain_text(re.compile(words))


def main() -> None:
    """Fit, ask the five questions on the page, and draw the page before and on the way."""
    warnings.simplefilter("ignore")
    people = read_people()
    update = ControlledDebiaser(people.model, target=0.8, pos_label=1, favorable_label=0)
    update.fit(**people.fit)
    expect.set_options(timeout=60_000)
    with (
        explore(update, **people.fit, label_names=LABELS) as served,
        sync_playwright() as playwright,
    ):
        chromium = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE)
        page.goto(served.url)
        page.wait_for_selector('#wishes[aria-busy="false"]')
        page.screenshot(path=IMAGES / "explore.png")
        page.evaluate(POINTER)
        hand, total = Hand(page), 0.0
        hand.look(1500)
        for words, ask, done in questions(page, hand):
            n_before, start = hand.n_actions, time.perf_counter()
            ask()
            said(page, done)
            n_actions = hand.n_actions - n_before
            by_page = time.perf_counter() - start
            seconds = by_page + ACTION_SECONDS * n_actions
            hand.look(1500)
            total += seconds
            summary = page.locator("#summary").text_content()
            print(f"| {words} | {n_actions} | {by_page:.1f} | {seconds:.0f} | {summary} |")
        print(f"{hand.n_actions} actions, {total:.0f} seconds, at most {MOST_SECONDS:.0f}")
        assert total <= MOST_SECONDS
        browser.close()
    _store(hand)


def _store(hand: Hand) -> None:
    """Store the picture with few colours, and the frames as one short film."""
    with Image.open(IMAGES / "explore.png") as picture:  # few colours need a third of the bytes
        picture.convert("RGB").quantize(64).save(IMAGES / "explore.png", optimize=True)
    film = IMAGES / "explore.webp"
    first, *others = hand.frames
    options: dict[str, Any] = {"quality": 50, "method": 6, "minimize_size": True, "loop": 0}
    first.save(film, save_all=True, append_images=others, duration=hand.seconds, **options)
    print(f"{film.name}: {len(hand.frames)} frames, {film.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
