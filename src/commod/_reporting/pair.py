"""Check that a signed report and a patch belong together, and name each field that differs."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commod._io.untrusted import read_limited
from commod._record.plain import to_plain
from commod._reporting.render.embedding import KEY, EmbeddedReport, library, read_report
from commod._text import n_of, shorten, visible
from commod.exceptions import InputError
from commod.patch.content import Content
from commod.patch.file import from_bytes, read_bytes, to_bytes
from commod.patch.pairing import (
    Difference,
    compared_with,
    contradictions,
    knows_update,
    leaf_differences,
    shipped_of,
    value_text,
)

TEXT = "the text of the report"
MOST_NAMED = 20  # fields of a copy
MAX_REPORT_BYTES = 256 * 2**20  # reports have a few hundred kilobytes


@dataclass(frozen=True)
class ReportVerification:
    """Whether a patch file and a report belong together, and the fields that differ.

    `patch_sha256` and `report_file_sha256` are what `sha256sum` prints for the two files.
    `compared` says what was compared, `not_compared` what could not be, because a file does not
    state it.

    Examples
    --------
    >>> ReportVerification("ab", "cd", ()).passed
    True
    """

    patch_sha256: str
    report_file_sha256: str
    differences: tuple[Difference, ...]
    compared: tuple[str, ...] = ()
    not_compared: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Return whether no field differs."""
        return not self.differences

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return the verdict, what was compared or differs, and the SHA-256 of both files."""
        head = "The patch and the report agree."
        if self.differences:
            head = "The patch and the report do not belong together. These fields differ:"
        lists = {"Compared": self.compared, "Not compared": self.not_compared}
        return (
            head,
            *map(str, self.differences),
            *(f"{name}: {'; '.join(listed)}." for name, listed in lists.items() if listed),
            f"SHA-256 of the patch file: {self.patch_sha256}",
            f"SHA-256 of the report file: {self.report_file_sha256}",
        )

    def __str__(self) -> str:
        # a name in a hostile file must not end a line or command a terminal
        return "\n".join(map(visible, self.sentences))


def verify_report(
    patch: str | os.PathLike[str], report: str | os.PathLike[str], *, sha256: str | None = None
) -> ReportVerification:
    """Check that a patch file and the report of `commod.report(..., patch=...)` belong together.

    The checks are: the patch carries the digest of the audit in the report, and the report the
    SHA-256 of the patch file. What the report says ships, its copy of the patch, the audited
    scorecard and the audited edits are those of the patch. The report is, byte for byte, what its
    data give: no figure and no sentence was altered alone. `compared` lists what was compared. A
    patch file that is damaged, and a file that is not such a report, raise InputError. Somebody who
    can write both files can write others that agree. So sign the report: it carries the SHA-256 of
    the patch.

    Parameters
    ----------
    patch : path
        The patch file.
    report : path
        The report: .html, .md or .json.
    sha256 : str, default=None
        SHA-256 of the patch file that was signed off; any other file is refused.

    Returns
    -------
    ReportVerification
        `passed`, and `differences` with the name of each field and both values.

    Examples
    --------
    >>> import commod
    >>> from commod.datasets import make_biased
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> update = commod.ControlledDebiaser(model, target=0.8)
    >>> update = update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> why = commod.explain(update, data.data)
    >>> audit = commod.audit(why.y_before, why.y_after, explanation=why,
    ...                      sensitive_features=data.sensitive_features)
    >>> folder = getfixture("tmp_path")
    >>> patch = update.to_patch(audit=audit)
    >>> files = patch.save(folder / "patch.json"), folder / "report.html"
    >>> page = commod.report(audit, files[1], patch=patch)
    >>> commod.verify_report(*files).passed
    True
    """
    data = read_bytes(patch, sha256)
    content = from_bytes(data, repr(str(Path(patch))))
    page = read_limited(report, "report", MAX_REPORT_BYTES)
    try:
        embedded = read_report(page)
    except InputError as error:
        raise InputError(f"{str(Path(report))!r} cannot be read as a report: {error}") from error
    digest = hashlib.sha256(data).hexdigest()
    found = list(_differences(content, digest, embedded))
    not_compared = _not_compared(embedded)
    is_sealed = embedded.stated_seal == embedded.actual_seal
    wrong = None if not_compared or not is_sealed else _wrong_text(page, embedded)
    if wrong is not None:
        if not is_older(embedded.source.library):
            found.append(Difference(TEXT, "", wrong))
        else:
            not_compared.append(
                f"the text of the report with its data: commod {embedded.source.library} wrote it, "
                "so verify it with that version"
            )
    compared = [
        "the digests of both files",
        "the fingerprint of the base model, its scores, rows, figures and versions",
        *compared_with(embedded.source.audit),
    ]
    if embedded.source.patch is not None:
        compared.append("every field of the patch with the copy in the report")
    if not not_compared:
        compared.append("every figure and sentence of the report with the data in it")
    if not knows_update(embedded.source.audit):
        not_compared.append("points and edits by hand, because this audit is of decisions alone")
    file_digest = hashlib.sha256(page).hexdigest()
    return ReportVerification(
        digest, file_digest, tuple(found), tuple(compared), tuple(not_compared)
    )


def _not_compared(report: EmbeddedReport) -> list[str]:
    if report.source.patch is None:  # version 0.2 wrote it
        return [
            "every figure and sentence of the report with its data, and every field of the patch: "
            "the report holds no copy, because an earlier version of commod wrote it"
        ]
    return []


def is_older(stated_library: str) -> bool:
    """Return whether a version of commod is earlier than this one.

    Examples
    --------
    >>> is_older("0.2.1"), is_older("99.0.0"), is_older("none")
    (True, False, False)
    """
    stated, own = (re.findall(r"\d+", text)[:3] for text in (stated_library, library()))
    return len(stated) == 3 and [*map(int, stated)] < [*map(int, own)]


def _wrong_text(page: bytes, report: EmbeddedReport) -> str | None:
    """Return in words where a report is not what its own data give; None if it is."""
    from commod._reporting.render.page import (
        file_bytes,
    )  # Jinja, which a missing file does not need

    try:
        expected = file_bytes(report.source, report.suffix)
    except Exception:  # altered data may break any line of a template
        return "no report can be written from the data in it. They were altered"
    if page == expected:
        return None
    at = next((i for i, (a, b) in enumerate(zip(page, expected, strict=False)) if a != b), None)
    at = min(len(page), len(expected)) if at is None else at
    first, second = (
        shorten(" ".join(side[max(at - 20, 0) : at + 60].decode("utf-8", "replace").split()), 80)
        for side in (page, expected)
    )
    return f"it has “{first}”, where the data in it give “{second}”. One of them was altered"


def _differences(content: Content, sha256: str, report: EmbeddedReport) -> Iterator[Difference]:
    """Yield each field once; a field of the audit only where what ships does not name it."""
    audit, stated, actual = report.source.audit, report.stated_seal, report.actual_seal
    edited = f"the report states {stated}, but has {actual}. It was edited after it was written"
    digests = value_text(content.audit), report.audit_digest
    shipped = shipped_of(content, sha256, audit)
    named: set[str] = set()
    for difference in (
        *([Difference(KEY, "", edited)] if stated != actual else []),
        *([Difference("audit_digest", *digests)] if content.audit != report.audit_digest else []),
        *leaf_differences(to_plain(shipped), to_plain(report.source.shipped)),
        *contradictions(content, audit),
        *_of_copies(content, report.source.patch),
    ):
        if difference.field not in named:
            named.add(difference.field)
            yield difference


def _of_copies(content: Content, copy: dict[str, Any] | None) -> Iterator[Difference]:
    """Yield where the copy of the patch in a report differs from the file; the first fields."""
    if copy is None:
        return
    own = json.loads(to_bytes(content))
    found = [*leaf_differences(own, copy, "patch")]
    yield from found[:MOST_NAMED]
    more = f"{n_of(len(found) - MOST_NAMED, 'further field')} of its copy differ"
    if len(found) > MOST_NAMED or (not found and own != copy):
        yield Difference("patch", "", more if found else "its copy has another order of columns")
