"""`hookline fire`: one event through the configured hooks, and why it ended as it did."""

import argparse
import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from hookline.api import Hooks
from hookline.cli.options import TimeKeeper, cold, hooks_of, hosted, parser_for, run
from hookline.cli.style import folded, painted, width
from hookline.core.engine import Outcome, Status, Verdict
from hookline.core.hooks import Hook
from hookline.core.wire import claude
from hookline.core.wire.json_text import parse_object, write
from hookline.display import one_line
from hookline.errors import EventError, HooklineError
from hookline.events import Event, spec_of
from hookline.processes.stdout import borrowed_stdout, claim_stdout
from hookline.processes.supervised import ChildExit, supervise
from hookline.processes.watch import SharedDeadline
from hookline.replies import deny
from hookline.settings.parse import InAgent, never

BLOCKED, UNSURE = 2, 1


def main(argv: list[str]) -> int:
    """Fire and explain; exit 0 when allowed, 2 when blocked."""
    args = parser_for("fire").parse_args(argv)
    event = _event(args)
    due = SharedDeadline()

    def work() -> int:
        stdout = claim_stdout() if args.json else sys.stdout.buffer
        with nullcontext() if args.json else borrowed_stdout():
            verdict, others, errors = _judge(event, args, TimeKeeper(due))
        _tell(verdict, others, args, stdout)
        return BLOCKED if verdict.blocked else UNSURE if errors else 0

    def lost(death: ChildExit) -> int:
        """A gate whose hooks ended the process is shut; elsewhere there is just no verdict."""
        from hookline.hosts.answer import fails_closed

        if not fails_closed(event):
            raise HooklineError(f"{death}; there is no verdict")
        outcome = Outcome(
            hook="a hook", source="", event=event.event_name, status=Status.FAILED, reply=deny(death.reason), ms=0.0,
            exit_code=death.exit_code, error=str(death), stderr=death.stderr,
        )  # fmt: skip
        _tell(Verdict(event, outcome.reply, known=(outcome,)), [], args, sys.stdout.buffer)
        return BLOCKED

    return supervise(work, lost, "hookline fire", due)


def _judge(event: Event, args: argparse.Namespace, time: TimeKeeper) -> tuple[Verdict, list[str], int]:
    """A verdict, what else there is to say, and how many entries of the files could not be understood."""
    time.loading()
    hooks = time.watch(hooks_of(args, runners=cold))
    verdict, others = run(_fire(hooks, event, args))
    return verdict, others, len(hooks.settings.loaded.errors) if hooks.settings else 0


def _tell(verdict: Verdict, others: list[str], args: argparse.Namespace, stdout: BinaryIO) -> None:
    if args.json:
        try:
            said = msgspec.json.encode(verdict.to_dict(), enc_hook=str)
        except UnicodeEncodeError:  # a hook's lone surrogate is shown, and does not cost the verdict
            said = json.dumps(verdict.to_dict(), default=str).encode()
    else:
        lines = [line for text in (verdict.explain(width()), *others) for line in text.splitlines()]
        said = "\n".join(map(painted, lines)).encode(sys.stdout.encoding, "backslashreplace")
    stdout.write(said + b"\n")
    stdout.flush()


def _event(args: argparse.Namespace) -> Event:
    """The event from flags, or from stdin when its name is `-` or missing."""
    if args.bash is not None:
        if args.event != "-" or args.tool is not None or args.input is not None:
            raise EventError("--bash names event, tool and input by itself; leave those out")
        args.event, args.tool = "PreToolUse", "Bash"
        args.input = write({"command": args.bash}, "--bash", EventError).decode()
    if args.event == "-":
        if sys.stdin.isatty():
            raise EventError("no event; name one, as in `hookline fire PreToolUse --tool Bash`, or send JSON on stdin")
        payload = parse_object(sys.stdin.buffer.read())
    else:
        payload = {"hook_event_name": spec_of(args.event).name}
    project = str(Path(args.project).resolve())
    payload = {"session_id": "fire", "cwd": args.cwd or project, **payload, **_flags(args)}
    return claude.decode_event(payload)


def _flags(args: argparse.Namespace) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if args.tool is not None:
        said["tool_name"] = args.tool
    if args.input is not None:
        said["tool_input"] = parse_object(_text_of(args.input), "--input")
    for pair in args.field:
        name, equals, value = pair.partition("=")
        if not equals:
            raise EventError(f"--field: expected NAME=VALUE, got `{pair}`")
        try:
            said[name] = msgspec.json.decode(value)
        except msgspec.DecodeError:
            said[name] = value
    return said


def _text_of(given: str) -> str | bytes:
    """An argument itself, or what it stands for: `-` is stdin, `@FILE` a file."""
    if given == "-":
        return sys.stdin.buffer.read()
    if not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).read_bytes()
    except OSError as problem:
        raise EventError(f"--input: cannot read `{given[1:]}`: {(problem.strerror or str(problem)).lower()}") from None


async def _fire(hooks: Hooks, event: Event, args: argparse.Namespace) -> tuple[Verdict, list[str]]:
    async with hooks, hosted(hooks, model=args.model, mcp_config=args.mcp_config, cwd=event.cwd):
        verdict = await hooks.fire(event)
        late = await hooks.drain()
    others = [
        one_line(f"… {outcome.hook}, later: {said or outcome.error or 'nothing to say'}")
        for outcome in late  # what hooks in the background said after the verdict
        for said in [" ".join([*outcome.reply.context, *outcome.reply.messages])]
    ]
    reasons = [(hook.name, why_not(hooks, hook, event)) for hook in hooks.hooks if type(event) in hook.events]
    others += [one_line(f"· {name} was not asked: {why}") for name, why in reasons if why]
    return verdict, [folded(line, 2, 4) for line in others]


def why_not(hooks: Hooks, hook: Hook, event: Event) -> str:
    """Why a hook of the event does not run, or nothing if it does."""
    if hooks.engine.applies_to(hook, event):
        return ""
    if not hook.matcher.matches(event.subject):
        return f"its matcher `{hook.matcher.pattern}` does not match `{event.subject}`"
    if hook.condition is not None:
        return f"its condition `{hook.condition}` does not hold"
    if hook.when is never:
        return "its condition cannot be understood; see `hookline check`"
    if isinstance(hook.when, InAgent):
        return f"it counts only while the agent `{hook.when.agent}` runs"
    return "its predicate said no"
