"""`hookline audit`: a timeline that people can read, and a verdict on whether the log is whole."""

import asyncio
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks, deny
from hookline.cli.commands import audit
from hookline.cli.main import main
from hookline.events import PostToolUseFailure, SessionStart
from hookline.records.audit.log import AuditLog
from hookline.records.audit.log_file import AuditFile
from hookline.testing import bash, write

RUN = [sys.executable, "-m", "hookline.cli.main", "audit"]


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")


def at(hour: int, day: int = 31) -> datetime:
    return datetime(2026, 1, day, hour, tzinfo=UTC)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "audit.jsonl"
    asyncio.run(_recorded(path))
    return path


async def _recorded(path: Path) -> None:
    async with Hooks() as hooks:

        @hooks.on("PreToolUse", match="Bash", name="no-sudo")
        async def no_sudo(event: Any) -> Any:
            return deny("sudo is for people") if "sudo" in event.tool_input["command"] else None

        hooks.observe(AuditLog(path, user="ada"), inline=True)
        await hooks.fire(SessionStart(source="startup", session_id="one", timestamp=at(8, 30)))
        await hooks.fire(bash("ls -l", session_id="one", timestamp=at(9)))
        await hooks.fire(bash("sudo rm -rf /", session_id="two", timestamp=at(10)))
        await hooks.fire(write("/project/a.py", session_id="two", timestamp=at(11)))
        await hooks.fire(PostToolUseFailure(tool_name="Write", error="disk\x1b[31m full", timestamp=at(12)))


def shown(capsys: pytest.CaptureFixture[str], *argv: object) -> list[str]:
    assert main(["audit", "show", *map(str, argv)]) == 0
    return capsys.readouterr().out.splitlines()


def test_a_log_is_shown_as_a_timeline(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """When, decided how, what, about what, by whom and why; a line per day in between."""
    assert shown(capsys, log) == [
        "2026-01-30",
        "08:00:00 PASS       SessionStart startup",
        "2026-01-31",
        "09:00:00 PASS       PreToolUse Bash ls -l",
        "10:00:00 DENY       PreToolUse Bash sudo rm -rf / by no-sudo: sudo is for people",
        "11:00:00 PASS       PreToolUse Write /project/a.py",
        "12:00:00 PASS       PostToolUseFailure Write: disk\\x1b[31m full",
    ]


def test_a_record_of_another_form_holds_up_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What someone wrote into a log is shown as it is, and what follows it, too."""
    log = tmp_path / "audit.jsonl"
    log.write_text('{"event":["x"]}\n{"hooks":null}\n{"hooks":[5]}\n{"event":"Stop"}\n')

    assert len(shown(capsys, log, "--json")) == 4
    assert len(shown(capsys, log, "--json", "--event", "Stop")) == 1


@pytest.mark.parametrize(
    "flags, hours",
    [
        (["--decision", "deny"], [10]),
        (["--decision", "pass", "--tool", "Bash"], [9]),
        (["--event", "PreToolUse", "--session", "two"], [10, 11]),
        (["--hook", "no-sudo"], [9, 10]),
        (["--since", "2026-01-31T10:00"], [10, 11, 12]),
        (["--since", "2026-01-31T12:00+02:00", "--until", "2026-01-31T11:30Z"], [10, 11]),
        (["--until", "2026-01-30"], [8]),
        (["--until", "2026-01-31", "--since", "2026-01-31"], [9, 10, 11, 12]),
    ],
)
def test_filters_pick_lines(log: Path, capsys: pytest.CaptureFixture[str], flags: list[str], hours: list[int]) -> None:
    """They can be combined; times may name a zone, and a day means the whole of it."""
    found = [line for line in shown(capsys, log, *flags) if not line.startswith("2026")]

    assert [int(line[:2]) for line in found] == hours


def test_nothing_found_is_said(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty answer is an answer."""
    assert shown(capsys, log, "--tool", "Nothing") == ["nothing to show"]
    assert shown(capsys, log, "--tool", "Nothing", "--json") == []


def test_json_gives_the_lines_as_they_are(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For `jq` and friends."""
    assert shown(capsys, log, "--json") == log.read_text().splitlines()


def test_rotated_files_are_shown_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The timeline begins with the oldest line there is."""
    file = AuditFile(tmp_path / "audit.jsonl", max_bytes=1)
    for number in range(12):
        file.append([{"event": "Stop", "number": number}])

    assert [json.loads(line)["number"] for line in shown(capsys, file.path, "--json")] == list(range(12))


def test_on_a_terminal_lines_fit_its_width(log: Path) -> None:
    """Eighty columns are enough: what does not fit is cut, colour is not counted."""
    (long,) = [{**json.loads(log.read_text().splitlines()[2]), "reasons": ["why " * 100]}]
    AuditFile(log).append([long])
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environ = {**{k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}, "TERM": "xterm"}
    process = subprocess.Popen([*RUN, "show", str(log)], stdout=theirs, env=environ)
    os.close(theirs)
    text = b""
    while True:
        try:
            text += os.read(ours, 65536)
        except OSError:
            break
    os.close(ours)
    assert process.wait(30) == 0
    plain = [_without_colour(line) for line in text.decode().splitlines()]

    assert b"\x1b[31mDENY" in text
    assert max(map(len, plain)) == 80
    assert plain[-1].startswith("10:00:00 DENY       PreToolUse Bash sudo rm -rf / by no-sudo: why why")
    assert plain[-1].endswith("…")


def _without_colour(line: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", line)


def test_following_shows_every_line_once_through_rotations(tmp_path: Path) -> None:
    """Also when the file is put aside several times between two looks, and while a line is half written."""
    path = tmp_path / "audit.jsonl"
    file = AuditFile(path, max_bytes=400)
    file.append([{"event": "Stop", "number": 0}])
    process = subprocess.Popen([*RUN, "show", str(path), "--follow", "--json"], stdout=subprocess.PIPE)
    assert process.stdout is not None
    seen = [json.loads(process.stdout.readline())["number"]]

    def append() -> None:
        for number in range(1, 200):
            file.append([{"event": "Stop", "number": number}])

    writer = threading.Thread(target=append)
    writer.start()
    try:
        while seen[-1] < 199:
            seen.append(json.loads(process.stdout.readline())["number"])
    finally:
        writer.join()
        process.kill()
        process.wait()
        process.stdout.close()

    assert seen == list(range(200))
    assert len(file.rotated()) > 20


def test_a_line_that_is_still_being_written_is_shown_when_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a line is no line."""
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b'{"number": 1}\n{"numb')
    rest = [b'er": 2}', b"\n"]

    def wait(seconds: float) -> None:
        with path.open("ab") as file:
            file.write(rest.pop(0))

    monkeypatch.setattr("time.sleep", wait)
    found = audit.entries([str(path)], follow=True)

    assert [next(found)[1], next(found)[1]] == [{"number": 1}, {"number": 2}]


def _number(found: tuple[bytes, Any]) -> int:
    return int(found[1]["number"])


def test_a_file_that_is_put_aside_while_it_is_opened_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between looking which file comes next and opening it, a writer may begin yet another one."""
    file = AuditFile(tmp_path / "audit.jsonl", max_bytes=1)
    file.append([{"number": 0}])
    found = audit.entries([str(file.path)], follow=True)
    seen = [_number(next(found))]
    file.append([{"number": 1}])
    rotated, late = AuditFile.rotated, [2]

    def overtaken(log: AuditFile) -> list[Path]:
        older = rotated(log)
        if late:
            file.append([{"number": late.pop()}])
        return older

    monkeypatch.setattr(AuditFile, "rotated", overtaken)
    monkeypatch.setattr("time.sleep", lambda seconds: None)

    assert [*seen, _number(next(found)), _number(next(found))] == [0, 1, 2]


# -- verify --------------------------------------------------------------------------------------------------------


def test_a_whole_log_is_said_to_be_whole(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0."""
    assert main(["audit", "verify", str(log)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{log} is whole: nothing was changed, removed or re-ordered",
        "it has no key: anyone who can write to its folder could have rewritten it",
    ]


def test_a_changed_log_is_said_to_be_changed_and_where(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1, file and line."""
    log.write_bytes(log.read_bytes().replace(b"sudo rm", b"sudo ls"))

    assert main(["audit", "verify", str(log)]) == 1
    assert capsys.readouterr().out == f"{log}:3: the line was changed: record 3 does not match its hash\n"
    assert main(["audit", "verify", str(log), "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "whole": False,
        "breaks": [{"file": str(log), "line": 3, "problem": "the line was changed: record 3 does not match its hash"}],
    }


@pytest.mark.parametrize(
    "argv, said",
    [
        (["verify", "nothing.jsonl"], "nothing.jsonl: no such file"),
        (["show", "nothing.jsonl"], "nothing.jsonl: no such file"),
        (["verify", "log.jsonl", "--key-file", "nokey"], "nokey: No such file or directory; name the file"),
    ],
)
def test_what_cannot_be_read_is_said_with_another_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], argv: list[str], said: str
) -> None:
    """Exit code 2: a typing mistake must not pass for a forgery."""
    monkeypatch.chdir(tmp_path)

    assert main(["audit", *argv]) == 2
    assert said in capsys.readouterr().err


def test_a_log_with_a_key_needs_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The key file may end with a newline."""
    AuditFile(tmp_path / "log.jsonl", key=b"secret").append([{"event": "Stop"}])
    (tmp_path / "key").write_text("secret\n")

    assert main(["audit", "verify", str(tmp_path / "log.jsonl"), "--key-file", str(tmp_path / "key")]) == 0
    assert main(["audit", "verify", str(tmp_path / "log.jsonl")]) == 1
    assert "written with a key; give it" in capsys.readouterr().out


def test_a_folder_of_logs_is_verified_log_by_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One that was changed is named, and is exit code 1; an anchor is for one log."""
    for name in ("a", "b"):
        AuditFile(tmp_path / f"{name}.jsonl").append([{"event": "Stop", "decision": "pass"}, {"event": "Stop"}])
    assert main(["audit", "verify", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("is whole") == 2

    file = tmp_path / "b.jsonl"
    file.write_text(file.read_text().replace("pass", "deny"))
    assert main(["audit", "verify", str(tmp_path)]) == 1
    assert main(["audit", "verify", str(tmp_path), "--anchor", "x"]) == 2
    assert "are for one log" in capsys.readouterr().err


def test_a_report_is_about_a_stretch_of_time(tmp_path: Path) -> None:
    """Its events and sessions."""
    said = {"event": "PreToolUse", "decision": "pass", "tool": "Bash", "hooks": []}
    rows = [{**said, "run": f"session-{day}", "input": {"command": f"echo {day}"}, "time": f"2026-03-0{day}T09:00:00Z"}
            for day in (1, 2, 3)]  # fmt: skip
    AuditFile(tmp_path / "a.jsonl").append(rows)
    page = tmp_path / "r.html"

    words = ["--since", "2026-03-02", "--until", "2026-03-02", "-o", str(page), "--project", str(tmp_path)]
    assert main(["audit", "report", str(tmp_path / "a.jsonl"), *words]) == 0
    assert [name for name in ("echo 1", "echo 2", "echo 3", "session-1") if name in page.read_text()] == ["echo 2"]
