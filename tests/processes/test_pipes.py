"""Programs are run to their end, bounded, and nothing of them is left behind."""

# ruff: noqa: PTH208 - a test may block its own loop for a moment

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hookline.processes import pipes, tree
from hookline.processes.pipes import ProcessResult, start_process
from hookline.processes.spawn import ProcessSpec
from hookline.processes.tree import MARKER, take_census
from tests.processes.running import run_process
from tests.resources import children, command_lines, descriptors

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def sh(command: str, *, stdin: bytes = b"", cwd: Path | None = None, **env: str) -> ProcessSpec:
    return ProcessSpec(
        argv=("/bin/sh", "-c", command),
        stdin=stdin,
        cwd=None if cwd is None else str(cwd),
        env={**os.environ, **env} if env else None,
    )


async def until(condition: Callable[[], object], seconds: float = 60) -> None:
    """Wait for something to become true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never became true"
        await asyncio.sleep(0.005)


def alive(word: str) -> list[int]:
    """The processes whose environment has `TEST_WORD=word`: also those that left the session and their parents."""
    found = []
    for name in os.listdir("/proc"):
        try:
            environ = Path(f"/proc/{name}/environ").read_bytes() if name.isdigit() else b""
            state = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[0] if environ else "Z"
        except OSError:
            continue
        if f"TEST_WORD={word}".encode() in environ.split(b"\0") and state != "Z":
            found.append(int(name))
    return found


async def test_output_and_exit_code_come_back() -> None:
    """What a program prints on either stream, and how it ends, is known."""
    finished = await run_process(sh("cat; echo err >&2; exit 3", stdin=b"in"))

    assert (finished.exit_code, finished.signal, finished.stdout, finished.stderr) == (3, None, b"in", b"err\n")
    assert not finished.truncated


async def test_a_death_by_signal_is_told_apart_from_an_exit_code() -> None:
    """A killed program has a signal and no exit code."""
    finished = await run_process(sh("kill -KILL $$"))

    assert (finished.exit_code, finished.signal) == (None, 9)


async def test_a_program_that_is_not_there_raises() -> None:
    """What cannot be started is an `OSError`, and leaves no descriptor open."""
    before = descriptors()

    with pytest.raises(FileNotFoundError):
        await run_process(ProcessSpec(argv=("/no/such/program",)))

    assert descriptors() <= before


async def test_a_program_that_never_reads_takes_large_input() -> None:
    """300 kB that nobody reads hold nothing up (FACTS §6)."""
    finished = await run_process(sh("echo done", stdin=b"x" * 300_000), timeout=20)

    assert (finished.stdout, finished.truncated) == (b"done\n", False)


async def test_large_input_arrives_whole() -> None:
    """Input larger than a pipe is written as fast as it is read."""
    finished = await run_process(sh("wc -c", stdin=b"x" * 3_000_000))

    assert int(finished.stdout) == 3_000_000


async def test_a_program_that_prints_forever_is_ended() -> None:
    """Output is bounded: what is over the limit is not kept, and the program does not go on."""
    finished = await run_process(sh("yes", TEST_WORD="overflow"), limit=100_000, timeout=30)

    assert finished.truncated
    assert len(finished.stdout) == 100_000


async def test_a_program_that_is_stopped_ends() -> None:
    """TERM is enough for most, and the result says that we did it."""
    finished = await run_process(sh("echo early; sleep 60"), timeout=0.2)

    assert (finished.truncated, finished.signal) == (True, 15)


async def test_a_program_that_ignores_term_is_killed() -> None:
    """TERM first, then KILL."""
    process = await start_process(sh("trap '' TERM; echo ready; while :; do sleep 0.05; done"))
    await until(lambda: process.printed.kept[process.child.stdout])  # until then TERM would end it
    process.stop()
    finished = await process.finish()

    assert finished is not None
    assert (finished.truncated, finished.signal) == (True, 9)


async def test_a_program_may_clean_up_when_it_is_told_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """TERM leaves it a moment."""
    monkeypatch.setattr(tree, "TERM_GRACE", 60.0)  # a moment of a busy machine may be long
    process = await start_process(sh("trap 'exit 7' TERM; echo ready; while :; do sleep 0.02; done"))
    await until(lambda: process.printed.kept[process.child.stdout])
    process.stop()
    finished = await process.finish()

    assert finished is not None
    assert finished.exit_code == 7


@linux
@pytest.mark.parametrize(
    "command",
    [
        "sleep 60 & sleep 60",
        "setsid sleep 60 & sleep 60",
        "(setsid sh -c 'sleep 60 & sleep 60' &) ; sleep 60",
        "trap '' TERM; sh -c \"trap '' TERM; while :; do sleep 0.05; done\"",
        "exec >&- 2>&-; sleep 60",
    ],
    ids=["child", "own session", "double fork", "ignores TERM", "closes stdout"],
)
async def test_nothing_is_left_of_a_program_that_is_stopped(command: str) -> None:
    """Children, daemons in sessions of their own and the deaf are all gone when the result is there."""
    word = f"timeout-{os.getpid()}-{id(command)}"

    finished = await run_process(sh(command, TEST_WORD=word), timeout=0.3)

    assert finished.truncated
    assert alive(word) == []


@linux
async def test_nothing_is_left_after_a_cancellation() -> None:
    """Cancelling the task that waits ends what it waits for, before the cancellation goes on."""
    word = f"cancel-{os.getpid()}"
    task = asyncio.create_task(run_process(sh("setsid sleep 60 & sleep 60", TEST_WORD=word)))
    await until(lambda: len(alive(word)) >= 2)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert alive(word) == []


@linux
async def test_a_daemon_that_holds_the_pipe_delays_the_result_by_a_second() -> None:
    """FACTS §6 (`run_grandchild`): the result does not wait for the daemon; one that holds the pipe is a left-over."""
    word = f"holder-{os.getpid()}"
    start = time.monotonic()

    finished = await run_process(sh("(setsid sleep 60 &); echo said", TEST_WORD=word))

    assert (finished.stdout, finished.exit_code, finished.held) == (b"said\n", 0, True)
    assert time.monotonic() - start < 30
    assert alive(word) == []


@linux
async def test_a_daemon_that_let_go_of_the_pipes_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook may start a daemon on purpose, as daemons are started."""
    monkeypatch.setattr(pipes, "HELD_PIPE", 60.0)  # it lets go after its shell has ended, when it gets its turn
    word = f"daemon-{os.getpid()}"

    finished = await run_process(sh("setsid sleep 60 </dev/null >/dev/null 2>&1 &", TEST_WORD=word))

    left: list[int] = []
    while not left:  # it cannot be seen while it becomes another program
        await until(lambda: alive(word))
        left = alive(word)
    assert (finished.exit_code, finished.held, len(left)) == (0, False, 1)
    os.kill(left[0], 9)


async def test_output_is_told_while_it_is_printed() -> None:
    """Whoever watches hears each piece as it comes, before the program ends."""
    heard: list[tuple[str, bytes]] = []
    command = "echo one; read line; echo $line >&2"
    process = await start_process(sh(command), on_output=lambda *said: heard.append(said), keep_stdin=True)
    await until(lambda: heard == [("stdout", b"one\n")])

    process.stdin.write(b"two\n")
    await process.finish()

    assert heard[1:] == [("stderr", b"two\n")]


async def test_whoever_waits_can_go_on_before_the_end() -> None:
    """`detach` splits the wait in two; nothing printed in between is lost."""
    process = await start_process(sh("echo one; read line; echo two"), keep_stdin=True)
    waiting = asyncio.create_task(process.finish())
    await until(lambda: process.printed.kept[process.child.stdout])

    process.detach()
    first = await waiting
    process.stdin.write(b"\n")
    second = await process.finish()

    assert first is None
    assert second is not None
    assert second.stdout == b"one\ntwo\n"


async def test_the_working_directory_and_environment_are_the_programs(tmp_path: Path) -> None:
    """A program runs where and with what it is told, and carries a marker by which it is found."""
    finished = await run_process(sh("pwd; echo $GIVEN; echo $HOOKLINE_HOOK_ID", cwd=tmp_path, GIVEN="x"))

    where, given, marker = finished.stdout.decode().split()
    assert (where, given) == (str(tmp_path), "x")
    assert len(marker.split("/")[-1]) == 15


@linux
async def test_a_hook_inside_a_hook_is_found_by_both_markers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ending the outer hook ends what the inner one started."""
    monkeypatch.setenv(MARKER, "0123456789abcdef")
    process = await start_process(sh("echo up; sleep 60; true"))
    await until(lambda: process.printed.kept[process.child.stdout])  # a program that only begins has no environment yet

    seen = [one for one in take_census() if one.pid == process.child.pid]
    task = asyncio.create_task(process.finish())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait((task,))

    assert seen[0].markers[0] == "0123456789abcdef"
    assert seen[0].markers[2:] == ("sh",)  # its name, which is a marker for forks of warm interpreters


@linux
async def test_many_runs_leave_no_descriptor_and_no_zombie() -> None:
    """Every pipe is closed and every process reaped, however it ended."""
    await run_process(sh("true"))
    before, children_before = descriptors(), children()
    commands = ["true", "exit 2", "kill -9 $$", "cat", "echo x; exec 1>&-", "exec 0<&-; echo y", "sleep 60"]

    async def one(number: int) -> ProcessResult:
        command = commands[number % len(commands)]
        return await run_process(sh(command, stdin=b"x" * 100_000), timeout=0.3 if command == "sleep 60" else 30)

    finished = await asyncio.gather(*(one(number) for number in range(70)))

    assert sum(one.truncated for one in finished) == 10
    assert descriptors() <= before
    assert children() <= children_before  # those that are dead and not reaped included


@linux
async def test_whoever_cleared_its_environment_is_found_by_its_parents() -> None:
    """`env -i setsid`: no marker, another session, and still a descendant of what the hook started."""
    word = f"31{os.getpid()}7"

    def sleeping() -> list[str]:
        return [str(line) for line in command_lines() if line[:2] == ["sleep", word]]

    process = await start_process(sh(f"env -i setsid sleep {word}; true"))
    await until(sleeping)
    process.stop()
    finished = await process.finish()

    assert finished is not None
    assert finished.truncated
    assert sleeping() == []


@linux
def test_the_dead_that_nobody_reaped_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PID 1 does not reap, as in many containers: a group of zombies is a group that has ended."""
    monkeypatch.setattr(tree, "TERM_GRACE", 600.0)
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        os._exit(0)
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # it is dead now, and left as it lies
        os.killpg(pid, 0)  # the group can still be signalled, so that alone says nothing

        async def end() -> None:
            gone: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
            gone.set_result(0)
            async with asyncio.timeout(60):
                await tree.Group(pid, tree.new_marker()).end(gone)

        asyncio.run(end())
    finally:
        os.waitpid(pid, 0)
