"""`hookline guard`: a guard as a command hook, so that a settings file needs one line."""

from __future__ import annotations

import argparse
import asyncio
import sys
from functools import cache
from typing import BinaryIO

import msgspec
from msgspec import Struct

from hookline.api import Hooks
from hookline.cli.options import parser, record_refusal, with_fleet_policy
from hookline.core.hooks import Hook
from hookline.core.interpreter import temporary_folder
from hookline.core.wire import claude
from hookline.errors import HooklineError
from hookline.events import Event
from hookline.guards import approvals, commands, paths, protect, secrets
from hookline.hosts.answer import answer
from hookline.processes.loop import run
from hookline.processes.stdout import claim_stdout
from hookline.replies import Reply

_EXAMPLES = """in .claude/settings.json, as a command hook:
  "command": "hookline guard commands --block 'rm -rf *' --block 'sudo *'"
  "command": "hookline guard paths --also /tmp"
  "command": "hookline guard paths --confine auto --temporary --block 'sudo *'"
  "command": "hookline guard secrets"
  "command": "hookline guard approvals --allow 'ls *'"    (on PermissionRequest)
  "command": "hookline guard protect"
  "command": "hookline guard budget --tool-calls 200 --per-tool Bash=50"
  "command": "hookline guard branches --protect main --protect 'release/*'"
  "command": "hookline guard branches --no-force-push"
  "command": "hookline guard rate --calls 30 --per 60 --match 'mcp__.*'"

with "persistent": true and --lines it stays, and answers a line per event. Give the hook "onFailure": "block"."""

FAILED = 2
_REFUSAL = "the guard cannot judge this: {}"


def main(argv: list[str]) -> int:
    """Read the event on stdin, print the answer; an event that cannot be judged, for whatever reason, is blocked."""
    args = _arguments(*argv)
    try:
        hooks = Hooks()
        hooks.add(*_guards(args))
        return run(_serve(with_fleet_policy(hooks), claim_stdout(), lines=args.lines))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - Claude Code lets a call pass unless the code is 2
        why = f"hookline guard {args.guard}: {str(error) or type(error).__name__}"
        print(why, file=sys.stderr)
        if not args.lines:  # there, stdin may stay open, and no event of it has been refused yet
            record_refusal(lambda: [claude.decode_event(sys.stdin.buffer.read())], why)
        return FAILED


@cache  # the service's forks find it made, and this
def _arguments(*argv: str) -> argparse.Namespace:
    return _parser().parse_args(argv)


@cache
def _parser() -> argparse.ArgumentParser:
    flags = parser("guard", "Judge the event on stdin with a guard and print the answer.", _EXAMPLES)
    kinds = flags.add_subparsers(dest="guard", required=True, metavar="GUARD")
    _paths(kinds.add_parser("paths", help="stay inside the project's folder"))
    _commands(kinds.add_parser("commands", help="commands that may not be run, or the only ones that may"))
    _protect(kinds.add_parser("protect", help="ask before the files that switch guards off are written"))
    _secrets(kinds.add_parser("secrets", help="stop credentials, or take them out"))
    _approvals(kinds.add_parser("approvals", help="approve a safe-list without a prompt"))
    _budget(kinds.add_parser("budget", help="limit what a session may spend"))
    _branches(kinds.add_parser("branches", help="pushes that may not be made: to a branch, by force"))
    _rate(kinds.add_parser("rate", help="limit how fast calls may come"))
    for one in kinds.choices.values():
        one.add_argument("--lines", action="store_true", help="stay, and answer one line per event line")
    return flags


def _undecided(flags: argparse.ArgumentParser, default: str) -> None:
    flags.add_argument("--undecided", choices=["ask", "deny"], default=default, help="when a line cannot be read")


def _confine(flags: argparse.ArgumentParser) -> None:
    flags.add_argument(
        "--confine",
        choices=["auto", "off"],
        default="off",
        help="`auto`: where the kernel can hold a shell line, run it confined instead of asking about it",
    )


def _paths(flags: argparse.ArgumentParser) -> None:
    flags.add_argument("--root", metavar="DIR", help="the folder to stay in (default: the project)")
    flags.add_argument("--also", action="append", default=[], metavar="DIR", help="one more folder to write in")
    flags.add_argument("--read", action="store_true", help="keep reading inside, too")
    _undecided(flags, "ask")
    _confine(flags)
    flags.add_argument("--temporary", action="store_true", help="the system's temporary folder may be written in, too")
    flags.add_argument(
        "--block", action="append", default=[], metavar="PATTERN", help="also refuse to run this, such as 'sudo *'"
    )
    flags.add_argument(
        "--protect", action="store_true", help="also ask before files that switch guards off are written"
    )


def _protect(flags: argparse.ArgumentParser) -> None:
    flags.add_argument("--also", action="append", default=[], metavar="FILE", help="one more file or folder")
    flags.add_argument("--deny", action="store_true", help="deny instead of asking")


def _commands(flags: argparse.ArgumentParser) -> None:
    flags.add_argument("--block", action="append", default=[], metavar="PATTERN", help="such as 'rm -rf *'")
    flags.add_argument("--only", action="append", default=[], metavar="PATTERN", help="nothing but these")
    flags.add_argument("--containing", action="append", default=[], metavar="TEXT", help="a plain text to refuse")
    _undecided(flags, "ask")
    _confine(flags)


def _secrets(flags: argparse.ArgumentParser) -> None:
    flags.add_argument("--redact", action="store_true", help="take credentials out instead of stopping the call")


def _approvals(flags: argparse.ArgumentParser) -> None:
    flags.add_argument(
        "--allow", action="append", default=[], metavar="PATTERN", help="such as 'ls *' or 'Read(src/**)'"
    )
    flags.add_argument("--otherwise", choices=["block", "leave"], default="leave", help="what becomes of the rest")


def _budget(flags: argparse.ArgumentParser) -> None:
    flags.add_argument("--tool-calls", type=int, metavar="N", help="tool calls a session may make")
    flags.add_argument("--seconds", type=float, metavar="S", help="seconds a session may last")
    flags.add_argument("--per-tool", action="append", default=[], metavar="TOOL=N", help="calls of one tool")


def _branches(flags: argparse.ArgumentParser) -> None:
    flags.add_argument(
        "--protect",
        action="append",
        default=[],
        metavar="BRANCH",
        help="such as main or 'release/*' (default: main, master, unless --no-force-push is given)",
    )
    flags.add_argument(
        "--no-force-push", action="store_true", help="refuse what may take commits away: --force, +main, --delete"
    )
    flags.add_argument("--with-lease", action="store_true", help="with it, let --force-with-lease through")
    flags.add_argument("--delete", action="store_true", help="with it, let branches and tags be removed")
    _undecided(flags, "ask")


def _rate(flags: argparse.ArgumentParser) -> None:
    flags.add_argument("--calls", type=int, required=True, metavar="N", help="calls that may come in that time")
    flags.add_argument("--per", type=float, default=60.0, metavar="S", help="seconds (default: 60)")
    flags.add_argument(
        "--match", metavar="TOOLS", help="the tools that count, such as 'WebFetch|mcp__.*' (default: all)"
    )


def _guards(args: argparse.Namespace) -> list[Hook]:
    return _MAKE[args.guard](args)


def _make_paths(args: argparse.Namespace) -> list[Hook]:
    also = [*args.also, *([temporary_folder()] if args.temporary else [])]
    made = paths.stay_inside(args.root, also, read=args.read, undecided=args.undecided, confine=args.confine)
    if args.block:
        made.append(commands.block(args.block, undecided=args.undecided, confine=args.confine))
    return [*made, protect.own_files()] if args.protect else made


def _make_commands(args: argparse.Namespace) -> list[Hook]:
    made = []
    if args.block:
        made.append(commands.block(args.block, undecided=args.undecided, confine=args.confine))
    if args.only:
        made.append(commands.only(args.only, undecided=args.undecided))
    if args.containing:
        made.append(commands.containing(args.containing))
    if not made:
        raise HooklineError("say what to judge: --block PATTERN, --only PATTERN or --containing TEXT")
    return made


def _make_budget(args: argparse.Namespace) -> list[Hook]:
    from hookline.core.files import state_folder
    from hookline.guards import budget

    per_tool = {}
    for pair in args.per_tool:
        tool, _, number = pair.partition("=")
        if not number.isdigit():
            raise HooklineError(f"--per-tool: expected TOOL=N, got `{pair}`")
        per_tool[tool] = int(number)
    return budget.limit(args.tool_calls, args.seconds, per_tool, state=state_folder() / "budgets")


def _make_branches(args: argparse.Namespace) -> list[Hook]:
    from hookline.guards import branches

    if not args.no_force_push and (args.with_lease or args.delete):
        raise HooklineError("--with-lease and --delete go with --no-force-push")
    protected = args.protect or (() if args.no_force_push else ("main", "master"))
    made = [branches.protect(protected, undecided=args.undecided)] if protected else []
    if args.no_force_push:
        made.append(branches.no_force_push(with_lease=args.with_lease, delete=args.delete, undecided=args.undecided))
    return made


def _make_rate(args: argparse.Namespace) -> list[Hook]:
    from hookline.core.files import state_folder
    from hookline.guards import budget

    return [budget.rate(args.calls, args.per, match=args.match, state=state_folder() / "rates")]


_MAKE = {
    "paths": _make_paths,
    "commands": _make_commands,
    "protect": lambda args: [protect.own_files(args.also, answer="deny" if args.deny else "ask")],
    "secrets": lambda args: secrets.redact() if args.redact else secrets.block(),
    "approvals": lambda args: [approvals.auto(args.allow or approvals.SAFE, otherwise=args.otherwise)],
    "budget": _make_budget,
    "branches": _make_branches,
    "rate": _make_rate,
}
"""Which guard each word makes."""


async def _serve(hooks: Hooks, stdout: BinaryIO, *, lines: bool) -> int:
    async with hooks:
        if not lines:
            said = await answer(hooks, sys.stdin.buffer.read(), _OnceCodec())
            if said.code:
                print(said.text, file=sys.stderr)
            else:
                _write(stdout, said.text.encode())
            return said.code
        while line := await asyncio.to_thread(sys.stdin.buffer.readline):
            _write(stdout, await answer(hooks, line, _LineCodec()))
    return 0


def _write(stdout: BinaryIO, said: bytes) -> None:
    stdout.write(said + b"\n")
    stdout.flush()


class _HookOutput(Struct, frozen=True):
    """What a command hook leaves behind: an answer on stdout, or a reason on stderr."""

    text: str
    code: int = 0


class _OnceCodec:
    """Claude Code's words for a command that answers once; what cannot be judged is blocked with exit code 2."""

    def decode(self, data: bytes) -> Event:
        return claude.decode_event(data)

    def encode(self, reply: Reply, event: Event) -> _HookOutput:
        return _HookOutput(claude.encode_reply(reply, event).decode())

    def refuse(self, problem: BaseException, data: bytes, event: Event | None) -> _HookOutput:
        return _HookOutput(_REFUSAL.format(problem), FAILED)


class _LineCodec:
    """The same for a command that stays: each line is answered with one, also a line that cannot be read."""

    def decode(self, line: bytes) -> Event:
        return claude.decode_event(line)

    def encode(self, reply: Reply, event: Event) -> bytes:
        return claude.encode_reply(reply, event)

    def refuse(self, problem: BaseException, line: bytes, event: Event | None) -> bytes:
        return msgspec.json.encode({"decision": "block", "reason": _REFUSAL.format(problem)})
