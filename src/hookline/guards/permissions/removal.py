"""Removals that no rule allows in advance: of the root, a home, a system's folder, or where one stands."""

from __future__ import annotations

import posixpath
import re
from typing import Literal

from hookline.core.paths import absolute
from hookline.core.shell import parse_line

__all__ = ["removal"]

Reach = Literal["system", "here"]

_ALL = re.compile(r"[*.?\[\]!{},]*\*[*.?\[\]!{},]*")  # `*`, `.*`, `{*,.*}`: whatever is there
_UNKNOWN_FOLDER = re.compile(r"\$\{?\w+\}?/+(?:\*|\.)*")  # `$X/*`: of the root, should X be empty
_SOMEBODYS_HOME = re.compile(r"~[\w.-]*")
_HIGHEST = 2


def removal(line: str, *, cwd: str, home: str) -> tuple[Reach, str] | None:
    """The worst that `rm` in a shell line removes: `system` (the root, a home, `/usr`) or `here` (`.`, `..`, `*`)."""
    found: tuple[Reach, str] | None = None
    for command in parse_line(line).commands:
        if not command.words or posixpath.basename(command.words[0]) != "rm":
            continue
        for word in _operands(command.words[1:]):
            reach = _reach(word, cwd, home)
            if reach == "system":
                return reach, word
            found = found or (("here", word) if reach else None)
    return found


def _operands(words: tuple[str, ...]) -> list[str]:
    at = words.index("--") if "--" in words else len(words)
    return [word for word in words[:at] if not word.startswith("-")] + list(words[at + 1 :])


def _reach(word: str, cwd: str, home: str) -> Reach | None:
    if _UNKNOWN_FOLDER.fullmatch(word):
        return "system"
    base = _without_all(word)
    if _SOMEBODYS_HOME.fullmatch(base):
        return "system"
    path = posixpath.normpath(absolute(base, cwd, home)) if base else cwd
    parts = [part for part in path.split("/") if part]
    if len(parts) < _HIGHEST or path == posixpath.normpath(home):
        return "system"
    relative = all(part in ("", ".", "..") for part in base.split("/"))
    return "here" if relative or _holds(path, cwd) else None


def _without_all(word: str) -> str:
    """A word without its last part if that stands for whatever is there, and without slashes at its end."""
    folder, slash, last = word.rstrip("/").rpartition("/")
    if _ALL.fullmatch(last):
        return (folder or "/") if slash else ""
    return word.rstrip("/") or ("/" if word.startswith("/") else "")


def _holds(path: str, cwd: str) -> bool:
    return cwd == path or cwd.startswith(f"{path.rstrip('/')}/")
