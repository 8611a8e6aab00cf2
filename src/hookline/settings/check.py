"""Looking harder than loading does: hooks that are well-formed and still cannot do what their author wants."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from hookline.errors import did_you_mean
from hookline.events import CATALOG, spec_of
from hookline.hooks.actions import AgentCheck, Cedar, Command, Http, McpTool, Prompt, Rego
from hookline.hooks.condition import advice
from hookline.hooks.hook import Hook
from hookline.placeholders import EITHER, fill
from hookline.settings.fields import default_timeout
from hookline.settings.load import Loaded
from hookline.settings.parse import parse_hooks
from hookline.settings.problems import Problem
from hookline.shell import parse_line

TOOLS = (
    "Agent", "AskUserQuestion", "Bash", "BashOutput", "Edit", "EnterPlanMode", "EnterWorktree", "ExitPlanMode",
    "ExitWorktree", "Glob", "Grep", "KillShell", "LS", "LSP", "Monitor", "MultiEdit", "NotebookEdit", "NotebookRead",
    "Read", "Skill",
    "SlashCommand", "StructuredOutput", "Task", "TaskCreate", "TaskGet", "TaskList", "TaskOutput", "TaskStop",
    "TaskUpdate", "TodoWrite", "ToolSearch", "WebFetch", "WebSearch", "Write",
)  # fmt: skip
"""Tools a matcher may name; others exist (MCP servers bring theirs), so a name that is not here is only a warning."""

_LONG = 60.0
_KINDS: dict[type[Any], str] = {
    Command: "command",
    Http: "http",
    Prompt: "prompt",
    AgentCheck: "agent",
    McpTool: "mcp_tool",
    Cedar: "cedar",
    Rego: "rego",
}
_BUILTINS = frozenset({
    ".", ":", "[", "alias", "bg", "cd", "command", "echo", "eval", "exec", "exit", "export", "false", "fg", "getopts",
    "hash", "jobs", "kill", "printf", "pwd", "read", "return", "set", "shift", "test", "times", "trap", "true", "type",
    "ulimit", "umask", "unalias", "unset", "wait",
})  # fmt: skip


def check(loaded: Loaded) -> list[Problem]:
    """Every problem of the files, then of the hooks in them, each said once."""
    return list(dict.fromkeys([*loaded.problems, *check_hooks(_written(loaded), str(loaded.places.project_dir))]))


def check_hooks(hooks: Iterable[Hook], project: str) -> list[Problem]:
    """What is wrong with hooks, wherever they come from."""
    found = [problem for hook in hooks for look in (_matcher, _condition, _command, _timeout, _confinement)
             for problem in look(hook, project)]  # fmt: skip
    return list(dict.fromkeys(found))


def _written(loaded: Loaded) -> Iterator[Hook]:
    """The hooks as the files have them: duplicates, too, since each may have a problem of its own."""
    for file in loaded.files:
        if "hooks" in file.raw:
            yield from parse_hooks(file.raw["hooks"], file.source, loaded.switches.http).hooks


def _matcher(hook: Hook, _: str) -> Iterator[Problem]:
    pattern = hook.matcher.pattern
    if hook.matcher.matches_all:
        return
    for cls in hook.events:
        name = cls.event_name
        if CATALOG[name].subject is None:
            yield Problem(
                hook.source, f"matcher `{pattern}` is ignored: {name} has nothing to match; leave it out", "warning"
            )
        elif (subjects := spec_of(name).subjects) and not any(hook.matcher.matches(subject) for subject in subjects):
            known = ", ".join(f"`{subject}`" for subject in subjects)
            yield Problem(hook.source, f"matcher `{pattern}` can never match: {name} knows {known}", "warning")
        elif CATALOG[name].subject == "tool_name":
            yield from _tool_names(hook, pattern)


def _tool_names(hook: Hook, pattern: str) -> Iterator[Problem]:
    if not all(char.isalnum() or char in "_-,| " for char in pattern):
        return
    for name in (part.strip() for part in pattern.replace(",", "|").split("|")):
        near = did_you_mean(name, TOOLS) if name and name not in TOOLS and not name.startswith("mcp__") else ""
        if near:
            yield Problem(hook.source, f"matcher `{pattern}`: no tool is called `{name}`{near}", "warning")


def _condition(hook: Hook, _: str) -> Iterator[Problem]:
    if hook.condition is None:
        return
    said = advice(hook.condition, TOOLS)
    if said:
        yield Problem(hook.source, f"if: {said}", "warning")
    tools = [rule.tool for rule in hook.condition.rules]
    about_tools = any(hasattr(cls, "tool_name") for cls in hook.events)
    if not said and about_tools and not any(map(hook.matcher.matches, tools)):
        left_out = ", ".join(f"`{tool}`" for tool in tools)
        problem = f"if: `{hook.condition}` can never hold, since matcher `{hook.matcher.pattern}` leaves {left_out} out"
        yield Problem(hook.source, problem, "warning")


def _command(hook: Hook, project: str) -> Iterator[Problem]:
    if not isinstance(hook.action, Command):
        return
    for program in _programs(hook.action, project):
        problem = _unrunnable(program, project)
        if problem:
            yield Problem(hook.source, f"command: `{program}` {problem}")


def _confinement(hook: Hook, _: str) -> Iterator[Problem]:
    """A guard that asks for confinement where there is none still judges, by the text alone."""
    if not hook.confines and not (isinstance(hook.action, Command) and _asks_to_confine(hook.action)):
        return
    from hookline.confine.check import missing, no_notifications
    from hookline.confine.policy import Policy

    if reason := missing(Policy()) or no_notifications():
        said = f"lines cannot be confined here: {reason}; they are judged by their text alone, and asked about in doubt"
        yield Problem(f"{hook.source} ({hook.name})" if hook.confines else hook.source, said, "warning")


def _asks_to_confine(action: Command) -> bool:
    """Whether a command is `hookline guard … --confine auto`."""
    line = " ".join([action.command, *(action.args or ())])
    return any(
        "guard" in words and ("--confine=auto" in words or ("--confine", "auto") in pairwise(words))
        for words in (part.words for part in parse_line(line).commands)
    )


def _programs(action: Command, project: str) -> Iterator[str]:
    """The programs a command plainly starts, as paths where it gives paths."""
    if action.args is not None:
        yield _filled(action.command, action, project)
        return
    for part in parse_line(_filled(action.command, action, project)).commands:
        if part.words and 0 not in part.unknown and not part.via:
            yield part.words[0]


def _filled(text: str, action: Command, project: str) -> str:
    folders = {"CLAUDE_PROJECT_DIR": project, "CLAUDE_PLUGIN_ROOT": action.plugin_root or ""}
    return fill(text, folders.get, EITHER)


def _unrunnable(program: str, project: str) -> str:
    if "/" not in program:
        known = program in _BUILTINS or shutil.which(program) is not None
        return "" if known else "was not found on PATH; install it or give its path"
    path = Path(project, Path(program).expanduser())
    if not path.exists():
        return "does not exist"
    if path.is_dir():
        return "is a folder; name a program"
    return "" if os.access(path, os.X_OK) else f"is not executable; run `chmod +x {program}`"


def _timeout(hook: Hook, _: str) -> Iterator[Problem]:
    spec = CATALOG[hook.events[0].event_name]
    if type(hook.action) not in _KINDS:
        return
    default = default_timeout(_KINDS[type(hook.action)], spec.name)
    if spec.gate and hook.timeout is not None and hook.timeout > _LONG and hook.timeout != default:
        problem = (
            f"timeout: {hook.timeout:g} s on a gate lets the agent wait for over a minute; write `{_LONG:g}` or less"
        )
        yield Problem(hook.source, problem, "warning")
