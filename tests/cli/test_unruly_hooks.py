"""Hooks that print, leave or crash: the answer stays whole, and an exit is never a PASS."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
from typing import Any

import pytest

from tests.cli.place import HOOKLINE, Place, command

BASH = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t"}
OTHER = {**BASH, "tool_name": "Read"}
FIRE = ("fire", "PreToolUse", "--tool", "Bash", "--hooks", "hooks.py")

HOOKS = """
import asyncio, os, signal, subprocess, sys, threading, ctypes, atexit
from hookline import Hooks, deny
from hookline.events import PreToolUse, PostToolUse

hooks = Hooks()

@hooks.on(PreToolUse, PostToolUse, match="Bash", priority=10)
{kind}def unruly(event):
    {body}

@hooks.on(PreToolUse)
async def gate(event):
    return deny("never")
"""

NOISE = {
    "print": 'print("{}")',
    "stdout": 'sys.stdout.write("noise\\n"); sys.stdout.flush()',
    "buffer": 'sys.stdout.buffer.write(b"noise\\n"); sys.stdout.buffer.flush()',
    "original": 'print("noise", file=sys.__stdout__, flush=True)',
    "descriptor": 'os.write(1, b"noise\\n")',
    "program": 'subprocess.run("echo noise", shell=True)',
    "C": 'ctypes.CDLL(None).puts(b"noise"); ctypes.CDLL(None).fflush(None)',
    "umlaut": 'print("\\u00e4\\ud800", flush=True)',
    "no newline": 'print("{", end="")',
    "atexit": 'atexit.register(lambda: print("noise", flush=True))',
}


def hooks(place: Place, body: str, kind: str = "async ") -> None:
    place.write("hooks.py", HOOKS.replace("{kind}", kind).replace("{body}", body))


def answers(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
def test_what_a_hook_prints_is_not_part_of_the_answer(noise: str, place: Place) -> None:
    """Under `pipe` and `fire --json`, however it is written to stdout."""
    hooks(place, noise)
    piped = place.run("pipe", "--hooks", "hooks.py", stdin=f"{json.dumps(BASH)}\n{json.dumps(BASH)}\n")
    fired = place.run(*FIRE, "--json")

    first, second = answers(piped.stdout)
    assert first == second
    assert first["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert piped.returncode == 0, piped.stderr
    [verdict] = answers(fired.stdout)
    assert (verdict["decision"], verdict["decided_by"], fired.returncode) == ("deny", "gate", 2)


EXITS = {
    "os._exit(0)": "os._exit(0)",
    "os._exit(1)": "os._exit(1)",
    "os._exit(2)": "os._exit(2)",
    "flushed os._exit(0)": 'print("{}", flush=True); os._exit(0)',
    "in a thread": "threading.Thread(target=os._exit, args=(0,)).start(); threading.Event().wait()",
    "killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "segfault": "ctypes.string_at(0)",
    "abort": "os.abort()",
    "forked": "os.fork() and os._exit(0); threading.Event().wait(4); os._exit(0)",
}


@pytest.mark.parametrize("kind", ["async ", ""], ids=["async", "def"])
@pytest.mark.parametrize("leave", EXITS.values(), ids=EXITS)
def test_a_hook_that_ends_the_process_blocks_the_call_and_only_that_call(leave: str, kind: str, place: Place) -> None:
    """One answer per line, a block for the line whose hook left, and the next line has a process of its own."""
    hooks(place, leave, kind)
    lines = "".join(json.dumps(one) + "\n" for one in (OTHER, BASH, OTHER, BASH))
    piped = place.run("pipe", "--hooks", "hooks.py", stdin=lines)

    said = answers(piped.stdout)
    assert [("error" in one) for one in said] == [False, True, False, True]
    assert said[0]["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert said[1]["decision"] == "block"
    assert said[1]["reason"]
    assert piped.returncode == 1


@pytest.mark.parametrize("leave", EXITS.values(), ids=EXITS)
def test_fire_denies_when_a_hook_ends_the_process(leave: str, place: Place) -> None:
    """Exit code 2 and a verdict, as for any other hook that fails on a gate."""
    hooks(place, leave)
    fired = place.run(*FIRE, "--json")
    [verdict] = answers(fired.stdout)

    assert (verdict["decision"], verdict["blocked"], fired.returncode) == ("deny", True, 2)
    assert verdict["outcomes"][0]["status"] == "failed"


def test_fire_denies_when_a_hook_terminates_the_process_and_waits(place: Place) -> None:
    """The work is cancelled before there is a verdict, and 143 would not be a no."""
    hooks(place, "os.kill(os.getpid(), signal.SIGTERM); threading.Event().wait(600)", kind="")
    fired = place.run(*FIRE, "--json")
    [verdict] = answers(fired.stdout)

    assert (verdict["decision"], verdict["blocked"], fired.returncode) == ("deny", True, 2)


HELD = {
    "a loop that never gives way": "while True: threading.Event().wait(0.01)",  # as `pass` does, on an idle core
    "a call that holds the interpreter": "while True: ctypes.PyDLL(None).sleep(600)",
    "a stopped process": "os.kill(os.getpid(), signal.SIGSTOP)",
}


@pytest.mark.parametrize("held", HELD.values(), ids=HELD)
def test_a_hook_that_holds_the_whole_process_is_ended_and_denied(held: str, place: Place) -> None:
    """No timer in that process can end it, so the process that watches does; the next line is answered."""
    place.write("hooks.py", HOOKS.replace("priority=10", "priority=10, timeout=0.2").replace("{kind}", "async ")
                .replace("{body}", held))  # fmt: skip
    piped = place.run("pipe", "--hooks", "hooks.py", stdin=f"{json.dumps(BASH)}\n{json.dumps(OTHER)}\n")
    fired = place.run(*FIRE, "--json")

    first, second = answers(piped.stdout)
    assert (first["decision"], first["reason"]) == (
        "block", "a hook held the process that runs the hooks past its time limit"
    )  # fmt: skip
    assert second["hookSpecificOutput"]["permissionDecisionReason"] == "never"
    [verdict] = answers(fired.stdout)
    assert (verdict["decision"], fired.returncode) == ("deny", 2)


BROKEN_STREAMS = {
    "no stdout and no stderr": "sys.stdout = sys.stderr = None",
    "a stdout that cannot be flushed": "sys.stdout = object()",
    "closed descriptors": "os.closerange(0, 3)",
    "TERM": "os.kill(os.getpid(), signal.SIGTERM)",
    "a fork that goes on": "os.fork()",
    "a loop that is stopped": "import asyncio; asyncio.get_running_loop().stop()",
}


@pytest.mark.parametrize("kind", ["async ", ""], ids=["async", "def"])
@pytest.mark.parametrize("breakage", BROKEN_STREAMS.values(), ids=BROKEN_STREAMS)
def test_every_line_is_answered_once_whatever_a_hook_breaks(breakage: str, kind: str, place: Place) -> None:
    """One no for each line, and one verdict of `fire`."""
    hooks(place, breakage, kind)
    piped = place.run("pipe", "--hooks", "hooks.py", stdin=f"{json.dumps(BASH)}\n" * 3)
    fired = place.run(*FIRE, "--json")

    said = answers(piped.stdout)
    assert len(said) == 3
    assert all("block" in one.values() or "deny" in one["hookSpecificOutput"].values() for one in said)
    assert "Bad file descriptor" not in piped.stderr
    [verdict] = answers(fired.stdout)
    assert (verdict["decision"], fired.returncode) == ("deny", 2)


LOCKED = """hooks.observe(lambda notice: None); lock = hooks.engine.observers._wake
    taken, forked = threading.Event(), threading.Event()
    hold = lambda: (lock.acquire(), taken.set(), forked.wait(60), lock.release())
    threading.Thread(target=hold).start(); taken.wait(60); os.fork(); forked.set()"""
TASK = """async def fork(): os.fork()
    await loop.create_task(fork())"""
GOING_ON = {
    "returns": "os.fork()",
    "waits": "os.fork() or await loop.create_future()",
    "in a task": TASK,
    "while a thread holds a lock": LOCKED,
}


@pytest.mark.parametrize("goes_on", GOING_ON.values(), ids=GOING_ON)
def test_a_fork_that_a_hook_lets_go_on_ends(goes_on: str, place: Place) -> None:
    """It comes back to an event loop that nothing wakes any more; nothing is left of it for all that."""
    fifo = place.project / "held"
    os.mkfifo(fifo)
    held = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    hooks(place, f"os.open({str(fifo)!r}, os.O_WRONLY); loop = asyncio.get_running_loop()\n    {goes_on}")
    piped = place.run("pipe", "--hooks", "hooks.py", stdin=f"{json.dumps(BASH)}\n" * 3)
    fired = place.run(*FIRE)

    assert (len(answers(piped.stdout)), fired.returncode) == (3, 2)
    assert select.select([held], [], [], 20)[0], "it holds its end of the pipe"
    os.close(held)


def test_exit_code_2_says_why_on_stderr(place: Place) -> None:
    """As a command hook's does; stderr is passed on all the same."""
    hooks(place, 'sys.stderr.write("not on a Friday\\n"); sys.stderr.flush(); os._exit(2)')
    piped = place.run("pipe", "--hooks", "hooks.py", stdin=json.dumps(BASH))
    fired = place.run(*FIRE)

    assert answers(piped.stdout)[0]["reason"] == "not on a Friday"
    assert "not on a Friday" in piped.stderr
    assert fired.stdout.splitlines()[0] == "PreToolUse(Bash) → DENY by a hook: not on a Friday"


def test_an_exit_where_nothing_can_be_prevented_is_an_error(place: Place) -> None:
    """There is no verdict, and no 0 either."""
    hooks(place, "os._exit(0)")
    fired = place.run("fire", "PostToolUse", "--tool", "Bash", "--hooks", "hooks.py")

    assert (fired.returncode, fired.stdout) == (1, "")
    assert fired.stderr == (
        "hookline fire: a hook ended the process that runs the hooks (exit code 0); there is no verdict\n"
    )


@pytest.mark.parametrize("leave", ["sys.exit()", "sys.exit(0)", "raise SystemExit", "os._exit(0)"])
def test_a_file_that_leaves_while_it_is_read_has_no_hooks(leave: str, place: Place) -> None:
    """Exit code 1 and every line refused, never 0 and silence."""
    place.write("hooks.py", f"import os, sys\n{leave}\n")
    piped = place.run("pipe", "--hooks", "hooks.py", stdin=json.dumps(BASH) + "\n")
    fired = place.run(*FIRE)

    assert all(one["decision"] == "block" for one in answers(piped.stdout))
    assert piped.returncode == 1
    assert fired.returncode in (1, 2)
    assert "PASS" not in fired.stdout


def test_a_hook_cannot_read_the_host_s_lines(place: Place) -> None:
    """Its stdin is empty; the lines that follow are answered."""
    hooks(place, "assert sys.stdin.readline() == ''")
    piped = place.run("pipe", "--hooks", "hooks.py", stdin=f"{json.dumps(BASH)}\n" * 3)

    assert [one["hookSpecificOutput"]["permissionDecisionReason"] for one in answers(piped.stdout)] == ["never"] * 3


def test_a_stop_before_a_tool_is_a_deny_too(place: Place) -> None:
    """Claude Code runs the tool after a mere `continue: false`."""
    hooks(place, 'from hookline import stop; return stop("enough")')
    [said] = answers(place.run("pipe", "--hooks", "hooks.py", stdin=json.dumps(BASH)).stdout)

    assert said["continue"] is False
    assert said["stopReason"] == "enough"
    assert said["hookSpecificOutput"]["permissionDecision"] == "deny"


@pytest.mark.parametrize("encoding", ["ascii", "cp1252:strict", "ascii:strict", "utf-8"])
def test_a_narrow_stdout_changes_no_verdict(encoding: str, place: Place) -> None:
    """What cannot be written there is written as an escape; JSON is UTF-8 anyway."""
    place.hooks("PreToolUse", command("echo 'niemals \u4f60 \U0001f600' >&2; exit 2", name="n\u4f60"))
    env = {"PYTHONIOENCODING": encoding, "LC_ALL": "C", "PYTHONUTF8": "0"}
    text = place.run("fire", "PreToolUse", "--tool", "Bash", "--trust", **env)
    data = place.run("fire", "PreToolUse", "--tool", "Bash", "--trust", "--json", **env)
    listed = place.run("list", "--trust", **env)
    piped = place.run("pipe", "--trust", stdin=json.dumps(BASH), **env)

    assert (text.returncode, data.returncode, listed.returncode, piped.returncode) == (2, 2, 0, 0)
    assert "Traceback" not in text.stderr + data.stderr + listed.stderr + piped.stderr
    assert "DENY" in text.stdout
    assert "\u4f60 \U0001f600" in json.loads(data.stdout)["reason"]
    assert "deny" in piped.stdout


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="nothing here tells when somebody else's child has ended")
def test_a_busy_hook_ends_with_the_process_that_was_killed(place: Place) -> None:
    """Whoever started `hookline` may kill it; nothing is left behind that computes for ever."""
    fifo = place.project / "pid"
    os.mkfifo(fifo)
    hooks(place, f'open({str(fifo)!r}, "w").write(str(os.getpid()))\n    while True: pass')
    argv = [*HOOKLINE, *FIRE]
    with subprocess.Popen(argv, cwd=place.project, env={**place.env, "HOOKLINE_SERVICE": "0"}) as running:
        busy = os.pidfd_open(int(fifo.read_text()))
        running.kill()

    assert select.select([busy], [], [], 60)[0], "it goes on"


def test_ctrl_c_and_term_reach_what_hooks_have_started(place: Place) -> None:
    """The process that answers is ended with the one that was started; so is a command it waits for."""
    import time

    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        pid_file = place.project / "pid"
        place.hooks("PreToolUse", command(f"echo $$ > {pid_file}; exec sleep 600"))
        running = subprocess.Popen(
            [*HOOKLINE, "fire", "PreToolUse", "--tool", "Bash", "--trust"], cwd=place.project, env=place.env,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        deadline = time.monotonic() + 60
        while not (pid_file.exists() and pid_file.read_text().strip()):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        running.send_signal(number)
        _, stderr = running.communicate(timeout=60)

        assert running.returncode == code, stderr
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid_file.read_text()), 0)
        pid_file.unlink()
