"""One tool call, everything that is known about it, one answer: allow, deny or ask."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from hookline.core.hooks.condition import ARGUMENTS, PathContext, Rule, RuleMatch, canonical, covers
from hookline.core.paths import absolute, inside
from hookline.core.shell import parse_line
from hookline.guards.permissions.file_access import (
    RUNS_LATER,
    Mode,
    edits_file,
    edits_only,
    file_access_match,
    protected_file,
    reads_from,
    writes_protected,
)
from hookline.guards.permissions.readonly_commands import WorkingFolders, reads_only
from hookline.guards.permissions.rules import Rules

Behaviour = Literal["allow", "deny", "ask"]
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

    @property
    def command(self) -> str | None:
        """The shell line, if the call is one."""
        field = ARGUMENTS.get(canonical(self.tool_name))
        if field is None or field.kind != "command":
            return None
        return str(self.tool_input.get(field.name) or "")

    @property
    def folders(self) -> WorkingFolders:
        """Where the call may look around."""
        return WorkingFolders(self.place.cwd, self.dirs, self.place.home)

    @property
    def path(self) -> str | None:
        """The absolute path that the call names, if it names one."""
        field = ARGUMENTS.get(canonical(self.tool_name))
        value = self.tool_input.get(field.name) if field and field.kind in ("path", "folder") else None
        return absolute(value, self.place.cwd, self.place.home) if isinstance(value, str) and value else None


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
    for step in _STEPS:
        answer = step(call)
        if answer is not None:
            break
    else:
        answer = Permission("ask", f"no rule is about this call of `{tool_name}`")
    if answer.behaviour == "ask" and call.mode is Mode.DONT_ASK:
        return Permission("deny", f"{answer.reason}; mode `dontAsk` denies instead of asking", "mode", answer.rule)
    return answer


def _hook_says(behaviour: Behaviour, otherwise: str) -> Callable[[Call], Permission | None]:
    """The step that takes a hook's decision, with its reason if it gave one."""
    return lambda call: (
        Permission(behaviour, call.hook_reason or otherwise, "hook") if call.hook_decision == behaviour else None
    )


def _deny_rule(call: Call) -> Permission | None:
    for rule in call.rules.deny:
        if RuleMatch.YES in (rule.catches(call.tool_name, call.tool_input, call.place), _touches(call, rule)):
            return Permission("deny", f"rule `{rule}` denies it", "rule", rule)
    return None


def _touches(call: Call, rule: Rule) -> RuleMatch:
    """Whether a call reads or writes a file that a path rule names by another way than naming it to that tool.

    Who may not read a file may not write it blindly either.
    """
    if call.edits and call.path is not None and rule.tool == "Read" and not rule.bare:
        return rule.catches("Read", {"file_path": call.path}, call.place)
    if rule.text not in call.touched:
        call.touched[rule.text] = file_access_match(call.tool_name, call.tool_input, call.command, rule, call.place)
    return call.touched[rule.text]


def _doubtful_deny_rule(call: Call) -> Permission | None:
    for rule in call.rules.deny:
        if _touches(call, rule) is RuleMatch.MAYBE:
            many = f"rule `{rule}` may deny it: there are too many files to look through"
            return Permission("ask", many, "rule", rule)
        if rule.catches(call.tool_name, call.tool_input, call.place) is RuleMatch.MAYBE:
            why = "; ".join(parse_line(call.command or "").undecidable) or "a part is known only when it runs"
            return Permission("ask", f"rule `{rule}` may deny it, which cannot be told: {why}", "rule", rule)
    return None


def _ask_rule(call: Call) -> Permission | None:
    for rule in call.rules.ask:
        if max(rule.catches(call.tool_name, call.tool_input, call.place), _touches(call, rule)) is not RuleMatch.NO:
            return Permission("ask", f"rule `{rule}` asks first", "rule", rule)
    return None


def _plan(call: Call) -> Permission | None:
    """A single change may be permitted; a command or a subagent could do anything, and is refused."""
    if call.mode is not Mode.PLAN or call.read_only or _reads(call):
        return None
    unbounded = call.command is not None or call.within_session
    return Permission("deny" if unbounded else "ask", "in mode `plan` nothing is changed", "mode")


def _bypass(call: Call) -> Permission | None:
    return Permission("allow", "mode `bypassPermissions`", "mode") if call.mode is Mode.BYPASS else None


def _removes_system(call: Call) -> Permission | None:
    """No mode, rule or hook allows this in advance."""
    found = removal(call.command, cwd=call.place.cwd, home=call.place.home) if call.command else None
    return Permission("ask", f"it removes `{found[1]}`") if found and found[0] == "system" else None


def _removes_here(call: Call) -> Permission | None:
    """No rule allows this in advance."""
    found = removal(call.command, cwd=call.place.cwd, home=call.place.home) if call.command else None
    return Permission("ask", f"it removes `{found[1]}`, all of where it runs") if found else None


def _protected(call: Call) -> Permission | None:
    """What is written there may run later, so no allow rule reaches it; Claude Code asks too."""
    if call.command is not None:
        touched = writes_protected(call.command, call.folders, RUNS_LATER)
    else:
        touched = protected_file(call.path or "", call.folders, RUNS_LATER) if call.edits else None
    return Permission("ask", f"`{touched}` is a sensitive place") if touched else None


def _allow_rule(call: Call) -> Permission | None:
    rule = covers(call.rules.allow, call.tool_name, call.tool_input, call.place)
    return Permission("allow", f"rule `{rule}` allows it", "rule", rule) if rule else None


def _accepted_edit(call: Call) -> Permission | None:
    if call.mode is not Mode.ACCEPT_EDITS:
        return None
    if call.command is not None:
        fine = edits_only(call.command, cwd=call.place.cwd, dirs=call.dirs, home=call.place.home)
    else:
        fine = call.edits and call.path is not None and edits_file(call.path, call.folders)
    return Permission("allow", "mode `acceptEdits`", "mode") if fine else None


def _reading(call: Call) -> Permission | None:
    if call.within_session:
        return Permission("allow", "it changes nothing outside the session", "other")
    if _reads(call):
        return Permission("allow", "it only reads inside the working folders", "other")
    path = call.path
    if path is not None and not call.folders.hold(path):
        return Permission("ask", f"`{path}` is outside the working folders", "workingDir")
    return None


def _reads(call: Call) -> bool:
    if call.command is not None:
        return reads_only(call.command, cwd=call.place.cwd, dirs=call.dirs, home=call.place.home)
    return call.read_only and all(map(call.folders.hold, reads_from(call.tool_name, call.tool_input, call.path)))


_STEPS: tuple[Callable[[Call], Permission | None], ...] = (
    _hook_says("deny", "denied by a hook"), _deny_rule, _plan, _doubtful_deny_rule, _ask_rule,
    _hook_says("ask", "a hook asks first"), _removes_system, _bypass,
    _hook_says("allow", "allowed by a hook"), _removes_here, _protected, _allow_rule, _accepted_edit, _reading,
)  # fmt: skip


# -- removals that no rule allows in advance: of the root, a home, a system's folder, or where one stands -------------

Reach = Literal["system", "here"]

_ALL = re.compile(r"[*.?\[\]!{},]*\*[*.?\[\]!{},]*")  # `*`, `.*`, `{*,.*}`: whatever is there
_UNKNOWN_FOLDER = re.compile(r"\$\{?\w+\}?/+(?:\*|\.)*")  # `$X/*`: of the root, should X be empty
_SOMEBODYS_HOME = re.compile(r"~[\w.-]*")
_HIGHEST = 2


def removal(line: str, *, cwd: str, home: str) -> tuple[Reach, str] | None:
    """The worst that `rm` in a shell line removes: `system` (the root, a home, `/usr`) or `here` (`.`, `..`, `*`)."""
    found: tuple[Reach, str] | None = None
    for command in parse_line(line).commands:
        if not command.words or posixpath.basename(command.words[0]) != "rm":
            continue
        words = command.words[1:]
        at = words.index("--") if "--" in words else len(words)
        for word in (*(word for word in words[:at] if not word.startswith("-")), *words[at + 1 :]):
            reach = _reach(word, cwd, home)
            if reach == "system":
                return reach, word
            found = found or (("here", word) if reach else None)
    return found


def _reach(word: str, cwd: str, home: str) -> Reach | None:
    if _UNKNOWN_FOLDER.fullmatch(word):
        return "system"
    base = _without_all(word)
    if _SOMEBODYS_HOME.fullmatch(base):
        return "system"
    path = posixpath.normpath(absolute(base, cwd, home)) if base else cwd
    parts = [part for part in path.split("/") if part]
    if len(parts) < _HIGHEST or path == posixpath.normpath(home):
        return "system"
    relative = all(part in ("", ".", "..") for part in base.split("/"))
    return "here" if relative or inside(cwd, path) else None


def _without_all(word: str) -> str:
    """A word without its last part if that stands for whatever is there, and without slashes at its end."""
    folder, slash, last = word.rstrip("/").rpartition("/")
    if _ALL.fullmatch(last):
        return (folder or "/") if slash else ""
    return word.rstrip("/") or ("/" if word.startswith("/") else "")
