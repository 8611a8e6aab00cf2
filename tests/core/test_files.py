"""Files that several processes share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hookline.core.files import state_folder, write_atomically


def test_new_contents_replace_the_old_ones_and_nothing_else_is_left(tmp_path: Path) -> None:
    """One file before, one file after."""
    path = tmp_path / "state.json"

    write_atomically(path, b"old")
    write_atomically(path, b"new", mode=0o640, durable=True)

    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """People keep their settings elsewhere and link to them."""
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_bytes(b"old")
    link.symlink_to(real)

    write_atomically(link, b"new")

    assert link.is_symlink()
    assert real.read_bytes() == b"new"


def test_a_failure_leaves_the_old_contents(tmp_path: Path) -> None:
    """A folder in the file's place cannot be replaced: nothing changes, and no temporary file stays."""
    path = tmp_path / "taken"
    (path / "inside").mkdir(parents=True)

    with pytest.raises(OSError, match="irectory"):
        write_atomically(path, b"new")

    assert [entry.name for entry in tmp_path.iterdir()] == ["taken"]


def test_the_state_folder_follows_the_user_not_the_project(tmp_path: Path) -> None:
    """A relative XDG_STATE_HOME would mean another folder in each project, so it does not count."""
    home = {"HOME": str(tmp_path)}

    assert state_folder(home) == tmp_path / ".local/state/hookline"
    assert state_folder({**home, "XDG_STATE_HOME": "relative"}) == tmp_path / ".local/state/hookline"
    assert state_folder({**home, "XDG_STATE_HOME": os.sep + "state"}) == Path("/state/hookline")
