"""The fleet's policy as hooks: in force beside the user's own, wherever Hookline answers on this machine.

A policy that was changed or removed on the machine, or cannot be loaded, is not skipped: every gate is denied until the
hub has sent it again, because what it would have said is not known.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from hookline.api import Hooks
from hookline.core.engine import Outcome, Status, Verdict
from hookline.core.files import private_folder
from hookline.core.hooks import Hook, make_hook
from hookline.errors import FleetError, HooklineError
from hookline.events import CATALOG, Event, spec_of
from hookline.fleet.governed import GovernedHooks
from hookline.fleet.machine import Enrolment, Machine
from hookline.hook_file import load_hooks
from hookline.records.audit import AuditLog
from hookline.replies import NOTHING, Reply, ask, deny
from hookline.settings.files import parse_json

HOOKS_FILE, SETTINGS_FILE = "hooks.py", "settings.json"


def policy_hooks(machine: Machine | None = None) -> tuple[Hook, ...]:
    """The hooks of the policy in force; none on a machine that is in no fleet, or has not been given one yet.

    They are called `fleet/…`, so that a user's hook of the same name is not in the way, and a verdict says whose it is.
    """
    machine = machine or Machine()
    if not machine.enrolled:
        return ()
    try:
        policy = machine.verified_policy()
        hooks = load_policy(policy.folder, policy.files) if policy is not None else ()
        return (*(msgspec.structs.replace(hook, name=f"fleet/{hook.name}") for hook in hooks), *_stale(machine))
    except HooklineError as problem:
        return (_refuse_all(f"the fleet's policy cannot be used: {problem}"),)


class PolicyInForce:
    """The policy's hooks at each event: read again when the machine's files have changed or the policy gets stale."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._state: object = None
        self._hooks: tuple[Hook, ...] = ()

    def __call__(self) -> tuple[Hook, ...]:
        """The same tuple as before, unless something has changed."""
        state = (self._machine.policy_state(), _is_stale(self._machine))
        if state != self._state:
            self._state, self._hooks = state, policy_hooks(self._machine)
        return self._hooks


def govern(hooks: Hooks, machine: Machine | None = None) -> Hooks:
    """A set of hooks under the fleet: its policy beside them, in a set of its own, and its audit log behind both."""
    machine = machine or Machine()
    if not machine.enrolled:
        return hooks
    governed = GovernedHooks(hooks, PolicyInForce(machine))
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
    path = machine.enrolment().audit
    if not path:
        return None
    private_folder(Path(path).parent)
    return AuditLog(path, sync="line", labels=lambda: {"policy": machine.version_in_force()})


def load_policy(folder: Path, files: Mapping[str, bytes] | None = None) -> tuple[Hook, ...]:
    """The hooks of a policy folder: those of `hooks.py`, then those of `settings.json`.

    `files` are its files as they were read and compared; they are not read a second time.
    """
    if files is None:
        files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return tuple(_loaded(folder.resolve(), files))


def _loaded(folder: Path, files: Mapping[str, bytes]) -> Iterator[Hook]:
    if HOOKS_FILE in files:
        _forget_modules(folder.parent)
        before, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # nothing may appear beside signed files
        try:
            yield from load_hooks(folder / HOOKS_FILE, {str(folder / name): data for name, data in files.items()}).hooks
        finally:
            sys.dont_write_bytecode = before
    if SETTINGS_FILE in files:
        problems: list[str] = []
        made = Hooks.from_settings(
            folder, settings=_settings(files[SETTINGS_FILE]), setting_sources=(), managed=folder / "none", trust="all",
            watch=False, on_problem=lambda problem: problems.append(str(problem)),
        )  # fmt: skip
        if problems:
            raise FleetError(f"{SETTINGS_FILE}: {problems[0]}")
        yield from made.hooks


def _settings(data: bytes) -> dict[str, Any]:
    value, problems = parse_json(data.decode("utf-8-sig", "replace"), SETTINGS_FILE)
    if not isinstance(value, dict):
        raise FleetError(f"{SETTINGS_FILE}: {problems[0].message if problems else 'must be an object'}")
    return value


def _forget_modules(policies: Path) -> None:
    """What an older version imported from beside itself is not what this one means by the same name."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and Path(file).is_relative_to(policies):
            del sys.modules[name]


def _stale(machine: Machine) -> Iterator[Hook]:
    if _is_stale(machine):
        yield _gate("fleet.stale", _stale_answer(machine.enrolment()))


def _is_stale(machine: Machine) -> bool:
    try:
        said = machine.enrolment()
    except FleetError:  # the policy cannot be used at all then
        return False
    return bool(said.stale_hours) and said.when_stale != "keep" and machine.hours_silent() > said.stale_hours


def _stale_answer(enrolment: Enrolment) -> Callable[[Event], Reply]:
    why = f"this machine has not heard from its fleet's hub for {enrolment.stale_hours:g} hours"

    def answer(event: Event) -> Reply:
        if enrolment.when_stale == "ask" and "ask" in CATALOG[event.event_name].decisions:
            return ask(why)
        return deny(f"{why}; connect it, or ask your fleet's administrator")

    return answer


def _refuse_all(why: str) -> Hook:
    return _gate("fleet.policy", lambda event: deny(f"{why}; run `hookline fleet status`"))


def _gate(name: str, answer: Callable[[Event], Reply]) -> Hook:
    """A hook on every gate that can be denied."""
    gates = tuple(row.cls for row in CATALOG.values() if row.gate and "deny" in row.decisions)

    async def run(event: Event) -> Reply:
        return answer(event)

    return make_hook(gates, run, name=name)
