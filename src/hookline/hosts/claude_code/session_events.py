"""SessionStart and SessionEnd, for a CLI that registers callbacks on them and never calls them.

The client knows when a conversation begins and ends, so it fires them itself (`quirks.CALLBACK_NEVER_CALLED`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import msgspec

from hookline.core.engine import HookSet
from hookline.errors import ClaudeError, Closed
from hookline.events import Event, SessionEnd, SessionStart
from hookline.hosts.claude_code.argv import Options
from hookline.hosts.claude_code.messages import UserMessage
from hookline.hosts.claude_code.quirks import CALLBACK_NEVER_CALLED

log: logging.Logger = logging.getLogger("hookline.hosts.claude_code")


def with_session_id(options: Options, hooks: HookSet | None) -> Options:
    """The flags with an id for the session, if a hook hears of its beginning or end and the flags do not say which."""
    known = options.session_id or options.resume or options.continue_conversation
    if known or hooks is None or not _heard(hooks, *CALLBACK_NEVER_CALLED.events):
        return options
    return msgspec.structs.replace(options, session_id=str(uuid4()))


def _heard(hooks: HookSet, *names: str) -> bool:
    """Whether a hook or an observer hears of one of these events."""
    heard = {event.event_name for hook in hooks.hooks for event in hook.events} | set(hooks.engine.observers.wanted)
    return not heard.isdisjoint(names)


class SessionNotices:
    """The beginning and the end of one conversation, told to the hooks; nothing where the CLI tells them itself."""

    def __init__(self, hooks: HookSet | None, options: Options, cwd: str, info: Mapping[str, Any]) -> None:
        self._hooks = None if info.get("session_hooks_supported") is True else hooks
        self._options = options
        self._cwd = cwd
        self._context: tuple[str, ...] = ()

    async def start(self) -> None:
        """SessionStart: its context goes with the first prompt; a hook that blocks it is a `ClaudeError`."""
        resumed = bool(self._options.resume or self._options.continue_conversation)
        if self._hooks is None or not _heard(self._hooks, SessionStart.event_name):
            return
        source = "resume" if resumed else "startup"
        verdict = await self._hooks.fire(self._event(SessionStart, source=source, model=self._options.model))
        if verdict.blocked:
            raise ClaudeError(f"a SessionStart hook refused the session: {verdict.reason or 'no reason given'}")
        self._context = verdict.context

    async def end(self) -> None:
        """SessionEnd: too late to change anything."""
        if self._hooks is None or not _heard(self._hooks, SessionEnd.event_name):
            return
        try:
            await self._hooks.fire(self._event(SessionEnd, reason="other"))
        except Closed as problem:  # the caller was done with them before the conversation ended
            log.warning("SessionEnd hooks did not run: %s", problem)

    def first_prompt(self, message: UserMessage) -> UserMessage:
        """The prompt with what SessionStart hooks want the model to know, the first time."""
        texts, self._context = self._context, ()
        if not texts:
            return message
        told = "<system-reminder>\nSessionStart hook additional context: {}\n</system-reminder>"
        blocks = [{"type": "text", "text": told.format("\n".join(texts))}, *message.content]
        spoken = {**message.get("message", {}), "content": blocks}
        return UserMessage("user", msgspec.json.encode({**message.data, "message": spoken}))

    def _event(self, kind: type[Event], **fields: Any) -> Event:
        session_id = self._options.session_id or self._options.resume or ""
        return kind(session_id=session_id, cwd=self._cwd, **fields)
