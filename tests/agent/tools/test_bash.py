"""Bash, with real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hookline.agent.tools import ToolEnv, ToolResult
from hookline.agent.tools.base import SessionState
from hookline.agent.tools.bash import OUTPUT_LIMIT, Bash, TaskStop
from hookline.agent.tools.shell import BoundedOutput, line_end
from hookline.events import CwdChanged
from hookline.guards.sandboxing import unavailable
from hookline.sandbox.warm import WarmLine
from tests.agent.processes import alive
from tests.agent.tools.hosting import hosted
from tests.resources import descriptors

needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors are counted in /proc")

PLAIN = {"stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False}


async def bash(env: ToolEnv, command: str, **more: object) -> ToolResult:
    tool = Bash()
    return await tool.run(tool.validate({"command": command, **more}), env)


async def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        await asyncio.sleep(0.01)


async def test_output_comes_back_joined(env: ToolEnv) -> None:
    """Both streams, in the order they were printed."""
    result = await bash(env, "echo a; echo b >&2; echo c")

    assert result == ToolResult("a\nb\nc", {"stdout": "a\nb\nc", **PLAIN})


async def test_a_failing_command_says_its_exit_code_first(env: ToolEnv) -> None:
    """FACTS §6: `Exit code 3`, then what it printed."""
    result = await bash(env, "echo out; echo err >&2; exit 3")

    assert (result.is_error, result.content) == (True, "Exit code 3\nout\nerr")


async def test_silence_is_said(env: ToolEnv) -> None:
    """The model is told that there was nothing to print."""
    assert (await bash(env, "true")).content == "(Bash completed with no output)"


async def test_a_cd_moves_the_session_within_the_project(env: ToolEnv) -> None:
    """The next command starts there, and the host is told."""
    moves: list[tuple[str, str]] = []

    async def moved(kind: type[CwdChanged], *, cwd: str, old_cwd: str, new_cwd: str) -> None:
        moves.append((old_cwd, new_cwd))

    root = env.cwd
    Path(root, "sub").mkdir()
    env = hosted(env, tell=moved)

    result = await bash(env, "cd sub")

    assert (await bash(env, "pwd")).content == f"{root}/sub"
    assert (env.cwd, moves) == (f"{root}/sub", [(root, f"{root}/sub")])
    assert result.response["noOutputExpected"] is True


async def test_each_command_of_a_subagent_begins_in_the_same_place(env: ToolEnv) -> None:
    """Its `cd` holds for that command only; nobody is told of a move, but the model that there was none."""
    moves: list[tuple[str, str]] = []

    async def moved(kind: type[CwdChanged], *, cwd: str, old_cwd: str, new_cwd: str) -> None:
        moves.append((old_cwd, new_cwd))

    root = env.cwd
    Path(root, "sub").mkdir()
    env = replace(hosted(env, tell=moved), agent_id="a1")

    result = await bash(env, "cd sub && pwd")

    assert result.content == f"{root}/sub\nShell cwd was reset to {root}"
    assert ((await bash(env, "pwd")).content, moves) == (root, [])


async def test_a_cd_out_of_the_project_is_taken_back(env: ToolEnv) -> None:
    """The model and the hooks are told that the directory was reset."""
    root = env.cwd

    result = await bash(env, "cd /")

    assert env.cwd == root
    assert result.content == f"Shell cwd was reset to {root}"
    assert result.response["stderr"] == f"\nShell cwd was reset to {root}"


async def test_a_failing_command_does_not_move_the_session(env: ToolEnv) -> None:
    """Only what went well counts."""
    Path(env.cwd, "sub").mkdir()
    root = env.cwd

    await bash(env, "cd sub && false")

    assert env.cwd == root


async def test_a_removed_directory_sends_the_session_home(env: ToolEnv) -> None:
    """The next command runs in the project instead of failing for ever."""
    root = env.cwd
    await bash(env, "mkdir gone && cd gone")
    Path(root, "gone").rmdir()

    assert (await bash(env, "pwd")).content == root


async def test_exports_of_env_files_reach_the_command(env: ToolEnv, tmp_path: Path) -> None:
    """What a hook wrote into CLAUDE_ENV_FILE is read first."""
    exports = tmp_path / "it's env.sh"
    exports.write_text("export GREETING='hello there'\n")
    env.state.env_files.append(exports)

    assert (await bash(env, 'echo "$GREETING"')).content == "hello there"


async def test_a_command_that_takes_too_long_is_killed_with_its_children(
    env: ToolEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is left; what it printed before is told."""
    call = asyncio.create_task(bash(env, "echo started; sleep 500 & echo $! > pid; wait", timeout=600_000))
    pid = Path(env.cwd, "pid")
    await until(lambda: pid.exists() and pid.read_text().strip() != "")
    loop = asyncio.get_running_loop()
    with monkeypatch.context() as patch:
        patch.setattr(loop, "time", lambda now=loop.time: now() + 600)  # its time is up, however late the shell began
        result = await call

    child = int(pid.read_text())
    assert result.is_error
    assert result.content == "Command timed out after 600 s\nstarted"
    assert result.response["interrupted"] is True
    await until(lambda: not alive(child))


async def test_cancelling_the_call_kills_the_command(env: ToolEnv) -> None:
    """Ctrl-C leaves no process behind."""
    call = asyncio.create_task(bash(env, "echo $$ > pid; sleep 60; sleep 60"))
    pid = Path(env.cwd, "pid")
    await until(lambda: pid.exists() and pid.read_text().strip() != "")

    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    assert not alive(int(pid.read_text()))


async def test_any_amount_of_output_is_cut_in_the_middle(env: ToolEnv) -> None:
    """A hundred megabytes cost a few kilobytes of memory and of the model's context."""
    result = await bash(env, "echo first; head -c 100000000 /dev/zero | tr '\\0' x; echo; echo last")

    assert isinstance(result.content, str)
    assert result.content.startswith("first\nxxx")
    assert result.content.endswith("xxx\nlast")
    assert "bytes of output left out" in result.content
    assert len(result.content) < OUTPUT_LIMIT + 100


async def test_a_command_that_kills_itself_is_an_error(env: ToolEnv) -> None:
    """Signals count as shells count them."""
    assert (await bash(env, "kill -9 $$")).content == "Exit code 137"


async def test_stdin_is_empty(env: ToolEnv) -> None:
    """A command that asks for input gets none instead of hanging."""
    assert (await bash(env, "cat; echo done")).content == "done"


async def test_a_child_that_holds_the_output_open_does_not_delay_the_answer(env: ToolEnv) -> None:
    """`server &` goes on until the session ends, and then is ended."""
    began = time.monotonic()
    result = await bash(env, "sleep 120 & echo $!")

    pid = int(str(result.content))
    assert time.monotonic() - began < 60
    assert alive(pid)
    await env.state.jobs.aclose()
    await until(lambda: not alive(pid))


@needs_proc
async def test_the_commands_own_descriptors_are_clean(env: ToolEnv) -> None:
    """The pipe the shell reports its directory through is not the command's to see."""
    listing = str((await bash(env, "ls -l /proc/self/fd")).content)

    assert listing.count("pipe:") == 2  # stdout and stderr


@needs_proc
async def test_no_descriptor_is_left_open(env: ToolEnv) -> None:
    """However many commands a session has, and however they end, it does not run out of files."""
    await bash(env, "true")
    before = descriptors()
    for _ in range(2):
        await bash(env, "true")
        await bash(env, "sleep 5", timeout=50)

    assert descriptors() <= before


async def test_a_background_command_returns_at_once_and_tells_when_it_is_done(env: ToolEnv) -> None:
    """Its output goes to a file the model can read."""
    done: list[str] = []
    env.state.jobs.on_done = lambda job: done.append(f"{job.status} {job.exit_code}")

    result = await bash(env, "echo early; exit 4", run_in_background=True)

    name = result.response["backgroundTaskId"]
    job = env.state.jobs.all.get(name)
    assert job is not None
    assert f"with ID: {name}" in str(result.content)
    await until(lambda: bool(done))
    assert done == ["failed 4"]
    assert job.output.read_text() == "early\n"


async def test_a_background_command_can_be_stopped(env: ToolEnv) -> None:
    """By its id, with everything it started; an unknown id is an error."""
    result = await bash(env, "echo $$; sleep 60; true", run_in_background=True)
    job = env.state.jobs.all.get(result.response["backgroundTaskId"])
    assert job is not None
    await until(lambda: job.output.read_text() != "")
    pid = int(job.output.read_text())

    stopped = await TaskStop().run({"task_id": job.id}, env)
    unknown = await TaskStop().run({"task_id": "nope"}, env)

    assert (stopped.is_error, unknown.is_error) == (False, True)
    await until(lambda: not alive(pid))
    assert job.summary()["status"] == "killed"


async def test_the_end_of_the_session_ends_background_commands(env: ToolEnv) -> None:
    """Nothing outlives the session, and its output files go too."""
    result = await bash(env, "echo $$; sleep 60; true", run_in_background=True)
    job = env.state.jobs.all.get(result.response["backgroundTaskId"])
    assert job is not None
    await until(lambda: job.output.read_text() != "")
    pid = int(job.output.read_text())

    await env.state.jobs.aclose()

    assert not alive(pid)
    assert not job.output.exists()


@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 150, 1000])
@pytest.mark.parametrize("step", [1, 7, 64, 1000])
def test_bounded_output_keeps_both_ends(size: int, step: int) -> None:
    """Whatever the pieces, the first and the last bytes are there and the missing ones are counted."""
    data = bytes(33 + n % 90 for n in range(size))
    sink = BoundedOutput(100)
    for at in range(0, size, step):
        sink.feed(data[at : at + step])

    expected = data.decode()
    if size > 100:
        expected = f"{data[:50].decode()}\n\n… {size - 100} bytes of output left out …\n\n{data[-50:].decode()}"
    assert sink.text() == expected


@pytest.mark.skipif(bool(unavailable()), reason=unavailable() or "lines can be held")
async def test_a_confined_session_holds_lines_to_its_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model reads why, the folder is followed, and background commands are held, too."""
    project, temporary = tmp_path / "project", tmp_path / "temporary"
    (project / "sub").mkdir(parents=True)
    temporary.mkdir()
    monkeypatch.setattr("hookline.agent.tools.bash.temporary_folder", lambda: str(temporary))
    env = ToolEnv(state=SessionState(str(project)), confine=True)
    refused = await bash(env, "cd sub && touch here && touch ../../outside")
    moved = await bash(env, f"cd sub; touch {temporary}/there; pwd")
    await bash(env, f"sleep 0.1; touch {tmp_path}/later; touch done", run_in_background=True)
    await until((project / "sub" / "done").exists)

    assert isinstance(refused.content, str)
    assert f"refused to write `{tmp_path}/outside`: it is outside `{project}`" in refused.content
    assert (moved.content, env.cwd) == (f"{project}/sub", f"{project}/sub")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["project", "temporary"]
    await env.state.jobs.aclose()


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="confined lines are Linux only")
@pytest.mark.parametrize("told", [b"", (3).to_bytes(4, "little")], ids=["killed", "exit 3"])
async def test_a_confined_line_that_has_gone_before_it_is_watched(told: bytes) -> None:
    """Its exit code is what it told; one that told nothing was killed, which is not a success."""
    gone = await asyncio.create_subprocess_exec("true")
    await gone.wait()
    reading, writing = os.pipe()
    os.write(writing, told)
    os.close(writing)

    code = await line_end(WarmLine(gone.pid, reading), asyncio.get_running_loop())

    assert code == (3 if told else -signal.SIGKILL)
