"""Files: each is written whole or not at all, and several outputs of one command together."""

import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress

import pytest

from commod._io.files import (
    private_folder,
    remove_unfinished,
    replacement_file,
    write_whole,
    written_together,
)

NAMES = ("a.csv", "b.html", "c.json")


def listed(folder):
    """Return the content of each file of a folder, hidden files included."""
    return {p.name: p.read_text() for p in folder.iterdir()}


def write_all(folder, names=NAMES):
    with written_together():
        for name in names:
            write_whole(folder / name, f"new {name}".encode())


def failing(function, at):
    """Return the function, which fails at its call number `at`, counted from 1."""
    calls = []

    def call(*arguments, **options):
        calls.append(1)
        if len(calls) == at:
            raise OSError(28, "No space left on device")
        return function(*arguments, **options)

    return call


def test_files_written_together_are_all_there(tmp_path):
    write_all(tmp_path)
    assert listed(tmp_path) == {name: f"new {name}" for name in NAMES}


def test_no_file_appears_before_the_last_is_written(tmp_path):
    with written_together():
        write_whole(tmp_path / "a.csv", b"a")
        assert not (tmp_path / "a.csv").exists()
        write_whole(tmp_path / "b.csv", b"b")
        assert not (tmp_path / "b.csv").exists()
    assert listed(tmp_path) == {"a.csv": "a", "b.csv": "b"}


@pytest.mark.parametrize(("n_files", "at"), [(2, 1), (2, 2), (3, 1), (3, 2), (3, 3)])
@pytest.mark.parametrize("earlier", [(), ("a.csv",), NAMES], ids=["none", "one", "all"])
def test_a_rename_that_fails_rolls_back_those_before_it(
    tmp_path, monkeypatch, n_files, at, earlier
):
    for name in earlier:
        (tmp_path / name).write_text(f"old {name}")
    monkeypatch.setattr(os, "replace", failing(os.replace, at))
    with pytest.raises(OSError, match="No space left") as raised:
        write_all(tmp_path, NAMES[:n_files])
    assert raised.value.filename == str(tmp_path / NAMES[at - 1])
    assert listed(tmp_path) == {name: f"old {name}" for name in earlier}


def test_earlier_files_come_back_where_files_cannot_be_linked(tmp_path, monkeypatch):
    for name in NAMES:
        (tmp_path / name).write_text(f"old {name}")
    monkeypatch.setattr(os, "link", failing(os.link, 1))
    monkeypatch.setattr(os, "replace", failing(os.replace, 3))
    with pytest.raises(OSError, match="No space left"):
        write_all(tmp_path)
    assert listed(tmp_path) == {name: f"old {name}" for name in NAMES}


@pytest.mark.parametrize("stop", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_block_that_fails_writes_nothing(tmp_path, stop):
    (tmp_path / "a.csv").write_text("old")
    with pytest.raises(stop), written_together():
        write_whole(tmp_path / "a.csv", b"new")
        write_whole(tmp_path / "b.csv", b"new")
        raise stop
    assert listed(tmp_path) == {"a.csv": "old"}
    write_whole(tmp_path / "b.csv", b"later")  # a failed block has no effect on later files
    assert listed(tmp_path) == {"a.csv": "old", "b.csv": "later"}


def test_one_file_written_twice_together_has_the_last_content(tmp_path):
    with written_together():
        write_whole(tmp_path / "a.csv", b"first")
        write_whole(tmp_path / "a.csv", b"second")
    assert listed(tmp_path) == {"a.csv": "second"}


def test_a_private_file_stays_private(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("old")
    path.chmod(0o600)
    write_all(tmp_path)
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_a_stopped_command_leaves_can_be_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    open_blocks = [replacement_file(tmp_path / "a.csv"), private_folder()]
    temporary, folder = (block.__enter__() for block in open_blocks)
    (folder / "copy.csv").write_text("rows")
    remove_unfinished()
    assert not temporary.exists() and not folder.exists()
    for block in open_blocks:
        with suppress(KeyboardInterrupt):
            block.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert listed(tmp_path) == {}


@pytest.mark.skipif(sys.platform == "win32", reason="has no locks of this kind")
def test_only_old_unlocked_temporary_files_of_the_same_target_are_removed(tmp_path):
    def left(name, age):
        path = tmp_path / name
        path.write_text("rows")
        os.utime(path, (time.time() - age, time.time() - age))
        return path

    with replacement_file(tmp_path / "a.csv") as being_written:
        os.utime(being_written, (0, 0))
        mine = left(f".a.csv.{0:016x}.part", 90)
        others = {
            being_written,
            left(f".a.csv.{1:016x}.part", 0),
            left(f".b.csv.{2:016x}.part", 90),
            left(".a.csv.part", 90),
            left("somebody's", 90),
        }
        link = tmp_path / f".a.csv.{3:016x}.part"
        link.symlink_to("somebody's")  # no command makes links: this one is not ours
        with replacement_file(tmp_path / "a.csv") as again:
            assert not mine.exists()
            assert set(tmp_path.iterdir()) == {*others, link, again}


@pytest.mark.skipif(sys.platform == "win32", reason="has no such limits")
def test_a_size_limit_leaves_all_files_of_a_command_or_none(tmp_path):
    """A limit on file sizes is the kernel's own full disk: writes fail at any byte."""
    limits = [50, 5_000, 200_000]
    code = (
        "import os, resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from commod._io.files import write_whole, written_together\n"
        "_, most = resource.getrlimit(resource.RLIMIT_FSIZE)\n"
        f"for largest in {limits}:\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, most))\n"
        "    os.mkdir(str(largest))\n"
        "    try:\n"
        "        with written_together():\n"
        "            for name, n in (('a', 100), ('b', 10_000), ('c', 100_000)):\n"
        "                write_whole(f'{largest}/{name}', b'x' * n)\n"
        "    except OSError:\n"
        "        os.mkdir(f'{largest} failed')\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    written = {n: sorted(p.name for p in (tmp_path / str(n)).iterdir()) for n in limits}
    assert written == {50: [], 5_000: [], 200_000: ["a", "b", "c"]}
    assert [(tmp_path / f"{n} failed").exists() for n in limits] == [True, True, False]
