"""`hookline answer HOST`: the command that agent CLIs run; whatever happens, they are answered in time, in their words.

A process of its own asks the hooks. This one only waits for it, with a deadline that lies before the host's: if the
hooks hang, crash, end the program, hold the interpreter or never import, the answer is the host's own deny.
"""

from __future__ import annotations

import asyncio
import math
import os
import select
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from hookline.core.engine import Verdict
from hookline.core.wire.json_text import read_object
from hookline.display import one_line
from hookline.errors import HooklineError
from hookline.events import Event
from hookline.hosts.answer import peek, refusal, refused, serve, speaker
from hookline.hosts.host import NO_WORDS, Host, Response, refuse_unasked
from hookline.hosts.table import HOSTS
from hookline.processes.service.client import write_all

if TYPE_CHECKING:
    from hookline.api import Hooks
    from hookline.hosts.install.entries import HookSource

DEADLINE = 20.0  # seconds until the host is answered without the hooks, unless the command says otherwise
Deliver = Callable[[Response], None]
MOST_BYTES = 50 * 1024 * 1024
_PROVING = "HOOKLINE_PROVE"
_GLANCE = 0.5  # seconds between two looks at whether the host has given up
_USAGE = """usage: hookline answer HOST [--hooks FILE.py | --settings FILE]
                            [--event NAME] [--deadline SECONDS]"""


class AnswerOptions(NamedTuple):
    """What the command line says."""

    host: Host
    hooks: str = ""
    settings: str = ""
    event: str = ""
    scope: str = "user"
    deadline: float = DEADLINE
    subagents: str = ""
    audit: str = ""

    @property
    def source(self) -> HookSource:
        from hookline.hosts.install.entries import HookSource

        return HookSource(self.hooks, self.settings, self.audit)


def main(argv: list[str]) -> int:
    """Read the host's payload on stdin and answer it."""
    started = time.monotonic()
    if not argv or argv[0] in ("-h", "--help"):
        from hookline.cli.options import examples

        print(examples("hookline answer"))
        return 0 if argv else 64
    if (host := HOSTS.get(argv[0])) is None:
        print(f"hookline answer: no host `{one_line(argv[0])}`; known are {', '.join(HOSTS)}", file=sys.stderr)
        return 2  # the deny that most hosts understand
    request, problem = parsed(host, argv[1:])
    until = started + request.deadline
    data = _read(0, until)
    if problem or data is None:
        return _write(_refused(request, HooklineError(problem or "the event did not arrive whole"), data or b""))
    if _PROVING in os.environ:  # tell the proof that we were asked; the canary that hangs is given up sooner
        from hookline.hosts.prove import canary

        kind = next((kind for kind in canary.KINDS if f"{canary.TOKEN}-{kind}".encode() in data), "")
        canary.note(os.environ[_PROVING], asked_for=request.event, scope=request.scope, canary=kind)
        until = min(until, started + canary.PATIENCE) if kind == "hang" else until
    return _write(answered(request, data, until))


def parsed(host: Host, words: Sequence[str]) -> tuple[AnswerOptions, str]:
    """The command line, and what is wrong with it; it was written by us, but anybody may have edited it."""
    given: dict[str, Any] = {}
    rest = list(words)
    while rest:
        flag, _, value = rest.pop(0).partition("=")
        name = flag.removeprefix("--")
        if not flag.startswith("--") or name not in AnswerOptions._fields[1:]:
            return AnswerOptions(host), f"unknown flag `{flag}` in the command; {_USAGE}"
        if not value and rest:
            value = rest.pop(0)
        if name in given:
            return AnswerOptions(host), f"`{flag}` stands twice in the command; {_USAGE}"
        given[name] = value
    try:
        deadline = float(given.get("deadline", DEADLINE))
    except ValueError:
        deadline = math.nan
    if not deadline > 0:
        return AnswerOptions(host), f"--deadline: expected seconds, got `{given['deadline']}`"
    given["deadline"] = min(deadline, host.config.longest)  # the host does not wait longer, whatever its file says
    return AnswerOptions(host, **given), ""


def _read(source: int, until: float) -> bytes | None:
    """Everything on a descriptor; `None` if it does not end in time or is too long."""
    data = b""
    while len(data) <= MOST_BYTES:
        left = until - time.monotonic()
        if left <= 0 or not select.select([source], [], [], left)[0]:
            return None
        if not (chunk := os.read(source, 1 << 16)):
            return data
        data += chunk
    return None


def _write(response: Response) -> int:
    for descriptor, data in ((1, response.stdout), (2, response.stderr)):
        write_all(descriptor, data)
    return response.exit_code


def answered(request: AnswerOptions, data: bytes, until: float) -> Response:
    """What the hooks say, asked in a process of their own; the host's deny if they say nothing in time."""
    if not hasattr(os, "fork"):
        said: list[Response] = []
        _judge(request, data, until, said.append)  # Windows: there a hook that ends the program is not caught
        return said[0]
    from hookline.processes.watch import NoAnswer, answer_in_time

    def work(deliver: Callable[[bytes], None]) -> None:
        _judge(request, data, until, lambda response: deliver(msgspec.json.encode(response)))

    try:
        return msgspec.json.decode(answer_in_time(work, until), type=Response)
    except NoAnswer as problem:
        return _refused(request, HooklineError(f"the hooks {problem}"), data)


def _refused(request: AnswerOptions, problem: BaseException, data: bytes) -> Response:
    """The host's deny; the fleet's log shows why."""
    from hookline.cli.options import record_refusal

    record_refusal(lambda: peek(request.host, data, request.event), refusal(problem, None))
    from hookline.records.approvals.inbox import alert

    asyncio.run(alert("refused", f"{request.host.title}: the hooks could not be asked", str(problem)))
    return refused(request.host, problem, data, event=request.event)


def _judge(request: AnswerOptions, data: bytes, until: float, deliver: Deliver) -> None:
    """Load the hooks, ask them, deliver the answer; what they still do in the background comes after it."""
    try:
        payload = read_object(data)
        host = request.host if payload is None else speaker(request.host, payload, HOSTS.values())
        if _judged_elsewhere(request, host, data):
            return deliver(Response())
        hooks = _load(request)
    except (Exception, SystemExit) as problem:  # noqa: BLE001 - a hook file may raise anything
        return deliver(_refused(request, problem, data))
    return asyncio.run(_ask(hooks, request._replace(host=host), data, until, deliver))


async def _ask(hooks: Hooks, request: AnswerOptions, data: bytes, until: float, deliver: Deliver) -> None:
    from hookline.hosts.judged_calls import leave

    async with hooks:
        left = max(until - time.monotonic() - 0.5, 0.1)  # enough to say which hook it was
        note = partial(leave, request.host, request.source.flags)
        cwd = str(Path.cwd())
        deliver(await serve(hooks, request.host, data, event=request.event, cwd=cwd, deadline=left, note=note))


def _load(request: AnswerOptions) -> Hooks:
    from hookline.api import report_trouble
    from hookline.cli.options import hooks_from, with_fleet_policy

    own = hooks_from(request.source, trust="error")
    if request.scope == "project" and request.host.config.replaces:
        from hookline.hosts.install.survey import silenced_user_hooks

        for source in silenced_user_hooks(request.host, request.event, request.source):
            more = hooks_from(source, trust="error").hooks
            own.add(*(msgspec.structs.replace(hook, name=f"{hook.name} (user)") for hook in more))
    hooks = with_fleet_policy(own)
    refuse_unasked(hooks, request.host, request.subagents)
    if report_trouble not in hooks.engine.observers:
        hooks.observe(report_trouble)
    words = request.host.says.get(request.host.ours(request.event) or "PreToolUse", NO_WORDS)
    if hooks.engine.on_ask is None and "deny" in words:
        hooks.engine.on_ask = partial(_ask_people, hooks, request.host.title, able="ask" in words)
    if _PROVING in os.environ:
        from hookline.hosts.prove.canary import attach

        attach(hooks, os.environ)
    return hooks


async def _ask_people(hooks: Hooks, host: str, verdict: Verdict, *, able: bool) -> Any:
    """Put an `ask` to the people of the user's settings, for as long as the host is there to hear the answer."""
    from hookline.api import ask_inbox

    parent = os.getppid()
    asking = asyncio.ensure_future(ask_inbox(verdict, host, able=able, before=partial(_before, hooks)))
    while not (await asyncio.wait({asking}, timeout=_GLANCE))[0]:
        if os.getppid() != parent:
            asking.cancel()
            return False
    return await asking


def _before(hooks: Hooks, event: Event) -> list[str]:
    """What the session did before this event, if a log of these hooks says so."""
    from hookline.core.files import default_log
    from hookline.records.console.records import recent

    found = (recent(log, event.session_id) for log in (*hooks.engine.observers.logs, default_log()) if log.exists())
    return next(filter(None, found), [])


def _judged_elsewhere(request: AnswerOptions, host: Host, data: bytes) -> bool:
    """Whether the user's own entry asks the same hooks about this event, so that this one may be silent."""
    from hookline.hosts.install.entries import asks, mark_handled, was_handled

    if request.host.config.replaces and request.scope == "project":
        return False  # then the user's entry is never asked
    asked = (host, request.event, request.hooks or request.settings or request.audit, data)
    if host is request.host and request.scope == "user":
        mark_handled(*asked)
        return False
    return asks(host, request.event, request.source) and was_handled(*asked)
