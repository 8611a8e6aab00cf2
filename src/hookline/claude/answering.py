"""Answers what the CLI asks of the host: hooks, permissions, in-process tools.

Requests are served as they come, each in the task that will finish it. One task serves request after request for as
long as none has to wait; when one waits, another task takes the rest over. So a burst of quick hooks costs one task,
and a slow hook holds nobody up.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import msgspec
from msgspec import Raw

from hookline.claude.callbacks import Plan
from hookline.claude.mcp import INTERNAL_ERROR, METHOD_NOT_FOUND, InProcess, rpc_error
from hookline.claude.messages import EMPTY, CanUseTool, ControlRequest, Failure, HookCallback, McpMessage, Success
from hookline.engine import Engine, Verdict
from hookline.events import Event, spec_of
from hookline.replies import NOTHING, Decision, Reply, deny
from hookline.wire import claude

log = logging.getLogger("hookline.claude")

Answer = Success | Failure
Permission = Reply | bool | Mapping[str, Any] | None
CanUse = Callable[[CanUseTool], Awaitable[Permission]]


class Outbox(Protocol):
    """Where answers go: `reply` is told of each, `flush` when no more are coming at once."""

    def reply(self, answer: Answer) -> None: ...

    def flush(self) -> None: ...


class Answering:
    """Serves requests; `plan` may be replaced while it runs (a second `initialize`)."""

    def __init__(self, outbox: Outbox) -> None:
        self.plan = Plan({}, {})
        self._outbox = outbox
        self._engine: Engine | None = None
        self._can_use_tool: CanUse | None = None
        self._servers: dict[str, InProcess] = {}
        self._waiting: deque[ControlRequest] = deque()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._relief_comes = False
        self._serve: dict[type[Any], Callable[[str, Any], Awaitable[Answer]]] = {
            HookCallback: self._hook,
            CanUseTool: self._permission,
            McpMessage: self._mcp,
        }

    def serve(
        self,
        *,
        engine: Engine | None = None,
        can_use_tool: CanUse | None = None,
        servers: Mapping[str, InProcess] | None = None,
    ) -> None:
        """Who answers what."""
        self._engine = engine
        self._can_use_tool = can_use_tool
        self._servers = dict(servers or {})

    # ── requests in, answers out ────────────────────────────────────────────────────────────────

    def put(self, request: ControlRequest) -> None:
        """Serve this request soon."""
        self._waiting.append(request)
        self._relief()

    def cancel(self, request_id: str) -> None:
        """The CLI no longer wants this answer: the hook is told, and stopped."""
        task = self._running.get(request_id)
        if task is not None:
            task.cancel()
            return
        self._waiting = deque(one for one in self._waiting if one.request_id != request_id)

    async def aclose(self) -> None:
        """Stop whatever still runs."""
        self._waiting.clear()
        running = set(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for server in self._servers.values():
            await server.aclose()

    def _relief(self) -> None:
        if not self._relief_comes:
            self._relief_comes = True
            asyncio.get_running_loop().call_soon(self._relieve)

    def _relieve(self) -> None:
        """Whoever served before has to wait, or there was nobody: let another task go on."""
        self._relief_comes = False
        self._outbox.flush()
        if self._waiting:
            asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        while self._waiting:
            request = self._waiting.popleft()
            if self._waiting:
                self._relief()
            self._running[request.request_id] = task
            try:
                answer = await self._answered(request)
            except asyncio.CancelledError:
                self._relief()
                return
            finally:
                del self._running[request.request_id]
            self._outbox.reply(answer)
        self._outbox.flush()

    async def _answered(self, request: ControlRequest) -> Answer:
        try:
            return await self._serve[type(request.request)](request.request_id, request.request)
        except Exception as problem:
            log.exception("request `%s` could not be answered", request.request_id)
            return Failure(request.request_id, f"{type(problem).__name__}: {problem}", "internal_error")

    # ── hooks ───────────────────────────────────────────────────────────────────────────────────

    async def _hook(self, request_id: str, request: HookCallback) -> Answer:
        kind = self.plan.events[request.callback_id]
        assert self._engine is not None
        try:
            event = claude.decode_event(bytes(request.input))
            return Success(request_id, encoded(await self._engine.fire(event)))
        except Exception as problem:
            log.exception("hooks on %s could not be asked", kind.event_name)
            return failed_closed(request_id, kind, problem)

    # ── permissions ─────────────────────────────────────────────────────────────────────────────

    async def _permission(self, request_id: str, request: CanUseTool) -> Answer:
        if self._can_use_tool is None:
            return Failure(request_id, "no can_use_tool was given; pass can_use_tool=", "unsupported_request")
        try:
            decided = await self._can_use_tool(request)
            return Success(request_id, Raw(msgspec.json.encode(permission(decided, request))))
        except Exception as problem:
            log.exception("can_use_tool failed on `%s`", request.tool_name)
            refusal = {"behavior": "deny", "message": f"the host could not decide: {type(problem).__name__}: {problem}"}
            return Success(request_id, Raw(msgspec.json.encode(refusal)))

    # ── in-process tools ────────────────────────────────────────────────────────────────────────

    async def _mcp(self, request_id: str, request: McpMessage) -> Answer:
        message = msgspec.json.decode(request.message, type=dict[str, Any])
        server = self._servers.get(request.server_name)
        if server is None:
            problem = f"there is no in-process server `{request.server_name}`"
            response: dict[str, Any] | None = rpc_error(message.get("id"), METHOD_NOT_FOUND, problem)
        else:
            response = await self._served(request.server_name, server, message)
        acknowledged = response if response is not None else {"jsonrpc": "2.0", "result": {}}
        return Success(request_id, Raw(msgspec.json.encode({"mcp_response": acknowledged})))

    async def _served(self, name: str, server: InProcess, message: dict[str, Any]) -> dict[str, Any] | None:
        try:
            return await server.handle(message)
        except Exception as problem:
            log.exception("mcp server `%s` failed", name)
            return rpc_error(message.get("id"), INTERNAL_ERROR, f"{type(problem).__name__}: {problem}")


def answer_of(verdict: Verdict) -> Reply:
    """What to tell the CLI; what is blocked here is denied there, even where the CLI would go on."""
    reply = verdict.reply
    if verdict.blocked and reply.decision is not Decision.DENY:
        return reply | deny(verdict.reason)  # the CLI runs the tool after a mere `continue: false` (FACTS §3)
    return reply


def encoded(verdict: Verdict) -> Raw:
    """A verdict as the callback's answer."""
    if verdict.reply is NOTHING:
        return EMPTY
    return Raw(claude.encode_reply(answer_of(verdict), verdict.event))


def failed_closed(request_id: str, event: type[Event], problem: Exception) -> Answer:
    """A gate answers a crash with a deny, because the CLI takes an error for silence; elsewhere it is an error."""
    said = f"hooks could not be asked: {type(problem).__name__}: {problem}"
    if spec_of(event).gate:
        refusal = deny(f"{said}; {event.event_name} fails closed")
        return Success(request_id, Raw(claude.encode_reply(refusal, event.event_name)))
    return Failure(request_id, said, "hook_failed")


def permission(decided: Permission, request: CanUseTool) -> dict[str, Any]:
    """The host's decision in the CLI's words; a host that decides nothing denies."""
    if isinstance(decided, Mapping):
        return dict(decided)
    if isinstance(decided, bool):
        decided = Reply(decision=Decision.ALLOW if decided else Decision.DENY)
    reply = decided or NOTHING
    if reply.decision is Decision.ALLOW or (reply.decision is Decision.PASS and reply.input is not None):
        judged = request.input if reply.input is None else reply.input
        allowed: dict[str, Any] = {"behavior": "allow", "updatedInput": judged}
        if reply.specific is not None and reply.specific.updated_permissions:
            allowed["updatedPermissions"] = list(reply.specific.updated_permissions)
        return allowed
    interrupt = reply.stop or (reply.specific is not None and reply.specific.interrupt)
    denied = {"behavior": "deny", "message": reply.reason or reply.stop_reason or "the host denied it"}
    return {**denied, "interrupt": True} if interrupt else denied
