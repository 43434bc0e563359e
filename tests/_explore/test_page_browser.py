"""The page in a real browser: Debian's Chromium, driven by Playwright."""

import re
import warnings
import zipfile
from itertools import product

import numpy as np
import pandas as pd
import pytest

import commod
from commod import ControlledDebiaser, ScoreColumn, explore
from commod._explore.edits import without_warnings

HOSTILE = "<img src=x onerror=alert(1)>"
N = 400

MOVED = "e.dispatchEvent(new Event('input', { bubbles: true }));"

# Whatever holds a text beyond the edges of the window.
OUTSIDE = """() => [...document.querySelectorAll("main *")].filter((e) => {
  const box = e.getBoundingClientRect();
  return e.checkVisibility() && box.width > 1 && e.closest("thead") === null
    && (box.right > innerWidth + 1 || box.left < -1) && !(e instanceof SVGElement);
}).map((e) => e.outerHTML.slice(0, 100))"""


def hostile_update():
    random = np.random.default_rng(0)
    group = random.random(N) < 0.4
    X = pd.DataFrame(
        {
            HOSTILE: np.where(
                random.random(N) < 0.3 + 0.4 * group, HOSTILE, "</script>" + "w" * 90
            ),
            "age": random.normal(40, 9, N).round(),
            "score": np.clip(random.beta(2, 2, N) - 0.13 * group, 0.01, 0.99).round(3),
        }
    )
    groups = np.where(group, f"b {HOSTILE}", "a")
    y = (random.random(N) < X["score"]).astype(int)
    update = ControlledDebiaser(
        ScoreColumn("score"), target=0.9, target_on="fit_rows", borderline=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return update.fit(X, y, sensitive_features=groups), X, y, groups


@pytest.fixture
def expect():
    from playwright.sync_api import expect

    expect.set_options(timeout=60_000)
    return expect


@pytest.fixture(scope="module")
def served():
    update, X, y, groups = hostile_update()
    with explore(update, X, y, sensitive_features=groups) as page:
        yield page


@pytest.fixture
def visit(browser, served):
    """Return a function that opens a tab; afterwards nothing must have gone wrong in it."""
    contexts, wrong, requests = [], [], []

    def open_tab(width=1280, height=900, **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        tab = context.new_page()
        tab.set_default_timeout(60_000)
        tab.on("console", lambda said: wrong.append(said.text))
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on("dialog", lambda dialog: wrong.append(dialog.message) or dialog.dismiss())
        tab.on("request", lambda request: requests.append(request.url))
        tab.goto(served.url)
        tab.wait_for_selector("#segments > *")
        return tab

    yield open_tab
    for context in contexts:
        context.close()
    # Chromium notes a refused request by itself; the page says why it was refused.
    assert [said for said in wrong if "status of 400" not in said] == []
    assert all(url.startswith((served.url, "data:", "blob:")) for url in requests)


def lead(tab):
    return tab.locator("#lead").text_content()


def present(tab):
    """Return the present step of the history."""
    return tab.locator("#history [aria-current]")


def press(tab, name):
    """Press a button with the keyboard."""
    tab.get_by_role("button", name=name).focus()
    tab.keyboard.press("Enter")


def serious_findings(tab):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(tab).response["violations"]
    serious = [v for v in found if v["impact"] in ("serious", "critical")]
    return [(v["id"], [n["html"][:120] for n in v["nodes"][:3]]) for v in serious]


def assert_hostile_names_are_text_and_the_keyboard_reaches_every_control(tab):
    assert tab.locator("img, iframe, object, [onerror]").count() == 0
    assert tab.locator("script").count() == 1
    assert HOSTILE in tab.locator("#terms").text_content()
    assert HOSTILE in tab.locator("#groups").text_content()
    assert tab.locator(f'#locked input[value="{HOSTILE}"]').count() == 1
    controls = tab.evaluate(
        """() => [...document.querySelectorAll("button, input, select, textarea, summary")]
          .filter((e) => e.checkVisibility() && !e.disabled && e.tabIndex < 0).length"""
    )
    assert controls == 0
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.className") == "skip"


def test_hostile_names_do_nothing_run_off_no_page_and_axe_finds_nothing_serious(visit):
    tab = visit()
    assert_hostile_names_are_text_and_the_keyboard_reaches_every_control(tab)
    tab.locator("#keep").click()
    tab.wait_for_selector("#compared table")
    tab.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    both = product((390, 760, 1280), ("dark", "light"))
    for width, colours in both:
        tab.set_viewport_size({"width": width, "height": 900})
        tab.emulate_media(color_scheme=colours)
        assert tab.evaluate(OUTSIDE) == []
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        if (width, colours) in ((390, "light"), (1280, "dark")):
            assert serious_findings(tab) == []


def test_a_user_edits_undoes_and_redoes_with_the_keyboard_alone_and_in_two_tabs(visit, expect):
    tab = visit()
    rule = tab.locator("#card-rule")  # it has the cut
    first = rule.text_content()
    slider = tab.get_by_label("Move the points of age")
    slider.focus()
    tab.keyboard.press("Home")  # one step: a slow machine makes several edits of many
    expect(present(tab)).to_contain_text("set the points of age to")
    expect(rule).not_to_have_text(first)
    edited = rule.text_content()
    expect(slider).to_be_focused()  # the focus stays
    press(tab, "Undo")
    expect(rule).to_have_text(first)
    press(tab, "Redo")
    expect(rule).to_have_text(edited)
    press(tab, "Undo")
    expect(rule).to_have_text(first)
    assert_a_typed_number_acts_and_two_tabs_show_the_same(tab, visit(390), expect)


def assert_a_typed_number_acts_and_two_tabs_show_the_same(one, two, expect):
    label = re.compile("^Points of age")
    number, other = (tab.get_by_label(label) for tab in (one, two))
    number.fill("0.0123")
    number.press("Tab")
    expect(one.locator("#message")).to_contain_text("Edited: set the points of age to")
    expect(other).to_have_value("0.0123")
    two.close()  # killed
    press(one, "Undo")
    expect(number).not_to_have_value("0.0123")


def test_a_column_is_locked_a_fit_makes_gains_only_and_the_patch_is_saved(visit, expect, served):
    tab = visit(accept_downloads=True)
    tab.get_by_label("Your name").fill("Ada")
    tab.get_by_role("button", name="Lock age").click()
    expect(tab.locator("#message")).to_contain_text("lock age")
    expect(tab.locator("#columns :focus, #columns:focus")).to_have_count(1)  # the focus stays
    tab.get_by_label("Direction").select_option("gains_only")
    expect(tab.locator("#message")).to_contain_text("direction any → gains_only")
    expect(tab.locator("#summary")).to_contain_text("▼ 0 lose")
    expect(tab.locator("#without-losses")).to_be_hidden()
    with tab.expect_download() as saved:
        tab.get_by_role("button", name="Save", exact=True).click()
    expect(tab.locator("#message")).to_contain_text("with 0 recorded edits")
    with zipfile.ZipFile(saved.value.path()) as archive:
        patch = commod.Patch.from_json(archive.read("patch.json").decode())
        assert b"gains_only" in archive.read("history.py")
    assert patch.content.by == "Ada"
    assert "age" not in [column.name for column in patch.content.ratio.columns]
    assert served.update.n_losses_ == 0
    tab.get_by_label("Number or id").fill("3")
    tab.get_by_role("button", name="Show the reasons").click()
    expect(tab.locator("#reasons")).to_contain_text("Row 3")
    tab.get_by_role("button", name="Copy as Python").click()
    expect(tab.get_by_label("The same as Python")).to_have_value(re.compile("gains_only"))


def assert_lines_stay_marked_when_the_same_update_is_shown_again(tab, expect):
    marked = tab.locator("#terms tr.moved")
    expect(marked).not_to_have_count(0)
    n_marked = marked.count()
    marked.first.evaluate("(row) => { row.id = 'as-shown-before' }")
    with tab.expect_response(re.compile("/state$")):
        tab.locator("#search").dispatch_event("input")  # empty: the page asks for the state
    expect(tab.locator("#as-shown-before")).to_have_count(0)
    expect(marked).to_have_count(n_marked)


def assert_a_preview_that_comes_after_its_fit_is_dropped(tab, expect, steps):
    previews = re.compile("/preview$")
    held, marked = [], tab.locator("#terms tr.moved")
    tab.route(previews, lambda route: held.append(route))
    tab.keyboard.press("ArrowRight")
    expect(tab.locator("#history li")).to_have_count(steps)
    expect(marked).not_to_have_count(0)
    shown, n_marked = tab.locator("#summary").text_content(), marked.count()
    with tab.expect_response(previews) as late:
        held[0].continue_(post_data='{"request": {"target": 0.8}}')  # where the slider was earlier
    late.value.finished()
    tab.unroute(previews)
    tab.wait_for_timeout(300)  # by now, the preview would be shown
    assert (tab.locator("#summary").text_content(), marked.count()) == (shown, n_marked)


def test_figures_and_card_follow_the_slider_of_the_target(visit, expect):
    tab = visit()
    summary = tab.locator("#summary")
    slider = tab.get_by_label("Move the target")
    steps = tab.locator("#history li").count()
    slider.focus()
    before = summary.text_content()
    with tab.expect_response(re.compile("/preview$")):
        # Between eight keys a busy machine may rest long enough for a fit: one key ends the move.
        slider.evaluate(
            "(e) => { e.stepDown(7); e.dispatchEvent(new Event('input', { bubbles: true })); }"
        )
        tab.keyboard.press("ArrowLeft")
    expect(summary).not_to_have_text(before)
    expect(tab.locator("#history li")).to_have_count(steps + 1)  # the fit when the slider rests
    expect(present(tab)).to_contain_text("target 0.9 → 0.86")
    expect(slider).to_be_focused()
    assert_lines_stay_marked_when_the_same_update_is_shown_again(tab, expect)
    slider.focus()
    assert_a_preview_that_comes_after_its_fit_is_dropped(tab, expect, steps + 2)
    press(tab, "Undo")
    press(tab, "Undo")
    expect(summary).to_have_text(before)


def test_a_dot_of_the_map_is_a_target_and_figures_are_said_when_the_hand_rests(visit, expect):
    tab = visit()
    summary, said = tab.locator("#summary"), tab.locator("#message")
    before, message = summary.text_content(), said.text_content()
    slider = tab.get_by_label("Move the target")
    slider.evaluate(
        "(e) => { e.value = e.min; e.dispatchEvent(new Event('input', { bubbles: true })); }"
    )
    expect(summary).not_to_have_text(before)
    expect(summary).to_contain_text("Preview: ")
    assert said.text_content() == message  # a moving hand is not told each figure
    tab.get_by_text("Accuracy against fairness").click()
    dot = tab.locator(".pick:visible").nth(4)
    target = re.search(r"target ([\d.]+)", dot.get_attribute("aria-label"))[1]
    dot.focus()
    tab.keyboard.press("Enter")
    expect(present(tab)).to_contain_text(f"→ {target}")
    expect(tab.locator("#target")).to_have_value(target)
    expect(tab.locator(".preview")).to_have_count(0)
    expect(said).to_contain_text("gain")
    expect(tab.locator("#frontier")).to_have_attribute("aria-busy", "false")
    expect(tab.locator(".pick:focus")).to_have_count(1)
    press(tab, "Undo")
    expect(summary).to_have_text(before)


def assert_an_error_stays_while_slower_parts_follow(tab, expect):
    tab.locator("#step").fill("-1")
    with tab.expect_response(re.compile("/segments$")):
        tab.get_by_role("button", name="Round all").click()
    expect(tab.locator("#segments")).to_have_attribute("aria-busy", "false")
    assert "step" in tab.locator("#error").inner_text()


def test_a_wrong_request_is_said_and_nothing_changes(visit, expect):
    tab = visit()
    before = lead(tab)
    assert_an_error_stays_while_slower_parts_follow(tab, expect)
    tab.get_by_label("Number or id").fill("99999999")
    tab.get_by_role("button", name="Show the reasons").click()
    expect(tab.locator("#error")).to_contain_text("rows must be positions")
    tab.locator("#target").fill("1.5")
    tab.keyboard.press("Tab")
    expect(tab.locator("#error")).to_contain_text("target")
    assert lead(tab) == before and not tab.locator("#job").is_visible()


# ---------------------------------------------------------------------------------------------
# Random series of actions by mouse and keyboard, and what is saved in the end


def key_of(*keys):
    return lambda control, random: control.press(str(random.choice(keys)))


def type_points(control, random):
    control.fill(str(random.integers(1, 30) / 100))
    control.press("Enter")


def choose_direction(control, random):
    control.select_option(str(random.choice(["any", "gains_only", "losses_only"])))


ACTIONS = [  # controls, and what the hand does with one of them
    ("#terms input[type=number]", type_points),
    ("#terms input[type=range]", key_of("Home", "End", "PageUp")),
    ("#terms [id^=pin-]", lambda control, _: control.click()),
    ("#direction", choose_direction),
    ("#move-target", key_of("PageUp", "PageDown", "Home")),
    ("#locked input", lambda control, _: control.click()),
    ("#history button", lambda control, _: control.click()),
    (".pick:visible", key_of("Enter", " ")),
    ("[data-act=refit]", key_of("Enter")),
]
CHANGES = re.compile("/(edit|fit|go|refit)$")


def act_at_random(tab, random):
    """Do some actions, one after the other."""
    sent, done = [], []
    tab.on("request", lambda request: sent.append(1) if CHANGES.search(request.url) else None)
    tab.on("response", lambda answer: done.append(1) if CHANGES.search(answer.url) else None)
    for i, place in enumerate(random.integers(len(ACTIONS), size=12).tolist()):
        tab.get_by_label("Your name").fill(f"Ada {i // 3}")
        where, action = ACTIONS[place]
        found = tab.locator(where)
        if n_found := found.count():
            action(found.nth(int(random.integers(n_found))), random)
        tab.wait_for_timeout(300)  # a slider rests before its change goes out
        while len(done) < len(sent):
            tab.wait_for_timeout(50)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_saved_after_random_actions_is_made_again_by_the_saved_python(
    browser, tmp_path, monkeypatch, seed
):
    update, X, y, groups = hostile_update()
    with explore(update, X, y, sensitive_features=groups) as served:
        tab = browser.new_page(accept_downloads=True)
        tab.set_default_timeout(60_000)
        tab.goto(served.url)
        tab.wait_for_selector("#terms input")
        act_at_random(tab, np.random.default_rng(seed))
        with tab.expect_download() as saved:
            tab.get_by_role("button", name="Save", exact=True).click()
        with zipfile.ZipFile(saved.value.path()) as archive:
            files = {one: archive.read(one) for one in archive.namelist()}
        steps = tab.locator("#history li").count()
        tab.close()
    assert steps > 3
    monkeypatch.chdir(tmp_path)
    with without_warnings():  # threads of the page may still use it
        code = files.pop("history.py").decode()
        exec(code, {"model": ScoreColumn("score"), "X": X, "y": y, "groups": groups})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files
