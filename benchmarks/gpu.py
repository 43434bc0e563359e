"""Time COMMOD's grid on one accelerator (or the CPU): `python benchmarks/gpu.py --rows 1000000`.

1. Train a grid of updates on synthetic rows with a score column, 5 epochs in batches of 8,192.
   The first call compiles, or loads what an earlier process compiled.
2. Train the same grid again, which compiles nothing.
3. Fit each rival that is trained by gradients once, on few rows.

The last line of the output is the result as JSON. The script needs JAX, NumPy, SciPy, scikit-learn,
pandas and narwhals. On a CPU, use `--rows 50000 --points 2`.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from commod import COMMOD, ScoreColumn
from commod.rivals import FRAPPE, AdversarialDebiasing
from commod.updates import commod as commod_update
from commod.updates.commod import fit_grid


def make_rows(n: int, n_numbers: int, n_categories: int, levels: int, seed: int = 0):
    """Return X with a score column, y and the group; one group has higher scores."""
    rng = np.random.default_rng(seed)
    group = rng.random(n) < 0.4
    numbers = rng.standard_normal((n, n_numbers), dtype=np.float32)
    numbers[:, :5] += 0.6 * group[:, None]
    columns = {f"number_{i}": numbers[:, i] for i in range(n_numbers)}
    names = np.array([f"level {j}" for j in range(levels)])
    for i in range(n_categories):
        code = rng.integers(levels, size=n)
        code[group & (rng.random(n) < 0.3)] = i % levels
        columns[f"category_{i}"] = pd.Categorical.from_codes(code, names)
    logit = numbers[:, :8].sum(axis=1) / 2 - 0.5 + 0.5 * group
    columns["score"] = 1 / (1 + np.exp(-logit))
    y = (rng.random(n) < columns["score"]).astype(int)
    return pd.DataFrame(columns), y, np.where(group, "a", "b")


def timed(work):
    """Return the result of `work()` and its seconds: in total, and inside the solver."""
    inside = []
    train = commod_update._train

    def watched(*args):
        start = time.perf_counter()
        try:
            return train(*args)
        finally:
            inside.append(time.perf_counter() - start)

    commod_update._train = watched
    start = time.perf_counter()
    try:
        result = work()
    finally:
        commod_update._train = train
    total = time.perf_counter() - start
    return result, {"total": round(total, 3), "training": round(sum(inside), 3)}


def grid(points: int) -> list[dict[str, float]]:
    """Return `points` settings, from a small weight of fairness to a large one."""
    return [
        {"lambda_fair": float(fair), "lambda_ratio": ratio}
        for fair, ratio in zip(
            np.geomspace(0.25, 10, points), np.resize([0.05, 0.1, 0.2, 0.5], points), strict=True
        )
    ]


def rivals(rows: int) -> dict[str, float]:
    """Return the seconds of one small fit of each rival that is trained by gradients."""
    X, y, group = make_rows(rows, 6, 2, 5, seed=1)
    seconds = {}
    for method in (FRAPPE, AdversarialDebiasing):
        update = method(ScoreColumn("score"), epochs=3, progress=False, random_state=0)
        start = time.perf_counter()
        update.fit(X, y, sensitive_features=group)
        seconds[method.__name__] = round(time.perf_counter() - start, 3)
        print(f"{method.__name__}: {seconds[method.__name__]} s. {update.status_}", flush=True)
    return seconds


def memory() -> dict[str, float]:
    """Return the peak memory so far in GB: of the process, and of the device if it reports it."""
    import jax

    unit = 2**30 if sys.platform == "darwin" else 2**20
    peaks = {"process": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 2)}
    on_device = (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use")
    return {**peaks, "device": round(on_device / 2**30, 2)} if on_device else peaks


def read_arguments() -> argparse.Namespace:
    """Return the sizes asked for on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--numbers", type=int, default=40, help="columns of numbers")
    parser.add_argument("--categories", type=int, default=10, help="columns of categories")
    parser.add_argument("--levels", type=int, default=20, help="categories in each")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=8192)
    parser.add_argument("--adversary-steps", type=int, default=1)
    parser.add_argument("--warmup-epochs", type=int, default=0)
    return parser.parse_args()


def main() -> None:
    """Run all steps and print the figures."""
    options = read_arguments()
    start = time.perf_counter()
    import jax

    device = jax.devices()[0]
    begun = time.perf_counter() - start
    print(f"{device.device_kind} ({device.platform}), jax {jax.__version__}", flush=True)
    X, y, group = make_rows(options.rows, options.numbers, options.categories, options.levels)
    update = COMMOD(
        ScoreColumn("score"),
        epochs=options.epochs,
        training={
            "batch_size": options.batch_size,
            "adversary_steps": options.adversary_steps,
            "warmup_epochs": options.warmup_epochs,
            "progress": False,
        },
        random_state=0,
    )
    seconds = {"starting jax": round(begun, 3)}
    for call in ("first", "second"):
        models, seconds[call] = timed(
            lambda: fit_grid(update, grid(options.points), X, y, sensitive_features=group)
        )
        print(f"{call} call: {seconds[call]}", flush=True)
    for model in (models[0], models[-1]):
        print(f"lambda_fair={model.lambda_fair:g}: {model.status_}", flush=True)
    again, seconds["one model"] = timed(
        lambda: fit_grid(update, grid(options.points)[-1:], X, y, sensitive_features=group)
    )
    sample = X.iloc[:10_000]
    apart = float(np.abs(again[0].ratio(sample) - models[-1].ratio(sample)).max())
    print(f"the last point alone: {seconds['one model']}, r differs by at most {apart:.1e}")
    result = {
        "device": device.device_kind,
        "jax": jax.__version__,
        "python": sys.version.split()[0],
        **vars(options),
        "seconds": seconds,
        "rivals": rivals(5000),
        "peak_gb": memory(),
        "largest_difference_to_alone": apart,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
