"""Names from outside: no name of a column, group, label or file commands the terminal."""

import io
import json
import re
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from commod import Patch
from commod._text import json_text, plain, visible
from commod.cli import main
from commod.exceptions import CommodWarning, InputError
from commod.rivals import MinimalFlip
from commod.updates import _candidates
from quick_updates import quick_control
from tables_of_cases import every_line

pytest.importorskip("duckdb")

# what a terminal obeys, what is invisible, what turns the reading direction
FORBIDDEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
INCOME, TOWN, SCORE = "in\x1b[31mcome", "[red]to\x9bwn\u202e", "f\x7f\u200b"
LABEL, RACE = "y\u2066\x08", "ra\nce\x1b]0;x\x07"
GROUPS = ["bl\x1b[2Jack", "[bold]wh\r\nite\u2028commod: error: forged"]
TOWNS = ["Os\x1b[8mlo", "Ro\u2067me\x9b", "=Be\x0brn\x00"[:-1]]
TABLE, NEW = "tr\x1b[31ma\u202ein.csv", "[red]n\x9bew.csv"
NAMED = ("--label", LABEL, "--sensitive", RACE, "--score-column", SCORE)


def people(n, seed):
    random = np.random.default_rng(seed)
    group = random.integers(0, 2, n)
    income = random.normal(size=n) + 0.9 * group
    town = random.integers(0, 3, n)
    f = 1 / (1 + np.exp(-1.5 * income + 0.6 * (town == 0)))
    return pd.DataFrame(
        {
            INCOME: income.round(2),
            TOWN: np.array(TOWNS, dtype=object)[town],
            SCORE: f.round(3),
            LABEL: np.where(random.random(n) < f, "y\x1b[1mes", "n\u202eo"),
            RACE: np.array(GROUPS, dtype=object)[group],
        }
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Return a folder with hostile tables and a patch that was fitted on one."""
    folder = tmp_path_factory.mktemp("hostile")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(_candidates, "N_TARGETS", 2)
        table = people(600, 0)
        table.to_csv(TABLE, index=False)
        people(600, 1).to_csv(NEW, index=False)
        decided = people(600, 2)
        labels = np.array(["n\u202eo", "y\x1b[1mes"], dtype=object)
        decided["old\x1b"] = labels[(decided[SCORE] > 0.5) * 1]
        decided["new\x1b"] = labels[(decided[SCORE] > 0.4) * 1]
        decided.to_csv("decided.csv", index=False)
        patch.setattr(sys, "argv", ["commod", *DEBIAS, "--out", "patch.json"])
        printed = io.StringIO()
        with pytest.raises(SystemExit) as stop, redirect_stdout(printed), redirect_stderr(printed):
            main()
        assert stop.value.code in (0, 1) and not FORBIDDEN.findall(printed.getvalue())
        yield folder


DEBIAS = ("debias", TABLE, *NAMED, "--at-least", "0.8", "--positive", "y\x1b[1mes", "--force")
AUDIT = ("audit", "decided.csv", "--before", "old\x1b", "--after", "new\x1b", "--sensitive", RACE)
COMMANDS = {
    "debias": (*DEBIAS, "--report", "re\x1bport.html", "--ledger", "led\x1bger.csv"),
    "debias, no audit": (*DEBIAS, "--out", "ot\x1bher.json"),
    "audit": (*AUDIT, "--label", LABEL, "--report", "[red]a\x9b.md", "--force"),
    "audit, counts only": (*AUDIT, "--engine", "duckdb"),
    "check": ("check", "patch.json", NEW, "--sensitive", RACE, "--label", LABEL),
    "show": ("show", "patch.json", "--all"),
    "show, diff": ("show", "patch.json", "--diff", "ot\x1bher.json"),
    "apply": ("apply", "patch.json", NEW, "ed\x1bited.csv", "--force"),
    "sql": ("sql", "patch.json", "--dialect", "duckdb", "--table", "t"),
    "sql, file": ("sql", "patch.json", "--dialect", "duckdb", "--table", "t", "--out", "\x1b.sql"),
    "compare": ("compare", TABLE, *NAMED, "--method", "MinimalFlip", "--out", "c\x9b.csv"),
    "no such command": ("no\x1b[31msuch\u202e",),
    "no such file": ("show", "no\x1b[31msuch\u202e.json"),
    "no such option": ("show", "--no\x1b[31msuch\u202e"),
    "no such column": ("check", "patch.json", NEW, "--sensitive", "no\x1bsuch"),
    "no such label": ("debias", TABLE, *NAMED, "--at-least", "0.8", "--positive", "\x1bno"),
    "no such type": ("debias", TABLE, *NAMED, "--type", "\x1b=\x9b"),
    "no such method": ("compare", TABLE, *NAMED, "--method", "\x1b[31m"),
    "no patch": ("show", TABLE),
    "file exists": ("apply", "patch.json", NEW, "ed\x1bited.csv"),
    "no such dialect": ("sql", "patch.json", "--dialect", "\x1b", "--table", "t"),
    "no such table": ("sql", "patch.json", "--dialect", "duckdb", "--table", "\x1b;"),
    "a column for two": ("debias", TABLE, *NAMED, "--ignore", SCORE),
    "no number": ("debias", TABLE, *NAMED, "--at-least", "\x1b[31m"),
}


@pytest.fixture
def call(home, monkeypatch, capsys):
    """Return what runs a command in the folder: its exit code and all that it printed."""
    monkeypatch.chdir(home)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["commod", *arguments])
        capsys.readouterr()
        with warnings.catch_warnings(), pytest.raises(SystemExit) as stop:
            warnings.simplefilter("always")
            main()
        printed = capsys.readouterr()
        return stop.value.code, printed.out, printed.err

    return run


# A command that ends well prints its answer in two forms; an error is printed in the same way.
IN_BOTH_FORMS = ("audit", "show", "apply", "sql", "no such file")


def test_no_command_prints_or_reports_a_control_character(call, home):
    in_text = [name for name in COMMANDS if name != "debias, no audit"]  # the fixture printed it
    forms = [("debias, no audit", ("--json",)), *((name, ()) for name in in_text)]
    for name, form in forms + [(name, ("--json",)) for name in IN_BOTH_FORMS]:
        code, out, err = call(*COMMANDS[name], *form)
        assert code in (0, 1, 2) and out + err, (name, code, out, err)
        assert not FORBIDDEN.findall(out + err), (name, ascii(out + err))
        lines = (out + err).splitlines()
        assert not any(line.startswith("commod: error: forged") for line in lines), name
        if form:
            json.loads(out)
    ledger = (home / "led\x1bger.csv").read_text()
    assert "⟨U+001B⟩" in ledger and not FORBIDDEN.findall(ledger)
    page = (home / "re\x1bport.html").read_text()
    assert not FORBIDDEN.findall(re.sub("[\t\u2068\u2069]", "", page))  # isolates are our own


def test_names_are_shown_and_markup_is_not_obeyed(call, home):
    _, out, _ = call(*COMMANDS["audit"])
    assert "⟨U+001B⟩[2Jack" in out and "[bold]wh ite" in out and "[red]a⟨U+009B⟩.md" in out
    assert not FORBIDDEN.findall((home / "[red]a\x9b.md").read_text())


def test_sql_is_exact_in_a_file_and_not_printed(call, home):
    code, _, err = call(*COMMANDS["sql"])
    assert code == 2 and "--out" in err
    code, *_ = call(*COMMANDS["sql, file"], "--force")
    assert code == 0
    text = (home / "\x1b.sql").read_text()
    assert INCOME in text and not FORBIDDEN.findall("".join(re.findall("--.*", text)))
    code, out, _ = call(*COMMANDS["sql"], "--json")
    assert code == 0 and json.loads(out)["sql"].strip() == text.strip()


def test_the_patch_reads_its_columns_by_their_exact_names(call, home):
    assert INCOME in [c.name for c in Patch.load(home / "patch.json").content.ratio.columns]


# -- the library ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [InputError, CommodWarning])
def test_messages_of_errors_and_warnings_show_codes(kind):
    message = kind("column \x1b[31mage\u202e\nsecond line")
    assert str(message) == "column ⟨U+001B⟩[31mage⟨U+202E⟩\nsecond line"


def test_what_the_library_prints_shows_codes(home):
    from commod import ScoreColumn, audit, compare, explain, frontier

    table = people(600, 0)
    X, y, groups = table.drop(columns=[LABEL, RACE]), table[LABEL], table[RACE]
    update = quick_control(ScoreColumn(SCORE), target=0.8, pos_label="y\x1b[1mes")
    update.fit(X, y, sensitive_features=groups)
    why = explain(update, X)
    labels = np.array(["n\u202eo", "y\x1b[1mes"], dtype=object)
    before = labels[(table[SCORE] > 0.5) * 1]
    result = audit(
        before, update.predict(X), sensitive_features=groups, y_true=y, X=X, explanation=why
    )
    curve = frontier(update, X, y, sensitive_features=groups, targets=[0.8])
    flip = MinimalFlip(ScoreColumn(SCORE), pos_label="y\x1b[1mes")
    methods = compare([flip], X, y, sensitive_features=groups)
    shown = {
        "status": update.status_,
        "scorecard": repr(update.scorecard_),
        "patch": f"{update.to_patch()} {update.to_patch()!r}",
        "explanation": f"{why} {why!r}",
        "segments": " ".join(s.text for s in why.segments.segments),
        "person": why.person(int(np.flatnonzero(why.gain | why.loss)[0])).sentence,
        "answer": " ".join(result.answer),
        "ledger": repr(result.ledger),
        "frontier": f"{curve} {curve!r}",
        "comparison": f"{methods} {methods!r}",
    }
    assert {name: ascii(t) for name, t in shown.items() if FORBIDDEN.findall(t)} == {}


@every_line(
    "text, shown",
    [
        ("a\x1bb", "a⟨U+001B⟩b"),
        ("a\x9bb\x7f", "a⟨U+009B⟩b⟨U+007F⟩"),
        ("\u202egnp.exe", "⟨U+202E⟩gnp.exe"),
        ("a\udc80", "a⟨U+DC80⟩"),
        ("one\r\ntwo\u2028three\tfour", "one two three four"),
        ("a\u200dge", "a⟨U+200D⟩ge"),
        ("\U000e0041tag", "⟨U+E0041⟩tag"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("👩\u200d🔬", "👩\u200d🔬"),
        ("Müller [red]", "Müller [red]"),
    ],
)
def test_text_is_made_visible(text, shown):
    assert visible(text) == shown == plain(text)
    assert json.loads(json_text(json.dumps([text], ensure_ascii=False))) == [text]


def test_every_character_that_a_terminal_obeys_is_shown():
    control = [chr(i) for i in (*range(32), *range(127, 160))]
    assert not FORBIDDEN.findall("".join(map(visible, control)))
    assert Path and all(len(visible(c)) >= 1 for c in control)
