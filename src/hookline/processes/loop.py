"""What an event loop is told of: lines of a descriptor, and how a process ended.

Nothing but the standard library: the service uses it, too.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Generic, TypeVar

T = TypeVar("T")


async def read_lines(source: int, longest: int) -> AsyncIterator[bytes]:
    """The lines of a descriptor that hold something; nothing of this need be waited for at the end.

    A line longer than `longest` bytes is cut one byte above that, so that its reader knows.
    """
    pending = bytearray()
    async for chunk in chunks(source):
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            whole = bytes(pending + line)[: longest + 1]
            pending.clear()
            if whole.strip():
                yield whole
        pending += rest
        del pending[longest + 1 :]
    if pending.strip():
        yield bytes(pending)


async def chunks(source: int) -> AsyncIterator[bytes]:
    """What is read: when the loop says that there is something; by a thread, where the loop cannot tell (a file)."""
    loop = asyncio.get_running_loop()
    while True:
        chunk: asyncio.Future[bytes] = loop.create_future()
        try:
            loop.add_reader(source, _read, chunk, source)
        except (PermissionError, NotImplementedError):
            threading.Thread(target=_read_for, args=(chunk, source, loop), daemon=True).start()
        try:
            data = await chunk
        finally:
            with suppress(NotImplementedError):
                loop.remove_reader(source)
        if not data:
            return
        yield data


def _read(chunk: asyncio.Future[bytes], source: int) -> None:
    if not chunk.done():
        chunk.set_result(_chunk(source))


def _read_for(chunk: asyncio.Future[bytes], source: int, loop: asyncio.AbstractEventLoop) -> None:
    """Read the descriptor, not `sys.stdin`, whose lock would hold up the end of the program."""
    data = _chunk(source)
    with suppress(RuntimeError):  # the loop has ended before the lines did
        loop.call_soon_threadsafe(_tell, chunk, data)


def _chunk(source: int) -> bytes:
    with suppress(OSError):  # else it was closed by its other end, or by us
        return os.read(source, 65536)
    return b""


@asynccontextmanager
async def running(work: Awaitable[T]) -> AsyncIterator[asyncio.Future[T]]:
    """The work beside the block; where that ends, it is cancelled and waited for."""
    task = asyncio.ensure_future(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class PerLoop(Generic[T]):
    """One thing for each event loop; a loop ends its generators before it ends itself, so none outlives its loop."""

    def __init__(self, life: Callable[[], AsyncGenerator[T, None]]) -> None:
        self._life = life
        self._kept: dict[asyncio.AbstractEventLoop, tuple[T, AsyncGenerator[T, None]]] = {}

    async def get(self) -> T:
        loop = asyncio.get_running_loop()
        if loop not in self._kept:
            self._kept = {one: kept for one, kept in self._kept.items() if not one.is_closed()}
            life = self._life()
            self._kept[loop] = await anext(life), life
        return self._kept[loop][0]

    async def aclose(self) -> None:
        """End them all, each in the loop it belongs to; one whose loop stands still ends with that."""
        here = asyncio.get_running_loop()
        kept, self._kept = self._kept, {}
        for loop, (_, life) in kept.items():
            if loop is here:
                await life.aclose()
            elif loop.is_running():
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(life.aclose(), loop))


# -- how a process ended, as a future of the event loop ----------------------------------------------------------------


LOST = sys.maxsize
"""In place of a return code that another part of this program was told: it waits for any child at all."""


class Started:
    """A process of ours, asked for its return code as a `Popen` is."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def poll(self) -> int | None:
        return self._asked(os.WNOHANG)

    def wait(self) -> int:
        code = self._asked(0)
        return LOST if code is None else code

    def _asked(self, options: int) -> int | None:
        try:
            pid, status = os.waitpid(self.pid, options)
        except ChildProcessError:
            return LOST
        return os.waitstatus_to_exitcode(status) if pid else None


def watch(process: subprocess.Popen[bytes], loop: asyncio.AbstractEventLoop) -> asyncio.Future[int | None]:
    """The return code of a process we started, as a future; the process is reaped when it resolves."""
    watch = ExitWatch(process, loop)
    watch.look()
    return watch.ended


_IN_A_THREAD = -1


def when_gone(pid: int, loop: asyncio.AbstractEventLoop, told: Callable[[], None]) -> None:
    """Call `told` once a process has gone, be it ours or not; at once if it has, or if there is no way to wait."""
    try:
        pidfd = os.pidfd_open(pid) if sys.platform == "linux" else -1
    except OSError:
        pidfd = -1
    if pidfd < 0:
        told()
        return

    def gone() -> None:
        loop.remove_reader(pidfd)
        os.close(pidfd)
        told()

    loop.add_reader(pidfd, gone)


class ExitWatch:
    """The future of a return code; it resolves by a look at the right moment, or when the loop tells."""

    def __init__(self, process: Started | subprocess.Popen[bytes], loop: asyncio.AbstractEventLoop) -> None:
        self.ended: asyncio.Future[int | None] = loop.create_future()
        self._process, self._loop = process, loop
        self._pidfd: int | None = None
        self._over = False

    def look(self) -> None:
        """Ask whether it has ended, and be told by the loop if it has not."""
        if self._over or self._pidfd == _IN_A_THREAD:  # its id may be another's by now, or the thread is told
            return
        code = self._process.poll()
        if code is not None:
            self._over = True
            if self._pidfd is not None:
                self._loop.remove_reader(self._pidfd)
                os.close(self._pidfd)
            _tell(self.ended, None if code == LOST else code)
        elif self._pidfd is None:
            self._from_now_on()

    def _from_now_on(self) -> None:
        try:
            self._pidfd = os.pidfd_open(self._process.pid) if sys.platform == "linux" else _IN_A_THREAD
        except OSError:
            self._pidfd = _IN_A_THREAD
        if self._pidfd == _IN_A_THREAD:
            threading.Thread(target=self._wait, name=f"hookline-wait-{self._process.pid}", daemon=True).start()
        else:
            self._loop.add_reader(self._pidfd, self.look)

    def _wait(self) -> None:
        code = self._process.wait()
        with suppress(RuntimeError):  # the loop was closed meanwhile: nothing waits for it any more
            self._loop.call_soon_threadsafe(_tell, self.ended, None if code == LOST else code)


def _tell(waiting: asyncio.Future[T], result: T) -> None:
    if not waiting.done():
        waiting.set_result(result)
