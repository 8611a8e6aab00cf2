"""Programs that a host's hook file names and that are not there: the hooks that silently never run."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

from hookline.errors import HooklineError
from hookline.hosts.host import Host
from hookline.hosts.install.formats import all_commands

_SHELL_WORDS = frozenset("if for while case { ( ! [ [[ . source exec cd test export set eval".split())  # noqa: SIM905


def missing_programs(host: Host, path: Path) -> Iterator[tuple[str, str]]:
    """Each command of a hook file, ours or not, whose program cannot be found: the event and the program."""
    for event, command in _commands(host, path):
        program = _program(command)
        if program and not _there(program):
            yield event, program


def _commands(host: Host, path: Path) -> list[tuple[str, str]]:
    try:
        if host.config.shape == "scripts":
            return [(event, line) for event in host.events for line in _script_lines(path / event)]
        return all_commands(host, path.read_text())
    except (OSError, UnicodeDecodeError, HooklineError, json.JSONDecodeError):
        return []


def _script_lines(path: Path) -> list[str]:
    """What our script for an event runs; another one's is its own affair."""
    text = path.read_text() if path.is_file() else ""
    return [line for line in text.splitlines() if " answer " in line and not line.startswith("#")]


def _program(command: str) -> str:
    """The first word of a plain command; nothing where the shell has more to say about it."""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    while words and "=" in words[0] and words[0].split("=")[0].isidentifier():
        words.pop(0)
    first = words[0] if words else ""
    return "" if not first or first in _SHELL_WORDS or any(sign in first for sign in "$`*?(){}<>|&;~") else first


def _there(program: str) -> bool:
    if "/" in program:
        return not Path(program).is_absolute() or os.access(program, os.X_OK)
    return shutil.which(program) is not None
