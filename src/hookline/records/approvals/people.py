"""Who is told: questions with a link for each person, alerts without one, over the channels in the settings."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any

from hookline.errors import ConfigError
from hookline.guards.detect import redact
from hookline.records.approvals.config import Alerts, ApprovalSettings, Channel, SlackChannel, load_approvals
from hookline.records.approvals.questions import AskedQuestion, Questions
from hookline.records.approvals.slack import SocketMode
from hookline.records.approvals.transports import LinkMessage, NotSent, send
from hookline.records.approvals.web import Site

log: logging.Logger = logging.getLogger("hookline.approvals")
_MOST_TEXT = 500


class People:
    """The people of the settings as they are now; `start` runs what has to wait for a server."""

    def __init__(self, questions: Questions, start: Callable[[Coroutine[Any, Any, None]], object]) -> None:
        self._questions, self._start = questions, start
        self._alerted: dict[str, float] = {}
        self._denials: list[float] = []
        self.site: Site = Site(questions, lambda: self.settings().people)
        self.slack: SocketMode = SocketMode(self._link_for)

    def settings(self, *, strict: bool = False) -> ApprovalSettings:
        """What the settings say; what is wrong with them is raised where a caller can be told (`strict`)."""
        try:
            return load_approvals() or ApprovalSettings()
        except ConfigError as problem:
            if strict:
                raise
            log.warning("%s", problem)
            return ApprovalSettings()

    def tell(self, one: AskedQuestion) -> None:
        """Send everyone the link of a question."""
        text = redact(one.why)[:_MOST_TEXT] + (f"\n({one.host})" if one.host else "")
        settings = self.settings()
        self._broadcast(settings, f"{one.call.tool or one.call.event}: may it run?", text, one)
        self.slack.keep(settings)

    def alert(self, kind: str, title: str, text: str) -> None:
        """Tell everyone something, if they want to know, and the same not too often; denials only if there are many."""
        settings, now = self.settings(), time.monotonic()
        limits = settings.alerts
        if limits is None:
            return
        if kind == "denied":
            title = self._burst(limits, now)
        if title and now - self._alerted.get(kind, -limits.pause) >= limits.pause:
            self._alerted[kind] = now
            self._broadcast(settings, title, redact(text)[:_MOST_TEXT])

    def _burst(self, limits: Alerts, now: float) -> str:
        self._denials = [when for when in (*self._denials, now) if now - when < limits.seconds]
        many = len(self._denials) >= limits.denials
        return f"{len(self._denials)} calls were denied in {limits.seconds:g} s" if many else ""

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
