"""A policy learned from history: what a person has let happen again and again is not asked about any more.

A positive list, as narrow as its evidence. A command is covered by a rule only when its program, its subcommand, every
option and every other word is one that the rule names, or of a kind that it names: `-run NAME`, a path below one of
its folders. What a line expands, code in another language and hidden files are never covered by a kind.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path
from typing import Any

import msgspec

from hookline.core.engine import Context
from hookline.core.hooks import Hook, make_hook
from hookline.core.hooks.condition import ARGUMENTS, canonical, domain_of, harmless
from hookline.core.paths import absolute, inside_any
from hookline.core.shell import SimpleCommand
from hookline.core.shell.programs.table import CODE_VARIABLES, names
from hookline.core.shell.targets import join
from hookline.errors import ConfigError
from hookline.events import PermissionRequest
from hookline.guards import learned_words as words
from hookline.guards import sandboxing
from hookline.guards.approvals import runs_git_helper
from hookline.guards.learned_words import Position
from hookline.guards.off_loop import run_off_loop
from hookline.guards.permissions import readonly_commands as commands
from hookline.guards.permissions.path_on_disk import GLOB, TooMany, could_be, real
from hookline.guards.permissions.readonly_commands import WorkingFolders
from hookline.guards.pure_code import code_of, files_read, is_replaced
from hookline.replies import Reply, allow

_WRITERS = frozenset({*names("changes"), "sed", "tee", "ln"})
UNUSED_DAYS = 90  # a rule that has not been used for so long is not applied any more


class CommandRule(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A program with its subcommand, the options and words it may be given, and the folders its paths may lie in."""

    run: str
    options: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    at: tuple[str, ...] = ()  # folders that it may run in, besides the project's own
    exact: tuple[str, ...] = ()  # whole commands, for a program whose words are not to be varied
    seen: int = 0
    last: str = ""

    def covers(self, part: SimpleCommand, bases: Sequence[str], folders: WorkingFolders) -> bool:
        if part.stdin is not None or not part.words or not self._is_for(part.words[0]):
            return False
        if self.exact:
            named = not part.unknown and words.whole(part) in self.exact
            return named and all(self.runs_in(base, folders) for base in bases or ("/",))
        if not _is_fed_inside(part, bases, folders):
            return False
        head = words.head_of(part)
        run = run_of(head, bases, folders)
        renames = part.name in ("cp", "mv") or part.words[:2] == ("git", "mv")
        if not run or self.run not in (run, f"{run.rpartition('/')[0]}/", words.family_of(run)):
            return False
        if not words.is_spelt_out(part) or (renames and words.makes_code(part)):
            return False
        given = list(words.positions(part, len(head), self.options))
        files = all(word.is_path or word.is_script or word.text[:1] in ("", "-") for word in given)
        anywhere = files and bool(bases) and words.takes_only_files(self.run) and self.run not in words.INDEXES
        here = anywhere or all(self.runs_in(base, folders) for base in bases or ("/",))
        return here and all(self._allows(word, bases, folders) for word in given)

    def _is_for(self, program: str) -> bool:
        return self.run.partition(" ")[0].rpartition("/")[2] == program.rpartition("/")[2]

    def runs_in(self, base: str, folders: WorkingFolders) -> bool:
        """Whether the rule is for commands in this folder: the project itself, or one below those it was seen in."""
        path = absolute(join(folders.cwd, base), folders.cwd, folders.home)
        return real(path) == real(folders.dirs[0]) or below(path, "", self.at, folders)

    def _allows(self, word: Position, bases: Sequence[str], folders: WorkingFolders) -> bool:
        prefix = f"{word.option} " if word.option else ""
        known = self.options if prefix or word.text.startswith("-") else self.words
        if word.is_unknown:
            return f"{prefix}{words.TEXT}" in known
        kind = words.kind_of(word.text, self.run if word.is_script or self.run not in words.SCRIPTS else "")
        stars = word.is_glob and self.run != "rm" and words.kind_of(word.text.replace("*", "x")) is words.PATH
        if word.is_path or stars or (kind is words.PATH and word.text != os.devnull):
            here = not word.is_path or all(self.runs_in(base, folders) for base in bases)
            if here and not stars and f"{prefix}{word.text}" in known:
                return all(below(word.text, base, (".", *self.at), folders) for base in bases)
            return (stars or not word.is_glob) and (not prefix or f"{prefix}{words.PATH}" in known) and all(
                self._holds(path, base, folders, writes=bool(prefix) or self.run.partition(" ")[0] in _WRITERS)
                for base in bases for path in (_matched(word.text, base, folders) if stars else [word.text])
            )  # fmt: skip
        if (not word.is_glob and f"{prefix}{word.text}" in known) or f"{prefix}{words.TEXT}" in known:
            return True
        if kind is words.URL:
            return words.origin_of(word.text, word.option) in (*self.options, *self.words)
        return not word.is_glob and kind is not None and f"{prefix}{kind}" in known

    def _holds(self, word: str, base: str, folders: WorkingFolders, *, writes: bool) -> bool:
        """Whether a path lies in one of the rule's folders; the whole project does not, it has to be named."""
        if writes and words.steers(word):
            return False
        path = absolute(join(base, word), folders.cwd, folders.home)
        indexes = self.run in words.INDEXES
        if path == folders.dirs[0] or (indexes and words.SECRET_NAME.search(path)):
            return False
        return below(word, base, self.folders, folders, hidden=indexes)


class ToolRule(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A tool, and what its main argument may be: a path below one of the folders, an address at one of the hosts."""

    tool: str
    folders: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()  # whole inputs, as JSON, of a tool whose arguments are not known
    seen: int = 0
    last: str = ""

    def covers(self, given: Mapping[str, Any], folders: WorkingFolders) -> bool:
        field = ARGUMENTS.get(canonical(self.tool))
        value = given.get(field.name) if field else None
        if self.folders:
            return isinstance(value, str) and below(value, "", self.folders, folders) and not words.steers(value)
        if self.hosts:
            return domain_of(str(value or "")) in self.hosts
        return written(given) in self.inputs


class LearnedFolders(WorkingFolders):
    """The project, and folders besides it, in which what is a secret by its name is not for looking at."""

    def hold(self, word: str, base: str = "") -> bool:
        """Whether what a word names may be looked at."""
        if WorkingFolders(self.cwd, self.dirs[:1], self.home).hold(word, base):
            return True
        path = absolute(join(base, word), self.cwd, self.home)
        return below(word, base, self.dirs[1:], self, hidden=True) and not words.SECRET_NAME.search(path)


class LearnedPolicy(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What was learned; in the folders of `read` commands may look around, and redirect what they show to `write`."""

    read: tuple[str, ...] = ()
    look: tuple[str, ...] = ()  # folders of which commands may tell what there is, not what is in a file
    write: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    protect: tuple[str, ...] = ()
    commands: tuple[CommandRule, ...] = ()
    tools: tuple[ToolRule, ...] = ()

    def used_since(self, day: str) -> LearnedPolicy:
        """The policy without the rules that were last used before a day."""
        kept = {key: tuple(rule for rule in getattr(self, key) if rule.last >= day) for key in ("commands", "tools")}
        return msgspec.structs.replace(self, **kept)

    def covering(self, tool: str, given: Mapping[str, Any], cwd: str, dirs: Sequence[str], home: str) -> list[Any]:
        """The rules that together cover a call; none when it is to be asked about."""
        folders = LearnedFolders(cwd, (*dirs, *self.read), home)
        if (field := ARGUMENTS.get(canonical(tool))) is not None and field.kind == "command":
            return self._line(str(given.get(field.name) or ""), folders)
        return [rule for rule in self.tools if rule.tool == tool and rule.covers(given, folders)][:1]

    def _line(self, line: str, folders: WorkingFolders) -> list[Any]:
        used: list[Any] = []
        parts = list(words.known_parts(line))
        for part, bases in parts:
            may_write = writes_below(part, bases, self.write, folders)
            if may_write and (
                _is_no_command(part, bases, folders) or self._shows(part, bases, folders) or self._introduces(part)
            ):
                continue
            rule = next((rule for rule in self.commands if rule.covers(part, bases, folders)), None)
            if rule is None or not (rule.exact or may_write):
                return []
            used.append(rule)
        runs_nothing = [words.takes_only_files(rule.run) or rule.run.startswith("git ") for rule in used]
        if any(rule.run == "sed -i" and not rule.exact for rule in used) and not all(runs_nothing):
            return []  # what a line edits it does not also run
        if any(code_of(part) is not None for part, _ in parts) and any(runs_nothing):
            return []  # nor import
        git = any(runs_git_helper(part.words, bases, folders.cwd) for part, bases in parts if part.name == "git")
        return [] if git or not parts else used or [self]

    def _introduces(self, part: SimpleCommand) -> bool:
        """Whether a program that a rule is for, found by its name, says how it is called or shows what it knows."""
        is_help = part.words[1:] in (("--version",), ("--help",)) and not part.assignments
        is_fed = part.stdin is not None or any(each.op in ("<", "<>", "|") for each in part.redirects)
        known = {rule.run.partition(" ")[0] for rule in self.commands if not rule.exact}
        return (is_help or words.only_shows(part)) and not is_fed and part.words[0] in known

    def _shows(self, part: SimpleCommand, bases: Sequence[str], folders: WorkingFolders) -> bool:
        """Whether a command only reads: also git where it is known to run, and what hands files to another command."""
        if shows(part, bases, folders) or hands_on(part, bases, folders):
            return True
        if part.name in words.TELLS and not any(map(words.SECRET_NAME.search, part.words)):
            return commands.reads(part, bases, folders._replace(dirs=(*folders.dirs, *self.look)), writing=True)
        if part.name != "git" or not bases:
            return False
        places = [absolute(join(folders.cwd, base), folders.cwd, folders.home) for base in bases]
        known = [rule for rule in self.commands if rule.run.startswith("git ")]
        there = [folders._replace(cwd=place, dirs=(*folders.dirs, place)) for place in places]
        runs = all(any(rule.runs_in(place, folders) for rule in known) for place in places)
        return runs and all(commands.reads(part, [""], place, writing=True) for place in there)


def shows(part: SimpleCommand, bases: Sequence[str], folders: WorkingFolders) -> bool:
    """Whether a command only reads, and only in these folders; so does a script that does nothing but show."""
    if commands.reads(part, bases, folders, writing=True):
        return True
    if (read := files_read(code_of(part))) is not None:
        is_its_own = bool(bases) and not any(is_replaced(folders.path(".", base)) for base in bases)
        held = all(folders.hold(file, base) for file in read for base in bases)
        return is_its_own and held and _is_fed_inside(part, bases, folders)
    if part.words[:2] in words.CHECKS and len(part.words) == 3 and not (part.assignments or part.unknown or part.globs):
        inside = bool(bases) and all(folders.hold(part.words[2], base) for base in bases)
        return inside and part.stdin is None and _is_fed_inside(part, bases, folders)
    flags = words.SHOWING.get(part.name)
    is_fed = part.stdin is not None or any(each.op == "<" for each in part.redirects)
    if flags is None or part.words[0] != part.name or part.unknown or part.assignments or is_fed:
        return False
    given = [word for word in part.words[1:] if not flags.fullmatch(word)]
    at = int(part.name == "sqlite3")  # which is given the file first
    if len(given) <= at or any(word.startswith("-") for word in given) or not words.SCRIPTS[part.name](given[at]):
        return False
    if at and (len(given) > 2 or words.kind_of(given[0]) is not words.PATH):
        return False
    known = {given[at], *(word for word in part.words if flags.fullmatch(word))}
    spelt = [(word, base) for base in bases for word in commands.spelled_out(part, base, folders) or ("/",)]
    files = [(word, base) for word, base in spelt if word not in known]
    return bool(bases) and all(not word.startswith("-") and folders.hold(word, base) for word, base in files)


def _is_no_command(part: SimpleCommand, bases: Sequence[str], folders: WorkingFolders) -> bool:
    """Whether a part sets variables that no program is steered by, or changes how another command runs."""
    steered = any(part.words or CODE_VARIABLES.fullmatch(name) for name, _ in part.assignments)
    return harmless(part) and not (steered or part.stdin is not None) and _is_fed_inside(part, bases, folders)


def _is_fed_inside(part: SimpleCommand, bases: Sequence[str], folders: WorkingFolders) -> bool:
    """Whether the files that a command is fed lie in these folders."""
    inputs = (each for each in part.redirects if each.op in ("<", "<>"))
    return all(each.known and bases and all(folders.hold(each.target, at) for at in bases) for each in inputs)


def run_of(head: Sequence[str], bases: Sequence[str], folders: WorkingFolders) -> str | None:
    """A program and subcommand as a rule names it: a file by its path in the project, another one not at all."""
    named: list[str] = []
    for word in head:
        if "/" not in word and (words.kind_of(word) is not words.PATH or word == head[0]):
            named.append(word)
            continue
        places = {absolute(join(base, word), folders.cwd, folders.home) for base in bases}
        if len(places) != 1 or not all(below(word, base, (".",), folders) for base in bases):
            return None
        named.append(f"./{places.pop()[len(folders.dirs[0]) :].strip('/')}")
    return " ".join(named)


def hands_on(part: SimpleCommand, bases: Sequence[str], folders: WorkingFolders) -> bool:
    """Whether a command only finds files and hands them to another one, which is judged by itself."""
    if not part.wraps or part.unknown or not bases or part.words[0] != part.name:
        return False
    if part.name == "find":
        start = commands.find_files(part.words[1:], runs=True)
        return start is not None and all(folders.hold(word, base) for word in start or ["."] for base in bases)
    options = takewhile(re.compile(r"(?s:-.*)|\{\}|\d+").fullmatch, part.words[1:])
    return part.name == "xargs" and all(map(re.compile(r"-0|-r|-t|-n|-L|-P|-I|-I?\{\}|-[nLP]?\d+").fullmatch, options))


def _matched(word: str, base: str, folders: WorkingFolders) -> list[str]:
    """The pattern itself, without its stars, and the files that match it."""
    try:
        return [word.replace("*", "x"), *could_be(word, folders.path(".", base))]
    except TooMany:
        return ["/"]


def below(word: str, base: str, allowed: Sequence[str], folders: WorkingFolders, *, hidden: bool = False) -> bool:
    """Whether a path lies below one of these folders, by its name and on the disk, and is not hidden there.

    A folder that ends in `/` stands for the files right in it.
    """
    if word.startswith("~") and not word.startswith("~/"):
        return False
    path = absolute(join(base, word), folders.cwd, folders.home)
    for folder in allowed:
        root = absolute(folder, folders.dirs[0], folders.home)
        steps = [step for step in path[len(root) :].split("/") if step and step != "..."]
        if not inside_any(path, [root]) or (folder.endswith("/") and len(steps) > 1):
            continue
        is_hidden = any(step.startswith(".") for step in steps) and not (hidden and not folder.endswith("/"))
        return not is_hidden and inside_any(real(path), [root, real(root)])
    return False


def writes_below(part: SimpleCommand, bases: Sequence[str], allowed: Sequence[str], folders: WorkingFolders) -> bool:
    """Whether all that a command redirects goes to files like these: `logs/**/*.txt`, `/tmp/*.json`."""
    for each in part.redirects:
        ending = Path(each.target).suffix
        places = [place.removesuffix(f"*{ending}") for place in allowed if ending and place.endswith(f"*{ending}")]
        within = [place.removesuffix("/**/") for place in places]
        known = each.known and bases and not (GLOB & set(each.target) or words.steers(each.target))
        if each.writes and not (known and all(below(each.target, base, within, folders) for base in bases)):
            return False
    return True


def written(given: Mapping[str, Any]) -> str:
    """A tool's input as one text."""
    return msgspec.json.encode(given, order="deterministic").decode()


def read_policy(path: str | Path) -> LearnedPolicy:
    """The policy of a file; one that cannot be read is refused."""
    try:
        return msgspec.convert(tomllib.loads(Path(path).read_text("utf-8")), LearnedPolicy)
    except OSError as problem:
        raise ConfigError(str(path), f"{problem.strerror}; `hookline learn` writes one") from None
    except (ValueError, msgspec.ValidationError) as problem:
        raise ConfigError(str(path), f"not a learned policy: {problem}") from None


def joined(old: LearnedPolicy, new: LearnedPolicy) -> LearnedPolicy:
    """The new policy, with the rules of the old one that it says nothing about: they end when they stay unused."""
    kinds: dict[str, Callable[[Any], Any]] = {
        "commands": lambda rule: (rule.run, bool(rule.exact)), "tools": lambda rule: rule.tool,
    }  # fmt: skip
    both = {name: {*getattr(old, name), *getattr(new, name)} for name in ("read", "look", "write", "hosts", "protect")}
    fields: dict[str, Any] = {name: tuple(sorted(places)) for name, places in both.items()}
    for name, key in kinds.items():
        known = {key(rule) for rule in getattr(new, name)}
        fields[name] = (*getattr(new, name), *(rule for rule in getattr(old, name) if key(rule) not in known))
    return LearnedPolicy(**fields)


def approve(path: str | Path, *, unused_days: int = UNUSED_DAYS, name: str = "learned.approve") -> Hook:
    """Approve the calls that the policy in `path` covers, which `hookline learn` wrote; leave the rest to the user.

    A rule that was not used for `unused_days` is not applied; `hookline learn` renews those that are.
    """
    policy = read_policy(path)

    async def judge(event: PermissionRequest, ctx: Context) -> Reply | None:
        given, cwd = sandboxing.without_confinement(event), event.cwd or str(Path.cwd())
        day = (datetime.now(UTC) - timedelta(days=unused_days)).date().isoformat()
        project = ctx.env.get("CLAUDE_PROJECT_DIR") or cwd

        def covering() -> list[Any]:
            return policy.used_since(day).covering(event.tool_name, given, cwd, [project], str(Path.home()))

        rules = await run_off_loop([str(given.get("command", ""))], covering, disk=True)
        if not rules:
            return None
        told = dict.fromkeys(rule.run for rule in rules if isinstance(rule, CommandRule))
        return allow(f"learned from history: {', '.join(f'`{run}`' for run in told) or event.tool_name}")

    return make_hook((PermissionRequest,), judge, name=name)
