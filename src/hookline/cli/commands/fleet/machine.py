"""`hookline fleet` on a machine that belongs to one."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from hookline.cli.commands.fleet.waiting import until_asked_to_stop, until_eof, until_one_ends
from hookline.cli.options import AddFlags, option
from hookline.cli.style import paint
from hookline.core.files import state_folder
from hookline.display import one_line
from hookline.errors import FleetError

_NOBODY = "nothing keeps it connected now; `hookline service start` does, or `hookline fleet run`"


async def _join(args: argparse.Namespace) -> int:
    from hookline.fleet.leaf import join

    enrolment = await join(
        args.url, args.token, name=args.name,
        audit=str(args.audit.absolute() if args.audit else state_folder() / "audit.jsonl"),
        stale_hours=args.stale_hours, when_stale=args.when_stale,
    )  # fmt: skip
    print(one_line(f"this machine is `{enrolment.name}` ({enrolment.machine}) in the fleet at {enrolment.hub}"))
    print(_connection_begins())
    return 0


def _connection_begins() -> str:
    """Let the resident service connect, where there is one."""
    from hookline.cli import resident
    from hookline.processes.service import address, client, control

    if address.instance() and not Path(client.off_switch()).exists():
        with contextlib.suppress(control.NotRunning):
            control.begin(resident.__name__)
            return "the resident service keeps it connected; `hookline fleet status` shows how it stands"
    return "the resident service is off here: run `hookline fleet run` to stay connected"


async def _status(_: argparse.Namespace) -> int:
    from hookline.fleet.machine import Machine

    machine = Machine()
    enrolment, current = machine.enrolment(), machine.current()
    hours = machine.hours_silent()
    print(one_line(f"`{enrolment.name}` ({enrolment.machine}) at {enrolment.hub}"))
    print(f"policy: version {current.version}, in force since {current.since}" if current else "policy: none yet")
    print(f"the hub was heard {hours * 60:.0f} minutes ago" if hours < float("inf") else "the hub was never heard")
    keeper = machine.connected_by()
    print(f"pid {keeper} keeps it connected" if keeper is not None else _NOBODY)
    if trouble := machine.trouble():
        print(paint(one_line(trouble), "red"))
    if enrolment.when_stale != "keep":
        print(f"after {enrolment.stale_hours:g} hours without it, gates answer {enrolment.when_stale}")
    machine.verified_policy()
    return 0


async def _run(args: argparse.Namespace) -> int:
    from hookline.fleet.agents import Agents
    from hookline.fleet.leaf import Leaf
    from hookline.fleet.machine import Machine

    machine = Machine()
    leaf = Leaf(machine, hosts=Agents())
    if machine.connecting() is None:  # held until this process ends
        raise FleetError(f"pid {machine.connected_by()} keeps this machine connected already")
    await until_one_ends(leaf.run(), until_eof() if args.until_eof else until_asked_to_stop())
    return 0


async def _leave(_: argparse.Namespace) -> int:
    from hookline.fleet.machine import Machine

    machine = Machine()
    name = one_line(machine.enrolment().name)
    machine.leave()
    print(f"`{name}` has left; at the hub, `hookline fleet revoke {name}` takes it off the list")
    return 0


Command = tuple[str, Callable[[Any], Awaitable[int]], Sequence[AddFlags]]
COMMANDS: dict[str, Command] = {
    "join": ("enrol this machine", _join, [
        option("url", metavar="URL", help="the hub, as nats://host:4222"),
        option("--token", required=True, help="what `hookline fleet token` printed at the hub"),
        option("--name", default="", help="what this machine is called (default: its host name)"),
        option("--audit", type=Path, metavar="FILE", help="the audit log to send (default: in the state folder)"),
        option("--stale-hours", type=float, default=0.0, metavar="N", help="when the policy counts as stale"),
        option("--when-stale", choices=("keep", "ask", "deny"), default="keep", help="and what happens then"),
    ]),
    "status": ("how this machine stands", _status, []),
    "run": ("stay connected to the hub, in the foreground", _run, [
        option("--until-eof", action="store_true", help=argparse.SUPPRESS),
    ]),
    "leave": ("take this machine out of its fleet", _leave, []),
}  # fmt: skip
