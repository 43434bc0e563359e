"""The report in a real browser: Debian's Chromium, driven by Playwright."""

import json
from dataclasses import replace

import audits
import pytest
from sklearn.linear_model import LogisticRegression

from commod import _text, frontier
from commod import audit as make_audit
from commod._reporting.render.explanation_tables import SHOWN_TERMS
from commod._reporting.render.page import render_html
from commod.datasets import make_biased
from quick_updates import quick_control

FULL, STEPS = audits.audit(), audits.trade_off()
SIZES = {"desk": (1280, 860), "phone": (390, 844)}

# Every piece of visible text with its boxes, one per line of text; SVG text as well.
TEXTS = """() => {
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.textContent.trim() || parent.closest("script, style, noscript, .skip")) continue;
    if (!parent.checkVisibility({ visibilityProperty: true })) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      if (box.width < 1 || box.height < 1) continue;
      found.push({ text: node.textContent.trim().slice(0, 40), left: box.left, right: box.right,
                   top: box.top + scrollY, bottom: box.bottom + scrollY });
    }
  }
  return JSON.stringify(found);  // as one text: Playwright takes long for many objects
}"""
CUT = """() => [...document.querySelectorAll("body *")].filter((e) => {
  const style = getComputedStyle(e);
  const hides = [style.overflowX, style.overflowY].some((o) => o !== "visible");
  return hides && !(e instanceof SVGElement) && !e.matches("input, option") && e.clientWidth > 0
    && (e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1);
}).map((e) => e.outerHTML.slice(0, 120))"""
CONTRASTS = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (color) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => c / 255)
      .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const color = rgb(getComputedStyle(e).backgroundColor);
      if (color[3] > 250) return color;
    }
    return [255, 255, 255];
  };
  const all = [...document.querySelectorAll("body *")].filter((e) => e.checkVisibility()
      && !e.closest("script, style, noscript, .skip")
      && [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())).map((e) => {
    const style = getComputedStyle(e);
    const ink = light(rgb(e instanceof SVGElement ? style.fill : style.color));
    const paper = light(ground(e));
    return [(Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05),
            `${e.tagName} ${e.textContent.trim().slice(0, 40)}`];
  });
  return { n: all.length, pale: all.filter(([contrast]) => !(contrast >= 4.5)) };
}"""


@pytest.fixture
def visit(browser, tmp_path):
    """Return a function that opens a report; afterwards nothing must have gone wrong in it."""
    contexts, wrong, requests, places = [], [], [], []

    def open_report(audit=FULL, trade_off=STEPS, size="desk", place=None, **options):
        if place is None:
            place = tmp_path / f"{len(contexts)}.html"
            place.write_text(render_html(audit, trade_off), "utf-8")
        places.append(place.as_uri())
        width, height = SIZES[size]
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: wrong.append(said.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: wrong.append(dialog.message) or dialog.dismiss())
        page.on("request", lambda request: requests.append(request.url))
        page.goto(place.as_uri())
        return page

    yield open_report
    for context in contexts:
        context.close()
    assert wrong == []
    assert requests == places  # each file itself and nothing else


def overlaps(boxes):
    """Return pairs of texts whose boxes meet; boxes are made lower, fonts leave room in them."""
    boxes = sorted(boxes, key=lambda box: box["top"])
    for box in boxes:
        room = 0.2 * (box["bottom"] - box["top"])
        box["top"], box["bottom"] = box["top"] + room, box["bottom"] - room
    assert len(boxes) > 100
    pairs = []
    for i, one in enumerate(boxes):
        for two in boxes[i + 1 :]:
            if two["top"] > one["bottom"] + 20:
                break
            wide = min(one["right"], two["right"]) - max(one["left"], two["left"])
            high = min(one["bottom"], two["bottom"]) - max(one["top"], two["top"])
            if wide > 1 and high > 1:
                pairs.append((one["text"], two["text"]))
    return pairs


def assert_in_order(page):
    width = page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    boxes = json.loads(page.evaluate(TEXTS))
    assert [b for b in boxes if b["left"] < -0.5 or b["right"] > width + 0.5] == []
    assert page.evaluate(CUT) == []
    assert overlaps(boxes) == []


def assert_readable(page):
    contrasts = page.evaluate(CONTRASTS)
    assert contrasts["n"] > 100
    assert contrasts["pale"] == []


def in_every_size(page):
    """Resize the page to every size: to load it again would take longer."""
    for width, height in SIZES.values():
        page.set_viewport_size({"width": width, "height": height})
        yield page


def unfold(page):
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")


@pytest.mark.parametrize(
    ("found", "trade_off"),
    [
        (audits.bare(), None),
        (replace(FULL, card=audits.card(n_lines=400)), audits.trade_off(20, 20)),
    ],
    ids=["bare", "many"],  # full, and of random updates: below
)
def test_nothing_overlaps_is_cut_or_runs_off_the_page(visit, found, trade_off):
    page = visit(found, trade_off)
    unfold(page)
    for resized in in_every_size(page):
        assert_in_order(resized)


LONG = ["long word", "long text"]


def test_hostile_names_are_text_and_break_no_layout(visit):
    first, last = LONG  # they are in the title and in the names that all tables share as well
    names = [first, *(name for name in audits.HOSTILE if name not in LONG), last]
    texts = [audits.HOSTILE[name] for name in names]
    page = visit(*audits.hostile_together(texts))
    page.locator("#step").press("ArrowRight")  # the script puts names in place as well
    unfold(page)
    assert page.locator("img, iframe, object, [onerror], [onload], [onmouseover]").count() == 0
    assert page.locator("script").count() == 2
    assert page.locator("a[href]:not([href^='#'])").count() == 0
    for part in ("table.outcomes", "#why table.scorecard"):
        found = page.locator(f"{part} tbody th").all_text_contents()
        for text in texts:
            assert any(shown.startswith(_text.plain(text)[:40]) for shown in found), text
    strongest = page.locator("[data-part=card] tbody th").all_text_contents()[1:]
    assert len(strongest) == SHOWN_TERMS < len(texts)
    starts = tuple(_text.plain(text)[:40] for text in texts)
    assert all(shown.startswith(starts) for shown in strongest)
    for resized in in_every_size(page):
        assert_in_order(resized)


def test_what_ships_is_text_and_breaks_no_layout_folded_or_not(visit, tmp_path):
    place, text = tmp_path / "shipped.html", audits.HOSTILE["closing"] + audits.HOSTILE["long word"]
    place.write_text(render_html(FULL, STEPS, audits.shipped(text)), "utf-8")
    page = visit(place=place)
    assert page.locator("img, iframe, object, [onerror], [onload], [onmouseover]").count() == 0
    assert page.locator("script").count() == 2  # one data block and the script of the page
    assert "c" * 64 in page.locator("#ships").text_content()
    assert "c" * 64 in page.locator("#sign-off").text_content()
    for resized in in_every_size(page):
        assert_in_order(resized)
    unfold(page)
    for resized in in_every_size(page):
        assert_in_order(resized)


def shown_step(page):
    read = "(fields) => fields.map((field) => [field.dataset.field, field.textContent])"
    return dict(page.locator("[data-field]").evaluate_all(read))  # one call for all fields


def expected_step(step):
    return {
        "target": f"{step.target:g}",
        "fairness": f"{step.fairness:.3f}",
        "changes": f"{step.n_changes:.0f} of 2,164",
        "change_rate": f"{step.change_rate:.1%}",
        "gains": f"{step.n_gains:.0f}",
        "losses": f"{step.n_losses:.0f}",
        "limit": f"{step.limit:.1%}",
        "accuracy": f"{step.accuracy:.1%}",
        "outscoring": f"{step.outscoring:.1%}",
        "outscoring_losses": f"{step.outscoring_losses:.1%}",
        "expected": "not known",
    }


def assert_the_keyboard_reaches_the_answer_first(page):
    for part in ("h1", ".answer > .lead", ".figures .big >> nth=3", ".notice", ".rates svg"):
        box = page.locator(part).bounding_box()
        assert box["y"] + box["height"] < 860
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the report"
    assert page.locator(".skip").bounding_box()["y"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("Tab")
    style = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(style) != "none"


def assert_the_slider_moves_by_keyboard_and_by_its_buttons(page, slider):
    slider.focus()
    assert slider.input_value() == "4"
    page.keyboard.press("ArrowRight")
    assert shown_step(page) == expected_step(STEPS.steps[5])
    page.keyboard.press("Home")
    assert shown_step(page) == expected_step(STEPS.steps[0])
    page.get_by_role("button", name="One step on").click()
    assert shown_step(page) == expected_step(STEPS.steps[1])
    page.get_by_role("button", name="One step back").click()
    page.get_by_role("button", name="One step back").click()  # already the first
    assert shown_step(page) == expected_step(STEPS.steps[0])


def test_the_answer_comes_first_and_the_slider_shows_each_step_of_the_trade_off(visit):
    page = visit()
    assert_the_keyboard_reaches_the_answer_first(page)
    slider = page.locator("#step")
    assert_the_slider_moves_by_keyboard_and_by_its_buttons(page, slider)
    places = set()
    for i, step in enumerate(STEPS.steps):
        slider.fill(str(i))
        assert shown_step(page) == expected_step(step)
        assert f"Step {i + 1} of 8" in slider.get_attribute("aria-valuetext")
        assert f"Step {i + 1} of 8" in page.locator("[data-sentence]").text_content()
        rules = page.locator("[data-part=segments] tbody tr").all_text_contents()
        for rule, text in zip(step.segments.segments, rules, strict=True):
            assert rule.text in text
            assert f"{rule.n_changed} of {rule.size}" in text
        start, *lines = page.locator("[data-part=card] tbody tr").all_text_contents()
        assert _text.points(step.card.intercept) in start
        for line, text in zip(step.card.lines, lines, strict=True):
            assert line.term in text and _text.points(line.points) in text
        dot, marker = page.evaluate(
            """(i) => [document.querySelectorAll(".frontier circle.made")[i],
                       document.querySelector("[data-marker] .core")]
                .map((e) => e.getBoundingClientRect()).map((box) => [box.x, box.y])""",
            i,
        )
        assert marker == pytest.approx(dot, abs=0.2)  # the dot on the chart is the step
        places.add(tuple(marker))
    assert len(places) == 8


def test_the_report_of_the_demo_is_in_order_and_its_first_screen_needs_no_glossary(visit, demo):
    page = visit(place=demo[1] / "report.html")
    first = page.locator("section.answer").inner_text()
    for words in ("people", "gain", "lose", "of 100", "low risk", "high risk", "Target:"):
        assert words in first
    for jargon in ("logit", "TPR", "FPR", "AUC", "Wilson", "DeLong", "null", "NaN", "None"):
        assert jargon not in first
    figures = page.locator("section.answer .figures").bounding_box()
    assert figures["y"] + figures["height"] < SIZES["desk"][1]
    sentences = set()
    slider = page.locator("#step")
    slider.press("Home")
    for _ in range(int(slider.get_attribute("max")) + 1):
        sentences.add(page.locator("[data-sentence]").text_content())
        slider.press("ArrowRight")
    assert len(sentences) == int(slider.get_attribute("max")) + 1 > 5
    unfold(page)
    for resized in in_every_size(page):
        assert_in_order(resized)


def test_the_slider_shows_the_figures_of_the_frontier(visit):
    curve, found = real_frontier()
    page = visit(found, curve.trade_off())
    frame = curve.frame().set_index("n_changes")
    slider = page.locator("#step")
    for i in range(len(curve.trade_off().steps)):
        slider.fill(str(i))
        shown = shown_step(page)
        line = frame.loc[int(shown["changes"].split(" of ")[0].replace(",", ""))]
        assert shown["fairness"] == f"{line.fairness:.3f}"
        assert shown["accuracy"] == f"{line.accuracy:.1%}"
        assert shown["limit"] == f"{line.limit:.1%}"
        assert (shown["gains"], shown["losses"]) == (f"{line.n_gains:g}", f"{line.n_losses:g}")


def real_frontier():
    rows = make_biased(400, random_state=0)
    model = LogisticRegression().fit(rows.data, rows.target)
    group = {"sensitive_features": rows.sensitive_features}
    update = quick_control(model)
    curve = frontier(update, rows.data, rows.target, targets=[0.7, 0.8, 0.9], **group)
    after = curve.select(target=0.8).predict(rows.data)
    return curve, make_audit(model.predict(rows.data), after, y_true=rows.target, **group)


def test_a_trade_off_without_segments_and_scorecards_can_be_walked_and_breaks_no_layout(visit):
    steps = (*audits.randomised().steps, *STEPS.steps[-2:])
    page = visit(trade_off=replace(STEPS, steps=steps))
    assert page.locator("[data-part] table:visible").count() == 2
    page.locator("#step").fill("1")
    assert shown_step(page)["settings"] == "lambda_fair = 0.25, seed = none"
    assert shown_step(page)["accuracy"] == "not known"
    assert "No scorecard is known" in page.locator("[data-part=card]").inner_text()
    assert page.locator("[data-part] table:visible").count() == 0
    unfold(page)
    for resized in in_every_size(page):
        assert_in_order(resized)


def test_tables_sort_numbers_by_value_and_what_is_not_known_last(visit):
    page = visit(size="phone")  # where a table is laid out in another way than on a desk
    table = page.locator("table.outcomes")
    people = table.get_by_role("button", name="People")
    column = "table.outcomes tbody td:nth-child(2)"

    def values():
        return [text.strip() for text in page.locator(column).all_text_contents()]

    people.click()
    assert values() == ["111", "198", "720", "1,120"]  # as text, 1,120 would come second
    assert table.locator("th[aria-sort=ascending]").text_content().startswith("People")
    people.press("Enter")
    assert values() == ["1,120", "720", "198", "111"]
    assert table.locator("th[aria-sort=descending]").count() == 1
    table.get_by_role("button", name="Group").click()
    names = page.locator("table.outcomes tbody th").all_text_contents()
    assert names == ["African-American", "Caucasian", "Hispanic", "Other"]

    spread = page.locator("#why table.scorecard")
    for _ in range(2):
        spread.get_by_role("button", name="Spread").click()
        cells = spread.locator("tbody td:nth-child(4)").all_text_contents()
        assert "not measured" in "".join(cells[-2:])  # beside the start, which has no spread
        assert all("not measured" not in cell for cell in cells[:-2])


def assert_print_shows_everything_on_white(page):
    page.locator("#step").fill("2")
    page.set_viewport_size({"width": 680, "height": 990})  # A4 within its margins
    page.emulate_media(media="print", color_scheme="dark")
    folded = page.locator("details:not([open])")
    folded.first.wait_for(state="detached")
    assert folded.count() == 0
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    for hidden in (".slider", ".theme", ".contents"):
        assert not page.locator(hidden).is_visible()
    for table in ("rates", "steps", "calibration", "signatures", "stability-histogram"):
        assert page.locator(f"table.{table}").is_visible()
    assert "Step 3 of 8" in page.locator("[data-sentence]").inner_text()
    assert_in_order(page)
    assert_readable(page)
    page.emulate_media(media="screen")
    folded.nth(3).wait_for(state="attached")


def test_every_text_can_be_read_in_both_colours_and_in_print(visit):
    page = visit(color_scheme="dark")
    assert_print_shows_everything_on_white(page)
    unfold(page)
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    assert_readable(page)
    page.get_by_role("button", name="colours").click()
    light = page.evaluate(ground)
    assert light != dark
    assert_readable(page)
    page.get_by_role("button", name="colours").click()
    assert page.evaluate(ground) == dark
    other = visit(color_scheme="light")
    assert other.evaluate(ground) == light
    other.get_by_role("button", name="colours").click()
    assert other.evaluate(ground) == dark


def test_without_scripts_everything_can_be_read(visit):
    page = visit(java_script_enabled=False)
    assert page.locator("table.steps").is_visible()
    assert page.locator("table.steps tbody tr").count() == 9
    assert not page.locator(".slider").is_visible()
    assert not page.locator(".theme").is_visible()
    assert page.locator("noscript p").is_visible()
    assert shown_step(page) == expected_step(STEPS.steps[4])
