"""What PermissionRequest hooks say to a tool call, for a host that is asked about the same call.

Claude Code sends `can_use_tool` and the PermissionRequest callback at the same moment and acts on the first answer
(`quirks.HOST_RACES_HOOKS`). So the host's own answer is held until the hooks have given theirs, and once they have
decided it is not asked for. The two requests name the same `tool_use_id`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec import Raw

from hookline.core.engine.hook_set import FiresAsync
from hookline.core.engine.select import select
from hookline.core.wire import claude
from hookline.events import Event, PermissionRequest
from hookline.hosts.answer import answer, refusal
from hookline.hosts.claude_code.messages import EMPTY, CanUseTool, HookCallback
from hookline.replies import NOTHING, Decision, Reply, deny

ARRIVES_WITHIN = 5.0
"""Seconds in which the callback of a call must arrive; hooks whose callback does not come are asked without it."""
_MOST_CALLS = 1024  # remembered at once; a forgotten call is asked about again


class _Call:
    """One tool call: whether its callback has come, and what the hooks said."""

    def __init__(self) -> None:
        self.arrived: asyncio.Event = asyncio.Event()
        self.reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()


class PermissionHooks:
    """The hooks of one conversation, as far as they decide on permissions."""

    def __init__(self, hooks: FiresAsync) -> None:
        self._hooks = hooks
        self._calls: dict[str, _Call] = {}

    async def answer_callback(self, request: HookCallback) -> Raw:
        """The callback's answer; waiting callers are told, also when it is cancelled."""
        codec = _PermissionCodec(claude.trusted_reader(PermissionRequest))
        call = self._call(request.tool_use_id or "")
        call.arrived.set()
        try:
            return await answer(self._hooks, request.input, codec)
        finally:
            if not call.reply.done():
                call.reply.set_result(codec.reply)

    async def decide(self, request: CanUseTool) -> Reply | None:
        """What the hooks decided on a call that the host is asked about, or `None` if that is for the host to say."""
        event = PermissionRequest(
            tool_name=request.tool_name,
            tool_input=request.input,
            tool_use_id=request.tool_use_id,
            agent_id=request.agent_id,
            permission_suggestions=request.permission_suggestions,
        )
        if not _concerns(self._hooks, event):
            return None
        reply = await self._from_callback(request.tool_use_id) or await self._ask(event)
        decided = reply.stop or reply.decision in (Decision.ALLOW, Decision.DENY)
        return reply if decided else None

    async def _from_callback(self, call_id: str | None) -> Reply | None:
        if not call_id:
            return None
        call = self._call(call_id)
        try:
            async with asyncio.timeout(ARRIVES_WITHIN):
                await call.arrived.wait()
        except TimeoutError:
            return None
        try:
            return await asyncio.shield(call.reply)
        finally:
            self._calls.pop(call_id, None)

    async def _ask(self, event: PermissionRequest) -> Reply:
        codec = _PermissionCodec(lambda event: event)
        await answer(self._hooks, event, codec)
        return codec.reply

    def _call(self, call_id: str) -> _Call:
        call = self._calls.get(call_id)
        if call is None:
            if len(self._calls) >= _MOST_CALLS:
                self._calls.pop(next(iter(self._calls)))
            call = self._calls[call_id] = _Call()
        return call


def _concerns(hooks: FiresAsync, event: Event) -> bool:
    """Whether any hook would be asked about this event."""
    engine = getattr(hooks, "engine", None)
    return engine is not None and bool(select(event, engine.registry.index))


class _PermissionCodec:
    """Claude Code's words for one question; `reply` is what was answered, and a deny until then."""

    def __init__(self, decode: Any) -> None:
        self.decode = decode
        self.reply: Reply = deny("the hooks' answer was no longer waited for")

    def encode(self, reply: Reply, event: Event) -> Raw:
        self.reply = reply
        return EMPTY if reply is NOTHING else Raw(claude.encode_reply(reply, event))

    def refuse(self, problem: BaseException, payload: Any, event: Event | None) -> Raw:
        self.reply = deny(refusal(problem, PermissionRequest))
        return Raw(claude.encode_reply(self.reply, PermissionRequest.event_name))
