"""Hook processes that stay: one JSON line in, one JSON line out, for as long as they live.

Questions are asked one at a time. A process that dies is started again at the next question, at once the first time,
then after a pause that doubles up to `LONGEST_PAUSE`; an answer ends the doubling. A question that is given up on (a
timeout, a cancellation) ends the process, for its late answer would be taken for the next one's. What it prints that is
not an answer (a banner, a log line, an empty line) is logged and passed over.
"""

import asyncio
import logging
from typing import Self

from hookline.core.wire.json_text import read_object
from hookline.core.wire.strict import ANSWERING
from hookline.errors import HookFailed
from hookline.processes.pipes import Process, Stream, start_process
from hookline.processes.spawn import ProcessSpec, not_started

LINE_LIMIT = 10_000_000  # bytes of one answer, and of what is kept of stderr
log: logging.Logger = logging.getLogger("hookline.command")
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 10.0


def is_answer(line: bytes) -> bool:
    """Whether a line is meant as an answer: an object with a word of ours, or none at all; or something broken."""
    if not line.lstrip().startswith(b"{"):
        return False
    said = read_object(line)
    return not said or not ANSWERING.isdisjoint(said)


class _Live:
    """A started process and the line it is about to say."""

    process: Process
    _task: asyncio.Task[object]

    def __init__(self) -> None:
        self._heard, self._unasked, self._errors = bytearray(), bytearray(), bytearray()
        self._line: asyncio.Future[bytes] | None = None

    async def start(self, spec: ProcessSpec) -> Self:
        self.process = await start_process(spec, limit=LINE_LIMIT, on_output=self._printed, keep_stdin=True)
        self._task = asyncio.create_task(self.process.finish())
        self._task.add_done_callback(self._died)
        return self

    @property
    def ended(self) -> bool:
        return self._task.done() or self.process.child.exit.done()

    async def ask(self, line: bytes) -> bytes:
        if self._unasked:
            raise HookFailed("printed a line that was not asked for", stdout=self._unasked.decode("utf-8", "replace"))
        self._line = asyncio.get_running_loop().create_future()
        self._errors.clear()
        self.process.stdin.write(line + b"\n")
        return await self._line

    def _printed(self, stream: Stream, data: bytes) -> None:
        self.process.printed.forget()
        if stream == "stderr":
            self._errors += data[: LINE_LIMIT - len(self._errors)]
            return
        *lines, self._heard = (self._heard + data).split(b"\n")
        for line in map(bytes, lines):
            if not is_answer(line):
                said = line.decode("utf-8", "replace")
                log.warning("process %d printed what is not an answer: %.200s", self.process.child.pid, said)
            elif self._line is not None and not self._line.done():
                self._line.set_result(line)
            else:
                self._unasked += line[: LINE_LIMIT - len(self._unasked)] + b"\n"
        if len(self._heard) > LINE_LIMIT:
            self._fail(f"printed a line of more than {LINE_LIMIT:,} bytes")

    def _fail(self, problem: str) -> None:
        if self._line is not None and not self._line.done():
            self._line.set_exception(HookFailed(problem, stderr=self._errors.decode("utf-8", "replace")))

    def _died(self, task: asyncio.Task[object]) -> None:
        exit_ = self.process.child.exit
        self._fail(f"ended without an answer (exit code {exit_.result() if exit_.done() else None})")
        if not task.cancelled():
            task.exception()

    async def end(self) -> None:
        self._task.cancel()
        await asyncio.wait((self._task,))


class Persistent:
    """One process that stays."""

    def __init__(self, spec: ProcessSpec) -> None:
        self._spec = spec
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
            self._live = await _Live().start(self._spec)
        except OSError as error:
            self._note_failure()
            raise not_started(self._spec, error) from None
        return self._live

    def _note_failure(self) -> None:
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (self._failures - 1)) if self._failures else 0.0
        self._failures += 1
        self._not_before = asyncio.get_running_loop().time() + pause

    async def aclose(self) -> None:
        """End the process, TERM first, then KILL."""
        self._closed = True
        live, self._live = self._live, None
        if live is not None:
            await live.end()
