"""What is written into a host's configuration: one command for each event that the hooks listen to."""

from __future__ import annotations

import hashlib
import math
import os
import re
import shlex
import time
from collections.abc import Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

from hookline.core.files import private_folder, remove_older, state_folder
from hookline.core.interpreter import PROJECT
from hookline.core.wire.json_text import read_object
from hookline.events import spec_of
from hookline.hosts.encode import refuse
from hookline.hosts.host import ALLOW, MARGIN, HookEntry, Host

Scope = Literal["user", "project", "local"]
"""Whose configuration: the user's, everybody's in a project, or one's own in a project."""
DEADLINE = 20.0  # seconds in which the hooks must have answered, unless one of them asks for more

NOT_STARTED = "hookline could not be started; this fails closed"
NOT_HERE = (
    "this project's hooks need Hookline, which did not start here: run `pipx install hookline` "
    "or `uv tool install hookline`, which put it into ~/.local/bin"
)
"""What a colleague reads who has not installed it."""
DEFAULT_LOG = "default"  # the word for the audit log in the user's state folder, wherever that is
_IN_PROJECT = f"${PROJECT}/"
_COMMAND = re.compile(r"""hookline(?:\.exe|/__main__\.py)?['"]?\s+answer\s+(\w+)\b""")


class HookSource(NamedTuple):
    """Where the hooks come from: a Python file, a settings file, or those that are found; and a log of everything."""

    hooks: str = ""
    settings: str = ""
    audit: str = ""

    @property
    def flags(self) -> tuple[str, ...]:
        return tuple(word for name, value in self._asdict().items() if value for word in (f"--{name}", value))

    def shared(self, project: Path) -> HookSource | None:
        """The same for everyone who has a copy of the project; `None` if a file lies outside of it."""
        named = {name: Path(value) for name, value in self._asdict().items() if value not in ("", DEFAULT_LOG)}
        if not all(path.is_relative_to(project) for path in named.values()):
            return None
        return self._replace(**{name: f"{_IN_PROJECT}{path.relative_to(project)}" for name, path in named.items()})


def flags_of(command: str) -> dict[str, str]:
    """Each word of a command and the one after it; nothing of one that was edited and cannot be read."""
    try:
        return dict(pairwise(shlex.split(command)))
    except ValueError:
        return {}


def source_of(command: str, project: Path | None = None) -> HookSource:
    """Where the hooks come from that one of our commands asks; with `project`, by their paths on this machine."""
    flags = flags_of(command)
    found = (flags.get(f"--{name}", "") for name in HookSource._fields)
    return HookSource(*(value.replace(_IN_PROJECT, f"{project}/") if project else value for value in found))


def entries(
    host: Host, program: str, source: HookSource, events: Mapping[str, float], *, scope: Scope = "user",
    subagents: bool = False, shared: bool = False,
) -> list[HookEntry]:  # fmt: skip
    """The commands for our events, each with the seconds its hooks may take.

    `subagents` may be started in which hooks do not hold; `shared` entries work wherever a copy of the project is.
    """
    more = [*(("--scope", scope) if scope == "project" else ()), *(("--subagents", ALLOW) if subagents else ())]
    made = []
    native = [(ours, theirs) for ours in events for theirs in host.native_events(ours)]
    for name, event in native:
        deadline, gate = min(events[name], host.config.seconds(event)), spec_of(name).gate
        words = [*source.flags, "--event", event, "--deadline", f"{deadline:.3g}", *more]
        command = f"{program} answer {host.name} {' '.join(map(_quote, words))}"
        if gate:  # the host's deny in a few words of shell, for the day that Hookline is gone and the entry is not
            response = refuse(host, NOT_HERE if shared else NOT_STARTED, host.ours(event) or "")
            said = f"printf %s {shlex.quote(response.stdout.decode())}" if response.stdout else "true"
            command += f" || {deny_by_exit(response.stderr.decode()) if response.exit_code else said}"
        patience = host.config.cut_to.get(event, deadline + MARGIN)
        made.append(HookEntry(event, command, math.ceil(patience) * host.config.second, gate))
    return made


def _quote(word: str) -> str:
    """A word for the shell; the project's folder is the one part of it that the shell fills in."""
    inside = word.removeprefix(_IN_PROJECT)
    return shlex.quote(word) if inside == word else f'"${PROJECT}"/{shlex.quote(inside)}'


def deny_by_exit(reason: str = NOT_STARTED) -> str:
    """What follows `||` where exit code 2 is the deny: another code means that Hookline has not answered."""
    return f"{{ [ $? = 2 ] || echo {shlex.quote(reason)} >&2; exit 2; }}"


def is_ours(command: Any, host: Host) -> bool:
    """Whether a command in a host's file was written by `hookline install` for that host."""
    found = _COMMAND.search(command) if isinstance(command, str) else None
    return found is not None and found[1] == host.name


def config_path(host: Host, scope: Scope, *, project: Path | None = None) -> Path:
    """The file, or for some hosts the folder, that holds a host's hooks."""
    if scope != "user":
        return (project or Path.cwd()) / (host.config.project if scope == "project" else host.config.local)
    return user_path(host, host.config.user)


def user_path(host: Host, relative: str) -> Path:
    """A file in the user's home, or in the host's own folder where a variable moves that."""
    if moved := os.environ.get(host.config.home_env or "-"):
        return Path(moved) / relative.split("/", 1)[-1]
    return Path(os.environ.get("HOME") or Path.home()) / relative


def asks(host: Host, event: str, source: HookSource) -> bool:
    """Whether the user's own file of a host has the same hooks asked on an event.

    It is read as a text, for this is every hook's cost: the command is there, with the same source, or it is not.
    """
    try:
        text = config_path(host, "user").read_text()
    except (OSError, UnicodeDecodeError):
        return False
    wanted = " ".join(map(shlex.quote, source.flags))
    lines = (line for line in text.splitlines() if _COMMAND.search(line) and f"--event {event} " in line)
    return any(is_ours(line, host) and wanted in line.replace("\\\\", "\\") for line in lines)


# -- whether the user's own entry is asked, too: only then may another one for the same hooks stay silent -------------
# That an entry stands in a file does not mean that the agent runs it: it may not read that file this time (`claude
# --setting-sources project`), or not trust it (Codex). So the user's entry leaves a note of each event it is asked
# about, and another one that finds no fresh note judges. What is judged twice then is judged; what is not runs.


PATIENCE = 1.0  # seconds to wait for the note: both entries are started at the same time, on a machine that may be busy
_AT_ONCE = 0.05  # seconds to wait where no answer came the last time
_FRESH = 5.0  # seconds by which a note may be older than the entry that looks for it
_KEPT = 24 * 3600.0


def _note(host: Host, event: str, source: str, data: bytes) -> Path | None:
    """Where the note on an event of this session is; nowhere, if the payload names no session."""
    found = read_object(data) or {}
    given = found.get("input")
    names = ("session_id", "sessionId", "taskId", "conversation_id")
    session = next((found[name] for name in names if found.get(name)), None)
    session = session or (given.get("sessionID") if isinstance(given, dict) else None)
    if not session:
        return None
    key = f"{host.name}\0{session}\0{event}\0{source}"
    return state_folder() / "asked" / hashlib.sha256(key.encode()).hexdigest()[:32]


def mark_handled(host: Host, event: str, source: str, data: bytes) -> None:
    """Say that the user's entry is being asked, if there may be anybody who wants to know.

    That is the project's entry, or one that a host reads in others' files.
    """
    company = host.borrows or (host.config.project and config_path(host, "project").exists())
    note = _note(host, event, source, data) if company else None
    if note is None:
        return
    with suppress(OSError):
        if not note.exists():
            remove_older(private_folder(note.parent).iterdir(), _KEPT)
        note.touch(0o600)


def was_handled(host: Host, event: str, source: str, data: bytes) -> bool:
    """Whether the user's entry is being asked about this very event; waits a moment for it."""
    note = _note(host, event, source, data)
    if note is None:
        return False
    alone = note.with_suffix(".alone")
    since = time.time() - _FRESH
    until = time.monotonic() + (_AT_ONCE if alone.exists() else PATIENCE)
    while True:
        with suppress(OSError):
            if note.stat().st_mtime >= since:
                return True
        if time.monotonic() >= until:
            break
        time.sleep(0.01)
    with suppress(OSError):
        private_folder(note.parent)
        alone.touch(0o600)
    return False
