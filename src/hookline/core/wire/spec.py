"""The `claude` format with two differences. Pure.

An explicit `"continue": true` on Stop keeps the agent going, and a `systemMessage` is for the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from hookline.core.wire.claude import decode_event, encode_event, event_name, reply_object
from hookline.core.wire.decode import reply_of, tell_model
from hookline.core.wire.json_text import is_blank, parse_object, write
from hookline.core.wire.output_types import typed
from hookline.errors import ReplyError
from hookline.events import Event, spec_of
from hookline.replies import NOTHING, Reply

__all__ = ["decode_event", "decode_reply", "encode_event", "encode_reply"]


def _keeps_going(event_name: str) -> bool:
    """Where the agent itself, not a teammate, is about to stop."""
    spec = spec_of(event_name)
    return spec.keeps_going and hasattr(spec.cls, "stop_hook_active")


def decode_reply(data: bytes | str | Mapping[str, Any], event: Event | str) -> Reply:
    """The reply that a hook's JSON output means on `event`."""
    if is_blank(data):
        return NOTHING
    name = event_name(event)
    output = typed(parse_object(data, f"reply to {name}", ReplyError), name)
    reply = reply_of(output, name)
    if output.continue_ is True and _keeps_going(name) and not reply.background:
        reply = msgspec.structs.replace(
            reply, keep_going=True, keep_going_reasons=(output.reason,) if output.reason else ()
        )
    return tell_model(reply, name)


def encode_reply(reply: Reply, event: Event | str) -> bytes:
    """The reply as one line of JSON, without the newline."""
    name = event_name(event)
    body = reply_object(reply, name)
    if reply.keep_going and not reply.stop and _keeps_going(name):
        body["continue"] = True
    return write(body, f"reply to {name}", ReplyError)
