"""Permission modes, and which shell lines make no more than simple changes to files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum

from hookline.globs import absolute
from hookline.permissions.reading import all_inside, plain, reads, within
from hookline.shell import ShellLine, SimpleCommand, parse_line


class Mode(StrEnum):
    """How calls that no rule and no hook decides are treated."""

    DEFAULT = "default"
    ACCEPT_EDITS = "acceptEdits"
    PLAN = "plan"
    DONT_ASK = "dontAsk"
    BYPASS = "bypassPermissions"
    AUTO = "auto"


MODES: dict[Mode, str] = {
    Mode.DEFAULT: "asks before anything that is not plainly reading",
    Mode.ACCEPT_EDITS: "as default, but edits inside the working folders pass",
    Mode.PLAN: "only reading passes; other commands are refused, other tools asked about",
    Mode.DONT_ASK: "denies what default would ask about",
    Mode.BYPASS: "allows everything that no deny or ask rule and no hook stops",
    Mode.AUTO: "as default here: there is no classifier",
}

_EDITING = frozenset({"mkdir", "touch", "mv", "cp", "rm", "rmdir"})
_SUBSTITUTION = re.compile(r"s(?:/(?:[^/\\\n]|\\[^/\n])*){2}/[gpiIm\d]*")
_WRITING = _EDITING | {"tee", "ln", "install", "chmod"}
PROTECTED = frozenset(
    [
        ".git",
        ".claude",
        ".vscode",
        ".idea",
        ".husky",
        ".ssh",
        ".bashrc",
        ".bash_profile",
        ".bash_login",
        ".bash_logout",
        ".zshrc",
        ".zshenv",
        ".zprofile",
        ".profile",
        ".gitconfig",
        ".gitmodules",
        ".mcp.json",
        ".claude.json",
        ".npmrc",
        ".envrc",
    ]
)
"""Names that `acceptEdits` does not reach: what is written there may run later."""


def mode_named(value: object) -> Mode | None:
    """The mode of that name, or None."""
    return next((mode for mode in Mode if mode == value), None)


def edits_only(command: str, *, cwd: str, dirs: Sequence[str], home: str) -> bool:
    """Whether a line only reads, makes, moves, removes and writes (`>`) plain files inside the working folders."""
    line = parse_line(command)
    return plain(line) and all(
        (_edits(part, line, cwd, dirs, home) or reads(part, line, cwd, dirs, home, writing=True))
        and _writes_inside(part, line, cwd, dirs, home)
        for part in line.commands
    )


def writes_protected(command: str) -> str | None:
    """The protected name that a shell line plainly writes to, if it does."""
    for part in parse_line(command).commands:
        places = [redirect.target for redirect in part.redirects if redirect.writes]
        places += part.words[1:] if part.name in _WRITING else ()
        found = next((name for place in places for name in place.split("/") if name in PROTECTED), None)
        if found is not None:
            return found
    return None


def _edits(part: SimpleCommand, line: ShellLine, cwd: str, dirs: Sequence[str], home: str) -> bool:
    known = part.name in _EDITING or _substitutes(part)
    if part.assignments or not known or part.words[0] != part.name:
        return False
    names = {name for word in part.words[1:] for name in word.split("/")}
    whole = part.name == "rm" and any(absolute(word, cwd, home) in dirs for word in part.words[1:])
    return (
        not names & PROTECTED
        and not whole
        and not any("=" in word for word in part.words)
        and all_inside(part, line, cwd, dirs, home)
    )


def _substitutes(part: SimpleCommand) -> bool:
    """Whether it is `sed -i s/a/b/ file …`, and the script does nothing else: `e` would run a command, `w` write."""
    words = [word for word in part.words[1:] if word not in ("-i", "--in-place", "-E", "-r")]
    plain_files = not any(word.startswith("-") or set(word) & set("*?[{") for word in words[1:])
    return part.name == "sed" and len(words) > 1 and bool(_SUBSTITUTION.fullmatch(words[0])) and plain_files


def _writes_inside(part: SimpleCommand, line: ShellLine, cwd: str, dirs: Sequence[str], home: str) -> bool:
    """Whether all that is redirected goes to files in the working folders that nothing runs later."""
    targets = [redirect for redirect in part.redirects if redirect.writes]
    if targets and any(other.name == "cd" for other in line.commands):
        return False
    return all(
        redirect.known
        and not set(redirect.target) & set("*?[{")
        and not PROTECTED & set(redirect.target.split("/"))
        and within(absolute(redirect.target, cwd, home), dirs)
        for redirect in targets
    )
