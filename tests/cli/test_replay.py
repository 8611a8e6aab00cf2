"""`hookline replay`: what is printed, and with which exit code it ends."""

import json
import os
import pty
import signal
import subprocess
import sys
import textwrap
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hookline.cli.main import main

HOOKS = """
from hookline import Hooks, ask, deny

hooks = Hooks()


@hooks.on("PreToolUse", match="Bash", name="guard")
async def guard(event):
    word = event.tool_input["command"].split()[0]
    return {"rm": deny("no deleting"), "curl": ask("sure?")}.get(word)
"""


def entry(command: str, was: str) -> str:
    said = {"event": "PreToolUse", "decision": was, "blocked": was == "deny", "tool": "Bash"}
    return json.dumps({**said, "input": {"command": command}}) + "\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("hooks.py").write_text(HOOKS)
    rows = [("ls", "pass"), ("rm x", "allow"), ("ls \x1b[2J", "deny"), ("curl", "deny")]
    Path("audit.jsonl").write_text("".join(entry(*row) for row in rows))
    return tmp_path


def replayed(*argv: str) -> int:
    return main(["replay", *argv, "--hooks", "hooks.py", "--jobs", "1"])


def test_flips_are_printed_the_loosened_first(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each with its place, and a summary; what was recorded cannot steer the terminal."""
    assert replayed("audit.jsonl") == 0
    assert capsys.readouterr().out.splitlines() == [
        "DENY → ALLOW  Bash ls \\x1b[2J  audit.jsonl:3",
        "DENY → ASK  Bash curl  guard: sure?  audit.jsonl:4",
        "ALLOW → DENY  Bash rm x  guard: no deleting  audit.jsonl:2",
        "4 calls, 3 would be decided differently: DENY → ASK 1, DENY → ALLOW 1, ALLOW → DENY 1",
    ]


def test_fail_on_flip_is_for_ci(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1 if anything would be decided differently, 0 if not."""
    Path("same.jsonl").write_text(entry("ls", "pass") + entry("rm", "deny"))

    assert replayed("audit.jsonl", "--fail-on-flip") == 1
    assert replayed("same.jsonl", "--fail-on-flip") == 0
    assert capsys.readouterr().out.endswith("2 calls, 0 would be decided differently\n")


def test_only_so_many_are_printed_and_the_rest_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--most` says how many."""
    assert replayed("audit.jsonl", "--most", "1") == 0
    out = capsys.readouterr().out.splitlines()

    assert out[1] == "… and 2 more; `--most` shows more"
    assert len(out) == 3


def test_a_week_is_replayed_and_what_flips_alike_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--since` and `--until` say when; a record without a time is not among them. Without a file, the logs here."""
    now, long_ago = datetime.now(UTC), datetime.now(UTC) - timedelta(days=30)
    rows = [("rm a", now), ("rm b", now), ("rm c", long_ago), ("ls", now)]
    lines = [json.dumps({**json.loads(entry(line, "allow")), "time": time.isoformat()}) for line, time in rows]
    Path("audit.jsonl").write_text("\n".join([*lines, entry("rm d", "allow")]))

    assert replayed("--since", "7d") == 0
    assert capsys.readouterr().out.splitlines() == [
        "ALLOW → DENY  Bash rm a and 1 like it  guard: no deleting  audit.jsonl:1",
        "3 calls, 2 would be decided differently: ALLOW → DENY 2",
    ]
    assert replayed("audit.jsonl", "--until", "7d") == 0
    assert capsys.readouterr().out.endswith("1 call, 1 would be decided differently: ALLOW → DENY 1\n")


def test_json_has_it_all(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For a program that reads it."""
    assert replayed("audit.jsonl", "--json") == 0
    said: dict[str, Any] = json.loads(capsys.readouterr().out)

    assert (said["calls"], said["flipped"], said["failures"]) == (4, 3, 0)
    assert {"was": "deny", "now": "allow", "calls": 1} in said["counts"]
    assert [flip["line"] for flip in said["flips"]] == [3, 4, 2]


@pytest.mark.parametrize(
    "argv, problem",
    [
        (["gone.jsonl"], "gone.jsonl: no such file or folder"),
        (["audit.jsonl", "--jobs", "0"], "--jobs: expected a number from 1 on, got `0`"),
        (["audit.jsonl", "--hooks", "none.py"], "none.py: no such file; name a Python file"),
    ],
)
def test_what_is_wrong_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], argv: list[str], problem: str
) -> None:
    """Exit code 1, and no stack trace."""
    assert main(["replay", *argv]) == 1
    assert problem in capsys.readouterr().err


def test_commands_of_a_settings_file_judge_the_recorded_calls(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They run for real, as they would for a call; the tools do not."""
    monkeypatch.setenv("HOME", str(folder / "home"))
    command = "grep -q 'rm x' && { echo 'not here' >&2; exit 2; } || exit 0"
    settings = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": command}]}]}}
    Path(".claude").mkdir()
    Path(".claude/settings.json").write_text(json.dumps(settings))
    Path("x").write_text("still here")

    assert main(["replay", "audit.jsonl", "--trust", "--jobs", "1", "--json"]) == 0
    flips = json.loads(capsys.readouterr().out)["flips"]
    assert [(flip["line"], flip["now"]) for flip in flips] == [(3, "allow"), (4, "allow"), (2, "deny")]
    assert "not here" in flips[-1]["reason"]
    assert Path("x").read_text() == "still here"


def test_on_a_terminal_a_bar_is_drawn_and_several_processes_work(folder: Path) -> None:
    """It is on stderr, and gone at the end; the answer is on stdout."""
    with Path("audit.jsonl").open("a") as file:
        file.writelines(entry(f"ls {number} {'x' * 50}", "pass") for number in range(60_000))
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "hookline.cli.main", "replay", "audit.jsonl", "--hooks", "hooks.py", "--jobs", "2"]
    environ = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environ)
    os.close(theirs)
    drawn = b""
    while True:
        try:
            drawn += os.read(ours, 65536)
        except OSError:
            break
    out, _ = process.communicate(timeout=60)
    os.close(ours)

    assert process.returncode == 0
    assert b"differently" in drawn
    assert "MB" in drawn.decode()
    assert out.decode().splitlines()[-1].startswith("60,004 calls, 3 would be decided differently")


@pytest.mark.parametrize("group, jobs", [(True, "2"), (False, "2"), (True, "1")])
def test_interrupting_ends_it_and_its_processes(folder: Path, group: bool, jobs: str) -> None:
    """Ctrl-C is exit code 130, and no process is left to work on."""
    slow = textwrap.dedent("""
    import os, time
    from hookline import Hooks
    hooks = Hooks()
    @hooks.on("PreToolUse")
    async def slow(event):
        with open("pids", "a") as file: file.write(f"{os.getpid()}\\n")
        time.sleep(0.05)
    """)
    Path("hooks.py").write_text(slow)
    for name in ("a", "b"):
        Path(f"{name}.jsonl").write_text("".join(entry(f"ls {n}", "pass") for n in range(500)))
    command = [sys.executable, "-m", "hookline.cli.main", "replay", "a.jsonl", "b.jsonl", "--hooks", "hooks.py"]
    process = subprocess.Popen(
        [*command, "--jobs", jobs], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    deadline = 300
    while len(set(_pids())) < int(jobs) and deadline:
        deadline -= 1
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.1)
    os.killpg(process.pid, signal.SIGINT) if group else process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)

    assert process.returncode == 130
    assert b"Traceback" not in said
    for pid in set(_pids()):
        assert not Path(f"/proc/{pid}").exists()


def _pids() -> list[str]:
    return Path("pids").read_text().split() if Path("pids").exists() else []


def test_a_folder_without_hooks_is_told_where_to_name_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A comparison with no hooks at all would call every denied call a flip."""
    assert main(["replay", "audit.jsonl", "--jobs", "1"]) == 1
    assert "--hooks FILE.py" in capsys.readouterr().err
