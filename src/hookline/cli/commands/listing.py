"""`hookline list`: which hooks there are, and which would run."""

import argparse
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hookline.api import Hooks
from hookline.cli.commands.fire import why_not
from hookline.cli.options import hooks_of, parser_for
from hookline.cli.style import folded, json_text, paint
from hookline.core.hooks import Hook
from hookline.core.hooks.hook import Function
from hookline.display import one_line
from hookline.events import CATALOG, Event, spec_of
from hookline.settings.parse import InAgent
from hookline.settings.trust.store import what_runs


def main(argv: list[str]) -> int:
    """Print the hooks, by event, in the order they run."""
    args = parser_for("list").parse_args(argv)
    args.trust = True  # nothing is run here
    hooks = hooks_of(args, strict=False)
    event = _asked(args)
    scoped = [
        (hook, f"while agent `{hook.when.agent}` works" if isinstance(hook.when, InAgent) else None)
        for hook in hooks.hooks
    ]
    skills = hooks.settings.loaded.skills if hooks.settings else ()  # their hooks are added once one is used
    scoped += [(hook, f"once {skill.source.kind} `{skill.name}` is used") for skill in skills for hook in skill.hooks]
    rows = [_row(hooks, hook, event, scope) for hook, scope in scoped if event is None or type(event) in hook.events]
    if args.json:
        print(json_text(rows))
    elif not rows:
        print("no hooks" + (f" on {event.event_name}" if event else "") + "; `hookline init` writes a first one")
    else:
        for name in CATALOG:
            if of_event := [row for row in rows if name in row["events"]]:
                print("\n".join([paint(name, "bold"), *(line for row in of_event for line in _lines(row))]))
    return 0


def _asked(args: argparse.Namespace) -> Event | None:
    """The event that is asked about, made from the flags."""
    if args.event is None:
        return None
    from hookline.core.wire import claude
    from hookline.core.wire.json_text import parse_object

    spec = spec_of(args.event)
    payload: dict[str, Any] = {"hook_event_name": spec.name}
    if args.subject is not None and spec.subject is not None:
        payload["file_path" if spec.subject == "file_name" else spec.subject] = args.subject
    if args.input is not None:
        payload["tool_input"] = parse_object(args.input, "--input")
    return claude.decode_event(payload)


def _row(hooks: Hooks, hook: Hook, event: Event | None, scope: str | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "hook": hook.name,
        "events": [cls.event_name for cls in hook.events],
        "matcher": hook.matcher.pattern,
        "if": str(hook.condition) if hook.condition is not None else None,
        "kind": type(hook.action).__name__.lower(),
        "runs": what_runs(hook),
        "timeout": hook.limit(hooks.engine.timeout),
        "on_failure": hook.on_failure or ("block" if any(map(hook.fails_closed, hook.events)) else "continue"),
        "source": _source(hook),
        "scope": scope,
    }
    if event is not None:
        row["why_not"] = why_not(hooks, hook, event) or None
        row["would_run"] = row["why_not"] is None
    return row


def _source(hook: Hook) -> str:
    """Where a hook was declared; of a function, its file and line."""
    action = hook.action
    if not isinstance(action, Function) or hook.source != "code":
        return hook.source
    call = inspect.unwrap(getattr(action.call, "func", action.call))
    code = getattr(call, "__code__", None) or getattr(type(call).__call__, "__code__", None)
    if code is None:
        return hook.source
    path = Path(code.co_filename)
    return f"{path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}:{code.co_firstlineno}"


def _lines(row: dict[str, Any]) -> Iterator[str]:
    sign = {True: "►", False: "·", None: " "}[row.get("would_run")]
    name = one_line(row["hook"])
    on = f" on {row['matcher']}" if row["matcher"] else ""
    condition = f" if {row['if']}" if row["if"] else ""
    head = folded(f"{sign} {name}{one_line(on)}{one_line(condition)}", 2, 6)
    yield head.replace(name, paint(name, "cyan"), 1)
    limits = f"{row['timeout']:g} s, on failure {row['on_failure']}"
    for text in filter(None, (row["runs"], limits, row["scope"], row["source"])):
        yield paint(folded(one_line(text), 6, 8), "dim")
    if row.get("why_not"):
        yield folded(one_line(f"would not run: {row['why_not']}"), 6, 8)
