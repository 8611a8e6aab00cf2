"""A call of an MCP tool that both a host's hook and the gateway see is judged once.

The hook sees it first: it leaves a note on each call that it lets pass, and the gateway that finds the note for the
same host, hooks, tool and input takes it away and does not ask them again. A call without a note is judged. What is
judged twice then is judged; what is not judged runs.
"""

import hashlib
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from hookline.core.files import private_folder, state_folder
from hookline.events import Event, PreToolUse
from hookline.events.base import thaw
from hookline.hosts.host import Host, able
from hookline.replies import Decision, Reply

FRESH = 600.0  # seconds for which a note holds: the host may ask the user before it makes the call


def folder() -> Path:
    """Where the notes are; `install --mcp` makes it, and without it none are left."""
    return state_folder() / "mcp" / "judged"


def leave(host: Host, source: Sequence[str], events: Iterable[Event], reply: Reply) -> None:
    """Note that a host's call of an MCP tool was judged by these hooks, and was not denied.

    A question is noted only where the host puts it to the user, and asks hooks about every call: what was declined
    cannot come by another way then.
    """
    calls = [one for one in events if isinstance(one, PreToolUse) and one.tool_name.startswith("mcp__")]
    asks = (Decision.ASK,) if able(host, "ask") and able(host, "inside subagents") else ()
    passes = reply.decision in (Decision.PASS, Decision.ALLOW, *asks) and not reply.stop
    if not calls or not passes or not folder().is_dir():
        return
    given = calls[0].tool_input if reply.input is None else reply.input
    note = private_folder(folder()) / f"{_key(host.name, source, thaw(given))}.{os.urandom(6).hex()}"
    with suppress(OSError):  # then the gateway judges it, too
        note.write_text("\n".join(one.tool_name for one in calls))


def take(host: str, source: Sequence[str], tool: str, given: Mapping[str, Any]) -> bool:
    """Whether a call was judged before; a note is good for one call."""
    with suppress(OSError):
        for note in sorted(folder().glob(f"{_key(host, source, given)}.*")):
            is_fresh = note.stat().st_mtime > time.time() - FRESH
            names = note.read_text().splitlines()
            if is_fresh and not any(_plain(name).endswith(f"__{_plain(tool)}") for name in names):
                continue
            note.unlink()
            if is_fresh:
                return True
    return False


def _key(host: str, source: Sequence[str], given: Any) -> str:
    return hashlib.sha256(msgspec.json.encode([host, source, given], order="sorted")).hexdigest()[:32]


def _plain(name: str) -> str:
    """A name as hosts write it that allow few characters."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)
