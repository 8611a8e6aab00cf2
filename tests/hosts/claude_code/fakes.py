"""A CLI in memory: the other end of the protocol, without a process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from hookline.hosts.claude_code.messages import (
    MESSAGES,
    ControlRequest,
    Failure,
    HookCallback,
    Initialize,
    Message,
    OtherMessage,
    Received,
    Sendable,
    Success,
    UserMessage,
)
from hookline.hosts.claude_code.process import PeerExit, Receiver
from hookline.hosts.claude_code.protocol import Connection

TODAY = {"hooks_applied": True, "hook_on_failure_supported": True, "claude_code_version": "2.1.325"}
RESULT = {"type": "result", "subtype": "success", "is_error": False, "result": "done"}


def message(data: Mapping[str, Any]) -> Message:
    """A message of the conversation from its fields; `type` says which."""
    kind = str(data.get("type", ""))
    return MESSAGES.get(kind, OtherMessage)(kind, msgspec.json.encode(data))


class FakeCli:
    """A transport whose far end is scripted: `info` answers `initialize`, the n-th prompt gets the n-th of `turns`."""

    def __init__(self, info: dict[str, Any] | Failure | None = None, turns: list[Any] | None = None) -> None:
        self.cli = Connection("cli", also=["mcp_status", "end_session"])
        self.info = TODAY if info is None else info
        self.turns = turns or []
        self.heard: list[Received] = []
        self.writes: list[bytes] = []
        self.news = asyncio.Event()
        self.input_ended = self.closed = False
        self.silent = False
        self.stderr = "the last words"
        self._receiver: Receiver | None = None

    # ── the transport ───────────────────────────────────────────────────────────────────────────

    async def start(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def write(self, data: bytes) -> None:
        self.writes.append(data)
        for one in self.cli.receive(data):
            self.heard.append(one)
            self._react(one)
        self.news.set()

    async def drain(self) -> None:
        await asyncio.sleep(0)

    def end_input(self) -> None:
        if not self.input_ended:
            self.input_ended = True
            self.end(0)

    async def close(self, grace: float | None = None) -> None:
        self.closed = True
        self.news.set()

    # ── the far end ─────────────────────────────────────────────────────────────────────────────

    def _react(self, one: Received) -> None:
        if isinstance(one, ControlRequest) and not self.silent:
            if isinstance(one.request, Initialize):
                self.answer(one.request_id, self.info)
            else:
                self.answer(one.request_id, {})
        elif isinstance(one, UserMessage) and self.turns:
            for said in self.turns.pop(0):
                self.say(message(said))

    def answer(self, request_id: str, info: dict[str, Any] | Failure) -> None:
        if isinstance(info, Failure):
            self.say(Failure(request_id, info.error, info.error_code))
        else:
            self.say(Success(request_id, Raw(msgspec.json.encode(info))))

    def say(self, *messages: Sendable) -> None:
        self.raw(b"".join(self.cli.send(one) for one in messages))

    def raw(self, data: bytes) -> None:
        """Bytes as they are, delivered as a pipe would: later, never from inside a write."""

        def deliver() -> None:
            assert self._receiver is not None
            self._receiver.received(data)

        asyncio.get_running_loop().call_soon(deliver)

    def end(self, code: int, stderr: str = "the last words") -> None:
        def deliver() -> None:
            assert self._receiver is not None
            self._receiver.ended(PeerExit(code, stderr))

        asyncio.get_running_loop().call_soon(deliver)

    def call(self, callback_id: str, **event: Any) -> str:
        """Ask a hook; returns the request's id."""
        asked = self.cli.ask(HookCallback(callback_id=callback_id, input=Raw(msgspec.json.encode(event))))
        self.say(asked)
        return asked.request_id

    async def until(self, there: Callable[[], Any]) -> Any:
        """Wait for something to have been written."""
        async with asyncio.timeout(10):
            while not (found := there()):
                self.news.clear()
                await self.news.wait()
        return found

    async def answer_to(self, request_id: str) -> Success | Failure:
        def find() -> Success | Failure | None:
            answers = [one for one in self.heard if isinstance(one, (Success, Failure))]
            return next((one for one in answers if one.request_id == request_id), None)

        found = await self.until(find)
        assert isinstance(found, (Success, Failure))
        return found

    @property
    def requests(self) -> list[Any]:
        return [one.request for one in self.heard if isinstance(one, ControlRequest)]

    @property
    def prompts(self) -> list[str]:
        return [one.text for one in self.heard if isinstance(one, UserMessage)]

    @property
    def said(self) -> list[Message]:
        return [one for one in self.heard if isinstance(one, Message)]
