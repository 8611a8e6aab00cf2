"""Whether a call reads or writes a file that a path rule names: by a glob, a link, a folder it goes through.

A rule such as `Read(./.env)` names a file; this is about every other way to that file: `cat .en?`, `grep -r key .`,
`tar c .`, a symbolic or hard link, a search over the folder it lies in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from hookline.core.files import identity, other_names
from hookline.core.hooks.condition import PathContext, Rule, RuleMatch, canonical
from hookline.core.paths import absolute, from_root
from hookline.core.shell import SimpleCommand, parse_line, writes
from hookline.core.shell.programs.table import ParsedOptions, known, lists, names, program
from hookline.core.shell.targets import join, placed
from hookline.guards.permissions import path_on_disk
from hookline.guards.permissions.readonly_commands import WorkingFolders, plain, reads, reads_only, spelled_out
from hookline.sandbox.places import FREE, read_table


class _FileRead(NamedTuple):
    path: str
    deep: bool = False
    """Whether what lies below it is read as well."""
    without: tuple[str, ...] = ()
    """Names that are passed over on the way."""
    only: tuple[str, ...] = ()


def file_access_match(
    tool_name: str, tool_input: Mapping[str, Any], command: str | None, rule: Rule, place: PathContext
) -> RuleMatch:
    """Whether a call reaches a file that a path rule names; MAYBE when there is too much to look through."""
    if rule.bare or rule.problem or rule.tool not in ("Read", "Edit", "Write"):
        return RuleMatch.NO
    tool = "Read" if rule.tool == "Read" else "Write"
    if command is not None:
        found = _read_by(command, place) if tool == "Read" else _written_by(command, place)
    elif not rule.names(tool_name):
        return RuleMatch.NO
    else:
        found = _read_by_tool(tool_name, tool_input, place)
    try:
        return RuleMatch.YES if any(_reaches(each, rule, tool, place) for each in found) else RuleMatch.NO
    except path_on_disk.TooMany:
        return RuleMatch.MAYBE


def reads_from(tool_name: str, tool_input: Mapping[str, Any], path: str | None) -> list[str]:
    """The places that a reading tool looks at: the path it is given, and where its glob starts."""
    pattern = tool_input.get("pattern") if canonical(tool_name) == "Glob" else None
    if not isinstance(pattern, str):
        return [path] if path else []
    start = pattern[: min((pattern.find(sign) for sign in path_on_disk.GLOB if sign in pattern), default=len(pattern))]
    climbs = ".." in pattern.split("/")
    return [*([path] if path else ()), *([join(path or "", "/" if climbs else start)] if start or climbs else ())]


# -- what a call reads -----------------------------------------------------------------------------------------------


def _read_by_tool(tool_name: str, tool_input: Mapping[str, Any], place: PathContext) -> Iterator[_FileRead]:
    for field in ("file_path", "notebook_path", "path"):
        value = tool_input.get(field)
        if isinstance(value, str) and value:
            yield _FileRead(_absolute(value, place))
    name = canonical(tool_name)
    if name not in ("Grep", "Glob"):
        return
    root = tool_input.get("path") if isinstance(tool_input.get("path"), str) else ""
    only = tool_input.get("glob") if name == "Grep" else tool_input.get("pattern")
    names = (only,) if isinstance(only, str) and only else ()
    if name == "Grep" or names:
        yield _FileRead(_absolute(root or ".", place), deep=True, only=names)


def _read_by(command: str, place: PathContext) -> Iterator[_FileRead]:
    for part, bases in placed(parse_line(command)):
        for base in bases or [""]:
            for redirect in part.redirects:
                if redirect.op in ("<", "<>") and redirect.known:
                    yield from _each(redirect.target, base, place, deep=False)
            if part.name in names("opens") or part.name == "git":
                yield from _operands(part, base, place)


def _operands(part: SimpleCommand, base: str, place: PathContext) -> Iterator[_FileRead]:
    words = [word for at, word in enumerate(part.words) if at and at not in part.unknown]
    options = [word for word in words if word.startswith("-")]
    given = [word for word in words if not word.startswith("-")]
    deep = _goes_down(part.name, options)
    without = tuple(value for word in options for name, _, value in [word.partition("=")] if name in _EXCLUDES)
    if part.name == "rg" and not any(_LOOKS_AT_HIDDEN.match(word) for word in options):
        without += (".*",)
    operands = given
    if part.name in names("script-first") and not any(
        word[:2] in ("-e", "-f") or word in _PATTERNS for word in options
    ):
        operands = given[1:]
    for word in (*operands, *_values(word for word in words if word.partition("=")[0] not in _EXCLUDES)):
        yield from _each(word, base, place, deep=deep, without=without)
    if deep and part.name in names("searches") and not operands:
        yield _FileRead(_absolute(join(base, "."), place), deep=True, without=without)


_EXCLUDES = frozenset({"--exclude", "--exclude-dir"})
_PATTERNS = frozenset({"--regexp", "--file", "--files"})
_LOOKS_AT_HIDDEN = re.compile(r"--hid|--unr|-[^-]*[.u]")
"""Options with which ripgrep looks at files whose name begins with a dot."""


def _goes_down(name: str, options: Iterable[str]) -> bool:
    needed = lists("deep").get(name)
    if not needed:
        return needed is not None
    short = {option[1] for option in needed if not option.startswith("--")}
    return any(
        (word.startswith("--") and any(word != "--" and long.startswith(word) for long in needed))
        or (not word.startswith("--") and bool(short & set(word[1:])))
        for word in options
    )


def _values(words: Iterable[str]) -> Iterator[str]:
    """What may be a file inside a word: `--file=x`, `-fx`, `if=x`, `data=@x`, `HEAD:x`."""
    for word in words:
        for sign in ("=", "@", ":"):
            if sign in word:
                yield word.rpartition(sign)[2]
        if word.startswith("-") and not word.startswith("--") and len(word) > 2:
            yield word[2:]


def _each(
    word: str, base: str, place: PathContext, *, deep: bool, without: tuple[str, ...] = ()
) -> Iterator[_FileRead]:
    folder = _absolute(base or ".", place)
    for one in path_on_disk.expand(word, folder) if word else ():
        yield _FileRead(_absolute(join(base, one), place), deep=deep, without=without)
    if path_on_disk.GLOB & set(word):
        yield _FileRead(_absolute(join(base, word), place))


def _written_by(command: str, place: PathContext) -> Iterator[_FileRead]:
    for target in writes(command).targets:
        yield from _each(target, "", place, deep=False)


def _absolute(word: str, place: PathContext) -> str:
    return from_root(word, place.cwd, place.home)


# -- whether that is what a rule names ---------------------------------------------------------------------------------


def _reaches(reading: _FileRead, rule: Rule, tool: str, place: PathContext) -> bool:
    if not reading.only and (_is_meant(reading.path, rule, tool, place) or _may_stand_for(reading.path, rule, place)):
        return True
    if not reading.deep or not path_on_disk.is_folder(reading.path):
        return False
    return _meets(reading, rule, tool, place)


def _meets(reading: _FileRead, rule: Rule, tool: str, place: PathContext) -> bool:
    """Whether a walk through a folder comes upon such a file: by its name, a link, or another name of it."""
    places = _places(place)
    inodes = {same[1] for name in _literal(rule, place) if (same := identity(name))}
    for path, inode, link in path_on_disk.below(path_on_disk.real(reading.path)):
        if inode in inodes or link or _names_file(path, rule, tool, places):
            meant = inode in inodes or _names_file(path, rule, tool, places) or _is_meant(path, rule, tool, place)
            if meant and not _passed_over(path, reading):
                return True
    return False


def _passed_over(path: str, reading: _FileRead) -> bool:
    names = path.removeprefix(path_on_disk.real(reading.path)).split("/")
    if any(fnmatchcase(name, skipped) for skipped in reading.without for name in names):
        return True
    wanted = [pattern.rpartition("/")[2] for pattern in reading.only]
    return bool(wanted) and not any(fnmatchcase(names[-1], pattern) or "{" in pattern for pattern in wanted)


def _is_meant(path: str, rule: Rule, tool: str, place: PathContext) -> bool:
    """Whether a rule names this file, as it is given or by any other name it has."""
    names = dict.fromkeys((path, path_on_disk.real(path)))
    if any(_names_file(name, rule, tool, _places(place)) for name in names):
        return True
    return other_names(path) and _same_as_meant(path, rule, tool, place)


def _places(place: PathContext) -> list[PathContext]:
    """Where paths are read from, as it is written and where its links lead."""
    led = PathContext(path_on_disk.real(place.cwd), path_on_disk.real(place.project_dir), path_on_disk.real(place.home))
    return list(dict.fromkeys((place, led)))


def _names_file(path: str, rule: Rule, tool: str, places: Iterable[PathContext]) -> bool:
    return any(rule.catches(tool, {"file_path": path}, each) is RuleMatch.YES for each in places)


def _same_as_meant(path: str, rule: Rule, tool: str, place: PathContext) -> bool:
    """Whether one of a file's other names, in the project or written in the rule, is what the rule names."""
    wanted = identity(path)
    if wanted is None or any(identity(name) == wanted for name in _literal(rule, place)):
        return wanted is not None
    return any(
        each.inode == wanted[1] and _names_file(each.path, rule, tool, _places(place))
        for each in path_on_disk.below(path_on_disk.real(place.project_dir))
    )


def _literal(rule: Rule, place: PathContext) -> list[str]:
    """The files that a rule names outright."""
    pattern = rule.pattern or ""
    if path_on_disk.GLOB & set(pattern):
        return []
    if pattern.startswith("//"):
        return [pattern[1:]]
    if pattern.startswith("/"):
        return [place.project_dir + pattern]
    return [absolute(pattern, folder, place.home) for folder in dict.fromkeys((place.cwd, place.project_dir))]


def _may_stand_for(path: str, rule: Rule, place: PathContext) -> bool:
    """Whether a glob in a shell line matches a file that a rule names outright, be it there or not."""
    if not path_on_disk.GLOB & set(path):
        return False
    pattern = absolute(path, place.cwd, place.home).lower().replace("[^", "[!")
    return any(fnmatchcase(name.lower(), pattern) for name in _literal(rule, place))


# -- permission modes, and which shell lines make no more than simple changes to files ---------------------------------


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
        # what the same line has just put there may be links
        led = any(str(path).startswith(f"{folder}/") for path in written for folder in filled)
        if not fine or None in written or led:
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
    unsure = (changed.undecidable or changed.notes) and any(
        part.name in _WRITING or any(each.writes for each in part.redirects) for part in line.commands
    )
    mentioned = MENTION.findall(command.lower().translate(NO_QUOTES)) if unsure else ()
    return next((name for name in mentioned if name in names), None)


NO_QUOTES = {ord(char): None for char in "'\"\\"}
MENTION = re.compile(r"(?<![\w.-])(?:" + "|".join(map(re.escape, sorted(SETS_UP))) + r")(?![\w.-])")


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
