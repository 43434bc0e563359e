"""Embed what a report is made of in the report, and seal the file with its own SHA-256.

A report with a patch holds one JSON object: {"schema", "library", "audit", "shipped", "patch",
"trade_off", "text", "report_sha256"}. A .json report is that object, and `text` is its Markdown.
HTML has the object in a data block, Markdown in a comment, both without `text`. So the whole file
follows from this object, and an altered figure, or an altered sentence, shows. `report_sha256` is
the SHA-256 of the whole file with 64 zeros in its place, so any later edit of the file shows.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import re
from typing import Any, NamedTuple

from commod._io.untrusted import read_object
from commod._record.audit import MAX_BYTES, OLDER_REPORT, REPORT_SCHEMA, Audit, Shipped
from commod._record.explanation import TradeOff
from commod._record.plain import from_plain, plain_digest, to_plain
from commod.exceptions import InputError

KEY = "report_sha256"
ZEROS = "0" * 64
_SEAL = re.compile(rb'("report_sha256": ?")([0-9a-f]{64})"')
_BLOCKS = {
    ".html": re.compile(
        r'<script type="application/json" id="commod-report">(.*?)</script>', re.DOTALL
    ),
    ".md": re.compile(r"<!-- commod-report (.*?) -->", re.DOTALL),
}
_WAY_OUT = "Write the report with commod.report(audit, path, patch=patch)."


class Source(NamedTuple):
    """What a report is made of: the audit, what ships, and the patch as its file has it.

    `library` is the version of commod that wrote the report. `patch` is None in reports of version
    0.2, which did not hold it.
    """

    audit: Audit
    shipped: Shipped
    patch: dict[str, Any] | None
    library: str
    trade_off: TradeOff | None = None

    def as_read(self) -> Source:
        """Return the same as a reader of the file has it: whole numbers may be floats."""
        steps = None if self.trade_off is None else from_plain(TradeOff, to_plain(self.trade_off))
        return self._replace(
            audit=Audit.from_dict(self.audit.to_dict()),
            shipped=from_plain(Shipped, to_plain(self.shipped)),
            trade_off=steps,
        )


class EmbeddedReport(NamedTuple):
    """The content of a report, its format, its seal as stated, and the seal that its bytes have.

    `audit_digest` is that of the audit as the file has it, also where a later version of commod
    reads the file and adds fields.
    """

    source: Source
    suffix: str
    audit_digest: str
    stated_seal: str
    actual_seal: str


def library() -> str:
    """Return the version of commod that writes reports now."""
    return importlib.metadata.version("commod-debiasing")


def report_data(source: Source, **text: str) -> dict[str, Any]:
    """Return the object that a report holds; the seal is last and still zeros."""
    trade_off = source.trade_off
    return {
        "schema": REPORT_SCHEMA,
        "library": source.library,
        "audit": source.audit.to_dict(),
        "shipped": to_plain(source.shipped),
        "patch": source.patch,
        **({} if trade_off is None else {"trade_off": to_plain(trade_off)}),
        **text,
        KEY: ZEROS,
    }


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
    blocks, suffix = [text], ".json"
    if not text.lstrip("\ufeff \t\r\n").startswith("{"):
        suffix = ".md" if text.startswith("#") else ".html"
        blocks = [match[1] for match in _BLOCKS[suffix].finditer(text)] or blocks
    if len(blocks) > 1:
        raise InputError(f"It carries {len(blocks)} patches; expected one.")
    tree = read_object(blocks[0].encode(), "a report", MAX_BYTES, surrogates=True)
    if tree.get("schema") not in (REPORT_SCHEMA, OLDER_REPORT):
        raise InputError(f"It carries no patch. {_WAY_OUT}")
    known = {"schema", "audit", "shipped", KEY}
    if tree["schema"] == REPORT_SCHEMA:
        known |= {"library", "patch", "trade_off", *(["text"] if suffix == ".json" else [])}
    unknown = set(tree) - known
    if unknown:
        raise InputError(f"It has an unknown field {min(unknown)[:80]!r}.")
    patch, trade_off = tree.get("patch"), tree.get("trade_off")
    if tree["schema"] == REPORT_SCHEMA and not isinstance(patch, dict):
        raise InputError("It lacks the patch that it belongs to.")
    source = Source(
        audit=Audit.from_dict(tree.get("audit")),
        shipped=from_plain(Shipped, tree.get("shipped")),
        patch=patch,
        library=str(tree.get("library"))[:80],
        trade_off=None if trade_off is None else from_plain(TradeOff, trade_off),
    )
    return EmbeddedReport(
        source=source,
        suffix=suffix,
        audit_digest=plain_digest(tree.get("audit")),
        stated_seal=str(tree.get(KEY))[:80],
        actual_seal=hashlib.sha256(unsealed).hexdigest(),
    )
