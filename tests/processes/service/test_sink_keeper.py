"""The service keeps a log on its way to the receivers that the user's settings name."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from hookline.cli.main import main
from hookline.processes.service.keepers import keep_sink
from hookline.processes.service.pool import Log
from hookline.records.audit.log_file import AuditFile
from hookline.records.audit.push import push_states


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / ".claude").mkdir()
    return tmp_path


def settings(home: Path, said: object) -> None:
    path = home / ".claude" / "settings.json"
    path.write_text(json.dumps(said))
    os.utime(path, ns=(time.time_ns(), time.time_ns()))


def test_a_sink_in_the_settings_is_pushed_to(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From the moment when it stands there until it does not; `service status` says how far it is."""
    said = Log(str(home / "service.log"))
    state = home / "state" / "hookline"
    log = AuditFile(state / "log" / "audit.jsonl")
    log.path.parent.mkdir(parents=True)
    log.append([{"n": 1}, {"n": 2}])
    settings(home, {})
    keeper = keep_sink(str(state), said, str(home))
    keeper._look()
    assert keeper.status()["pid"] is None

    settings(home, {"sink": f"file:{home / 'out'}"})
    keeper._look()
    deadline = time.monotonic() + 50
    while not (pushed := push_states()) or not pushed[0].sent:
        assert time.monotonic() < deadline
        os.sched_yield()
    main(["service", "status", "--json"])
    [shown] = json.loads(capsys.readouterr().out)["push"]
    settings(home, {})
    keeper._look()

    assert (home / "out").read_bytes() == log.path.read_bytes()
    assert shown["to"] == f"file:{home / 'out'}"
    assert keeper.status()["pid"] is None
    assert (home / "service.log").read_text().endswith("push: no sink is named any more\n")


def test_another_receiver_in_the_settings_is_noticed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that pushes ends by itself, and the service starts it again with the settings as they are."""
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr("hookline.cli.commands.audit._LOOK", 0.01)
    log = AuditFile(home / "state" / "hookline" / "log" / "audit.jsonl")
    log.path.parent.mkdir(parents=True)
    log.append([{"n": 1}])
    (home / "next.json").write_text(json.dumps({"sink": f"file:{home / 'b'}"}))
    receiver = f"cat > {home}/a; mv {home}/next.json {home}/.claude/settings.json"  # it edits the settings itself
    settings(home, {"sink": f"exec:sh -c '{receiver}'"})

    assert main(["audit", "push", "--follow"]) == 0
    assert (home / "a").read_bytes() == log.path.read_bytes()


def test_settings_that_cannot_be_understood_are_told(home: Path) -> None:
    """The log of the service says why."""
    said = Log(str(home / "service.log"))
    state = home / "state" / "hookline"
    settings(home, {"sink": "ftp://nowhere"})
    keeper = keep_sink(str(state), said, str(home))
    keeper._look()
    assert keeper.process is not None
    assert keeper.process.stdin is not None
    keeper.process.stdin.close()  # as the end of the service does: otherwise it pauses before it ends
    keeper.process.wait(50)
    keeper.has_ended()

    _, ended = (home / "service.log").read_text().splitlines()
    assert "the audit log's way out ended with exit code 2; hookline audit: sink: expected an address" in ended
