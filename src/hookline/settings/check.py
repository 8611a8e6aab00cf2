"""Looking harder than loading does: hooks that are well-formed and still cannot do what their author wants."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import msgspec

from hookline.core.hooks.actions import AgentCheck, Cedar, Command, Http, McpTool, Prompt, Rego
from hookline.core.hooks.condition import advice
from hookline.core.hooks.hook import Hook
from hookline.core.hooks.tools import CLAUDE_TOOLS
from hookline.core.shell import parse_line
from hookline.errors import did_you_mean
from hookline.events import CATALOG, spec_of
from hookline.settings.check_commands import missing_from
from hookline.settings.fields import default_timeout
from hookline.settings.files import read_bytes
from hookline.settings.load import LoadedSettings
from hookline.settings.locate import keys_of, position
from hookline.settings.parse import parse_hooks
from hookline.settings.problems import Problem

_LARGEST = 4 * 1024 * 1024
_LONG = 60.0
_MILLISECONDS = 1000.0
"""From here on a number of seconds looks like milliseconds."""
_KINDS: dict[type[Any], str] = {
    Command: "command",
    Http: "http",
    Prompt: "prompt",
    AgentCheck: "agent",
    McpTool: "mcp_tool",
    Cedar: "cedar",
    Rego: "rego",
}


def check(loaded: LoadedSettings) -> list[Problem]:
    """Every problem of the files and of the hooks in them, each said once, in the order of the files' lines."""
    found = dict.fromkeys([*loaded.problems, *check_hooks(_written(loaded), str(loaded.places.project_dir))])
    texts: dict[str, str] = {}
    for file in loaded.files:
        if file.source.path and file.markdown is None:
            data = read_bytes(file.source.path, _LARGEST)
            texts[file.source.label] = data.decode("utf-8", "replace") if isinstance(data, bytes) else ""
    order = {file.source.label: number for number, file in enumerate(loaded.files)}
    placed = [_placed(problem, texts) for problem in found]
    return sorted(placed, key=lambda one: (order.get(_label(one), len(order)), one.line, one.column))


def _label(problem: Problem) -> str:
    return problem.where.partition(": ")[0]


def _placed(problem: Problem, texts: Mapping[str, str]) -> Problem:
    """The problem with its line and column, if its file is JSON and has its key."""
    label, _, path = problem.where.partition(": ")
    told = re.match(r"is not JSON: line (\d+) column (\d+)", problem.message)
    found = (int(told[1]), int(told[2])) if told else position(texts.get(label, ""), keys_of(path.partition(" ")[0]))
    return problem if found is None else msgspec.structs.replace(problem, line=found[0], column=found[1])


def check_hooks(hooks: Iterable[Hook], project: str) -> list[Problem]:
    """What is wrong with hooks, wherever they come from."""
    found = [problem for hook in hooks for look in (_matcher, _condition, _command, _timeout, _confinement)
             for problem in look(hook, project)]  # fmt: skip
    return list(dict.fromkeys(found))


def _written(loaded: LoadedSettings) -> Iterator[Hook]:
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
        known = not name or name in CLAUDE_TOOLS or name.startswith("mcp__")
        near = "" if known else did_you_mean(name, CLAUDE_TOOLS)
        if near:
            yield Problem(hook.source, f"matcher `{pattern}`: no tool is called `{name}`{near}", "warning")
    ported = getattr(hook.action, "dialect", "claude") != "claude"  # written for a matcher that is searched (seeds/002)
    if ported and hook.matcher.matches("Edit") and not hook.matcher.matches("MultiEdit"):
        exact = f"matcher `{pattern}` is exact here and does not match `MultiEdit`"
        yield Problem(hook.source, f"{exact}; write `{pattern}|MultiEdit`, or a regular expression", "warning")


def _condition(hook: Hook, _: str) -> Iterator[Problem]:
    if hook.condition is None:
        return
    said = advice(hook.condition, CLAUDE_TOOLS)
    if said:
        yield Problem(hook.source, f"if: {said}", "warning")
    tools = [rule.tool for rule in hook.condition.rules]
    about_tools = any(cls.subject_field == "tool_name" for cls in hook.events)
    if not said and about_tools and not any(map(hook.matcher.matches, tools)):
        left_out = ", ".join(f"`{tool}`" for tool in tools)
        problem = f"if: `{hook.condition}` can never hold, since matcher `{hook.matcher.pattern}` leaves {left_out} out"
        yield Problem(hook.source, problem, "warning")


def _command(hook: Hook, project: str) -> Iterator[Problem]:
    if not isinstance(hook.action, Command):
        return
    for problem in dict.fromkeys(missing_from(hook.action, project)):
        yield Problem(hook.source, f"command: {problem}")


def _confinement(hook: Hook, _: str) -> Iterator[Problem]:
    """A guard that asks for confinement where there is none still judges, by the text alone."""
    if not asks_to_confine(hook):
        return
    from hookline.sandbox.check import missing, no_notifications
    from hookline.sandbox.policy import Policy

    if reason := missing(Policy()) or no_notifications():
        said = f"lines cannot be confined here: {reason}; they are judged by their text alone, and asked about in doubt"
        yield Problem(f"{hook.source} ({hook.name})" if hook.confines else hook.source, said, "warning")


def asks_to_confine(hook: Hook) -> bool:
    """Whether a hook is a guard that has shell lines confined: one of ours, or `hookline guard … --confine auto`."""
    return hook.confines or (isinstance(hook.action, Command) and _says_confine(hook.action))


def _says_confine(action: Command) -> bool:
    line = " ".join([action.command, *(action.args or ())])
    return any(
        "guard" in words and ("--confine=auto" in words or ("--confine", "auto") in pairwise(words))
        for words in (part.words for part in parse_line(line).commands)
    )


def _timeout(hook: Hook, _: str) -> Iterator[Problem]:
    spec = CATALOG[hook.events[0].event_name]
    if type(hook.action) not in _KINDS:
        return
    default = default_timeout(_KINDS[type(hook.action)], spec.name)
    if hook.timeout is None or hook.timeout == default:
        return
    if hook.timeout >= _MILLISECONDS:
        meant = f"did you mean {hook.timeout / 1000:g} seconds? write `{hook.timeout / 1000:g}`"
        yield Problem(hook.source, f"timeout: {hook.timeout:g} s is over a quarter of an hour; {meant}", "warning")
    elif spec.gate and hook.timeout > _LONG:
        problem = (
            f"timeout: {hook.timeout:g} s on a gate lets the agent wait for over a minute; write `{_LONG:g}` or less"
        )
        yield Problem(hook.source, problem, "warning")
