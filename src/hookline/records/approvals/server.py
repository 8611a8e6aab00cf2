"""The process that keeps the inbox: questions come in over the service's socket, answers from the page or from there.

It has the only key. Answers over the socket count only from processes that no agent is seen above (`find_agent`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import pwd
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from hookline.errors import ConfigError
from hookline.guards.detect import redact
from hookline.processes.service import address
from hookline.records.approvals import slack
from hookline.records.approvals.config import Alerts, ApprovalSettings, Channel, SlackChannel, load_approvals
from hookline.records.approvals.inbox import MOST_BYTES
from hookline.records.approvals.questions import AskedQuestion, Questions, TooManyQuestions
from hookline.records.approvals.shown import outcome, shown
from hookline.records.approvals.transports import LinkMessage, NotSent, send
from hookline.records.approvals.web import Site

log: logging.Logger = logging.getLogger("hookline.approvals")
IDLE = 15 * 60.0
"""Seconds without an open question or a connection after which the process ends."""
READ_LIMIT = 5.0
_AGAIN = "Go on with something else, and make exactly the same call again later"
_MOST_TEXT = 500


class InboxServer:
    """Everything around the questions: who may ask, who is told, who may answer."""

    def __init__(self, folder: Path, find_agent: Callable[[int], str]) -> None:
        self._news = asyncio.Event()
        self.questions: Questions = Questions(folder / "questions.json", self._wake)
        self._find_agent = find_agent
        self._own = address.confinement("self")
        self._work: set[asyncio.Task[Any]] = set()
        self._alerted: dict[str, float] = {}
        self._denials: list[float] = []
        self._used = time.monotonic()
        self.site: Site = Site(self.questions, lambda: self._settings().people)
        self._slack = slack.SocketMode(self._link_for)

    def settings(self) -> ApprovalSettings:
        """What the settings say now; without `approvals` the terminal and the console are the only ways to answer."""
        return load_approvals() or ApprovalSettings()

    def _settings(self) -> ApprovalSettings:
        """The same where no one can be told what is wrong with them: then there are no people."""
        try:
            return self.settings()
        except ConfigError as problem:
            log.warning("%s", problem)
            return ApprovalSettings()

    async def run(self, listener: socket.socket, ended: asyncio.Event) -> None:
        """Serve until `ended`, or until there was nothing to do for long."""
        settings = self._settings()
        listener.settimeout(0.0)
        taking = self._start(self._accept(listener))
        await self.site.listen(settings)
        for one in self.questions.recent():  # links of the process before this one are void
            self._tell(one, settings)
        try:
            while not ended.is_set() and (self._has_work() or time.monotonic() - self._used < IDLE):
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), 5.0)
        finally:
            taking.cancel()
            listener.close()
            await self.site.aclose()
            await self._slack.aclose()
            for task in self._work:
                task.cancel()
            await asyncio.gather(*self._work, return_exceptions=True)

    def _has_work(self) -> bool:
        return len(self._work) > 1 or any(one.state in ("open", "yes") for one in self.questions.recent())

    def _start(self, work: Any) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        return task

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    # -- connections ---------------------------------------------------------------------------------------------

    async def _accept(self, listener: socket.socket) -> None:
        while True:
            connection, _ = await asyncio.get_running_loop().sock_accept(listener)
            self._used = time.monotonic()
            self._start(self._serve(connection))

    async def _serve(self, connection: socket.socket) -> None:
        pid = address.is_trusted(connection, self._own)
        if not pid:
            connection.close()
            return
        reader, writer = await asyncio.open_unix_connection(sock=connection, limit=MOST_BYTES)
        try:
            async with asyncio.timeout(READ_LIMIT):
                body = msgspec.json.decode(await reader.readline(), type=dict[str, Any])
            async for found in self._answers(body, pid, reader):
                writer.write(msgspec.json.encode(found) + b"\n")
                await writer.drain()
        except (OSError, TimeoutError, ValueError, KeyError, msgspec.MsgspecError) as problem:
            log.warning("a connection was dropped: %s", str(problem) or type(problem).__name__)
        finally:
            writer.close()
            self._used = time.monotonic()

    def _answers(
        self, body: dict[str, Any], pid: int, reader: asyncio.StreamReader
    ) -> AsyncIterator[Mapping[str, Any]]:
        actions = {"ask": self._ask, "list": self._list, "decide": self._decide, "alert": self._alert}
        return actions[body["do"]](body, pid, reader)

    # -- asking --------------------------------------------------------------------------------------------------

    async def _ask(self, body: dict[str, Any], pid: int, reader: asyncio.StreamReader) -> AsyncIterator[dict[str, Any]]:
        new = msgspec.convert(body["question"], AskedQuestion)
        late = self.questions.take(new.call)
        if late is not None:
            yield _granted(late)
            return
        try:
            settings = self.settings()
            one, fresh = self.questions.ask(new, settings.expires)
        except (TooManyQuestions, ConfigError) as problem:
            yield {"state": "no", "reason": f"it could not be asked: {problem}"}
            return
        if fresh:
            earlier = [other for other in self.questions.recent() if other.call.session == one.call.session]
            one.before = one.before or tuple(f"{other.call.tool}: {outcome(other)}" for other in earlier[:-1])
            self._tell(one, settings)
        yield await self._wait(one, float(body["seconds"]), reader)

    async def _wait(self, one: AskedQuestion, seconds: float, reader: asyncio.StreamReader) -> dict[str, Any]:
        """The answer, as soon as it is there; a caller that left does not use it up."""
        left = asyncio.ensure_future(reader.read(1))
        end = time.monotonic() + seconds
        one.waiting += 1
        try:
            while True:
                news = self._news
                self.questions.get(one.id)
                if one.state == "yes" and not left.done() and self.questions.take(one.call) is one:
                    return _granted(one)
                if one.state != "open" or left.done() or time.monotonic() >= end:
                    return _refused(one)
                await _first(news, left, end - time.monotonic())
        finally:
            one.waiting -= 1
            left.cancel()

    # -- telling people ------------------------------------------------------------------------------------------

    def _tell(self, one: AskedQuestion, settings: ApprovalSettings) -> None:
        title = f"{one.call.tool or one.call.event}: may it run?"
        text = redact(one.why)[:_MOST_TEXT] + (f"\n({one.host})" if one.host else "")
        for person, channels in settings.people.items():
            link = self.site.link(one, person)
            message = LinkMessage(title=title, text=text, link=link, question=one.id, person=person)
            for number, channel in enumerate(channels):
                self._start(self._send(channel, message, one, f"{person} {number + 1}"))
        self._slack.keep(settings)

    async def _send(self, channel: Channel, message: LinkMessage, one: AskedQuestion | None, name: str) -> None:
        try:
            await asyncio.to_thread(send, channel, message)
            problem = ""
        except NotSent as error:  # it delays an answer, and never gives one
            problem = str(error)
            log.warning("%s was not told: %s", message.person, problem)
        if one is not None:
            one.sent[name] = problem or "sent"

    def _link_for(self, id: str, user: str) -> str:
        """The link of a question for a user of Slack; nothing if it is not for them."""
        one = self.questions.get(id)
        for person, channels in self._settings().people.items():
            if one is not None and any(isinstance(way, SlackChannel) and way.user == user for way in channels):
                return self.site.link(one, person)
        return ""

    # -- alerts --------------------------------------------------------------------------------------------------

    async def _alert(
        self, body: dict[str, Any], pid: int, reader: asyncio.StreamReader
    ) -> AsyncIterator[dict[str, Any]]:
        """Tell all people something, the same thing not too often; a denial only when there are many."""
        settings = self._settings()
        limits, kind, now = settings.alerts, str(body["kind"]), time.monotonic()
        title, text = str(body["title"]), redact(str(body["text"]))[:_MOST_TEXT]
        if kind == "denied":
            title = self._count_denial(limits, now)
        if limits is not None and title and now - self._alerted.get(kind, -limits.pause) >= limits.pause:
            self._alerted[kind] = now
            for person, channels in settings.people.items():
                message = LinkMessage(title=title, text=text, person=person)
                for number, channel in enumerate(channels):
                    self._start(self._send(channel, message, None, f"{person} {number + 1}"))
        yield {"state": "noted"}

    def _count_denial(self, limits: Alerts | None, now: float) -> str:
        if limits is None:
            return ""
        self._denials = [when for when in (*self._denials, now) if now - when < limits.seconds]
        many = len(self._denials) >= limits.denials
        return f"{len(self._denials)} calls were denied in {limits.seconds:g} s" if many else ""

    # -- the terminal and the console ----------------------------------------------------------------------------

    async def _list(
        self, body: dict[str, Any], pid: int, reader: asyncio.StreamReader
    ) -> AsyncIterator[dict[str, Any]]:
        """All questions; with `follow`, again after each change."""
        left = asyncio.ensure_future(reader.read(1))
        while True:
            news = self._news
            yield {"questions": [shown(one) for one in self.questions.recent()]}
            if not body.get("follow"):
                return
            await _first(news, left)
            if left.done():
                return

    async def _decide(
        self, body: dict[str, Any], pid: int, reader: asyncio.StreamReader
    ) -> AsyncIterator[dict[str, Any]]:
        agent = self._find_agent(pid)
        if agent or not _is_running(pid):
            yield {"problem": f"this is for a person, not for an agent: {agent or 'the process has gone'}"}
            return
        by, how = pwd.getpwuid(os.getuid()).pw_name, str(body["how"])
        yield {"problem": self.questions.answer(str(body["id"]), yes=body["yes"] is True, by=by, how=how)}


async def _first(news: asyncio.Event, left: asyncio.Future[bytes], seconds: float | None = None) -> None:
    """Wait for news, for the other end to leave, or for so long."""
    change: asyncio.Future[Any] = asyncio.ensure_future(news.wait())
    try:
        await asyncio.wait({change, left}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        change.cancel()


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _granted(one: AskedQuestion) -> dict[str, Any]:
    return {"state": "used", "id": one.id, "by": one.by, "how": one.how,
            "reason": f"approved by {one.by} ({one.how}, question {one.id})"}  # fmt: skip


def _refused(one: AskedQuestion) -> dict[str, Any]:
    found = {"state": "no", "id": one.id, "by": one.by, "how": one.how}
    why = f": {one.why}" if one.why else ""
    if one.state == "open":
        minutes = max(1, round((one.until - time.time()) / 60))
        told = f"no one has answered yet; the question {one.id} stays open for {minutes} min. {_AGAIN}"
        return {**found, "state": "open", "reason": f"{told}{why}"}
    if one.state in ("yes", "used"):
        told = f"{one.by} approved one such call, and that one runs ({one.how}, question {one.id}). {_AGAIN}"
        return {**found, "by": "", "reason": told}
    if one.state == "no":
        return {**found, "reason": f"{one.by} said no ({one.how}, question {one.id}){why}"}
    return {**found, "reason": f"the question {one.id} was {outcome(one)}{why}"}


async def serve(folder: Path, fd: int, find_agent: Callable[[int], str]) -> None:
    """Keep the inbox on a socket that is listening, until stdin ends."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(0, ended.set)
    try:
        await InboxServer(folder, find_agent).run(socket.socket(fileno=fd), ended)
    finally:
        loop.remove_reader(0)
