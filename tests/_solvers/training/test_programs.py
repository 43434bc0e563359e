"""Compiled programs are kept between processes, and the user's JAX stays as it was configured."""

import inspect
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import jax
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from commod import COMMOD
from commod._solvers.training import loop
from commod._solvers.training.loop import cache_home, compiled_program
from commod.datasets import make_biased

pytestmark = pytest.mark.usefixtures("quick_compilation")


@pytest.fixture(autouse=True)
def no_programs_in_memory():
    """Let every test begin as a new process does."""
    loop._program.cache_clear()


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A cache folder of our own."""
    monkeypatch.setenv("COMMOD_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def backend_compilations():
    """A list that grows with every program that JAX compiles; loading one adds nothing."""
    names = []

    def listen(name, duration, **_):
        if name == "/jax/core/compile/backend_compile_duration":
            names.append(name)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield names
    jax.monitoring.unregister_event_duration_listener(listen)


def add_one(x, factor):
    return x * factor + 1


def run_program(factor):
    """Run a small program, another for each factor, as a new process would."""
    loop._program.cache_clear()
    jax.clear_caches()
    x = jax.device_put(np.float32([2]))
    program = compiled_program(add_one, (x,), factor=factor)
    assert np.asarray(program(x)).tolist() == [2 * factor + 1]


def stored(home):
    return sorted(home.rglob("*.program"))


def test_a_program_is_stored_once_and_loaded_from_then_on(home, backend_compilations):
    run_program(3.25)
    [file] = stored(home)
    n_compiled = len(backend_compilations)
    written = file.stat().st_mtime_ns
    run_program(3.25)
    assert len(backend_compilations) == n_compiled
    assert [f.stat().st_mtime_ns for f in stored(home)] == [written]
    run_program(4.5)
    assert len(stored(home)) == 2


def doubled(field):
    def double(record):
        return 2 * record[field]

    return double


def test_functions_of_other_arguments_do_not_share_a_stored_program(home):
    record = {"rate": jax.device_put(np.float32([1])), "share": np.float32([5])}
    for field, expected in (("rate", 2), ("share", 10)):
        program = compiled_program(doubled(field), (record,))
        assert np.asarray(program(record)).tolist() == [expected]
    assert len(stored(home)) == 2


def test_a_program_in_memory_serves_arguments_of_the_same_shapes(home):
    x = jax.device_put(np.float32([2]))
    first = compiled_program(add_one, (x, np.float32(3)))
    assert compiled_program(add_one, (x + 1, np.float32(4))) is first
    longer = jax.device_put(np.float32([2, 3]))
    assert compiled_program(add_one, (longer, np.float32(3))) is not first
    with jax.enable_x64(True):
        assert compiled_program(add_one, (x, np.float32(3))) is not first


def test_nothing_else_that_jax_compiles_is_stored(home):
    run_program(3.25)
    jax.jit(lambda x: x * 4.75)(np.float32(2))
    assert len(stored(home)) == 1


def test_a_cache_of_the_users_is_left_in_charge(home, tmp_path):
    own = tmp_path / "own"
    settings = {
        "jax_compilation_cache_dir": str(own),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    before = {name: jax.config.values[name] for name in settings}
    try:
        for name, value in settings.items():
            jax.config.update(name, value)
        run_program(8.25)
        assert {name: jax.config.values[name] for name in settings} == settings
        assert any(own.iterdir()), "JAX stores the program there"
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
        jax.experimental.compilation_cache.compilation_cache.reset_cache()
    assert not home.exists()


def test_a_user_without_a_cache_gets_none(home):
    jax.config.update("jax_enable_compilation_cache", False)
    try:
        run_program(3.5)
    finally:
        jax.config.update("jax_enable_compilation_cache", True)
    assert not home.exists()


# -- folders that cannot be used ------------------------------------------------------------------


def test_an_empty_name_switches_the_folder_off(monkeypatch):
    monkeypatch.setenv("COMMOD_CACHE_HOME", "")
    assert cache_home() is None
    assert loop._folder() is None
    run_program(5.5)


@pytest.mark.parametrize("name", ["file", "~no user has this name/x"])
def test_a_folder_that_cannot_be_made_does_not_matter(tmp_path, monkeypatch, name):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMMOD_CACHE_HOME", name)
    assert loop._folder() is None
    run_program(5.5)


def test_a_user_without_a_home_needs_none(monkeypatch):
    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("COMMOD_CACHE_HOME")
    monkeypatch.setattr(Path, "home", nowhere)
    assert loop._folder() is None
    run_program(5.5)


def test_a_folder_that_vanishes_does_not_matter(home, monkeypatch):
    def vanish(folder, mode):
        shutil.rmtree(folder)
        return True

    monkeypatch.setattr(os, "access", vanish)
    run_program(11.5)


@pytest.mark.parametrize("step", ["serialize", "_load"])
def test_a_folder_that_vanishes_later_does_not_matter(home, monkeypatch, step):
    original = getattr(loop, step)

    def vanish(*args):
        shutil.rmtree(home)
        return original(*args)

    monkeypatch.setattr(loop, step, vanish)
    run_program(11.5)
    assert not stored(home)


def test_a_program_that_cannot_be_stored_still_runs(home, monkeypatch):
    def refuse(program):
        raise ValueError("Compilation does not support serialization")

    monkeypatch.setattr(loop, "serialize", refuse)
    run_program(5.5)
    assert not stored(home)


def test_a_folder_may_be_named_relative_to_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMMOD_CACHE_HOME", "here/programs")
    run_program(12.5)
    assert len(stored(tmp_path / "here" / "programs")) == 1


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs owners and modes of files")
def test_a_folder_that_others_can_write_to_is_not_trusted(home):
    folder = loop._folder()
    folder.chmod(0o777)
    assert loop._folder() is None
    run_program(13.5)
    assert not stored(home)
    folder.chmod(0o700)
    assert loop._folder() == folder


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs owners and modes of files")
def test_a_folder_whose_parent_others_can_write_to_is_not_trusted(home):
    before = os.umask(0)
    try:
        folder = loop._folder()
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (folder, home)] == [0o700, 0o700]
    home.chmod(0o770)
    run_program(14.5)
    assert not stored(home)


# -- files ----------------------------------------------------------------------------------------


def test_a_damaged_file_is_replaced(home, backend_compilations):
    run_program(6.25)
    [damaged] = stored(home)
    run_program(7.25)
    [other] = set(stored(home)) - {damaged}
    status = other.stat()
    data = damaged.read_bytes()
    altered = data[:500] + b"xx" + data[502:]
    for damage in (b"", data[:100], data[:-1], altered, b"not a program"):
        damaged.write_bytes(damage)
        n_compiled = len(backend_compilations)
        run_program(6.25)
        assert len(backend_compilations) == n_compiled + 1, damage[:20]
        run_program(6.25)
        assert len(backend_compilations) == n_compiled + 1, "written again"
        assert sorted(other.parent.iterdir()) == sorted([damaged, other]), "nothing else is left"
    run_program(7.25)
    assert len(backend_compilations) == n_compiled + 1
    assert (other.stat().st_ino, other.stat().st_mtime_ns) == (status.st_ino, status.st_mtime_ns)


def test_the_oldest_programs_are_removed_and_nothing_else(home, monkeypatch):
    monkeypatch.setattr(loop, "MAX_PROGRAMS", 2)
    notes = loop._folder() / "notes"
    notes.mkdir()
    written = []
    for number in (1.5, 2.5, 3.5, 4.5, 5.5):
        run_program(number + 100)
        [file] = set(stored(home)) - set(written)
        os.utime(file, (len(written), len(written)))  # clocks of files may be coarse
        written.append(file)
    assert stored(home) == sorted(written[-2:])
    assert notes.is_dir()


def test_each_platform_has_its_place_for_caches(monkeypatch):
    for system, variables, expected in [
        ("linux", {"XDG_CACHE_HOME": "/x"}, Path("/x/commod")),
        ("linux", {}, Path("/home/me/.cache/commod")),
        ("darwin", {}, Path("/home/me/Library/Caches/commod")),
        ("win32", {"LOCALAPPDATA": "/local"}, Path("/local/commod/cache")),
        ("win32", {}, Path("/home/me/AppData/Local/commod/cache")),
        ("linux", {"COMMOD_CACHE_HOME": "/mine"}, Path("/mine")),
    ]:
        for name in ("COMMOD_CACHE_HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "platform", system)
        monkeypatch.setattr(Path, "home", lambda: Path("/home/me"))
        assert cache_home() == expected


# -- fits -----------------------------------------------------------------------------------------


def fit():
    data = make_biased(300, random_state=0)
    model = LogisticRegression().fit(data.data, data.target)
    update = COMMOD(
        model,
        lambda_fair=4,
        epochs=12,
        training={"warmup_epochs": 0},
        min_group_size=5,
        random_state=0,
    )
    update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    return update.ratio(data.data)


FIT = f"""
import warnings
import jax
from commod import COMMOD
from commod.datasets import make_biased
from sklearn.linear_model import LogisticRegression

warnings.simplefilter("error")
compiled = []

def listen(name, duration, **_):
    if name == "/jax/core/compile/backend_compile_duration":
        compiled.append(duration)

jax.monitoring.register_event_duration_secs_listener(listen)

{inspect.getsource(fit)}
print(fit().tobytes().hex())
print(len(compiled))
"""


def test_a_fit_leaves_jax_as_it_was_and_the_next_process_loads_its_program(
    home, monkeypatch, backend_compilations
):
    for name in ("JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_COMPILATION_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "true")  # as in this process
    jax.clear_caches()
    before = dict(jax.config.values)
    shown, filters = warnings.showwarning, list(warnings.filters)
    written = []
    with monkeypatch.context() as patch:
        update = lambda self, name, value: written.append(name)  # noqa: E731
        patch.setattr(type(jax.config), "update", update)
        ratios = fit()
    assert written == [], "not even for a moment: another thread would see it"
    assert dict(jax.config.values) == before
    assert warnings.showwarning is shown
    assert warnings.filters == filters
    assert ratios.std() > 0.01
    assert len(backend_compilations) == len(stored(home)) == 1  # one program is all a fit needs
    done = subprocess.run([sys.executable, "-c", FIT], capture_output=True, text=True, check=True)
    assert not [line for line in done.stderr.splitlines() if "AOT" in line or "rror" in line], (
        done.stderr
    )
    found, n_compiled = done.stdout.split()
    assert found == ratios.tobytes().hex(), "the same seed gives the same bits"
    assert int(n_compiled) == 0
    assert len(stored(home)) == 1
