"""Requests under way: the client's until they are answered, our own, and the list of tools that the gateway reads."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

import msgspec

from hookline.errors import ConfigError
from hookline.hosts.gateway.calls import ServerCall
from hookline.hosts.gateway.messages import Id, Message, error, meta_of, request
from hookline.hosts.gateway.pins import Pins, definitions_in
from hookline.hosts.gateway.questions import Send

_LIST_SECONDS = 60.0
_MOST_PAGES = 100
_MOST_LISTS = 5


class LoginNeeded(Exception):
    """The server wants a login before it lists its tools: its error, which says so to the client."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(str(error.get("message")))
        self.error = error


class OpenRequest(msgspec.Struct, eq=False):
    """A request of the client that is not answered yet; `work` judges it or its answer."""

    method: str
    params: dict[str, Any]
    call: ServerCall | None = None
    work: asyncio.Task[None] | None = None


class ClientRequests:
    """What the client has asked for, by id."""

    def __init__(self, to_client: Send) -> None:
        self._to_client = to_client
        self._open: dict[Id | None, OpenRequest] = {}
        self.idle: asyncio.Event = asyncio.Event()
        """Whether every one of them is answered."""
        self.idle.set()

    def add(self, key: Id, made: OpenRequest) -> bool:
        """Take a request; `False` if one with that id is under way."""
        if key in self._open:
            return False
        self._open[key] = made
        self.idle.clear()
        return True

    def get(self, key: Id | None) -> OpenRequest | None:
        """The request of that id, while it is under way."""
        return self._open.get(key)

    async def answer(self, key: Id | None, message: Message) -> None:
        """Send the client its answer, unless the request was cancelled meanwhile."""
        if key in self._open:
            await self._to_client(message)
            self.forget(key)

    def forget(self, key: Id | None) -> OpenRequest | None:
        """The client does not wait for this one any longer."""
        gone = self._open.pop(key, None)
        if not self._open:
            self.idle.set()
        return gone

    async def fail_all(self, code: int, why: str) -> None:
        """Nothing more will be answered."""
        for key in list(self._open):
            await self.answer(key, error(key, code, why))


class OwnRequests:
    """What the gateway itself asks the client or the server; no id of theirs can be one of its own."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._prefix = f"hookline-{os.urandom(6).hex()}-"
        self._waiting: dict[Id, asyncio.Future[Message]] = {}

    async def ask(self, send: Send, method: str, params: Mapping[str, Any], seconds: float) -> Message:
        """The answer; none in time is a `ConfigError`."""
        key = f"{self._prefix}{os.urandom(6).hex()}"
        self._waiting[key] = asyncio.get_running_loop().create_future()
        try:
            await send(request(key, method, params))
            return await asyncio.wait_for(self._waiting[key], seconds)
        except TimeoutError:
            raise ConfigError(self._server, f"no answer to `{method}` within {seconds:g} s") from None
        finally:
            self._waiting.pop(key, None)

    def take(self, key: Id | None, message: Message) -> bool:
        """Whether this answers one of ours."""
        waiting = self._waiting.get(key) if key is not None else None
        if waiting is not None and not waiting.done():
            waiting.set_result(message)
        return waiting is not None


class ToolList:
    """The server's tools, listed before they are used: a client may call from a list that it remembers."""

    def __init__(self, own: OwnRequests, to_server: Send, pins: Pins, server: str) -> None:
        self._own, self._to_server, self._pins, self._server = own, to_server, pins, server
        self._listing: asyncio.Task[None] | None = None

    def forget(self) -> None:
        """The server says that they have changed, or is gone."""
        if self._listing is not None and not self._listing.done():
            self._listing.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._listing = None

    async def ensure(self, params: Mapping[str, Any]) -> None:
        """Compare them with the pins, once for all who ask; `params` say in which era to list."""
        for _ in range(_MOST_LISTS):
            if self._listing is None or (self._listing.done() and self._listing.exception() is not None):
                self._listing = asyncio.create_task(self._list(meta_of(params)))
            listing = self._listing
            await asyncio.shield(listing)
            if listing is self._listing:
                return
        raise ConfigError(self._server, "the server's tools change all the time")

    async def _list(self, meta: dict[str, Any]) -> None:
        about = {"_meta": {key: value for key, value in meta.items() if key != "progressToken"}} if meta else {}
        tools: list[tuple[str, Any]] = []
        cursor: dict[str, Any] = {}
        for _ in range(_MOST_PAGES):
            page = await self._own.ask(self._to_server, "tools/list", {**about, **cursor}, _LIST_SECONDS)
            found = page.get("result")
            failed = page.get("error")
            if isinstance(failed, dict) and isinstance(failed.get("data"), dict) and "login" in failed["data"]:
                raise LoginNeeded(failed)
            if not isinstance(found, dict):
                raise ConfigError(self._server, f"the server does not list its tools: {failed}")
            tools += definitions_in(found)
            if not found.get("nextCursor"):
                return self._pins.observe(tools)
            cursor = {"cursor": found["nextCursor"]}
        raise ConfigError(self._server, f"the list of tools has more than {_MOST_PAGES} pages")
