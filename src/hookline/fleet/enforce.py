"""The fleet's policy as hooks: in force beside the user's own, wherever Hookline answers on this machine.

A policy that was changed or removed on the machine, or cannot be loaded, is not skipped: every gate is denied until the
hub has sent it again, because what it would have said is not known.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import msgspec

from hookline.api import Hooks
from hookline.core.engine import Notice, Outcome, Status, Verdict
from hookline.core.engine.composition import second_judgement, unenforced
from hookline.core.files import private_folder
from hookline.core.hooks import Hook, make_hook
from hookline.core.hooks.declare import Options
from hookline.core.interpreter import ISOLATED, python_argv
from hookline.core.wire.dialects import detect, dialect
from hookline.errors import FleetError, HooklineError
from hookline.events import CATALOG, Event, spec_of
from hookline.fleet.bundle import TESTS
from hookline.fleet.machine import Enrolment, Machine
from hookline.hook_file import load_hooks
from hookline.records.audit import AuditLog
from hookline.replies import NOTHING, Reply, ask, deny
from hookline.runners import Services, runner_for
from hookline.settings.files import parse_json

if TYPE_CHECKING:
    from hookline.records.replay.compare import Report

HOOKS_FILE, SETTINGS_FILE = "hooks.py", "settings.json"
CHECK_SECONDS = 120.0
PREVIEW_DAYS = 7.0


def policy_hooks(machine: Machine | None = None) -> tuple[Hook, ...]:
    """The hooks of the policy in force; none on a machine that is in no fleet, or has not been given one yet.

    They are called `fleet/…`, so that a user's hook of the same name is not in the way, and a verdict says whose it is.
    """
    machine = machine or Machine()
    if not machine.enrolled:
        return ()
    try:
        policy = machine.verified_policy()
        hooks = load_policy(*policy) if policy is not None else ()
        stale = [_gate("fleet.stale", partial(_stale_answer, machine.enrolment()))] if _is_stale(machine) else []
        return (*(msgspec.structs.replace(hook, name=f"fleet/{hook.name}") for hook in hooks), *stale)
    except HooklineError as problem:
        why = f"the fleet's policy cannot be used: {problem}; run `hookline fleet status`"
        return (_gate("fleet.policy", lambda event: deny(why)),)


def govern(hooks: Hooks, machine: Machine | None = None) -> Hooks:
    """A set of hooks under the fleet: its policy beside them, in a set of its own, and its audit log behind both."""
    machine = machine or Machine()
    if not machine.enrolled:
        return hooks
    governed = GovernedHooks(hooks, machine)
    if log := _audit_log(machine):
        governed.observe(log, inline=True)
    return governed


def record_refusal(events: Iterable[Event], why: str, machine: Machine | None = None) -> None:
    """Put events that were refused before any hook could judge them in the fleet's log, like any other verdict."""
    if log := _audit_log(machine or Machine()):
        for event in events:
            reply = deny(why) if "deny" in spec_of(event).decisions else NOTHING
            failed = Outcome(hook="hookline", event=event.event_name, status=Status.FAILED, reply=reply, error=why)
            log(Verdict(event, reply, known=(failed,)))
        log.close()


def _audit_log(machine: Machine) -> AuditLog | None:
    """Each record says which version of the policy was in force, so that the hub sees a step back."""
    if not (path := machine.enrolment().audit):
        return None
    private_folder(Path(path).parent)
    return AuditLog(path, sync="line", labels=lambda: {"policy": machine.version_in_force()})


def load_policy(folder: Path, files: Mapping[str, bytes] | None = None) -> tuple[Hook, ...]:
    """The hooks of a policy folder: those of `hooks.py`, then those of `settings.json`, or of `files` as read."""
    if files is None:
        files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    folder, hooks = folder.resolve(), list[Hook]()
    if HOOKS_FILE in files:
        for name, module in list(sys.modules.items()):  # an older version's imports are not meant by the same names
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and Path(file).is_relative_to(folder.parent):
                del sys.modules[name]
        before, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # nothing may appear beside signed files
        try:
            hooks += load_hooks(folder / HOOKS_FILE, {str(folder / name): data for name, data in files.items()}).hooks
        finally:
            sys.dont_write_bytecode = before
    if SETTINGS_FILE in files:
        problems: list[str] = []
        value, wrong = parse_json(files[SETTINGS_FILE].decode("utf-8-sig", "replace"), SETTINGS_FILE)
        if not isinstance(value, dict):
            raise FleetError(f"{SETTINGS_FILE}: {wrong[0].message if wrong else 'must be an object'}")
        made = Hooks.from_settings(
            folder, settings=value, setting_sources=(), managed=folder / "none", trust="all",
            watch=False, on_problem=lambda problem: problems.append(str(problem)),
        )  # fmt: skip
        if problems:
            raise FleetError(f"{SETTINGS_FILE}: {problems[0]}")
        hooks += made.hooks
    return tuple(hooks)


def _is_stale(machine: Machine) -> bool:
    with contextlib.suppress(FleetError):  # the policy cannot be used at all then
        said = machine.enrolment()
        return bool(said.stale_hours) and said.when_stale != "keep" and machine.hours_silent() > said.stale_hours
    return False


def _stale_answer(enrolment: Enrolment, event: Event) -> Reply:
    why = f"this machine has not heard from its fleet's hub for {enrolment.stale_hours:g} hours"
    if enrolment.when_stale == "ask" and "ask" in CATALOG[event.event_name].decisions:
        return ask(why)
    return deny(f"{why}; connect it, or ask your fleet's administrator")


def _gate(name: str, answer: Callable[[Event], Reply]) -> Hook:
    gates = tuple(row.cls for row in CATALOG.values() if row.gate and "deny" in row.decisions)

    async def run(event: Event) -> Reply:
        return answer(event)

    return make_hook(gates, run, name=name)


class GovernedHooks(Hooks):
    """The user's set `own` under the machine's policy, which is read again when its files change or it gets stale.

    The stricter answer counts, and neither set can reach the other: whatever the user's file does to its own (it only
    evaluates, it lifts questions, it is switched off, it is a class of its own), the team's is asked about the same
    event. Hooks that are added go to the user's set; observers see the merged verdicts, and what both sets' hooks do.
    """

    def __init__(self, own: Hooks, machine: Machine) -> None:
        self.own = own
        self._machine = machine
        self._team: tuple[object, Hooks] | None = None
        self._replaced: list[Hooks] = []
        services = own.services
        super().__init__(project_dir=own.engine.project_dir)
        self.services = services
        self.settings = own.settings
        self.engine.refresh_with(lambda: None)  # no event is skipped: either set may want it
        for observer, inline in own.engine.observers.take():
            self.observe(observer, inline=inline)
        self._attach(own)

    def _attach(self, part: Hooks) -> Hooks:
        """What a part's hooks do, and what they still do in the background, is heard of here."""
        part.engine.background = part.engine.dispatcher.background = self.engine.background
        part.engine.on_late = self._late
        part.observe(self._pass_on, inline=True)
        return part

    def _late(self, outcome: Outcome) -> None:
        if self.engine.on_late is not None:
            self.engine.on_late(outcome)

    def _pass_on(self, notice: Notice) -> None:
        """Of verdicts, only the one that counts is told."""
        if not isinstance(notice, Verdict):
            self.engine.observers.notify(notice)

    @property
    def policy(self) -> Hooks:
        """The team's set, as it is now; made of nothing that the user's file can set."""
        state = (self._machine.policy_state(), _is_stale(self._machine))
        if self._team is None or self._team[0] != state:
            wanted = policy_hooks(self._machine)
            if self._team is not None:
                self._replaced.append(self._team[1])
            project = "" if self.settings is None else self.own.engine.project_dir
            made = Hooks(project_dir=project, runners=lambda kind, _: runner_for(kind, lambda: self.services))
            made.engine.enabled = True  # whatever the environment says
            if wanted:
                made.add(*wanted)
            self._team = state, self._attach(made)
        return self._team[1]

    @property
    def services(self) -> Services:
        return self.own.services

    @services.setter
    def services(self, services: Services) -> None:
        self.own.services = services

    @property
    def hooks(self) -> tuple[Hook, ...]:
        return (*self.policy.hooks, *self.own.hooks)

    def on(self, *events: Any, **options: Unpack[Options]) -> Any:
        return self.own.on(*events, **options)

    def add(self, *things: Any, **options: Unpack[Options]) -> tuple[Hook, ...]:
        return self.own.add(*things, **options)

    def remove(self, name: str) -> Hook:
        """Take a hook out of the user's set; the team's cannot be removed."""
        return self.own.remove(name)

    async def fire(
        self, event: Event | Mapping[str, Any], deadline: float | None = None, only: str | None = None
    ) -> Verdict:
        if isinstance(event, Mapping):
            event = dialect(detect(event)).decode_event(event)
        verdict = await self._judge(event, deadline, only)
        if verdict.evaluated is not None:
            return unenforced(self.engine.notify(msgspec.structs.replace(verdict, reply=verdict.evaluated)))
        return self.engine.notify(verdict)

    async def _judge(self, event: Event, deadline: float | None, only: str | None) -> Verdict:
        """The team first, with all the time there is; then the user, about what the team would let run."""
        policy = self.policy
        if only is not None:
            named = any(hook.name == only for hook in policy.hooks)
            return await (policy if named else self.own).fire(event, deadline, only)
        if (first := await policy.fire(event, deadline)).blocked:
            return first
        judged = _with_input(event, first.reply)
        mine = await self.own.fire(judged, deadline)
        said = NOTHING if mine.evaluated is not None else mine.reply
        team, outcomes = first.reply, (*first.outcomes, *mine.outcomes)
        if said.input is not None and said.input != getattr(judged, "tool_input", None) and not mine.blocked:
            second = await policy.fire(_with_input(event, said), deadline)
            team = msgspec.structs.replace(second_judgement(team, second.reply), input=second.reply.input)
            note = "asked about the rewritten input"
            outcomes += tuple(msgspec.structs.replace(one, note=one.note or note) for one in second.outcomes)
        evaluated = mine.evaluated if team == NOTHING else None
        return Verdict(
            event, said | team, chosen=(*first.chosen, *mine.chosen), known=outcomes, evaluated=evaluated,
            approval=mine.approval or first.approval,
        )  # fmt: skip

    async def aclose(self, limit: float = 5.0) -> list[Outcome]:
        late = await self.engine.background.drain(limit)
        for part in (self.policy, *self._replaced, self.own):
            late += await part.aclose(0.0)
        return late + await super().aclose(0.0)


def _with_input(event: Event, reply: Reply) -> Event:
    """The event with the input that a reply would have run."""
    return event if reply.input is None else msgspec.structs.replace(event, tool_input=reply.input)


# -- a policy, tried before it is in force: it must load, pass the tests it brings, and show what it would change ------
#
# It runs in a process of its own, because a policy's code is run for the first time here; the problems are a JSON list
# in the last line of its output.


class PolicyTest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of `tests.jsonl`."""

    event: dict[str, Any]
    decision: str
    by: str | None = None  # the hook that should decide, if that matters


def check_in_process(folder: Path) -> list[str]:
    """The problems of a policy folder, found in a process of its own; empty means that it may be put in force."""
    options = (*ISOLATED, "-B")
    command = python_argv("from hookline.fleet.enforce import main; sys.exit(main())", str(folder), options=options)
    try:
        ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=CHECK_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return [f"the policy could not be checked within {CHECK_SECONDS:.0f} s"]
    with contextlib.suppress(IndexError, msgspec.DecodeError):  # it ended before it could say anything
        return msgspec.json.decode(ran.stdout.splitlines()[-1], type=list[str])
    words = ran.stderr.decode("utf-8", "replace").strip().splitlines()
    return [f"checking the policy ended with exit code {ran.returncode}: {words[-1] if words else 'no output'}"]


def preview(audit: Path, policy: Path) -> Report | None:
    """What a policy would have changed among the hub's recent records; `None` if there are no records."""
    from hookline.fleet.ledger import logs_below
    from hookline.records.replay.compare import replay

    since = time.time() - PREVIEW_DAYS * 86_400
    logs = [path for path in logs_below(audit) if path.stat().st_mtime >= since]
    return replay(logs, partial(_hooks, policy), jobs=1) if logs else None


def _hooks(policy: Path) -> Hooks:
    hooks = Hooks()
    hooks.add(*load_policy(policy))
    return hooks


async def check(folder: Path) -> list[str]:
    """The problems of a policy folder, found in this process."""
    try:
        loaded = load_policy(folder)
    except HooklineError as problem:
        return [str(problem)]
    if not loaded:
        return ["the policy has no hooks; put a `hooks.py` or a `settings.json` with hooks there"]
    async with Hooks() as hooks:
        hooks.add(*loaded)
        return [problem async for problem in _failing(hooks, folder / TESTS)]


async def _failing(hooks: Hooks, path: Path) -> AsyncIterator[str]:
    for number, line in _tests(path):
        where = f"{TESTS}:{number}"
        try:
            test = msgspec.json.decode(line, type=PolicyTest)
            verdict = await hooks.fire(test.event)
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            yield f"{where}: not a test: {problem}"
        except HooklineError as problem:
            yield f"{where}: {problem}"
        else:
            if str(verdict.decision) != test.decision:
                yield f"{where}: expected `{test.decision}`, got `{verdict.decision}` ({verdict.reason or 'no reason'})"
            elif test.by is not None and verdict.decided_by != test.by:
                yield f"{where}: expected `{test.by}` to decide, and `{verdict.decided_by}` did"


def _tests(path: Path) -> list[tuple[int, bytes]]:
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [(number, line) for number, line in enumerate(lines, 1) if line.strip()]


def main() -> int:
    """Print the problems of the folder that is named; 0 if there are none."""
    problems = asyncio.run(check(Path(sys.argv[1])))
    sys.stdout.write("\n" + msgspec.json.encode(problems).decode() + "\n")
    return 1 if problems else 0
