"""`hookline list`, `check` and `trust`: which hooks there are, what is wrong with their files, what may run."""

import argparse
import inspect
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hookline.api import Hooks
from hookline.cli.commands.fire import why_not
from hookline.cli.options import TimeKeeper, hooks_of, load, parser_for, review, shown, trusted_by_command
from hookline.cli.style import counted, folded, json_text, paint
from hookline.core.hooks import Hook
from hookline.core.hooks.hook import Function
from hookline.core.wire import claude
from hookline.core.wire.json_text import parse_object
from hookline.display import one_line
from hookline.errors import ConfigError
from hookline.events import CATALOG, Event, spec_of
from hookline.hook_file import load_hooks
from hookline.processes.stdout import borrowed_stdout
from hookline.processes.supervised import ChildExit, supervise
from hookline.processes.watch import SharedDeadline
from hookline.records.approvals.inbox import approval_problems
from hookline.settings.check import check, check_hooks
from hookline.settings.files import Problem
from hookline.settings.parse import InAgent
from hookline.settings.trust.store import Status, Trust, what_runs

_COLOURS = {"error": "red", "warning": "yellow", "note": "dim"}
_TRUSTED = "trusted from now on; any change to these files will be asked about again"
_BY_COMMAND = "trusted from now on as commands, not by content: what they run besides may change without a question"


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


def check_files(argv: list[str]) -> int:
    """`hookline check`: print every problem with its place; exit 1 on an error (with --strict, also on a warning)."""
    args = parser_for("check").parse_args(argv)
    if not args.hooks:
        loaded = load(args)
        flow = loaded.raw.get("flow")
        try:
            notes = _explain_flow(flow if isinstance(flow, dict) else {}) if flow not in (None, False) else []
        except ConfigError as error:
            notes = [Problem(error.where, error.problem)]
        return _told([*check(loaded), *notes, *approval_problems(loaded.files)], len(loaded.hooks), args)

    def lost(death: ChildExit) -> int:
        return _told([Problem(args.hooks, f"cannot be imported: {death}")], 0, args)

    due = SharedDeadline()
    return supervise(lambda: _check_python(args, TimeKeeper(due)), lost, "hookline check", due)


def _check_python(args: argparse.Namespace, time: TimeKeeper) -> int:
    """A Python file is imported, so what it does while it is goes on in a process of its own."""
    time.loading()
    with borrowed_stdout():
        try:
            hooks = load_hooks(args.hooks).hooks
            flows = [one for hook in hooks if hook.name == "flow.judge" for one in _explain_flow(hook)]
            problems = [*check_hooks(hooks, args.project), *flows]
        except ConfigError as error:
            hooks, problems = (), [Problem(error.where, error.problem)]
    return _told(problems, len(hooks), args)


def _explain_flow(source: Hook | dict[str, Any]) -> list[Problem]:
    """What the flow guard takes for granted of every tool that its sessions have met."""
    from hookline.guards.flow import explain

    notes = explain(source) or ["no tool was met yet: each is explained after its first call"]
    return [Problem("flow", note, "note") for note in notes]


def _told(problems: Sequence[Problem], count: int, args: argparse.Namespace) -> int:
    if args.json:
        print(json_text(problems))
    else:
        counts = [(sum(problem.severity == kind for problem in problems), kind) for kind in _COLOURS]  # the worst first
        summary = ", ".join(counted(number, kind) for number, kind in counts if number)
        well = f"{counted(count, 'hook')}, nothing wrong" if count else "no hooks; `hookline init` writes a first one"
        print("\n".join([*map(_line, problems), summary or well]))
    bad = {"error", "warning"} if args.strict else {"error"}
    return 1 if any(problem.severity in bad for problem in problems) else 0


def _line(problem: Problem) -> str:
    place = f":{problem.line}:{problem.column}" if problem.line else ""
    label, colon, rest = str(problem).partition(": ")
    line = f"{label}{place}: {problem.severity}: {rest}" if colon else f"{problem.severity}: {label}"
    if sys.stdout.isatty():
        line = folded(line, 0, 4)
    word = f" {problem.severity}:"
    return line.replace(word, f" {paint(problem.severity, _COLOURS[problem.severity])}:", 1)


def trust_files(argv: list[str]) -> int:
    """`hookline trust`: show what would run and what changed; record it when the user says yes."""
    args = parser_for("trust").parse_args(argv)
    trust = Trust.load()
    if args.forget:
        gone = trust.forget(Path(args.project))
        print(json_text({"forgot": gone}) if args.json else f"forgot {counted(gone, 'file')}")
        return 0
    status = trust.status(load(args))
    if status.trusted and not args.json:
        labels = ", ".join(one_line(item.label) for item in status.items)
        print("\n".join([f"trusted: {labels}" if status.items else "nothing needs trust", *_not_by_content(status)]))
        return 0
    if not args.yes or status.trusted:
        if args.json:
            print(_status_json(status))
            return 0 if status.trusted else 1
        if not sys.stdin.isatty():
            print(shown(status))
            print("not trusted; run `hookline trust` on a terminal, or `hookline trust --yes`", file=sys.stderr)
            return 1
        if not review(status):
            print("nothing was trusted", file=sys.stderr)
            return 1
    trust.record(status.items)
    reasons = _not_by_content(status)
    said = "\n".join([_BY_COMMAND, *reasons]) if reasons else _TRUSTED
    print(_status_json(trust.status(load(args))) if args.json else said)
    return 0


def _not_by_content(status: Status) -> list[str]:
    """Where the files cannot be told, less is promised, and each reason is named."""
    unknown = [item for item in status.items if item.notes]
    return [line for item in unknown for line in (one_line(item.label), *trusted_by_command(item))]


def _status_json(status: Status) -> str:
    files = [
        {"file": item.label, "runs": item.runs, "sets": item.sets, "scripts": [script.path for script in item.scripts],
         "not_by_content": item.notes}
        for item in status.items
    ]  # fmt: skip
    changes = [{"file": change.path, "kind": change.kind, "diff": change.diff} for change in status.changes]
    return json_text({"trusted": status.trusted, "files": files, "changes": changes})
