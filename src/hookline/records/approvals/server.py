"""The process that keeps the inbox: questions come in over the service's socket, answers from the page or from there.

It has the only key. Answers over the socket count only from processes that no agent is seen above (`find_agent`).
"""

import asyncio
import contextlib
import difflib
import logging
import os
import pwd
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, parse_qsl, quote, urlsplit

import msgspec

from hookline.core.origin import HEADERS
from hookline.errors import ConfigError
from hookline.guards.detect import redact
from hookline.guards.sandboxing import unwrapped
from hookline.processes.service import address
from hookline.records.approvals.inbox import AGAIN, MOST_BYTES, ApprovalSettings, Channel, SlackChannel, load_approvals
from hookline.records.approvals.questions import AskedCall, AskedQuestion, Questions, TooManyQuestions
from hookline.records.approvals.transports import LinkMessage, NotSent, SocketMode, send

log: logging.Logger = logging.getLogger("hookline.approvals")
IDLE = 15 * 60.0  # seconds without an open question or a connection after which the process ends
READ_LIMIT = 5.0
_MOST_TEXT = 500
_MOST_SHOWN = 100_000
_PAGE_SECONDS = 10.0
_MOST_HEAD = 16_384
_MOST_BODY = 1_000
_GONE = b"This link is not valid: a newer one took its place, or the question is over."
STATIC = Path(__file__).parents[1] / "console" / "static"
FILES = ("question_page.js", "question.js", "dom.js", "theme.js", "console.css", "icon.svg")
"""What the page is made of: the console's own pieces."""
_KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_WORDS = {"open": "open", "yes": "yes", "used": "yes, and it ran", "no": "no", "expired": "not answered in time"}

Body = dict[str, Any]
Left = asyncio.Future[Any]  # is done when who asked leaves


class People:
    """The people of the settings as they are now; `start` runs what has to wait for a server."""

    def __init__(self, questions: Questions, start: Callable[[Coroutine[Any, Any, None]], object]) -> None:
        self._questions, self._start = questions, start
        self._alerted: dict[str, float] = {}
        self._denials: list[float] = []
        self.site: Site = Site(questions, lambda: self.settings().people)
        self.slack: SocketMode = SocketMode(self._link_for)

    def settings(self) -> ApprovalSettings:
        try:
            return load_approvals() or ApprovalSettings()
        except ConfigError as problem:
            log.warning("%s", problem)
            return ApprovalSettings()

    def tell(self, one: AskedQuestion) -> None:
        text = redact(one.why)[:_MOST_TEXT] + (f"\n({one.host})" if one.host else "")
        settings = self.settings()
        self._broadcast(settings, f"{one.call.tool or one.call.event}: may it run?", text, one)
        self.slack.keep(settings)

    def alert(self, kind: str, title: str, text: str) -> None:
        """Tell everyone something, if they want to know, and the same not too often; denials only if there are many."""
        settings, now = self.settings(), time.monotonic()
        if (limits := settings.alerts) is None:
            return
        if kind == "denied":
            self._denials = [when for when in (*self._denials, now) if now - when < limits.seconds]
            many = len(self._denials) >= limits.denials
            title = f"{len(self._denials)} calls were denied in {limits.seconds:g} s" if many else ""
        if title and now - self._alerted.get(kind, -limits.pause) >= limits.pause:
            self._alerted[kind] = now
            self._broadcast(settings, title, redact(text)[:_MOST_TEXT])

    def _broadcast(self, settings: ApprovalSettings, title: str, text: str, one: AskedQuestion | None = None) -> None:
        for person, channels in settings.people.items():
            link, name = ("", "") if one is None else (self.site.link(one, person), one.id)
            message = LinkMessage(title=title, text=text, link=link, question=name, person=person)
            for number, channel in enumerate(channels, 1):
                self._start(self._send(channel, message, {} if one is None else one.sent, f"{person} {number}"))

    async def _send(self, channel: Channel, message: LinkMessage, sent: dict[str, str], name: str) -> None:
        try:
            await asyncio.to_thread(send, channel, message)
            sent[name] = "sent"
        except NotSent as problem:  # it delays an answer, and never gives one
            sent[name] = str(problem)
            log.warning("%s was not told: %s", message.person, problem)

    def _link_for(self, name: str, user: str) -> str:
        """The link of a question for a user of Slack; nothing if it is not for them."""
        one = self._questions.get(name)
        for person, channels in self.settings().people.items():
            if one is not None and any(isinstance(way, SlackChannel) and way.user == user for way in channels):
                return self.site.link(one, person)
        return ""


class InboxServer:
    """Everything around the questions: who may ask, who is told, who may answer."""

    def __init__(self, folder: Path, find_agent: Callable[[int], str]) -> None:
        self._news: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.questions: Questions = Questions(folder / "questions.json", self._wake)
        self.people: People = People(self.questions, self._start)
        self._find_agent = find_agent
        self._own = address.confinement("self")
        self._work: set[asyncio.Task[Any]] = set()
        self._used = time.monotonic()
        self._actions = {"ask": self._ask, "list": self._list, "decide": self._decide, "alert": self._alert}

    async def run(self, listener: socket.socket, ended: asyncio.Event) -> None:
        listener.settimeout(0.0)
        taking = self._start(self._accept(listener))
        await self.people.site.listen(self.people.settings())
        for one in self.questions.recent():  # links of the process before this one are void
            self.people.tell(one)
        try:
            while not ended.is_set():
                waiting = any(one.state in ("open", "yes") for one in self.questions.recent())
                if not waiting and len(self._work) <= 1 and time.monotonic() - self._used >= IDLE:
                    break
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), 5.0)
        finally:
            taking.cancel()
            listener.close()
            await self.people.site.aclose()
            await self.people.slack.aclose()
            for task in self._work:
                task.cancel()
            await asyncio.gather(*self._work, return_exceptions=True)

    def _start(self, work: Any) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        return task

    def _wake(self) -> None:
        self._news.set_result(None)
        self._news = asyncio.get_running_loop().create_future()

    async def _accept(self, listener: socket.socket) -> None:
        while True:
            connection, _ = await asyncio.get_running_loop().sock_accept(listener)
            self._start(self._serve(connection))

    async def _serve(self, connection: socket.socket) -> None:
        pid = address.is_trusted(connection, self._own)
        if not pid:
            connection.close()
            return
        reader, writer = await asyncio.open_unix_connection(sock=connection, limit=MOST_BYTES)
        left: Left = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(READ_LIMIT):
                body = msgspec.json.decode(await reader.readline(), type=Body)
            left = asyncio.ensure_future(reader.read(1))
            async for found in self._actions[body["do"]](body, pid, left):
                writer.write(msgspec.json.encode(found) + b"\n")
                await writer.drain()
        except (OSError, TimeoutError, ValueError, KeyError, msgspec.MsgspecError) as problem:
            log.warning("a connection was dropped: %s", str(problem) or type(problem).__name__)
        finally:
            left.cancel()
            writer.close()
            self._used = time.monotonic()

    async def _ask(self, body: Body, pid: int, left: Left) -> AsyncIterator[Body]:
        new = msgspec.convert(body["question"], AskedQuestion)
        if (late := self.questions.take(new.call)) is not None:
            yield _granted(late)
            return
        earlier = [other for other in self.questions.recent() if other.call.session == new.call.session]
        new.before = new.before or tuple(f"{other.call.tool}: {outcome(other)}" for other in earlier)
        try:
            settings = load_approvals() or ApprovalSettings()  # what is wrong with them, the caller is told
            one, fresh = self.questions.ask(new, settings.expires)
        except (TooManyQuestions, ConfigError) as problem:
            yield {"state": "no", "reason": f"it could not be asked: {problem}"}
            return
        if fresh:
            self.people.tell(one)
        yield await self._wait(one, float(body["until"]), left)

    async def _wait(self, one: AskedQuestion, end: float, left: Left) -> Body:
        """The answer, as soon as it is there; a caller that left does not use it up."""
        one.waiting += 1
        try:
            while True:
                news = self._news
                self.questions.get(one.id)
                if one.state == "yes" and not left.done() and self.questions.take(one.call) is one:
                    return _granted(one)
                if one.state != "open" or left.done() or time.monotonic() >= end:
                    return _refused(one)
                seconds = end - time.monotonic()
                await asyncio.wait({news, left}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            one.waiting -= 1

    async def _list(self, body: Body, pid: int, left: Left) -> AsyncIterator[Body]:
        while not left.done():
            news = self._news
            yield {"questions": [shown(one) for one in self.questions.recent()]}
            if not body.get("follow"):
                return
            await asyncio.wait({news, left}, return_when=asyncio.FIRST_COMPLETED)

    async def _decide(self, body: Body, pid: int, left: Left) -> AsyncIterator[Body]:
        try:
            agent = self._find_agent(pid)
            os.kill(pid, 0)
        except OSError:
            agent = "its process has gone, and cannot be told from an agent's"
        if agent:
            yield {"problem": f"this is for a person, not for an agent: {agent}"}
        else:
            by, how = pwd.getpwuid(os.getuid()).pw_name, str(body["how"])
            yield {"problem": self.questions.answer(str(body["id"]), yes=body["yes"] is True, by=by, how=how)}

    async def _alert(self, body: Body, pid: int, left: Left) -> AsyncIterator[Body]:
        self.people.alert(str(body["kind"]), str(body["title"]), str(body["text"]))
        yield {"state": "noted"}


def _granted(one: AskedQuestion) -> Body:
    reason = f"approved by {one.by} ({one.how}, question {one.id})"
    return {"state": "used", "id": one.id, "by": one.by, "how": one.how, "reason": reason}


def _refused(one: AskedQuestion) -> Body:
    minutes = max(1, round((one.until - time.time()) / 60))
    ran = f"{one.by} approved one such call, and that one runs ({one.how}, question {one.id}). {AGAIN}"
    reasons = {
        "open": f"no one has answered yet; the question {one.id} stays open for {minutes} min. {AGAIN}",
        "no": f"{one.by} said no ({one.how}, question {one.id})",
        "expired": f"the question {one.id} was not answered in time",
    }  # fmt: skip
    by = one.by if one.state == "no" else ""
    reason = f"{reasons.get(one.state, ran)}{f': {one.why}' if one.why else ''}"
    return {"state": "no", "id": one.id, "by": by, "how": one.how if by else "", "reason": reason}


async def serve(folder: Path, fd: int, find_agent: Callable[[int], str]) -> None:
    """Keep the inbox on a socket that is listening, until stdin ends."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(0, ended.set)
    try:
        await InboxServer(folder, find_agent).run(socket.socket(fileno=fd), ended)
    finally:
        loop.remove_reader(0)


class _Request(NamedTuple):
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


class Site:
    """The page's web server: GET shows a question to who has its link, POST answers it, for those in `people`."""

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
        self.url = settings.url.rstrip("/") or f"http://{host}:{self._server.sockets[0].getsockname()[1]}"

    async def aclose(self) -> None:
        if self._server is not None:
            self._server.close()

    def link(self, one: AskedQuestion, person: str) -> str:
        query = f"p={quote(person, safe='')}&t={self._questions.token(one, person)}"
        return f"{self.url}/a/{one.id}?{query}" if self.url else ""

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_PAGE_SECONDS):
                request = await _read_request(reader)
                status, kind, body = self._answer(request)
                head = {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": len(body), "Connection": "close"}
                lines = [f"{name}: {value}" for name, value in (head | HEADERS).items()]
                first = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"
                writer.write("\r\n".join([first, *lines, "", ""]).encode())
                writer.write(b"" if request.method == "HEAD" else body)
                await writer.drain()
        except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as problem:
            log.info("a browser was dropped: %s", str(problem) or type(problem).__name__)
        finally:
            writer.close()

    def _answer(self, request: _Request) -> tuple[int, str, bytes]:
        name = request.path.removeprefix("/static/")
        if name in FILES and name != request.path and request.method in ("GET", "HEAD"):
            return 200, _KINDS[Path(name).suffix], (STATIC / name).read_bytes()
        person, token = request.query.get("p", ""), request.query.get("t", "")
        name = request.path.removeprefix("/a/").removesuffix(".json")
        one = self._questions.check(name, person, token) if request.path.startswith("/a/") else None
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


async def _read_request(reader: asyncio.StreamReader) -> _Request:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").rstrip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.strip().lower(): text.strip() for name, _, text in (line.partition(":") for line in lines)}
    length = int(headers.get("content-length") or 0)
    if not 0 <= length <= _MOST_BODY:
        raise ValueError("a body too long")
    address = urlsplit(target)
    return _Request(method, address.path, dict(parse_qsl(address.query)), headers, await reader.readexactly(length))


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
        more = f"\n… {len(text) - _MOST_SHOWN:,} more characters" if len(text) > _MOST_SHOWN else ""
        yield {"title": title, "kind": kind, "text": text[:_MOST_SHOWN] + more}


def _readable(given: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """A command, changes as diffs, and whatever else is in a tool's input; nothing of it is left out."""
    rest = dict(given)
    if isinstance(command := rest.get("command"), str):
        confined = unwrapped(rest.pop("command"))
        yield "Command, confined" if confined else "Command", "command", confined[1] if confined else command
    path = rest.get("file_path") or rest.get("notebook_path") or ""
    edits = rest.pop("edits") if isinstance(rest.get("edits"), list) else [rest]
    written = [edit for edit in edits if isinstance(edit, dict) and isinstance(edit.get("new_string"), str)]
    pairs = [(str(edit.pop("old_string", "")), edit.pop("new_string")) for edit in written]
    changes = [(f"Change in {path}", "diff", _diff(old, new)) for old, new in pairs]
    whole = [name for name in ("content", "new_source") if path and isinstance(rest.get(name), str)]
    changes += [(f"New contents of {path}", "diff", _diff("", rest.pop(name))) for name in whole]
    yield from changes
    if left := [edit for edit in edits if edit and edit is not rest]:
        rest["edits"] = left
    if rest and not (changes and rest.keys() <= {"file_path", "notebook_path"}):
        yield "Input", "text", msgspec.json.format(msgspec.json.encode(rest), indent=2).decode()


def _diff(old: str, new: str) -> str:
    lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm=""))
    return "\n".join(lines[2:]) or "(no change)"
