"""Write the page: every entry, from the CSVs and the description of the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.entries import ENTRIES, NOT_THERE, Entry
from experiments.frames import read_frames
from experiments.markdown import table


def write_page(folder: Path, path: Path, pictures: str) -> None:
    """Write the page and `claims.csv`; `pictures` is the path from the page to the folder."""
    frames = read_frames(folder)
    info = json.loads((folder / "run.json").read_text())
    entries = [make(frames, pictures) for make in ENTRIES]
    pd.DataFrame([_claim(entry) for entry in entries]).to_csv(folder / "claims.csv", index=False)
    path.write_text(_page(entries, info))


def _claim(entry: Entry) -> dict[str, str]:
    """Return an entry without pictures and without tables, which have CSVs of their own."""
    columns = ("title", "claim", "paper", "ours", "status", "verdict")
    remarks = [block for block in entry.body if not block.startswith(("|", "[!", "**"))]
    return {name: getattr(entry, name) for name in columns} | {"remarks": " ".join(remarks)}


def _page(entries: list[Entry], info: dict[str, Any]) -> str:
    blocks = [*_head(info), _summary(entries)]
    for i, entry in enumerate(entries, start=1):
        who = "" if entry.claim.startswith(NOT_THERE) else "*The paper:* "
        blocks += [
            f"## {i}. {entry.title}",
            f"{who}{entry.claim}. *Verdict:* **{entry.status}**. {entry.verdict}",
            *entry.body,
        ]
    return "\n\n".join([*blocks, *_foot(info)]) + "\n"


def _head(info: dict[str, Any]) -> list[str]:
    quick = info["settings"] == "quick"
    where = "experiments/results" + ("/quick" if quick else "")
    docs = "../../../docs/" if quick else ""
    title = "# The paper, reproduced" + (" (quick run: few splits and points)" if quick else "")
    warning = ["**Made to see that everything runs; its verdicts mean little.**"] if quick else []
    return [
        title,
        *warning,
        "Every table and figure of *Controlled Model Debiasing through Minimal and Interpretable "
        "Updates* (TMLR 2025), computed anew with this library, beside what the paper prints. This "
        f"page is written by `make paper{'-quick' if quick else ''}`; every number on it comes "
        f"from a CSV of `{where}` that the same command wrote. The protocol is the paper's: 70/30 "
        "splits, a logistic regression, decisions at 0.5, all figures measured on the 30 % test "
        "rows. Where the paper is silent (the scale of features, whether the sensitive column is "
        "one: here it is not), ambiguous or mistaken, "
        f"[decision 0001]({docs}decisions/0001-reading-the-paper.md) says how it was read. The "
        "paper shows mostly one split, we show means ± standard deviations over several: every "
        "comparison below is one of ours in the mean with one of theirs drawn once. In the "
        "pictures, marks of methods at the same place of an axis may stand side by side, and a "
        "hollow mark stands where not every split has an update.",
        _glossary(),
    ]


def _glossary() -> str:
    words = {
        "P-rule": "lowest over highest rate of positive decisions; higher is fairer (DP, "
        "demographic parity)",
        "DM": "disparate mistreatment, gap of true plus gap of false positive rates; lower is "
        "fairer (EO, equalized odds)",
        "Q1 to Q4": "segments of fairness or accuracy, Q4 the fairest or most accurate; quartiles "
        "of AdvDebias (definition 1), LPP (2) or ROC (3)",
        "AdvDebias, FRAPPE, LPP, ROC": "adversarial debiasing (Zhang), an additive term, a linear "
        "programme, the reject option; our implementations, in `commod.rivals`",
        "blind": "decides without the group: AdvDebias, FRAPPE, LPP, COMMOD, ControlledDebiaser; "
        "ROC and one form of LPP see the group (the paper's oracles)",
        "ControlledDebiaser": "this library's method: the target is stated, the changes are fewest",
        "exact limit": "the fewest changes that reach a level, exactly, with the group in hand",
        "adaptive, constant": "weight of the adversary in COMMOD's loss: ours, and the paper's",
    }
    return table(["word", "here it means"], words.items(), numbers=False)


def _summary(entries: list[Entry]) -> str:
    rows = [
        [f"{i}. {e.title}", e.paper, e.ours, f"**{e.status}**"]
        for i, e in enumerate(entries, start=1)
    ]
    return table(["entry", "paper", "ours", "verdict"], rows, numbers=False)


def _foot(info: dict[str, Any]) -> list[str]:
    machine, versions = info["machine"], info["versions"]
    splits = "; ".join(f"{name}: 0 to {n - 1}" for name, n in info["splits"].items())
    rows = [
        ["commit", info["commit"]],
        ["versions", ", ".join(f"{name} {version}" for name, version in versions.items())],
        ["seeds of splits", splits],
        [
            "other seeds",
            f"training 0; sensitivity 0 to {info['sensitivity_seeds'] - 1}; "
            f"refits of chosen updates on the first {info['few_splits']} splits that have them",
        ],
        ["machine", f"{machine['processor']}, {machine['cores']} cores, {machine['system']}"],
        [
            "duration",
            f"{info['n_cells']} cells, {info['cell_seconds'] / 60:.0f} min of computing in all; "
            f"the last call took {info['wall_seconds'] / 60:.0f} min with {info['jobs']} at once "
            f"and found {info['n_kept']} cells kept from before",
        ],
        ["finished", info["finished"]],
    ]
    left_out = [f"{name} was left out: {why}" for name, why in info["left_out"].items()]
    return ["## How this page was made", table(["what", "value"], rows, numbers=False), *left_out]
