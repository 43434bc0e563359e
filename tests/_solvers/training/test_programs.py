"""Compiled programs are kept between processes, for commod alone and only where nobody objects."""

import logging
import os
import shutil
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path
from threading import Thread

import jax
import numpy as np
import pytest

from commod._solvers.training import programs
from commod._solvers.training.programs import cache_home, kept_programs

SETTINGS = (
    "jax_compilation_cache_dir",
    "jax_persistent_cache_min_compile_time_secs",
    "jax_persistent_cache_min_entry_size_bytes",
    "jax_raise_persistent_cache_errors",
)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A cache folder of our own, and a JAX without one."""
    monkeypatch.setenv("COMMOD_CACHE_HOME", str(tmp_path / "cache"))
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    yield tmp_path / "cache"
    jax.config.update("jax_compilation_cache_dir", before)


def compile_something(number):
    return float(jax.jit(lambda x: x * number + 1)(np.float32(2)))


def stored(home):
    return sorted(home.rglob("jit_*"))


def test_what_is_compiled_inside_is_kept_and_nothing_else(home):
    before = [getattr(jax.config, name) for name in SETTINGS]
    with kept_programs():
        assert compile_something(3.25) == 7.5
    assert len(stored(home)) == 1
    assert [getattr(jax.config, name) for name in SETTINGS] == before
    compile_something(4.5)
    assert len(stored(home)) == 1


def test_settings_are_put_back_after_an_error(home):
    with pytest.raises(KeyboardInterrupt), kept_programs():
        raise KeyboardInterrupt
    assert jax.config.jax_compilation_cache_dir is None
    with kept_programs():
        assert jax.config.jax_compilation_cache_dir.startswith(str(home))


def test_a_cache_of_the_users_is_left_alone(home, tmp_path):
    own = str(tmp_path / "own")
    jax.config.update("jax_compilation_cache_dir", own)
    with kept_programs():
        assert jax.config.jax_compilation_cache_dir == own
    jax.config.update("jax_compilation_cache_dir", None)
    jax.config.update("jax_enable_compilation_cache", False)
    try:
        with kept_programs():
            assert jax.config.jax_compilation_cache_dir is None
    finally:
        jax.config.update("jax_enable_compilation_cache", True)
    assert not home.exists()


def test_an_empty_name_switches_it_off(monkeypatch):
    monkeypatch.setenv("COMMOD_CACHE_HOME", "")
    assert cache_home() is None
    with kept_programs():
        assert jax.config.jax_compilation_cache_dir is None


def test_a_folder_that_cannot_be_made_is_done_without(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("COMMOD_CACHE_HOME", str(tmp_path / "file"))
    with kept_programs():
        assert jax.config.jax_compilation_cache_dir is None
        assert compile_something(5.5) == 12


def test_a_home_of_nobody_is_done_without(monkeypatch):
    monkeypatch.setenv("COMMOD_CACHE_HOME", "~no user has this name/x")
    with kept_programs():
        assert jax.config.jax_compilation_cache_dir is None
        assert compile_something(10.5) == 22


def test_a_user_without_a_home_does_without(monkeypatch):
    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("COMMOD_CACHE_HOME")
    monkeypatch.setattr(Path, "home", nowhere)
    with kept_programs():
        assert jax.config.jax_compilation_cache_dir is None


def test_a_folder_that_vanishes_is_done_without(home, monkeypatch):
    def vanish(folder, mode):
        shutil.rmtree(folder)
        return True

    monkeypatch.setattr(os, "access", vanish)
    with kept_programs():
        assert jax.config.jax_compilation_cache_dir is None
        assert compile_something(11.5) == 24


def test_a_folder_may_be_named_from_where_we_are(home, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMMOD_CACHE_HOME", "here/programs")
    with kept_programs():
        assert compile_something(12.5) == 26
    [file] = stored(tmp_path / "here" / "programs")
    file.write_bytes(b"not a program")
    jax.clear_caches()
    with kept_programs():
        assert compile_something(12.5) == 26
    assert file.read_bytes() != b"not a program"


def test_a_second_thread_inside_changes_nothing(home, monkeypatch):
    looked = []
    monkeypatch.setattr(programs, "_folder", lambda: looked.append(1) or home)

    def enter():
        with kept_programs():
            pass

    with kept_programs():
        jax.config.update("jax_compilation_cache_dir", None)  # as another thread may see it
        other = Thread(target=enter)
        other.start()
        other.join()
    assert len(looked) == 1


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs owners and modes of files")
def test_a_folder_that_others_can_write_to_is_not_trusted(home):
    with kept_programs():
        folder = Path(jax.config.jax_compilation_cache_dir)
    folder.chmod(0o777)
    with kept_programs():
        assert jax.config.jax_compilation_cache_dir is None
    folder.chmod(0o700)
    with kept_programs():
        assert jax.config.jax_compilation_cache_dir == str(folder)


def test_a_folder_inside_is_not_taken_for_an_old_program(home, monkeypatch):
    monkeypatch.setattr(programs, "MOST_PROGRAMS", 1)
    with kept_programs():
        folder = Path(jax.config.jax_compilation_cache_dir)
        compile_something(7.5)
    (folder / "notes of a compiler").mkdir()
    for number in (8.5, 9.5):
        with kept_programs():
            assert jax.config.jax_compilation_cache_dir == str(folder)
            compile_something(number)
    assert (folder / "notes of a compiler").is_dir()


def loads(number, caplog):
    """Return how many programs are loaded, not compiled, when a process asks for this one."""
    jax.clear_caches()
    caplog.clear()
    with caplog.at_level(logging.DEBUG, logger="jax._src.compiler"), kept_programs():
        assert compile_something(number) == 2 * number + 1
    return sum("cache hit" in message for message in caplog.messages)


@pytest.mark.parametrize("strict", [False, True], ids=["", "errors are raised"])
@pytest.mark.parametrize("end", [0, 100, -1], ids=["empty", "begun", "truncated"])
def test_a_damaged_file_is_a_program_to_compile(home, caplog, end, strict):
    with kept_programs():
        compile_something(6.25)
        compile_something(7.25)
    files = stored(home)
    assert len(files) == 2
    for file in files:
        file.write_bytes(file.read_bytes()[:end])
    before = jax.config.jax_raise_persistent_cache_errors
    jax.config.update("jax_raise_persistent_cache_errors", strict)
    try:
        assert [loads(6.25, caplog), loads(7.25, caplog)] == [0, 0]
    finally:
        jax.config.update("jax_raise_persistent_cache_errors", before)
    assert [loads(6.25, caplog), loads(7.25, caplog)] == [1, 1], "written again"
    assert sorted(files[0].parent.iterdir()) == files, "nothing is left beside them"


def test_a_damaged_file_does_not_touch_others_of_the_same_name(home, caplog):
    with kept_programs():
        compile_something(13.5)
    [damaged] = stored(home)
    with kept_programs():
        compile_something(14.5)
    [other] = set(stored(home)) - {damaged}
    told = other.stat()
    damaged.write_bytes(b"not a program")
    assert loads(13.5, caplog) == 0
    assert (other.stat().st_ino, other.stat().st_mtime_ns) == (told.st_ino, told.st_mtime_ns)
    assert [loads(13.5, caplog), loads(14.5, caplog)] == [1, 1]


def test_other_warnings_are_shown_as_ever(home):
    before = warnings.showwarning
    with pytest.warns(UserWarning, match="of another kind"), kept_programs():
        ours = warnings.showwarning
        warnings.warn("of another kind", UserWarning, stacklevel=1)
    assert warnings.showwarning is before
    about_another = UserWarning("Error reading persistent compilation cache")
    with pytest.warns(UserWarning, match="Error reading"):  # a thread may have kept it for later
        ours(about_another, UserWarning, "somewhere.py", 1)
    assert jax.config.jax_compilation_cache_dir is None


def test_the_programs_written_first_give_way(home, monkeypatch):
    monkeypatch.setattr(programs, "MOST_PROGRAMS", 2)
    written = []
    for number in (1.5, 2.5, 3.5, 4.5, 5.5):
        with kept_programs():
            compile_something(number + 100)
        [file] = set(stored(home)) - set(written)
        os.utime(file, (len(written), len(written)))  # clocks of files may be coarse
        written.append(file)
    assert stored(home) == sorted(written[-3:]), "two, and the one written since"


@pytest.mark.parametrize(
    ("system", "variables", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/x"}, Path("/x/commod")),
        ("linux", {}, Path("/home/me/.cache/commod")),
        ("darwin", {}, Path("/home/me/Library/Caches/commod")),
        ("win32", {"LOCALAPPDATA": "/local"}, Path("/local/commod/cache")),
        ("win32", {}, Path("/home/me/AppData/Local/commod/cache")),
        ("linux", {"COMMOD_CACHE_HOME": "/mine"}, Path("/mine")),
    ],
)
def test_each_platform_has_its_place_for_caches(monkeypatch, system, variables, expected):
    for name in ("COMMOD_CACHE_HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(Path, "home", lambda: Path("/home/me"))
    assert cache_home() == expected


FIT = """
    import logging, warnings
    import jax
    from commod import COMMOD
    from commod.datasets import make_biased
    from sklearn.linear_model import LogisticRegression

    warnings.simplefilter("error")
    seen = []

    class Hits(logging.Handler):
        def emit(self, record):
            seen.append(record.getMessage())

    logging.getLogger("jax._src.compiler").addHandler(Hits())
    jax.config.update("jax_debug_log_modules", "jax._src.compiler")
    data = make_biased(300, random_state=0)
    model = LogisticRegression().fit(data.data, data.target)
    update = COMMOD(model, epochs=2, warmup_epochs=0, min_group_size=5, random_state=0)
    update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    print(update.ratio(data.data).tobytes().hex())
    print(sum("cache hit" in message for message in seen))
"""


def fit_in_a_process():
    """Return the ratios of a fit, as text, and how many programs it loaded."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FIT)], capture_output=True, text=True, check=True
    )
    noise = [line for line in done.stderr.splitlines() if "jax._src.compiler" not in line]
    assert not [line for line in noise if "AOT" in line or "rror" in line], done.stderr
    ratios, n_loaded = done.stdout.split()
    return ratios, int(n_loaded)


def test_the_next_process_loads_what_the_first_compiled(tmp_path, monkeypatch):
    monkeypatch.setenv("COMMOD_CACHE_HOME", str(tmp_path))
    for name in ("JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_COMPILATION_CACHE"):
        monkeypatch.delenv(name, raising=False)
    found = [fit_in_a_process(), fit_in_a_process()]
    [file] = stored(tmp_path)  # one program is all a fit needs
    file.write_bytes(file.read_bytes()[:1000])
    found += [fit_in_a_process(), fit_in_a_process()]
    assert len({ratios for ratios, _ in found}) == 1
    assert [n_loaded for _, n_loaded in found] == [0, 1, 0, 1], "a damaged file is written again"
