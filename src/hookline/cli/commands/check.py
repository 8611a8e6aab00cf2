"""`hookline check`: what is wrong with the hook files, and what to write instead."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from hookline.cli.options import TimeKeeper, load, parser_for
from hookline.cli.style import counted, folded, json_text, paint
from hookline.core.hooks import Hook
from hookline.errors import ConfigError
from hookline.hook_file import load_hooks
from hookline.processes.stdout import borrowed_stdout
from hookline.processes.supervised import ChildExit, supervise
from hookline.processes.watch import SharedDeadline
from hookline.records.approvals.inbox import approval_problems
from hookline.settings.check import check, check_hooks
from hookline.settings.files import Problem

_COLOURS = {"error": "red", "warning": "yellow", "note": "dim"}


def main(argv: list[str]) -> int:
    """Print every problem with its place; exit 1 if there is an error (with --strict, also on a warning)."""
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
            problems = check_hooks(hooks, args.project)
            flows = [one for hook in hooks if hook.name == "flow.judge" for one in _explain_flow(hook)]
            problems = [*problems, *flows]
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
