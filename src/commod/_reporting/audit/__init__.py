"""Before and after → an `Audit` with its change ledger: who changed, at what cost, what is open."""

from commod._reporting.audit.ledger import Ledger
from commod._reporting.audit.run import audit
from commod._reporting.audit.run_frame import audit_frame

__all__ = ["Ledger", "audit", "audit_frame"]
