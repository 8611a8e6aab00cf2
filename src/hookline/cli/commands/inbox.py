"""`hookline inbox`: the questions that hooks ask people, in the terminal."""

import argparse
import json
import logging
import sys
import time
from collections.abc import Iterator
from typing import Any

from hookline.cli.options import parser_for, run
from hookline.cli.person import find_agent, require_person
from hookline.cli.style import paint
from hookline.core.files import state_folder
from hookline.display import lines, one_line
from hookline.errors import HooklineError
from hookline.records.approvals.inbox import ask_once, request

_SIGNS = {"open": ("?", "yellow"), "yes": ("✓", "green"), "used": ("✓", "green"), "no": ("✗", "red")}
Shown = dict[str, Any]


def main(argv: list[str]) -> int:
    """List, show, answer or follow the questions."""
    if argv[:1] == ["serve"]:  # what the resident service starts
        from hookline.records.approvals.server import serve

        logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
        run(serve(state_folder() / "inbox", int(argv[1]), find_agent))
        return 0
    flags = parser_for("inbox")
    args = flags.parse_args(argv)
    if args.action in ("show", "approve", "deny"):
        if not args.question:
            flags.error(f"`{args.action}` needs the id of a question; `hookline inbox` lists them")
        return _one(args)
    try:
        run(_print(args))
    except KeyboardInterrupt:
        print(file=sys.stderr)
    return 0


async def _print(args: argparse.Namespace) -> None:
    """Each question, and with `follow` each that comes or changes."""
    known: dict[str, str] = {}
    async for found in request({"do": "list", "follow": args.action == "follow"}):
        if args.json and args.action == "list":
            print(json.dumps(found["questions"]))
            return
        for one in found["questions"]:
            if known.get(one["id"]) != one["state"]:
                known[one["id"]] = one["state"]
                print(json.dumps(one) if args.json else _headline(one), flush=True)
        if not known and args.action == "list":
            print("no questions")


def _one(args: argparse.Namespace) -> int:
    decides = args.action != "show"
    if decides:
        require_person(f"inbox {args.action}")
    fitting = [one for one in run(ask_once({"do": "list"}))["questions"] if one["id"].startswith(args.question)]
    if len(fitting) != 1:
        raise HooklineError(f"{one_line(args.question)}: {'fits several' if fitting else 'no such'} question")
    one, yes = fitting[0], args.action == "approve"
    print(json.dumps(one) if args.json else "\n".join(_told(one)))
    if decides:
        problem = run(ask_once({"do": "decide", "id": one["id"], "yes": yes, "how": "terminal"}))["problem"]
        if problem:
            raise HooklineError(f"{one['id']}: {problem}")
        print(f"{one['id']}: {'yes, once' if yes else 'no'}", file=sys.stderr if args.json else sys.stdout)
    return 0


def _headline(one: Shown) -> str:
    sign, colour = _SIGNS.get(one["state"], ("·", "dim"))
    when = time.strftime("%H:%M:%S", time.localtime(one["made"]))
    what = one_line(f"{one['tool'] or one['event']}: {one['parts'][0]['text'] if one['parts'] else ''}", 80)
    return f"{paint(sign, colour)} {one['id']}  {when}  {what}  {paint(one_line(one['told']), 'dim')}"


def _told(one: Shown) -> Iterator[str]:
    yield _headline(one)
    for title, name in (("why", "why"), ("asked by", "hooks"), ("agent", "host"), ("folder", "cwd")):
        if one[name]:
            yield f"  {title:<9} {one_line(one[name])}"
    for part in one["parts"]:
        yield f"  {one_line(part['title'])}:"
        yield from (f"    {line}" for line in lines(part["text"]))
    for line in one["before"]:
        yield f"  before    {one_line(line)}"
    for name, outcome in one["sent"].items():
        yield f"  sent to   {one_line(f'{name}: {outcome}')}"
