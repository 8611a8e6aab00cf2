"""Permission modes, and which shell lines make no more than simple changes to files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum

from hookline.core.files import other_names
from hookline.core.paths import absolute
from hookline.core.shell import ShellLine, SimpleCommand, parse_line, writes
from hookline.core.shell.programs.table import ParsedOptions, known, names, program
from hookline.core.shell.targets import join, placed
from hookline.guards.permissions import path_on_disk
from hookline.guards.permissions.readonly_commands import WorkingFolders, plain, reads, reads_only, spelled_out
from hookline.sandbox.secret_places import FREE, read_table


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

_WRITING = names("changes")
_REPLACES_NAMES = frozenset({"rm", "rmdir", "mv", "mkdir"})
"""Programs that change names, not what a file holds: another name of the file keeps what it shows."""
_SUBSTITUTION = re.compile(r"s(?:/(?:[^/\\\n]|\\[^/\n])*){2}/[gpiIm\d]*")
PROTECTED = frozenset(
    """
    .git .claude .vscode .idea .husky .ssh .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .zshrc .zshenv
    .zprofile .zlogin .profile .gitconfig .gitmodules .mcp.json .claude.json .npmrc .yarnrc .envrc .env .ripgreprc
    """.split()  # noqa: SIM905 - a column of quotes would not read better
)
"""Names that `acceptEdits` does not reach: what is written there may run later, or is a secret."""
RUNS_LATER = PROTECTED - {".env", ".ssh"}
"""Those of them that no allow rule reaches either, as in Claude Code."""
SETS_UP = PROTECTED | frozenset(
    """
    .githooks sitecustomize.py usercustomize.py managed-settings.json .github/hooks .config/git .config/hookline
    .config/crush .config/goose .config/opencode .config/fish .venv/bin venv/bin node_modules/.bin
    """.split()  # noqa: SIM905
)
SETS_UP |= frozenset(read_table("settings"))
"""All that sets up an agent, an editor, git or a shell to run something, or to ask no hooks."""


def protected_name(path: str, names: frozenset[str] = PROTECTED) -> str | None:
    """The protected name on the way to a path, whatever its capitals: there are disks to which `.GIT` is `.git`."""
    parts = [part for part in path.lower().split("/") if part]
    for part, after in zip(parts, [*parts[1:], ""], strict=False):
        if part in names and after not in FREE:
            return part
        if f"{part}/{after}" in names:
            return f"{part}/{after}"
    return None


def edits_only(command: str, *, cwd: str, dirs: Sequence[str], home: str) -> bool:
    """Whether a line only reads, makes, moves, removes and writes (`>`) plain files inside the working folders.

    A line that writes may not call git as well: what it writes could be a repository, whose configuration git obeys.
    """
    if reads_only(command, cwd=cwd, dirs=dirs, home=home):
        return True
    line, folders = parse_line(command), WorkingFolders(cwd, dirs, home)
    if not plain(line) or any(part.name == "git" for part in line.commands):
        return False
    filled: list[str] = []
    for part, bases in placed(line):
        files = _edited(part, bases, folders)
        fine = files is not None or reads(part, bases, folders, writing=True)
        written = [*(files or ()), *_redirected(part, bases, folders)]
        if not fine or None in written or any(_below(str(path), filled) for path in written):
            return False
        filled += written[-1:] if part.name in ("cp", "mv") else []
    return True


def edits_file(path: str, folders: WorkingFolders) -> bool:
    """Whether a file may be edited unasked: inside, protected by no name, and not the same file as one elsewhere."""
    return folders.hold(path) and not protected_file(path, folders) and not other_names(folders.path(path))


def writes_protected(command: str, folders: WorkingFolders, names: frozenset[str] = PROTECTED) -> str | None:
    """The protected name that a shell line writes to, if it does: by its name, links, globs, or an earlier `cd`."""
    line, changed = parse_line(command), writes(command)
    places = [
        join(base, word)
        for part, bases in placed(line)
        if part.name in _WRITING
        for base in bases or [""]
        for word in part.words[1:]
    ]
    for place in dict.fromkeys([*changed.targets, *places]):
        found = next(filter(None, (protected_file(word, folders, names) for word in _expanded(place, folders))), None)
        if found is not None:
            return found
    unsure = changed.undecidable or changed.notes
    mentioned = MENTION.findall(command.lower().translate(NO_QUOTES)) if unsure and _writes_somewhere(line) else ()
    return next((name for name in mentioned if name in names), None)


NO_QUOTES = {ord(char): None for char in "'\"\\"}
MENTION = re.compile(r"(?<![\w.-])(?:" + "|".join(map(re.escape, sorted(SETS_UP))) + r")(?![\w.-])")


def _writes_somewhere(line: ShellLine) -> bool:
    return any(part.name in _WRITING or any(each.writes for each in part.redirects) for part in line.commands)


def protected_file(word: str, folders: WorkingFolders, names: frozenset[str] = PROTECTED) -> str | None:
    """The protected name by which a file in the working folders is reached, as it is written or by its links."""
    below = folders.path(word).removeprefix(folders.cwd + "/")
    return protected_name(below, names) or protected_name(
        path_on_disk.real(folders.path(word)).removeprefix(path_on_disk.real(folders.cwd)), names
    )


def _expanded(word: str, folders: WorkingFolders) -> list[str]:
    try:
        return path_on_disk.could_be(word, folders.cwd)
    except path_on_disk.TooMany:
        return [word]


def _below(path: str, filled: Sequence[str]) -> bool:
    """Whether a path leads through what the same line has just put there, links perhaps."""
    return any(path.startswith(f"{folder}/") for folder in filled)


def _edited(part: SimpleCommand, bases: Sequence[str], folders: WorkingFolders) -> list[str | None] | None:
    """The files that a plain edit names; None when it is not one, None in the list for a file out of reach."""
    plain_edit = part.name in names("edits") or _substitutes(part)
    if part.assignments or part.unknown or not plain_edit or part.words[0] != part.name or not bases:
        return None
    found: list[str | None] = []
    for base in bases:
        words = spelled_out(part, base, folders)
        if words is None:
            return None
        if part.name == "sed":
            files = [join(base, word) for word in words if not word.startswith("-")][1:]
        else:
            taken = known(words, program(part.name))
            if taken is None or (part.name == "rm" and _removes_much(part, taken, base, folders)):
                return None
            files = [each for file in taken.files for each in _expanded(join(base, file), folders)]
            if part.name == "cp" and any(brings_protected(file, folders) for file in files):
                return None
        found += [_reached(file, folders, changes=part.name not in _REPLACES_NAMES) for file in files]
    return found


def _reached(word: str, folders: WorkingFolders, *, changes: bool) -> str | None:
    """The path of a file that may be edited; None when it may not."""
    fine = edits_file(word, folders) if changes else folders.hold(word) and not protected_file(word, folders)
    return absolute(word, folders.cwd, folders.home) if fine else None


def _removes_much(part: SimpleCommand, taken: ParsedOptions, base: str, folders: WorkingFolders) -> bool:
    """Whether `rm` is given a working folder itself, or everything in one."""
    emptied = [word.removesuffix("*") or "." for word in part.words[1:] if word == "*" or word.endswith("/*")]
    deep = any(name in ("-r", "-R", "--recursive") for name, _ in taken.options)
    given = [*taken.operands, *(emptied if deep else ())]
    reals = {*folders.dirs, *map(path_on_disk.real, folders.dirs)}
    return any(path_on_disk.real(folders.path(word, base)) in reals for word in given)


def brings_protected(word: str, folders: WorkingFolders) -> bool:
    """Whether a folder that is copied holds a protected name."""
    path = folders.path(word)
    try:
        return path_on_disk.is_folder(path) and any(
            each.path.rpartition("/")[2].lower() in PROTECTED for each in path_on_disk.below(path)
        )
    except path_on_disk.TooMany:
        return True


def _substitutes(part: SimpleCommand) -> bool:
    """Whether it is `sed -i s/a/b/ file …`, and the script does nothing else: `e` would run a command, `w` write."""
    words = [word for word in part.words[1:] if word not in ("-i", "--in-place", "-E", "-r")]
    plain_files = not any(word.startswith("-") or set(word) & path_on_disk.GLOB or "{" in word for word in words[1:])
    return part.name == "sed" and len(words) > 1 and bool(_SUBSTITUTION.fullmatch(words[0])) and plain_files


def _redirected(part: SimpleCommand, bases: Sequence[str], folders: WorkingFolders) -> list[str | None]:
    """The files that a command's output goes to; None for one that may not be written."""
    targets = [redirect for redirect in part.redirects if redirect.writes]
    if any(not each.known or set(each.target) & path_on_disk.GLOB or "{" in each.target for each in targets):
        return [None]
    places = [join(base, each.target) for each in targets for base in bases]
    return [_reached(place, folders, changes=True) for place in places] if bases or not targets else [None]
