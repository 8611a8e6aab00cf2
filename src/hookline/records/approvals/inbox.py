"""`Inbox`: what hooks ask where no one can be asked directly. It puts a question and waits as long as it may."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import msgspec

from hookline.core.engine import Approval, Status, Verdict
from hookline.core.engine.composition import answer_seconds
from hookline.core.engine.policy import policy_digest
from hookline.errors import ConfigError, HooklineError
from hookline.events import Event
from hookline.processes.service import address, start
from hookline.records.approvals.config import load_approvals
from hookline.records.approvals.questions import AskedCall, AskedQuestion

ENTRY = "hookline.cli.resident"
"""What the service's workers import."""
LONGEST_HOLD = 600.0
MARGIN = 1.0
"""Seconds that are left for the answer to reach the host."""
START_LIMIT = 10.0
AGAIN = "Go on with something else, and make exactly the same call again later"
MOST_BYTES = 32 << 20
_LOOK = 0.05


class Unreachable(HooklineError):
    """The inbox cannot be asked."""


class Inbox:
    """Puts an `ask` to the people in `approvals` of the user's settings: `Hooks(on_ask=Inbox())`.

    It waits `hold` seconds at most, and not longer than the hooks' deadline. After that the call is denied and the
    question stays open: a late yes lets the same call run once. `host` and `before` tell the people who asks, and what
    happened before.
    """

    hold: float

    def __init__(
        self, *, hold: float = LONGEST_HOLD, host: str = "", before: Callable[[Event], Sequence[str]] | None = None
    ) -> None:
        self.hold, self._host, self._before = hold, host, before

    @classmethod
    def configured(
        cls, *, host: str = "", able: bool = False, before: Callable[[Event], Sequence[str]] | None = None
    ) -> Inbox | None:
        """The inbox of this user, if the settings have `approvals`; for a host that is `able` to ask, if `always`."""
        found = load_approvals()
        if found is None or (able and not found.always):
            return None
        return cls(hold=found.hold or LONGEST_HOLD, host=host, before=before)

    async def __call__(self, verdict: Verdict) -> Approval:
        """A person's answer; a deny that says how to go on if there is none in time."""
        left = answer_seconds.get()
        hold = max(0.0, self.hold if left is None else min(self.hold, left - MARGIN))
        question = AskedQuestion(
            id="", call=call_of(verdict), why=verdict.reason, hooks=verdict.decided_by or "", host=self._host,
            before=tuple(self._before(verdict.event)) if self._before else (),
        )  # fmt: skip
        identity = question.call.identity
        try:
            async with asyncio.timeout(hold + MARGIN / 2):
                found = await _put(question, time.monotonic() + hold)
        except (TimeoutError, Unreachable) as problem:
            told = str(problem) or f"the inbox did not answer in time. {AGAIN}"
            return Approval(by="", call=identity, granted=False, reason=f"{told}: {verdict.reason}")
        return Approval(
            by=found.get("by", ""), how=found.get("how", ""), question=found.get("id", ""), call=identity,
            granted=found.get("state") == "used", reason=found.get("reason", "the inbox gave no answer"),
        )  # fmt: skip


def call_of(verdict: Verdict) -> AskedCall:
    """What is asked about: the call as it would run, and the hooks that judged it."""
    event = verdict.event
    content = verdict.input if event.tool_name else getattr(event, "prompt", "")
    plain = msgspec.to_builtins(content, str_keys=True, enc_hook=repr)
    return AskedCall(
        event=event.event_name, session=event.session_id, agent=event.agent_id or "", cwd=event.cwd,
        tool=event.tool_name or "", input=msgspec.json.encode(plain, order="sorted").decode(),
        policy=policy_digest(verdict.chosen),
    )  # fmt: skip


async def _put(question: AskedQuestion, until: float) -> dict[str, Any]:
    """The answer to a question; if the service ends meanwhile, the next one is asked the same."""
    path()  # where there is no service, there is nothing to wait for
    while True:
        try:  # the clock is the machine's: a service that takes its time to start does not hold the call for longer
            async for found in request({"do": "ask", "question": question, "until": until}, START_LIMIT):
                return found
        except Unreachable:
            if time.monotonic() >= until:
                raise
        await asyncio.sleep(_LOOK)


async def request(body: Mapping[str, Any], limit: float = START_LIMIT) -> AsyncIterator[dict[str, Any]]:
    """What the inbox answers, one object after another; the service that keeps it is started if it does not run."""
    with contextlib.closing(await _connected(limit)) as connection:
        reader, writer = await asyncio.open_unix_connection(sock=connection, limit=MOST_BYTES)
        try:
            writer.write(msgspec.json.encode(body) + b"\n")
            await writer.drain()
            while line := await reader.readline():
                yield msgspec.json.decode(line, type=dict[str, Any])
        except (OSError, ValueError) as problem:
            raise Unreachable(f"the inbox cannot be reached: {problem}") from None
        finally:
            writer.close()


async def ask_once(body: Mapping[str, Any], limit: float = START_LIMIT) -> dict[str, Any]:
    """The first thing that the inbox answers."""
    async for found in request(body, limit):
        return found
    raise Unreachable("the inbox gave no answer")


def path() -> str:
    """The inbox's socket."""
    if not address.instance():
        raise Unreachable("the inbox is kept by the resident service, which is turned off; see `hookline service`")
    return f"{address.folder()}/{address.instance()}.inbox.sock"


async def _connected(limit: float) -> socket.socket:
    where, end = path(), time.monotonic() + limit
    while True:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(where)
        except OSError as problem:
            connection.close()
            starts = isinstance(problem, FileNotFoundError | ConnectionRefusedError)
            if not starts or time.monotonic() >= end:
                raise Unreachable(f"the inbox cannot be reached: {problem}") from None
            with contextlib.suppress(OSError):  # a full disk, a read-only folder
                start.start(ENTRY)
            await asyncio.sleep(_LOOK)
            continue
        if address.is_trusted(connection):
            return connection
        connection.close()
        raise Unreachable("the inbox belongs to a process that is confined differently")


# -- what people are told unasked -------------------------------------------------------------------------------------


log: logging.Logger = logging.getLogger("hookline.approvals")
_SECONDS = 2.0


async def alert(kind: str, title: str, text: str) -> None:
    """Tell the people of `approvals`, if its `alerts` are on; the same `kind` is not told again for a while."""
    try:
        settings = load_approvals()
        if settings is not None and settings.alerts is not None:
            async with asyncio.timeout(_SECONDS):
                await ask_once({"do": "alert", "kind": kind, "title": title, "text": text}, _SECONDS)
    except (ConfigError, TimeoutError, Unreachable) as problem:
        log.warning("no one could be told `%s`: %s", title, str(problem) or "it took too long")


async def report(verdict: Verdict) -> None:
    """Tell what went wrong in a verdict; a deny is counted, unless a person gave it."""
    for outcome in verdict.failures:
        slow = outcome.status is Status.TIMEOUT
        title = f"hook `{outcome.hook}` {'timed out' if slow else 'failed'} on {verdict.event.event_name}"
        await alert(f"{outcome.status} {outcome.hook}", title, outcome.error or "")
    if verdict.blocked and verdict.approval is None:
        await alert(
            "denied", "", f"the last one: {verdict.event.tool_name or verdict.event.event_name}: {verdict.reason}"
        )
