"""The gateway between a client and a server: what either sends goes in, what the other gets comes out.

A tool call is PreToolUse, its result PostToolUse; what the server asks of the user or of the model is an event, too.
Everything else passes as it is. A call that cannot be judged is refused, a result that cannot be judged is withheld.
The client is on stdio, or at an address (`listen`); the server is a program on pipes, or at an address (`http`).
"""

import asyncio
import contextlib
import logging
import os
import select
import sys
import threading
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from functools import partial
from shutil import which
from typing import Any, Protocol, Self

import msgspec

from hookline.core.engine.engine import FiresAsync
from hookline.display import one_line
from hookline.errors import ConfigError, EventError
from hookline.events import SessionEnd, SessionStart
from hookline.hosts.gateway import messages as wire
from hookline.hosts.gateway.judging import CallJudge, HostNotes, Judge, ServerCall, ServerQuestions
from hookline.hosts.gateway.messages import Id, Message
from hookline.hosts.gateway.pins import LoginNeeded, OwnRequests, Pins, Send, ToolList, offer
from hookline.processes.loop import read_lines
from hookline.processes.service.client import write_all
from hookline.processes.spawn import Child, ProcessSpec, spawn
from hookline.processes.tree import Group, new_marker

log: logging.Logger = logging.getLogger("hookline.mcp")
_DESCRIBES = ("initialize", "server/discover", "tools/list")
_AT_ONCE = 4096  # what a pipe that can be written to takes without waiting
_GRACE = 2.0
_LAST_ANSWERS = 10.0


class OpenRequest(msgspec.Struct, eq=False):
    """A request of the client that is not answered yet; `work` judges it or its answer."""

    id: Id
    message: Message
    call: ServerCall | None = None
    work: asyncio.Task[None] | None = None

    @property
    def method(self) -> str:
        return str(self.message["method"])

    @property
    def params(self) -> dict[str, Any]:
        return wire.params_of(self.message)


class Upstream(Protocol):
    """A server that can be reached; `receive` goes on until it is gone, `close` says how it ended."""

    async def send(self, message: Message) -> None: ...
    def receive(self) -> AsyncIterator[Message]: ...
    async def close(self) -> str: ...


class Gateway:
    """One client, one server, and the hooks between them: `open` it, hand it the client's messages, and `close` it.

    `from_client` and `from_server` take one message each and return soon: what has to wait for hooks goes on by itself.
    """

    pump: asyncio.Task[None]
    """Takes what the server sends; is done when the server is gone, and then the gateway is to be closed."""

    def __init__(
        self, hooks: FiresAsync, name: str, pins: Pins, to_client: Send, server: Upstream, *,
        ask_seconds: float = 120.0, host: HostNotes | None = None,
    ) -> None:  # fmt: skip
        self._pins, self._to_client, self._server = pins, to_client, server
        self._judge = Judge(hooks, name, ask_seconds)
        self._open: dict[Id | None, OpenRequest] = {}
        self.idle: asyncio.Event = asyncio.Event()  # whether every request of the client is answered
        self.idle.set()
        self._own = OwnRequests(name)
        self._tools = ToolList(self._own, server.send, pins, name)
        self._questions = ServerQuestions(self._judge, to_client, server.send, self._start)
        elicit = partial(self._own.ask, to_client, "elicitation/create")
        self._calls = CallJudge(self._judge, pins, self._questions, elicit, host)
        self._work: set[asyncio.Task[None]] = set()
        self._end: asyncio.Task[str] | None = None

    async def open(self) -> Self:
        """Begin; the hooks are told first."""
        await self._judge.tell(SessionStart)
        self.pump = asyncio.create_task(self._serve_server())
        return self

    async def _serve_server(self) -> None:
        async for message in self._server.receive():
            await _pass_on(message, self.from_server)

    async def close(self) -> str:
        """End the server, and answer what is under way with an error; how it ended. Safe to call twice."""
        self._end = self._end or asyncio.create_task(self._close())
        return await asyncio.shield(self._end)

    async def _close(self) -> str:
        how = await self._server.close()
        await asyncio.wait({self.pump}, timeout=_GRACE)
        self._tools.forget()
        for task in [*self._work]:
            task.cancel()
        for key in list(self._open):
            await self._answer(key, wire.error(key, wire.INTERNAL_ERROR, how))
        await self._judge.tell(SessionEnd)
        self.pump.cancel()
        return how

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        return task

    async def _answer(self, key: Id | None, message: Message) -> None:
        """Send the client its answer, unless the request was cancelled meanwhile."""
        if key in self._open:
            await self._to_client(message)
            self._forget(key)

    def _forget(self, key: Id | None) -> OpenRequest | None:
        """The client does not wait for this one any longer."""
        gone = self._open.pop(key, None)
        if not self._open:
            self.idle.set()
        return gone

    async def from_client(self, message: Message) -> None:
        method, key = message.get("method"), wire.id_of(message)
        if method is None:
            if not self._own.take(key, message) and not self._questions.answered(key, message):
                log.warning("the client answered `%s`, which was not asked", key)
        elif "id" not in message:
            await self._client_notified(message)
        elif key is None:
            await self._to_client(wire.error(key, wire.INVALID_REQUEST, "expected a method and an id"))
        elif key in self._open:
            await self._to_client(wire.error(key, wire.INVALID_REQUEST, f"a request with the id `{key}` is under way"))
        else:
            self._open[key] = asked = OpenRequest(key, message)
            self.idle.clear()
            self._questions.in_a_row = 0
            await self._client_asked(asked)

    async def _client_notified(self, message: Message) -> None:
        gone = None
        if message["method"] == "notifications/cancelled":
            gone = self._forget(wire.id_of(wire.params_of(message), "requestId"))
        if gone is not None and gone.work is not None:
            gone.work.cancel()  # it is not with the server: not yet, or not any more
        elif not message["method"].startswith("notifications/"):  # a server could run it, and it was not judged
            log.warning("the client sent `%s` without an id", message["method"])
        else:
            await self._server.send(message)

    async def _client_asked(self, asked: OpenRequest) -> None:
        method, params = asked.method, asked.params
        is_call, has_name = method == "tools/call", isinstance(params.get("name"), str)
        if is_call and not (has_name and isinstance(params.get("arguments"), dict | None)):
            why = "expected a `name`, and `arguments` as an object"
            await self._answer(asked.id, wire.error(asked.id, wire.INVALID_PARAMS, why))
        elif is_call or method == "tools/list" or "inputResponses" in params:
            asked.work = self._start(self._admit(asked))
        else:
            if method == "initialize" and isinstance(params.get("capabilities"), dict):
                self._calls.declared = params["capabilities"]
            if method in ("tasks/get", "tasks/result") and isinstance(params.get("taskId"), str):
                asked.call = self._calls.tasks.get(params["taskId"])
            await self._server.send(asked.message)

    async def _admit(self, asked: OpenRequest) -> None:
        """Send a request on once the tools are compared with the pins, and what it says is judged; or answer it."""
        method, answer = asked.method, None
        try:
            if method in ("tools/call", "tools/list"):
                await self._tools.ensure(asked.params)
            if method == "tools/call":
                answer = await self._judge_call(asked)
            elif (problem := await self._questions.judge_answers(asked.params)) is not None:
                answer = wire.error(asked.id, wire.INTERNAL_ERROR, f"`{method}` was refused: {problem}")
        except LoginNeeded as login:
            answer = {"jsonrpc": "2.0", "id": asked.id, "error": login.args[0]}
        except Exception as failed:  # noqa: BLE001 - whatever it was, the call must not run, the tools not be offered
            why = f"`{method}` was refused: it could not be compared with the pins: {failed}"
            if method == "tools/call":
                why = f"`{asked.params['name']}` was denied: it could not be judged: {failed}"
                log.warning("`%s` could not be judged: %s", asked.params["name"], failed)
            answer = wire.refused(asked.id, asked.params, why, is_call=method == "tools/call")
        if answer is not None:
            await self._answer(asked.id, answer)
        else:
            asked.work = None
            await self._server.send(asked.message)

    async def _judge_call(self, asked: OpenRequest) -> Message | None:
        """The answer to a call that the server does not get; else the call is left as the server gets it."""
        given = asked.params.get("arguments")
        call = ServerCall(asked.id, asked.params, asked.params["name"], given or {}, given or {})
        outcome = await self._calls.admit(call)
        if isinstance(outcome, str):
            return wire.refused(asked.id, asked.params, outcome, is_call=True)
        if outcome is not None:
            return wire.result(asked.id, outcome)
        is_bare = given is None and not call.judged
        sent = call.params if is_bare else {**call.params, "arguments": call.judged}
        asked.call, asked.message = call, {**asked.message, "params": sent}
        return None

    async def from_server(self, message: Message) -> None:
        method, key = message.get("method"), wire.id_of(message)
        waiting = self._open.get(key)
        if method is None and self._own.take(key, message):
            return
        if method is None and waiting is not None and waiting.work is None:
            waiting.work = self._start(self._return(waiting, message))
        elif method is None:
            log.warning("the server answered `%s`, which was not asked", key)
        elif "id" in message:
            if key is not None:
                await self._questions.asked(key, message)
        else:
            if method == "notifications/tools/list_changed":
                self._tools.forget()
            await self._to_client(message)

    async def _return(self, waiting: OpenRequest, message: Message) -> None:
        """Judge an answer where it has to be, and hand it to the client."""
        try:
            value = message.get("result")
            if isinstance(value, dict) and value.get("resultType") == "input_required":
                message = await self._calls.pass_questions(waiting.id, waiting.call, waiting.params, value)
            elif waiting.call is not None:
                message = await self._calls.judge_result(waiting.id, waiting.call, message)
            elif isinstance(value, dict) and waiting.method in _DESCRIBES:
                message = {**message, "result": offer(self._pins, value)}
        except Exception as problem:  # noqa: BLE001 - what cannot be judged is withheld
            log.warning("an answer to `%s` is withheld: %s", waiting.method, problem)
            why = f"the result is withheld: it could not be judged: {problem}"
            message = wire.refused(waiting.id, waiting.params, why, is_call=waiting.call is not None)
        await self._answer(waiting.id, message)


class Pipe:
    """The writing end of a pipe: whole lines, in order, without holding up the loop when the reader is slow."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._turn = asyncio.Lock()

    async def send(self, message: Message) -> None:
        """Write one message; a reader that has left misses it."""
        data = wire.encode_message(message)
        async with self._turn:
            with contextlib.suppress(OSError):  # closed by its reader, or by us
                if len(data) <= _AT_ONCE and sys.platform != "win32" and select.select([], [self._fd], [], 0)[1]:
                    os.write(self._fd, data)
                else:
                    await asyncio.to_thread(write_all, self._fd, data)


class ServerProgram:
    """A server that is started here; what it writes to stderr goes to ours."""

    def __init__(self, child: Child, marker: str) -> None:
        self._child, self._group = child, Group(child.pid, marker)
        for fd in (child.stdin, child.stdout, child.stderr):
            os.set_blocking(fd, True)
        self._pipe: Pipe | None = Pipe(child.stdin)
        threading.Thread(target=_copy, args=(child.stderr, 2), daemon=True).start()

    @classmethod
    async def start(cls, command: Sequence[str], env: Mapping[str, str]) -> Self:
        """Start it; one that cannot be started is a `ConfigError`."""
        program = which(command[0], path=env.get("PATH")) or command[0]
        spec = ProcessSpec(argv=(program, *command[1:]), env=env, marker=new_marker())
        try:
            return cls(await spawn(spec), spec.marker)
        except OSError as problem:
            raise ConfigError(one_line(command[0]), f"the server could not be started: {problem.strerror}") from None

    async def send(self, message: Message) -> None:
        if self._pipe is not None:
            await self._pipe.send(message)

    async def receive(self) -> AsyncIterator[Message]:
        """Its messages; what else it prints is said on stderr."""
        with os.fdopen(self._child.stdout, "rb", buffering=0) as stdout:
            async for line in read_lines(stdout.fileno(), wire.MOST_BYTES):
                if len(line) > wire.MOST_BYTES:
                    log.error("the server sent a message of more than %d bytes", wire.MOST_BYTES)
                    return
                try:
                    messages = wire.read_messages(line)
                except EventError:
                    log.warning("the server printed: %s", one_line(line.decode(errors="replace"), 200))
                    continue
                for message in messages:
                    yield message

    async def close(self) -> str:
        """Close its stdin, wait, then end it and all that it started."""
        if self._pipe is not None:
            self._pipe = None
            os.close(self._child.stdin)
        if self._child.look is not None:
            self._child.look()
        await asyncio.wait([self._child.exit], timeout=_GRACE)
        await self._group.end(self._child.exit)
        return f"the server has ended (exit code {await self._child.exit})"


def _copy(source: int, sink: int) -> None:
    with contextlib.suppress(OSError), os.fdopen(source, "rb", buffering=0) as stderr:
        while data := stderr.read(65536):
            os.write(sink, data)


async def serve(gateway: Gateway, client: Pipe, source: int) -> bool:
    """Serve a client that writes to `source` until it leaves or the server is gone; whether it was the client."""
    await gateway.open()
    from_client = asyncio.create_task(_serve_client(gateway, client, source))
    try:
        await asyncio.wait({from_client, gateway.pump}, return_when=asyncio.FIRST_COMPLETED)
        has_left = not gateway.pump.done()
        if has_left:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(gateway.idle.wait(), _LAST_ANSWERS)
        how = await gateway.close()
        if not has_left:
            log.error("%s", how)
        return has_left
    finally:
        from_client.cancel()
        await gateway.close()


async def _serve_client(gateway: Gateway, client: Pipe, source: int) -> None:
    async for line in read_lines(source, wire.MOST_BYTES):
        try:
            messages = wire.read_messages(line)
        except EventError as problem:
            await client.send(wire.error(None, wire.PARSE_ERROR, str(problem)))
            continue
        for message in messages:
            await _pass_on(message, gateway.from_client)


async def _pass_on(message: Message, take: Send) -> None:
    try:
        await take(message)
    except EventError as problem:  # it cannot be written as JSON
        log.warning("a message is lost: %s", problem)
