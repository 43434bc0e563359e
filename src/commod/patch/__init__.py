"""The update as data: a small file that is saved, loaded, applied anywhere, and read by people."""

from commod.patch.frames import PatchCounts
from commod.patch.patch import Patch
from commod.patch.verification import Verification

__all__ = ["Patch", "PatchCounts", "Verification"]
