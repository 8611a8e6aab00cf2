"""`hookline fleet` on a machine that belongs to one."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

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
    hours = machine.contact.hours_silent()
    print(one_line(f"`{enrolment.name}` ({enrolment.machine}) at {enrolment.hub}"))
    print(f"policy: version {current.version}, in force since {current.since}" if current else "policy: none yet")
    print(f"the hub was heard {hours * 60:.0f} minutes ago" if hours < float("inf") else "the hub was never heard")
    keeper = machine.contact.connected_by()
    print(f"pid {keeper} keeps it connected" if keeper is not None else _NOBODY)
    if trouble := machine.contact.trouble():
        print(paint(one_line(trouble), "red"))
    if enrolment.when_stale != "keep":
        print(f"after {enrolment.stale_hours:g} hours without it, gates answer {enrolment.when_stale}")
    machine.verified_policy()
    return 0


async def _run(args: argparse.Namespace) -> int:
    from hookline.fleet.leaf import Agents, Leaf
    from hookline.fleet.machine import Machine

    machine = Machine()
    leaf = Leaf(machine, hosts=Agents())
    if machine.contact.connecting() is None:  # held until this process ends
        raise FleetError(f"pid {machine.contact.connected_by()} keeps this machine connected already")
    await until_one_ends(leaf.run(), until_eof() if args.until_eof else until_asked_to_stop())
    return 0


async def _leave(_: argparse.Namespace) -> int:
    from hookline.fleet.machine import Machine

    machine = Machine()
    name = one_line(machine.enrolment().name)
    shutil.rmtree(machine.folder)
    print(f"`{name}` has left; at the hub, `hookline fleet revoke {name}` takes it off the list")
    return 0


# -- what a command in the foreground waits for ----------------------------------------------------------------------


async def until_asked_to_stop() -> None:
    """Until Ctrl-C or TERM."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, stopped.set)
    await stopped.wait()


async def until_eof(source: int = 0) -> None:
    """Until the process that started this one has ended, or closes our standard input."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(source, lambda: None if os.read(source, 1024) else ended.set())
    try:
        await ended.wait()
    finally:
        loop.remove_reader(source)  # an end that was read stays readable: the loop would turn without rest


async def until_one_ends(*works: Coroutine[Any, Any, object]) -> None:
    """Until one of them has ended; the others are ended, and what went wrong in any of them is raised."""
    from hookline.fleet.connection import end

    tasks = [asyncio.create_task(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await end(*tasks)
    for task in tasks:
        if not task.cancelled():
            task.result()


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
