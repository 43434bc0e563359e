"""Tables that several test files read, loaded once per run; treat them as read-only."""

import os
import subprocess
import sys
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


@pytest.fixture(scope="module")
def quick_compilation():
    """Compile JAX programs without polishing them: for modules with many that run briefly."""
    import jax

    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """What `commod demo` prints, and the folder of what it writes."""
    folder = tmp_path_factory.mktemp("demo")
    command = Path(sys.executable).with_name("commod")
    done = subprocess.run(
        [command, "demo"], capture_output=True, text=True, cwd=folder, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, folder / "commod-demo"
