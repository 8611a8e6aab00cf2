"""The two ends of a conversation: the protocol, the pipe, and what waits on either side of them.

The CLI's end, for an agent that a host drives over stdin and stdout:

channel = CliChannel(write)
channel.received(chunk) … channel.ended()     the reader of stdin feeds it
await channel.next()                          what the host says or asks, in order; None once it is gone
await channel.ask(HookCallback(…))            what the host answers; cancelling this takes the question back
channel.answer(request_id, {…})               our answer to what it asked
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from hookline.core.engine import HookSet
from hookline.errors import BadLine, ClaudeError, CliDied, CliProtocolError, CliSilent, HostGone, RequestRefused
from hookline.hosts.claude_code import messages as wire
from hookline.hosts.claude_code.mcp import InProcess
from hookline.hosts.claude_code.process import PeerExit, Transport
from hookline.hosts.claude_code.protocol import LINE_LIMIT, Connection
from hookline.hosts.claude_code.requests import Answering, CanUse

log: logging.Logger = logging.getLogger("hookline.hosts.claude_code")

NOISE_ALLOWED = 1000  # lines on stdout that are no JSON at all, in a row: a stray print is logged, a flood is an error
ANSWER_WITHIN = 60.0
LINGER = 600.0  # seconds a finished run may stay busy in the background before its input is closed


class Channel:
    """What both ends do alike: wait for the answers to what they asked."""

    def __init__(self, connection: Connection, write: Callable[[bytes], None]) -> None:
        self._connection, self._write = connection, write
        self._asked: dict[str, asyncio.Future[wire.Success | wire.Failure]] = {}

    async def exchange(self, request: wire.Request | wire.OtherRequest) -> wire.Success | wire.Failure:
        """The peer's answer; cancelling this takes the question back."""
        asked = self._connection.ask(request)
        line = self._connection.send(asked)  # raises for a callback that a second `initialize` took away
        future: asyncio.Future[wire.Success | wire.Failure] = asyncio.get_running_loop().create_future()
        self._asked[asked.request_id] = future
        self._write(line)
        try:
            return await future
        except asyncio.CancelledError:
            self._write(self._connection.send(wire.ControlCancel(asked.request_id)))
            raise
        finally:
            del self._asked[asked.request_id]

    def _answered(self, answer: wire.Success | wire.Failure) -> None:
        future = self._asked.get(answer.request_id)
        if future is not None and not future.done():
            future.set_result(answer)

    def _fail_asked(self, problem: ClaudeError) -> None:
        for future in self._asked.values():
            if not future.done():
                future.set_exception(problem)

    def _flush(self) -> None:
        if owed := self._connection.outgoing():
            self._write(owed)


class CliChannel(Channel):
    """The CLI's end; `also` names the control requests that are served besides the protocol's own."""

    def __init__(self, write: Callable[[bytes], None], *, also: Collection[str] = ()) -> None:
        super().__init__(Connection("cli", also=also), write)
        self._said: asyncio.Queue[wire.ControlRequest | wire.UserMessage | None] = asyncio.Queue()
        self.gone: bool = False

    def received(self, data: bytes) -> None:
        for message in self._connection.receive(data):
            if isinstance(message, wire.Success | wire.Failure):
                self._answered(message)
            elif isinstance(message, wire.ControlRequest | wire.UserMessage):
                self._said.put_nowait(message)
            elif isinstance(message, wire.Violation):
                log.warning("the host broke the protocol: %s", message.error)
        self._flush()

    def ended(self) -> None:
        """The host closed its end: it answers nothing more, and nothing more will come."""
        self.gone = True
        for late in self._connection.end():
            log.warning("the host broke the protocol: %s", late.error)
        self._fail_asked(HostGone())
        self._said.put_nowait(None)

    async def next(self) -> wire.ControlRequest | wire.UserMessage | None:
        """The next thing the host says or asks; None once it is gone."""
        return await self._said.get()

    async def ask(self, request: wire.Request | wire.OtherRequest) -> Any:
        """The host's answer, decoded; raises `RequestRefused` for an error, `HostGone` when it cannot answer."""
        if self.gone:
            raise HostGone
        answer = await self.exchange(request)
        if isinstance(answer, wire.Failure):
            raise RequestRefused("host", answer.error, answer.error_code)
        try:
            return msgspec.json.decode(answer.response)
        except (msgspec.DecodeError, RecursionError) as problem:
            raise RequestRefused("host", f"an answer that cannot be read ({problem})") from None

    def say(self, note: Mapping[str, Any]) -> None:
        self._write(self._connection.send(wire.Message(str(note.get("type", "")), msgspec.json.encode(note))))

    def answer(self, request_id: str, response: Mapping[str, Any] | None = None) -> None:
        self._write(self._connection.send(wire.Success(request_id, Raw(msgspec.json.encode(response or {})))))

    def refuse(self, request_id: str, error: str, code: str | None = None) -> None:
        """Say why what the host asked cannot be done."""
        self._write(self._connection.send(wire.Failure(request_id, error, code)))


class HostChannel(Channel):
    """The host's end: takes bytes from the transport, hands requests to `answering` and keeps messages for `next`."""

    def __init__(
        self, transport: Transport, *, hooks: HookSet | None = None, can_use_tool: CanUse | None = None,
        servers: Mapping[str, InProcess] | None = None, line_limit: int = LINE_LIMIT, linger: float = LINGER,
    ) -> None:  # fmt: skip
        super().__init__(Connection("host", line_limit=line_limit), transport.write)
        self._transport = transport
        self.answering: Answering = Answering(self._connection, transport.write, hooks, can_use_tool, servers)
        self._inbox: asyncio.Queue[wire.Message | None] = asyncio.Queue()
        self.run: RunTracker = RunTracker(self._end_input, linger)
        self.ends_session: bool = False
        """Whether the CLI asks about SessionEnd, which it can only while its stdin is open."""
        self._leaving: asyncio.Task[None] | None = None
        self._noise: list[bytes] = []
        self._garbled: BadLine | None = None
        self._ending: asyncio.Task[None] | None = None
        self._error: ClaudeError | None = None
        self._over = False

    async def request(self, request: wire.Request | wire.OtherRequest, within: float = ANSWER_WITHIN) -> dict[str, Any]:
        self._check_open()
        subtype = request.subtype if isinstance(request, wire.OtherRequest) else str(request.__struct_config__.tag)
        try:
            async with asyncio.timeout(within):
                answer = await self.exchange(request)
        except TimeoutError:
            problem = f"the CLI gave no answer to `{subtype}` within {within:g} s"
            raise CliSilent(problem, None, self._transport.stderr) from None
        if isinstance(answer, wire.Failure):
            raise RequestRefused(subtype, answer.error, answer.error_code)
        return answer.data()

    async def next(self) -> wire.Message | None:
        """The next message; `None` after the last; raises what ended the conversation."""
        message = await self._inbox.get()
        if message is None:
            self._inbox.put_nowait(None)  # the end is the same for whoever comes next
            if self._error is not None:
                raise self._error
        return message

    async def say(self, message: wire.UserMessage) -> None:
        """Send a prompt; waits while the CLI is slow to read."""
        self._check_open()
        self.run.prompted()
        self._write(self._connection.send(message))
        await self._transport.drain()

    def _end_input(self) -> None:
        if self.ends_session:
            self._leaving = self._leaving or asyncio.get_running_loop().create_task(self._end_session())
        else:
            self._transport.end_input()

    async def _end_session(self) -> None:
        """Have a CLI that asks about SessionEnd ask now, then close its stdin."""
        self.ends_session = False
        try:
            await self.request(wire.OtherRequest.of("end_session"))
        except ClaudeError as problem:  # it has ended already, and said why to its listeners
            log.debug("the session could not be ended in good order: %s", problem)
        self._transport.end_input()

    async def aclose(self) -> None:
        if self.ends_session:
            await self._end_session()
        elif self._leaving is not None:
            await self._leaving
        self.run.close()
        await self.answering.aclose()
        self._over = True
        await self._transport.close()
        self._inbox.put_nowait(None)

    def _check_open(self) -> None:
        if self._error is not None:
            raise self._error
        if self._over:
            raise ClaudeError("the conversation is over; start a new client")

    def received(self, data: bytes) -> None:
        if self._over or self._garbled is not None:
            return
        for message in self._connection.receive(data):
            if message.__class__ is wire.ControlRequest:
                self.answering.waiting.append(message)
            elif isinstance(message, wire.Message):
                self._said(message)
            elif isinstance(message, wire.Success | wire.Failure):
                self._answered(message)
            elif isinstance(message, wire.ControlCancel):
                self.answering.cancel(message.request_id)
            elif isinstance(message, wire.Violation):
                self._violated(message)
        self.answering.wake()
        self._flush()

    def _said(self, message: wire.Message) -> None:
        self._noise.clear()
        if message.type == "hook_event":
            self.answering.event_line(message.line)
        elif self.run.heard(message):
            self._inbox.put_nowait(message)

    def _violated(self, violation: wire.Violation) -> None:
        error = violation.error
        if not isinstance(error, BadLine):
            log.warning("the CLI broke the protocol: %s", error)
        elif error.kind == "cut_off":
            self._garbled = self._garbled or error
        elif error.kind == "too_long" or (error.kind == "not_json" and error.line.lstrip().startswith(b"{")):
            self._give_up(error)
        else:
            log.warning("the CLI printed something that is not a message: %s", error)
            self._noise.append(error.line)
            if len(self._noise) > NOISE_ALLOWED:
                flood = f"more than {NOISE_ALLOWED} lines in a row are not messages"
                self._give_up(BadLine(error.kind, flood, error.line))

    def _give_up(self, problem: BadLine) -> None:
        """The stream can no longer be trusted: end the CLI; `ended` then tells everybody, with its exit code."""
        if self._garbled is None:
            self._garbled = problem
            self._ending = asyncio.get_running_loop().create_task(self._transport.close(0.0))

    def ended(self, exit: PeerExit) -> None:
        """The CLI is gone: no caller is left waiting."""
        for late in self._connection.end():
            self._violated(late)
        if not self._over:
            self._error = self._why(exit)
        self._over = True
        self.run.close()
        self.answering.stop()
        self._fail_asked(self._error or CliDied("the CLI ended", exit.code, exit.stderr))
        self._inbox.put_nowait(None)

    def _why(self, exit: PeerExit) -> ClaudeError | None:
        """What is wrong with how it ended; `None` if nothing is."""
        if self._garbled is not None and self._garbled.kind == "cut_off":
            return CliDied("the CLI died in the middle of a line", exit.code, exit.stderr)
        if self._garbled is not None:
            problem = f"the CLI printed lines that are not messages: {self._garbled}"
            return CliProtocolError(problem, exit.code, exit.stderr)
        if not self._asked and not self.run.open and (exit.code == 0 or self.run.finished):
            return None  # after an error result the CLI ends with exit code 1 on purpose
        printed = self._noise[-1].decode("utf-8", "replace")[:200] if self._noise else ""
        said = f"; it printed `{printed}`" if printed else ""
        return CliDied(f"the CLI ended before it answered{said}", exit.code, exit.stderr)


class RunTracker:
    """Knows when a run is over: its result has come and the CLI reports no more work of its own (`idle`)."""

    def __init__(self, end_input: Callable[[], None], linger: float) -> None:
        self._end_input = end_input
        self._linger = linger
        self._state: str | None = None
        self._last_prompt = False
        self._timer: asyncio.TimerHandle | None = None
        self.open: bool = False  # a prompt without its result
        self.finished: bool = False  # the last thing said was a result

    def prompted(self) -> None:
        self.open = True
        self._disarm()

    def end_when_done(self) -> None:
        """No more prompts: close the CLI's stdin, once the run it is busy with is over."""
        self._last_prompt = True
        self._settle()

    def heard(self, message: wire.Message) -> bool:
        """Takes note; False when the message is meant for the host alone."""
        told = True
        changed = isinstance(message, wire.SystemMessage) and b"session_state_changed" in message.line
        if changed and message.get("subtype", "") == "session_state_changed":
            self._state = message.get("state", "")
            told = message.data.get("sdk_host_only") is not True
        else:
            self.finished = isinstance(message, wire.ResultMessage)
        if isinstance(message, wire.ResultMessage):
            self.open = False
        self._settle()
        return told

    def close(self) -> None:
        self._last_prompt = False
        self._disarm()

    def _settle(self) -> None:
        if not self._last_prompt or self.open:
            self._disarm()
        elif self._state in (None, "idle"):
            self.close()
            self._end_input()
        elif self._timer is None and self._state != "requires_action":
            self._timer = asyncio.get_running_loop().call_later(self._linger, self._end_input)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
