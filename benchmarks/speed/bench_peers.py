"""Compare one fit, and a whole frontier, with other libraries.

- COMMOD is compared with the adversarial classifiers of Fairlearn and AIF360. All have the same
  epochs, batch size and rows, and one adversary step per step of the model. Each has its own
  adversary.
- ControlledDebiaser is compared with OxonFair with inferred groups: with default settings, and
  with a target on the fit rows, which is what OxonFair fits.
- Both also fit the first 1,000 rows of a table: imports and first fit count.
- A frontier of ControlledDebiaser's models is compared with ONE adversarial fit, and with one of
  its own fits.

The first call of a process includes the imports; the next calls are the fits after it. Peers get
encoded features. Our programs get the raw frame and encode it themselves. Reading the rows is not
timed.
"""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

import pytest
from benchmarks.peers.job import Job, Task, timed
from benchmarks.speed.cases import case
from benchmarks.speed.names import FIT_ROWS, first_rows_of
from benchmarks.speed.settings import current
from benchmarks.speed.shared_file import shared_file

SETTINGS = current()
EVENTS = {  # the events in which JAX reports the time before a program runs
    "/jax/core/compile/jaxpr_trace_duration": "tracing",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lowering",
    "/jax/core/compile/backend_compile_duration": "compiling",
}


class Program(NamedTuple):
    """A timed fit: its environment, script and variant, and the number of fits after the first."""

    environment: str
    script: str
    variant: str = ""
    repeats: int = 5
    cache: str = "none"
    turns: int = SETTINGS.turns


N = SETTINGS.n_models
PROGRAMS = {
    "COMMOD": Program("commod", "commod_fit"),
    "COMMOD, compiled before": Program("commod", "commod_fit", repeats=1, cache="filled"),
    "ControlledDebiaser": Program("commod", "controlled_fit"),
    FIT_ROWS: Program("commod", "controlled_fit", "fit_rows"),
    f"frontier of {N}": Program("commod", "controlled_fit", "frontier", repeats=3),
    "OxonFair, inferred": Program("oxonfair", "oxonfair_fit"),
    "Fairlearn, linear": Program("fairlearn", "fairlearn_fit", "linear", repeats=1),
    "Fairlearn, its guide": Program("fairlearn", "fairlearn_fit", "guide", repeats=1),
    "AIF360": Program("aif360", "aif360_fit", repeats=1),
    f"COMMOD, grid of {N}": Program("commod", "commod_fit", "grid", repeats=1, turns=1),
}
SMALL = ("ControlledDebiaser", "OxonFair, inferred")  # fit few rows, too


def prepared(prepare: Any, program: Program, table: str, n: int | None = None) -> Job:
    """Read all rows, or the first n, and return the job of a program."""
    chosen = (table,) if n is None else (table, n)
    if program.environment == "commod":
        rows = shared_file("tables.raw_split", *chosen)
    else:
        rows = shared_file("tables.encoded_split", *chosen, suffix=".npz")
    sizes = (SETTINGS.epochs, SETTINGS.batch_size, SETTINGS.n_models)
    return prepare(Task(program.variant, str(rows), *sizes))


def cases() -> list[Any]:
    """Return every program on every table, and small first fits of two of them."""
    table, n = SETTINGS.first_rows
    chosen = [(table, None, table, name) for table in SETTINGS.tables for name in PROGRAMS]
    chosen += [(table, n, first_rows_of(table, n), name) for name in SMALL]
    return [
        case(
            table,
            n,
            name,
            group=group,
            name=name,
            environment=PROGRAMS[name].environment,
            turns=PROGRAMS[name].turns,
            cache=PROGRAMS[name].cache,
        )
        for table, n, group, name in chosen
    ]


@pytest.mark.parametrize(("table", "n", "name"), cases())
def test_fits(benchmark: Any, table: str, n: int | None, name: str) -> None:
    """Time the imports and the first fit of a process, then the next fits."""
    program = PROGRAMS[name]
    script = importlib.import_module(f"benchmarks.peers.{program.script}")
    prepare, importing = timed(script.import_program)
    job = prepared(prepare, program, table, n)
    fitted, first = timed(job.fit)
    benchmark.pedantic(job.fit, rounds=min(program.repeats, SETTINGS.fits))
    benchmark.extra_info.update(
        imports=importing, first_fit=first, first_call=importing + first, **job.check(fitted)
    )


@pytest.mark.parametrize(
    "table",
    [case(table, group=table, name="COMMOD, first fit in parts") for table in SETTINGS.tables],
)
def test_first_fit_in_parts(benchmark: Any, table: str) -> None:
    """Time the parts of a first fit of COMMOD; JAX is imported before, to receive its events."""
    program = PROGRAMS["COMMOD"]
    script = importlib.import_module(f"benchmarks.peers.{program.script}")
    prepare, importing = timed(script.import_program)
    jax, importing_jax = timed(_import_jax)
    parts = dict.fromkeys(EVENTS.values(), 0.0)

    def listen(event: str, seconds: float, **_: Any) -> None:
        if event in EVENTS:
            parts[EVENTS[event]] += seconds

    jax.monitoring.register_event_duration_secs_listener(listen)
    job = prepared(prepare, program, table)
    _, first = timed(job.fit)
    benchmark.extra_info.update(parts)  # of the first fit; a later one compiles nothing
    fitted = benchmark.pedantic(job.fit)
    benchmark.extra_info.update(
        imports=importing, imports_jax=importing_jax, first_fit=first, **job.check(fitted)
    )


def _import_jax() -> Any:
    import jax
    import jax.monitoring

    return jax
