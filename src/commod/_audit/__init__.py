"""Before and after → an `Audit` with its change ledger: who changed, at what cost, what is open."""

from commod._audit.ledger import Ledger
from commod._audit.run import audit

__all__ = ["Ledger", "audit"]
