"""The page's small web server: GET shows a question, POST answers it; there is nothing else to find."""

from __future__ import annotations

import asyncio
import difflib
import logging
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, urlsplit

import msgspec

from hookline.guards.sandboxing import unwrapped
from hookline.records.approvals.config import ApprovalSettings
from hookline.records.approvals.questions import AskedCall, AskedQuestion, Questions

log: logging.Logger = logging.getLogger("hookline.approvals")
SECONDS = 10.0
_MOST_HEAD = 16_384
_MOST_BODY = 1_000
_GONE = b"This link is not valid: a newer one took its place, or the question is over."
STATIC = Path(__file__).parents[1] / "console" / "static"
FILES = {
    "/static/question_page.js": "text/javascript", "/static/question.js": "text/javascript",
    "/static/dom.js": "text/javascript", "/static/theme.js": "text/javascript", "/static/console.css": "text/css",
    "/static/icon.svg": "image/svg+xml",
}  # fmt: skip
"""What the page is made of: the console's own pieces."""
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
        " font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
        " require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""What every answer says: no code but our own files, no other origin, nothing kept."""


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
                head = {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": len(body), "Connection": "close",
                        **HEADERS}  # fmt: skip
                lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{name}: {head[name]}" for name in head)]
                writer.write("\r\n".join([*lines, "", ""]).encode() + (b"" if request.method == "HEAD" else body))
                await writer.drain()
        except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as problem:
            log.info("a browser was dropped: %s", str(problem) or type(problem).__name__)
        finally:
            writer.close()

    def _answer(self, request: _Request) -> tuple[int, str, bytes]:
        if request.path in FILES and request.method in ("GET", "HEAD"):
            name = request.path.rpartition("/")[2]
            return 200, FILES[request.path], (STATIC / name).read_bytes()
        person, name = request.first("p"), request.path.removeprefix("/a/").removesuffix(".json")
        one = self._questions.check(name, person, request.first("t")) if request.path.startswith("/a/") else None
        if one is None or person not in self._people():
            return 404, "text/plain", _GONE
        if request.method == "POST":
            status, problem = self._decide(request, one, person)
            return _json(status, {"problem": problem, "told": outcome(one)})
        if request.path.endswith(".json"):
            return _json(200, {**shown(one), "person": person})
        return 200, "text/html", (STATIC / "question.html").read_bytes()

    def _decide(self, request: _Request, one: AskedQuestion, person: str) -> tuple[int, str]:
        origin, site = request.headers.get("origin", ""), request.headers.get("sec-fetch-site", "same-origin")
        own = urlsplit(self.url)
        if (origin and origin != f"{own.scheme}://{own.netloc}") or site not in ("same-origin", "none"):
            return 403, "an answer must come from the page itself"
        answer = parse_qs(request.body.decode(errors="replace")).get("answer")
        if answer not in (["yes"], ["no"]):
            return 400, "the answer is neither yes nor no"
        problem = self._questions.answer(one.id, yes=answer == ["yes"], by=person, how="page")
        return 410 if problem else 200, problem


def _json(status: int, value: Any) -> tuple[int, str, bytes]:
    return status, "application/json", msgspec.json.encode(value)


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


# -- a question as people see it: what would run, and why it is asked -------------------------------------------------


_MOST_TEXT = 100_000
_WORDS = {"open": "open", "yes": "yes", "used": "yes, and it ran", "no": "no", "expired": "not answered in time"}


def shown(one: AskedQuestion) -> dict[str, Any]:
    """Everything that a person needs, as JSON; `parts` are what would run."""
    found: dict[str, Any] = msgspec.to_builtins(one)
    call = found.pop("call")
    return {**found, **call, "call": one.call.identity[:12], "parts": list(_parts(one.call)), "told": outcome(one)}


def outcome(one: AskedQuestion) -> str:
    """What became of a question, in a few words."""
    return _WORDS[one.state] + (f", by {one.by} ({one.how})" if one.by else "")


def _parts(call: AskedCall) -> Iterator[dict[str, str]]:
    try:
        given = msgspec.json.decode(call.input)
    except msgspec.MsgspecError:
        given = call.input
    rows = _readable(given) if isinstance(given, dict) else [("Content", "text", str(given))]
    for title, kind, text in rows:
        more = f"\n… {len(text) - _MOST_TEXT:,} more characters" if len(text) > _MOST_TEXT else ""
        yield {"title": title, "kind": kind, "text": text[:_MOST_TEXT] + more}


def _readable(given: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """A command, changes as diffs, and whatever else is in a tool's input; nothing of it is left out."""
    rest = dict(given)
    if isinstance(command := rest.get("command"), str):
        confined = unwrapped(rest.pop("command"))
        yield "Command, confined" if confined else "Command", "command", confined[1] if confined else command
    path = rest.get("file_path") or rest.get("notebook_path") or ""
    edits = rest.pop("edits") if isinstance(rest.get("edits"), list) else [rest]
    found = [
        (edit, edit.pop("new_string")) for edit in edits if isinstance(edit, dict) and _is_text(edit, "new_string")
    ]
    changes = [(f"Change in {path}", "diff", _diff(str(edit.pop("old_string", "")), new)) for edit, new in found]
    whole = [name for name in ("content", "new_source") if path and _is_text(rest, name)]
    changes += [(f"New contents of {path}", "diff", _diff("", rest.pop(name))) for name in whole]
    yield from changes
    if left := [edit for edit in edits if edit and edit is not rest]:
        rest["edits"] = left
    if rest and not (changes and rest.keys() <= {"file_path", "notebook_path"}):
        yield "Input", "text", msgspec.json.format(msgspec.json.encode(rest), indent=2).decode()


def _is_text(given: dict[str, Any], name: str) -> bool:
    return isinstance(given.get(name), str)


def _diff(old: str, new: str) -> str:
    """A unified diff without its head."""
    lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm=""))
    return "\n".join(lines[2:]) or "(no change)"
