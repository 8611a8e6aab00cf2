"""A real HTTP server on the loopback that answers with the bytes it was given, one answer per request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Answer:
    """One HTTP answer; `cut` closes the connection before the body is complete."""

    body: bytes = b""
    status: int = 200
    kind: str = "text/event-stream"
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False


@dataclass
class Loopback:
    """What was asked so far, and where to ask."""

    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


@asynccontextmanager
async def serving(*answers: Answer) -> AsyncIterator[Loopback]:
    """A server that gives these answers in order, and the last one ever after."""
    seen = Loopback("")

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _exchange(reader, writer, answers, seen)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    seen.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield seen
    finally:
        server.close()
        await server.wait_closed()


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answers: Sequence[Answer], seen: Loopback
) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = next(int(line.split(":")[1]) for line in head.split("\r\n") if line.lower().startswith("content-length:"))
    answer = answers[min(len(seen.requests), len(answers) - 1)]
    seen.requests.append(json.loads(await reader.readexactly(length)))
    seen.paths.append(head.split(" ")[1])
    pairs = (line.partition(": ") for line in head.split("\r\n")[1:] if line)
    seen.headers.append({name.lower(): value for name, _, value in pairs})
    size = len(answer.body) + (1000 if answer.cut else 0)
    headers = {"content-type": answer.kind, "content-length": str(size), "connection": "close", **answer.headers}
    lines = [f"HTTP/1.1 {answer.status} X", *(f"{name}: {value}" for name, value in headers.items())]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + answer.body)
    await writer.drain()


def sse(*events: dict[str, Any] | str, done: bool = False) -> bytes:
    """Events as a server streams them; a string is sent as it is."""
    rows = [
        f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" if isinstance(e, dict) and "type" in e else _data(e)
        for e in events
    ]
    return ("".join(rows) + ("data: [DONE]\n\n" if done else "")).encode()


def _data(event: dict[str, Any] | str) -> str:
    return f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n"


def refused(status: int, kind: str, message: str = "scripted", **headers: str) -> Answer:
    """An error as the Messages API words it."""
    body = json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()
    return Answer(body, status, "application/json", {name.replace("_", "-"): value for name, value in headers.items()})


def message(*blocks: tuple[dict[str, Any], list[dict[str, Any]]], stop: str = "end_turn") -> list[dict[str, Any]]:
    """The events of a whole streamed Messages API answer; each block is its start and its deltas."""
    usage = {"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 3}
    head: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
    }
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**head, "stop_sequence": None, "usage": usage}}
    ]
    for index, (start, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    end = {
        "type": "message_delta",
        "delta": {"stop_reason": stop, "stop_sequence": None},
        "usage": {"output_tokens": 7},
    }
    return [*events, end, {"type": "message_stop"}]


def text_block(*pieces: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A text block that streams in pieces."""
    return {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces]


def tool_block(name: str, *pieces: str, id: str = "t1") -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A tool call whose arguments stream in pieces."""
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return {"type": "tool_use", "id": id, "name": name, "input": {}}, deltas
