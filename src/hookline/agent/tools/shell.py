"""One shell command: its own process group, its output bounded, and where it left the working directory.

The shell tells its final directory through a pipe of its own, so no temporary file is needed and the command cannot be
confused with it. Exports that hooks wrote into CLAUDE_ENV_FILE scripts are read before the command.

`Jobs` are commands that go on while the conversation does, started by Bash's `run_in_background`: their output goes to
a file the model can read, and nothing of them outlives the session.
"""

import asyncio
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from secrets import token_hex
from typing import Any

from hookline.core.interpreter import temporary_folder
from hookline.core.paths import inside_any
from hookline.errors import HooklineError
from hookline.guards.permissions.readonly_commands import main_worktree, running_settings
from hookline.processes.loop import watch, when_gone
from hookline.processes.tree import MARKER, Group, new_marker
from hookline.sandbox.policy import Policy
from hookline.sandbox.warm import WarmLine, WarmStarter

READ_SIZE = 1 << 16
GRACE = 0.2  # how long output still in the pipe is awaited once the command has ended but a child of it holds the pipe
CONFINED_TELL = 3  # the descriptor on which a confined command tells its last folder


class BoundedOutput:
    """Keeps the first and the last part of what is fed and counts the rest, so a command may print any amount."""

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._head = self._tail = b""
        self.total: int = 0

    def feed(self, data: bytes) -> None:
        self.total += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail = (self._tail + data[room:])[-self._half :]

    def text(self) -> str:
        """The output, or its two ends around a line that says how much is missing."""
        cut = self.total - len(self._head) - len(self._tail)
        if not cut:
            return (self._head + self._tail).decode("utf-8", "replace")
        head, end = self._head.decode("utf-8", "replace"), self._tail.decode("utf-8", "replace")
        return f"{head}\n\n… {cut} bytes of output left out …\n\n{end}"


@dataclass(eq=False)
class Shell:
    """A command to start, wait for and, if need be, end with everything it started."""

    command: str
    cwd: str
    environ: Mapping[str, str]
    env_files: Sequence[Path] = ()
    held: tuple[Policy, WarmStarter] | None = None  # what confines it, and who starts it confined
    #: once started: resolves when the command itself is over, whichever process still holds its output
    exit: asyncio.Future[int | None] = field(init=False)
    _pid: int = field(init=False)
    _marker: str = field(default_factory=new_marker, init=False)
    _output: int | None = field(default=None, init=False)
    _cwd_pipe: int | None = field(default=None, init=False)

    def start(self, stdout: int | None = None) -> None:
        """Start it; `stdout` takes both streams, a pipe to read from if None."""
        self._cwd_pipe, tell_cwd = os.pipe()
        sink = stdout
        if sink is None:
            self._output, sink = os.pipe()
        number = tell_cwd if self.held is None else CONFINED_TELL
        # exports first, then the command itself, then where it ended, if it went well
        exports = "".join(f". {shlex.quote(str(path))}\n" for path in self.env_files if path.is_file())
        script = f"{exports}eval {shlex.quote(self.command)} {number}>&- && pwd -P >&{number}\n"
        words = [shell_path(), "-c", script]
        env = {**self.environ, MARKER: "/".join(filter(None, (self.environ.get(MARKER), self._marker)))}
        loop = asyncio.get_running_loop()
        try:
            with Path(os.devnull).open("rb") as null:
                if self.held is None:
                    files: dict[str, Any] = {"stdin": null, "stdout": sink, "stderr": sink, "pass_fds": (tell_cwd,)}
                    process = subprocess.Popen(words, cwd=self.cwd, env=env, start_new_session=True, **files)
                    self._pid, self.exit = process.pid, watch(process, loop)
                else:
                    policy, starter = self.held
                    held = {0: null.fileno(), 1: sink, 2: sink, CONFINED_TELL: tell_cwd}
                    line = starter.start(policy, words, cwd=self.cwd, env=env, files=held)
                    self._pid, self.exit = line.pid, line_end(line, loop)
        except BaseException:
            self.close()
            raise
        finally:
            os.close(tell_cwd)
            if stdout is None:
                os.close(sink)

    async def read(self, sink: BoundedOutput) -> int:
        """Feed the output to `sink` until the command ends; its exit code."""
        assert self._output is not None, "started with a pipe"
        loop, fd = asyncio.get_running_loop(), self._output
        closed: asyncio.Future[None] = loop.create_future()

        def take() -> None:
            data = os.read(fd, READ_SIZE)
            sink.feed(data)
            if not data and not closed.done():
                loop.remove_reader(fd)
                closed.set_result(None)

        loop.add_reader(fd, take)
        try:
            code = await self.wait()
            await asyncio.wait({closed}, timeout=GRACE)
        finally:
            loop.remove_reader(fd)
        return code

    async def wait(self) -> int:
        """The exit code; 128 + n for signal n, as shells count."""
        code = await asyncio.shield(self.exit)
        return 128 - code if code is not None and code < 0 else code or 0

    def final_cwd(self) -> str | None:
        """Where the command left the shell; None if it never got to say (it failed or was killed)."""
        assert self._cwd_pipe is not None, "asked before it is closed"
        os.set_blocking(self._cwd_pipe, False)
        with suppress(BlockingIOError):
            return os.fsdecode(os.read(self._cwd_pipe, READ_SIZE)).removesuffix("\n") or None
        return None

    async def end(self) -> None:
        """End the command and everything it started; being cancelled meanwhile does not leave it half done."""
        ending = asyncio.ensure_future(Group(self._pid, self._marker).end(self.exit))
        cancelled = False
        while not ending.done():
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError:
                cancelled = True
        ending.result()
        if cancelled:
            raise asyncio.CancelledError

    def left_something(self) -> bool:
        """Whether something the command started goes on after it (`server &`)."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, 0)
            return True
        return False

    def close(self) -> None:
        for fd in (self._output, self._cwd_pipe):
            if fd is not None:
                os.close(fd)
        self._output = self._cwd_pipe = None


def line_end(line: WarmLine, loop: asyncio.AbstractEventLoop) -> asyncio.Future[int | None]:
    """The exit code of a confined line, as a future."""
    future: asyncio.Future[int | None] = loop.create_future()

    def over() -> None:
        code = line.exit_code()
        future.set_result(-signal.SIGKILL if code is None else code)

    when_gone(line.pid, loop, over)
    return future


@dataclass
class Job:
    """One background command; `status` is `running`, `completed`, `failed` or `killed`."""

    id: str
    command: str
    output: Path
    description: str = ""
    status: str = "running"
    exit_code: int | None = None
    shell: Shell | None = field(default=None, repr=False)

    def summary(self) -> dict[str, Any]:
        """The job as Stop hooks are told of it (`background_tasks`)."""
        about = {"id": self.id, "type": "shell", "status": self.status}
        return {**about, "description": self.description, "command": self.command}


class Jobs:
    """The session's background commands, and who starts its confined ones; `on_done` is told when one has ended."""

    def __init__(self) -> None:
        self.on_done: Callable[[Job], None] | None = None
        self.starter: WarmStarter = WarmStarter()
        self.all: dict[str, Job] = {}
        self._watchers: set[asyncio.Task[None]] = set()
        self.strays: list[Shell] = []  # commands that ended while something they started goes on (`server &`)
        self._folder: Path | None = None

    def start(self, shell: Shell, description: str = "") -> Job:
        name = "b" + token_hex(4)
        self._folder = self._folder or Path(tempfile.mkdtemp(prefix="hookline-jobs-"))
        job = Job(name, shell.command, self._folder / f"{name}.output", description, shell=shell)
        with job.output.open("wb") as sink:
            shell.start(stdout=sink.fileno())
        self.all[name] = job
        watcher = asyncio.create_task(self._watch(job, shell), name=f"job {name}")
        self._watchers.add(watcher)
        watcher.add_done_callback(self._watchers.discard)
        return job

    def running(self) -> list[Job]:
        return [job for job in self.all.values() if job.status == "running"]

    async def stop(self, id: str) -> Job | None:
        """End a job with everything it started; None when there is none of that id."""
        job = self.all.get(id)
        if job and job.status == "running" and job.shell:
            job.status = "killed"
            await job.shell.end()
        return job

    async def aclose(self) -> None:
        """End what still runs, wait for it, remove the outputs."""
        await asyncio.gather(*(self.stop(job.id) for job in self.running()))
        if self._watchers:
            await asyncio.wait(set(self._watchers))
        strays, self.strays = self.strays, []
        await asyncio.gather(*(shell.end() for shell in strays))
        await asyncio.to_thread(self.starter.close)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    async def _watch(self, job: Job, shell: Shell) -> None:
        job.exit_code = await shell.wait()
        shell.close()
        if shell.left_something():
            self.strays.append(shell)
        if job.status == "running":
            job.status = "completed" if job.exit_code == 0 else "failed"
        if self.on_done:
            self.on_done(job)


@cache
def shell_path() -> str:
    """The shell: bash where there is one, since models write bash; else sh."""
    return find_helper("bash", os.getcwd()) or "/bin/sh"  # noqa: PTH109


@cache
def find_helper(name: str, project: str) -> str | None:
    """The whole path of a program, looked up once; not one that the agent, or another user, may have put there."""
    found = shutil.which(name, path=safe_path(project))
    return found if found and not inside_any(os.path.realpath(found), _writable(project)) else None


async def run_helper(words: Sequence[str], cwd: str, environ: Mapping[str, str] | None = None) -> tuple[int, str, str]:
    """The exit code of a program of our own use and what it printed; it ends with the call."""
    pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*words, cwd=cwd, env=environ, stdin=null, stdout=pipe, stderr=pipe)
    try:
        out, err = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    return process.returncode or 0, out.decode("utf-8", "replace"), err.decode("utf-8", "replace").strip()


@cache
def safe_path(project: str) -> str:
    """PATH without folders that the agent or other users may write to."""
    entries = [*os.environ.get("PATH", "").split(os.pathsep), "/usr/local/bin", "/usr/bin", "/bin"]
    whole = [entry for entry in entries if entry.startswith("/") and Path(entry).is_dir()]
    writable = _writable(project)
    return os.pathsep.join(
        entry
        for entry in dict.fromkeys(whole)
        if not inside_any(os.path.realpath(entry), writable) and not Path(entry).stat().st_mode & 0o002
    )


def _writable(project: str) -> list[str]:
    """What an agent may write to: its project, in a work tree also the main one, and temporary folders."""
    folders = (project, main_worktree(project) or project, temporary_folder(), "/tmp", "/var/tmp")  # noqa: S108
    return [os.path.realpath(folder) for folder in folders]


def git_environ(project: str) -> dict[str, str]:
    """The environment in which git runs no hook, no monitor and nothing that the repository's settings name."""
    found = running_settings(project)
    if found is None:
        raise HooklineError("the repository's configuration cannot be read whole, so git is not run in it")
    named = [name for name in found if not name.startswith("include")]  # what is included was read, and is named itself
    off = {**dict.fromkeys(named, ""), "core.hookspath": os.devnull, "core.fsmonitor": "false", "core.pager": "cat"}
    settings = {"GIT_CONFIG_COUNT": str(len(off)), "GIT_TERMINAL_PROMPT": "0", "PATH": safe_path(project)}
    for number, (name, value) in enumerate(off.items()):
        settings |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return settings | {name: value for name, value in os.environ.items() if name in ("HOME", "LANG", "USER", "TZ")}
