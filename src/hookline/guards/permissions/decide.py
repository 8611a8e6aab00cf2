"""One tool call, everything that is known about it, one answer: allow, deny or ask."""

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from hookline.core.hooks.condition import ARGUMENTS, PathContext, Rule, RuleMatch, canonical, covers
from hookline.core.paths import absolute, inside
from hookline.core.shell import parse_line
from hookline.core.shell.targets import join, placed
from hookline.guards.permissions import file_access
from hookline.guards.permissions.file_access import Mode
from hookline.guards.permissions.readonly_commands import WorkingFolders, reads_only
from hookline.guards.permissions.rules import Rules

Behaviour = Literal["allow", "deny", "ask"]
Reach = Literal["system", "here"]
ReasonType = Literal["rule", "mode", "hook", "workingDir", "other"]


class Permission(msgspec.Struct, frozen=True):
    """What happens with a call, and why."""

    behaviour: Behaviour
    reason: str
    reason_type: ReasonType = "other"
    rule: Rule | None = None


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call and everything the decision depends on."""

    tool_name: str
    tool_input: Mapping[str, Any]
    rules: Rules
    mode: Mode
    hook_decision: str | None
    hook_reason: str
    read_only: bool
    edits: bool
    within_session: bool
    place: PathContext
    dirs: tuple[str, ...]
    touched: dict[str, RuleMatch] = msgspec.field(default_factory=dict)
    """What is known already of each rule: looking through folders takes time."""

    def argument(self, *kinds: str) -> Any:
        """The main argument of the tool, if it is of one of these kinds."""
        field = ARGUMENTS.get(canonical(self.tool_name))
        return self.tool_input.get(field.name) or "" if field and field.kind in kinds else None

    @property
    def command(self) -> str | None:
        line = self.argument("command")
        return None if line is None else str(line)

    @property
    def path(self) -> str | None:
        value = self.argument("path", "folder")
        return absolute(value, self.place.cwd, self.place.home) if isinstance(value, str) and value else None

    @property
    def folders(self) -> WorkingFolders:
        """Where the call may look around."""
        return WorkingFolders(self.place.cwd, self.dirs, self.place.home)

    def touches(self, rule: Rule) -> RuleMatch:
        """Whether it reads or writes a file that a path rule names by another way than naming it to that tool.

        Who may not read a file may not write it blindly either.
        """
        if self.edits and self.path is not None and rule.tool == "Read" and not rule.bare:
            return rule.catches("Read", {"file_path": self.path}, self.place)
        if rule.text not in self.touched:
            found = file_access.file_access_match(self.tool_name, self.tool_input, self.command, rule, self.place)
            self.touched[rule.text] = found
        return self.touched[rule.text]

    def match(self, rule: Rule) -> RuleMatch:
        """Whether a part of it falls under a deny or ask rule."""
        return max(rule.catches(self.tool_name, self.tool_input, self.place), self.touches(rule))


def decide(
    tool_name: str,
    tool_input: Mapping[str, Any],
    *,
    rules: Rules,
    mode: Mode | str = Mode.DEFAULT,
    hook_decision: str | None = None,
    hook_reason: str = "",
    read_only: bool = False,
    edits: bool = False,
    within_session: bool = False,
    cwd: str,
    dirs: Sequence[str] = (),
    home: str = "/",
    project_dir: str = "",
) -> Permission:
    """Whether a tool call may run: the first of these that has an answer gives it.

    A hook's deny; deny rules; plan mode; ask rules (and a deny rule that may apply, but reading cannot tell); a hook's
    ask; `rm` of the root or a home, which is asked about; bypass mode; a hook's allow; `rm` of `.`, `..` or `*` and
    sensitive places (`.git`, `.claude`, …), which are asked about; allow rules;
    acceptEdits; plain reading inside `cwd` and `dirs`, and what stays `within_session`; else ask, which dontAsk turns
    into a deny.
    """
    call = Call(
        tool_name=tool_name, tool_input=tool_input, rules=rules, mode=Mode(mode), hook_decision=hook_decision,
        hook_reason=hook_reason, read_only=read_only, edits=edits, within_session=within_session,
        place=PathContext(cwd, project_dir or cwd, home),
        dirs=tuple(absolute(folder, cwd, home) for folder in (cwd, *dirs)),
    )  # fmt: skip
    answers = (found for step in _STEPS if (found := step(call)) is not None)
    answer = next(answers, Permission("ask", f"no rule is about this call of `{tool_name}`"))
    if answer.behaviour == "ask" and call.mode is Mode.DONT_ASK:
        return Permission("deny", f"{answer.reason}; mode `dontAsk` denies instead of asking", "mode", answer.rule)
    return answer


def _hook_says(behaviour: Behaviour, otherwise: str) -> Callable[[Call], Permission | None]:
    """The step that takes a hook's decision, with its reason if it gave one."""
    return lambda call: (
        Permission(behaviour, call.hook_reason or otherwise, "hook") if call.hook_decision == behaviour else None
    )


def _deny_rule(call: Call) -> Permission | None:
    rule = next((rule for rule in call.rules.deny if call.match(rule) is RuleMatch.YES), None)
    return Permission("deny", f"rule `{rule}` denies it", "rule", rule) if rule else None


def _doubtful_deny_rule(call: Call) -> Permission | None:
    rule = next((rule for rule in call.rules.deny if call.match(rule) is RuleMatch.MAYBE), None)
    if rule is None:
        return None
    why = "; ".join(parse_line(call.command or "").undecidable) or "a part is known only when it runs"
    told = f"rule `{rule}` may deny it, which cannot be told: {why}"
    if call.touches(rule) is RuleMatch.MAYBE:
        told = f"rule `{rule}` may deny it: there are too many files to look through"
    return Permission("ask", told, "rule", rule)


def _ask_rule(call: Call) -> Permission | None:
    rule = next((rule for rule in call.rules.ask if call.match(rule) is not RuleMatch.NO), None)
    return Permission("ask", f"rule `{rule}` asks first", "rule", rule) if rule else None


def _plan(call: Call) -> Permission | None:
    """A single change may be permitted; a command or a subagent could do anything, and is refused."""
    if call.mode is not Mode.PLAN or call.read_only or _reads(call):
        return None
    unbounded = call.command is not None or call.within_session
    return Permission("deny" if unbounded else "ask", "in mode `plan` nothing is changed", "mode")


def _bypass(call: Call) -> Permission | None:
    return Permission("allow", "mode `bypassPermissions`", "mode") if call.mode is Mode.BYPASS else None


def _removes(reach: Reach) -> Callable[[Call], Permission | None]:
    """The step that asks about removals of this reach: no rule allows them in advance, and no hook those of systems."""
    told = {"system": "it removes `{}`", "here": "it removes `{}`, all of where it runs"}[reach]

    def step(call: Call) -> Permission | None:
        found = removal(call.command, cwd=call.place.cwd, home=call.place.home) if call.command else None
        return Permission("ask", told.format(found[1])) if found and found[0] == reach else None

    return step


def _protected(call: Call) -> Permission | None:
    """What is written there may run later, so no allow rule reaches it; Claude Code asks too."""
    touched: str | None = None
    if call.command is not None:
        touched = file_access.writes_protected(call.command, call.folders, file_access.RUNS_LATER)
    elif call.edits:
        touched = file_access.protected_file(call.path or "", call.folders, file_access.RUNS_LATER)
    return Permission("ask", f"`{touched}` is a sensitive place") if touched else None


def _allow_rule(call: Call) -> Permission | None:
    rule = covers(call.rules.allow, call.tool_name, call.tool_input, call.place)
    return Permission("allow", f"rule `{rule}` allows it", "rule", rule) if rule else None


def _accepted_edit(call: Call) -> Permission | None:
    if call.mode is not Mode.ACCEPT_EDITS:
        return None
    if call.command is not None:
        fine = file_access.edits_only(call.command, cwd=call.place.cwd, dirs=call.dirs, home=call.place.home)
    else:
        fine = call.edits and call.path is not None and file_access.edits_file(call.path, call.folders)
    return Permission("allow", "mode `acceptEdits`", "mode") if fine else None


def _reading(call: Call) -> Permission | None:
    if call.within_session:
        return Permission("allow", "it changes nothing outside the session")
    if _reads(call):
        return Permission("allow", "it only reads inside the working folders")
    if call.path is not None and not call.folders.hold(call.path):
        return Permission("ask", f"`{call.path}` is outside the working folders", "workingDir")
    return None


def _reads(call: Call) -> bool:
    if call.command is not None:
        return reads_only(call.command, cwd=call.place.cwd, dirs=call.dirs, home=call.place.home)
    places = file_access.reads_from(call.tool_name, call.tool_input, call.path)
    return call.read_only and all(map(call.folders.hold, places))


_STEPS: tuple[Callable[[Call], Permission | None], ...] = (
    _hook_says("deny", "denied by a hook"), _deny_rule, _plan, _doubtful_deny_rule, _ask_rule,
    _hook_says("ask", "a hook asks first"), _removes("system"), _bypass,
    _hook_says("allow", "allowed by a hook"), _removes("here"), _protected, _allow_rule, _accepted_edit, _reading,
)  # fmt: skip


_ALL = re.compile(r"[*.?\[\]!{},]*\*[*.?\[\]!{},]*")  # `*`, `.*`, `{*,.*}`: whatever is there
_UNKNOWN_FOLDER = re.compile(r"\$\{?\w+\}?/+(?:\*|\.)*")  # `$X/*`: of the root, should X be empty
_A_HOME = re.compile(r"~[\w.-]*")
_HIGHEST = 2


def removal(line: str, *, cwd: str, home: str) -> tuple[Reach, str] | None:
    """The worst that `rm` in a shell line removes: `system` (the root, a home, `/usr`) or `here` (`.`, `..`, `*`)."""
    found: tuple[Reach, str] | None = None
    for command, bases in placed(parse_line(line)):
        if not command.words or posixpath.basename(command.words[0]) != "rm":
            continue
        words = command.words[1:]
        at = words.index("--") if "--" in words else len(words)
        for word in (*(word for word in words[:at] if not word.startswith("-")), *words[at + 1 :]):
            places = [(word, absolute(base, cwd, home)) for base in bases]
            if not bases:  # `cd $X; rm *` is `rm $X/*`, or else what it is here
                places = [(word, cwd), (join("$X", posixpath.normpath(word)), cwd)]
            reaches = [_reach(seen, place, home) for seen, place in places]
            if "system" in reaches:
                return "system", word
            found = found or (("here", word) if "here" in reaches else None)
    return found


def _reach(word: str, cwd: str, home: str) -> Reach | None:
    folder, slash, last = word.rstrip("/").rpartition("/")
    base = word.rstrip("/") or word[:1]
    if _ALL.fullmatch(last):  # whatever is there
        base = (folder or "/") if slash else ""
    path = posixpath.normpath(absolute(base, cwd, home)) if base else cwd
    high = path.count("/") < _HIGHEST or path == posixpath.normpath(home)
    if high or _UNKNOWN_FOLDER.fullmatch(word) or _A_HOME.fullmatch(base):
        return "system"
    relative = all(part in ("", ".", "..") for part in base.split("/"))
    return "here" if relative or inside(cwd, path) else None
