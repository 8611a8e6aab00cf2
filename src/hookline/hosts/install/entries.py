"""What is written into a host's configuration: one command for each event that the hooks listen to."""

from __future__ import annotations

import math
import os
import re
import shlex
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

from hookline.events import spec_of
from hookline.hosts.config_formats import MARGIN, HookEntry
from hookline.hosts.encode import refuse
from hookline.hosts.host import Host

Scope = Literal["user", "project", "local"]
"""Whose configuration: the user's, everybody's in a project, or one's own in a project."""
DEADLINE = 20.0
"""Seconds in which the hooks must have answered, unless one of them asks for more."""

NOT_STARTED = "hookline could not be started; this fails closed"
_COMMAND = re.compile(r"""hookline(?:\.exe|/__main__\.py)?['"]?\s+answer\s+(\w+)\b""")


class HookSource(NamedTuple):
    """Where the hooks come from: a Python file, a settings file, or the settings files that are found."""

    hooks: str = ""
    settings: str = ""

    @property
    def flags(self) -> tuple[str, ...]:
        """As the command line says it."""
        given = (("--hooks", self.hooks), ("--settings", self.settings))
        return tuple(word for flag, value in given if value for word in (flag, value))


def source_of(command: str) -> HookSource:
    """Where the hooks come from that one of our commands asks."""
    try:
        words = shlex.split(command)
    except ValueError:  # it was edited
        return HookSource()
    after = dict(pairwise(words))
    return HookSource(hooks=after.get("--hooks", ""), settings=after.get("--settings", ""))


class CommandTemplate(NamedTuple):
    """What every command of one installation has in common."""

    host: Host
    program: str
    source: HookSource
    scope: Scope = "user"
    subagents: bool = False
    """Whether agents may be started in which hooks do not hold."""


def entries(wiring: CommandTemplate, events: Mapping[str, float]) -> list[HookEntry]:
    """The commands for our events, each with the seconds its hooks may take."""
    native = [(ours, theirs) for ours in events for theirs in wiring.host.native_events(ours)]
    return [_entry(wiring, theirs, events[ours], gate=spec_of(ours).gate) for ours, theirs in native]


def _entry(wiring: CommandTemplate, event: str, seconds: float, *, gate: bool) -> HookEntry:
    host = wiring.host
    deadline = min(seconds, host.config.seconds(event))
    patience = host.config.cut_to.get(event, deadline + MARGIN)
    scope = ("--scope", wiring.scope) if wiring.scope == "project" else ()
    allowed = ("--subagents", "allow") if wiring.subagents else ()
    words = [*wiring.source.flags, "--event", event, "--deadline", f"{deadline:.3g}", *scope, *allowed]
    command = f"{wiring.program} answer {host.name} {' '.join(map(shlex.quote, words))}"
    if gate:
        command += f" || {_without_us(host, event)}"
    return HookEntry(event, command, math.ceil(patience) * host.config.second, gate)


def deny_by_exit(reason: str = NOT_STARTED) -> str:
    """What follows `||` where exit code 2 is the deny: another code means that Hookline has not answered."""
    return f"{{ [ $? = 2 ] || echo {shlex.quote(reason)} >&2; exit 2; }}"


def _without_us(host: Host, event: str) -> str:
    """The host's deny in a few words of shell, for the day Hookline is moved or removed and the entry is not."""
    response = refuse(host, NOT_STARTED, host.ours(event) or "")
    if response.exit_code:
        return deny_by_exit(response.stderr.decode())
    return f"printf %s {shlex.quote(response.stdout.decode())}" if response.stdout else "true"


def is_ours(command: Any, host: Host) -> bool:
    """Whether a command in a host's file was written by `hookline install` for that host."""
    found = _COMMAND.search(command) if isinstance(command, str) else None
    return found is not None and found[1] == host.name


def config_path(host: Host, scope: Scope, *, project: Path | None = None, env: Mapping[str, str] | None = None) -> Path:
    """The file, or for some hosts the folder, that holds a host's hooks."""
    env = os.environ if env is None else env
    if scope != "user":
        return (project or Path.cwd()) / (host.config.project if scope == "project" else host.config.local)
    home = Path(env.get("HOME") or Path.home())
    moved = env.get(host.config.home_env) if host.config.home_env else None
    if moved:
        _, _, rest = host.config.user.partition("/")
        return Path(moved) / rest
    return home / host.config.user


def asks(host: Host, event: str, *, hooks: str, settings: str, env: Mapping[str, str] | None = None) -> bool:
    """Whether the user's own file of a host has the same hooks asked on an event.

    It is read as a text, for this is every hook's cost: the command is there, with the same source, or it is not.
    """
    path = config_path(host, "user", env=env)
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError):
        return False
    wanted = " ".join(map(shlex.quote, HookSource(hooks, settings).flags))
    lines = (line for line in text.splitlines() if _COMMAND.search(line) and f"--event {event} " in line)
    return any(is_ours(line, host) and wanted in line.replace("\\\\", "\\") for line in lines)
