"""Tables of people on which the tests of the command line run."""

import numpy as np
import pandas as pd


def people(n, seed):
    """Return rows of people with a score f that is lower for one race."""
    random = np.random.default_rng(seed)
    race = random.choice(["black", "white"], n, p=[0.4, 0.6])
    income = random.normal(size=n) + 0.7 * (race == "white")
    town = random.choice(["Oslo", "Rome", "Bern"], n)
    f = 1 / (1 + np.exp(-1.2 * income + 0.4 * (town == "Oslo")))
    return pd.DataFrame(
        {
            "income": income.round(3),
            "age": random.integers(18, 80, n),
            "town": np.where(random.random(n) < 0.05, None, town),
            "f": f.round(4),
            "y": (random.random(n) < f).astype(int),
            "race": race,
        }
    )


def write(folder, n=2000):
    people(n, 0).to_csv(folder / "train.csv", index=False)
    people(n, 1).to_csv(folder / "new.csv", index=False)
    decided = people(n, 2)
    decided = decided.assign(old=(decided["f"] > 0.5) * 1, new=(decided["f"] > 0.45) * 1)
    decided.to_csv(folder / "decided.csv", index=False)
    (folder / "lake").mkdir()
    people(n, 0).assign(id=range(n)).to_parquet(folder / "lake" / "train.parquet", index=False)
    return folder
