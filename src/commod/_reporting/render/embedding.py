"""Embed an audit and what ships in a report, for programs, and seal the file with its own SHA-256.

A report with a patch holds one JSON object: {"schema", "audit", "shipped", "report_sha256"}. A
.json report is that object. HTML has it in a data block, Markdown in a comment. `report_sha256` is
the SHA-256 of the whole file with 64 zeros in its place, so any later edit of the file shows.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, NamedTuple

from commod._io.untrusted import read_object
from commod._record import REPORT_SCHEMA, Audit, Shipped, from_plain, plain_digest, to_plain
from commod._record.audit import MAX_BYTES
from commod.exceptions import InputError

KEY = "report_sha256"
ZEROS = "0" * 64
_SEAL = re.compile(rb'("report_sha256": ?")([0-9a-f]{64})"')
_IN_PAGE = re.compile(
    r'<script type="application/json" id="commod-report">(.*?)</script>', re.DOTALL
)
_IN_MARKDOWN = re.compile(r"<!-- commod-report (.*?) -->", re.DOTALL)
_WAY_OUT = "Write the report with commod.report(audit, path, patch=patch)."


class EmbeddedReport(NamedTuple):
    """The content of a report, its seal as stated, and the seal that its bytes have.

    `audit_digest` is that of the audit as the file has it, also where a later version of commod
    reads the file and adds fields.
    """

    audit: Audit
    audit_digest: str
    shipped: Shipped
    stated_seal: str
    actual_seal: str


def report_data(audit: Audit, shipped: Shipped) -> dict[str, Any]:
    """Return the object that a report holds; the seal is last and still zeros."""
    parts = {"schema": REPORT_SCHEMA, "audit": audit.to_dict(), "shipped": to_plain(shipped)}
    return {**parts, KEY: ZEROS}


def block_text(audit: Audit, shipped: Shipped) -> str:
    """Return the object as JSON that no text can break out of, for a page or a comment."""
    return json_block(report_data(audit, shipped))


def json_block(data: Any) -> str:
    """Return JSON that no text can break out of."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)  # ASCII: no U+2028
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def sealed(data: bytes) -> bytes:
    """Return the file with its SHA-256 in place of the zeros."""
    start, end = _seal_place(data)
    return data[:start] + hashlib.sha256(data).hexdigest().encode() + data[end:]


def _seal_place(data: bytes) -> tuple[int, int]:
    """Return where the seal is: the last one, because names in a text may look like one."""
    places = [match.span(2) for match in _SEAL.finditer(data)]
    if not places:
        raise InputError(f"It carries no patch. {_WAY_OUT}")
    return places[-1]


def read_report(data: bytes) -> EmbeddedReport:
    """Return the content of a report that was written with a patch; refuse any other file."""
    start, end = _seal_place(data)
    unsealed = data[:start] + ZEROS.encode() + data[end:]
    try:
        text = data.decode()
    except UnicodeError as error:
        raise InputError(f"It is not text in UTF-8 ({error}).") from error
    # A page and Markdown have a block, in which no text can look like one. JSON is the object
    # itself, whose texts may hold anything.
    blocks = [text]
    if not text.lstrip("\ufeff \t\r\n").startswith("{"):
        pattern = _IN_MARKDOWN if text.startswith("#") else _IN_PAGE
        blocks = [match[1] for match in pattern.finditer(text)] or blocks
    if len(blocks) > 1:
        raise InputError(f"It carries {len(blocks)} patches; expected one.")
    tree = read_object(blocks[0].encode(), "a report", MAX_BYTES, surrogates=True)
    if tree.get("schema") != REPORT_SCHEMA:
        raise InputError(f"It carries no patch. {_WAY_OUT}")
    unknown = set(tree) - {"schema", "audit", "shipped", KEY}
    if unknown:
        raise InputError(f"It has an unknown field {min(unknown)[:80]!r}.")
    return EmbeddedReport(
        audit=Audit.from_dict(tree.get("audit")),
        audit_digest=plain_digest(tree.get("audit")),
        shipped=from_plain(Shipped, tree.get("shipped")),
        stated_seal=str(tree.get(KEY))[:80],
        actual_seal=hashlib.sha256(unsealed).hexdigest(),
    )
