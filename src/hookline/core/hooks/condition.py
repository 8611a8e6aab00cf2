"""Rules such as `Bash(git *)` or `Write(src/**)`: what they say, and whether a tool call falls under them.

One matcher, three readings. A hook's `if` runs the hook unless the rule plainly does not apply (`Rule.matches`). A deny
or ask rule catches a call when any part of it falls under the rule, and says so when that cannot be told
(`Rule.catches`). An allow rule covers a call only when every part of it is known and falls under a rule (`covers`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Any

import msgspec

from hookline.core.globs import States, name_expression, path_matches, text_expression, text_states, tokens
from hookline.core.paths import absolute
from hookline.core.shell import ShellLine, SimpleCommand, parse_line
from hookline.errors import ConditionError, did_you_mean


class ToolArgument(msgspec.Struct, frozen=True):
    """Which argument of a tool a pattern is held against, and how."""

    name: str
    kind: str


ALIASES = {"Task": "Agent"}  # older names of tools; a rule may use either
OTHER_NAMES = ALIASES | {name: older for older, name in ALIASES.items()} | {"Monitor": "Bash", "Workflow": "Agent"}
"""The other name of a tool that has two. `Monitor` runs a shell line, `Workflow` starts agents: hooks on `Bash` and
`Agent` are asked about them."""

ARGUMENTS = {
    tool: ToolArgument(*row.split())
    for row, tools in {
        "command command": "Bash Monitor",
        "file_path path": "Read Write Edit MultiEdit",
        "notebook_path path": "NotebookEdit NotebookRead",
        "path folder": "Glob Grep LS",
        "url domain": "WebFetch",
        "subagent_type name": "Agent",
        "skill name": "Skill",
    }.items()
    for tool in tools.split()
}  # the tools whose rules may have a pattern. A `name` counts in permission rules only, never in an `if`.

CLAUDE_TOOLS = (
    "Agent", "AskUserQuestion", "Bash", "BashOutput", "CronCreate", "CronDelete", "CronList", "DeferredToolPlaceholder",
    "Edit", "EnterPlanMode", "EnterWorktree", "ExitPlanMode", "ExitWorktree", "Glob", "Grep", "KillShell", "LS", "LSP",
    "ListAgents", "Monitor", "MultiEdit", "NotebookEdit", "NotebookRead", "Read", "ReportFindings", "ScheduleWakeup",
    "SendMessage", "Skill", "SlashCommand", "StructuredOutput", "Task", "TaskCreate", "TaskGet", "TaskList",
    "TaskOutput", "TaskStop", "TaskUpdate", "TodoWrite", "ToolSearch", "WebFetch", "WebSearch", "Workflow", "Write",
)  # fmt: skip
"""Claude Code's own tools; MCP servers bring theirs."""

EDITING = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
READING = frozenset({"Read", "Grep", "Glob", "LS", "NotebookRead"})
GROUPS = {"Edit": EDITING, "Read": READING}
"""In permission rules a path pattern for `Edit` (or `Read`) speaks for every tool that edits (or reads) files."""


def canonical(tool_name: str) -> str:
    """A tool's own name for any name it may be called by."""
    return ALIASES.get(tool_name, tool_name)


_TOOL = re.compile(r"mcp__[\w.*-]+|[A-Za-z_][\w.-]*")
_STAR = "*"
_UNSEEN = "\x00"


class PathContext(msgspec.Struct, frozen=True):
    """Where paths in rules and calls are read from."""

    cwd: str = "/"
    project_dir: str = "/"
    home: str = "/"


class RuleMatch(IntEnum):
    """Whether a call falls under a rule."""

    NO = 0
    MAYBE = 1
    YES = 2


class Rule(msgspec.Struct, frozen=True):
    """A tool, and perhaps a pattern over its main argument; with a `problem` it matches nothing."""

    text: str
    tool: str = ""
    pattern: str | None = None
    problem: str = ""

    def __str__(self) -> str:
        return self.text

    @property
    def bare(self) -> bool:
        return self.pattern is None or self.pattern == _STAR

    def matches(self, tool_name: str, tool_input: Mapping[str, Any], place: PathContext) -> bool:
        """As a hook's `if`: whether the hook should run. When in doubt it should."""
        if self.problem or self.tool not in (canonical(tool_name), OTHER_NAMES.get(tool_name)):
            return False
        if self.pattern is None or self.pattern == _STAR:
            return True
        field = ARGUMENTS.get(self.tool)
        if field is None or field.kind == "name":
            return False
        value = tool_input.get(field.name)
        if field.kind == "command":
            command = value if isinstance(value, str) else ""
            return parse_line(command).substitutes or _command_caught(self.pattern, command) is not RuleMatch.NO
        if self.holds(field, value, place, wide=True):
            return True
        if field.kind != "path" or not isinstance(value, str):
            return False
        # as it is written, wherever that lies: `Read(*.txt)` matches `/x/a.txt`
        relative = not self.pattern.startswith(("/", "~"))
        return value == self.pattern or (relative and _glob(self.pattern).fullmatch(value) is not None)

    def catches(self, tool_name: str, tool_input: Mapping[str, Any], place: PathContext) -> RuleMatch:
        """As a deny or ask rule: whether some part of the call falls under it."""
        if not self.names(tool_name):
            return RuleMatch.NO
        if self.pattern is None or self.pattern == _STAR:
            return RuleMatch.YES
        field = ARGUMENTS.get(canonical(tool_name))
        if field is None:
            return RuleMatch.NO
        value = tool_input.get(field.name)
        if field.kind == "command":
            return _command_caught(self.pattern, value if isinstance(value, str) else "")
        return RuleMatch.YES if self.holds(field, value, place, wide=True) else RuleMatch.NO

    def names(self, tool_name: str) -> bool:
        """Whether a permission rule is about this tool at all: by name, alias, MCP server or group."""
        name = canonical(tool_name)
        if self.problem:
            return False
        if name == self.tool:
            return True
        if self.tool.startswith("mcp__"):
            server = "*" in self.tool or self.tool.count("__") == 1  # it speaks for every tool of a server
            wide = self.tool if "*" in self.tool else f"{self.tool}__*"
            return self.bare and server and name_expression(wide).fullmatch(name) is not None
        return not self.bare and name in GROUPS.get(self.tool, ())

    def holds(self, field: ToolArgument, value: object, place: PathContext, *, wide: bool) -> bool:
        """Whether an argument falls under the pattern; `wide` reads it from the project too, whatever its capitals."""
        pattern = self.pattern or ""
        if field.kind == "folder" and not isinstance(value, str):
            value = place.cwd
        if not isinstance(value, str):
            return False
        if field.kind == "domain":
            return _domain_matches(pattern, value)
        if field.kind == "name":
            return _glob(pattern).fullmatch(value) is not None
        bases = (place.cwd, place.project_dir) if wide else (place.cwd,)
        path = absolute(value, place.cwd, place.home)
        return path_matches(pattern, path, bases=bases, project_dir=place.project_dir, home=place.home, any_case=wide)


class Condition(msgspec.Struct, frozen=True):
    """What an `if` says: rules of which one has to match."""

    rules: tuple[Rule, ...]

    def __str__(self) -> str:
        return " | ".join(rule.text for rule in self.rules)

    def matches(self, tool_name: str, tool_input: Mapping[str, Any], place: PathContext) -> bool:
        return any(rule.matches(tool_name, tool_input, place) for rule in self.rules)


def parse_rule(text: str) -> Rule:
    """Read `Tool` or `Tool(pattern)`; a text that is neither raises ConditionError with its position."""
    stripped = text.strip()
    name, opening, rest = stripped.partition("(")
    if not name:
        raise ConditionError(text, "the name of the tool is missing", 0)
    found = _TOOL.match(name)
    if not found or found.end() < len(name):
        at = found.end() if found else 0
        raise ConditionError(text, f"`{name[at]}` cannot be part of a tool's name", text.index(name) + at)
    if opening and not rest.endswith(")"):
        raise ConditionError(text, "`(` is never closed", text.index("("))
    return Rule(text, canonical(name), rest[:-1].strip() or None)


def parse_condition(*texts: str) -> Condition:
    """Read one rule or several, given one by one or joined by `|`; a `|` inside parentheses is the pattern's own."""
    return Condition(tuple(parse_rule(part) for text in texts for part in alternatives(text, "|")))


def alternatives(text: str, separators: str) -> list[str]:
    """The parts of a text between separators that stand outside parentheses."""
    parts, depth = [""], 0
    for char in text:
        depth += (char == "(") - (char == ")" and depth > 0)
        if char in separators and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def read_rule(text: str) -> Rule:
    """Like `parse_rule`, but a text that cannot be read becomes a rule that matches nothing and says why."""
    try:
        return parse_rule(text)
    except ConditionError as error:
        return Rule(text, problem=str(error))


def advice(rule: Rule, tools: Sequence[str] = ()) -> str:
    """What `hookline check` should say of a rule in an `if`; empty when it can match."""
    known = {*ARGUMENTS, *ALIASES, *tools}
    if rule.problem:
        return rule.problem
    if rule.tool.startswith("mcp__"):
        if "*" in rule.tool or rule.tool.count("__") < 2:
            return f"`{rule.text}` never matches; write the tool's whole name, such as `mcp__server__tool`"
        return "" if rule.bare else f"`{rule.text}` never matches; an MCP tool takes no pattern but `*`"
    if rule.tool not in known and did_you_mean(rule.tool, known):
        return f"no tool is called `{rule.tool}`{did_you_mean(rule.tool, known)}"
    field = ARGUMENTS.get(rule.tool)
    if not rule.bare and (field is None or field.kind == "name"):
        return f"`{rule.text}` never matches; `{rule.tool}` takes no pattern here"
    return ""


def covers(rules: Sequence[Rule], tool_name: str, tool_input: Mapping[str, Any], place: PathContext) -> Rule | None:
    """As allow rules: the rule that covers the call, or None. Together they must cover every part of it."""
    speaking = [rule for rule in rules if rule.names(tool_name)]
    whole = next((rule for rule in speaking if rule.bare), None)
    field = ARGUMENTS.get(canonical(tool_name))
    if whole is not None or field is None or not speaking:
        return whole
    value = tool_input.get(field.name)
    if field.kind == "command":
        return _line_covered(speaking, value if isinstance(value, str) else "")
    return next((rule for rule in speaking if rule.holds(field, value, place, wide=False)), None)


def _line_covered(rules: Sequence[Rule], command: str) -> Rule | None:
    for rule in rules:
        if rule.pattern == command.strip() and _STAR not in rule.pattern:
            return rule
    line = parse_line(command)
    if line.undecidable or line.evaluates or not line.commands or _enters_repository(line):
        return None
    found = [_covering(rules, part) for part in line.commands if not harmless(part)]
    return found[0] if found and all(found) else None


def _enters_repository(line: ShellLine) -> bool:
    """Whether git runs in a folder that the line enters: a repository there may have git run anything it likes."""
    names = {part.name for part in line.commands}
    if "git" not in names:
        return False
    entered = (part.words[1:] for part in line.commands if part.name in ("cd", "pushd", "popd", "chdir"))
    return any(words not in ((".",), ("./",)) for words in entered)


def harmless(part: SimpleCommand) -> bool:
    """A part that needs no rule of its own: a mere assignment, or a wrapper whose inner command is judged anyway."""
    from hookline.core.shell.programs.table import lists, names

    if any(redirect.writes for redirect in part.redirects):
        return False
    writing = lists("writes").get(part.name, ())
    if writing and any(word.startswith(writing) for word in part.words[1:]):
        return False  # `time -o FILE` writes, whatever it runs
    return not part.words or (part.wraps and part.name in names("transparent") and part.words[0] == part.name)


def _covering(rules: Sequence[Rule], part: SimpleCommand) -> Rule | None:
    if any(redirect.writes for redirect in part.redirects):
        return None
    unknown = frozenset(part.unknown)
    text = " ".join(_UNSEEN if index in unknown else word for index, word in enumerate(part.words))
    return next((rule for rule in rules if _glob(rule.pattern or "").fullmatch(text)), None)


def _command_caught(pattern: str, command: str) -> RuleMatch:
    if command.strip() == pattern:
        return RuleMatch.YES
    line = parse_line(command)
    caught = max((part_caught(pattern, part) for part in line.commands), default=RuleMatch.NO)
    return max(caught, RuleMatch.MAYBE) if line.undecidable else caught


def part_caught(pattern: str, part: SimpleCommand) -> RuleMatch:
    """Whether one simple command falls under a command pattern."""
    if not part.words:
        return RuleMatch.NO
    expression = _glob(pattern)
    named = (part.name, *part.words[1:])
    if any(expression.fullmatch(text) for text in (part.text, " ".join(named), part.raw)):
        return RuleMatch.YES
    return RuleMatch.MAYBE if part.unknown and _could_match(pattern, named, part.unknown) else RuleMatch.NO


def _could_match(pattern: str, words: Sequence[str], unknown: Collection[int]) -> bool:
    """Whether some values of the unknown words would make the pattern match."""
    machine = _states(pattern)
    states = machine.first
    unknown = frozenset(unknown)
    for index, word in enumerate(words):
        if index in unknown:
            states = machine.read_unknown(states | (machine.read(states, " ") if index else 0))
        else:
            states = machine.read(states, f" {word}" if index else word)
    return bool(states & machine.end)


@lru_cache(maxsize=1024)
def _states(pattern: str) -> States:
    """The pattern letter by letter; a closing ` *` may be absent altogether."""
    pattern = re.sub(r":\*$", " *", pattern)
    return text_states(tokens(pattern[:-2] + _STAR if pattern.endswith(" *") else pattern))


@lru_cache(maxsize=1024)
def _glob(pattern: str) -> re.Pattern[str]:
    """`*` is any text; a closing ` *` or `:*` also takes the bare prefix."""
    pattern = re.sub(r":\*$", " *", pattern)
    if pattern.endswith(" *") and not pattern.endswith("\\ *"):
        return text_expression(tokens(pattern[:-2]), r"(?:\s.*)?")
    return text_expression(tokens(pattern))


def domain_of(url: str) -> str:
    """The host of an address as a `domain:` pattern spells it; nothing if it has none."""
    from urllib.parse import urlsplit

    try:
        host = urlsplit(url if "//" in url else "//" + url).hostname or ""
    except ValueError:
        return ""
    return host.rstrip(".").lower()


def _domain_matches(pattern: str, url: str) -> bool:
    domain = pattern.removeprefix("domain:").strip().lower()
    host = domain_of(url)
    if not pattern.startswith("domain:") or not host:
        return False
    if domain.startswith("*."):
        return host.endswith(domain[1:])
    return host == domain
