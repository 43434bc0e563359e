"""The training loop that all methods trained by gradients share: models, epochs, batches.

A method brings a `Method` (how it starts, how it takes a step) and its rows. The loop adds the
rest:

- NumPy draws all random numbers. Random generators and sorting would be most of what is compiled.
- Rows are padded and loops have dynamic lengths, so one compilation serves every number of epochs
  and, up to padding, of rows.
- Models of a grid that share a seed see the rows in the same order. A GPU trains them side by side.
"""

from __future__ import annotations

import hashlib
import os
import platform
import stat
import sys
import tempfile
import zlib
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import cache, lru_cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.experimental.serialize_executable import deserialize_and_load, serialize
from jaxlib.version import __version__ as compiler_version
from numpy.typing import NDArray

from commod._solvers.problem import Layer, Schedule, TrainedLayers, TrainingRows

EPOCHS_PER_CALL = 10  # progress and interrupts come between two calls of the compiled program
MAX_INDICES = 2**26  # in the row orders of a call, 256 MB
MAX_MODELS = 128  # side by side
MAX_UNITS = 2**28  # models · rows · units of one step: 1 GB for each array of them
ORDER_STREAM = 1  # separates the random orders from the random start, which has the same seed

Progress = Callable[[int, int], None]


class Clock(NamedTuple):
    """The time of an epoch: `age` counts epochs from the end of the warm-up, negative within it.

    `decay` falls from 1 to 0 along a cosine. Every method multiplies its learning rates by it.
    """

    age: Any
    decay: Any


class Method(NamedTuple):
    """What distinguishes one trained method from another; the compiled program depends on it.

    - `start(seed, spec)` returns the initial state of one model, in NumPy arrays.
    - `step(state, penalties, batch, settings, clock, spec)` returns the next state and the values
      of `figures`.
      A batch has the fields of the rows as attributes. One that is shorter than others is filled
      with rows of zeros, whose weights are zero too.
    - `layers(states, spec)` returns what was learned, as in `TrainedLayers`, from the states of m
      models.
    - `spec` holds whatever else the step is compiled for.
    - `units` is the largest number of values that a step computes for one row.
    """

    start: Callable[..., Any]
    step: Callable[..., tuple[Any, Array]]
    layers: Callable[..., list[Layer]]
    spec: Hashable
    figures: tuple[str, ...]
    units: int


# Models of one seed that are trained side by side: the seed, the models, and how many they are. The
# last model is repeated to fill the block.
Block = tuple[int, NDArray[np.intp], int]


# ---------------------------------------------------------------------------------------------
# The loop


def train(
    method: Method,
    penalties: Any,
    seeds: NDArray[np.int64],
    rows: TrainingRows,
    settings: Any,
    schedule: Schedule,
    on_progress: Progress | None = None,
) -> TrainedLayers:
    """Return m trained models; `penalties` and `seeds` have one entry per model.

    `settings` is passed to every step. The loop calls `on_progress(done, total)` between chunks of
    epochs. A keyboard interrupt ends the training after the last finished chunk; the models keep
    what they learned until then.
    """
    on_device, n_padded = rows_on_device(rows), padded_size(len(rows) + 1)
    size = min(schedule.batch_size, n_padded)
    total = schedule.epochs + schedule.warmup_epochs if schedule.epochs else 0
    blocks = _blocks(seeds, _max_models_at_once(method, size))
    block_penalties = [_take_models(penalties, block) for block in blocks]
    starts = [method.start(int(seed), method.spec) for seed in seeds]
    initial = jax.tree.map(lambda *leaves: np.stack(leaves), *starts)
    states = [_take_models(initial, block) for block in blocks]
    orders = BatchOrders(len(rows), n_padded, size, seeds)
    done, interrupted = 0, False
    chunks = [np.zeros((len(seeds), 0, len(method.figures)), np.float32)]
    try:
        drawn = orders.draw(min(total, orders.epochs)) if total else {}
        while done < total:
            stop = min(done + orders.epochs, total)
            clock = _clock(done, orders.epochs, schedule)
            span = (orders.n_batches, np.int32(stop - done))
            advanced = [
                _advance(state, w, on_device, settings, drawn[seed], clock, *span, method, size)
                for (seed, *_), state, w in zip(blocks, states, block_penalties, strict=True)
            ]
            if stop < total:  # while the device is busy
                drawn = orders.draw(min(total - stop, orders.epochs))
            figures = _gather(blocks, [losses for _, losses in advanced])
            chunks.append(figures[:, : stop - done])
            states, done = [state for state, _ in advanced], stop
            if on_progress is not None:
                on_progress(done, total)
    except KeyboardInterrupt:
        interrupted = True
    losses = np.concatenate(chunks, axis=1)[:, schedule.warmup_epochs :].astype(np.float64)
    history = {name: losses[:, :, i] for i, name in enumerate(method.figures)}
    final = jax.tree.map(lambda *leaves: _gather(blocks, leaves), *states)
    epochs_done = max(0, done - schedule.warmup_epochs)
    return TrainedLayers(history, epochs_done, interrupted, method.layers(final, method.spec))


def _advance(*arguments: Any) -> tuple[Any, Array]:
    """Return what `_train_epochs` returns for these arguments, by a compiled program."""
    *arrays, method, size = arguments
    program = compiled_program(_train_epochs, tuple(arrays), method=method, size=size)
    states, figures = program(*arrays)
    return states, figures


def _train_epochs(
    states: Any,
    penalties: Any,
    rows: DeviceRows,
    settings: Any,
    orders: Array,
    clock: Clock,
    n_batches: Array,
    n_epochs: Array,
    method: Method,
    size: int,
) -> tuple[Any, Array]:
    """Return the states after `n_epochs`, one for each of `orders`, and the mean figures.

    The figures have shape (m, orders, figures).
    """

    def train_one(state: Any, weights: Any) -> tuple[Any, Array]:
        def train_epoch(epoch: Array, carry: tuple[Any, Array]) -> tuple[Any, Array]:
            state, figures = carry
            now = Clock(clock.age[epoch], clock.decay[epoch])
            step = partial(method.step, settings=settings, clock=now, spec=method.spec)
            # batches are slices of the shuffled rows, which cost nothing
            by_row = jax.tree.map(lambda array: _rows_at(array, orders[epoch]), rows.by_row)
            shuffled = rows._replace(by_row=by_row)
            state, mean = _epoch(state, weights, shuffled, n_batches, step, method, size)
            return state, figures.at[epoch].set(mean)

        figures = jnp.zeros((len(orders), len(method.figures)), jnp.float32)
        return lax.fori_loop(0, n_epochs, train_epoch, (state, figures))

    with jax.default_matmul_precision("float32"):  # a GPU would round to ten bits
        if len(jax.tree.leaves(states)[0]) > 1:
            return jax.vmap(train_one)(states, penalties)
        single = jax.tree.map(lambda leaf: leaf[0], (states, penalties))
        return jax.tree.map(lambda leaf: leaf[None], train_one(*single))


def _rows_at(array: Array, order: Array) -> Array:
    return array.at[order].get(mode="promise_in_bounds")


def _epoch(
    state: Any,
    penalties: Any,
    shuffled: DeviceRows,
    n_batches: Array,
    step: Callable[..., tuple[Any, Array]],
    method: Method,
    size: int,
) -> tuple[Any, Array]:
    """Return the state after one pass over the rows, and the mean figures."""

    def train_batch(i: Array, carry: tuple[Any, Array]) -> tuple[Any, Array]:
        state, total = carry

        def cut(array: Array) -> Array:
            return lax.dynamic_slice_in_dim(array, i * size, size)

        batch = shuffled._replace(by_row=jax.tree.map(cut, shuffled.by_row)).as_batch()
        state, figures = step(state, penalties, batch)
        return state, total + figures

    zeros = jnp.zeros(len(method.figures), jnp.float32)
    state, total = lax.fori_loop(0, n_batches, train_batch, (state, zeros))
    return state, total / n_batches


def _clock(start: int, n_epochs: int, schedule: Schedule) -> Clock:
    age = np.arange(start, start + n_epochs, dtype=np.int32) - np.int32(schedule.warmup_epochs)
    progress = np.clip(age / max(1, schedule.epochs), 0.0, 1.0)
    return Clock(age, (0.5 * (1 + np.cos(np.pi * progress))).astype(np.float32))


# ---------------------------------------------------------------------------------------------
# Models side by side


def _max_models_at_once(method: Method, size: int) -> int:
    """Return how many models may be trained side by side, as far as memory goes.

    A CPU trains one model after the other. Several at once would save little there, and rounding
    would differ from that of a model trained alone. Adversarial training amplifies rounding.
    """
    if jax.default_backend() == "cpu":
        return 1
    n_models = MAX_MODELS
    while n_models > 1 and n_models * size * method.units > MAX_UNITS:
        n_models //= 2
    return n_models


def _blocks(seeds: NDArray[np.int64], max_width: int) -> list[Block]:
    """Return the models seed by seed, in blocks of few widths: each width is compiled separately.

    Examples
    --------
    >>> [(s, models.tolist(), n) for s, models, n in _blocks(np.array([7, 7, 5, 7, 7]), 4)]
    [(7, [0, 1, 3, 4], 4), (5, [2], 1)]
    >>> [(models.tolist(), n) for _, models, n in _blocks(np.array([7, 7, 7, 7, 7]), 2)]
    [([0, 1], 2), ([2, 3], 2), ([4, 4], 1)]
    """
    blocks = []
    for seed in dict.fromkeys(seeds.tolist()):
        members = np.flatnonzero(seeds == seed)
        width = min(max_width, _block_width(len(members)))
        for start in range(0, len(members), width):
            part = members[start : start + width]
            filled = np.append(part, np.repeat(part[-1:], width - len(part)))
            blocks.append((seed, filled, len(part)))
    return blocks


def _block_width(n: int) -> int:
    """Return the next power of two, or one of the few sizes between larger ones."""
    return padded_size(n) if n > 32 else 1 << (n - 1).bit_length()


def _take_models(leaves: Any, block: Block) -> Any:
    return jax.device_put(jax.tree.map(lambda leaf: leaf[block[1]], leaves))


def _gather(blocks: list[Block], leaves: Any) -> NDArray[Any]:
    """Return one array with an entry per model from one array per block."""
    parts = [np.asarray(leaf)[:n] for (*_, n), leaf in zip(blocks, leaves, strict=True)]
    position = np.concatenate([models[:n] for _, models, n in blocks])
    return np.concatenate(parts)[np.argsort(position)]


# ---------------------------------------------------------------------------------------------
# Rows on the device and their random orders


class BatchOrders:
    """Random orders of n rows, one per epoch, cut into batches that differ by at most one row.

    `draw(n_epochs)` returns, for each seed, the next indices, shape (epochs, slots). An empty slot
    has the index n, which is a row of zeros. At most `epochs` orders can be drawn at once.
    """

    def __init__(self, n: int, n_padded: int, size: int, seeds: NDArray[np.int64]) -> None:
        n_batches = -(-n // size)
        length, n_longer = divmod(n, n_batches)
        lengths = length + (np.arange(n_batches) < n_longer)
        first = np.cumsum(lengths) - lengths
        self.n, self.n_slots, self.n_batches = n, -(-n_padded // size) * size, np.int32(n_batches)
        self.slots = np.arange(n) + np.repeat(np.arange(n_batches) * size - first, lengths)
        self.generators = {
            seed: np.random.default_rng((seed, ORDER_STREAM)) for seed in seeds.tolist()
        }
        affordable = MAX_INDICES // (self.n_slots * len(self.generators))
        self.epochs = max(1, min(EPOCHS_PER_CALL, affordable))

    def draw(self, n_epochs: int) -> dict[int, Array]:
        """Return the next orders of each seed on the device, in the shape for `epochs` of them."""
        return {
            seed: jax.device_put(self._draw(rng, n_epochs)) for seed, rng in self.generators.items()
        }

    def _draw(self, rng: np.random.Generator, n_epochs: int) -> NDArray[np.int32]:
        order = np.full((self.epochs, self.n_slots), self.n, dtype=np.int32)
        for epoch in range(n_epochs):
            order[epoch, self.slots] = rng.permutation(self.n)
        return order


class DeviceRows(NamedTuple):
    """`TrainingRows` on the device, padded with zeros after the last row."""

    by_row: dict[str, Any]
    shared: dict[str, Any]

    def as_batch(self) -> Any:
        """Return an object with each field as an attribute."""
        return SimpleNamespace(**self.by_row, **self.shared)


def rows_on_device(rows: TrainingRows) -> DeviceRows:
    """Return the rows on the device, padded."""
    return DeviceRows(jax.tree.map(padded, rows.by_row), jax.tree.map(jax.device_put, rows.shared))


def padded_size(n: int) -> int:
    """Return the next of few sizes (steps of 12.5 to 25 %), so that compilations are reused."""
    size = 64
    while size < n:
        size *= 2
    return next(part for part in (size * f // 8 for f in (5, 6, 7, 8)) if part >= n)


def padded(array: NDArray[np.generic]) -> Array:
    """Return an array with one entry per row on the device, with zeros after the last row."""
    extra = padded_size(len(array) + 1) - len(array)
    return jax.device_put(np.pad(array, [(0, extra)] + [(0, 0)] * (array.ndim - 1)))


# ---------------------------------------------------------------------------------------------
# Steps of Adam


class TrainedWeights(NamedTuple):
    """The weights of one model, a flat vector, and what Adam remembers.

    That is the number of steps taken, and running means of the gradient and of its square.
    """

    values: Any
    n_steps: Any
    mean: Any
    square: Any

    @classmethod
    def of(cls, values: NDArray[np.float32]) -> TrainedWeights:
        """Return weights before their first step."""
        return cls(values, np.int32(0), np.zeros_like(values), np.zeros_like(values))

    def step(self, gradient: Array, rate: Array) -> TrainedWeights:
        """Return the weights after one step of Adam."""
        mean, square = 0.9 * self.mean + 0.1 * gradient, 0.999 * self.square + 0.001 * gradient**2
        moved = TrainedWeights(self.values, self.n_steps + 1, mean, square)
        direction = mean / (1 - 0.9 ** moved.n_steps.astype(jnp.float32))
        return moved._replace(values=self.values - moved.step_sizes(rate) * direction)

    def step_sizes(self, rate: Array) -> Array:
        """Return how far a gradient of one moves each weight: the metric of the last step."""
        square = self.square / (1 - 0.999 ** self.n_steps.astype(jnp.float32))
        return rate / (jnp.sqrt(square) + 1e-8)

    def steps(
        self, gradient_of: Callable[[Array], Array], rate: Array, n_steps: Array
    ) -> TrainedWeights:
        """Return the weights after several steps of Adam on the same batch."""

        def step(_: Array, weights: TrainedWeights) -> TrainedWeights:
            return weights.step(gradient_of(weights.values), rate)

        return lax.fori_loop(0, n_steps, step, self)


def weighted_mean(values: Array, weight: Array) -> Array:
    """Return the weighted mean of `values`; 0 where all weights are 0."""
    return (values * weight).sum() / jnp.maximum(weight.sum(), 1e-12)


# ---------------------------------------------------------------------------------------------
# Compile training programs ahead of time and keep them in the user's cache folder

HOME_VARIABLE = "COMMOD_CACHE_HOME"
SUFFIX = ".program"
MAX_PROGRAMS = 200  # on disk, about 100 kB each; the oldest files are removed first
MAX_IN_MEMORY = 1000


def compiled_program(function: Any, arguments: tuple[Any, ...], **static: Hashable) -> Any:
    """Return a function, compiled for arguments of these shapes and for static arguments.

    The result takes `arguments` only. At least one of their leaves must lie on a device.
    """
    config: Any = jax.config
    if config.jax_compilation_cache_dir or not config.jax_enable_compilation_cache:
        # JAX has a cache already, or is told to have none
        return partial(_jitted(function, tuple(static)), **static)
    leaves, tree = jax.tree.flatten(arguments)
    device = next(leaf for leaf in leaves if isinstance(leaf, jax.Array)).devices().copy().pop()
    shapes = tuple((leaf.shape, leaf.dtype) for leaf in leaves)
    # a context such as jax.enable_x64 sets a value for one thread only: read it as an attribute
    values = sorted(jax.config.values.items())
    configuration = repr([(name, getattr(jax.config, name, value)) for name, value in values])
    return _program(function, tree, shapes, device, tuple(static.items()), configuration)


@lru_cache(maxsize=MAX_IN_MEMORY)
def _jitted(function: Any, static: tuple[str, ...]) -> Any:
    """Return a jitted function whose text has all arguments, also those that it does not use.

    Otherwise functions that use different arguments could have the same text, and one would be
    given the stored program of the other.
    """
    return jax.jit(function, static_argnames=static, keep_unused=True)


@lru_cache(maxsize=MAX_IN_MEMORY)
def _program(
    function: Any,
    tree: Hashable,
    shapes: tuple[tuple[tuple[int, ...], Any], ...],
    device: Any,
    static: tuple[tuple[str, Hashable], ...],
    configuration: str,
) -> Callable[..., Any]:
    """Return the program for everything that it depends on.

    `tree`, `shapes` (with dtypes) and `device` describe the arguments. `static` holds the names
    and values of static arguments, and `configuration` is JAX's, as text.
    """
    abstract: Any = jax.ShapeDtypeStruct
    arguments = jax.tree.unflatten(tree, [abstract(*shape) for shape in shapes])
    named = dict(static)
    lowered = _jitted(function, tuple(named)).lower(*arguments, **named)
    folder = _folder()
    if folder is None:
        return lowered.compile()
    # The text of a program does not name its arguments: records with other fields may share it.
    parts = (
        lowered.as_text(),
        str(tree),
        jax.__version__,
        device.client.platform_version,
        f"{device!r} {device.device_kind}",
        configuration,
        os.environ.get("XLA_FLAGS", ""),
    )
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    file = folder / f"{digest[:32]}{SUFFIX}"
    program = _load(file, lowered, device)
    if program is None:
        program = lowered.compile()
        _store(program, file)
        _remove_oldest(folder)
    return program


# ---------------------------------------------------------------------------------------------
# Files


def _load(file: Path, lowered: Any, device: Any) -> Callable[..., Any] | None:
    """Return a stored program, or None where there is none that can be used.

    The checksum of zlib tells a damaged or truncated file from a program.
    """
    try:
        data = zlib.decompress(file.read_bytes())
        tree = jax.tree.structure(lowered.args_info)
        return deserialize_and_load(data, tree, lowered.out_tree, execution_devices=[device])
    except Exception:  # whatever is wrong with the file, the program can be compiled
        return None


def _store(program: Any, file: Path) -> None:
    """Write a program under a temporary name and move it to its place: others may be reading."""
    with suppress(Exception):  # a full disk, or a device whose programs cannot be stored
        data = zlib.compress(serialize(program)[0])
        handle, name = tempfile.mkstemp(dir=file.parent)
        try:
            with open(handle, "wb") as temporary:
                temporary.write(data)
            os.replace(name, file)
        finally:
            Path(name).unlink(missing_ok=True)


def _remove_oldest(folder: Path) -> None:
    with suppress(OSError):  # another process may be removing the same files
        files = sorted(folder.glob(f"*{SUFFIX}"), key=lambda file: file.stat().st_mtime)
        for file in files[:-MAX_PROGRAMS]:
            file.unlink(missing_ok=True)


# ---------------------------------------------------------------------------------------------
# The cache folder


def cache_home() -> Path | None:
    """Return the cache folder of commod; None where the user has switched it off.

    1. COMMOD_CACHE_HOME, where it is set; empty means None.
    2. Otherwise a folder in the platform's place for caches.

    Raises RuntimeError where the user's home is unknown.
    """
    chosen = os.environ.get(HOME_VARIABLE)
    if chosen is not None:
        return Path(chosen).expanduser() if chosen else None
    home = Path.home()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local", "commod", "cache")
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "commod"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache", "commod")


def _folder() -> Path | None:
    """Return the folder for programs of this machine, or None where there can be none."""
    try:
        home = cache_home()
        if home is None:
            return None
        folder = private_path(home / f"programs-{compiler_version}-{_machine()}")
        return folder if folder is not None and os.access(folder, os.W_OK) else None
    except (OSError, RuntimeError):  # training does not need the folder
        return None


@cache
def _machine() -> str:
    """Return a digest of this processor's features.

    Unlike machines may share a folder, and a program for one may end the process on another.
    """
    features = [platform.machine(), platform.processor(), platform.version()]
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        listed = {line for line in lines if line.startswith(("model name", "flags", "Features"))}
        features = [platform.machine(), *sorted(listed)]
    return hashlib.sha256("\n".join(features).encode()).hexdigest()[:16]


# ---------------------------------------------------------------------------------------------
# Make folders whose files nobody else can replace: commod runs programs that are stored there

MAX_LINKS = 40  # as Linux allows in one path
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def private_path(folder: Path) -> Path | None:
    """Return the folder without links, made where it is missing; None where others could swap it.

    Every folder on the way from the root is checked, and every link in it with its own way. Each
    must belong to this user or to root, and nobody else may write there. A folder of root that all
    may write to is fine if it is sticky, as /tmp is: there nobody can move what others own. The
    last folder must be this user's own. Missing folders are made with mode 0700, whatever the umask
    is. On a system without owners of files, nothing is checked.

    Raises OSError where a folder cannot be read or made.
    """
    if not hasattr(os, "getuid"):
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    parts = list(reversed(Path(os.path.abspath(folder)).parts))
    place = Path(parts.pop())
    if not _is_safe(os.lstat(place)):
        return None
    n_links = 0
    while parts:
        nearer = place / parts.pop()
        if nearer.name == "..":  # of a link
            place = place.parent
            continue
        with suppress(FileExistsError):
            _make_private(nearer)
        status = os.lstat(nearer)
        if stat.S_ISLNK(status.st_mode):
            n_links += 1
            if n_links > MAX_LINKS or not _belongs_to_us(status):
                return None
            target = Path(os.readlink(nearer))
            place = Path(target.anchor) if target.is_absolute() else place
            parts += reversed(target.parts[1:] if target.is_absolute() else target.parts)
            continue
        if not stat.S_ISDIR(status.st_mode) or not _is_safe(status):
            return None
        place = nearer
    status = os.lstat(place)
    is_own = status.st_uid == os.getuid() and not status.st_mode & WRITABLE_BY_OTHERS
    return place if is_own else None


def _make_private(folder: Path) -> None:
    os.mkdir(folder, 0o700)
    os.chmod(folder, 0o700)  # a umask may have taken more away; a default ACL may have added some


def _is_safe(status: os.stat_result) -> bool:
    """Return whether nobody but this user and root can move or replace what is in a folder."""
    if not _belongs_to_us(status):
        return False
    is_sticky = bool(status.st_mode & stat.S_ISVTX) and status.st_uid == 0
    return is_sticky or not status.st_mode & WRITABLE_BY_OTHERS


def _belongs_to_us(status: os.stat_result) -> bool:
    return status.st_uid in (0, os.getuid())
