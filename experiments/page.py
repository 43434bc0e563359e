"""Write docs/paper.md: every entry, from the CSVs and the description of the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.entries import ENTRIES, NOT_IN_PAPER, Entry
from experiments.frames import read_frames
from experiments.markdown import table
from experiments.methods import label_of


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
    return {name: getattr(entry, name) for name in columns} | {
        "remarks": " ".join(remarks).replace("\n", " ")
    }


def _page(entries: list[Entry], info: dict[str, Any]) -> str:
    blocks = [*_head(info), _summary(entries)]
    for i, entry in enumerate(entries, start=1):
        source = "" if entry.claim.startswith(NOT_IN_PAPER) else "*The paper:* "
        blocks += [
            f"## {i}. {entry.title}",
            f"{source}{entry.claim}. *Verdict:* **{entry.status}**. {entry.verdict}",
            *entry.body,
        ]
    return "\n\n".join([*blocks, *_foot(info)]) + "\n"


def _head(info: dict[str, Any]) -> list[str]:
    quick = info["settings"] == "quick"
    folder = "experiments/results" + ("/quick" if quick else "")
    docs = "../../../docs/" if quick else ""
    title = "# The paper, reproduced" + (" (quick run: few splits and points)" if quick else "")
    warning = "**This run only checks that everything runs. Its verdicts mean little.**"
    return [
        title,
        *([warning] if quick else []),
        "This page computes every table and figure of *Controlled Model Debiasing through Minimal "
        "and Interpretable Updates* (TMLR 2025) again with this library. It shows our results "
        f"beside the paper's. `make paper{'-quick' if quick else ''}` writes the page. Every "
        f"number on it comes from a CSV of `{folder}` that the same command wrote.",
        "The protocol is the paper's: 70/30 splits, a logistic regression and decisions at 0.5. "
        "All figures are measured on the 30 % test rows. Where the paper is silent, ambiguous or "
        f"mistaken, [decision 0001]({docs}decisions/0001-reading-the-paper.md) says how we read "
        "it. For example, the paper does not say how it scales features, nor whether the "
        "sensitive column is a feature. Here it is not a feature.",
        "The paper mostly shows one split. We show means ± standard deviations over several "
        "splits. So every comparison below sets our mean beside a single draw of the paper.",
        "COMMOD appears in two variants. Table 1, Figure 1, its robustness, the deciding table, "
        "the trade-offs, the limits and the sparsity of concepts show both. All other entries show "
        "the adaptive one. Every table and legend names the variant.",
        "In the pictures, marks of several methods at the same place of an axis may stand side by "
        "side. A hollow mark means that not every split has an update there.",
        _glossary(),
    ]


def _glossary() -> str:
    meanings = {
        "black box": "the paper's word for the base model",
        "P-rule": "lowest selection rate over the highest; higher is fairer (DP, demographic "
        "parity). As in the paper, rates are those of label 1, also on COMPAS, where label 0 is "
        "favourable (`pos_label=1`)",
        "DM": "disparate mistreatment: gap of true positive rates plus gap of false positive "
        "rates; lower is fairer (EO, equalized odds)",
        "notion": "demographic parity or equalized odds",
        "sweep": "all updates that one method fits on one split, over a range of its settings",
        "level": "a value of the P-rule or of DM that an update has to reach",
        "Q1 to Q4": "segments of fairness or accuracy between the quartiles of one method's "
        "sweeps; Q4 is the fairest or most accurate. The method is AdvDebias (definition 1), LPP "
        "(definition 2) or ROC (definition 3)",
        "edges": "the three quartiles that separate Q1 to Q4",
        "cell": "a segment of fairness together with a segment of accuracy",
        "AdvDebias, FRAPPE, LPP, ROC": "adversarial debiasing (Zhang), an additive term, a linear "
        "programme, the reject option; our implementations, in `commod.rivals`",
        "blind": "decides without the group. AdvDebias, FRAPPE, LPP, COMMOD and "
        "ControlledDebiaser are blind. ROC and one form of LPP see the group (the paper's oracles)",
        "ControlledDebiaser": "this library's method: the user states the target, and the method "
        "changes as few decisions as it can",
        "exact limit": "the fewest changes that could reach a level, even with the group in hand",
        "COMMOD, adaptive": "the paper's method with this library's default settings: the weight "
        "of the adversary adapts, training starts at balanced concepts, and the adversary is small",
        "COMMOD, as in the paper": "`COMMOD.as_in_the_paper`: the weight is constant, training "
        "starts at v = 0 with random W, and the adversary has layers of 64, 32 and 16 units. The "
        "paper states the first; it is silent about the others",
        "adaptive, constant": "the weight of the adversary in COMMOD's loss: adaptive is ours, "
        "constant is the paper's",
    }
    return table(["word", "meaning on this page"], meanings.items(), numbers=False)


def _splits(numbers: dict[str, int]) -> str:
    return "; ".join(f"{name}: 0 to {n - 1}" for name, n in numbers.items())


def _added(part: dict[str, Any]) -> str:
    """Return how the results of a method or a table were computed apart from the main run."""
    versions = ", ".join(f"{name} {version}" for name, version in part["versions"].items())
    return (
        "computed separately from the other results. "
        f"Commit: {part['commit']}. Versions: {versions}. Machine: {_machine(part)}. "
        f"Seeds of splits: {_splits(part['splits'])}. Duration: {_size(part)} with "
        f"{part['jobs']} processes. Finished: {part['finished']}"
    )


def _machine(part: dict[str, Any]) -> str:
    machine = part["machine"]
    return f"{machine['processor']}, {machine['cores']} cores, {machine['system']}"


def _size(part: dict[str, Any]) -> str:
    return f"{part['n_cells']} computations, {part['cell_seconds'] / 60:.0f} min in all"


def _summary(entries: list[Entry]) -> str:
    rows = [
        [f"{i}. {e.title}", e.paper, e.ours, f"**{e.status}**"]
        for i, e in enumerate(entries, start=1)
    ]
    return table(["entry", "paper", "ours", "verdict"], rows, numbers=False)


def _foot(info: dict[str, Any]) -> list[str]:
    versions = ", ".join(f"{name} {version}" for name, version in info["versions"].items())
    rows = [
        ["commit", info["commit"]],
        ["versions", versions],
        ["seeds of splits", _splits(info["splits"])],
        [
            "other seeds",
            f"training 0; sensitivity 0 to {info['sensitivity_seeds'] - 1}; "
            f"refits of chosen updates on the first {info['few_splits']} splits that have them",
        ],
        ["machine", _machine(info)],
        [
            "duration",
            f"{_size(info)}; the last call took {info['wall_seconds'] / 60:.0f} min with "
            f"{info['jobs']} processes and reused {info['n_kept']} stored results",
        ],
        ["finished", info["finished"]],
        *([label_of(name), _added(part)] for name, part in info.get("added", {}).items()),
    ]
    left_out = [f"{name} was left out: {reason}" for name, reason in info["left_out"].items()]
    return ["## How this page was made", table(["what", "value"], rows, numbers=False), *left_out]
