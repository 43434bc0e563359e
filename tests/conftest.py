"""Tables that several test files read, loaded once per run; treat them as read-only."""

import os
from pathlib import Path

import pytest

from commod.datasets import fetch_law_school, load_compas


@pytest.fixture(scope="session")
def compas():
    return load_compas()


@pytest.fixture(scope="session")
def law_school():
    home = os.environ.get("COMMOD_DATA_HOME")
    if not home or not (Path(home) / "law_school.csv").exists():
        pytest.skip("law_school.csv not found: set COMMOD_DATA_HOME")
    return fetch_law_school(data_home=home, download_if_missing=False)
