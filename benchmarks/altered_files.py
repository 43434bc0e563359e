"""Alter one value of a patch, its audit or its report, and let `commod verify` judge the files.

`python -m benchmarks.altered_files 3000` makes 3,000 seeded alterations, each with all SHA-256
computed anew. So only what the files say against each other can give an alteration away. What is
accepted is listed with its reason from `UNREAD`; anything else is a fault of `verify`.
"""

from __future__ import annotations

import copy
import fnmatch
import hashlib
import json
import math
import re
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from sklearn.linear_model import LogisticRegression

from commod import (
    ControlledDebiaser,
    Patch,
    ScoreColumn,
    audit,
    explain,
    frontier,
    report,
    verify_report,
)
from commod._record.audit import Audit
from commod._record.plain import from_plain, plain_digest
from commod._reporting.render.embedding import KEY, ZEROS, json_block, sealed
from commod.constraints import DemographicParity, MinimumRate
from commod.datasets import make_biased
from commod.edit import Round
from commod.exceptions import CommodError, TargetWarning
from commod.patch.content import Content
from commod.patch.file import absent_fields, content_digest, upgraded, version_of

# Fields that a signer does not read: an alteration of them alone may be accepted.
DIGITS = "a digit beyond those that a report shows"
IN_TEXT = "the report shows the rule as its text, which is compared"
IN_LINES = "a concept repeats lines of the scorecard; those are shown and compared"
ELSEWHERE = "for programs; the report shows the same fact from another field, which is compared"
SOMETIMES = "for programs; the report shows it only where it matters, and compares it there"
UNREAD = {
    "audit.segments.segments.*.conditions*": IN_TEXT,
    "audit.card.concepts.*.lines*": IN_LINES,
    "audit.card.lines.*.concept": IN_LINES,
    "audit.changes.selected_*": ELSEWHERE,
    "audit.fairness.*.constraints": ELSEWHERE,
    "audit.fairness.*.is_approximate": SOMETIMES,
    "audit.fairness.*.n": ELSEWHERE,
    "audit.fairness.*.metric": ELSEWHERE,
    "audit.fairness.*.other_*": SOMETIMES,
    "audit.limit.direction": ELSEWHERE,
    "audit.limit.n_changes": ELSEWHERE,
    "audit.limit.n_gains_only": SOMETIMES,
    "audit.limit.n_target*": SOMETIMES,
    "audit.proxies.*.difference*": SOMETIMES,
    "audit.quality.p_value": SOMETIMES,
    "audit.request.alternatives*": "the sentence of a check states them, which is compared",
    "audit.request.favorable_name": "without it the report shows the label, which is the name here",
    "audit.request.other_*": SOMETIMES,
    "audit.roc.groups.*.gap_*.area.*": SOMETIMES,
    "audit.roc.n_left_out": SOMETIMES,
    "audit.segments.n_described_*": SOMETIMES,
    "audit.stability.failure": SOMETIMES,
    "patch.history.*.earlier.ratio.max_margin": "null and absent mean the same, so nothing changed",
}


class Files(NamedTuple):
    """A patch and its report as bytes; `suffix` is the format of the report."""

    patch: bytes
    report: bytes
    suffix: str


class Alteration(NamedTuple):
    """One altered value: in which part of the files, by what path, how, and the altered files."""

    part: str
    path: tuple[Any, ...]
    how: str
    files: Files

    @property
    def field(self) -> str:
        """Return the path with a star for each position."""
        return ".".join(["*" if isinstance(key, int) else str(key) for key in self.path])


def files_of(patch: Patch, audited: Audit, suffix: str, steps: Any = None) -> Files:
    """Return a patch and the report of its audit as they are written."""
    with tempfile.TemporaryDirectory() as folder:
        path = report(audited, Path(folder) / f"report{suffix}", patch=patch, frontier=steps)
        return Files(patch.to_json().encode(), path.read_bytes(), suffix)


def verdict(files: Files, folder: Path) -> str:
    """Return "accepted", "refused by name" or "not read" for two files."""
    paths = folder / "patch.json", folder / f"report{files.suffix}"
    paths[0].write_bytes(files.patch)
    paths[1].write_bytes(files.report)
    try:
        return "accepted" if verify_report(*paths).passed else "refused by name"
    except CommodError:
        return "not read"


# ---------------------------------------------------------------------------------------------
# Alterations


def alterations(files: Files, random: Random) -> Iterator[Alteration]:
    """Yield seeded alterations without end: of patch, audit, what ships, data and text."""
    data, patch = data_of(files), json.loads(files.patch)
    parts = {
        "patch": lambda: _in_patch(files, patch, random),
        "audit": lambda: _in_data(files, data, ("audit",), random),
        "report": lambda: _in_data(files, data, (), random),
        "text": lambda: _in_text(files, random),
    }
    while True:
        name = random.choices([*parts], weights=[4, 8, 2, 1])[0]
        made = parts[name]()
        if made is not None and (made.files.patch, made.files.report) != files[:2]:
            yield made


def data_of(files: Files) -> dict[str, Any]:
    """Return the object that a report holds."""
    return dict(json.loads(files.report[slice(*_block(files))]))


def _block(files: Files) -> tuple[int, int]:
    """Return where the object lies in the report."""
    if files.suffix == ".json":
        return 0, len(files.report)
    pattern = {
        ".html": rb'<script type="application/json" id="commod-report">(.*?)</script>',
        ".md": rb"<!-- commod-report (.*?) -->",
    }[files.suffix]
    found = re.search(pattern, files.report, re.DOTALL)
    assert found is not None
    return found.span(1)


def _in_patch(files: Files, tree: dict[str, Any], random: Random) -> Alteration | None:
    changed = copy.deepcopy(tree)
    path, how = alter(changed, random)
    if path == ("digest",):
        return None  # it is computed anew
    data = _with_digest(changed)
    return Alteration("patch", path, how, _resealed(files, data, None))


def _with_digest(tree: dict[str, Any]) -> bytes:
    """Return a patch file with the digest that its content has, if it still has one."""
    try:
        bare = {name: value for name, value in tree.items() if name != "digest"}
        version = version_of(bare.get("schema"))
        content = from_plain(Content, upgraded(copy.deepcopy(bare), version))
        tree = {**bare, "digest": content_digest(content, version, absent_fields(bare))}
    except Exception:  # then `verify` has to refuse it
        pass
    return (json.dumps(tree, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "replace")


def _in_data(
    files: Files, data: dict[str, Any], part: tuple[str, ...], random: Random
) -> Alteration | None:
    changed = copy.deepcopy(data)
    tree = changed
    for key in part:
        tree = tree[key]
    if not part:
        tree = {key: value for key, value in changed.items() if key not in ("audit", KEY)}
    path, how = alter(tree, random)
    if not part:
        changed = {**tree, "audit": changed["audit"], KEY: ZEROS}
    return Alteration(
        "audit" if part else "report", path, how, _resealed(files, files.patch, changed)
    )


def _in_text(files: Files, random: Random) -> Alteration | None:
    """Alter one character that people read, outside the data."""
    start, end = _block(files)
    if files.suffix == ".json":
        return None
    at = random.choice([i for i in range(len(files.report)) if not start <= i < end])
    old = files.report[at : at + 1]
    new = b"7" if old.isdigit() and old != b"7" else b"x" if old != b"x" else b"y"
    changed = files.report[:at] + new + files.report[at + 1 :]
    place = sealed(_unsealed(changed, files.suffix))
    return Alteration("text", ("character",), "another character", files._replace(report=place))


def _resealed(files: Files, patch: bytes, data: dict[str, Any] | None) -> Files:
    """Return the files with every SHA-256 computed anew, as an attacker would.

    The digest of the audit goes into the patch; that of the patch, and both into the report,
    wherever it states them.
    """
    original = data_of(files)
    changed = original if data is None else data
    audited = plain_digest(changed.get("audit"))
    old = {"audit": plain_digest(original["audit"])}
    old["patch"] = hashlib.sha256(files.patch).hexdigest()
    old["content"] = json.loads(files.patch)["digest"]
    if audited != old["audit"]:
        tree = json.loads(patch)
        patch = _with_digest({**tree, "audit": audited})
    try:
        content = str(json.loads(patch).get("digest"))
    except AttributeError:
        content = old["content"]
    new = {"audit": audited, "patch": hashlib.sha256(patch).hexdigest(), "content": content}

    def renewed(part: str) -> str:
        for name, digest in old.items():
            part = part.replace(digest, new[name])
        return part

    block = {**changed, KEY: ZEROS} if KEY in changed else changed
    if files.suffix == ".json":
        whole = renewed(json.dumps(block, indent=2, ensure_ascii=False))
    else:
        start, end = _block(files)
        head, tail = files.report[:start].decode(), files.report[end:].decode()
        whole = renewed(head) + renewed(json_block(block)) + renewed(tail)
    raw = whole.encode("utf-8", "backslashreplace")
    try:
        return Files(patch, sealed(raw), files.suffix)
    except CommodError:  # without a place for its seal
        return Files(patch, raw, files.suffix)


def _unsealed(data: bytes, suffix: str) -> bytes:
    """Return a report with zeros in the place of its seal."""
    places = [*re.finditer(rb'"report_sha256": ?"([0-9a-f]{64})"', data)]
    if not places:
        return data
    start, end = places[-1].span(1)
    return data[:start] + ZEROS.encode() + data[end:]


def leaves(tree: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values below a tree, those of objects and lists too."""
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(tree, dict):
        items = tree.items()
    elif isinstance(tree, list):
        items = enumerate(tree)
    return [p for key, value in items for p in [(*here, key), *leaves(value, (*here, key))]]


def alter(tree: Any, random: Random) -> tuple[tuple[Any, ...], str]:
    """Alter one value of a tree in place; return its path and how it was altered.

    First a kind of field is chosen, then one of its places: so long lists do not hide short fields.
    """
    kinds: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for path in leaves(tree):
        kind = tuple("*" if isinstance(key, int) else key for key in path)
        kinds.setdefault(kind, []).append(path)
    path = random.choice(kinds[random.choice([*kinds])])
    holder = tree
    for key in path[:-1]:
        holder = holder[key]
    ways = _ways(holder, path[-1], random)
    how = random.choice([*ways])
    ways[how]()
    return path, how


def _ways(holder: Any, key: Any, random: Random) -> dict[str, Callable[[], None]]:
    """Return the ways to alter one value, by name."""
    value = holder[key]

    def put(new: Any) -> Callable[[], None]:
        return lambda: holder.__setitem__(key, new)

    ways: dict[str, Callable[[], None]] = {"removed": lambda: holder.__delitem__(key)}
    others = [k for k in (holder if isinstance(holder, dict) else range(len(holder))) if k != key]
    if others and isinstance(holder, list):
        other = random.choice(others)
        ways["swapped"] = lambda: holder.__setitem__(
            slice(None), [holder[{key: other, other: key}.get(i, i)] for i in range(len(holder))]
        )
    if isinstance(value, bool):
        return {**ways, "turned": put(not value), "a number": put(int(value))}
    if isinstance(value, int | float):
        if isinstance(value, float):
            ways["last bit"] = put(math.nextafter(value, math.inf))
        near = value + 1 if isinstance(value, int) else value + 0.01
        ways["a digit"] = put(near)
        ways |= {"another sign": put(-value)} if value else {}  # -0 is the same number
        return {**ways, "a lot": put(value * 10 + 3), "text": put(str(value)), "none": put(None)}
    if isinstance(value, str):
        ways |= {"a word more": put(f"{value} not"), "cut": put(value[:-1]), "a number": put(1)}
        if re.match(r"\d{4}-\d\d-\d\d", value):
            ways["another date"] = put(value.replace("20", "21", 1))
        return {**ways, "none": put(None)}
    if isinstance(value, dict):
        added = {**value, "added": 1}
        return {**ways, "added": put(added), "emptied": put({})}
    if isinstance(value, list):
        repeated = [*value, *copy.deepcopy(value[-1:])]
        return {**ways, "repeated": put(repeated), "emptied": put([])}
    return {**ways, "a number": put(0.5), "text": put("x"), "true": put(True)}


# ---------------------------------------------------------------------------------------------
# The table


def reason(alteration: Alteration) -> str | None:
    """Return why an alteration may be accepted; None if it may not."""
    name = f"{alteration.part}.{alteration.field}"
    is_measured = name.startswith(("audit.", "report.trade_off."))
    if alteration.how == "last bit" and is_measured:
        return DIGITS
    return next((why for glob, why in UNREAD.items() if fnmatch.fnmatch(name, glob)), None)


def attack(cases: dict[str, Files], n: int, seed: int = 0) -> list[tuple[str, Alteration, str]]:
    """Return `n` alterations, in turn of each case, with what `verify` says."""
    found = []
    streams = {name: alterations(files, Random(f"{seed} {name}")) for name, files in cases.items()}
    with tempfile.TemporaryDirectory() as folder:
        for i in range(n):
            name = [*cases][i % len(cases)]
            one = next(streams[name])
            found.append((name, one, verdict(one.files, Path(folder))))
    return found


def table(found: list[tuple[str, Alteration, str]]) -> str:
    """Return how many alterations were refused, and what was accepted with the reasons."""
    verdicts = Counter(said for *_, said in found)
    accepted = [one for _, one, said in found if said == "accepted"]
    fields: dict[str, Counter[str]] = {}
    for one in accepted:
        field = "any measured figure" if reason(one) == DIGITS else f"{one.part}.{one.field}"
        fields.setdefault(reason(one) or "FAULT: nothing excuses it", Counter())[field] += 1
    lines = [
        f"{len(found):,} alterations: {verdicts['refused by name']:,} refused by name, "
        f"{verdicts['not read']:,} refused as no patch or report, {len(accepted):,} accepted:"
    ]
    for why, names in sorted(fields.items()):
        lines += [f"  {why}:", *(f"    {name} ({n})" for name, n in sorted(names.items()))]
    return "\n".join(lines)


def fitted_cases() -> dict[str, Files]:
    """Return the files of three fitted updates: plain, edited by hand, and of whole numbers."""
    rows, new = (make_biased(n, n_categories=5, bias=1.5, random_state=n) for n in (900, 700))
    model = LogisticRegression().fit(rows.data[["x0", "x1"]], rows.target)
    scored, scored_new = (
        data.data.assign(score=model.predict_proba(data.data[["x0", "x1"]])[:, 1])
        for data in (rows, new)
    )
    groups = {"sensitive_features": rows.sensitive_features}
    weight = 1.0 + (scored["x0"] > 0)
    category = scored.select_dtypes(exclude="number").columns[0]

    def fit(**parameters: Any) -> Any:
        update = ControlledDebiaser(ScoreColumn("score"), target_on="fit_rows", **parameters)
        return update.fit(scored, rows.target, sample_weight=weight, **groups)

    plain = fit(target=0.8)
    several = fit(constraints=DemographicParity(ratio=0.8) & MinimumRate(0.2))
    edited = several.edit(
        [Round(0.25)], scored, rows.target, sample_weight=weight, by="Ann", note="n", **groups
    ).edit({category: "drop"}, scored, rows.target, sample_weight=weight, by="Ben", **groups)
    whole = fit(target=0.8, points="integers")
    steps = frontier(plain, scored, rows.target, targets=(0.7, 0.9), **groups)
    cases = {}
    for name, update, suffix, shown in (
        ("plain", plain, ".html", steps),
        ("edited", edited, ".md", None),
        ("whole numbers", whole, ".json", None),
    ):
        why = explain(update, scored_new)
        made = audit(
            why.y_before,
            why.y_after,
            sensitive_features=new.sensitive_features,
            y_true=new.target,
            X=scored_new,
            explanation=why,
        )
        cases[name] = files_of(update.to_patch(audit=made), made, suffix, shown)
    return cases


def main(n: int) -> int:
    """Print the table of `n` alterations; return 1 if one was accepted without a reason."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TargetWarning)
        found = attack(fitted_cases(), n)
    print(table(found))
    return int(any(said == "accepted" and reason(one) is None for _, one, said in found))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 3000))
