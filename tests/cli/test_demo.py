"""The demo: its first sentence, three acts, 80 columns with and without colour, and the page."""

from __future__ import annotations

import io
import json
import re
from functools import partial
from types import SimpleNamespace
from urllib.request import urlopen

import pytest

import commod
from commod import Audit, bounds
from commod.cli import demo as command
from commod.cli._options import Options
from commod.cli.demo import ASCII, NAME_WIDTH, bar_line
from commod.datasets import load_compas
from tables_of_cases import every_line


def parameters(**stated):
    return command.new_update(Options(**stated), None).get_params()


def test_the_target_is_the_one_for_new_people():
    assert parameters()["target"] == command.TARGET == 0.8
    assert parameters(demo_target=0.7)["target"] == 0.7
    assert parameters(demo_constraints="false_positive_rate_parity")["target"] is None


def test_nobody_loses_unless_the_user_allows_it():
    assert parameters()["direction"] == "gains_only"
    assert parameters(demo_direction="any")["direction"] == "any"


def estimate(value, low=None, high=None):
    return SimpleNamespace(value=value, low=low, high=high)


def audit_of(after, **more):
    fairness = {
        "name": "P-rule of “low risk”",
        "higher_is_fairer": True,
        "bound": 0.8,
        "before": estimate(0.7),
        "after": after,
        "is_kept": after.value is not None and after.value >= 0.8,
    } | more
    return SimpleNamespace(n=1000, level=0.95, fairness=[SimpleNamespace(**fairness)])


@every_line(
    "audit, sentence, reason",
    [
        (audit_of(estimate(0.82, 0.77, 0.87)), "Good news: the target is kept.", "asked was at le"),
        (audit_of(estimate(0.78, 0.73, 0.83)), "The target is missed:", "chance explains the miss"),
        (audit_of(estimate(0.7, 0.65, 0.75)), "The target is missed:", "does not contain the targ"),
        (audit_of(estimate(0.7)), "The target is missed:", "asked was at least 0.8."),
        (audit_of(estimate(0.75), bound=None), "The P-rule of", "No target was asked for."),
        (audit_of(estimate(None)), "No news:", "cannot be measured"),
        (
            audit_of(estimate(0.05), bound=0.1, higher_is_fairer=False, is_kept=True),
            "Good news:",
            "at most 0.1",
        ),
    ],
)
def test_the_first_sentence_is_good_news_or_says_why_not(audit, sentence, reason):
    text = command.headline(audit)
    assert text.startswith(sentence)
    assert reason in text


@every_line("pos_label, rate", [(1, 0.2), (0, 0.8)])
def test_false_alarms_are_the_same_whichever_label_counts(pos_label, rate):
    name = "false_positive" if pos_label else "true_positive"
    group = SimpleNamespace(**{f"{name}_{when}": estimate(rate) for when in ("before", "after")})
    audit = SimpleNamespace(request=SimpleNamespace(pos_label=pos_label))
    assert command._false_alarms(group, audit) == pytest.approx((0.2, 0.2))


def test_no_person_is_in_two_of_the_three_parts():
    parts = command.split(seed=0)
    people = [set(rows.X.index) for rows in parts]
    assert sum(map(len, people)) == len(set.union(*people)) == len(load_compas().data)
    for rows in parts:
        assert rows.y.index.equals(rows.X.index) and rows.groups.index.equals(rows.X.index)


@every_line(
    "bar, cells",
    [
        (("a", 0.5), "#" * 20 + " " * 4 + "|" + " " * 15),
        (("a", 0.25, 0.5), "#" * 10 + "+" * 10 + " " * 4 + "|" + " " * 15),
        (("a", 0.5, 0.25), "#" * 10 + "." * 10 + " " * 4 + "|" + " " * 15),
        (("a", 1.0, 1.0), "#" * 40),
        (("a", 0.0, 0.0), " " * 24 + "|" + " " * 15),
    ],
)
def test_bars_are_as_long_as_the_shares(bar, cells):
    assert bar_line(bar, 0.6, ASCII)[1] == cells


def test_long_names_of_groups_keep_the_bars_in_line():
    name, cells, figures = bar_line(("a name that goes on and on", 0.5, 0.25), None, ASCII)
    assert len(name) == NAME_WIDTH
    assert len(f"  {name} {cells} {figures}") <= 80


def test_the_first_sentence_of_the_demo_is_the_result(demo):
    out, folder = demo
    audit = Audit.from_json((folder / "audit.json").read_text())
    assert " ".join(out.split()).startswith(command.headline(audit))


def test_the_interval_of_the_measured_value_contains_the_target(demo):
    out, folder = demo
    after = json.loads((folder / "audit.json").read_text())["fairness"][0]["after"]
    assert after["low"] <= command.TARGET <= after["high"]
    stated = f"The 95% interval of the measured value is {after['low']:.2f} to {after['high']:.2f}."
    assert stated in " ".join(out.split())


def test_the_demo_says_what_was_asked_expected_and_measured(demo):
    out, folder = demo
    audit = json.loads((folder / "audit.json").read_text())
    assert audit["request"]["target"] == command.TARGET
    expected, measured = audit["expected"]["fairness"], audit["fairness"][0]["after"]["value"]
    text = " ".join(out.split())
    assert f"P-rule of “low risk”: asked at least 0.8, expected {expected:.3f} on new" in text
    assert f"measured {measured:.3f} on {audit['n']:,} held-out people" in text
    assert expected >= command.TARGET
    goal = command.TARGET * max(g["favorable_before"]["value"] for g in audit["groups"])
    assert f"The target is 0.8, or {goal:.1%} here" in text
    changes = audit["changes"]["n_changes"]
    assert f"decision changes {changes} ({changes / audit['n']:.1%})" in text


def test_the_demo_lists_the_strongest_terms_with_their_points(demo):
    out, folder = demo
    card = Audit.from_json((folder / "audit.json").read_text()).card
    *_, table = out.partition("strongest terms:")
    heading, _, *lines = (line.split() for line in table.strip().splitlines())
    assert heading == ["term", "points"]
    assert len(lines) >= len(card.lines[: command.N_TERMS]) > 0
    for term, line in zip(card.lines[: command.N_TERMS], lines, strict=False):
        words = [*term.text.split(), f"{term.points:+.3f}", *term.unit.split()]
        assert line == words


def test_the_demo_gives_low_risk_near_the_threshold_and_shows_losses_only_beside_it(demo):
    out, folder = demo
    audit = json.loads((folder / "audit.json").read_text())
    assert audit["changes"]["n_losses"] == 0 < audit["changes"]["n_gains"]
    assert "gains only (this update)" in out and "losses only" in out
    (line,) = (line for line in out.splitlines() if "gain, lose “low risk”" in line)
    gains_only, losses_only = re.findall(r"(\d+), (\d+)", line)
    assert gains_only == (str(audit["changes"]["n_gains"]), "0")
    for group in audit["groups"]:
        assert re.search(rf"  {group['name']} +{group['n_gains']}, 0 ", out), group["name"]
    assert losses_only[0] == "0" < losses_only[1]
    missed = "With losses only, no update was found that is expected to reach the target."
    assert missed in " ".join(out.split())
    assert (folder / "report.html").exists()


def test_the_demo_says_what_each_direction_needs_at_least_for_the_target(demo):
    out, _ = demo
    learned, _, people = command.split(seed=0)
    decisions = command.base_model(learned).predict(people.X)
    needed = [
        bounds.minimal_changes(
            decisions,
            sensitive_features=people.groups,
            target=command.TARGET,
            pos_label=0,
            favorable_label=0,
            direction=direction,
        ).n_changes
        for direction in ("gains_only", "losses_only")
    ]
    price = "at least {} changes with gains only and {} changes with losses only.".format(*needed)
    assert price in " ".join(out.split())


def test_the_demo_fits_into_80_columns_and_has_no_colour_in_a_pipe(demo):
    out, _ = demo
    assert max(map(len, out.splitlines())) <= 80
    assert "\x1b" not in out
    for act in ("1. The problem", "2. The update", "3. Who changes, and what it costs"):
        assert act in out
    assert "█" in out and "▒" in out and "┆" in out


@pytest.mark.parametrize(("variables", "has_colour"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colour_is_for_terminals_that_want_it(monkeypatch, variables, has_colour):
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in {"TERM": "xterm-256color", "FORCE_COLOR": "1", **variables}.items():
        monkeypatch.setenv(name, value)
    printer = command.DemoPrinter()
    with printer.console.capture() as captured:
        printer.bars([("women", 0.25, 0.5)], target=0.6)
    assert ("\x1b[36m" in captured.get()) == has_colour
    assert "▒" in captured.get()


def test_a_terminal_without_unicode_gets_ascii(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
    monkeypatch.setattr("sys.stdout", stream)
    printer = command.DemoPrinter()
    printer.title("1. The problem")
    printer.text("r = −0.1 ≤ 0.2 → “low risk”, 例")
    printer.bars([("women", 0.25, 0.5)], target=0.6)
    printer.table(("term", "points"), [("age ≥ 3", "−1")])
    stream.flush()
    text = stream.buffer.getvalue().decode("ascii")
    assert 'r = -0.1 <= 0.2 -> "low risk", ?' in text
    assert "##########++++++++++" in text and "25.0% -> 50.0%" in text


@pytest.fixture
def quick(monkeypatch):
    """A demo on fewer people, with fewer updates on the frontier."""
    people = load_compas()
    few = people.data.sample(1000, random_state=0).index
    people.update(data=people.data.loc[few], target=people.target[few], race=people.race[few])
    monkeypatch.setattr("commod.datasets.load_compas", lambda: people)
    monkeypatch.setattr("commod.frontier", partial(commod.frontier, targets=[0.1]))


def test_the_demo_takes_other_constraints_targets_and_directions(tmp_path, call, quick):
    told = ("--constraints", "false_positive_rate_parity", "--direction", "any")
    code, out, err = call("demo", *told, "--output", tmp_path)
    assert code == 0, err
    text = " ".join(out.split())
    assert "“high risk” among those who" in text or "of “high risk”" in text
    assert "asked at most 0.1, expected " in text
    assert "either direction (this update)" in text and "gains only" in text
    assert "as ProPublica found" in text


def test_open_serves_the_page_of_the_update_until_ctrl_c(tmp_path, call, quick, monkeypatch):
    opened, answers = [], []

    def wait(page):
        with urlopen(page.url) as response:
            answers.append(response.read().decode())
        raise KeyboardInterrupt

    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url))
    monkeypatch.setattr(commod.Explorer, "wait", wait)
    code, out, err = call("demo", "--target", "0.75", "--open", "--output", tmp_path)
    assert code == 0, err
    assert len(opened) == 1 and opened[0].startswith("file://")
    assert "<html" in answers[0]
    assert "Page: http://127.0.0.1:" in out and "Press Ctrl-C to end." in out


def test_parameters_of_the_other_method_are_refused(tmp_path, call):
    code, _, err = call("demo", "--method", "COMMOD", "--target", "0.8", "--output", tmp_path)
    assert code == 2 and "--target belongs to --method ControlledDebiaser" in err
