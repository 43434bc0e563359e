"""The update as data: a small file that is saved, loaded, applied anywhere, and read by people."""

from typing import TYPE_CHECKING, Any

from commod.patch.frames import PatchCounts as PatchCounts
from commod.patch.patch import Patch

if TYPE_CHECKING:
    from commod.patch.verification import Verification as Verification

__all__ = ["Patch"]


def __getattr__(name: str) -> Any:
    if name == "Verification":  # its module reads base models, which few patches need
        from commod.patch.verification import Verification

        return Verification
    raise AttributeError(f"module 'commod.patch' has no attribute {name!r}")
