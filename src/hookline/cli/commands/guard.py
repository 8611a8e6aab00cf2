"""`hookline guard`: a guard as a command hook, so that a settings file needs one line."""

import argparse
import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from functools import cache
from typing import BinaryIO

import msgspec

from hookline.api import Hooks
from hookline.cli.options import add_commands, parser_for, record_refusal, with_fleet_policy
from hookline.core.files import state_folder
from hookline.core.hooks import Hook
from hookline.core.interpreter import temporary_folder
from hookline.core.wire import claude
from hookline.errors import HooklineError
from hookline.events import Event
from hookline.guards import approvals, commands, paths, protect, secrets
from hookline.hosts.answer import answer
from hookline.processes.stdout import claim_stdout
from hookline.replies import Decision, Reply

FAILED = 2


def main(argv: list[str]) -> int:
    """Read the event on stdin, print the answer; an event that cannot be judged, for whatever reason, is blocked."""
    args = _arguments(*argv)
    try:
        hooks = Hooks()
        hooks.add(*_GUARDS[args.guard](args))
        work = _serve(with_fleet_policy(hooks), claim_stdout(), lines=args.lines)
        if args.lines:
            return asyncio.run(work)
        with closing(asyncio.new_event_loop()) as loop:  # what is left ends with the event: `run` would look for it
            return loop.run_until_complete(work)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - Claude Code lets a call pass unless the code is 2
        why = f"hookline guard {args.guard}: {str(error) or type(error).__name__}"
        print(why, file=sys.stderr)
        if not args.lines:  # there, stdin may stay open, and no event of it has been refused yet
            record_refusal(lambda: [claude.decode_event(sys.stdin.buffer.read())], why)
        return FAILED


@cache  # the service's forks find it made, and this
def _arguments(*argv: str) -> argparse.Namespace:
    flags = parser_for("guard")
    add_commands(flags, "guard", dest="guard", metavar="GUARD")
    return flags.parse_args(argv)


def _make_paths(args: argparse.Namespace) -> list[Hook]:
    also = [*args.also, *([temporary_folder()] if args.temporary else [])]
    given = {"show": args.show, "unprotect": args.unprotect}
    made = paths.stay_inside(args.root, also, read=args.read, undecided=args.undecided, confine=args.confine, **given)
    made += [commands.block(args.block, undecided=args.undecided, confine=args.confine)] if args.block else []
    own = [protect.own_files(held=args.confine == "auto")] if args.protect else []
    return [*made, *(_make_network(args) if args.host else []), *own, *_make_packs(args)]


def _make_network(args: argparse.Namespace) -> list[Hook]:
    from hookline.guards import network

    given = {"sockets": args.socket, "tokens": args.token, "ask_for_others": args.ask_for_others}
    return [network.only(args.host, confine=args.confine, **given)]


def _make_packs(args: argparse.Namespace) -> list[Hook]:
    if not args.packs:
        return []
    from hookline.guards.packs import from_file

    return from_file(args.packs, confine=getattr(args, "confine", None))


def _make_commands(args: argparse.Namespace) -> list[Hook]:
    made = [commands.block(args.block, undecided=args.undecided, confine=args.confine)] if args.block else []
    if args.only:
        made.append(commands.only(args.only, undecided=args.undecided))
    if args.containing:
        made.append(commands.containing(args.containing))
    if not made:
        raise HooklineError("say what to judge: --block PATTERN, --only PATTERN or --containing TEXT")
    return made


def _make_learned(args: argparse.Namespace) -> list[Hook]:
    from hookline.guards import learned

    return [learned.approve(args.file), protect.own_files(learned.read_policy(args.file).protect)]


def _make_budget(args: argparse.Namespace) -> list[Hook]:
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
    from hookline.guards import budget

    return [budget.rate(args.calls, args.per, match=args.match, state=state_folder() / "rates")]


def _make_flow(args: argparse.Namespace) -> list[Hook]:
    from hookline.guards.flow import flow

    given = {"strict": args.strict, "me": args.me, "known": args.known}
    return flow(args.config, **{name: value for name, value in given.items() if value})


_GUARDS: dict[str, Callable[[argparse.Namespace], list[Hook]]] = {  # what makes each; its options: `texts/flags.json`
    "paths": _make_paths,
    "commands": _make_commands,
    "network": _make_network,
    "protect": lambda args: [protect.own_files(args.also, answer="deny" if args.deny else "ask"), *_make_packs(args)],
    "secrets": lambda args: secrets.redact() if args.redact else secrets.block(),
    "approvals": lambda args: [approvals.auto(args.allow or approvals.SAFE, otherwise=args.otherwise)],
    "learned": _make_learned,
    "budget": _make_budget,
    "branches": _make_branches,
    "flow": _make_flow,
    "rate": _make_rate,
}


async def _serve(hooks: Hooks, stdout: BinaryIO, *, lines: bool) -> int:
    async with hooks:
        codec = _Codec()
        while lines and (line := await asyncio.to_thread(sys.stdin.buffer.readline)):
            stdout.write(await answer(hooks, line, codec) + b"\n")
            stdout.flush()
        if lines:
            return 0
        said = await answer(hooks, sys.stdin.buffer.read(), codec)
        if codec.problem:
            print(codec.problem, file=sys.stderr)
            return FAILED
        stdout.write(said + b"\n")
        stdout.flush()
        if codec.denied and _alerts_wanted():
            from hookline.records.approvals.inbox import alert

            await alert("denied", "", f"the last one: {codec.denied}")
    return 0


def _alerts_wanted() -> bool:
    """Whether settings mention alerts: a look at two files, so that a guard imports nothing for those who want none."""
    if "HOOKLINE_REHEARSAL_0" in os.environ:
        return False
    own = os.path.expanduser("~/.claude/settings.json")  # noqa: PTH111 - `pathlib` is slower, and this is a gate
    for path in (own, "/etc/claude-code/managed-settings.json"):
        with suppress(OSError), open(path, "rb") as file:  # noqa: PTH123 - the same
            if b'"alerts"' in file.read():
                return True
    return False


class _Codec:
    """Claude Code's words, a line for an event; what was denied last, and what could not be judged, is remembered."""

    denied, problem = "", ""
    decode = staticmethod(claude.decode_event)

    def encode(self, reply: Reply, event: Event) -> bytes:
        self.denied = f"{event.tool_name}: {reply.reason}" if reply.decision is Decision.DENY else ""
        return claude.encode_reply(reply, event)

    def refuse(self, problem: BaseException, data: bytes, event: Event | None) -> bytes:
        self.problem = f"the guard cannot judge this: {problem}"
        return msgspec.json.encode({"decision": "block", "reason": self.problem})
