"""An HTTP endpoint on a real socket that answers as a test says, and remembers who asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Endpoint:
    """Answers every request on every connection with `answer`; `requests` has (head, headers, body) of each."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.connections = 0
        self.open = 0
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode().strip().split("\r\n")
                headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
                self.requests.append((first, headers, await reader.readexactly(int(headers["content-length"]))))
                await self.answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open -= 1
            writer.close()

    async def closed(self, *, but: int = 0) -> None:
        """Wait until nobody is connected, or only so many."""
        async with asyncio.timeout(60):
            while self.open > but:  # noqa: ASYNC110 - asked from other loops too
                await asyncio.sleep(0.005)


@asynccontextmanager
async def endpoint(answer: Answer) -> AsyncIterator[Endpoint]:
    """An endpoint on loopback; whoever is still connected at the end is cut off."""
    made = Endpoint(answer)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    try:
        yield made
    finally:
        server.close()


def answers(status: int, body: Any = "", **headers: str) -> Answer:
    """A whole answer: text as it is, anything else as JSON."""
    data = (body if isinstance(body, str) else json.dumps(body)).encode()
    lines = [f"HTTP/1.1 {status} X", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    if status != 204:
        lines.append(f"Content-Length: {len(data)}")

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
        await writer.drain()

    return answer


async def silence(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    """Never answer; end when the other side has hung up."""
    await reader.read()


async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Close without a word."""
    writer.close()


async def no_end(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A body that never ends, as fast as it is read."""
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    while not writer.is_closing():
        writer.write(chunk)
        await writer.drain()
