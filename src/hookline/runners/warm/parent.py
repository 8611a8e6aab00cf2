"""Our end of one warm interpreter: start it, ask it for runs, hear how they ended, let it go."""

# ruff: noqa: PTH109, PTH116, PTH118, PTH120 - on every run's way: plain paths cost a tenth
from __future__ import annotations

import array
import asyncio
import contextlib
import functools
import itertools
import os
import signal
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hookline.processes.spawn import Child, Pipes, ProcessSpec, entries_of, watch, when_gone
from hookline.processes.tree import MARKER
from hookline.runners.warm.plan import Interpreter, WarmPlan

BOOT = Path(__file__).with_name("_boot") / "importlib_bootstrap.py"
HELLO_LIMIT = 10.0
"""Seconds an interpreter may take to start up."""
ANSWER_LIMIT = 2.0
"""Seconds a parent may take to fork; after that it is replaced and the run is ordinary."""

SILENT = frozenset({signal.SIGINT, signal.SIGPIPE})
"""Signals that a shell says nothing about."""

Stamp = tuple[int, ...] | None


class WarmParent:
    """A Python that has started up and forks on request."""

    def __init__(self, process: subprocess.Popen[bytes], sock: socket.socket) -> None:
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        self.process = process
        self.sock = sock
        self.ended: asyncio.Future[int | None] = watch(process, self.loop)
        self.used: float = self.loop.time()
        self.made_of: dict[str, Stamp] = {}
        self._ids = itertools.count()
        self._starting: dict[int, asyncio.Future[int]] = {}
        self._running: dict[int, _Running] = {}
        self._sending = asyncio.Lock()
        self._heard = bytearray()
        self._hello: asyncio.Future[None] = self.loop.create_future()
        self._retired = False
        self._closed = False
        self.loop.add_reader(sock, self._hear)
        self.ended.add_done_callback(lambda _: self._lost())  # its spare may outlive it and keep the line open

    @classmethod
    async def start(cls, python: Interpreter, env: Mapping[str, str]) -> WarmParent | None:
        """Start an interpreter and wait until it is warm; None if it cannot be kept warm."""
        ours, theirs = socket.socketpair()
        inlet, outlet = os.pipe()  # its stdin, stdout and stderr are pipes, as every run's will be
        try:
            process = subprocess.Popen(  # noqa: ASYNC220 - it returns as soon as the interpreter has begun
                (python.name, *python.flags, str(BOOT)),
                executable=python.file,
                cwd="/",
                env=_boot_environment(env, theirs.fileno()),
                stdin=inlet,
                stdout=outlet,
                stderr=outlet,
                pass_fds=(theirs.fileno(),),
                process_group=0,
            )
        except OSError:
            ours.close()
            return None
        finally:
            theirs.close()
            os.close(inlet)
            os.close(outlet)
        ours.setblocking(False)  # noqa: FBT003 - the socket's own signature
        parent = cls(process, ours)
        return parent if await parent._warmed_up() else None

    async def _warmed_up(self) -> bool:
        try:
            await asyncio.wait_for(asyncio.shield(self._hello), HELLO_LIMIT)
        except BaseException as problem:
            self.kill()
            await self.ended
            if not isinstance(problem, (OSError, TimeoutError)):
                raise
            return False
        return True

    @property
    def usable(self) -> bool:
        """Whether it is alive, wanted, ours to use in this event loop, and still what would be started today."""
        if self._retired or self._closed or self.ended.done() or self.loop is not asyncio.get_running_loop():
            return False
        return all(_stamp(path) == stamp for path, stamp in self.made_of.items())

    @property
    def busy(self) -> bool:
        return bool(self._running or self._starting)

    # ---- one run

    async def run(self, spec: ProcessSpec, plan: WarmPlan) -> Child | None:
        """Fork for one run; None if the parent did not, in which case nothing of the run has happened."""
        self.used = self.loop.time()
        name = next(self._ids)
        started: asyncio.Future[int] = self.loop.create_future()
        self._starting[name] = started
        pipes = Pipes()
        go, theirs = socket.socketpair()
        late = self.loop.call_later(ANSWER_LIMIT, _give_up, started)
        committed = False
        try:
            await self._ask(_request(name, spec, plan), (*pipes.theirs, theirs.fileno()), started)
            pid = await started
            go.send(b"g")
            committed = True
        except (OSError, TimeoutError):
            self.kill()
            return None
        finally:
            late.cancel()
            self._starting.pop(name, None)
            theirs.close()
            if committed:
                pipes.close_theirs()
            else:
                go.close()
                pipes.close()
        child = Child(pid, *pipes.ours, self.loop.create_future(), warm=True)
        self._running[name] = _Running(self.loop, child, go, in_shell=plan.shell and shell_reports_signals())
        return child

    async def _ask(self, data: bytes, fds: tuple[int, ...], started: asyncio.Future[int]) -> None:
        """Send a request; a long one is sent as fast as it is read, until it is given up on."""
        async with self._sending:
            rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))
            sent = self.sock.sendmsg([data], [rights])
            if sent < len(data):
                rest = self.loop.create_task(self.loop.sock_sendall(self.sock, memoryview(data)[sent:]))
                await asyncio.wait((rest, started), return_when=asyncio.FIRST_COMPLETED)
                if not rest.done():
                    rest.cancel()
                    raise TimeoutError

    # ---- what it says

    def _hear(self) -> None:
        try:
            data = self.sock.recv(65_536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lost()
            return
        self._heard += data
        while self._take_message():
            pass
        if self._retired and not self.busy:
            self.close()

    def _take_message(self) -> bool:
        line, newline, rest = self._heard.partition(b"\n")
        if not newline:
            return False
        word, first, second = line.split(b" ")
        if word == b"hello":
            size = int(second)
            if len(rest) < size:
                return False
            self._meet(bytes(rest[:size]))
            rest = rest[size:]
        self._heard = rest
        if word == b"started":
            self._has_started(int(first), int(second))
        elif word == b"exited":
            self._has_ended(int(first), int(second))
        return True

    def _meet(self, paths: bytes) -> None:
        self.made_of = {path: _stamp(path) for path in map(os.fsdecode, paths.split(b"\0"))}
        if not self._hello.done():
            self._hello.set_result(None)

    def _has_started(self, name: int, pid: int) -> None:
        started = self._starting.get(name)
        if started is not None and not started.done():
            started.set_result(pid)

    def _has_ended(self, name: int, status: int) -> None:
        run = self._running.pop(name, None)
        if run is not None:
            run.set_exit_status(status)

    def _lost(self) -> None:
        """It has gone: runs not begun are begun elsewhere, how the others end can no longer be known."""
        self._disconnect()
        gone = ConnectionResetError("the warm interpreter has gone")
        unanswered: list[asyncio.Future[Any]] = [self._hello, *self._starting.values()]
        for waiting in unanswered:
            if not waiting.done():
                waiting.set_exception(gone)
                waiting.exception()  # nobody may be waiting any more
        for run in self._running.values():
            run.wait_until_gone()
        self._running.clear()

    # ---- letting it go

    def retire(self) -> None:
        """Give it no more work; it ends when its last run has."""
        self._retired = True
        if not self.busy:
            self.close()

    def close(self) -> None:
        """End the conversation, which ends the process."""
        self._disconnect()

    def kill(self) -> None:
        """End it at once; it has not behaved."""
        if not self.ended.done():
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGKILL)
        self._lost()

    def _disconnect(self) -> None:
        if self._closed:
            return
        self._retired = self._closed = True
        if not self.loop.is_closed():
            self.loop.remove_reader(self.sock)
        self.sock.close()

    async def aclose(self) -> None:
        """Close, and wait until the process has been reaped."""
        self.close()
        done, _ = await asyncio.wait((self.ended,), timeout=1.0)
        if not done:
            self.kill()
            await self.ended


def _give_up(started: asyncio.Future[int]) -> None:
    if not started.done():
        started.set_exception(TimeoutError())
        started.exception()  # nobody may be waiting yet


def _request(name: int, spec: ProcessSpec, plan: WarmPlan) -> bytes:
    """What a run is told: its id, folder, interpreter, the first entry of its path, its words, its environment."""
    cwd = spec.cwd or os.getcwd()
    script = os.path.join(cwd, plan.words[plan.before])
    fields = [str(name), cwd, plan.interpreter.file, os.path.dirname(os.path.realpath(script)), str(plan.before)]
    fields += [str(len(plan.words)), *plan.words]
    entries = entries_of(spec) or []
    if plan.shell:  # what the skipped shell would have seen to
        entries.append(os.fsencode(f"PWD={os.path.realpath(cwd)}"))
    data = b"\0".join([os.fsencode("\0".join(fields)), *entries])
    return len(data).to_bytes(8, "big") + data


def _boot_environment(env: Mapping[str, str], fd: int) -> dict[str, str]:
    boot = {**env, "HOOKLINE_WARM_FD": str(fd)}
    if MARKER in env:  # as long as a run's, but nobody's: ending a run must not end its parent
        outer, slash, own = env[MARKER].rpartition("/")
        boot[MARKER] = outer + slash + "0" * len(own)
    return boot


def _stamp(path: str) -> Stamp:
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size


@functools.cache
def shell_reports_signals() -> bool:
    """Whether `/bin/sh -c` waits for its last command and says what it died of, rather than putting it in its place."""
    asked = subprocess.run(("/bin/sh", "-c", "/bin/sh -c 'kill -TERM $$'"), capture_output=True, check=False)
    return asked.returncode >= 0


class _Running:
    """One run: its return code comes from the run itself, at its very end, or from the parent that reaped it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, child: Child, go: socket.socket, *, in_shell: bool) -> None:
        self.loop, self.child, self.go, self._in_shell = loop, child, go, in_shell
        go.setblocking(False)  # noqa: FBT003 - the socket's own signature
        loop.add_reader(go, self._reported)

    def _reported(self) -> None:
        try:
            said = self.go.recv(16)
        except OSError:
            said = b""
        self._hang_up()
        if said.endswith(b"\n"):
            self.ended(int(said))

    def _hang_up(self) -> None:
        if self.go.fileno() >= 0:
            self.loop.remove_reader(self.go)
            self.go.close()

    def ended(self, code: int | None) -> None:
        self._hang_up()
        if not self.child.exit.done():
            self.child.exit.set_result(code)

    def set_exit_status(self, status: int) -> None:
        code = os.waitstatus_to_exitcode(status)
        if code < 0 and self._in_shell and not self.child.exit.done():  # the shell that we skip would have said so
            words = signal.strsignal(-code) or f"Signal {-code}"
            dumped = " (core dumped)" if os.WCOREDUMP(status) else ""
            self.child.last_words = b"" if -code in SILENT else f"{words}{dumped}\n".encode()
            code = 128 - code
        self.ended(code)

    def wait_until_gone(self) -> None:
        """Nobody will tell us its return code any more: wait until it has gone, and call the code unknown."""
        when_gone(self.child.pid, self.loop, lambda: self.ended(None))
