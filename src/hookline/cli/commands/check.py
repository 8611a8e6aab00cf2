"""`hookline check`: what is wrong with the hook files, and what to write instead."""

from __future__ import annotations

import argparse
import sys

import msgspec

from hookline.cli.options import add_json, add_sources, load, parser
from hookline.cli.style import folded, paint
from hookline.settings.check import check
from hookline.settings.problems import Problem

_COLOURS = {"error": "red", "warning": "yellow", "note": "dim"}


def main(argv: list[str]) -> int:
    """Print every problem with its place; exit 1 if there is an error (with --strict, also on a warning)."""
    args = _parser().parse_args(argv)
    loaded = load(args)
    problems = check(loaded)
    if args.json:
        print(msgspec.json.encode(problems).decode())
    else:
        print("\n".join(_line(problem) for problem in problems) or _all_well(len(loaded.hooks)))
    bad = {"error", "warning"} if args.strict else {"error"}
    return 1 if any(problem.severity in bad for problem in problems) else 0


def _parser() -> argparse.ArgumentParser:
    flags = parser("check", "Find what is wrong with the hook files: names, matchers, scripts, conditions, limits.")
    flags.add_argument("--strict", action="store_true", help="exit 1 on warnings too")
    add_json(flags)
    add_sources(flags)
    return flags


def _line(problem: Problem) -> str:
    line = f"{problem.severity} {problem}"
    if sys.stdout.isatty():
        line = folded(line, 0, 4)
    return line.replace(problem.severity, paint(problem.severity, _COLOURS[problem.severity]), 1)


def _all_well(count: int) -> str:
    return (
        f"{count} hook{'s' if count != 1 else ''}, nothing wrong"
        if count
        else "no hooks; `hookline init` writes a first one"
    )
