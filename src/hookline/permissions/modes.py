"""Permission modes, and which shell lines only read or only make simple changes to files."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from hookline.hooks.globs import absolute, inside
from hookline.hooks.shell import ShellLine, SimpleCommand, parse_line


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

_TEXT, _FILES = "text", "files"
_READING: dict[str, str] = {
    **dict.fromkeys(
        [
            "echo",
            "pwd",
            "whoami",
            "true",
            "false",
            "uname",
            "id",
            "which",
            "type",
            "seq",
            "expr",
            "test",
            "[",
            ":",
            "basename",
            "dirname",
            "arch",
            "nproc",
            "groups",
            "tty",
            "logname",
            "users",
            "uptime",
            "date",
        ],
        _TEXT,
    ),
    **dict.fromkeys(
        [
            "ls",
            "cat",
            "head",
            "tail",
            "wc",
            "stat",
            "du",
            "df",
            "grep",
            "egrep",
            "fgrep",
            "rg",
            "diff",
            "cmp",
            "comm",
            "cut",
            "tr",
            "nl",
            "realpath",
            "readlink",
            "md5sum",
            "sha1sum",
            "sha256sum",
            "strings",
            "od",
            "hexdump",
            "column",
            "jq",
            "tac",
            "rev",
            "fold",
            "paste",
            "join",
            "cd",
            "find",
            "fd",
            "tree",
            "file",
            "sort",
        ],
        _FILES,
    ),
}
_READING_GIT = frozenset(
    [
        "status",
        "log",
        "diff",
        "show",
        "blame",
        "rev-parse",
        "ls-files",
        "ls-tree",
        "describe",
        "shortlog",
        "grep",
        "cat-file",
        "rev-list",
        "merge-base",
        "name-rev",
        "diff-tree",
        "count-objects",
    ]
)
_WRITING_OPTIONS: dict[str, tuple[str, ...]] = {
    "date": ("-s", "--set"),
    "find": ("-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"),
    "fd": ("-x", "-X", "--exec"),
    "tree": ("-o",),
    "file": ("-C", "--compile"),
    "sort": ("-o", "--output", "--compress-program", "-T", "--temporary-directory"),
    "rg": ("--pre",),
    "git": (
        "--output",
        "-O",
        "--open-files-in-pager",
        "--ext-diff",
        "--textconv",
        "-c",
        "-C",
        "--git-dir",
        "--work-tree",
        "--exec-path",
        "--config-env",
    ),
    "jq": ("--rawfile", "--slurpfile", "-f", "--from-file", "-L"),
}
_EDITING = frozenset({"mkdir", "touch", "mv", "cp", "rm", "rmdir"})
_WRITING = _EDITING | {"tee", "ln", "install", "chmod"}
_ALSO_READING = frozenset({"cp", "mv", "sed", "awk", "less", "more", "uniq", "base64", "xxd", "source", "."})
_PATTERN_FIRST = frozenset({"grep", "egrep", "fgrep", "rg", "sed", "awk", "jq"})
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


def reads_only(command: str, *, cwd: str, dirs: Sequence[str], home: str) -> bool:
    """Whether a shell line does nothing but read, and only inside the working folders."""
    line = parse_line(command)
    return _plain(line) and all(_reads(part, line, cwd, dirs, home) for part in line.commands)


def edits_only(command: str, *, cwd: str, dirs: Sequence[str], home: str) -> bool:
    """Whether a line only reads, makes, moves, removes and writes (`>`) plain files inside the working folders."""
    line = parse_line(command)
    return _plain(line) and all(
        (_edits(part, line, cwd, dirs, home) or _reads(part, line, cwd, dirs, home, writing=True))
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


def files_read(command: str) -> list[str]:
    """The files that a shell line plainly reads: operands of the programs people read with, and what is after `<`."""
    paths: list[str] = []
    for part in parse_line(command).commands:
        paths += [redirect.target for redirect in part.redirects if redirect.op == "<" and redirect.known]
        if _READING.get(part.name) == _FILES or part.name in _ALSO_READING:
            given = [word for at, word in enumerate(part.words) if at and at not in part.unknown and word[:1] != "-"]
            paths += given[1:] if part.name in _PATTERN_FIRST else given
    return paths


def _plain(line: ShellLine) -> bool:
    return bool(line.commands) and not line.undecidable and not line.notes


def _reads(
    part: SimpleCommand, line: ShellLine, cwd: str, dirs: Sequence[str], home: str, *, writing: bool = False
) -> bool:
    if part.assignments or not part.words or part.words[0] != part.name:
        return False
    if any(redirect.writes for redirect in part.redirects) and not writing:
        return False
    if any(_is_option(word, _WRITING_OPTIONS.get(part.name, ())) for word in part.words[1:]):
        return False
    if part.name == "git":
        return part.words[1:2] != () and part.words[1] in _READING_GIT and _all_inside(part, line, cwd, dirs, home)
    kind = _READING.get(part.name)
    return kind == _TEXT or (kind == _FILES and _all_inside(part, line, cwd, dirs, home))


def _is_option(word: str, options: Sequence[str]) -> bool:
    for option in options:
        if word == option or word.startswith(option + "="):
            return True
        if len(option) == 2 and word[:1] == "-" and word[:2] != "--" and option[1] in word:
            return True
    return False


def _edits(part: SimpleCommand, line: ShellLine, cwd: str, dirs: Sequence[str], home: str) -> bool:
    if part.assignments or part.name not in _EDITING or part.words[0] != part.name:
        return False
    names = {name for word in part.words[1:] for name in word.split("/")}
    whole = part.name == "rm" and any(absolute(word, cwd, home) in dirs for word in part.words[1:])
    return (
        not names & PROTECTED
        and not whole
        and not any("=" in word for word in part.words)
        and _all_inside(part, line, cwd, dirs, home)
    )


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


def _all_inside(part: SimpleCommand, line: ShellLine, cwd: str, dirs: Sequence[str], home: str) -> bool:
    """Whether every word that may be a path lies in a working folder; what is only known later does not."""
    if part.unknown or (part.name == "cd" and (len(part.words) != 2 or part.words[1].startswith("-"))):
        return False
    moved = any(other.name == "cd" for other in line.commands)
    for word in (*part.words[1:], *(redirect.target for redirect in part.redirects if redirect.op == "<")):
        option = word.startswith("-")
        value = word.partition("=")[2] if option else word
        if (option and "/" in word.partition("=")[0]) or (moved and ".." in value):
            return False
        if value not in ("", "/dev/null") and not within(absolute(value, cwd, home), dirs):
            return False
    return True


def within(path: str, dirs: Sequence[str]) -> bool:
    """Whether an absolute path lies in one of the folders."""
    return any(inside(path, folder) for folder in dirs)
