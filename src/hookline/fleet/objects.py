"""Reading an object bucket message by message.

The usual way makes a consumer, and whoever may make one can have the server send messages to any subject. So machines
may not, and read what they need directly.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import msgspec

from hookline.errors import FleetError
from hookline.fleet.bundle import MOST_BYTES

if TYPE_CHECKING:
    from nats.js import JetStreamContext


class _About(msgspec.Struct, frozen=True):
    """What the bucket says about an object."""

    nuid: str
    size: int = 0
    chunks: int = 0


async def fetch(js: JetStreamContext, bucket: str, name: str) -> bytes:
    """An object's bytes; whoever asked knows how to tell whether they are the right ones."""
    from nats.js.errors import NotFoundError

    stream = f"OBJ_{bucket}"
    key = base64.urlsafe_b64encode(name.encode()).decode()
    try:
        found = await js.get_last_msg(stream, f"$O.{bucket}.M.{key}", direct=True)
        about = msgspec.json.decode(found.data or b"", type=_About)
        if about.size > MOST_BYTES:
            raise FleetError(f"the hub's bundle {name} has {about.size} bytes; at most {MOST_BYTES} are read")
        parts, sequence = [], 1
        for _ in range(about.chunks):
            chunk = await js.get_msg(stream, sequence, f"$O.{bucket}.C.{about.nuid}", direct=True, next=True)
            parts.append(chunk.data or b"")
            sequence = (chunk.seq or 0) + 1
    except NotFoundError:
        raise FleetError(f"the hub has no bundle with version {name}, or not all of it; push it again") from None
    except msgspec.DecodeError as problem:
        raise FleetError(f"the hub's bundle {name} cannot be read: {problem}") from None
    return b"".join(parts)
