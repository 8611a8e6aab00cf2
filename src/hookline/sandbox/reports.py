"""Refusals: said in one line on stderr each, and kept for later questions."""

from __future__ import annotations

import os

_MOST_LINES = 30
_MOST_EFFECTS = 500
_QUIET_NAMES = ("__pycache__", ".package-cache", ".package-cache-mutate", ".global-cache", ".lesshst", ".viminfo")
_QUIET_PLACES = ("/tmp/hsperfdata_", "/var/cache/man/")
"""Files and folders that programs try to write on the side, and do without when they cannot."""


class Refusal:
    """What was refused, by which guard, why, and what to do about it."""

    def __init__(self, what: str, guard: str, reason: str, advice: str = "", *, quiet: bool = False) -> None:
        self.what: str = what
        self.guard: str = guard
        self.reason: str = reason
        self.advice: str = advice
        self.quiet: bool = quiet

    def __str__(self) -> str:
        advice = f"; {self.advice}" if self.advice else ""
        return f"hookline: refused {self.what}: {self.reason} ({self.guard}){advice}"


class Reporter:
    """Says each refusal once, and notes it with the call it belongs to, by guard; notes there, too, what was done."""

    def __init__(self, call: str) -> None:
        self._said: set[str] = set()
        self._seen: set[tuple[str, str]] = set()
        self._left_out = 0
        self._call = call

    def saw(self, kind: str, what: str) -> None:
        """Note what the line did, for the call's record (`core.calls`): each `program`, `written` and `host` once."""
        if not self._call or (kind, what) in self._seen or len(self._seen) > _MOST_EFFECTS:
            return
        self._seen.add((kind, what))
        line = f"{kind} {printable(what)}" if len(self._seen) <= _MOST_EFFECTS else "more"
        _append(f"{self._call}.effect", line, os.O_TRUNC if len(self._seen) == 1 else 0)

    def say(self, refusal: Refusal) -> None:
        """One line on stderr, unless it has been said or there were too many."""
        line = printable(str(refusal))
        self.saw("refused", f"{refusal.what}: {refusal.reason} ({refusal.guard})")
        if refusal.quiet or line in self._said:
            return
        if len(self._said) >= _MOST_LINES:
            self._left_out += 1
            return
        self._said.add(line)
        _write(2, line)
        if self._call:
            _append(f"{self._call}.{refusal.guard}", line)

    def finish(self) -> None:
        """Say how many were left out."""
        if self._left_out:
            _write(2, f"hookline: refused {self._left_out} more times")
            self._left_out = 0


def quiet(path: str) -> bool:
    """Whether a refused write is one that programs do without, so that it need not be reported."""
    parts = path.split("/")
    own = len(parts) > 3 and parts[1] == "proc" and parts[2].isdigit()
    return own or path.startswith(_QUIET_PLACES) or any(name in parts for name in _QUIET_NAMES)


def printable(text: str) -> str:
    """A text that cannot steer a terminal or fake a line."""
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)


def _append(path: str, line: str, flags: int = 0) -> None:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | flags, 0o600)
    except OSError as error:
        _write(2, f"hookline: cannot note this in `{path}`: {error.strerror}")
        return
    _write(fd, line)
    os.close(fd)


def _write(fd: int, line: str) -> None:
    try:
        os.write(fd, (line + "\n").encode("utf-8", "replace"))
    except OSError:
        return
