"""Moves messages between the client on stdio and the server: a program on pipes, or an address (`http`)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import select
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from shutil import which
from typing import Protocol

from hookline.display import one_line
from hookline.errors import ConfigError, EventError
from hookline.events import SessionStart
from hookline.hosts.gateway.gateway import Gateway
from hookline.hosts.gateway.judging import Send
from hookline.hosts.gateway.messages import MOST_BYTES, PARSE_ERROR, Message, encode_message, error, read_messages
from hookline.processes.loop import read_lines
from hookline.processes.service.client import write_all
from hookline.processes.spawn import Child, ProcessSpec, spawn
from hookline.processes.tree import Group, new_marker

log: logging.Logger = logging.getLogger("hookline.mcp")
_AT_ONCE = 4096
"""What a pipe that can be written to takes without waiting."""
_GRACE = 2.0
_LAST_ANSWERS = 10.0


class Upstream(Protocol):
    """A server that can be reached; `receive` goes on until it is gone, `close` says how it ended."""

    async def send(self, message: Message) -> None: ...

    def receive(self) -> AsyncIterator[Message]: ...

    async def close(self) -> str: ...


class Pipe:
    """The writing end of a pipe: whole lines, in order, without holding up the loop when the reader is slow."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._turn = asyncio.Lock()

    async def send(self, message: Message) -> None:
        """Write one message; a reader that has left misses it."""
        data = encode_message(message)
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
    async def start(cls, command: Sequence[str], env: Mapping[str, str]) -> ServerProgram:
        """Start it; one that cannot be started is a `ConfigError`."""
        program = which(command[0], path=env.get("PATH")) or command[0]
        spec = ProcessSpec(argv=(program, *command[1:]), env=env, marker=new_marker())
        try:
            return cls(await spawn(spec), spec.marker)
        except OSError as problem:
            raise ConfigError(one_line(command[0]), f"the server could not be started: {problem.strerror}") from None

    async def send(self, message: Message) -> None:
        """Write it a line."""
        if self._pipe is not None:
            await self._pipe.send(message)

    async def receive(self) -> AsyncIterator[Message]:
        """Its messages; what else it prints is said on stderr."""
        with os.fdopen(self._child.stdout, "rb", buffering=0) as stdout:
            async for line in read_lines(stdout.fileno(), MOST_BYTES):
                if len(line) > MOST_BYTES:
                    log.error("the server sent a message of more than %d bytes", MOST_BYTES)
                    return
                try:
                    messages = read_messages(line)
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


class ServerConnection:
    """A gateway with the server behind it: what the server sends is taken until it is gone, or `close` ends it."""

    def __init__(self, gateway: Gateway, upstream: Upstream) -> None:
        self.gateway: Gateway = gateway
        self._upstream = upstream
        self.pump: asyncio.Task[None] = asyncio.create_task(self._serve_server())
        """Is done when the server is gone; then this is to be closed."""
        self._end: asyncio.Task[str] | None = None

    @classmethod
    async def open(cls, gateway_for: Callable[[Send], Gateway], upstream: Upstream) -> ServerConnection:
        """Begin; the hooks are told first."""
        gateway = gateway_for(upstream.send)
        await gateway.judge.tell(SessionStart)
        return cls(gateway, upstream)

    async def _serve_server(self) -> None:
        async for message in self._upstream.receive():
            await _pass_on(message, self.gateway.from_server)

    async def close(self) -> str:
        """End the server and answer what is under way; how it ended. A second call waits for the first."""
        self._end = self._end or asyncio.create_task(self._close())
        return await asyncio.shield(self._end)

    async def _close(self) -> str:
        how = await self._upstream.close()
        await asyncio.wait({self.pump}, timeout=_GRACE)
        await self.gateway.end(how)
        self.pump.cancel()
        return how


async def run(gateway_for: Callable[[Send, Send], Gateway], upstream: Upstream, source: int, sink: int) -> bool:
    """Serve a client on two descriptors until it leaves or the server is gone; whether it was the client."""
    client = Pipe(sink)
    connection = await ServerConnection.open(lambda to_server: gateway_for(client.send, to_server), upstream)
    from_client = asyncio.create_task(_serve_client(connection.gateway, client, source))
    try:
        await asyncio.wait({from_client, connection.pump}, return_when=asyncio.FIRST_COMPLETED)
        has_left = not connection.pump.done()
        if has_left:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(connection.gateway.idle.wait(), _LAST_ANSWERS)
        how = await connection.close()
        if not has_left:
            log.error("%s", how)
        return has_left
    finally:
        from_client.cancel()
        await connection.close()


async def _serve_client(gateway: Gateway, client: Pipe, source: int) -> None:
    async for line in read_lines(source, MOST_BYTES):
        try:
            messages = read_messages(line)
        except EventError as problem:
            await client.send(error(None, PARSE_ERROR, str(problem)))
            continue
        for message in messages:
            await _pass_on(message, gateway.from_client)


async def _pass_on(message: Message, take: Send) -> None:
    try:
        await take(message)
    except EventError as problem:  # it cannot be written as JSON
        log.warning("a message is lost: %s", problem)
