"""A policy learned from history: what a person has let happen again and again is not asked about any more.

A positive list, as narrow as its evidence. A command is covered by a rule only when its program, its subcommand, every
option and every other word is one that the rule names, or of a kind that it names: `-run NAME`, a path below one of
its folders. What a line expands, code in another language and hidden files are never covered by a kind.
"""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from hookline.core.engine import Context
from hookline.core.hooks import Hook, make_hook
from hookline.core.hooks.condition import domain_of, harmless
from hookline.core.hooks.tools import ARGUMENTS, canonical
from hookline.core.paths import absolute, inside_any
from hookline.core.placeholders import EITHER, fill
from hookline.core.shell import SimpleCommand, parse_line
from hookline.core.shell.programs.table import CODE_MODULES, CODE_VARIABLES, INTERPRETERS, names, tags_of, values
from hookline.core.shell.targets import join, placed
from hookline.errors import ConfigError
from hookline.events import PermissionRequest
from hookline.guards.approvals import runs_git_helper, without_confinement
from hookline.guards.off_loop import run_off_loop
from hookline.guards.permissions.path_on_disk import real
from hookline.guards.permissions.readonly_commands import WorkingFolders, reads
from hookline.replies import Reply, allow

NUMBER, NAME, PATH, SCRIPT, TEXT = "NUMBER", "NAME", "PATH", "SCRIPT", "TEXT"
UNUSED_DAYS = 90
"""A rule that has not been used for so long is not applied any more."""
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?[a-zA-Z%]{0,2}")
_PATH = re.compile(r"(?=.*/|[.~])[\w./~+,%-]+|[\w-]+\.[a-z]\w{0,4}")
_ADDRESS_LIKE = re.compile(r"[\w-]+(?:\.[\w-]+)+/")
"""`github.com/owner/name` is not a file, though it looks like one."""
_NAME = re.compile(r"[A-Za-z_^(][\w.|^$*()-]*")
_TEXTS = {"git commit": ("-m", "--message", "-am"), "git tag": ("-m",), "git stash": ("-m",), "gh pr": ("--title",),
          "gh issue": ("--title",)}  # fmt: skip
"""Options whose value is prose, whatever it says."""
_EXPANDS = re.compile(r"[$`…]|<\(|>\(")
_PLAIN = re.compile(r"[\w./~:@+,-]+")
_MAKES_FILES = frozenset({"mkdir", "touch"})
_ADDRESS = r"(?:\d+|\$|/(?:[^/\\\n]|\\.)*/I?)"
_PART = r"(?:(?!\1)[^\\\n]|\\.)*"
_SED = rf"(?:{_ADDRESS}(?:,\+?{_ADDRESS})?!?)?\s*(?:[pdqDPhHgGxnN=]|s([/|#,:@]){_PART}\1{_PART}\1[gpiI\d]*)"
_SCRIPTS = {
    "sed": lambda text: all(re.fullmatch(_SED, one.strip()) for one in re.split(r"[;\n]+", text.strip())),
    "awk": lambda text: not re.search(r"system|getline|[|>@]|\bexec", text),
}
"""Programs that show what a script picks, and which scripts do nothing but show."""
_SHOWING = re.compile(r"-[nErsuz]+|-e|-F.{0,3}|--(?:quiet|regexp-extended|null-data)")


class CommandRule(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A program with its subcommand, the options and words it may be given, and the folders its paths may lie in."""

    run: str
    options: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    at: tuple[str, ...] = ()
    """Folders outside the project that it may run in."""
    exact: tuple[str, ...] = ()
    """Whole commands, for a program whose words are not to be varied."""
    seen: int = 0
    last: str = ""

    def covers(self, part: SimpleCommand, bases: Sequence[str], folders: WorkingFolders) -> bool:
        """Whether every word of a command is one that the rule names."""
        if part.unknown or part.stdin is not None:
            return False
        head = head_of(part)
        named = whole(part) in self.exact if self.exact else " ".join(head) == self.run
        if not named or not all(self._runs_in(base, folders) for base in bases or ("/",)):
            return False
        words = () if self.exact else positions(part, len(head), self)
        return all(self._allows(word, bases, folders) for word in words)

    def _runs_in(self, base: str, folders: WorkingFolders) -> bool:
        path = absolute(join(folders.cwd, base), folders.cwd, folders.home)
        allowed = [folders.dirs[0], *(absolute(place, folders.dirs[0], folders.home) for place in self.at)]
        return all(inside_any(seen, [*allowed, *map(real, allowed)]) for seen in (path, real(path)))

    def _allows(self, word: Position, bases: Sequence[str], folders: WorkingFolders) -> bool:
        prefix = f"{word.option} " if word.option else ""
        known = self.options if prefix or word.text.startswith("-") else self.words
        kind = kind_of(word.text, self.run)
        if kind is PATH and word.text != os.devnull:
            if f"{prefix}{word.text}" in known:
                return all(below(word.text, base, (".",), folders) for base in bases)
            return (
                (not prefix or f"{prefix}{PATH}" in known)
                and not word.is_glob
                and all(below(word.text, base, self.folders, folders) for base in bases)
            )
        if f"{prefix}{word.text}" in known or f"{prefix}{TEXT}" in known:
            return True
        return not word.is_glob and kind is not None and f"{prefix}{kind}" in known


class ToolRule(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A tool, and what its main argument may be: a path below one of the folders, an address at one of the hosts."""

    tool: str
    folders: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    """Whole inputs, as JSON, of a tool whose arguments are not known."""
    seen: int = 0
    last: str = ""

    def covers(self, given: Mapping[str, Any], folders: WorkingFolders) -> bool:
        """Whether a call of the tool is one that the rule names."""
        field = ARGUMENTS.get(canonical(self.tool))
        value = given.get(field.name) if field else None
        if self.folders:
            return isinstance(value, str) and below(value, "", self.folders, folders)
        if self.hosts:
            return domain_of(str(value or "")) in self.hosts
        return written(given) in self.inputs


class LearnedPolicy(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What was learned; in the folders of `read` and `write` commands may look around, and redirect what they show."""

    read: tuple[str, ...] = ()
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
        folders = WorkingFolders(cwd, (*dirs, *(absolute(folder, dirs[0], home) for folder in self.read)), home)
        if (field := ARGUMENTS.get(canonical(tool))) is not None and field.kind == "command":
            return self._line(str(given.get(field.name) or ""), folders)
        return [rule for rule in self.tools if rule.tool == tool and rule.covers(given, folders)][:1]

    def _line(self, line: str, folders: WorkingFolders) -> list[Any]:
        used: list[Any] = []
        parts = list(known_parts(line))
        for part, bases in parts:
            shows = harmless(part) or reads(part, bases, folders, writing=True)
            if shows and writes_below(part, bases, self.write, folders):
                continue
            rule = next((rule for rule in self.commands if rule.covers(part, bases, folders)), None)
            if rule is None or not (rule.exact or writes_below(part, bases, self.write, folders)):
                return []
            used.append(rule)
        git = any(runs_git_helper(part.words, bases, folders.cwd) for part, bases in parts if part.name == "git")
        return [] if git or not parts else used or [self]


class Position(msgspec.Struct, frozen=True):
    """One word of a command, with the option it follows, if that option may take it as its value."""

    text: str
    option: str = ""
    is_glob: bool = False


def known_parts(line: str) -> Iterator[tuple[SimpleCommand, list[str]]]:
    """The commands of a line with their folders, if all that it runs is known; none if not.

    `D=docs; ls $D` is `ls docs`: a variable that the line itself sets, once and to a plain word, is that word.
    """
    parsed = parse_line(line)
    if parsed.undecidable or parsed.code or parsed.evaluates:
        return
    settled: dict[str, str] = {}
    commands = []
    for part in parsed.commands:
        if not part.words and not (part.loops or part.scope or part.redirects):
            plain = {name: value for name, value in part.assignments if _PLAIN.fullmatch(value) and name not in settled}
            settled = {name: value for name, value in settled.items() if name not in dict(part.assignments)} | plain
        commands.append(part if part.loops or part.name in names("sets") else _filled_in(part, settled))
    yield from placed(msgspec.structs.replace(parsed, commands=tuple(commands)))


def _filled_in(part: SimpleCommand, settled: Mapping[str, str]) -> SimpleCommand:
    words, unknown = list(part.words), []
    for at in part.unknown:
        words[at] = fill(words[at], settled.get, EITHER)
        if _EXPANDS.search(words[at]):
            unknown.append(at)
    if len(unknown) == len(part.unknown):
        return part
    name = words[0].rpartition("/")[2] if 0 not in unknown else ""
    return msgspec.structs.replace(part, name=name, words=tuple(words), unknown=tuple(unknown))


def head_of(part: SimpleCommand) -> tuple[str, ...]:
    """The program and subcommand (`go test`, `python -m pytest`) of a command whose other words may vary, else nothing.

    A program with a row in the table of programs is one that runs, writes or opens something: of those only the ones
    that carry out a project's tasks may vary.
    """
    words = part.words
    if not words or part.name not in (words[0], words[0].removeprefix("./")) or 0 in part.globs:
        return ()
    if any(CODE_VARIABLES.fullmatch(name) for name, _ in part.assignments):
        return ()
    if part.name in INTERPRETERS:
        known = words[1:2] == ("-m",) and len(words) > 2 and words[2] not in CODE_MODULES and words[2][:1] != "-"
        return words[:3] if known else ()
    tags = tags_of(part.name)
    if part.name in _SCRIPTS:
        return words[:1] if all(_SHOWING.fullmatch(word) for word in words[1:] if word.startswith("-")) else ()
    if tags <= {"text", "other-o", "plain"} or part.name in _MAKES_FILES:
        return words[:1] if tags else words[: 1 + _leading_names(words[1:2])]
    if words[:2] == ("go", "run"):  # as an interpreter: what it is given is code
        return ()
    if "task" not in tags and values("look").get(part.name) != "environment":
        return ()
    steps = _leading_names(words[1:3])
    return words[: 1 + steps] if steps else ()


def _leading_names(words: Sequence[str]) -> int:
    """How many of these words name what the program is to do: `run build` of npm, `pr view` of gh."""
    plain = [re.fullmatch(r"[a-z][a-z0-9:-]*", word) is not None for word in words]
    return plain.index(False) if False in plain else len(plain)


def whole(part: SimpleCommand) -> str:
    """A command as an exact rule has it: what is set before it, its words, and where it writes."""
    writes = [f"{each.op}{each.target}" for each in part.redirects if each.writes]
    return shlex.join([*(f"{name}={value}" for name, value in part.assignments), *part.words, *writes])


def positions(part: SimpleCommand, start: int, rule: CommandRule | None = None) -> Iterator[Position]:
    """The words behind the head, `--name=value` as two; a word behind an option is its value, unless it is a flag."""
    yield from (Position(f"{name}={value}") for name, value in part.assignments)
    before = ""
    for at, word in enumerate(part.words[start:], start):
        option, sign, value = word.partition("=")
        if word.startswith("-") and sign:
            yield Position(option)
            yield Position(value, option, at in part.globs)
            before = ""
        elif word.startswith("-") and len(word) > 1:
            yield Position(word)
            before = word
        else:
            valued = rule is not None and any(known.startswith(f"{before} ") for known in rule.options)
            is_flag = rule is not None and before in rule.options and not valued
            yield Position(word, "" if is_flag else before, at in part.globs)
            before = ""


def kind_of(word: str, run: str = "") -> str | None:
    """What a word is by its looks: a number, a path, a name, a script of `run`; None when it is none of these."""
    if run in _SCRIPTS and _SCRIPTS[run](word):
        return SCRIPT
    if _NUMBER.fullmatch(word):
        return NUMBER
    if _PATH.fullmatch(word) and not _ADDRESS_LIKE.match(word):
        return PATH
    return NAME if _NAME.fullmatch(word) else None


def takes_scripts(run: str) -> bool:
    """Whether a program is given scripts, of which only those that show something are known."""
    return run in _SCRIPTS


def is_prose(run: str, option: str) -> bool:
    """Whether an option of a command is given prose."""
    return option in _TEXTS.get(run, _TEXTS.get(" ".join(run.split()[:2]), ()))


def below(word: str, base: str, allowed: Sequence[str], folders: WorkingFolders) -> bool:
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
        return not any(step.startswith(".") for step in steps) and inside_any(real(path), [root, real(root)])
    return False


def writes_below(part: SimpleCommand, bases: Sequence[str], allowed: Sequence[str], folders: WorkingFolders) -> bool:
    """Whether all that a command redirects goes to files below these folders."""
    return all(
        each.known and bool(bases) and all(below(each.target, base, allowed, folders) for base in bases)
        for each in part.redirects
        if each.writes
    )


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
    fields: dict[str, Any] = {
        name: tuple(sorted({*getattr(old, name), *getattr(new, name)}))
        for name in ("read", "write", "hosts", "protect")
    }
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
        given, cwd = without_confinement(event), event.cwd or str(Path.cwd())
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
