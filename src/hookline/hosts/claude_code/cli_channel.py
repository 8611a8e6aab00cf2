"""The CLI's end of the control protocol: a host drives us over stdin and stdout, and we ask it about hooks and tools.

server = Server(write)
server.received(chunk) … server.ended()       the reader of stdin feeds it
await server.next()                           what the host says or asks, in order; None once it is gone
await server.ask(HookCallback(…))             what the host answers; cancelling this takes the question back
server.answer(request_id, {…})                our answer to what it asked
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from hookline.errors import HostGone, RequestRefused
from hookline.hosts.claude_code.messages import (
    ControlCancel,
    ControlRequest,
    Failure,
    Message,
    OtherRequest,
    Received,
    Request,
    Success,
    UserMessage,
    Violation,
)
from hookline.hosts.claude_code.protocol import Connection

log: logging.Logger = logging.getLogger("hookline.hosts.claude_code")


class CliChannel:
    """A conversation with a host; `also` names the control requests that are served besides the protocol's own."""

    def __init__(self, write: Callable[[bytes], None], *, also: Collection[str] = ()) -> None:
        self._write = write
        self._connection = Connection("cli", also=also)
        self._asked: dict[str, asyncio.Future[Any]] = {}
        self._said: asyncio.Queue[ControlRequest | UserMessage | None] = asyncio.Queue()
        self.gone: bool = False

    # -- what the host says ----------------------------------------------------------------------------------------

    def received(self, data: bytes) -> None:
        """Take bytes from the host."""
        for message in self._connection.receive(data):
            self._take(message)
        self._flush()

    def ended(self) -> None:
        """The host closed its end: it answers nothing more, and nothing more will come."""
        self.gone = True
        for message in self._connection.end():
            self._take(message)
        for future in self._asked.values():
            if not future.done():
                future.set_exception(HostGone())
        self._said.put_nowait(None)

    async def next(self) -> ControlRequest | UserMessage | None:
        """The next thing the host says or asks; None once it is gone."""
        return await self._said.get()

    def _take(self, message: Received) -> None:
        if isinstance(message, Success | Failure):
            future = self._asked.get(message.request_id)
            if future is not None and not future.done():
                _settle(future, message)
        elif isinstance(message, ControlRequest | UserMessage):
            self._said.put_nowait(message)
        elif isinstance(message, Violation):
            log.warning("the host broke the protocol: %s", message.error)

    def _flush(self) -> None:
        owed = self._connection.outgoing()
        if owed:
            self._write(owed)

    # -- what we say -----------------------------------------------------------------------------------------------

    async def ask(self, request: Request | OtherRequest) -> Any:
        """The host's answer, decoded; raises `RequestRefused` for an error, `HostGone` when it cannot answer."""
        if self.gone:
            raise HostGone
        message = self._connection.ask(request)
        line = self._connection.send(message)  # raises for a callback that a second `initialize` took away
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._asked[message.request_id] = future
        self._write(line)
        try:
            return await future
        except asyncio.CancelledError:
            self._write(self._connection.send(ControlCancel(message.request_id)))
            raise
        finally:
            del self._asked[message.request_id]

    def say(self, note: Mapping[str, Any]) -> None:
        """One message of the conversation."""
        kind = str(note.get("type", ""))
        self._write(self._connection.send(Message(kind, msgspec.json.encode(note))))

    def answer(self, request_id: str, response: Mapping[str, Any] | None = None) -> None:
        """Answer what the host asked."""
        self._write(self._connection.send(Success(request_id, Raw(msgspec.json.encode(response or {})))))

    def refuse(self, request_id: str, error: str, code: str | None = None) -> None:
        """Say why what the host asked cannot be done."""
        self._write(self._connection.send(Failure(request_id, error, code)))


def _settle(future: asyncio.Future[Any], message: Success | Failure) -> None:
    if isinstance(message, Failure):
        future.set_exception(RequestRefused("host", message.error, message.error_code))
        return
    try:
        future.set_result(msgspec.json.decode(message.response))
    except (msgspec.DecodeError, RecursionError) as problem:
        future.set_exception(RequestRefused("host", f"an answer that cannot be read ({problem})", None))
