"""Answers what the CLI asks of the host: hooks, permissions, in-process tools.

Requests are served as they come, each in the task that will finish it. One task serves request after request for as
long as none has to wait; when one waits, another task takes the rest over. So a burst of quick hooks costs one task,
and a slow hook holds no other up.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from hookline.core.engine import Engine, HookSet
from hookline.core.engine.coroutine_driver import UNWANTED
from hookline.core.engine.engine import FiresAsync
from hookline.core.engine.select import select
from hookline.core.wire import claude
from hookline.errors import RequestClosed
from hookline.events import Event, PermissionRequest
from hookline.hosts.answer import LineCodec, fails_closed, refusal
from hookline.hosts.answer import answer as answer_hooks
from hookline.hosts.claude_code.mcp import InProcess
from hookline.hosts.claude_code.messages import EMPTY, CanUseTool, ControlRequest, Failure, HookCallback, McpMessage
from hookline.hosts.claude_code.protocol import Connection
from hookline.hosts.claude_code.registration import Registration
from hookline.hosts.gateway import messages as jsonrpc
from hookline.replies import NOTHING, Decision, Reply, deny

log: logging.Logger = logging.getLogger("hookline.hosts.claude_code")

Permission = Reply | bool | Mapping[str, Any] | None
CanUse = Callable[[CanUseTool], Awaitable[Permission]]


class Answering:
    """Serves requests: hooks, `can_use_tool` and `servers` answer what is asked of them."""

    def __init__(
        self, connection: Connection, write: Callable[[bytes], None], hooks: HookSet | None = None,
        can_use_tool: CanUse | None = None, servers: Mapping[str, InProcess] | None = None,
    ) -> None:  # fmt: skip
        self.plan: Registration = Registration()
        self._codecs: dict[str, CallbackCodec] = {}
        self._connection = connection
        self._write = write
        self._out: list[bytes] = []
        self._hooks: FiresAsync = hooks or Engine()
        self._permissions = PermissionHooks(self._hooks)
        self._can_use_tool = can_use_tool
        self._servers = dict(servers or {})
        self.waiting: deque[ControlRequest] = deque()  # not served yet, in order
        self._serving: dict[asyncio.Task[None], str] = {}  # each task's request of the moment
        self._coming = False  # a task that will look at what waits has not begun yet
        self._serve: dict[type[Any], Callable[[Any], Awaitable[Raw]]] = {
            CanUseTool: self._decide,
            HookCallback: self._permissions.answer_callback,
            McpMessage: self._call_server,
        }

    def register(self, planned: Registration) -> None:
        """Answer these callbacks from now on, in place of the ones before."""
        self.plan = planned
        kinds = {name: kind for name, kind in planned.events.items() if kind is not PermissionRequest}
        self._codecs = {name: CallbackCodec(kind) for name, kind in kinds.items()}

    def wake(self) -> None:
        """Requests are in `waiting`: have a task look at them soon, which may find them served."""
        if self.waiting and not self._coming:
            self._coming = True
            asyncio.get_running_loop().create_task(self._work())

    def cancel(self, request_id: str) -> None:
        """The CLI no longer wants this answer: the hook is told, and stopped."""
        for task, served in self._serving.items():
            if served == request_id:
                task.cancel(UNWANTED)
                return
        for one in [one for one in self.waiting if one.request_id == request_id]:
            self.waiting.remove(one)

    def stop(self) -> list[asyncio.Task[None]]:
        """No answer is wanted any more: tell whatever still runs, and return it."""
        self.waiting.clear()
        running = [task for task in self._serving if task is not asyncio.current_task()]
        for task in running:
            task.cancel(UNWANTED)
        return running

    async def aclose(self) -> None:
        """Stop whatever still runs, and wait for it."""
        await asyncio.gather(*self.stop(), return_exceptions=True)
        for server in self._servers.values():
            await server.aclose()

    async def _work(self) -> None:
        self._coming = False
        self._flush()  # what was answered before the task that served had to wait
        task: Any = asyncio.current_task()
        waiting, serving, out, answer = self.waiting, self._serving, self._out, self._connection.answer
        try:
            while waiting:
                request = waiting.popleft()
                self.wake()
                serving[task] = request.request_id
                asked = request.request
                try:
                    if asked.__class__ is HookCallback and asked.callback_id in self._codecs:  # the busiest: no table
                        response = await answer_hooks(self._hooks, asked.input, self._codecs[asked.callback_id])
                    else:
                        response = await self._serve[asked.__class__](asked)
                    out.append(answer(request.request_id, response))
                except Exception as problem:  # noqa: BLE001 - logged and answered there
                    self._failed(request, problem)
        except asyncio.CancelledError:
            log.debug("request `%s` was cancelled", serving[task])
        finally:
            serving.pop(task, None)
        self._flush()
        self.wake()

    def _flush(self) -> None:
        if self._out:
            data = b"".join(self._out)
            self._out.clear()
            self._write(data)

    def _failed(self, request: ControlRequest, problem: Exception) -> None:
        """An answer all the same, unless it is too late for one."""
        if isinstance(problem, RequestClosed):
            log.debug("%s", problem)
            return
        if not isinstance(problem, ErrorAnswer):
            log.error("request `%s` could not be answered", request.request_id, exc_info=problem)
            problem = ErrorAnswer(f"{type(problem).__name__}: {problem}", "internal_error")
        self._out.append(self._connection.send(Failure(request.request_id, str(problem), problem.code)))

    def event_line(self, line: bytes) -> None:
        """Answer a line of type `hook_event` with one of type `hook_response`: the other way to ask (seeds/004)."""
        task = asyncio.get_running_loop().create_task(self._answer_line(line))
        self._serving[task] = ""
        task.add_done_callback(lambda done: self._serving.pop(done, None))

    async def _answer_line(self, line: bytes) -> None:
        self._write(await answer_hooks(self._hooks, line, LineCodec("message")) + b"\n")

    async def _decide(self, request: CanUseTool) -> Raw:
        if self._can_use_tool is None:
            raise ErrorAnswer("no can_use_tool was given; pass can_use_tool=", "unsupported_request")
        try:
            by_hooks = await self._permissions.decide(request)
            return Raw(msgspec.json.encode(permission(by_hooks or await self._can_use_tool(request), request)))
        except Exception as problem:
            log.exception("can_use_tool failed on `%s`", request.tool_name)
            refusal = {"behavior": "deny", "message": f"the host could not decide: {type(problem).__name__}: {problem}"}
            return Raw(msgspec.json.encode(refusal))

    async def _call_server(self, request: McpMessage) -> Raw:
        """What an in-process server answers; a notification is acknowledged."""
        try:
            message = msgspec.json.decode(request.message, type=dict[str, Any])
        except msgspec.DecodeError as problem:
            raise ErrorAnswer(f"not a JSON-RPC message: {problem}", "invalid_request") from None
        name, number = request.server_name, message.get("id")
        response = jsonrpc.error(number, jsonrpc.METHOD_NOT_FOUND, f"there is no in-process server `{name}`")
        try:
            if name in self._servers:
                response = await self._servers[name].handle(message) or {"jsonrpc": "2.0", "result": {}}
        except Exception as problem:
            log.exception("mcp server `%s` failed", name)
            response = jsonrpc.error(number, jsonrpc.INTERNAL_ERROR, f"{type(problem).__name__}: {problem}")
        return Raw(msgspec.json.encode({"mcp_response": response}))


class ErrorAnswer(Exception):
    """A request that is answered with an error; never seen outside this module."""

    def __init__(self, problem: str, code: str) -> None:
        super().__init__(problem)
        self.code = code


class CallbackCodec:
    """The words of one registered callback: which event comes is known, so it is decoded straight into its class."""

    def __init__(self, kind: type[Event]) -> None:
        self._kind = kind
        self.decode: Callable[[Any], Event] = claude.trusted_reader(kind)

    def encode(self, reply: Reply, event: Event) -> Raw:
        return EMPTY if reply is NOTHING else Raw(claude.encode_reply(reply, event))

    def refuse(self, problem: BaseException, payload: Any, event: Event | None) -> Raw:
        """A deny on a gate, where the CLI would take an error for silence; elsewhere an error."""
        reason = refusal(problem, self._kind)
        if not fails_closed(self._kind):
            raise ErrorAnswer(reason, "hook_failed")
        return Raw(claude.encode_reply(deny(reason), self._kind.event_name))


def permission(decided: Permission, request: CanUseTool) -> dict[str, Any]:
    """The host's decision in the CLI's words; a host that decides nothing denies."""
    if isinstance(decided, Mapping):
        return dict(decided)
    if isinstance(decided, bool):
        decided = Reply(decision=Decision.ALLOW if decided else Decision.DENY)
    reply = decided or NOTHING
    if reply.decision is Decision.ALLOW or (reply.decision is Decision.PASS and reply.input is not None):
        return {"updatedInput": request.input, **claude.choice(msgspec.structs.replace(reply, decision=Decision.ALLOW))}
    stops = {"interrupt": True} if reply.stop else {}
    return {**claude.choice(reply), **stops, "message": reply.reason or reply.stop_reason or "the host denied it"}


# -- what PermissionRequest hooks say to a tool call, for a host that is asked about the same call --------------------
# Claude Code sends `can_use_tool` and the PermissionRequest callback at the same moment and acts on the first answer
# (FACTS.md: sdk_permreq_race_host). So the host's own answer is held until the hooks have given theirs, and once they
# have decided it is not asked for. The two requests name the same `tool_use_id`.


ARRIVES_WITHIN = 5.0
"""Seconds in which the callback of a call must arrive; hooks whose callback does not come are asked without it."""
_MOST_CALLS = 1024  # remembered at once; a forgotten call is asked about again


_Call = tuple[asyncio.Event, asyncio.Future[Reply]]
"""Whether the callback of a tool call has come, and what the hooks said."""


class PermissionHooks:
    """The hooks of one conversation, as far as they decide on permissions."""

    def __init__(self, hooks: FiresAsync) -> None:
        self._hooks = hooks
        self._calls: dict[str, _Call] = {}

    async def answer_callback(self, request: HookCallback) -> Raw:
        """The callback's answer; waiting callers are told, also when it is cancelled."""
        codec = _PermissionCodec(PermissionRequest)
        arrived, said = self._call(request.tool_use_id or "")
        arrived.set()
        try:
            return await answer_hooks(self._hooks, request.input, codec)
        finally:
            if not said.done():
                said.set_result(codec.reply)

    async def decide(self, request: CanUseTool) -> Reply | None:
        """What the hooks decided on a call that the host is asked about, or `None` if that is for the host to say."""
        event = PermissionRequest(
            tool_name=request.tool_name, tool_input=request.input, tool_use_id=request.tool_use_id,
            agent_id=request.agent_id, permission_suggestions=request.permission_suggestions,
        )  # fmt: skip
        engine = getattr(self._hooks, "engine", None)
        if engine is None or not select(event, engine.registry.index):
            return None
        reply = await self._from_callback(request.tool_use_id)
        if reply is None:
            codec = _PermissionCodec(PermissionRequest)
            codec.decode = lambda event: event
            await answer_hooks(self._hooks, event, codec)
            reply = codec.reply
        return reply if reply.stop or reply.decision in (Decision.ALLOW, Decision.DENY) else None

    async def _from_callback(self, call_id: str | None) -> Reply | None:
        if not call_id:
            return None
        arrived, said = self._call(call_id)
        try:
            async with asyncio.timeout(ARRIVES_WITHIN):
                await arrived.wait()
        except TimeoutError:
            return None
        try:
            return await asyncio.shield(said)
        finally:
            self._calls.pop(call_id, None)

    def _call(self, call_id: str) -> _Call:
        call = self._calls.get(call_id)
        if call is None:
            if len(self._calls) >= _MOST_CALLS:
                self._calls.pop(next(iter(self._calls)))
            call = self._calls[call_id] = (asyncio.Event(), asyncio.get_running_loop().create_future())
        return call


class _PermissionCodec(CallbackCodec):
    """Remembers in `reply` what was answered, which is a deny until then."""

    reply: Reply = deny("the hooks' answer was no longer waited for")

    def encode(self, reply: Reply, event: Event) -> Raw:
        self.reply = reply
        return super().encode(reply, event)

    def refuse(self, problem: BaseException, payload: Any, event: Event | None) -> Raw:
        self.reply = deny(refusal(problem, PermissionRequest))
        return super().refuse(problem, payload, event)
