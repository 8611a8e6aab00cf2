"""The console's web server: the page's files, its data as JSON, and what comes in as server-sent events.

This machine's browser may ask, from the console's own page, with its token. The address that is opened carries a ticket
behind `#`, which browsers do not send. The page trades it, once, for a token that it sends in a header; a page of
another origin can neither read it nor make the browser send it.
"""

import asyncio
import contextlib
import hmac
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from hookline.core.hooks import Hook
from hookline.core.origin import HEADERS, foreign
from hookline.errors import HooklineError, extra
from hookline.guards.flow import history
from hookline.records.audit.reader import logs_in
from hookline.records.console.index import LogIndex, default_path
from hookline.records.console.report import ReplaySubprocess
from hookline.records.console.store import Filter, LogStore

with extra("the console", "console"):
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response, StreamingResponse
    from starlette.routing import Route
    from starlette.types import ASGIApp, Receive, Scope, Send

STATIC = Path(__file__).parent / "static"
log: logging.Logger = logging.getLogger("hookline.console")
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_MOST_ROWS = 500
_MOST_SESSION_ROWS = 5_000
_encode = msgspec.json.Encoder().encode
_LONGEST_TICKET = 200
_MOST_TICKETS = 20
_MOST_SENT = 10_000
_LOOK_SECONDS = 2.0
_REFRESH_SECONDS = 0.1
_RETRY_SECONDS = 1.0
_MOST_LIVE_ROWS = 200
_BATCH_SECONDS = 0.1
_ALIVE_SECONDS = 15.0
Views = Mapping[str, Callable[[], Any]]
Acts = Mapping[str, Callable[[bytes], Any]]


class Gatekeeper:
    """Checks who asks; `ticket()` makes one more way in."""

    def __init__(self) -> None:
        self._token = secrets.token_urlsafe(32)
        self._tickets: list[str] = []
        self._lock = threading.Lock()

    def ticket(self) -> str:
        """A ticket, good for one trade; only the last twenty that were not used stay good."""
        made = secrets.token_urlsafe(24)
        with self._lock:
            self._tickets = [*self._tickets[1 - _MOST_TICKETS :], made]
        return made

    def trade(self, ticket: str) -> str | None:
        with self._lock:
            good = [one for one in self._tickets if hmac.compare_digest(one.encode(), ticket.encode())]
            if not good:
                return None
            self._tickets.remove(good[0])
        return self._token

    def knows(self, authorization: str) -> bool:
        return hmac.compare_digest(authorization.encode("utf-8", "replace"), f"Bearer {self._token}".encode())


class Console:
    """One console: a store, who may see it, and what answers; `views` and `acts` are what others add, by name."""

    def __init__(self, store: LogStore, replay: ReplaySubprocess | None, views: Views, acts: Acts) -> None:
        self.store, self._replay, self._views, self._acts = store, replay, views, acts
        self.keeper: Gatekeeper = Gatekeeper()
        self.port: int = 0
        self.ended: threading.Event = threading.Event()

    def app(self) -> ASGIApp:
        routes = [
            Route("/", self._file),
            Route("/static/{path:path}", self._file),
            Route("/api/login", self._login, methods=["POST"]),
            Route("/api/ticket", lambda _: _json({"ticket": self.keeper.ticket()}), methods=["POST"]),
            Route("/api/live", self._live),
            Route("/api/verify", self._verify, methods=["POST"]),
            Route("/api/replay", self._start_replay, methods=["POST"]),
            Route("/api/views", lambda _: _json(sorted(self._views))),
            *(Route(f"/api/{name}", partial(self._query, name)) for name in _QUERIES),
            *(Route(f"/api/{name}", partial(self._act, act), methods=["POST"]) for name, act in self._acts.items()),
            *(Route(f"/api/{name}", lambda _, view=view: _json(view())) for name, view in self._views.items()),
        ]
        return _guarded(Starlette(routes=routes), self)

    def _file(self, request: Request) -> Response:
        """One of the page's own files; there is no way to any other."""
        path = (STATIC / request.path_params.get("path", "index.html")).resolve()
        kind = _TYPES.get(path.suffix)
        if kind is None or STATIC not in path.parents or not path.is_file():
            return _problem(404, "there is no such file")
        return Response(path.read_bytes(), media_type=kind)

    async def _login(self, request: Request) -> Response:
        ticket = b""
        async for part in request.stream():
            ticket += part
            if len(ticket) > _LONGEST_TICKET:
                return _problem(413, "this is longer than any ticket")
        if (token := self.keeper.trade(ticket.decode("utf-8", "replace"))) is None:
            return _problem(403, "this address was used already; start `hookline console` again for a new one")
        return _json({"token": token})

    def _query(self, name: str, request: Request) -> Response:
        start = time.perf_counter()
        if name != "status" and not self.store.status()["ready"]:
            return _problem(503, "the index is not ready yet")
        try:
            found = _QUERIES[name](self.store, dict(request.query_params))
        except ValueError as problem:
            return _problem(400, f"the question cannot be understood: {problem}")
        if found is None:
            return _problem(404, "there is no such thing in these logs")
        took = (time.perf_counter() - start) * 1000
        return _json(found, headers={"Server-Timing": f"query;dur={took:.1f}"})

    async def _act(self, act: Callable[[bytes], Any], request: Request) -> Response:
        if int(request.headers.get("content-length") or 0) > _MOST_SENT:
            return _problem(413, "this is too long")
        return _json(await asyncio.to_thread(act, await request.body()))

    async def _live(self, request: Request) -> Response:
        wanted, last = _filter(dict(request.query_params)), int(request.query_params.get("after", "0"))
        return StreamingResponse(self._stream(wanted, last), media_type="text/event-stream")

    async def _stream(self, wanted: Filter, last: int) -> AsyncIterator[bytes]:
        """New events as server-sent events; a reader that is slow gets the newest and a count of the rest."""
        yield b": hello\n\n"
        index, told = self.store.index, time.monotonic()
        while not self.ended.is_set():
            if index.complete and index.last_id < last:
                last = 0  # the index was made again
            if index.complete and index.last_id > last:
                status = await asyncio.to_thread(self.store.status)
                rows, total = await asyncio.to_thread(self.store.after, last, wanted, _MOST_LIVE_ROWS)
                last = max(status["last_id"], rows[0]["id"] if rows else 0)
                yield _event("batch", {"rows": rows, "skipped": max(total - len(rows), 0), "status": status})
                told = time.monotonic()
            elif time.monotonic() - told > (_ALIVE_SECONDS if index.complete else 0.5):
                yield _event("status", {"status": await asyncio.to_thread(self.store.status)})
                told = time.monotonic()
            await asyncio.sleep(_BATCH_SECONDS)

    def _verify(self, request: Request) -> Response:
        self.store.check()
        return _json(self.store.health())

    def _start_replay(self, request: Request) -> Response:
        if self._replay is None:
            return _json({"state": "off"})
        if request.headers.get("content-length", "0") != "0":
            self._replay.start()
        return _json(self._replay.state())

    def follow(self, find_logs: Callable[[], list[Path]] | None) -> None:
        """Look at the logs ten times a second; one that cannot be read for a while (a full disk) is tried again."""
        pause, failing, looked = 0.0, False, time.monotonic()
        while not self.ended.wait(pause):
            pause = _REFRESH_SECONDS
            try:
                if find_logs is not None and time.monotonic() - looked > _LOOK_SECONDS:
                    self.store.index.logs, looked = tuple(logs_in(find_logs())), time.monotonic()
                self.store.index.refresh(self.ended.is_set)
                failing = False
            except Exception:
                if not failing:
                    log.exception("cannot read the logs; trying again")
                pause, failing = _RETRY_SECONDS, True


def _guarded(app: ASGIApp, console: Console) -> ASGIApp:
    """Lets through only what this machine's browser asks from the console's own page."""
    more = [(name.encode(), value.encode()) for name, value in HEADERS.items()]

    def refusal(path: str, headers: dict[str, str]) -> Response | None:
        if why := foreign(headers, console.port):
            return _problem(403, why)
        open_to_all = not path.startswith("/api/") or path == "/api/login"
        if open_to_all or console.keeper.knows(headers.get("authorization", "")):
            return None
        return _problem(401, "open the address that `hookline console` printed")

    async def respond(scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *more]}
            await send(message)

        if scope["type"] == "http":
            headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
            await (refusal(scope["path"], headers) or app)(scope, receive, with_headers)

    return respond


def _filter(asked: dict[str, str]) -> Filter:
    return Filter(
        verdict=tuple(word for word in asked.get("verdict", "").split(",") if word),
        **{name: asked.get(name, "")[:500] for name in ("event", "tool", "hook", "session", "text")},
        failed=bool(asked.get("failed")), unseen=bool(asked.get("unseen")), since=int(asked.get("since") or 0),
        until=int(asked.get("until") or 0),
    )  # fmt: skip


def _rows(asked: dict[str, str], most: int = _MOST_ROWS) -> tuple[str, int]:
    """Which part of a list is asked for: behind which cursor, and how long."""
    return asked.get("cursor", ""), max(1, min(int(asked.get("limit") or 100), most))


_QUERIES: dict[str, Callable[[Any, dict[str, str]], Any]] = {
    "status": lambda store, asked: store.status(),
    "events": lambda store, asked: store.page(_filter(asked), *_rows(asked)),
    "facets": lambda store, asked: store.facets(_filter(asked)),
    "timeline": lambda store, asked: store.timeline(_filter(asked)),
    "event": lambda store, asked: store.event(int(asked.get("id") or 0)),
    "sessions": lambda store, asked: store.sessions(*_rows(asked), asked.get("text", "")[:500]),
    "session": lambda store, asked: store.session(asked.get("name", ""), *_rows(asked, _MOST_SESSION_ROWS)),
    "flow": lambda store, asked: history(asked.get("name", "")),
    "hooks": lambda store, asked: store.hooks(),
    "hook": lambda store, asked: store.hook(asked.get("name", "")),
    "coverage": lambda store, asked: store.coverage(),
    "health": lambda store, asked: store.health(),
}  # every question that can be asked, and who answers it


def _json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(_encode(value), status, headers, "application/json")


def _event(kind: str, value: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), _encode(value))


def _problem(status: int, text: str) -> Response:
    return _json({"problem": text}, status)


async def serve(
    paths: Iterable[str | Path],
    *,
    port: int = 0,
    index: Path | None = None,
    key: bytes | None = None,
    configured: Iterable[Hook] = (),
    replay: ReplaySubprocess | None = None,
    more: Views | None = None,
    acts: Acts | None = None,
    find_logs: Callable[[], list[Path]] | None = None,
    on_ready: Callable[[str], None],
) -> None:
    """Show these logs until it is cancelled; `on_ready` is told the address to open.

    `more` has views of others beside the logs', by name, `acts` what such a view may send; `find_logs` is asked now and
    then whether there are new logs.
    """
    logs = logs_in(paths)
    if not logs and find_logs is None:
        raise HooklineError(f"{', '.join(map(str, paths))}: no audit logs here; name a `.jsonl` file that hooks wrote")
    made = LogIndex(index or default_path(logs), logs)
    console = Console(LogStore(made, key=key, configured=configured), replay, more or {}, acts or {})
    try:
        listening = socket.create_server(("127.0.0.1", port), backlog=64)
    except OSError as problem:
        why = os.strerror(problem.errno or 0)
        raise HooklineError(f"--port {port}: {why}; name another, or leave it out for a free one") from None
    console.port = listening.getsockname()[1]
    config = uvicorn.Config(
        console.app(), access_log=False, log_level="warning", server_header=False, date_header=False, lifespan="off",
        timeout_graceful_shutdown=1,
    )  # fmt: skip
    server = uvicorn.Server(config)
    follower = threading.Thread(target=console.follow, args=(find_logs,), name="hookline-console", daemon=True)
    follower.start()
    serving = asyncio.ensure_future(server.serve(sockets=[listening]))
    try:
        on_ready(f"http://127.0.0.1:{console.port}/#ticket={console.keeper.ticket()}")
        await asyncio.shield(serving)
    finally:
        console.ended.set()
        server.should_exit = True
        with contextlib.suppress(asyncio.CancelledError):
            await serving
        follower.join()
        made.close()
        if replay is not None:
            replay.stop()
