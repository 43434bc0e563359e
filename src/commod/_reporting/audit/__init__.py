"""Audit an update: decisions before and after become an `Audit` record with a change ledger."""

from commod._reporting.audit.entry_frame import audit_frame
from commod._reporting.audit.entry_rows import audit
from commod._reporting.audit.ledger import Ledger

__all__ = ["Ledger", "audit", "audit_frame"]
