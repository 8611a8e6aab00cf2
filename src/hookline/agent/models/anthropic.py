"""Claude, through the official SDK: streaming, retried as the server asks; other servers via `ANTHROPIC_BASE_URL`.

The SDK takes over a second to import, so it is imported at the first request, or earlier in a thread by `warm()`.
Retries are the SDK's (`x-should-retry`, `retry-after`, else growing pauses); `CLAUDE_CODE_MAX_RETRIES` sets how many. A
stream that breaks off before its first word counts as a failed attempt too; later, the error is told.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import os
import re
import threading
from typing import TYPE_CHECKING, Any

from hookline.agent.messages import Message, Reminder, User, encode_message
from hookline.agent.models.base import ModelRequest, ModelResponse, OnEvent
from hookline.agent.models.kinds import model_errors
from hookline.agent.models.stream import StreamedAnswer
from hookline.errors import MissingExtra, ModelError

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

__all__ = ["Anthropic", "encode_messages"]

DEFAULT_RETRIES = 10
#: models that take reminders as messages of role `system`; others get them wrapped in the user's text (FACTS.md §1)
SYSTEM_ROLE = re.compile(r"claude-[a-z]+-([5-9]|\d\d)\b")
CACHED = {"cache_control": {"type": "ephemeral"}}


class Anthropic:
    """One Claude model."""

    def __init__(
        self,
        name: str,
        *,
        api_key: str | None = None,
        auth_token: str | None = None,
        base_url: str | None = None,
        max_retries: int | None = None,
    ) -> None:
        self.name = name
        self._options = {"api_key": api_key, "auth_token": auth_token, "base_url": base_url}
        self._retries = (
            int(os.environ.get("CLAUDE_CODE_MAX_RETRIES", DEFAULT_RETRIES)) if max_retries is None else max_retries
        )
        self._client: AsyncAnthropic | None = None

    def warm(self) -> None:
        """Import the SDK in the background, so that the first request does not wait for it."""
        threading.Thread(target=import_sdk, name="import anthropic", daemon=True).start()

    async def ready(self) -> None:
        """Wait until the SDK is imported, without holding anybody up."""
        await asyncio.to_thread(import_sdk)

    async def respond(self, request: ModelRequest, on_event: OnEvent | None = None) -> ModelResponse:
        """The answer, streamed; raises `ModelError`."""
        body = encode_request(request, request.model or self.name)
        for attempt in range(self._retries + 1):
            answer = StreamedAnswer(body["model"])
            try:
                return await self._stream(body, answer, on_event)
            except ModelError as problem:
                broke_off = problem.status is None and problem.kind == "server_error"
                if not broke_off or answer.started or attempt == self._retries:
                    raise
        raise AssertionError("the loop returns or raises")

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _stream(self, body: dict[str, Any], answer: StreamedAnswer, on_event: OnEvent | None) -> ModelResponse:
        sdk = import_sdk()
        client = self._connected()
        with model_errors(sdk, answer.model):
            events = await client.messages.create(**body, stream=True)
            async with events:
                async for event in events:
                    said = event.to_dict(mode="json", warnings=False)
                    answer.feed(said)
                    if on_event:
                        on_event(said)
            return ModelResponse(message=answer.done())

    def _connected(self) -> AsyncAnthropic:
        if self._client is None:
            self._client = import_sdk().AsyncAnthropic(**self._options, max_retries=self._retries)
        return self._client


_import_lock = threading.Lock()


def import_sdk() -> Any:
    """The SDK, imported with the garbage collector paused: it makes a fifth of the import's time."""
    with _import_lock:
        collecting = gc.isenabled()
        gc.disable()
        try:
            importlib.import_module("anyio._backends._asyncio")  # the SDK would import it in the first request
            return importlib.import_module("anthropic")
        except ImportError as problem:
            raise MissingExtra("the Claude models", "agent") from problem
        finally:
            if collecting:
                gc.enable()


def encode_request(request: ModelRequest, model: str) -> dict[str, Any]:
    """The request as the Messages API takes it."""
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": request.max_tokens,
        "messages": encode_messages(request.messages, model),
    }
    if request.system:
        system: list[dict[str, Any]] = [{"type": "text", "text": text} for text in request.system]
        system[-1].update(CACHED)
        body["system"] = system
    if request.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
            for tool in request.tools
        ]
    output: dict[str, Any] = {}
    if request.output_schema is not None:
        output["format"] = {"type": "json_schema", "schema": request.output_schema}
    if request.effort and SYSTEM_ROLE.match(model):
        output["effort"] = request.effort
    if output:
        body["output_config"] = output
    if request.thinking:
        body["thinking"] = request.thinking
    return body


def encode_messages(messages: tuple[Message, ...], model: str) -> list[dict[str, Any]]:
    """The conversation, reminders worded as this model expects them, neighbours of one side joined."""
    native = bool(SYSTEM_ROLE.match(model))
    rows: list[dict[str, Any]] = []
    for message in messages:
        row = encode_message(message if native or not isinstance(message, Reminder) else wrapped(message))
        if rows and row["role"] == rows[-1]["role"] == "user":
            rows[-1]["content"] = [*rows[-1]["content"], *row["content"]]
        elif row["content"]:  # the API refuses a message without content
            rows.append(row)
    _mark_cached(rows)
    return rows


def wrapped(reminder: Reminder) -> User:
    """A reminder as older models expect it."""
    return User.of(f"<system-reminder>\n{reminder.text}\n</system-reminder>", synthetic=True)


def _mark_cached(rows: list[dict[str, Any]]) -> None:
    """Ask for the conversation so far to be cached, by marking its last user block."""
    last = next((row for row in reversed(rows) if row["role"] == "user"), None)
    if last and isinstance(last["content"], list):
        last["content"] = [*last["content"][:-1], {**last["content"][-1], **CACHED}]
