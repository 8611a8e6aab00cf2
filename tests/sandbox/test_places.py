"""Where paths of another process lead, also through links that mean that process."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hookline.sandbox.path_access import real, resolve_in_process
from hookline.sandbox.syscalls import AT_FDCWD
from tests.resources import descriptors

OTHER = 9
"""A descriptor that the other process has, and we have not or have for something else."""


@pytest.fixture
def other(tmp_path: Path) -> Iterator[int]:
    """A process in a folder of its own, with a file open."""
    far = tmp_path / "far"
    far.mkdir()
    (far / "file").write_text("x")
    (tmp_path / "near").mkdir()
    line = f"exec {OTHER}< file; echo ready; read line"
    with subprocess.Popen(["bash", "-c", line], cwd=far, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.communicate(b"\n")


LINKS = ["/proc/self/cwd", "/proc/thread-self/cwd", "/proc/self/task/../cwd"]


@pytest.mark.parametrize("link", LINKS)
def test_a_link_to_self_is_the_other_process(tmp_path: Path, other: int, link: str) -> None:
    (tmp_path / "near" / "up").symlink_to(link)

    assert real(other, AT_FDCWD, str(tmp_path / "near/up/file")) == str(tmp_path / "far/file")
    assert real(other, AT_FDCWD, "../near/up/new") == str(tmp_path / "far/new")


@pytest.mark.parametrize("path", [f"/proc/self/fd/{OTHER}", f"/dev/fd/{OTHER}", f"/proc/thread-self/fd/{OTHER}"])
def test_descriptors_are_the_other_process_s(tmp_path: Path, other: int, path: str) -> None:
    with resolve_in_process(other, AT_FDCWD, path) as place:
        assert place.path == str(tmp_path / "far/file")
        assert Path(place.opened).read_text() == "x"
    assert real(other, OTHER, "") == str(tmp_path / "far/file")


def test_links_are_followed_only_where_the_call_does(tmp_path: Path, other: int) -> None:
    link = tmp_path / "near" / "link"
    link.symlink_to("../far/file")
    (tmp_path / "near" / "folder").symlink_to(tmp_path / "far")
    (tmp_path / "near" / "dangling").symlink_to("../far/new")

    assert real(other, AT_FDCWD, str(link), follow=False) == str(link)
    assert real(other, AT_FDCWD, str(link)) == str(tmp_path / "far/file")
    assert real(other, AT_FDCWD, f"{tmp_path}/near/folder/", follow=False) == str(tmp_path / "far")
    assert real(other, AT_FDCWD, f"{tmp_path}/near/dangling") == str(tmp_path / "far/new")
    assert real(other, AT_FDCWD, f"{tmp_path}/near/dangling", follow=False) == str(tmp_path / "near/dangling")


def test_what_leads_nowhere_says_so(tmp_path: Path, other: int) -> None:
    (tmp_path / "near" / "round").symlink_to("round")

    with pytest.raises(FileNotFoundError):
        real(other, AT_FDCWD, str(tmp_path / "none/file"))
    with pytest.raises(OSError, match="symbolic links"):
        real(other, AT_FDCWD, str(tmp_path / "near/round"))
    with pytest.raises(NotADirectoryError):
        real(other, AT_FDCWD, str(tmp_path / "far/file/below"))


def test_no_descriptor_stays_open(tmp_path: Path, other: int) -> None:
    (tmp_path / "near" / "up").symlink_to("/proc/self/cwd")
    before = descriptors()

    for path in ("file", "new", "../near/up/file", "none/none", "../near/up/none/none", "/proc/self/fd/77"):
        try:
            real(other, AT_FDCWD, path)
        except OSError:
            continue

    assert descriptors() <= before
