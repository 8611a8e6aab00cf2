"""The resident service keeps an enrolled machine connected, and says so."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest

from hookline.fleet.ledger import Ledger
from hookline.fleet.machine import Enrolment, Machine
from hookline.fleet.members import MachineKey
from tests.fleet.faults import Fleet
from tests.processes.service.conftest import Desk, desk, until

__all__ = ["desk"]


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Fleet]:
    """A hub as a process of its own."""
    made = Fleet(tmp_path / "fleet", 0)
    made.start("hub")
    try:
        yield made
    finally:
        made.stop()


def token(hub: Fleet) -> str:
    from hookline.fleet.members import MachineRegistry, TeamKey

    return MachineRegistry(hub.hub).token(TeamKey.load(hub.hub / "team.key").public)


def keeper(desk: Desk) -> dict[str, Any]:
    [found] = [one for one in desk.status()["fleet"] if one["state"].startswith(str(desk.base))]
    return dict(found)


def test_the_service_keeps_an_enrolled_machine_connected(desk: Desk, hub: Fleet) -> None:
    """From `join` on: what is recorded reaches the hub, a killed connection comes back, and ends with the service."""
    desk.env["XDG_STATE_HOME"] = str(desk.base / "state")
    until((hub.hub / "up").exists)
    joined = desk.run("fleet", "join", f"nats://127.0.0.1:{hub.port}", "--token", token(hub), "--name", "laptop")
    assert "the resident service keeps it connected" in joined.stdout, joined.stderr

    until(lambda: keeper(desk)["pid"])
    first = keeper(desk)["pid"]
    assert f"pid {first} keeps this machine connected" in desk.run("service", "status").stdout
    until(lambda: f"pid {first} keeps it connected" in desk.run("fleet", "status").stdout)
    desk.guard()
    machine = Machine(Path(keeper(desk)["state"]) / "fleet").enrolment().machine
    until(lambda: Ledger(hub.hub / "audit").mirror(machine).last.seq == 1)

    os.kill(first, signal.SIGKILL)
    until(lambda: keeper(desk)["pid"] not in (None, first))
    second = psutil.Process(keeper(desk)["pid"])
    os.kill(desk.status()["pid"], signal.SIGKILL)
    assert psutil.wait_procs([second], timeout=60)[1] == []
    assert "nothing keeps it connected now; `hookline service start` does" in desk.run("fleet", "status").stdout


def test_a_machine_in_no_fleet_has_no_connection(desk: Desk) -> None:
    """Nothing is started for it."""
    desk.env["XDG_STATE_HOME"] = str(desk.base / "state")
    desk.warm()

    assert [one for one in desk.status()["fleet"] if one["state"].startswith(str(desk.base))] == []


def test_a_worker_that_gets_warm_leaves_no_record(desk: Desk) -> None:
    """The events a worker answers to itself are nobody's: the audit log has what was asked, and the policy is not."""
    desk.env.pop("XDG_STATE_HOME", None)  # as on most machines: the state folder is below the home that a worker knows
    machine = Machine(desk.base / "home/.local/state/hookline/fleet")
    log = desk.base / "audit.jsonl"
    enrolment = Enrolment(machine="m1", name="laptop", hub="nats://127.0.0.1:1", team="", audit=str(log))
    machine.enrol(enrolment, MachineKey.generate().seed)

    desk.warm()

    assert {json.loads(line)["run"] for line in log.read_text().splitlines()} == {"s"}


def test_agents_are_told_to_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those whose files ask Hookline, and those that were proven, as `hookline install --list` has them."""
    from hookline.fleet.leaf import _agents
    from hookline.hosts.install.survey import Proof, note_proof, survey
    from hookline.hosts.table import find

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / ".claude").mkdir()
    command = {"type": "command", "command": "hookline answer claude --hooks /h.py"}
    settings = {"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [command]}]}}
    (tmp_path / ".claude" / "settings.json").write_text(json.dumps(settings))
    [version] = [row.version for row in survey() if row.host.name == "claude"]
    note_proof(find("claude"), Proof(version or "1.0", "2026-01-01", holds=True))

    [claude] = [one for one in _agents(-1) if one["host"] == "claude"]
    assert claude["hooked"] == ["user"]
    assert claude["proven"] is True
    assert claude["proof"]["holds"] is True
