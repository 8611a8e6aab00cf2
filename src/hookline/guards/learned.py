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
from itertools import pairwise, takewhile
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
from hookline.guards.permissions.readonly_commands import WorkingFolders, find_files, reads, without_commands
from hookline.replies import Reply, allow

NUMBER, NAME, PATH, SCRIPT, TEXT, ID, URL = "NUMBER", "NAME", "PATH", "SCRIPT", "TEXT", "ID", "URL"
UNUSED_DAYS = 90
"""A rule that has not been used for so long is not applied any more."""
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?[a-zA-Z%]{0,2}")
_PATH = re.compile(r"(?=.*/|[.~])[\w./~+,%-]+|[\w-]+\.[a-z]\w{0,4}")
_ADDRESS_LIKE = re.compile(r"[\w-]+(?:\.[\w-]+)+/")
"""`github.com/owner/name` is not a file, though it looks like one."""
_NAME = re.compile(r"[A-Za-z_^(][\w.,|^$*()-]*")
_ID = re.compile(r"(?=.*\d)[0-9a-f]{7,64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_URL = re.compile(r"((?:https?://[\w.-]+|localhost|127\.0\.0\.1)(?::\d+)?)(?:[/?][\w./?=&%:,+~-]*)?")
_PROSE = ("-m", "--message", "-am", "-t", "--title", "-b", "--body")
_TEXTS = {"git commit": _PROSE[:3], "git tag": ("-m",), "git stash": ("-m",), "gh pr": _PROSE[3:], "gh issue": _PROSE[3:]}
"""Options whose value is prose, whatever it says."""
_EXPANDS = re.compile(r"[$`…]|<\(|>\(")
_PLAIN = re.compile(r"[\w./~:@+,-]+")
_CHANGES_FILES = frozenset({"mkdir", "touch", "cp", "mv", "rm", "rmdir", "chmod"})
_RECURSIVE = re.compile(r"-\w*[rR]\w*|--recursive")
_GETS = re.compile(r"-[sSfkiIvLG]+|--(?:silent|show-error|fail|include|head|location|verbose|compressed|max-time"
                   r"|connect-timeout)(?:=.*)?|-[mwoH]|--write-out")  # fmt: skip
"""Options of curl with which it asks for something and sends nothing; `-o` is for `/dev/null` only."""
_ADDRESS = r"(?:\d+|\$|/(?:[^/\\\n]|\\.)*/I?)"
_PART = r"(?:(?!\1)[^\\\n]|\\.)*"
_SED = rf"(?:{_ADDRESS}(?:,\+?{_ADDRESS})?!?)?\s*(?:[pdqDPhHgGxnN=]|s([/|#,:@]){_PART}\1{_PART}\1[gpiI\d]*)"
_SCRIPTS = {
    "sed": lambda text: all(re.fullmatch(_SED, one.strip()) for one in re.split(r"[;\n]+", text.strip())),
    "awk": lambda text: not re.search(r"system|getline|[|@]|>(?!=)|\bexec", text.replace("||", "")),
    "sqlite3": lambda text: bool(re.fullmatch(r"\.(?:schema|tables)(?: \w+)?|(?i:select\b[^;]*|pragma table_info\(\w+\));?", text))
    and not re.search(r"(?i)writefile|readfile|load_extension|edit\s*\(|fts3_tokenizer|fsdir|zipfile", text),
}
_SCRIPTS["sed -i"] = _SCRIPTS["sed"]
"""Programs that show what a script picks, and which scripts do nothing but show."""
_SHOWING = re.compile(r"-[nErsuz]+|-e|-F.{0,3}|--(?:quiet|regexp-extended|null-data)|-(?:header|json|column|readonly|line)")
_IN_PLACE = re.compile(r"-[nEr]*i[nEr]*|--in-place")
_LOOP = re.compile(r"\bfor\s+(\w+)\s+in\s+([^;\n$`'\"\\]+?)\s*(?:;|\n)\s*do\b")
_LISTS = frozenset({"find", "ls", "fd"})
_PASSES_ON = frozenset({"head", "tail", "sort", "uniq", "grep"})
"""Filters that hand on some of the lines that they read."""
_MOST_TURNS = 32


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
        if part.stdin is not None or (self.exact and part.unknown):
            return False
        head = head_of(part)
        named = whole(part) in self.exact if self.exact else " ".join(head) == self.run
        if not named or not all(self.runs_in(base, folders) for base in bases or ("/",)):
            return False
        if self.exact:
            return True
        files = [word for word in head if "/" in word or kind_of(word) is PATH]
        return all(below(word, base, (".", *self.at), folders) for word in files for base in bases) and all(
            self._allows(word, bases, folders) for word in positions(part, len(head), self)
        )

    def runs_in(self, base: str, folders: WorkingFolders) -> bool:
        """Whether the rule is for commands in this folder."""
        path = absolute(join(folders.cwd, base), folders.cwd, folders.home)
        allowed = [folders.dirs[0], *(absolute(place, folders.dirs[0], folders.home) for place in self.at)]
        return all(inside_any(seen, [*allowed, *map(real, allowed)]) for seen in (path, real(path)))

    def _allows(self, word: Position, bases: Sequence[str], folders: WorkingFolders) -> bool:
        prefix = f"{word.option} " if word.option else ""
        known = self.options if prefix or word.text.startswith("-") else self.words
        if word.is_unknown:
            return f"{prefix}{TEXT}" in known
        kind = kind_of(word.text, self.run)
        if kind is PATH and word.text != os.devnull:
            if f"{prefix}{word.text}" in known:
                return all(below(word.text, base, (".", *self.at), folders) for base in bases)
            return (
                (not prefix or f"{prefix}{PATH}" in known)
                and not word.is_glob
                and all(below(word.text, base, self.folders, folders) for base in bases)
            )
        if f"{prefix}{word.text}" in known or f"{prefix}{TEXT}" in known:
            return True
        if kind is URL:
            return origin_of(word.text) in known
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
            shows = harmless(part) or self._shows(part, bases, folders)
            if shows and writes_below(part, bases, self.write, folders):
                continue
            rule = next((rule for rule in self.commands if rule.covers(part, bases, folders)), None)
            if rule is None or not (rule.exact or writes_below(part, bases, self.write, folders)):
                return []
            used.append(rule)
        git = any(runs_git_helper(part.words, bases, folders.cwd) for part, bases in parts if part.name == "git")
        return [] if git or not parts else used or [self]


    def _shows(self, part: SimpleCommand, bases: Sequence[str], folders: WorkingFolders) -> bool:
        """Whether a command only reads: also git where it is known to run, and what hands files to another command."""
        if reads(part, bases, folders, writing=True) or hands_on(part, bases, folders):
            return True
        if part.name != "git" or not bases:
            return False
        places = [absolute(join(folders.cwd, base), folders.cwd, folders.home) for base in bases]
        return all(
            any(rule.run.startswith("git ") and rule.runs_in(place, folders) for rule in self.commands)
            and reads(part, [""], folders._replace(cwd=place, dirs=(*folders.dirs, place)), writing=True)
            for place in places
        )


class Position(msgspec.Struct, frozen=True):
    """One word of a command, with the option it follows, if that option may take it as its value."""

    text: str
    option: str = ""
    is_glob: bool = False
    is_unknown: bool = False


def hands_on(part: SimpleCommand, bases: Sequence[str], folders: WorkingFolders) -> bool:
    """Whether a command only finds files and hands them to another one, which is judged by itself."""
    if not part.wraps or part.unknown or not bases or part.words[0] != part.name:
        return False
    if part.name == "find":
        start = find_files(list(without_commands(list(part.words[1:]))))
        return start is not None and all(folders.hold(word, base) for word in start or ["."] for base in bases)
    return part.name == "xargs" and all(
        re.fullmatch(r"-0|-r|-t|-n|-L|-P|-I|-I?\{\}|-[nLP]?\d+", word) for word in takewhile(_is_option, part.words[1:])
    )


def _is_option(word: str) -> bool:
    return word.startswith("-") or word == "{}" or word.isdigit()


def known_parts(line: str) -> Iterator[tuple[SimpleCommand, list[str]]]:
    """The commands of a line with their folders, if all that it runs is known; none if not.

    `D=docs; ls $D` is `ls docs`: a variable that the line itself sets, once and to a plain word, is that word. In a
    loop over plain words it is each of them. `git -C DIR` runs in that folder.
    """
    parsed = parse_line(line)
    if parsed.undecidable or parsed.code or parsed.evaluates:
        return
    settled: dict[str, str] = {}
    turns = _turns(line, parsed.commands)
    commands: list[SimpleCommand] = []
    for at, part in enumerate(parsed.commands):
        if not part.words and not (part.loops or part.scope or part.redirects):
            plain = {name: value for name, value in part.assignments if _PLAIN.fullmatch(value) and name not in settled}
            settled = {name: value for name, value in settled.items() if name not in dict(part.assignments)} | plain
        if part.name in names("sets"):
            commands.append(part)
        elif part.loops:
            commands += _each_turn(part, turns)
        elif part.via and part.unknown:
            commands.append(_given_files(part, parsed.commands[:at]))
        else:
            commands.append(_filled_in(part, settled))
    for part, bases in placed(msgspec.structs.replace(parsed, commands=tuple(commands))):
        if part.words[:2] == ("git", "-C") and len(part.words) > 3 and not {1, 2} & {*part.unknown, *part.globs}:
            shift = {"unknown": tuple(at - 2 for at in part.unknown), "globs": tuple(at - 2 for at in part.globs)}
            there = [join(base, part.words[2]) for base in bases]
            yield msgspec.structs.replace(part, words=("git", *part.words[3:]), **shift), there
        else:
            yield part, bases


def _turns(line: str, commands: Sequence[SimpleCommand]) -> dict[str, list[str]]:
    """The words that each loop of a line goes through, by its variable, which nothing else in the line may set."""
    found: dict[str, list[str]] = {}
    for name, text in _LOOP.findall(line):
        words = text.split()
        if name in found or len(words) > _MOST_TURNS or not all(re.fullmatch(r"[\w./*@+,-]+", word) for word in words):
            return {}
        found[name] = words
    sets = any(part.name in names("sets") for part in commands)
    return {} if sets or found.keys() & {name for part in commands for name, _ in part.assignments} else found


def _each_turn(part: SimpleCommand, turns: Mapping[str, list[str]]) -> Iterator[SimpleCommand]:
    """A command in a loop, once with each of the loop's words."""
    named = [name for name in turns if any(re.search(rf"\$(?:{name}\b|{{{name}}})", word) for word in part.words)]
    if not named:
        yield part
        return
    for value in turns[named[0]]:
        globs = {*part.globs, *(at for at in part.unknown if "*" in value)}
        filled = _filled_in(part, {named[0]: value})
        yield from _each_turn(
            msgspec.structs.replace(filled, globs=tuple(sorted(globs))),
            {name: words for name, words in turns.items() if name != named[0]},
        )


def _given_files(part: SimpleCommand, before: Sequence[SimpleCommand]) -> SimpleCommand:
    """A command that `find -exec`, or `xargs` behind a listing of files, runs: on what lies below the folders listed.

    The folders stand for the files as a glob does, so that no rule takes them for a path that was named.
    """
    at = len(before) - 1  # the wrapper itself
    while part.via[-1] == "xargs" and at > 0 and before[at].after == "|" and before[at].name not in _LISTS:
        at -= 1
        if before[at].name not in (*_PASSES_ON, *_LISTS):
            return part
    lister = before[at]
    if lister.name not in _LISTS or lister.unknown or {"-printf", "-fprintf"} & set(lister.words):
        return part
    listed = find_files(list(without_commands(list(lister.words[1:])))) if lister.name == "find" else None
    folder = (listed or ["."])[0] if lister.name == "find" else "."
    if lister.name == "find" and (listed is None or len(listed) > 1):
        return part
    words = [folder if index in part.unknown and word in ("{}", "…") else word for index, word in enumerate(part.words)]
    left = tuple(index for index in part.unknown if words[index] == part.words[index])
    return msgspec.structs.replace(part, words=tuple(words), unknown=left, globs=tuple(sorted({*part.globs, *part.unknown})))


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
    if not words or 0 in part.globs or any(CODE_VARIABLES.fullmatch(name) for name, _ in part.assignments):
        return ()
    if part.name != words[0]:  # a program of the project
        return words[: 1 + _leading_names(words[1:2])] if kind_of(words[0]) is PATH else ()
    if part.name in INTERPRETERS:
        if words[1:2] == ("-m",):
            return words[:3] if len(words) > 2 and words[2] not in CODE_MODULES and words[2][:1] != "-" else ()
        return words[:2] if len(words) > 1 and kind_of(words[1]) is PATH and not {1} & {*part.globs, *part.unknown} else ()
    options = [word for word in words[1:] if word.startswith("-")]
    if part.name == "sed" and any(_IN_PLACE.fullmatch(word) for word in words[1:2]):
        return ("sed", "-i") if words[1] == "-i" and all(_SHOWING.fullmatch(word) for word in options[1:]) else ()
    if part.name in _SCRIPTS:
        return words[:1] if all(_SHOWING.fullmatch(word) for word in options) else ()
    if part.name == "curl":
        outputs = [after for word, after in pairwise(words) if word == "-o"]
        return words[:1] if all(map(_GETS.fullmatch, options)) and set(outputs) <= {os.devnull} else ()
    tags = tags_of(part.name)
    if part.name in _CHANGES_FILES:
        return () if part.name == "rm" and any(map(_RECURSIVE.fullmatch, options)) else words[:1]
    if tags <= {"text", "other-o", "plain"}:
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
            yield Position(value, option, at in part.globs, at in part.unknown)
            before = ""
        elif word.startswith("-") and len(word) > 1:
            yield Position(word, is_unknown=at in part.unknown)
            before = word
        else:
            valued = rule is not None and any(known.startswith(f"{before} ") for known in rule.options)
            is_flag = rule is not None and before in rule.options and not valued
            yield Position(word, "" if is_flag else before, at in part.globs, at in part.unknown)
            before = ""


def kind_of(word: str, run: str = "") -> str | None:
    """What a word is by its looks: a number, a path, a name, a script of `run`; None when it is none of these."""
    if run in _SCRIPTS and _SCRIPTS[run](word):
        return SCRIPT
    if _NUMBER.fullmatch(word):
        return NUMBER
    if _URL.fullmatch(word):
        return URL
    if _ID.fullmatch(word):
        return ID
    if _PATH.fullmatch(word) and not _ADDRESS_LIKE.match(word):
        return PATH
    return NAME if _NAME.fullmatch(word) else None


def origin_of(address: str) -> str:
    """The host and port of an address, as a rule names them: `http://localhost:3000/`."""
    match = _URL.fullmatch(address)
    return f"{match[1]}/" if match else ""


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
