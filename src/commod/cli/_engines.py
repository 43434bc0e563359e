"""Choose where the rows of a table are processed: in memory, in DuckDB or in Spark."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

from commod._text import did_you_mean
from commod.cli._command import OUTPUT, option
from commod.exceptions import InputError

ENGINES = ("auto", "memory", "duckdb", "spark")
NAMES = {"memory": "memory", "duckdb": "DuckDB", "spark": "Spark"}
MOST_ROWS = 5_000_000  # in memory, where the user states no engine
TEXT_BYTES = 64  # of a text in memory, on average
COPIES = 4  # of a table in memory while a fit runs: rows, codes, terms and room to work


class Need(NamedTuple):
    """An option that needs rows in memory, and what to do instead of it."""

    option: str
    way_out: str


BLIND_LIMIT = Need("--blind-limit", "Leave it out")


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Where the rows are processed."""

    PANEL: ClassVar[str] = OUTPUT

    engine: str = option(
        "auto",
        help="memory, duckdb or spark. auto: memory for a table that fits into it and has at most "
        f"{MOST_ROWS:,} rows, else duckdb. Spark reads Parquet files, on this machine or at an "
        "address in its place: spark://host:7077, sc://host or yarn.",
        advanced=True,
    )

    @property
    def spark_master(self) -> str | None:
        """Return the address of Spark; None where the user states none."""
        is_address = "://" in self.engine or self.engine.startswith(("local", "yarn"))
        return self.engine if is_address else None

    @property
    def name(self) -> str:
        """Return the engine by its name, also where the user states an address."""
        return "spark" if self.spark_master else self.engine

    def check(self, needs: Sequence[Need] = ()) -> None:
        """Refuse wrong values, and options that need rows in memory; call it before reading."""
        if self.name not in ENGINES:
            raise InputError(
                f"--engine {self.engine!r} is not one of {', '.join(ENGINES)}."
                f"{did_you_mean(self.engine, ENGINES)}"
            )
        if self.name in ("duckdb", "spark"):
            for need in needs:
                raise InputError(
                    f"{need.option} needs all rows in memory, so it does not go with --engine "
                    f"{self.engine}. {need.way_out}; or pass --engine memory."
                )

    def choose(self, size: TableSize, needs: Sequence[Need] = ()) -> EngineChoice:
        """Return the engine for a table of this size, and why; `needs` ask for memory."""
        if self.engine != "auto":
            why = f"--engine {self.engine}: " if self.engine != "memory" else ""
            return EngineChoice(self.name, why)
        rows, free = f"{size.n_rows:,} rows", available_memory()
        if size.n_bytes > free:
            why = (
                f"{rows} need about {_gigabytes(size.n_bytes)} of memory, and "
                f"{_gigabytes(free)} are free"
            )
            for need in needs:
                raise InputError(
                    f"{need.option} needs all rows in memory, but {why}. {need.way_out}; or pass "
                    "--engine memory on a machine with more memory."
                )
            return EngineChoice("duckdb", f"{why}: ")
        if size.n_rows <= MOST_ROWS:
            return EngineChoice("memory", "")
        if needs:
            return EngineChoice("memory", f"{needs[0].option} needs all rows in memory: ")
        return EngineChoice("duckdb", f"{rows} are more than {MOST_ROWS:,}: ")


@dataclass(frozen=True)
class TableSize:
    """The size of the columns of a table that a command reads."""

    n_rows: int
    n_bytes: int

    @classmethod
    def of(cls, n_rows: int, kinds: Mapping[str, str], columns: Iterable[str]) -> TableSize:
        """Return the size of some columns in memory, by their kinds.

        Examples
        --------
        >>> TableSize.of(1_000_000, {"age": "integer", "town": "text"}, ["age", "town"])
        TableSize(n_rows=1000000, n_bytes=288000000)
        """
        per_row = sum(TEXT_BYTES if kinds[name] == "text" else 8 for name in columns)
        return cls(n_rows, COPIES * n_rows * per_row)


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
