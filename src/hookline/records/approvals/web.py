"""The page's small web server: GET shows a question, POST answers it; there is nothing else to find."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, urlsplit

from hookline.records.approvals import page
from hookline.records.approvals.config import ApprovalSettings
from hookline.records.approvals.questions import AskedQuestion, Questions, shown_state

log: logging.Logger = logging.getLogger("hookline.approvals")
SECONDS = 10.0
_MOST_HEAD = 16_384
_MOST_BODY = 1_000
_GONE = "This link is not valid: it was replaced by a newer one, or the question is over."


class _Request(NamedTuple):
    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: bytes

    def first(self, name: str) -> str:
        """A value in the query."""
        return self.query.get(name, [""])[0]


class Site:
    """Serves questions to those who have a link; `people` are those who may answer now."""

    def __init__(self, questions: Questions, people: Callable[[], Mapping[str, Any]]) -> None:
        self._questions, self._people = questions, people
        self._server: asyncio.Server | None = None
        self.url: str = ""

    async def listen(self, settings: ApprovalSettings) -> None:
        """Listen where the settings say; where that is not possible, links lead nowhere and the terminal is left."""
        host, _, port = settings.listen.rpartition(":")
        try:
            self._server = await asyncio.start_server(self._connected, host.strip("[]"), int(port), limit=_MOST_HEAD)
        except OSError as problem:
            log.warning("approvals.listen: the page cannot be shown on %s: %s", settings.listen, problem)
            return
        number = self._server.sockets[0].getsockname()[1]
        self.url = settings.url.rstrip("/") or f"http://{host}:{number}"

    async def aclose(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()

    def link(self, one: AskedQuestion, person: str) -> str:
        """What is sent to a person."""
        query = f"p={quote(person, safe='')}&t={self._questions.token(one, person)}"
        return f"{self.url}/a/{one.id}?{query}" if self.url else ""

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(SECONDS):
                request = await _read(reader)
                status, kind, body = self._answer(request)
                head = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", f"Content-Type: {kind}; charset=utf-8",
                        f"Content-Length: {len(body)}", "Connection: close",
                        *(f"{name}: {text}" for name, text in page.HEADERS.items())]  # fmt: skip
                writer.write("\r\n".join([*head, "", ""]).encode() + (b"" if request.method == "HEAD" else body))
                await writer.drain()
        except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as problem:
            log.info("a browser was dropped: %s", str(problem) or type(problem).__name__)
        finally:
            writer.close()

    def _answer(self, request: _Request) -> tuple[int, str, bytes]:
        if request.path == "/page.css":
            return 200, "text/css", page.STYLE
        person = request.first("p")
        one = self._questions.check(request.path.removeprefix("/a/"), person, request.first("t"))
        if one is None or not request.path.startswith("/a/") or person not in self._people():
            return 404, "text/html", page.notice(_GONE)
        if request.method in ("GET", "HEAD"):
            return 200 if one.state == "open" else 410, "text/html", page.render(one, person)
        return self._decide(request, one, person)

    def _decide(self, request: _Request, one: AskedQuestion, person: str) -> tuple[int, str, bytes]:
        origin, site = request.headers.get("origin", ""), request.headers.get("sec-fetch-site", "same-origin")
        own = urlsplit(self.url)
        foreign = origin and origin != f"{own.scheme}://{own.netloc}"
        if request.method != "POST" or foreign or site not in ("same-origin", "none"):
            return 403, "text/html", page.notice("An answer must come from the page itself.")
        answer = parse_qs(request.body.decode(errors="replace")).get("answer")
        if answer not in (["yes"], ["no"]):
            return 400, "text/html", page.notice("The answer is neither yes nor no.")
        problem = self._questions.answer(one.id, yes=answer == ["yes"], by=person, how="page")
        return 410 if problem else 200, "text/html", page.notice(problem or shown_state(one))


async def _read(reader: asyncio.StreamReader) -> _Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.strip().lower(): text.strip() for name, _, text in (line.partition(":") for line in lines)}
    length = int(headers.get("content-length") or 0)
    if not 0 <= length <= _MOST_BODY:
        raise ValueError("a body too long")
    address = urlsplit(target)
    return _Request(method, address.path, parse_qs(address.query), headers, await reader.readexactly(length))
