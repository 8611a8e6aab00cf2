"""One way to answer any host: decode → fire → encode.

Two rules hold for every host. What cannot be judged is refused: an event that cannot be read, hooks that cannot be
asked, an answer that cannot be written (so it is in `serve`, too, where a call may be several events). And `stop` on a
gate is also a deny, because a host that only hears "stop" may run the tool first and stop then (Claude Code: FACTS.md,
sdk_continue_false).
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import reduce
from operator import or_
from os.path import realpath
from typing import Any, Protocol, TypeVar

import msgspec

from hookline.core.engine import HookSet, Verdict
from hookline.core.engine.engine import FiresAsync
from hookline.core.wire.dialects import DIALECTS, detect, message_response
from hookline.core.wire.json_text import check_says, parse_object
from hookline.errors import EventError, HooklineError, ReplyError
from hookline.events import Event, spec_of
from hookline.hosts.decode import decode, original
from hookline.hosts.encode import cut, encode, refuse
from hookline.hosts.host import Host, Response, able
from hookline.replies import NOTHING, Decision, Reply, deny

log: logging.Logger = logging.getLogger("hookline.hosts")
P_contra = TypeVar("P_contra", contravariant=True)
A_co = TypeVar("A_co", covariant=True)
P = TypeVar("P")
A = TypeVar("A")


class Codec(Protocol[P_contra, A_co]):
    """A host's words: how its events are read and how it wants to be answered."""

    def decode(self, payload: P_contra, /) -> Event:
        """What a payload asks about; raises a `HooklineError` if that cannot be told."""

    def encode(self, reply: Reply, event: Event, /) -> A_co:
        """A reply in the host's words; raises a `HooklineError` if it has none for it."""

    def refuse(self, problem: BaseException, payload: P_contra, event: Event | None, /) -> A_co:
        """The answer that keeps a gate shut; `event` is missing when it could not be read.

        Where nothing can be kept shut it may raise, for hosts that report a failed hook themselves.
        """


async def answer(hooks: FiresAsync, payload: P, host: Codec[P, A]) -> A:
    """The host's question answered by the hooks, in the host's words; never silence because something went wrong."""
    event: Event | None = None
    try:
        event = host.decode(payload)
        verdict = await hooks.fire(event)
        said = verdict.reply  # what most hooks have to say is nothing
        return host.encode(said if said is NOTHING else within_rules(reply_for(verdict), event), event)
    except (Exception, SystemExit) as problem:  # noqa: BLE001 - whatever it was, the host must not take it for a yes
        _log_problem(problem, event)
        return host.refuse(problem, payload, event)


def _log_problem(problem: BaseException, event: Event | None) -> None:
    if event is None:
        log.warning("an event could not be read: %s", problem)
    elif isinstance(problem, HooklineError):
        log.warning("hooks on %s could not be asked: %s", event.event_name, problem)
    else:
        log.error("hooks on %s could not be asked", event.event_name, exc_info=problem)


def reply_for(verdict: Verdict) -> Reply:
    """What to tell a host: what is blocked here is denied there, even where the host itself would go on."""
    reply = verdict.reply
    if reply.decision is Decision.DENY or not verdict.blocked:
        return reply
    return reply | deny(verdict.reason)


def within_rules(reply: Reply, event: Event) -> Reply:
    """The reply to a call that goes on changed: the user's rules hold for a line, also when it is put in a wrapper."""
    if reply.input is None:
        return reply
    check_says(reply.input, f"reply to {event.event_name}: rewritten input", ReplyError)
    from hookline.hosts.user_rules import under_rules  # most answers change nothing

    return under_rules(reply, event)


def fails_closed(event: Event | type[Event] | None) -> bool:
    """Whether a failure must be refused: the event comes before something, or it is not known what it is."""
    return event is None or spec_of(event).gate


def refusal(problem: BaseException, event: Event | type[Event] | None) -> str:
    """Why it is refused, for the host."""
    if isinstance(problem, HooklineError):
        told = str(problem)
    elif isinstance(problem, SystemExit):
        code = 0 if problem.code is None else problem.code if isinstance(problem.code, int) else 1
        told = f"a hook ended the program (exit code {code})"
    else:
        told = f"{type(problem).__name__}: {problem}"
    return f"hooks could not be asked: {told}{f'; {event.event_name} fails closed' if event is not None else ''}"


# -- a host with a row: its payload in, its answer out -----------------------------------------------------------------


async def serve(
    hooks: HookSet, host: Host, data: bytes, *, event: str = "", cwd: str = "", deadline: float | None = None,
    note: Callable[[tuple[Event, ...], Reply], None] | None = None,
) -> Response:  # fmt: skip
    """The hooks' answer to a host, in its words; `event` is the name under which it is asked, `note` is told the reply.

    A call that touches several files is several events: each is judged, and the strictest verdict holds for the call.
    """
    events: tuple[Event, ...] = ()
    try:
        events = decode(host, parse_object(data), event=event, cwd=cwd)
        if not able(host, "rewrite"):  # a guard that would rather rewrite a line is told
            from hookline.guards.sandboxing import host_rewrites

            host_rewrites.set(False)
        until = None if deadline is None else time.monotonic() + deadline
        replies = []
        for each in events:
            left = None if until is None else max(until - time.monotonic(), 0.01)
            reply = (await hooks.fire(each, deadline=left)).reply
            # the user's rules on a confined line, where the host is the one whose settings they stand in
            replies.append(within_rules(reply, each) if host.own_rules else reply)
        reply = _joined(replies, events)
        if note is not None:
            note(events, reply)
        return encode(host, reply, events[0]) if events else Response()
    except (Exception, SystemExit) as problem:  # noqa: BLE001 - whatever it was, the host must not take it for a yes
        return refused(host, problem, data, event=event, events=events)


def _joined(replies: list[Reply], events: tuple[Event, ...]) -> Reply:
    """One reply to a call that was judged in parts, or under several names; no part can be rewritten alone."""
    reply = reduce(or_, map(_without_same_path, replies, events), NOTHING)
    first = events[0].tool_input if events else None
    if reply.input is not None and any("part" in original(each) or each.tool_input != first for each in events):
        return reply | deny("a hook changed a part of this call; make one call for each file")
    return reply


def _without_same_path(reply: Reply, event: Event) -> Reply:
    """The reply without a new input, if that only names a file of a patch by where its path leads."""
    if reply.input is None or "part" not in original(event):
        return reply
    before, after = dict(event.tool_input or {}), dict(reply.input)
    here, there = before.pop("file_path", None), after.pop("file_path", None)
    same = before == after and isinstance(here, str) and isinstance(there, str)
    return msgspec.structs.replace(reply, input=None) if same and realpath(here) == realpath(there) else reply


def refused(
    host: Host, problem: BaseException, data: bytes, *, event: str = "", events: tuple[Event, ...] = ()
) -> Response:
    """The host's deny, on what may still be prevented or may be anything; on the rest, a note on stderr."""
    first = next(iter(events or peek(host, data, event)), None)
    name = first.event_name if first else host.ours(event) or ""
    reason = refusal(problem, first)
    return refuse(host, reason, name, first) if fails_closed(first) else Response(stderr=cut(reason).encode())


def peek(host: Host, data: bytes, event: str) -> tuple[Event, ...]:
    """The events in a payload that could not be judged, if it can be read at all."""
    try:
        return decode(host, parse_object(data), event=event)
    except Exception:  # noqa: BLE001 - whatever is wrong with it, the refusal must still be said
        return ()


def speaker(host: Host, payload: Mapping[str, Any], hosts: Iterable[Host]) -> Host:
    """The host that really asks: one may also run the hooks that were written for others."""
    borrowers = (one for one in hosts if host.name in one.borrows and one.recognized_by)
    return next((one for one in borrowers if all(field in payload for field in one.recognized_by)), host)


# -- hosts that send an event as a line of JSON, in one of our dialects, and want a line back --------------------------

MOST_BYTES = 50 * 1024 * 1024  # how long a line may be


class LineCodec:
    """Reads a line in the dialect it is written in, or in the one that is named, and answers in the same.

    `unreadable` counts the lines that were refused.
    """

    def __init__(self, dialect: str | None = None) -> None:
        self._dialect = dialect
        self._spoken = dialect or "claude"
        self.unreadable: int = 0

    def decode(self, line: bytes) -> Event:
        """The event of a line."""
        if len(line) > MOST_BYTES:
            raise EventError(f"a line of more than {MOST_BYTES:,} bytes")
        payload = parse_object(line)
        self._spoken = self._dialect or detect(payload)
        return DIALECTS[self._spoken].decode_event(payload)

    def encode(self, reply: Reply, event: Event) -> bytes:
        """The answer in the dialect of the line that was read last."""
        return DIALECTS[self._spoken].encode_reply(reply, event)

    def refuse(self, problem: BaseException, line: bytes, event: Event | None) -> bytes:
        """An answer that blocks in every dialect: what cannot be judged is not let through."""
        self.unreadable += 1
        reason = str(problem) if isinstance(problem, HooklineError) else refusal(problem, event)
        return refused_line(line, reason)


def refused_line(line: bytes, reason: str) -> bytes:
    """A block in the words of every dialect; one of type `hook_response` to a `hook_event`."""
    asked: dict[str, Any] = {}
    with suppress(HooklineError):
        asked = parse_object(line) if len(line) <= MOST_BYTES else {}
    if asked.get("type") != "hook_event":
        words = {"decision": "block", "reason": reason, "continue_execution": False, "stop_reason": reason}
        return msgspec.json.encode({"error": reason, **words})
    call = asked.get("tool_use_id")
    said = message_response(
        tool_use_id=call if isinstance(call, str) else "", goes_on=False, decision="block", reason=reason
    )
    return msgspec.json.encode({**said, "error": reason})
