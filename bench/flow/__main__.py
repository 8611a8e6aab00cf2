"""`python -m bench.flow [dojo|insider|tau2|codeipi|all] [--show] [--strict] …`: prints the tables as JSON rows."""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import Any

from hookline.guards.flow.rules import FlowJudge

_SUITES = ["workspace", "banking", "slack", "travel"]


def main() -> None:
    """Run what was asked for."""
    flags = argparse.ArgumentParser(prog="bench.flow")
    flags.add_argument("table", nargs="?", default="all", choices=["dojo", "insider", "tau2", "codeipi", "all"])
    flags.add_argument("--suites", default=",".join(_SUITES))
    flags.add_argument("--domains", default="retail,airline")
    flags.add_argument("--strict", action="store_true", help="addresses vouch from directories only")
    flags.add_argument("--no-intent", action="store_true", help="the rule of intent is off")
    flags.add_argument("--paraphrased", action="store_true", help="no text has the call's own words: no echo is heard")
    flags.add_argument("--results", default="structures", choices=["structures", "json", "text"],
                       help="AgentDojo's results as they are, as JSON in a text, or as a text for people")  # fmt: skip
    flags.add_argument("--show", action="store_true", help="every honest interruption and every attack that passes")
    args = flags.parse_args()
    if args.paraphrased:
        setattr(FlowJudge, "_echo", lambda *_: None)  # noqa: B010 - a rule is switched off
    settings: dict[str, Any] = {"strict": args.strict, "intent": not args.no_intent}
    if args.table in ("dojo", "all"):
        from bench.flow import dojo

        _print(asyncio.run(dojo.run(settings, args.suites.split(","), results=args.results, show=args.show)))
    if args.table in ("insider", "all"):
        from bench.flow import insider

        for row in insider.run(settings, args.suites.split(",")):
            print(json.dumps(row), flush=True)
    if args.table in ("tau2", "all"):
        from bench.flow import tau2

        _print(asyncio.run(tau2.run(settings, args.domains.split(","), show=args.show)))
    if args.table in ("codeipi", "all"):
        from bench.flow import codeipi

        _print([asyncio.run(codeipi.run(settings, show=args.show))])


def _print(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        print(json.dumps(row), flush=True)
    attacks, passed = (sum(row.get(name, 0) for row in rows) for name in ("attacks", "pass"))
    honest, hit = sum(row["honest"] for row in rows), sum(row["honest denied"] + row["honest asked"] for row in rows)
    print(f"   {attacks - passed} of {attacks} stopped ({(attacks - passed) / max(attacks, 1):.1%}); "
          f"{hit} of {honest} honest interrupted ({hit / max(honest, 1):.1%}), "
          f"{sum(row['honest denied'] for row in rows)} denied", flush=True)  # fmt: skip


main()
