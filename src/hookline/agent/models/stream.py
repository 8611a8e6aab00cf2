"""A model behind a server that streams its answer: asked over HTTP, and again where that may help.

`StreamedAnswer` puts the events of a Messages API answer together, each a mapping as the API sends it; `answer_events`
goes the other way. An answer that breaks off, or whose events make no sense, is a `ModelError`.

A request that failed before its first word is made again (`x-should-retry`, `retry-after`, else growing pauses). Later,
the error is told. The official SDKs take over a second to import, longer than many an answer: none is needed here.
"""

import asyncio
import random
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from hookline.agent.http_client import HttpClient, read_body
from hookline.agent.messages import Assistant, Block, Text, ToolUse, Usage, decode_block, decode_usage, encode_block
from hookline.agent.models.base import ModelRequest, OnEvent, api_error
from hookline.core.wire.json_text import read_object, write_lossy
from hookline.errors import ModelError

if TYPE_CHECKING:
    import httpx2

#: delta type → the field of the delta, which is also the field of the block it grows
GROWTH = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
LONGEST_PAUSE, LONGEST_ASKED = 8.0, 60.0  # seconds between two attempts, and the most that a server may ask for
PASSING = (408, 409, 429)  # statuses and kinds of failures that another attempt may get over
PASSING_KINDS = ("overloaded", "rate_limit", "server_error")
MOST_ERROR_BYTES = 1 << 20


class StreamedAnswer:
    """One answer while it streams in. A subclass knows what a server of another kind sends in place of the events."""

    def __init__(self, model: str) -> None:
        self.model = model
        self._message: dict[str, Any] = {}
        self.blocks: dict[int, dict[str, Any]] = {}
        self._pieces: dict[tuple[int, str], list[str]] = {}
        self._complete = False

    def events(self, sent: dict[str, Any]) -> Iterable[dict[str, Any]]:
        return (sent,)

    def last_events(self) -> Iterable[dict[str, Any]]:
        """The events that are missing when the server has sent everything."""
        return ()

    def feed(self, event: Mapping[str, Any]) -> None:
        kind = event.get("type")
        if kind == "message_start":
            self._message = dict(event.get("message") or {})
        elif kind == "content_block_start":
            self.blocks[event["index"]] = dict(event["content_block"])
        elif kind == "content_block_delta":
            self._grow(event["index"], event["delta"])
        elif kind == "message_delta":
            usage = {key: value for key, value in (event.get("usage") or {}).items() if value is not None}
            self._message["usage"] = {**(self._message.get("usage") or {}), **usage}
            self._message["stop_reason"] = (event.get("delta") or {}).get("stop_reason")
        elif kind == "message_stop":
            self._complete = bool(self._message)
        elif kind == "error":  # pings and events of the future carry nothing we need
            raise api_error(200, event, model=self.model)

    def done(self) -> Assistant:
        """The whole answer; raises `ModelError` when the stream ended before it did."""
        if not self._complete:
            raise ModelError(f"model `{self.model}`: the answer broke off before it was complete", "server_error")
        return Assistant(
            tuple(self._block(index) for index in sorted(self.blocks)),
            id=str(self._message.get("id") or ""),
            model=str(self._message.get("model") or self.model),
            stop_reason=self._message.get("stop_reason"),
            usage=decode_usage(self._message.get("usage")),
        )

    def _grow(self, index: int, delta: Mapping[str, Any]) -> None:
        if index not in self.blocks:
            what = f"model `{self.model}`: the stream adds to block {index}, which it never opened"
            raise ModelError(what, "server_error")
        field = GROWTH.get(str(delta.get("type")))
        if field is not None:
            self._pieces.setdefault((index, field), []).append(str(delta.get(field) or ""))

    def _block(self, index: int) -> Block:
        wire = dict(self.blocks[index])
        for field in GROWTH.values():
            if pieces := self._pieces.get((index, field)):
                wire[field] = f"{wire.get(field) or ''}{''.join(pieces)}"
        if arguments := wire.pop("partial_json", "").strip():
            given = read_object(arguments)
            wire["input"] = arguments if given is None else given  # kept, to tell the model
        return decode_block(wire)


def answer_events(message: Assistant) -> Iterator[dict[str, Any]]:
    """An answer that came in one piece, as the events in which it would have streamed."""
    yield begin_answer(message.id, message.model)
    for index, block in enumerate(message.content):
        empty, delta = encode_block(block), {}
        if isinstance(block, Text):
            empty, delta = {**empty, "text": ""}, {"type": "text_delta", "text": block.text}
        elif isinstance(block, ToolUse):
            text = msgspec.json.encode(block.input).decode()
            empty, delta = {**empty, "input": {}}, {"type": "input_json_delta", "partial_json": text}
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        if delta:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield from end_answer(range(len(message.content)), message.stop_reason, message.usage)


def begin_answer(id: str, model: str) -> dict[str, Any]:
    """The first event of an answer."""
    about: dict[str, Any] = {"id": id, "type": "message", "role": "assistant", "model": model, "content": []}
    usage = {"input_tokens": 0, "output_tokens": 0}
    return {"type": "message_start", "message": {**about, "stop_reason": None, "stop_sequence": None, "usage": usage}}


def end_answer(blocks: Iterable[int], stop_reason: str | None, usage: Usage) -> Iterator[dict[str, Any]]:
    """The last events of an answer that has these blocks."""
    for index in blocks:
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": stop_reason, "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": msgspec.to_builtins(usage)}
    yield {"type": "message_stop"}


class ServerModel(ABC):
    """One model of a server."""

    answer: ClassVar[type[StreamedAnswer]] = StreamedAnswer

    def __init__(self, name: str, url: str, headers: Mapping[str, str], max_retries: int) -> None:
        self.name = name
        self._url = url
        self._headers = {"content-type": "application/json", "user-agent": "hookline", **headers}
        self._retries = max_retries
        self._client = HttpClient()

    @abstractmethod
    def encode_request(self, request: ModelRequest, model: str) -> dict[str, Any]:
        """The request as the server takes it."""

    async def respond(self, request: ModelRequest, on_event: OnEvent | None = None) -> Assistant:
        model = request.model or self.name
        body = write_lossy({**self.encode_request(request, model), "stream": True})
        for attempt in range(self._retries + 1):
            answer = self.answer(model)
            try:
                return await self._stream(body, answer, on_event)
            except ModelError as problem:
                passing = problem.kind in PASSING_KINDS if problem.retry is None else problem.retry
                if answer.blocks or attempt == self._retries or not passing:
                    raise
                await asyncio.sleep(_pause(attempt, problem.retry_after))
        raise AssertionError("the loop returns or raises")

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _stream(self, body: bytes, answer: StreamedAnswer, on_event: OnEvent | None) -> Assistant:
        try:
            async with self._client.exchange("POST", self._url, self._headers, body) as said:
                if said.status_code != 200:
                    raise await _refusal(said, answer.model)
                async for sent in _sent(said):
                    _take(answer, answer.events(sent), on_event)
                _take(answer, answer.last_events(), on_event)
                return answer.done()
        except OSError as problem:
            what = "the connection broke" if answer.blocks else f"{self._url} cannot be reached"
            why = problem.strerror or str(problem) or type(problem).__name__
            raise ModelError(f"model `{answer.model}`: {what}: {why}", "server_error") from problem
        except (ValueError, TypeError, KeyError, AttributeError, msgspec.DecodeError) as problem:
            what = f"model `{answer.model}`: the answer makes no sense: {problem}"
            raise ModelError(what, "server_error") from problem


def _take(answer: StreamedAnswer, events: Any, on_event: OnEvent | None) -> None:
    for event in events:
        answer.feed(event)
        if on_event:
            on_event(event)


async def _sent(said: "httpx2.Response") -> AsyncIterator[dict[str, Any]]:
    """The data of each event that a server sends; `[DONE]` says no more."""
    import httpx2

    said.headers["content-type"] = "text/event-stream"  # some servers call it something else
    async for event in httpx2.EventSource(said, max_event_size=None):
        if event.data not in ("", "[DONE]"):
            yield msgspec.json.decode(event.data, type=dict[str, Any])


async def _refusal(said: "httpx2.Response", model: str) -> ModelError:
    """What a server says in place of an answer."""
    body = read_object(await read_body(said, MOST_ERROR_BYTES))
    problem = api_error(said.status_code, body, said.headers, model=model)
    stated = said.headers.get("x-should-retry")
    usual = said.status_code in PASSING or said.status_code >= 500
    problem.retry = stated == "true" if stated in ("true", "false") else usual
    return problem


def _pause(attempt: int, asked: float | None) -> float:
    """Seconds until the next attempt: as the server asks, else growing, and not in step with everybody else."""
    if asked is not None and 0 <= asked <= LONGEST_ASKED:
        return asked
    return float(min(LONGEST_PAUSE, 0.5 * 2**attempt) * (1 - 0.25 * random.random()))  # noqa: S311 - not a secret
