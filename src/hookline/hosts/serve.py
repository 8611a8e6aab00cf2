"""A host's payload in, the host's answer out: decode, ask the hooks, encode. What cannot be judged is refused."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from operator import or_
from os.path import realpath
from typing import Any

import msgspec

from hookline.core.engine import HookSet
from hookline.core.wire.json_text import parse_object
from hookline.errors import EventError
from hookline.events import Event
from hookline.hosts.answer import fails_closed, refusal, within_rules
from hookline.hosts.decode import decode, original
from hookline.hosts.encode import cut, encode, refuse
from hookline.hosts.host import Host, Response, able
from hookline.replies import NOTHING, Reply, deny


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
    except EventError:
        return ()


def speaker(host: Host, payload: Mapping[str, Any], hosts: Iterable[Host]) -> Host:
    """The host that really asks: one may also run the hooks that were written for others."""
    borrowers = (one for one in hosts if host.name in one.borrows and one.recognized_by)
    return next((one for one in borrowers if all(field in payload for field in one.recognized_by)), host)
