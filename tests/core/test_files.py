"""Files that several processes share."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hookline.agent.messages import User
from hookline.agent.session.transcript import Transcript
from hookline.core.files import state_folder, write_atomically
from hookline.fleet.bundle import Bundle, Manifest
from hookline.fleet.ledger import Ledger
from hookline.fleet.machine import Enrolment, Machine
from hookline.fleet.members import MachineRegistry
from hookline.guards.budget import BudgetStore
from hookline.guards.sandboxing import hold
from hookline.hosts.install.entries import mark_handled
from hookline.hosts.install.survey import Proof, note_proof
from hookline.hosts.table import find
from hookline.records.audit.chain import FileAnchor, Link
from hookline.sandbox.policy import Policy
from hookline.settings.trust.store import Trust
from hookline.testing import bash


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


@pytest.fixture
def no_umask() -> Iterator[None]:
    mask = os.umask(0)
    yield
    os.umask(mask)


def make_state(folder: Path) -> None:
    """What each part keeps for its user, made through the library."""
    store = BudgetStore(folder / "budget" / "own", time.time)
    with store.account("one") as account:
        account.used["calls"] = 1
    Trust(folder / "trust" / "trust.json").record([])
    hold(bash("ls", tool_use_id="one"), Policy(None))
    mark_handled(find("grok"), "PreToolUse", "x", b'{"session_id": "one"}')
    note_proof(find("claude"), Proof("1", "2026-01-01", holds=True))
    transcript = Transcript(folder / "sessions" / "one.jsonl", "one", cwd="/")
    transcript.add(User.of("hello"))
    transcript.describe({"agentType": "x"})
    transcript.close()
    FileAnchor(folder / "anchors" / "one").write(Link(1, "0" * 64), None)
    Ledger(folder / "hub" / "audit").mirror("m").put_aside(b"x", 1, "unreadable")
    MachineRegistry(folder / "hub" / "machines")
    machine = Machine(folder / "fleet")
    machine.enrol(Enrolment(machine="m", name="m", hub="nats://hub", team="k"), "seed")
    machine.heard()
    manifest = Manifest(format=1, version=1, created="now", message="", files={})
    machine.stage(Bundle(manifest, {"hooks.py": b"", "more/x.py": b""}, "digest", b"manifest", b"signature"))


def test_state_is_the_users_alone_whatever_the_umask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_umask: None
) -> None:
    """Also the folders above it, if they had to be made; not only where the `hookline` command sets the umask."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    make_state(tmp_path / "library")

    made = {path.relative_to(tmp_path): stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert len(made) > 30
    assert {path: oct(mode) for path, mode in made.items() if mode & 0o077} == {}
