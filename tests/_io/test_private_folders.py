"""A folder of programs is used only where nobody else can replace it, whatever lies on its way."""

import os
import stat

import pytest

from commod._solvers.training.loop import private_path

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs owners of files")
as_root = pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can give files away"
)
STRANGER = 54321


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022, 0o077, 0o777])
def test_folders_are_private_whatever_the_umask(tmp_path, umask):
    before = os.umask(umask)
    try:
        made = private_path(tmp_path / "a" / "b" / "c")
    finally:
        os.umask(before)
    assert made == tmp_path / "a" / "b" / "c"
    assert [mode(p) for p in (made, made.parent, made.parent.parent)] == [0o700] * 3
    assert private_path(made) == made


@pytest.mark.parametrize("bits", [0o770, 0o777, 0o702, 0o1777])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_no_folder_on_the_way_may_be_writable_by_others(tmp_path, bits, depth):
    folder = private_path(tmp_path / "a" / "b" / "c")
    opened = [folder, *folder.parents][depth]
    opened.chmod(bits)
    # a sticky folder of root is like /tmp: nobody can move what others own
    is_like_tmp = bits == 0o1777 and depth > 0 and os.getuid() == 0
    assert (private_path(folder) == folder) == is_like_tmp
    opened.chmod(0o700)
    assert private_path(folder) == folder


def test_readable_folders_are_fine(tmp_path):
    folder = private_path(tmp_path / "a" / "b")
    for place in (folder, folder.parent):
        place.chmod(0o755)
    assert private_path(folder) == folder


@as_root
@pytest.mark.parametrize("depth", [0, 1])
@pytest.mark.parametrize("bits", [0o700, 0o755, 0o1777])
def test_a_folder_of_somebody_else_is_not_used(tmp_path, depth, bits):
    folder = private_path(tmp_path / "a" / "b")
    theirs = [folder, folder.parent][depth]
    theirs.chmod(bits)
    os.chown(theirs, STRANGER, STRANGER)
    assert private_path(folder) is None


@as_root
def test_a_folder_of_root_is_no_folder_of_an_ordinary_user(tmp_path, monkeypatch):
    folder = private_path(tmp_path / "a" / "b")
    os.chown(folder, STRANGER, STRANGER)
    monkeypatch.setattr(os, "getuid", lambda: STRANGER)
    assert private_path(folder) == folder  # the ones above it are root's
    assert private_path(folder.parent) is None


@pytest.mark.parametrize("is_relative", [True, False])
def test_links_are_followed_and_their_way_is_checked(tmp_path, is_relative):
    target = private_path(tmp_path / "elsewhere" / "programs")
    link = private_path(tmp_path / "home") / "cache"
    link.symlink_to("../elsewhere/programs" if is_relative else target)
    assert private_path(link) == target
    assert private_path(link / "new") == target / "new"
    target.parent.chmod(0o777)
    assert private_path(link) is None
    target.parent.chmod(0o700)
    link.parent.chmod(0o777)
    assert private_path(link) is None


@as_root
def test_a_link_of_somebody_else_is_not_followed(tmp_path):
    target = private_path(tmp_path / "programs")
    (tmp_path / "link").symlink_to(target)
    assert private_path(tmp_path / "link") == target
    os.lchown(tmp_path / "link", STRANGER, STRANGER)
    assert private_path(tmp_path / "link") is None


def test_what_is_no_folder_or_leads_nowhere_is_not_used(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    for name in ("file", "file/below", "circle", "one/below"):
        assert private_path(tmp_path / name) is None
    (tmp_path / "dangling").symlink_to("made")
    assert private_path(tmp_path / "dangling") == tmp_path / "made"
