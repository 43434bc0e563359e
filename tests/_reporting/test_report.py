import hashlib
import json
import re
import subprocess
import sys
from base64 import b64encode
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import audits
import pytest

from commod import _text
from commod._record.audit import Audit
from commod._record.explanation import Estimate, TradeOff
from commod._record.plain import to_plain
from commod._reporting.render.page import first_step, render_html, render_markdown, report
from commod._reporting.render.texts import NO_PROOF, target_state
from commod.exceptions import InputError, InputTypeError
from tables_of_cases import every_line

FULL = audits.audit()
STEPS = audits.trade_off()


class Page(HTMLParser):
    """What a browser would find: elements with their attributes, and the text between them."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.elements, self.texts, self.raw, self.inside = [], [], {}, []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag in ("script", "style"):
            self.inside.append(tag)
            self.raw.setdefault(tag, []).append("")

    def handle_endtag(self, tag):
        if self.inside and self.inside[-1] == tag:
            self.inside.pop()

    def handle_data(self, data):
        if self.inside:
            self.raw[self.inside[-1]][-1] += data
        else:
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).replace("\u2068", "").replace("\u2069", "").split())

    @property
    def kinds(self):
        return {tag for tag, _ in self.elements} | {
            name for _, attributes in self.elements for name in attributes
        }


@pytest.fixture(scope="module")
def html():
    return render_html(FULL, STEPS)


@pytest.fixture(scope="module")
def page(html):
    return Page(html)


@pytest.fixture(scope="module")
def markdown():
    return render_markdown(FULL, STEPS).replace("\\", "")


# What it contains --------------------------------------------------------------------------------


def numbers(value, path=""):
    """Yield every number of a record with its place; conditions are in their rules' texts."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from () if key == "conditions" else numbers(item, f"{path}.{key}")
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from numbers(item, f"{path}[{i}]")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value


def ways_to_write(value):
    if isinstance(value, int):
        return {f"{value:,}"}
    ways = {f"{value:.1%}", f"{value:.2%}", f"{value:.2f}", f"{value:.3f}", f"{value:g}"}
    ways |= {f"{value:.1%}"[:-1], f"{value:.0%}", f"{100 * value:.6g}%", f"{value:.3g}"}
    ways |= {f"{value:#.3g}", f"{value:.0f}"} if abs(value) >= 1 else {f"{value:#.3g}"}
    return {way.replace("-", "−") for way in ways}


def missing(record, text):
    return [
        (path, value)
        for path, value in numbers(to_plain(record))
        if not any(
            way in text and re.search(rf"(?<![\d.,]){re.escape(way)}(?!\d)", text)
            for way in ways_to_write(value)
        )
    ]


def test_every_number_of_the_audit_is_in_the_page_and_in_markdown(page, markdown):
    assert missing(FULL, page.text) == []
    assert missing(FULL, markdown) == []


@pytest.mark.parametrize(
    "words",
    [
        "Cap on loss of accuracy 2.07% No cap on changed decisions, change of the overall rate",
        "even if it knows every person's group. The target needs at least 196 changes.",
        "everybody else 1,950 people 54.2%",
        "African-American largest group 560 560 0.741 0.710 to 0.769 0.719 0.688 to 0.747",
        "largest of all pairs African-American and Hispanic; then Caucasian and Hispanic "
        "0.093 0.022 to 0.154 0.033 up to 0.064 0.042 0.000 to 0.083 0.031 up to 0.061",
    ],
)
def test_numbers_stand_beside_their_names(page, words):
    assert words in page.text


def test_every_number_of_each_step_is_in_the_data_of_the_slider(page):
    steps = json.loads(page.raw["script"][0])
    for step, shown in zip(STEPS.steps, steps, strict=True):
        rules = tuple(replace(s, n_new=0, coverage=0.0) for s in step.segments.segments)
        rules = tuple(replace(s, precision=Estimate(s.precision.value, None, None)) for s in rules)
        lines = tuple(replace(line, spread=None, concept=None) for line in step.card.lines)
        known = replace(
            step,
            segments=replace(step.segments, segments=rules, n_rows=0),
            card=replace(step.card, lines=lines, concepts=()),
        )
        text = " ".join([json.dumps(shown, ensure_ascii=False), " 0 0.00"])
        assert missing(known, text) == []


def test_the_table_of_steps_has_every_step(page, markdown):
    for text in (page.text, markdown):
        for step in STEPS.steps:
            assert f"{step.fairness:.3f}" in text
            assert f"{step.accuracy:.1%}" in text
            assert f"{step.limit:.1%}" in text
    assert "| base model |  | 0.584 |  | 0 (0.0%) | 0 | 0 |  | 67.4% |" in markdown


def without_code(text):
    text = re.sub("None( was found|: every)", "", text)
    return re.findall(r"\b(nan|NaN|None|null|inf|Infinity)\b", text) == []


def test_undefined_numbers_are_never_written_as_code(page, markdown):
    assert without_code(page.text + markdown)
    for found, trade_off in (
        (FULL, audits.randomised()),
        (audits.bare(), audits.trade_off(0)),
    ):
        assert without_code(Page(render_html(found, trade_off)).text)
        assert without_code(render_markdown(found, trade_off))


def test_what_is_absent_is_said():
    text = Page(render_html(audits.bare())).text
    assert without_code(text) and without_code(render_markdown(audits.bare()))
    for said in (
        "No labels were given",
        "No rules are known",
        "No scorecard is known",
        "the report was made without a frontier",
        "calibration needs scores and labels",
        "ROC curves of groups need scores and labels",
        "no scores were given",
        "was not refitted",
        "No check was made",
        "every group is large enough",
        "not known: the audit was given decisions, not the update",
    ):
        assert said in text
    assert text.count("not known") > 10


def test_every_interval_says_its_level_and_its_rows(html):
    with_intervals = [
        table
        for table in re.findall(r"<table.*?</table>", html, re.S)
        if re.search(r"<small><bdi>[^<]*\d to [−\d]", table)
    ]
    assert len(with_intervals) >= 9
    for table in with_intervals:
        caption = unescape(re.search(r"<caption>(.*?)</caption>", table, re.S)[1])
        assert re.search(
            r"9[59][.\d]*% intervals, measured on (2,149 of )?the 2,164 held-out", caption
        )
    assert "99.91% intervals, measured on the 2,164" in html
    for chart in re.findall(r"<figure.*?</figure>", html, re.S):
        if "whisker" in chart:
            assert "95% intervals, measured on the 2,164 held-out rows." in chart


def test_every_chart_has_a_text_alternative_and_its_numbers_as_a_table(page):
    charts = [attributes for tag, attributes in page.elements if tag == "svg"]
    assert len(charts) == 9
    assert all(c["role"] == "img" and len(c["aria-label"]) > 40 for c in charts)
    kinds = " ".join(a.get("class", "") for tag, a in page.elements if tag == "table")
    for table in (
        "rates",
        "concepts",
        "steps",
        "outcomes",
        "calibration",
        "stability-histogram",
        "curve-points",
    ):
        assert table in kinds


def test_most_changes_being_losses_is_told_first_with_what_gains_alone_would_take():
    html = render_html(FULL)
    text = Page(html).text
    notice = text[text.index("Most of the changes are losses") :][:400]
    assert "182 people lose" in notice
    assert "433 gains" in notice and "451 gains" in notice
    assert html.index("Most of the changes are losses") < html.index('id="who"')
    gains = replace(FULL, notice=None)
    assert "Most of the changes are losses" not in render_markdown(gains)


def test_the_groups_furthest_apart_are_named_before_and_after():
    def group(name, before, after):
        return replace(
            FULL.groups[0],
            name=name,
            compared=True,
            favorable_before=Estimate(before, None, None),
            favorable_after=Estimate(after, None, None),
        )

    groups = (group("a", 0.2, 0.55), group("b", 0.5, 0.55), group("c", 0.4, 0.3))
    text = Page(render_html(replace(FULL, groups=groups))).text
    assert "Before: of 100 people in group a, 20 get the favourable outcome; in group b, 50" in text
    assert "After: of 100 people in group c, 30 get the favourable outcome; in group" in text


def test_the_figures_of_refits_and_of_subgroups_are_in_sentences(page, markdown):
    for text in (page.text, markdown):
        assert "and the fairness metric between 0.741 and 0.834." in text
        assert "57 subgroups of at least 50 people were tested. Nothing is known about 19" in text
        assert "2 of those tested fare clearly worse than the people" in text
    everything = replace(FULL, subgroups=replace(FULL.subgroups, n_too_small=0))
    assert "Nothing is known about" not in render_markdown(everything)


def test_whether_the_target_is_reached_is_the_answer_of_its_check():
    other, first = FULL.checks[2], replace(FULL.checks[0], code="CM101", state="passed")
    assert other.state == "failed"
    for checks in ((first, other), (other, first)):
        assert target_state(replace(FULL, checks=checks))[1] == "reached on these rows"
    missed = replace(FULL, checks=(replace(first, state="failed"), FULL.checks[1]))
    assert target_state(missed)[1] == "not reached on these rows"
    assert target_state(replace(FULL, checks=())) == ("", "")


def test_the_title_of_a_notebook_page_comes_before_its_sentences():
    html = FULL._repr_html_()
    assert f'<div class="commod-title"><bdi>{FULL.title}</bdi></div>' in html
    assert html.index(FULL.title) < html.index("You asked for") < html.index("<table")


def test_thousands_of_groups_do_not_fill_the_page():
    groups = tuple(replace(FULL.groups[0], name=f"g{i}", compared=i > 990) for i in range(1000))
    html = render_html(replace(FULL, groups=groups))
    assert len(html) < 1_000_000
    assert "g999" in html and "940 more groups are in the audit" in html


def test_whether_the_group_is_read_is_said_as_it_is():
    for reads, words in (
        (True, "reads each person's group, or a column that determines the group, when it decides"),
        (False, "does not see the sensitive features when it decides"),
        (None, "Whether the update sees the sensitive features when it decides is not known"),
    ):
        found = replace(FULL, provenance=replace(FULL.provenance, reads_group=reads))
        assert words in render_markdown(found).replace("\\", "")


def test_a_frontier_of_another_constraint_or_of_other_rows_is_told(tmp_path):
    other = replace(STEPS, constraints="equalized_odds")
    with pytest.raises(InputError, match="frontier of the same constraint"):
        report(FULL, tmp_path / "report.html", frontier=other)
    assert "not the audited rows" in render_html(FULL, replace(STEPS, n_rows=5))
    asked = FULL.fairness[0]
    same = replace(STEPS, n_rows=FULL.n, base_fairness=asked.before.value)
    assert "The audited update itself has P-rule 0.791 with 221 changes" in render_html(FULL, same)


def test_one_line_has_what_was_asked_expected_and_measured(page, markdown):
    line = (
        "P-rule: asked at least 0.8, expected 0.807 on new people, measured 0.791 on 2,164 "
        "held-out rows. About half of all samples lie below an expectation."
    )
    assert line in page.text and line in markdown
    budget = replace(FULL, request=replace(FULL.request, target=None))
    assert "P-rule: expected 0.807 on new people, measured" in render_markdown(budget)
    without = replace(FULL, expected=None)
    assert "on new people" not in render_markdown(without)


def test_the_first_screen_says_rates_by_group_in_plain_words(page):
    assert (
        "Before: of 100 people in group African-American, 42 get the favourable outcome; in group "
        "Other, 74. After: of 100 people in group African-American, 45 get the favourable outcome; "
        "in group Other, 59." in page.text
    )


def test_no_sentence_claims_compliance(page, markdown):
    assert "not a proof of compliance with any law or rule" in NO_PROOF
    for text in (page.text, markdown):
        assert NO_PROOF in text
        rest = text.replace(NO_PROOF, "")
        assert not re.search(r"(?i)complian|comply|lawful|legal", rest)


def test_the_total_scorecard_stands_beside_the_concepts_and_signs_are_told():
    html = render_html(FULL)
    why = html[html.index('id="why"') : html.index('id="trade-off"')]
    assert why.index("The scorecard") < why.index("The concepts it is split into")
    assert "−0.814" in why and "+0.814" in why  # on r, and on −r
    assert "Points below 0 push towards a change" in why


def test_the_report_says_where_points_can_be_changed(page, markdown):
    sentence = "Points cannot be changed in this file: it has no rows"
    assert sentence in page.text and sentence in markdown
    assert sentence not in render_markdown(replace(FULL, card=None))


def test_the_slider_starts_at_what_was_asked_for():
    asked = [replace(FULL, request=replace(FULL.request, target=t)) for t in (0.6, 0.9, None)]
    assert [first_step(one, STEPS) for one in asked] == [0, 6, 3]  # None: the P-rule reached, 0.79
    assert first_step(audits.bare(), audits.randomised()) == 3


# Hostile text -------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["a line in each table", "every other place"])
def test_hostile_names_are_inert_and_readable_in_html(where, page):
    """All names have a line in each table; those who may break out are in every other place too."""
    if where == "a line in each table":
        texts = list(audits.HOSTILE.values())
        found = Page(render_html(*audits.hostile_together(texts)))
    else:
        names = ("closing", "attribute", "controls", "json")
        texts = ["".join(audits.HOSTILE[name] for name in names)]
        found = Page(render_html(*audits.hostile(texts[0])))
    assert found.kinds <= page.kinds  # no element and no attribute came from a name
    for tag, attributes in found.elements:
        address = attributes.get("href", "#")
        assert address.startswith("#") or (tag, address) == ("link", "data:,")
    for shown in map(_text.plain, texts):
        assert shown[:30].split("…")[0] in found.text
        assert shown in found.text  # the whole of it can be reached
    assert not re.search(
        "[\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066\u2067\ud800-\udfff]", found.text
    )
    assert json.loads(found.raw["script"][0])  # the data are still one script, and JSON
    assert len(found.raw["script"]) == 2


SHORT = "".join(text for text in audits.HOSTILE.values() if len(text) < 1000)


@every_line("hostile", [SHORT, audits.HOSTILE["blank"], audits.HOSTILE["markdown"]])
def test_hostile_names_are_inert_in_markdown(hostile):
    text = render_markdown(*audits.hostile(hostile), audits.shipped(hostile))
    text, _, block = text.partition("\n<!-- commod-report ")
    assert not re.search("[<>&]", block.removesuffix(" -->\n"))
    assert "<" not in text
    assert not re.search(r"(?<!\\)://|(?i:\bwww\.)", text)
    assert not re.search(r"(?<!\\)[\[`@$=]", text)
    widths = set()
    for line in text.splitlines():
        if line.startswith("|"):
            widths.add(len(re.findall(r"(?<!\\)\|", line)))
        else:
            assert len(widths) <= 1, widths  # every row of a table has its header's columns
            widths = set()
            assert re.match(r"#{1,3} |- |> \*\*|$|\\?\S", line)
    heads = [line for line in text.splitlines() if line.startswith("#")]
    assert 15 <= len(heads) <= 20


def test_hostile_names_survive_json(tmp_path):
    made, steps = audits.hostile_together(list(audits.HOSTILE.values()))
    place = report(made, tmp_path / "a.json", frontier=steps)
    assert Audit.from_json(place.read_text("utf-8")) == made


def test_names_that_cannot_be_encoded_are_written(tmp_path):
    made, steps = audits.hostile(audits.HOSTILE["controls"])
    for suffix in ("html", "md"):
        assert report(made, tmp_path / f"a.{suffix}", frontier=steps).read_text("utf-8")


@every_line("text", audits.HOSTILE.values())
def test_hostile_names_are_inert_in_a_snippet(text):
    benign = Page(_text.snippet("t" * 100, ["s"], [("c", ["h"], [["x", 0.5]])]))
    found = Page(_text.snippet(text, [text], [(text, [text], [[text, 0.5]])]))
    assert found.kinds <= benign.kinds
    assert _text.plain(text)[:30] in found.text


def test_two_long_names_with_the_same_beginning_can_be_told_apart():
    first, second = "n" * 200 + "1", "n" * 200 + "2"
    groups = tuple(
        replace(g, name=name) for g, name in zip(FULL.groups, (first, second), strict=False)
    )
    text = Page(render_html(replace(FULL, groups=groups))).text
    assert "n… [1]" in text and "n… [2]" in text
    assert first in text and second in text


def test_an_unknown_number_in_a_snippet_is_said():
    text = Page(_text.snippet("t", [], [("c", ["a", "b"], [[None, float("nan")]])])).text
    assert text.count("not known") == 2


# The file -----------------------------------------------------------------------------------------


def test_the_page_allows_only_its_own_style_and_script_and_names_no_host(page, html):
    policy = next(a["content"] for t, a in page.elements if a.get("http-equiv"))
    assert policy.startswith("default-src 'none'; ")
    for kind, content in (("style", page.raw["style"][0]), ("script", page.raw["script"][-1])):
        digest = b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert not re.search(r"https?:|url\(|@import|//\w+\.", html)
    assert "unsafe" not in policy


def test_the_page_is_for_everybody(page):
    elements = dict(page.elements)
    assert elements["html"]["lang"] == "en"
    assert "main" in elements and "nav" in elements and "title" in elements
    assert ("a", {"class": "skip", "href": "#main"}) in page.elements
    slider = elements["input"]
    assert slider["type"] == "range" and "Step 5 of 8" in slider["aria-valuetext"]
    assert any(a.get("for") == slider["id"] for t, a in page.elements if t == "label")
    targets = {a["id"] for _, a in page.elements if "id" in a}
    links = {a["href"][1:] for t, a in page.elements if t == "a"}
    assert links <= targets


def test_json_is_the_audit_alone_and_markdown_has_the_steps(tmp_path):
    place = report(FULL, tmp_path / "audit.json", frontier=STEPS)
    assert place == tmp_path / "audit.json"
    assert Audit.from_json(place.read_text("utf-8")) == FULL
    text = report(FULL, tmp_path / "audit.md", frontier=STEPS).read_text("utf-8")
    assert "Every step of the trade\\-off" in text or "Every step of the trade-off" in text
    assert [place.name for place in sorted(tmp_path.iterdir())] == ["audit.json", "audit.md"]


def test_a_frontier_is_asked_for_its_trade_off(tmp_path, html):
    class Frontier:
        def trade_off(self):
            return STEPS

    for given in (Frontier(), STEPS):
        assert report(FULL, tmp_path / "a.HTML", frontier=given).read_text("utf-8") == html
    assert report(FULL, str(tmp_path / "b.html")).read_text("utf-8") == render_html(FULL)


@every_line(
    "arguments, kind, words",
    [
        ((FULL, "report.pdf"), InputError, r"ends in \.html, \.md or \.json; got 'report\.pdf'"),
        ((FULL, "report"), InputError, r"for example report\.html"),
        (({"n": 1}, "report.html"), InputTypeError, r"needs an Audit; got dict\. Make one with"),
        ((FULL, "absent/report.html"), InputError, r"no folder '.*absent'"),
        ((FULL, "folder.html"), InputError, r"is a folder"),
        ((FULL, "report.html", "steps"), InputTypeError, r"what commod\.frontier returns"),
    ],
)
def test_what_cannot_be_written_is_refused_with_the_way_out(arguments, kind, words, tmp_path):
    (tmp_path / "folder.html").mkdir(exist_ok=True)
    found, name, *frontier = arguments
    with pytest.raises(kind, match=words):
        report(found, tmp_path / name, frontier=frontier[0] if frontier else None)
    assert [place.name for place in tmp_path.iterdir()] == ["folder.html"]


def test_a_failed_write_leaves_the_old_report_and_nothing_else(tmp_path, monkeypatch):
    place = tmp_path / "report.html"
    place.write_text("old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        report(FULL, place)
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]
    assert place.read_text() == "old"


def test_many_steps_with_long_scorecards_stay_small():
    card = audits.card(n_lines=400)
    html = render_html(replace(FULL, card=card), audits.trade_off(10, 400))
    assert len(html.encode()) < 500_000
    assert "388 weaker terms are not shown here" in html
    steps = json.loads(Page(html).raw["script"][0])
    assert all(len(step["card"]) == 13 for step in steps)


def test_rendering_loads_nothing_that_computes():
    code = (
        "import sys; import commod._reporting.render as r; "
        "print({'numpy', 'scipy', 'sklearn', 'pandas', 'narwhals'} & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"


def test_an_audit_of_an_earlier_version_loads_and_renders():
    data = FULL.to_dict()
    for fairness in data["fairness"]:
        assert fairness.pop("definition")
    earlier = Audit.from_dict(data)
    assert [fairness.definition for fairness in earlier.fairness] == [""] * 4
    assert "true positive rate parity" in render_html(earlier)
    assert "Target: at least 0.8 (80%)." in render_markdown(earlier)
    del data["fairness"][0]["higher_is_fairer"]
    with pytest.raises(InputError, match="lacks field 'higher_is_fairer'"):
        Audit.from_dict(data)


def test_an_audit_that_version_0_1_wrote_loads_and_renders():
    text = (Path(__file__).parent / "stored" / "audit.json").read_text("utf-8")
    assert '"n_mended"' in text and '"draws_lots"' in text
    earlier = Audit.from_json(text)
    assert earlier.quality.n_errors_fixed + earlier.quality.n_errors_introduced > 0
    assert earlier.provenance.is_randomised is False
    assert f"{earlier.changes.n_changes:,} of {earlier.n:,}" in render_markdown(earlier)


def test_fairer_is_to_the_right_and_targets_are_floors_or_ceilings():
    def places(trade_off):
        return [
            step["at"][0]
            for step in json.loads(Page(render_html(FULL, trade_off)).raw["script"][0])
        ]

    assert places(STEPS) == sorted(places(STEPS))
    gaps = tuple(replace(step, fairness=1 - step.fairness) for step in STEPS.steps)
    falling = replace(STEPS, steps=gaps, base_fairness=0.4163, higher_is_fairer=False)
    assert places(falling) == pytest.approx(places(STEPS), abs=0.2)
    gap = replace(FULL.fairness[1], asked=True)
    asked = replace(FULL, fairness=(gap,), request=replace(FULL.request, target=0.1))
    assert "Target: at most 0.1." in Page(render_html(asked)).text


def test_the_same_records_give_the_same_page(html):
    copy = Audit.from_json(FULL.to_json())
    assert render_html(copy, STEPS) == html
    assert isinstance(STEPS, TradeOff)
