"""Choose where the rows of a table are processed: in memory, in DuckDB or in Spark."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from commod._text import did_you_mean
from commod.cli._options import MOST_ROWS, Options
from commod.exceptions import InputError

if TYPE_CHECKING:
    from commod._io.tables import StoredTable

ENGINES = ("auto", "memory", "duckdb", "spark")
NAMES = {"memory": "memory", "duckdb": "DuckDB", "spark": "Spark"}
TEXT_BYTES = 64  # of a text in memory, on average
COPIES = 4  # of a table in memory while a fit runs: rows, codes, terms and room to work
BLIND_LIMIT = {"--blind-limit": "Leave it out"}  # an option that needs memory, and the way out


def check_engine(stated: str, needs: Mapping[str, str]) -> None:
    """Refuse an unknown engine, and options that need rows in memory; call it before reading.

    `needs` are the options that need rows in memory, each with what to do instead of it.
    """
    if engine_name(stated) not in ENGINES:
        raise InputError(
            f"--engine {stated!r} is not one of {', '.join(ENGINES)}."
            f"{did_you_mean(stated, ENGINES)}"
        )
    if engine_name(stated) in ("duckdb", "spark"):
        for option, way_out in needs.items():
            raise InputError(
                f"{option} needs all rows in memory, so it does not go with --engine {stated}. "
                f"{way_out}; or pass --engine memory."
            )


def spark_master(stated: str) -> str | None:
    """Return the address of Spark; None where the user states none."""
    is_address = "://" in stated or stated.startswith(("local", "yarn"))
    return stated if is_address else None


def engine_name(stated: str) -> str:
    """Return the engine by its name, also where the user states an address."""
    return "spark" if spark_master(stated) else stated


class EngineChoice(NamedTuple):
    """The engine of a command: "memory", "duckdb" or "spark"; `why` opens a sentence."""

    engine: str
    why: str

    @property
    def in_memory(self) -> bool:
        """Return whether all rows come into memory."""
        return self.engine == "memory"

    def text(self, what: str) -> str:
        """Return which way was taken and why; `what` says what the engine does.

        Empty for a small table in memory, where nobody needs to choose.
        """
        if self.in_memory:
            return f"{self.why}the table was read into memory." if self.why else ""
        where = NAMES[self.engine]
        return f"{self.why}{where} {what}. --engine memory reads all rows into memory instead."


def choose_engine(
    options: Options, table: StoredTable, columns: Iterable[str], needs: Mapping[str, str]
) -> EngineChoice:
    """Return where these columns of a table are processed; `needs` are as in `check_engine`."""
    stated = options.engine
    if stated != "auto":
        why = f"--engine {stated}: " if stated != "memory" else ""
        return EngineChoice(engine_name(stated), why)
    rows, free = f"{table.n_rows:,} rows", available_memory()
    sizes = [TEXT_BYTES if table.kinds[name] == "text" else 8 for name in columns]
    n_bytes = COPIES * table.n_rows * sum(sizes)
    if n_bytes > free:
        why = f"{rows} need about {_gigabytes(n_bytes)} of memory, and {_gigabytes(free)} are free"
        for option, way_out in needs.items():
            raise InputError(
                f"{option} needs all rows in memory, but {why}. {way_out}; or pass --engine memory "
                "on a machine with more memory."
            )
        return EngineChoice("duckdb", f"{why}: ")
    if table.n_rows <= MOST_ROWS:
        return EngineChoice("memory", "")
    for option in needs:
        return EngineChoice("memory", f"{option} needs all rows in memory: ")
    return EngineChoice("duckdb", f"{rows} are more than {MOST_ROWS:,}: ")


def available_memory() -> int:
    """Return the bytes of memory that a program may still use on this machine."""
    free = [_meminfo(), _container_limit()]
    known = [n for n in free if n is not None]
    if known:
        return min(known)
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def _meminfo() -> int | None:
    """Return what Linux calls available: free memory, and files that it can drop."""
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None


def _container_limit() -> int | None:
    """Return what the limit of a container leaves; None without a limit."""
    folder = Path("/sys/fs/cgroup")
    with suppress(OSError, ValueError):
        limit = int((folder / "memory.max").read_text())
        return max(limit - int((folder / "memory.current").read_text()), 0)
    return None


def _gigabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f} GB"
