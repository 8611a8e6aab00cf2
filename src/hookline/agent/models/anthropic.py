"""Claude, over the Messages API: streaming, retried as the server asks; other servers via `ANTHROPIC_BASE_URL`.

The official SDK takes over a second to import, longer than many an answer: requests are made by a client of our own.
A request that failed before its first word is made again (`x-should-retry`, `retry-after`, else growing pauses);
`CLAUDE_CODE_MAX_RETRIES` sets how often. Later, the error is told.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from hookline.agent.hook_messages import wrapped
from hookline.agent.http_client import HttpClient, ServerAnswer
from hookline.agent.messages import Message, Reminder, User, encode_message
from hookline.agent.models.base import ModelRequest, ModelResponse, OnEvent, api_error
from hookline.agent.models.stream import StreamedAnswer
from hookline.errors import ModelError

DEFAULT_RETRIES = 10
DEFAULT_URL = "https://api.anthropic.com"
VERSION = "2023-06-01"
#: the longest pause between two attempts, in seconds, and the longest that a server may ask for
LONGEST_PAUSE, LONGEST_ASKED = 8.0, 60.0
#: statuses and kinds of failures that another attempt may get over
PASSING = (408, 409, 429)
PASSING_KINDS = ("overloaded", "rate_limit", "server_error")
MOST_ERROR_BYTES = 1 << 20
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
        self._url = f"{(base_url or DEFAULT_URL).rstrip('/')}/v1/messages"
        self._headers = {"content-type": "application/json", "anthropic-version": VERSION, "user-agent": "hookline"}
        if auth_token:
            self._headers["authorization"] = f"Bearer {auth_token}"
        elif api_key:
            self._headers["x-api-key"] = api_key
        self._retries = (
            int(os.environ.get("CLAUDE_CODE_MAX_RETRIES", DEFAULT_RETRIES)) if max_retries is None else max_retries
        )
        self._client = HttpClient()

    async def respond(self, request: ModelRequest, on_event: OnEvent | None = None) -> ModelResponse:
        body = {**encode_request(request, request.model or self.name), "stream": True}
        for attempt in range(self._retries + 1):
            answer = StreamedAnswer(body["model"])
            try:
                return await self._stream(body, answer, on_event)
            except ModelError as problem:
                passing = problem.kind in PASSING_KINDS if problem.retry is None else problem.retry
                if answer.started or attempt == self._retries or not passing:
                    raise
                await asyncio.sleep(_pause(attempt, problem.retry_after))
        raise AssertionError("the loop returns or raises")

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _stream(self, body: dict[str, Any], answer: StreamedAnswer, on_event: OnEvent | None) -> ModelResponse:
        try:
            async with self._client.exchange("POST", self._url, self._headers, msgspec.json.encode(body)) as said:
                if said.status != 200:
                    raise await _refusal(said, answer.model)
                async for event in _events(said):
                    answer.feed(event)
                    if on_event:
                        on_event(event)
                return ModelResponse(message=answer.done())
        except OSError as problem:
            what = "the connection broke" if answer.started else f"{self._url} cannot be reached"
            why = problem.strerror or str(problem) or type(problem).__name__
            raise ModelError(f"model `{answer.model}`: {what}: {why}", "server_error") from problem
        except (ValueError, TypeError, KeyError, AttributeError, msgspec.DecodeError) as problem:
            what = f"model `{answer.model}`: the answer makes no sense: {problem}"
            raise ModelError(what, "server_error") from problem


async def _events(said: ServerAnswer) -> AsyncIterator[dict[str, Any]]:
    """The events of a stream: each ends with an empty line, and its data may have several."""
    data: list[bytes] = []
    rest = b""
    async for piece in said.pieces():
        *lines, rest = (rest + piece).split(b"\n")
        for line in (one.removesuffix(b"\r") for one in lines):
            if line.startswith(b"data:"):
                data.append(line[5:].lstrip())
            elif not line and data:
                yield msgspec.json.decode(b"\n".join(data), type=dict[str, Any])
                data = []


async def _refusal(said: ServerAnswer, model: str) -> ModelError:
    """What a server says in place of an answer."""
    text = await said.read(MOST_ERROR_BYTES)
    try:
        body = msgspec.json.decode(text)
    except msgspec.DecodeError:
        body = text.decode("utf-8", "replace").strip()[:500]
    problem = api_error(said.status, body, said.headers, model=model)
    stated = said.headers.get("x-should-retry")
    usual = said.status in PASSING or said.status >= 500
    problem.retry = stated == "true" if stated in ("true", "false") else usual
    return problem


def _pause(attempt: int, asked: float | None) -> float:
    """Seconds until the next attempt: as the server asks, else growing, and not in step with everybody else."""
    if asked is not None and 0 <= asked <= LONGEST_ASKED:
        return asked
    return float(min(LONGEST_PAUSE, 0.5 * 2**attempt) * (1 - 0.25 * random.random()))  # noqa: S311 - not a secret


def encode_request(request: ModelRequest, model: str) -> dict[str, Any]:
    """The request as the Messages API takes it."""
    body: dict[str, Any] = {"model": model, "max_tokens": request.max_tokens}
    body["messages"] = encode_messages(request.messages, model)
    if request.system:
        system: list[dict[str, Any]] = [{"type": "text", "text": text} for text in request.system]
        system[-1].update(CACHED)
        body["system"] = system
    if request.tools or request.server_tools:
        body["tools"] = [*map(msgspec.structs.asdict, request.tools), *request.server_tools]
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
        if isinstance(message, Reminder) and not native:  # as older models expect it
            message = User.of(wrapped(message.text), synthetic=True)  # noqa: PLW2901 - from here on it is that
        row = encode_message(message)
        if rows and row["role"] == rows[-1]["role"] == "user":
            rows[-1]["content"] = [*rows[-1]["content"], *row["content"]]
        elif row["content"]:  # the API refuses a message without content
            rows.append(row)
    # the conversation so far is to be cached, which its last user block says
    last = next((row for row in reversed(rows) if row["role"] == "user"), None)
    if last and isinstance(last["content"], list):
        last["content"] = [*last["content"][:-1], {**last["content"][-1], **CACHED}]
    return rows
