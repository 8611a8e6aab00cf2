"""What hooks from files are called, and which of them are one and the same."""

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from hookline.core.hooks.hook import EVERYTHING, Action, AgentCheck, Command, Hook, Http, Matcher, McpTool, Prompt
from hookline.core.shell import SimpleCommand, parse_line
from hookline.core.shell.programs.table import names
from hookline.settings.files import Problem

_STARTERS = names("starter")  # words that start something else: not what a hook is about
_LONGEST = 40


def short_name(action: Action, plugin: str | None = None) -> str:
    """A readable name for a hook that has none: the script it runs, the host it asks, the question's first words."""
    name = _short(action)[:_LONGEST].strip() or type(action).__name__.lower()
    return f"{plugin.partition('@')[0]}:{name}" if plugin else name


def _short(action: Action) -> str:
    if isinstance(action, Command):
        starts = _base(action.command) in _STARTERS  # `python3` with its script as an argument
        return _of_command(" ".join([action.command, *(action.args or ())]) if starts else action.command)
    if isinstance(action, Http):
        return re.sub(r"^\w+://(?:[^/@]*@)?|[?#].*$", "", action.url).rstrip("/")
    if isinstance(action, McpTool):
        return f"{action.server}.{action.tool}"
    if isinstance(action, Prompt | AgentCheck):
        return " ".join(action.prompt.split())
    return str(getattr(action, "policies", "hook"))


def _of_command(command: str) -> str:
    """What a command line is about: its script, or its first program that does more than prepare or print."""
    if ours := re.search(r"""\bhookline(?:\.exe|/__main__\.py)?["']? (answer|guard) (\w+)""", command):
        return f"hookline {ours[1]} {ours[2]}"
    if re.search(r"[$`|&;=(]", command):
        for part in parse_line(command).commands:
            if not part.wraps and not part.substitution and (name := _of_words(part)):
                return name
    words = [word.strip("\"'`(){};") for word in command.split()]
    for word in words:  # the first that says what runs: no interpreter, no option, no assignment; without its folder
        base = _base(word)
        if base and base not in _STARTERS and not re.match(r"-|\w+=|\$\(", word) and not base.isdecimal():
            return base
    return next(filter(None, map(_base, words)), "")


def _of_words(part: SimpleCommand) -> str:
    """The name that a simple command gives, or nothing if it says little or is known only when it runs."""
    told = (at for at, word in enumerate(part.words) if not word.startswith("-") and _base(word) not in _STARTERS)
    if (at := next(told, None)) is None:
        return ""
    word, base = part.words[at], _base(part.words[at])
    if (at in part.unknown and "/" not in word) or not re.fullmatch(r"[\w.@:+-]+", base) or base in names("aside"):
        return ""
    after = next((one for one in part.words[at + 1 :] if not one.startswith("-")), "")
    return f"{base} {after}" if base in names("task") and re.fullmatch(r"[\w.:@-]+", after) else base


def _base(word: str) -> str:
    return word.rstrip("/").rpartition("/")[2]


def with_free_names(hooks: Iterable[Hook], taken: Iterable[str] = ()) -> list[Hook]:
    """The hooks, each under a name of its own: `guard.py`, then `guard.py#2`."""
    used = set(taken)
    named = []
    for hook in hooks:
        name, number = hook.name, 2
        while name in used:
            name, number = f"{hook.name}#{number}", number + 1
        used.add(name)
        named.append(hook if name == hook.name else msgspec.structs.replace(hook, name=name))
    return named


def without_duplicates(hooks: Iterable[Hook]) -> tuple[list[Hook], list[Problem]]:
    """Identical hooks of an event become one that applies wherever any of them did (FACTS.md §4).

    Also when timeout, shell, headers or model differ, or one runs in the background; not when `if`, `args` or the
    plugin do. The last one's limits stand, but if any of them fails closed or is waited for, so does and is the one.
    """
    kept: dict[Any, Hook] = {}
    notes = []
    for hook in hooks:
        action = msgspec.structs.replace(hook.action, **_ASIDE.get(type(hook.action), {}))
        key = (type(action), msgspec.json.encode(action), hook.events, hook.condition, hook.when)
        first = kept.get(key)
        if first is not None:
            notes.append(Problem(hook.source, f"the same hook as {first.source}; it runs once", "note"))
        kept[key] = hook if first is None else _joined(first, hook)
    return list(kept.values()), notes


_ASIDE: dict[type[Action], dict[str, Any]] = {  # what two hooks that are one and the same may differ in
    Command: {"shell": None, "asynchronous": False, "async_rewake": False},
    Http: {"headers": {}, "allowed_env": (), "allowed_urls": None},
    Prompt: {"model": None, "continue_on_block": False},
    AgentCheck: {"model": None},
}


def _joined(first: Hook, last: Hook) -> Hook:
    block = "block" in (first.on_failure, last.on_failure)
    alone = ("asynchronous", "async_rewake")
    goes_on = [hook.background or any(getattr(hook.action, name, False) for name in alone) for hook in (first, last)]
    awaited = first if goes_on == [False, True] else last
    a, b = first.matcher, last.matcher
    either = Matcher(f"{a.pattern}|{b.pattern}", lambda subject: a.matches(subject) or b.matches(subject))
    matcher = EVERYTHING if a.matches_all or b.matches_all else a if a.pattern == b.pattern else either
    return msgspec.structs.replace(
        first,
        action=awaited.action,
        background=awaited.background,
        timeout=last.timeout,
        matcher=matcher,
        on_failure="block" if block else last.on_failure,
        once=first.once and last.once,
        mode=last.mode if first.mode == last.mode else "enforce",
    )
