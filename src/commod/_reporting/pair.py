"""Check that a signed report and a patch belong together, and name each field that differs."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from commod._io.untrusted import read_limited
from commod._record import to_plain
from commod._reporting.render.embedding import KEY, EmbeddedReport, read_report
from commod._text import visible
from commod.exceptions import InputError
from commod.patch.content import Content
from commod.patch.file import from_bytes, read_bytes
from commod.patch.pairing import (
    Difference,
    contradictions,
    leaf_differences,
    shipped_of,
    value_text,
)

MAX_REPORT_BYTES = 256 * 2**20  # reports have a few hundred kilobytes


@dataclass(frozen=True)
class ReportVerification:
    """Whether a patch file and a report belong together, and the fields that differ.

    `patch_sha256` and `report_file_sha256` are what `sha256sum` prints for the two files.

    Examples
    --------
    >>> ReportVerification("ab", "cd", ()).passed
    True
    """

    patch_sha256: str
    report_file_sha256: str
    differences: tuple[Difference, ...]

    @property
    def passed(self) -> bool:
        """Return whether no field differs."""
        return not self.differences

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return the verdict, a sentence per field that differs, and the SHA-256 of both files."""
        head = "The patch and the report agree in every field."
        if self.differences:
            head = "The patch and the report do not belong together. These fields differ:"
        return (
            head,
            *map(str, self.differences),
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

    The checks are: the patch carries the digest of the audit in the report; the report carries the
    SHA-256 of the patch file; base model, scores, rows, figures, versions, labels and request
    agree; the report was not edited after it was written. A patch file that is damaged, and a file
    that is not such a report, raise InputError. The digests detect mistakes. Against forgery, sign
    the report: it carries the SHA-256 of the patch.

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
    differences = tuple(_differences(content, digest, embedded))
    return ReportVerification(digest, hashlib.sha256(page).hexdigest(), differences)


def _differences(content: Content, sha256: str, report: EmbeddedReport) -> Iterator[Difference]:
    """Yield each field once; a field of the audit only where what ships does not name it."""
    stated, actual = report.stated_seal, report.actual_seal
    edited = f"the report states {stated}, but has {actual}. It was edited after it was written"
    digests = value_text(content.audit), report.audit_digest
    shipped = shipped_of(content, sha256, report.audit)
    named: set[str] = set()
    for difference in (
        *([Difference(KEY, "", edited)] if stated != actual else []),
        *([Difference("audit_digest", *digests)] if content.audit != report.audit_digest else []),
        *leaf_differences(to_plain(shipped), to_plain(report.shipped)),
        *contradictions(content, report.audit),
    ):
        if difference.field not in named:
            named.add(difference.field)
            yield difference
