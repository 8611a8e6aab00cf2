"""Every dialect by its name, and which one a line is written in. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

from hookline.core.wire import claude, message, snake, spec
from hookline.errors import EventError, HooklineError, did_you_mean
from hookline.events import Event
from hookline.replies import Reply


class Dialect(Protocol):
    """Turns bytes into events and replies and back."""

    def decode_event(self, data: bytes | str | Mapping[str, Any]) -> Event: ...

    def encode_event(self, event: Event) -> bytes: ...

    def decode_reply(self, data: bytes | str | Mapping[str, Any], event: Event | str) -> Reply: ...

    def encode_reply(self, reply: Reply, event: Event | str) -> bytes: ...


DIALECTS: MappingProxyType[str, Dialect] = MappingProxyType({
    "claude": claude, "spec": spec, "snake": snake, "message": message,
})  # fmt: skip


def dialect(name: str) -> Dialect:
    """The dialect of that name."""
    if name not in DIALECTS:
        known = ", ".join(f"`{one}`" for one in DIALECTS)
        raise HooklineError(f"unknown dialect `{name}`{did_you_mean(name, DIALECTS) or f'; write one of {known}'}")
    return DIALECTS[name]


def detect(payload: Mapping[str, Any]) -> str:
    """The name of the dialect that an event was written in; `spec` events are claude's, so they are called that."""
    for name, written in _SIGNS.items():
        if written(payload):
            return name
    raise EventError("event: no dialect has such events; write `hook_event_name` (claude) or `event` (snake)")


_SIGNS: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "message": lambda payload: payload.get("type") == "hook_event",
    "claude": lambda payload: "hook_event_name" in payload,
    "snake": lambda payload: "event" in payload,
}
