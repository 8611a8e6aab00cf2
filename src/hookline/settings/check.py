"""Looking harder than loading does: hooks that are well-formed and still cannot do what their author wants."""

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import msgspec

from hookline.core.hooks.condition import CLAUDE_TOOLS, advice
from hookline.core.hooks.hook import Command, Hook
from hookline.core.shell import ShellLine, SimpleCommand, parse_line
from hookline.core.shell.programs.languages import language_of
from hookline.core.shell.programs.table import SHELL_VALUED, SHELLS
from hookline.core.shell.targets import placed
from hookline.errors import did_you_mean
from hookline.events import CATALOG, spec_of
from hookline.settings.files import Problem, expanded, read_text
from hookline.settings.load import LoadedSettings
from hookline.settings.parse import ACTIONS, default_timeout, parse_hooks
from hookline.settings.trust.code_imports import WORDS
from hookline.settings.trust.scripts import MARKS, OTHER_VALUED, PYTHON_VALUED

_LONG = 60.0
_MILLISECONDS = 1000.0  # from here on a number of seconds looks like milliseconds
_KINDS = {action: kind for kind, action in ACTIONS.items()}


def check(loaded: LoadedSettings) -> list[Problem]:
    """Every problem of the files and of the hooks in them, each said once, in the order of the files' lines."""
    # as the files have them: duplicates, too, since each may have a problem of its own
    written = [hook for file in loaded.files if "hooks" in file.raw
               for hook in parse_hooks(file.raw["hooks"], file.source, loaded.switches.http).hooks]  # fmt: skip
    found = dict.fromkeys([*loaded.problems, *check_hooks(written, str(loaded.places.project_dir))])
    wanted: dict[str, set[str]] = {}
    for label, key in map(_where, found):
        wanted.setdefault(label, set()).add(key)
    sources = [file.source for file in loaded.files if file.source.path and file.markdown is None]
    places = {one.label: positions(read_text(one.path, "")[0] or "", wanted.get(one.label, ())) for one in sources}
    order = {file.source.label: number for number, file in enumerate(loaded.files)}
    said = [_placed(problem, places) for problem in found]
    return sorted(said, key=lambda one: (order.get(_where(one)[0], len(order)), one.line, one.column))


def _where(problem: Problem) -> tuple[str, str]:
    label, _, path = problem.where.partition(": ")
    return label, path.partition(" ")[0]


def _placed(problem: Problem, places: Mapping[str, Mapping[str, tuple[int, int]]]) -> Problem:
    """The problem with its line and column, if its file is JSON and has its key."""
    label, key = _where(problem)
    told = re.match(r"is not JSON: line (\d+) column (\d+)", problem.message)
    found = (int(told[1]), int(told[2])) if told else places.get(label, {}).get(key)
    return problem if found is None else msgspec.structs.replace(problem, line=found[0], column=found[1])


def check_hooks(hooks: Iterable[Hook], project: str) -> list[Problem]:
    """What is wrong with hooks, wherever they come from."""
    found: dict[Problem, None] = {}
    for hook in hooks:
        commands = _CommandCheck(hook.action, project).problems() if isinstance(hook.action, Command) else ()
        found |= dict.fromkeys(Problem(hook.source, said, "warning") for said in (*_matcher(hook), *_condition(hook)))
        found |= dict.fromkeys(Problem(hook.source, f"command: {message}") for message in commands)
        found |= dict.fromkeys(Problem(hook.source, f"timeout: {message}", "warning") for message in _timeout(hook))
        found |= dict.fromkeys(_confinement(hook))
    return list(found)


def _matcher(hook: Hook) -> Iterator[str]:
    said = f"matcher `{hook.matcher.pattern}`"
    for name in () if hook.matcher.matches_all else (cls.event_name for cls in hook.events):
        if CATALOG[name].subject is None:
            yield f"{said} is ignored: {name} has nothing to match; leave it out"
        elif (subjects := spec_of(name).subjects) and not any(hook.matcher.matches(subject) for subject in subjects):
            known = ", ".join(f"`{subject}`" for subject in subjects)
            yield f"{said} can never match: {name} knows {known}"
        elif CATALOG[name].subject == "tool_name":
            yield from (f"{said}{problem}" for problem in _tool_names(hook, hook.matcher.pattern))


def _tool_names(hook: Hook, pattern: str) -> Iterator[str]:
    rule = re.fullmatch(r"(\w+)\(.*\)", pattern)
    if rule and rule[1] in CLAUDE_TOOLS and not any(map(hook.matcher.matches, CLAUDE_TOOLS)):
        yield f' never matches, as it is a rule; write `{rule[1]}`, and `"if": "{pattern}"` in the hook'
    if not all(char.isalnum() or char in "_-,| " for char in pattern):
        return
    for name in (part.strip() for part in pattern.replace(",", "|").split("|")):
        if re.fullmatch(r"mcp__(?:(?!__).)+", name):
            yield f": `{name}` is a server's name, not a tool's, and never matches; write `{name}__.*`"
        known = not name or name in CLAUDE_TOOLS or name.startswith("mcp__")
        if near := "" if known else did_you_mean(name, CLAUDE_TOOLS):
            yield f": no tool is called `{name}`{near}"
    ported = getattr(hook.action, "dialect", "claude") != "claude"  # written for a matcher that is searched (seeds/002)
    if ported and hook.matcher.matches("Edit") and not hook.matcher.matches("MultiEdit"):
        exact = " is exact here and does not match `MultiEdit`"
        yield f"{exact}; write `{pattern}|MultiEdit`, or a regular expression"


def _condition(hook: Hook) -> Iterator[str]:
    if hook.condition is None:
        return
    tools = [rule.tool for rule in hook.condition.rules]
    about_tools = any(cls.subject_field == "tool_name" for cls in hook.events)
    if said := next(filter(None, (advice(rule, CLAUDE_TOOLS) for rule in hook.condition.rules)), ""):
        yield f"if: {said}"
    elif about_tools and not any(map(hook.matcher.matches, tools)):
        left_out = ", ".join(f"`{tool}`" for tool in tools)
        yield f"if: `{hook.condition}` can never hold, since matcher `{hook.matcher.pattern}` leaves {left_out} out"


def _confinement(hook: Hook) -> Iterator[Problem]:
    """A guard that asks for confinement where there is none still judges, by the text alone."""
    if not asks_to_confine(hook):
        return
    from hookline.sandbox.main import missing, no_notifications
    from hookline.sandbox.policy import Policy

    if reason := missing(Policy()) or no_notifications():
        said = f"lines cannot be confined here: {reason}; they are judged by their text alone, and asked about in doubt"
        yield Problem(f"{hook.source} ({hook.name})" if hook.confines else hook.source, said, "warning")


def asks_to_confine(hook: Hook) -> bool:
    """Whether a hook is a guard that has shell lines confined: one of ours, or `hookline guard … --confine auto`."""
    if hook.confines or not isinstance(hook.action, Command):
        return hook.confines
    line = " ".join([hook.action.command, *(hook.action.args or ())])
    spoken = [part.words for part in parse_line(line).commands]
    return any("guard" in one and ("--confine=auto" in one or ("--confine", "auto") in pairwise(one)) for one in spoken)


def _timeout(hook: Hook) -> Iterator[str]:
    spec, kind = CATALOG[hook.events[0].event_name], _KINDS.get(type(hook.action))
    if kind is None or hook.timeout is None or hook.timeout == default_timeout(kind, spec.name):
        return
    if hook.timeout >= _MILLISECONDS:
        meant = f"did you mean {hook.timeout / 1000:g} seconds? write `{hook.timeout / 1000:g}`"
        yield f"{hook.timeout:g} s is over a quarter of an hour; {meant}"
    elif spec.gate and hook.timeout > _LONG:
        yield f"{hook.timeout:g} s on a gate lets the agent wait for over a minute; write `{_LONG:g}` or less"


_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+)')
_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


def positions(text: str, paths: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Line and column, from 1, of the key or item that each path (`hooks.Stop[0]`) leads to, or the last there is."""
    keys = {path: tuple(int(one[1]) if one[1] else one[2] for one in _STEP.finditer(path)) for path in paths}
    wanted = {steps[:end] for steps in keys.values() for end in range(1, len(steps) + 1)}
    longest = max(map(len, wanted), default=0)
    starts: dict[tuple[str | int | None, ...], int] = {}
    way: list[str | int | None] = []  # the key or index in every object and list around; None before an object's key
    for token in _TOKEN.finditer(text) if wanted else ():
        word = token[1]
        if word in "}]":
            del way[-1:]
        elif word == "," and way:
            way[-1] = way[-1] + 1 if isinstance(way[-1], int) else None
        elif word != ":":
            if is_key := bool(way) and way[-1] is None:
                way[-1] = word[1:-1]
            if 0 < len(way) <= longest and (is_key or isinstance(way[-1], int)) and tuple(way) in wanted:
                starts.setdefault(tuple(way), token.start(1))
            if not is_key:
                way += [None] if word == "{" else [0] if word == "[" else []
    found = {}
    for path, steps in keys.items():
        at = next((starts[steps[:end]] for end in range(len(steps), 0, -1) if steps[:end] in starts), None)
        if at is not None:
            found[path] = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return found


_LOOKS = {"command": ("-v", "-V"), "which": (), "hash": (), "type": ()}  # what asks for a program, with which options
_TESTS = re.compile(r"""(?:\[\[?|\btest)\s+(?:!\s+)?-[a-zA-Z]\s+["']?([^\s"'\];]+)""")
_FUNCTIONS = re.compile(r"(?:^|[\s;&|{(])(?:function\s+([\w-]+)|([\w-]+)\s*\(\s*\))")
_NO_SCRIPT = re.compile(r"-(?:[a-zA-Z]*[cm]|e|-eval|p|-print)")
_MARKS = {**MARKS, "HOME": "/:hookline-home:"}  # each stands for a folder, whose name may have blanks


class _CommandCheck:
    """One command, read for what it starts: what is wrong with each program or script that it needs."""

    def __init__(self, action: Command, project: str) -> None:
        self._project = project
        self._values = dict(zip(_MARKS.values(), (project, action.plugin_root or "", str(Path.home())), strict=True))
        text = "" if action.args is not None else self._marked(action.command)
        self._line = parse_line(text)
        if action.args is not None:
            words = tuple(self._filled(self._marked(word)) for word in (action.command, *action.args))
            self._line = ShellLine((SimpleCommand(name=words[0].rsplit("/", 1)[-1], words=words),))
        self._tested = {self._filled(self._marked(found[1])).removeprefix("./") for found in _TESTS.finditer(text)}
        self._known = {name for found in _FUNCTIONS.finditer(text) for name in found.groups() if name}
        self._own_path = "PATH" in action.env or re.search(r"\bPATH=", text) is not None
        for command in self._line.commands:
            if command.name in _LOOKS and set(_LOOKS[command.name]) <= {*command.words, *_LOOKS[command.name][1:]}:
                self._known.update(command.words[1:])

    def _marked(self, text: str) -> str:
        for name, mark in _MARKS.items():
            text = re.sub(rf"\$\{{{name}(?::[-=?][^}}]*)?\}}|\${name}\b", mark, text)
        return text

    def _filled(self, text: str) -> str:
        for mark, value in self._values.items():
            text = text.replace(mark, value)
        return text

    def problems(self) -> Iterator[str]:
        for command, bases in placed(self._line):
            if not command.words or 0 in command.unknown:
                continue
            folders = [Path(self._project, self._filled(base)) for base in bases]
            program = self._filled(command.words[0])
            script = self._script(command) or ""
            named = "/" in script or Path(script).suffix in WORDS["code"]  # not a task, as `bun run build`
            if named and not self._is_there(script, folders):
                yield f"`{script}` does not exist"
            if command.via and "/" not in program:  # `uv run check.py`, `npx tsx`: what it brings itself is its matter
                if Path(program).suffix in WORDS["code"] and not self._is_there(program, folders):
                    yield f"`{program}` does not exist"
            elif problem := self._unrunnable(program, folders):
                yield f"`{program}` {problem}"

    def _script(self, command: SimpleCommand) -> str | None:
        language = language_of(command.name)
        if command.name not in SHELLS and not language and command.name not in (".", "source"):
            return None
        valued = SHELL_VALUED if command.name in SHELLS else PYTHON_VALUED if language == "python" else OTHER_VALUED
        valued = valued - {"-A"} if language == "deno" else valued
        at, words = 1, command.words
        while at < len(words) and (words[at][:1] in "-+" or words[at] == "run"):
            if _NO_SCRIPT.fullmatch(words[at]) or words[at] == "-":
                return None
            at += 2 if words[at] in valued else 1
        if at >= len(words) or at in command.unknown or at in command.globs:
            return None
        return self._filled(words[at])

    def _is_there(self, name: str, folders: list[Path]) -> bool:
        """Whether it may be there: also where the folder is not known, or where the line looks first."""
        path = Path(expanded(name))
        return (
            name.removeprefix("./") in self._tested
            or (not folders and not path.is_absolute())
            or any(os.path.exists(folder / path) for folder in folders or [Path(self._project)])  # noqa: PTH110
        )

    def _unrunnable(self, program: str, folders: list[Path]) -> str:
        if "/" not in program:
            known = program in WORDS["builtins"] or program in self._known or self._own_path
            return "" if known or shutil.which(program) else "was not found on PATH; install it or give its path"
        if not self._is_there(program, folders):
            return "does not exist"
        found = [folder / expanded(program) for folder in folders]
        path = next((one for one in found if os.path.exists(one)), None)  # noqa: PTH110 - no name is too long for it
        if path is None:
            return ""
        if path.is_dir():
            return "is a folder; name a program"
        return "" if os.access(path, os.X_OK) else f"is not executable; run `chmod +x {program}`"
