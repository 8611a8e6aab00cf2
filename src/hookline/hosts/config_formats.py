"""How a host's file says that a hook is to be asked, as data of its row; `install` edits the file. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import msgspec

MARGIN = 10.0
"""Seconds by which the host's patience exceeds ours: a busy machine may take that long to start a process."""


class HookEntry(NamedTuple):
    """One command in a host's configuration."""

    event: str
    command: str
    timeout: int
    """In the host's unit."""
    gate: bool


def hook(entry: HookEntry) -> dict[str, Any]:
    """A hook in Claude Code's words."""
    return {"type": "command", "command": entry.command, "timeout": entry.timeout}


def nested(entry: HookEntry) -> dict[str, Any]:
    """A group of one hook, as in Claude Code's settings."""
    return {"hooks": [hook(entry)]}


class ConfigFormat(msgspec.Struct, frozen=True, kw_only=True):
    """The kind of file, and what an entry is in it.

    Entries are appended to the list of their event below `hooks`, or if they are `listed` to `hooks` itself. A folder
    of `scripts` has an executable for each event; a `plugin` is a text for all entries together.
    """

    kind: Literal["json", "toml", "scripts", "plugin"] = "json"
    entry: Callable[[HookEntry], Mapping[str, Any]] = nested
    version: int | str | None = None
    listed: bool = False
    plugin: Callable[[list[HookEntry]], str] | None = None


NESTED = ConfigFormat()
NAMED = ConfigFormat(entry=lambda entry: {"hooks": [{"name": "hookline", **hook(entry)}]})
"""As Claude Code's, with a name for each hook."""
FLAT = ConfigFormat(entry=lambda entry: {"command": entry.command, "timeout": entry.timeout})
