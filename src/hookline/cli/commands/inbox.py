"""`hookline inbox`: the questions that hooks ask people, in the terminal."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import msgspec

from hookline.cli.options import add_json, parser
from hookline.cli.person import find_agent, require_person
from hookline.cli.runtime import run
from hookline.cli.style import paint
from hookline.core.files import state_folder
from hookline.display import lines, one_line
from hookline.errors import HooklineError
from hookline.records.approvals.inbox import ask_once, request
from hookline.records.approvals.page import parts_of
from hookline.records.approvals.questions import AskedQuestion, shown_state

_EXAMPLES = """examples:
  hookline inbox                    what is asked, and what was answered lately
  hookline inbox show A-1f2e3d4c5b  what would run, and why it is asked
  hookline inbox approve A-1f2e3d4c5b
  hookline inbox deny A-1f2e3d4c5b
  hookline inbox follow             each question as it comes, and its answer

A yes lets one call run, once. `approve` and `deny` are for a person at a
terminal. `approvals` in ~/.claude/settings.json says who else is asked, and
how. exit codes: 0 done; 1 it could not be answered"""
_SIGNS = {"open": ("?", "yellow"), "yes": ("✓", "green"), "used": ("✓", "green"), "no": ("✗", "red")}


def main(argv: list[str]) -> int:
    """List, show, answer or follow the questions."""
    if argv[:1] == ["serve"]:  # what the resident service starts
        return _serve(int(argv[1]))
    flags = parser("inbox", "The questions that hooks ask people where the agent cannot ask by itself.", _EXAMPLES)
    flags.add_argument("action", nargs="?", default="list", choices=sorted(ACTIONS), help="what to do (default: list)")
    flags.add_argument("question", nargs="?", default="", help="its id; a beginning that fits one is enough")
    add_json(flags)
    args = flags.parse_args(argv)
    if args.action in ("show", "approve", "deny") and not args.question:
        flags.error(f"`{args.action}` needs the id of a question; `hookline inbox` lists them")
    return ACTIONS[args.action](args)


def _serve(fd: int) -> int:
    import logging

    from hookline.records.approvals.server import serve

    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    run(serve(state_folder() / "inbox", fd, find_agent))
    return 0


def _list(args: argparse.Namespace) -> int:
    found = _questions()
    if args.json:
        print(msgspec.json.encode(found).decode())
        return 0
    for one in found:
        print(_headline(one))
    if not found:
        print("no questions")
    return 0


def _show(args: argparse.Namespace) -> int:
    one = _find(args.question)
    print(msgspec.json.encode(one).decode() if args.json else "\n".join(_told(one)))
    return 0


def _approve(args: argparse.Namespace) -> int:
    return _decide(args, yes=True)


def _deny(args: argparse.Namespace) -> int:
    return _decide(args, yes=False)


def _decide(args: argparse.Namespace, *, yes: bool) -> int:
    require_person(f"inbox {args.action}")
    one = _find(args.question)
    if not args.json:
        print("\n".join(_told(one)))
    problem = run(ask_once({"do": "decide", "id": one.id, "yes": yes, "how": "terminal"}))["problem"]
    if problem:
        raise HooklineError(f"{one.id}: {problem}")
    print(json.dumps({"id": one.id, "yes": yes}) if args.json else f"{one.id}: {'yes, once' if yes else 'no'}")
    return 0


def _follow(args: argparse.Namespace) -> int:
    async def follow() -> None:
        known: dict[str, str] = {}
        async for found in request({"do": "list", "follow": True}):
            for one in msgspec.convert(found["questions"], list[AskedQuestion]):
                if known.get(one.id) != one.state:
                    known[one.id] = one.state
                    print(msgspec.json.encode(one).decode() if args.json else _headline(one), flush=True)

    try:
        run(follow())
    except KeyboardInterrupt:
        print(file=sys.stderr)
    return 0


ACTIONS = {"list": _list, "show": _show, "approve": _approve, "deny": _deny, "follow": _follow}


def _questions() -> list[AskedQuestion]:
    found: dict[str, Any] = run(ask_once({"do": "list"}))
    return msgspec.convert(found["questions"], list[AskedQuestion])


def _find(id: str) -> AskedQuestion:
    fitting = [one for one in _questions() if one.id.startswith(id)]
    if len(fitting) != 1:
        raise HooklineError(f"{one_line(id)}: {'no such question' if not fitting else 'fits several questions'}")
    return fitting[0]


def _headline(one: AskedQuestion) -> str:
    sign, colour = _SIGNS.get(one.state, ("·", "dim"))
    first = next(iter(parts_of(one.call)), None)
    shown = one_line(first.text, 80) if first else ""
    when = time.strftime("%H:%M:%S", time.localtime(one.made))
    return (
        f"{paint(sign, colour)} {one.id}  {when}  {one_line(one.call.tool or one.call.event)}: {shown}  {_state(one)}"
    )


def _state(one: AskedQuestion) -> str:
    return paint(one_line(shown_state(one)), "dim")


def _told(one: AskedQuestion) -> Iterator[str]:
    yield _headline(one)
    for title, text in (("why", one.why), ("asked by", one.hooks), ("agent", one.host), ("folder", one.call.cwd)):
        if text:
            yield f"  {title:<9} {one_line(text)}"
    for part in parts_of(one.call):
        yield f"  {one_line(part.title)}:"
        yield from (f"    {line}" for line in lines(part.text))
    for line in one.before:
        yield f"  before    {one_line(line)}"
    for name, outcome in one.sent.items():
        yield f"  sent to   {one_line(f'{name}: {outcome}')}"
