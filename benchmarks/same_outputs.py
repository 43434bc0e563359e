"""Cases of `same_fits.py`: what users read in reports, notebooks, pictures, pages and shells."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch as replaced

import matplotlib as mpl
import numpy as np
import pandas as pd

from benchmarks.same_rows import FitRows, biased, compas, fitted, loans, three, with_gaps
from commod import (
    ControlledDebiaser,
    Patch,
    ScoreColumn,
    audit,
    compare,
    explain,
    frontier,
    report,
    stability,
)
from commod._explore.edits import PeopleOfFit
from commod._explore.server import open_session
from commod.constraints import DemographicParity, EqualizedOdds, MinimumRate
from commod.rivals import MinimalFlip, RejectOption

Texts = dict[str, str]
DATES = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?([+-]\d\d:\d\d| UTC)?)?"
    r"|\b[0-9a-f]{64}\b|\b[0-9a-f]{12,16}\b|\d+\.\d+\.\d+(\.dev\d+)?|\b\d+(\.\d+)? s\b|/tmp/\w+"
)


LONG = re.compile(r"\d+\.\d{9,}(e[-+]?\d+)?")


def undated(text: str) -> str:
    """Return a text without dates, digests, versions, seconds and names of temporary folders.

    Numbers keep eight digits: the last ones differ by processor.
    """
    return DATES.sub("…", LONG.sub(lambda found: f"{float(found[0]):.8g}", text))


# ---------------------------------------------------------------------------------------------
# Reports and notebooks


def reported(one: Any, **parts: Any) -> Texts:
    """Return the report of an audit as Markdown and as a page."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [report(one, Path(folder, f"r.{kind}"), **parts) for kind in ("md", "html")]
        return {f"report{p.suffix}": undated(p.read_text("utf-8")) for p in paths}


def shown(one: Any) -> Texts:
    """Return what a shell and a notebook show of an object."""
    page = getattr(one, "_repr_html_", None)
    return {"in a shell": undated(repr(one)), "in a notebook": undated(page() if page else "")}


def scores_of(rows: FitRows) -> Any:
    """Return the base scores of rows, (n,)."""
    is_column = isinstance(rows.model, ScoreColumn)
    return rows.X["score"].to_numpy() if is_column else rows.model.predict_proba(rows.X)[:, 1]


def whole_report(rows: FitRows, **params: Any) -> Texts:
    """Return the report with all parts that a signer may ask for."""
    update = fitted(ControlledDebiaser(rows.model, **params), rows)
    told = {"sensitive_features": rows.groups}
    scores = scores_of(rows)
    curve = frontier(update, rows.X, rows.y, **told, targets=[0.6, 0.7, 0.8])
    refits = stability(update, rows.X, rows.y, **told, n_refits=5, random_state=0, progress=False)
    one = audit(
        (scores > 0.5).astype(int),
        update.predict(rows.X),
        **told,
        y_true=rows.y,
        scores_before=scores,
        scores_after=update.predict_proba(rows.X)[:, 1],
        X=rows.X,
        explanation=explain(update, rows.X),
        request=update.request(),
        stability=refits,
        title="A report with all parts",
        row_ids=[f"person {i}" for i in range(len(rows.X))],
        label_names={0: "refused", 1: "granted"},
    )
    parts = {"frontier": curve, "patch": update.to_patch().with_audit(one)}
    return {**reported(one, **parts), "ledger": json.dumps(one.ledger.columns)}


def notebook(rows: FitRows) -> Texts:
    """Return what a notebook shows of each object that users hold."""
    update = fitted(ControlledDebiaser(rows.model), rows)
    told = {"sensitive_features": rows.groups}
    why = explain(update, rows.X)
    person = int(np.flatnonzero(why.before != why.after)[0])
    methods = [ControlledDebiaser(rows.model), MinimalFlip(rows.model), RejectOption(rows.model)]
    objects = {
        "card": update.scorecard_,
        "patch": update.to_patch(),
        "frontier": frontier(update, rows.X, rows.y, **told, targets=[0.7, 0.8]),
        "comparison": compare(methods, rows.X, rows.y, **told, progress=False),
        "stability": stability(
            update, rows.X, rows.y, **told, n_refits=4, random_state=0, progress=False
        ),
        "explanation": why,
        "person": why.person(person),
        "audit": audit(why.before, why.after, **told, y_true=rows.y),
    }
    texts = {
        f"{name}, {part}": t for name, one in objects.items() for part, t in shown(one).items()
    }
    texts["patch as text"] = undated(objects["patch"].to_text(every_term=True))
    return texts


# ---------------------------------------------------------------------------------------------
# Pictures


def picture(display: Any) -> str:
    """Return the texts, lines, bars and points of a picture, with four digits."""
    found = []
    for axes in display.figure_.axes:
        for artist in axes.get_children():
            kind = type(artist).__name__
            if isinstance(artist, mpl.lines.Line2D):
                found.append([kind, artist.get_label(), np.round(artist.get_xydata(), 4).tolist()])
            elif isinstance(artist, mpl.patches.Rectangle):
                found.append([kind, np.round(artist.get_bbox().bounds, 4).tolist()])
            elif isinstance(artist, mpl.collections.Collection):
                offsets = np.ma.filled(artist.get_offsets(), np.nan)
                found.append([kind, np.round(np.asarray(offsets, float), 4).tolist()])
            elif isinstance(artist, mpl.text.Text) and artist.get_text():
                found.append([kind, artist.get_text()])
        labels = [axes.get_xlabel(), axes.get_ylabel(), axes.get_title()]
        ticks = [t.get_text() for t in [*axes.get_xticklabels(), *axes.get_yticklabels()]]
        visible = [spine for spine, one in axes.spines.items() if one.get_visible()]
        found.append([labels, ticks, visible])
    return json.dumps(found)


def pictures(rows: FitRows) -> Texts:
    """Return all pictures of an update."""
    mpl.use("agg")
    from matplotlib import pyplot as plt

    from commod import CalibrationDisplay, ChangeDisplay, ConceptDisplay, FrontierDisplay

    update = fitted(ControlledDebiaser(rows.model), rows)
    told = {"sensitive_features": rows.groups}
    found = {
        "concepts": picture(ConceptDisplay.from_estimator(update, rows.X)),
        "few terms": picture(ConceptDisplay.from_estimator(update, rows.X, max_terms=2)),
        "changes": picture(ChangeDisplay.from_estimator(update, rows.X, **told)),
        "calibration": picture(CalibrationDisplay.from_estimator(update, rows.X, rows.y, **told)),
        "frontier": picture(
            FrontierDisplay.from_frontier(frontier(update, rows.X, rows.y, **told, targets=[0.7]))
        ),
    }
    plt.close("all")
    return found


# ---------------------------------------------------------------------------------------------
# The page to explore


def page(rows: FitRows, **params: Any) -> Texts:
    """Return the views of the page: as fitted, after edits, beside another draft, of a person."""
    update = fitted(ControlledDebiaser(rows.model, **params), rows)
    people = PeopleOfFit(X=rows.X, y=rows.y, sensitive_features=rows.groups)
    session = open_session(update, people)
    term = session.terms()["rows"][0] if "rows" in session.terms() else None
    first = session.state()
    views = {"first": first, "terms": session.terms("1"), "term": term}
    session.keep()
    name = update.scorecard_.encoding.term_names[0]
    edit = {name: 1.0}
    views["preview"] = session.preview(edit)
    views["edited"] = session.edit(session.state()["version"], edit, by="Ann", note="a talk")
    views["state"] = session.state()
    views |= {"segments": session.segments(), "person": session.person(0)}
    views["undone"] = session.go(session.state()["version"], 0)
    views["python"] = session.python()
    return {key: undated(json.dumps(view, default=str)) for key, view in views.items()}


# ---------------------------------------------------------------------------------------------
# Commands

FIT = "debias t.csv --score-column f --label y --sensitive race"
AUDIT = "audit d.csv --before old --after new --sensitive race"
COMMANDS = {
    "debias": f"{FIT} --at-least 0.8 --out p.json --report r.md --ledger l.csv",
    "debias, again": f"{FIT} --at-least 0.8 --out p.json",
    "debias as data": f"{FIT} --at-least 0.7 --json --out d.json --refits 3",
    "debias, odds": f"{FIT} --constraint equalized_odds --at-most 0.2 --out o.json",
    "debias, a budget": f"{FIT} --max-changes 0.02 --out b.json",
    "debias, gains only": f"{FIT} --direction gains_only --at-least 0.75 --out g.json --ignore x1",
    "debias in duckdb": f"{FIT} --at-least 0.75 --engine duckdb --out e.json --key id",
    "whole numbers": f"{FIT} --points integers --out i.json --report i.html --trade-off",
    "rows held out": f"{FIT} --test-size 0.3 --at-least 0.85 --out h.json --report h.md",
    "out of reach": f"{FIT} --at-least 0.99 --max-changes 0.001 --out n.json",
    "no such file": "debias nowhere.csv --score-column f --sensitive race --out z.json",
    "no such column": "debias t.csv --score-column nothing --sensitive race --out z.json",
    "no such constraint": f"{FIT} --constraint fairness",
    "a bad number": f"{FIT} --at-least 1.5",
    "show": "show p.json",
    "show all": "show i.json --all",
    "check": "check p.json n.csv --score f --sensitive race",
    "check with labels": "check p.json n.csv --score f --sensitive race --label y --json",
    "check in duckdb": "check p.json n.csv --score f --sensitive race --label y --engine duckdb",
    "apply": "apply p.json n.csv a.csv --score f",
    "sql": "sql p.json --table people --score f --dialect duckdb",
    "sql, postgres": "sql i.json --table people --score f --dialect postgres",
    "verify": "verify p.json r.md",
    "verify another": "verify o.json r.md",
    "audit": AUDIT,
    "audit with labels": f"{AUDIT} --label y --report au.md --strict",
    "audit as data": f"{AUDIT} --label y --json",
    "audit by counts": f"{AUDIT} --label y --engine duckdb",
    "compare": "compare t.csv --score-column f --label y --sensitive race",
    "no command": "nothing",
    "no patch": "show missing.json",
}


def command_table(seed: int, n: int = 700) -> pd.DataFrame:
    """Return people with a score, a label, a group and two columns of decisions."""
    rows = loans(4000).sample(n, random_state=seed)
    f = rows["score"].round(4)
    told = {"f": f, "race": rows["region"], "old": (f > 0.5) * 1, "new": (f > 0.45) * 1}
    return rows.drop(columns=["score", "region"]).assign(**told, age=np.arange(n) % 50 + 18)


def run_command(line: str) -> dict[str, Any]:
    """Return what a command prints, and how it ends."""
    from commod.cli import main

    out, err, code = io.StringIO(), io.StringIO(), 0
    with redirect_stdout(out), redirect_stderr(err), replaced.object(sys, "argv", line.split()):
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    # Neither what starts Python nor whether two files were made in the same second is compared. The
    # second is among the fields of a report's copy of the patch, of which some are listed.
    changing = re.compile(r"python -m [\w.]+(?=\.commod)\.|^created: .*\n|^patch[.:].*\n", re.M)
    printed = [changing.sub("", text.getvalue()) for text in (out, err)]
    return {"code": code, "out": printed[0], "err": printed[1]}


def commands() -> Texts:
    """Return the transcript of each command, and the texts that they write."""
    texts = {}
    columns = {"COLUMNS": "100", "TERMINAL_WIDTH": "100", "NO_COLOR": "1"}
    with tempfile.TemporaryDirectory() as folder, chdir(folder), replaced.dict(os.environ, columns):
        for name, seed in (("t.csv", 0), ("n.csv", 1), ("d.csv", 2)):
            command_table(seed).to_csv(name, index=False)
        for name, line in COMMANDS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                texts[name] = undated(json.dumps(run_command(f"commod {line}")))
        for path in sorted(Path().glob("*.[mc][ds]*")):
            if path.name[1:] != ".csv" or path.name in ("l.csv", "a.csv"):
                texts[path.name] = undated(path.read_text("utf-8"))
        texts["patches"] = ", ".join(sorted(p.name for p in Path().glob("*.json")))
        assert Patch.load("p.json").content
    return texts


ODDS = EqualizedOdds(0.2)
OUTPUTS: dict[str, Callable[[], Texts]] = {
    "a report with all parts": lambda: whole_report(biased(), target=0.8),
    "a report of COMPAS": lambda: whole_report(compas(), target=0.8, borderline=0.5),
    "a report of odds": lambda: whole_report(biased(), constraints=ODDS),
    "a report of three groups": lambda: whole_report(three(), target=0.85, max_lines=None),
    "a report of two constraints": lambda: whole_report(
        with_gaps(), constraints=DemographicParity(ratio=0.8) & MinimumRate(0.3)
    ),
    "a notebook": lambda: notebook(with_gaps()),
    "pictures": lambda: pictures(with_gaps()),
    "a page": lambda: page(with_gaps(), target=0.8),
    "a page of whole numbers": lambda: page(three(), target=0.8, points="integers"),
    "commands": commands,
}
