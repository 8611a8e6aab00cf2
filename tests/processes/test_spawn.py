"""Programs are started the quick way, and the careful way where that one cannot be taken; both do the same."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from hookline import Command, Hooks
from hookline.events import PreToolUse
from hookline.processes import spawn
from hookline.processes.loop import when_gone
from hookline.processes.spawn import ProcessSpec
from hookline.processes.tree import MARKER
from tests.processes.running import run_process
from tests.resources import children, descriptors


def refusing(*_: object) -> int:
    raise TypeError("fork_exec() takes other arguments in this Python")


@pytest.fixture(params=["quickly", "carefully", "in a Python we do not know"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each way of starting a program."""
    other: dict[str, Callable[..., int] | None] = {"carefully": None, "in a Python we do not know": refusing}
    if request.param in other:
        monkeypatch.setattr(spawn, "fork_exec", other[request.param])
    return str(request.param)


async def test_both_ways_start_the_same(way: str, tmp_path: Path) -> None:
    """Folder, environment, arguments, input, group and signals are the same whoever starts it."""
    script = 'pwd; echo "$A|$1|$0"; cat; ps -o pgid= -p $$ | tr -d " "; echo $$; trap'
    env = {"A": "é\udcff=", "PATH": os.environ["PATH"]}
    spec = ProcessSpec(argv=("/bin/sh", "-c", script, "zero", "one two"), cwd=str(tmp_path), env=env, stdin=b"in\n")

    finished = await run_process(spec)

    folder, words, said, group, pid = finished.stdout.splitlines()
    assert (os.fsdecode(folder), os.fsdecode(words), said) == (str(tmp_path), "é\udcff=|one two|zero", b"in")
    assert group == pid
    assert (finished.exit_code, finished.stderr) == (0, b"")


@pytest.mark.parametrize(
    "argv, cwd, problem",
    [
        (("/no/such/program",), None, FileNotFoundError),
        (("no-such-program-anywhere",), None, FileNotFoundError),
        (("/",), None, PermissionError),
        (("/bin/sh", "-c", ":"), "/no/such/folder", FileNotFoundError),
        (("/bin/sh", "-c", "a\0b"), None, ValueError),
    ],
)
async def test_what_cannot_begin_says_why_and_leaves_nothing(
    way: str, argv: tuple[str, ...], cwd: str | None, problem: type[Exception]
) -> None:
    """The error is the standard library's; no process and no descriptor is left."""
    open_before, children_before = descriptors(), children()

    with pytest.raises(problem):
        await run_process(ProcessSpec(argv=argv, cwd=cwd))

    assert descriptors() <= open_before
    assert children() <= children_before


async def test_a_name_of_a_variable_that_cannot_be_is_refused(way: str) -> None:
    """`A=B` as a name would be another variable's value."""
    with pytest.raises(ValueError, match="environment variable name"):
        await run_process(ProcessSpec(argv=("/bin/sh", "-c", ":"), env={"A=B": "c"}))


async def test_a_program_named_without_its_folder_is_looked_for(way: str) -> None:
    """As a shell would, on PATH."""
    finished = await run_process(ProcessSpec(argv=("echo", "found")))

    assert finished.stdout == b"found\n"


async def test_a_child_whose_end_somebody_else_was_told_has_no_code() -> None:
    """A host that waits for any child takes our news away; that is no success."""
    spec = ProcessSpec(argv=("/bin/sh", "-c", "read line; exec >&- 2>&-; exit 2"), stdin=b"go\n")
    child = await spawn.spawn(spec)
    os.write(child.stdin, spec.stdin)
    os.waitpid(child.pid, 0)  # noqa: ASYNC222 - the host

    assert child.look is not None
    child.look()

    assert await asyncio.wait_for(child.exit, 10) is None
    for fd in (child.stdin, child.stdout, child.stderr):
        os.close(fd)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it is always so")
async def test_without_pidfd_a_thread_waits(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An old kernel, or another system."""

    def missing(pid: int) -> int:
        raise OSError("no pidfd here")

    monkeypatch.setattr(os, "pidfd_open", missing)
    slow = ProcessSpec(argv=("/bin/sh", "-c", "exec >&- 2>&-; sleep 0.2; exit 3"))

    finished = await run_process(slow)

    assert finished.exit_code == 3


async def test_an_environment_is_marked_each_time() -> None:
    """A marker it came with does not count twice."""
    env = MappingProxyType({"PATH": os.environ["PATH"], MARKER: "stale"})
    spec = ProcessSpec(argv=("/bin/sh", "-c", f"echo ${MARKER}; env | grep -c ^{MARKER}="), env=env)

    first, second = [(await run_process(spec)).stdout.split() for _ in range(2)]

    assert first[0] != second[0] != b"stale"
    assert first[1] == second[1] == b"1"


async def test_an_environment_that_was_changed_in_place_is_not_taken_for_the_one_before() -> None:
    """The environment that was encoded last is kept by what was in it, not by which object it was."""
    env = {"PATH": os.environ["PATH"], "COLOUR": "red"}
    spec = ProcessSpec(argv=("/bin/sh", "-c", "echo $COLOUR"), env=env)

    red = (await run_process(spec)).stdout
    env["COLOUR"] = "blue"
    blue = (await run_process(spec)).stdout

    assert (red, blue) == (b"red\n", b"blue\n")


async def test_a_changed_environment_is_seen_by_the_next_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a hook's environment is made of is looked at every time, though it is put together only when it changed."""
    async with Hooks() as hooks:
        hooks.add(PreToolUse, Command(command='echo "$COLOUR $CLAUDE_CODE_SESSION_ID" >&2; exit 2'))

        async def said(**fields: Any) -> str:
            return (await hooks.fire(PreToolUse(tool_name="Bash", **fields))).outcomes[0].stderr

        monkeypatch.setenv("COLOUR", "red")
        red = await said(session_id="one")
        monkeypatch.setenv("COLOUR", "blue")
        blue = await said(session_id="one")
        other = await said(session_id="two")

    assert (red, blue, other) == ("red one\n", "blue one\n", "blue two\n")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&- 2>&-"])
async def test_a_host_without_standard_streams_can_start_programs(closed: str, tmp_path: Path) -> None:
    """A service may be started with some of them closed: pipes have their numbers then."""
    script = tmp_path / "host.py"
    script.write_text(
        "import asyncio, sys\n"
        "from hookline.processes.pipes import start_process\n"
        "from hookline.processes.spawn import ProcessSpec\n"
        "spec = ProcessSpec(argv=('/bin/sh', '-c', 'cat; echo err >&2; exit 3'), stdin=b'in')\n"
        "async def run(): return await (await start_process(spec)).finish()\n"
        "done = asyncio.run(run())\n"
        "open(sys.argv[1], 'w').write(repr((done.exit_code, done.stdout, done.stderr)))\n"
    )
    said = tmp_path / "said"

    await run_process(ProcessSpec(argv=("/bin/sh", "-c", f"exec {sys.executable} {script} {said} {closed}")))

    assert said.read_text() == repr((3, b"in", b"err\n"))


@pytest.mark.parametrize("gone", [True, False], ids=["gone already", "still there"])
async def test_the_end_of_a_process_is_told_once(gone: bool) -> None:
    """Whoever waits for a process that has gone is told at once, for any other when it goes."""
    process = await asyncio.create_subprocess_exec("cat", stdin=asyncio.subprocess.PIPE)
    loop, told, over = asyncio.get_running_loop(), list[str](), asyncio.Event()
    assert process.stdin is not None

    def tell() -> None:
        told.append("gone")
        over.set()

    if gone:
        process.stdin.close()
        await process.wait()

    when_gone(process.pid, loop, tell)
    before = list(told)
    process.stdin.close()
    await asyncio.wait_for(over.wait(), 30)
    await process.wait()

    assert (before, told) == (["gone"] if gone else [], ["gone"])
