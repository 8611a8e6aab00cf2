"""Whether a call reads or writes a file that a path rule names: by a glob, a link, a folder it goes through.

A rule such as `Read(./.env)` names a file; this is about every other way to that file: `cat .en?`, `grep -r key .`,
`tar c .`, a symbolic or hard link, a search over the folder it lies in.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from fnmatch import fnmatchcase
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

from hookline.core.files import identity, other_names
from hookline.core.hooks.condition import PathContext, Rule, RuleMatch, canonical
from hookline.core.paths import absolute, from_root
from hookline.core.shell import SimpleCommand, parse_line, writes
from hookline.core.shell.programs.table import ParsedOptions, known, names, program
from hookline.core.shell.shell_line import LATER
from hookline.core.shell.targets import find_roots, join, placed
from hookline.guards.permissions import path_on_disk
from hookline.guards.permissions.line_reads import FileRead, reads_of
from hookline.guards.permissions.path_on_disk import could_be
from hookline.guards.permissions.readonly_commands import WorkingFolders, plain, reads, reads_only, spelled_out
from hookline.sandbox.places import FREE, read_table


def file_access_match(
    tool_name: str, tool_input: Mapping[str, Any], command: str | None, rule: Rule, place: PathContext
) -> RuleMatch:
    """Whether a call reaches a file that a path rule names; MAYBE when there is too much to look through."""
    if rule.bare or rule.problem or rule.tool not in ("Read", "Edit", "Write"):
        return RuleMatch.NO
    tool = "Read" if rule.tool == "Read" else "Write"
    if command is None:
        found = list(_read_by_tool(tool_name, tool_input)) if rule.names(tool_name) else []
    elif tool == "Read":
        files = (file for file in reads_of(command).files if file.by and (file.by, file.deep) != ("find", True))
        found = [*((file, "") for file in files), *_handed_on(command)]
    else:
        found = [(FileRead(target), "") for target in writes(command).targets]
    try:
        named = _NamedFiles(rule, tool, place) if found else None
        return RuleMatch.YES if named and any(named.reached_by(*each) for each in found) else RuleMatch.NO
    except path_on_disk.TooMany:
        return RuleMatch.MAYBE


def _handed_on(command: str) -> Iterator[tuple[FileRead, str]]:
    """What `find` names, and what it comes upon, with the name that it looks for, if something in the line reads it."""
    parts = list(placed(parse_line(command)))
    for part, bases in parts if len(parts) > 1 else ():
        if part.name != "find":
            continue
        known = [word for at, word in enumerate(part.words) if at and at not in part.unknown]
        named = [FileRead(word, by="find") for word in known if word[:1] != "-"]
        tests = takewhile(lambda word: not word.startswith(("-exec", "-ok")), part.marked)
        narrowed = known.count("-name") == 1 and not {"-o", "-or", "!", "-not", ","} & {*known}
        wanted = dict(pairwise(tests)).get("-name", "") if narrowed else ""
        only = "" if wanted.startswith(LATER) else wanted
        read = any(other.unknown and other.name in _READERS for other, _ in parts)
        roots = [FileRead(root, by="find", deep=True) for root in find_roots(part) if read]
        for base in bases or [""]:
            yield from ((file._replace(path=join(base, file.path)), "") for file in named)
            yield from ((file._replace(path=join(base, file.path)), only) for file in roots)


def reads_from(tool_name: str, tool_input: Mapping[str, Any], path: str | None) -> list[str]:
    """The places that a reading tool looks at: the path it is given, and where its glob starts."""
    pattern = tool_input.get("pattern") if canonical(tool_name) == "Glob" else None
    if not isinstance(pattern, str):
        return [path] if path else []
    return [*([path] if path else ()), join(path or "", path_on_disk.glob_start(pattern))]


def _read_by_tool(tool_name: str, tool_input: Mapping[str, Any]) -> Iterator[tuple[FileRead, str]]:
    """The files that a tool is given, and the glob that a search is narrowed to."""
    for field in ("file_path", "notebook_path", "path"):
        value = tool_input.get(field)
        if isinstance(value, str) and value:
            yield FileRead(value), ""
    name = canonical(tool_name)
    if name in ("Grep", "Glob"):
        root, only = tool_input.get("path"), tool_input.get("glob" if name == "Grep" else "pattern")
        only = only if isinstance(only, str) else ""
        if name == "Grep" or only:
            yield FileRead(root if isinstance(root, str) and root else ".", deep=True), only


class _NamedFiles:
    """The files that a path rule names, to be held against what a call reads or writes."""

    def __init__(self, rule: Rule, tool: str, place: PathContext) -> None:
        self._rule, self._tool, self._place = rule, tool, place
        led = PathContext(*map(path_on_disk.real, (place.cwd, place.project_dir, place.home)))
        self._places = dict.fromkeys((place, led))  # as it is written, and where its links lead
        self._literal = self._spelt_out(rule.pattern or "")

    def _spelt_out(self, pattern: str) -> list[str]:
        if path_on_disk.GLOB & set(pattern):
            return []
        place = self._place
        if pattern.startswith("/"):
            return [pattern[1:] if pattern.startswith("//") else place.project_dir + pattern]
        return [absolute(pattern, folder, place.home) for folder in dict.fromkeys((place.cwd, place.project_dir))]

    def reached_by(self, file: FileRead, only: str = "") -> bool:
        """Whether reading this file, or what lies below it, comes upon one of them."""
        path = from_root(file.path, self._place.cwd, self._place.home)
        paths = dict.fromkeys((path, *path_on_disk.expand(path, "/")))
        if not only and any(self._is(path) or self._may_be(path) for path in paths):
            return True
        return file.deep and any(Path(path).is_dir() and self._lies_below(path, file, only) for path in paths)

    def _lies_below(self, folder: str, file: FileRead, only: str) -> bool:
        """Whether a walk through a folder comes upon one: by its name, a link, or another name of it."""
        root = path_on_disk.real(folder)
        inodes = {same[1] for name in self._literal if (same := identity(name))}
        for each in path_on_disk.below(root):
            named = each.inode() in inodes or self._names(each.path) or (each.is_symlink() and self._is(each.path))
            if named and not _passed_over(each.path.removeprefix(root).split("/"), file.without, only):
                return True
        return False

    def _names(self, path: str) -> bool:
        return any(self._rule.catches(self._tool, {"file_path": path}, each) is RuleMatch.YES for each in self._places)

    def _is(self, path: str) -> bool:
        """Whether the rule names this file, as it is given or by any other name it has."""
        if any(map(self._names, dict.fromkeys((path, path_on_disk.real(path))))):
            return True
        wanted = identity(path) if other_names(path) else None
        if wanted is None or any(identity(name) == wanted for name in self._literal):
            return wanted is not None
        entries = path_on_disk.below(path_on_disk.real(self._place.project_dir))
        return any(each.inode() == wanted[1] and self._names(each.path) for each in entries)

    def _may_be(self, path: str) -> bool:
        """Whether a glob in a shell line matches a file that the rule names outright, be it there or not."""
        if not path_on_disk.GLOB & set(path):
            return False
        pattern = absolute(path, self._place.cwd, self._place.home).lower().replace("[^", "[!")
        return any(fnmatchcase(name.lower(), pattern) for name in self._literal)


def _passed_over(steps: list[str], without: Iterable[str], only: str) -> bool:
    """Whether a search passes over a file on this way."""
    if any(fnmatchcase(step, skipped) for skipped in without for step in steps):
        return True
    return bool(only) and "{" not in only and not fnmatchcase(steps[-1], only.rpartition("/")[2])


# -- permission modes, and which shell lines make no more than simple changes to files ---------------------------------


class Mode(StrEnum):
    """How calls that no rule and no hook decides are treated."""

    DEFAULT = "default"  # asks before anything that is not plainly reading
    ACCEPT_EDITS = "acceptEdits"  # as default, but edits inside the working folders pass
    PLAN = "plan"  # only reading passes; other commands are refused, other tools asked about
    DONT_ASK = "dontAsk"  # denies what default would ask about
    BYPASS = "bypassPermissions"  # allows everything that no deny or ask rule and no hook stops
    AUTO = "auto"  # as default here: there is no classifier


_WRITING, _READERS = names("changes"), names("opens") - {"ls", "find"}
_REPLACES_NAMES = frozenset({"rm", "rmdir", "mv", "mkdir"})
"""Programs that change names, not what a file holds: another name of the file keeps what it shows."""
_SUBSTITUTION = re.compile(r"s(?:/(?:[^/\\\n]|\\[^/\n])*){2}/[gpiIm\d]*")
PROTECTED = frozenset(read_table("protected"))
"""Names that `acceptEdits` does not reach: what is written there may run later, or is a secret."""
RUNS_LATER = PROTECTED - {".env", ".ssh"}  # those of them that no allow rule reaches either, as in Claude Code
SETS_UP = PROTECTED.union(read_table("set up"), read_table("settings"))
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


def edits_file(path: str, folders: WorkingFolders, *, changes: bool = True) -> bool:
    """Whether a file may be edited unasked: inside, protected by no name, and not the same file as one elsewhere."""
    elsewhere = changes and other_names(folders.path(path))
    return folders.hold(path) and not protected_file(path, folders) and not elsewhere


def writes_protected(command: str, folders: WorkingFolders, names: frozenset[str] = PROTECTED) -> str | None:
    """The protected name that a shell line writes to, if it does: by its name, links, globs, or an earlier `cd`."""
    line, changed = parse_line(command), writes(command)
    writing = [(part, bases or [""]) for part, bases in placed(line) if part.name in _WRITING]
    places = (join(base, word) for part, bases in writing for base in bases for word in part.words[1:])
    for place in dict.fromkeys([*changed.targets, *places]):
        try:
            named = filter(None, (protected_file(word, folders, names) for word in could_be(place, folders.cwd)))
            found = next(named, None)
        except path_on_disk.TooMany:
            found = place  # it may stand for one
        if found is not None:
            return found
    may_write = bool(writing) or any(each.writes for part in line.commands for each in part.redirects)
    unsure = may_write and (changed.undecidable or changed.notes)
    mentioned = MENTION.findall(command.lower().translate(NO_QUOTES)) if unsure else ()
    return next((name for name in mentioned if name in names), None)


NO_QUOTES = {ord(char): None for char in "'\"\\"}
MENTION = re.compile(r"(?<![\w.-])(?:" + "|".join(map(re.escape, sorted(SETS_UP))) + r")(?![\w.-])")


def protected_file(word: str, folders: WorkingFolders, names: frozenset[str] = PROTECTED) -> str | None:
    """The protected name by which a file in the working folders is reached, as it is written or by its links."""
    path = folders.path(word)
    leads = path_on_disk.real(path).removeprefix(path_on_disk.real(folders.cwd))
    return protected_name(path.removeprefix(folders.cwd + "/"), names) or protected_name(leads, names)


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
            try:
                files = [each for file in taken.files for each in could_be(join(base, file), folders.cwd)]
            except path_on_disk.TooMany:
                return None
            if part.name == "cp" and any(brings_protected(file, folders) for file in files):
                return None
        found += [_editable(file, folders, changes=part.name not in _REPLACES_NAMES) for file in files]
    return found


def _editable(word: str, folders: WorkingFolders, *, changes: bool) -> str | None:
    """The path of a file that may be edited; None when it may not."""
    return absolute(word, folders.cwd, folders.home) if edits_file(word, folders, changes=changes) else None


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
        return Path(path).is_dir() and any(each.name.lower() in PROTECTED for each in path_on_disk.below(path))
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
    return [_editable(place, folders, changes=True) for place in places] if bases or not targets else [None]
