"""Hook processes that stay: one JSON line in, one JSON line out, for as long as they live.

Questions are asked one at a time. A process that dies is started again at the next question, at once the first time,
then after a pause that doubles up to `LONGEST_PAUSE`; an answer ends the doubling. A question that is given up on (a
timeout, a cancellation) ends the process, for its late answer would be taken for the next one's. What it prints that is
not an answer (a banner, a log line, an empty line) is logged and passed over.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import msgspec

from hookline.core.wire.strict import ANSWERING
from hookline.errors import HookFailed
from hookline.processes.pipes import Process, Stream, start_process
from hookline.processes.spawn import Child, ProcessSpec, not_started

LINE_LIMIT = 10_000_000
"""Bytes of one answer, and of what is kept of stderr."""
log: logging.Logger = logging.getLogger("hookline.command")
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 10.0


def is_answer(line: bytes) -> bool:
    """Whether a line is meant as an answer: an object with a word of ours, or none at all; or something broken."""
    if not line.lstrip().startswith(b"{"):
        return False
    try:
        said = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return True
    return not said or not ANSWERING.isdisjoint(said)


class Persistent:
    """One process that stays; `answers` tells its answers from what else it prints."""

    def __init__(
        self, spec: ProcessSpec, *, limit: int = LINE_LIMIT, answers: Callable[[bytes], bool] = is_answer
    ) -> None:
        self._spec, self._limit, self._answers = spec, limit, answers
        self._turn = asyncio.Lock()
        self._live: _Live | None = None
        self._failures, self._not_before, self._closed = 0, 0.0, False

    async def ask(self, line: bytes) -> bytes:
        """The line that answers `line`; a process that dies, or prints too much, is a `HookFailed`."""
        async with self._turn:
            live = await self._alive()
            try:
                answer = await live.ask(line)
            except BaseException as error:
                self._live = None
                if isinstance(error, HookFailed):
                    self._note_failure()
                await live.end()
                raise
            self._failures = 0
            return answer

    async def _alive(self) -> _Live:
        if self._closed:
            raise HookFailed("was closed with its process")
        if self._live is not None and not self._live.ended:
            return self._live
        if self._live is not None:  # it died between two questions
            await self._live.end()
            self._live = None
            self._note_failure()
        await asyncio.sleep(max(0.0, self._not_before - asyncio.get_running_loop().time()))
        try:
            self._live = await _Live.start(self._spec, self._limit, self._answers)
        except OSError as error:
            self._note_failure()
            raise not_started(self._spec, error) from None
        return self._live

    def _note_failure(self) -> None:
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (self._failures - 1)) if self._failures else 0.0
        self._failures += 1
        self._not_before = asyncio.get_running_loop().time() + pause

    @property
    def pid(self) -> int | None:
        return self._live.child.pid if self._live is not None and not self._live.ended else None

    async def aclose(self) -> None:
        """End the process, TERM first, then KILL."""
        self._closed = True
        live, self._live = self._live, None
        if live is not None:
            await live.end()


class _Live:
    """A started process and the line it is about to say."""

    def __init__(self, limit: int, answers: Callable[[bytes], bool]) -> None:
        self._limit, self._answers = limit, answers
        self._heard, self._unasked, self._errors = bytearray(), bytearray(), bytearray()
        self._line: asyncio.Future[bytes] | None = None
        self._process: Process | None = None
        self._task: asyncio.Task[object] | None = None

    @classmethod
    async def start(cls, spec: ProcessSpec, limit: int, answers: Callable[[bytes], bool]) -> _Live:
        live = cls(limit, answers)
        live._process = await start_process(spec, limit=limit, on_output=live._printed, keep_stdin=True)
        live._task = asyncio.create_task(live._process.finish())
        live._task.add_done_callback(live._died)
        return live

    @property
    def child(self) -> Child:
        assert self._process is not None
        return self._process.child

    @property
    def ended(self) -> bool:
        return self._task is None or self._task.done() or self.child.exit.done()

    async def ask(self, line: bytes) -> bytes:
        assert self._process is not None
        if self._unasked:
            raise HookFailed("printed a line that was not asked for", stdout=self._unasked.decode("utf-8", "replace"))
        self._line = asyncio.get_running_loop().create_future()
        self._errors.clear()
        self._process.stdin.write(line + b"\n")
        return await self._line

    def _printed(self, stream: Stream, data: bytes) -> None:
        assert self._process is not None
        self._process.printed.forget()
        if stream == "stderr":
            self._errors += data[: self._limit - len(self._errors)]
            return
        *lines, self._heard = (self._heard + data).split(b"\n")
        for line in map(bytes, lines):
            if not self._answers(line):
                said = line.decode("utf-8", "replace")
                log.warning("process %d printed what is not an answer: %.200s", self.child.pid, said)
            elif self._line is not None and not self._line.done():
                self._line.set_result(line)
            else:
                self._unasked += line[: self._limit - len(self._unasked)] + b"\n"
        if len(self._heard) > self._limit:
            self._fail(f"printed a line of more than {self._limit:,} bytes")

    def _fail(self, problem: str) -> None:
        if self._line is not None and not self._line.done():
            self._line.set_exception(HookFailed(problem, stderr=self._errors.decode("utf-8", "replace")))

    def _died(self, task: asyncio.Task[object]) -> None:
        code = self.child.exit.result() if self.child.exit.done() else None
        self._fail(f"ended without an answer (exit code {code})")
        if not task.cancelled():
            task.exception()

    async def end(self) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait((self._task,))
