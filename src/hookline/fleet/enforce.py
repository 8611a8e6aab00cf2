"""The fleet's policy as hooks: loaded beside the user's own, wherever Hookline answers on this machine.

A policy that was changed on the machine, or cannot be loaded, is not skipped: every gate is denied until the hub has
sent it again, because nobody can tell what it would have said.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from hookline.api import Hooks
from hookline.core.engine import Outcome, Status, Verdict
from hookline.core.hooks import Hook, make_hook
from hookline.errors import HooklineError
from hookline.events import CATALOG, Event, spec_of
from hookline.fleet.machine import Enrolment, Machine
from hookline.hook_file import load_hooks
from hookline.records.audit import AuditLog
from hookline.replies import NOTHING, Reply, ask, deny

if TYPE_CHECKING:
    from collections.abc import Callable

HOOKS_FILE, SETTINGS_FILE = "hooks.py", "settings.json"
PRIORITY = 1_000
"""Before the user's own hooks: what the team forbids is refused first, and named first."""


def policy_hooks(machine: Machine | None = None) -> tuple[Hook, ...]:
    """The hooks of the policy in force; none on a machine that is in no fleet, or has not been given one yet.

    They are called `fleet/…`, so that nobody's own hook of the same name is in the way, and a verdict says whose it is.
    """
    machine = machine or Machine()
    if not machine.enrolled:
        return ()
    try:
        folder = machine.verified_policy()
        hooks = load_policy(folder) if folder is not None else ()
        return (*(msgspec.structs.replace(hook, name=f"fleet/{hook.name}") for hook in hooks), *_stale(machine))
    except HooklineError as problem:
        return (_refuse_all(f"the fleet's policy cannot be used: {problem}"),)


def govern(hooks: Hooks, machine: Machine | None = None) -> None:
    """Put a set of hooks under the fleet: its policy beside them, its audit log behind them."""
    machine = machine or Machine()
    if not machine.enrolled:
        return
    if policy := policy_hooks(machine):
        hooks.add(*policy)
    if log := _audit_log(machine):
        hooks.observe(log, inline=True)


def record_refusal(events: Iterable[Event], why: str, machine: Machine | None = None) -> None:
    """Put events that were refused before any hook could judge them in the fleet's log, like any other verdict."""
    if log := _audit_log(machine or Machine()):
        for event in events:
            reply = deny(why) if "deny" in spec_of(event).decisions else NOTHING
            failed = Outcome(hook="hookline", event=event.event_name, status=Status.FAILED, reply=reply, error=why)
            log(Verdict(event, reply, known=(failed,)))
        log.close()


def _audit_log(machine: Machine) -> AuditLog | None:
    path = machine.enrolment().audit
    if not path:
        return None
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    return AuditLog(path, sync="line")


def load_policy(folder: Path) -> tuple[Hook, ...]:
    """The hooks of a policy folder: those of `hooks.py`, then those of `settings.json`."""
    return tuple(_loaded(folder))


def _loaded(folder: Path) -> Iterator[Hook]:
    if (folder / HOOKS_FILE).exists():
        before, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # nothing may appear beside signed files
        try:
            yield from load_hooks(folder / HOOKS_FILE).hooks
        finally:
            sys.dont_write_bytecode = before
    if (folder / SETTINGS_FILE).exists():
        problems: list[str] = []
        made = Hooks.from_settings(
            folder, settings=folder / SETTINGS_FILE, setting_sources=(), managed=folder / "none", trust="all",
            watch=False, on_problem=lambda problem: problems.append(str(problem)),
        )  # fmt: skip
        if problems:
            from hookline.errors import FleetError

            raise FleetError(f"{SETTINGS_FILE}: {problems[0]}")
        yield from made.hooks


def _stale(machine: Machine) -> Iterator[Hook]:
    enrolment = machine.enrolment()
    hours = enrolment.stale_hours
    if not hours or enrolment.when_stale == "keep" or machine.hours_silent() <= hours:
        return
    yield _gate("fleet.stale", _stale_answer(enrolment))


def _stale_answer(enrolment: Enrolment) -> Callable[[Event], Reply]:
    why = f"this machine has not heard from its fleet's hub for {enrolment.stale_hours:g} hours"

    def answer(event: Event) -> Reply:
        if enrolment.when_stale == "ask" and "ask" in CATALOG[event.event_name].decisions:
            return ask(why)
        return deny(f"{why}; connect it, or ask whoever runs the fleet")

    return answer


def _refuse_all(why: str) -> Hook:
    return _gate("fleet.policy", lambda event: deny(f"{why}; run `hookline fleet status`"))


def _gate(name: str, answer: Callable[[Event], Reply]) -> Hook:
    """A hook on every gate that can be denied."""
    gates = tuple(row.cls for row in CATALOG.values() if row.gate and "deny" in row.decisions)

    async def run(event: Event) -> Reply:
        return answer(event)

    return make_hook(gates, run, name=name, priority=PRIORITY)
