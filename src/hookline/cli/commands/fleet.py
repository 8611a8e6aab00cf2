"""`hookline fleet`: one policy and one audit trail over many machines."""

import argparse
import asyncio
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookline.cli import main as entry
from hookline.cli.commands.audit import ALL_FORMATS, export
from hookline.cli.commands.console import ready, report_text
from hookline.cli.options import add_commands, numeric, parser_for
from hookline.cli.style import agreed, counted, json_text, paint
from hookline.core.files import private_folder, state_folder
from hookline.display import one_line
from hookline.errors import FleetError
from hookline.fleet.bundle import read_folder
from hookline.fleet.enforce import check_in_process, preview
from hookline.fleet.ledger import Ledger, MachineRow, logs_below
from hookline.fleet.machine import Machine
from hookline.processes.service import address, control
from hookline.records.approvals.inbox import alert
from hookline.records.audit import AuditFile

if TYPE_CHECKING:  # what talks to a hub needs the extra: imported where it is used, so that `--help` does not
    from hookline.fleet.administrator import Administrator

_NOBODY = "nothing keeps it connected now; `hookline service start` does, or `hookline fleet run`"
_LOOK_SECONDS = 30.0
_share = numeric(
    "a share such as 10% or 0.1", r"[0-9]*\.?[0-9]+%?",
    lambda text: float(text.removesuffix("%")) / (100 if text.endswith("%") else 1), above=0, most=1,
)  # fmt: skip


def main(argv: list[str]) -> int:
    """Run one of the fleet's commands."""
    flags = parser_for("fleet")
    add_commands(flags, "fleet", dest="what", metavar="COMMAND", share=_share, formats=ALL_FORMATS)
    args = flags.parse_args(argv)
    return asyncio.run(COMMANDS[args.what](args))


def _folder(args: argparse.Namespace) -> Path:
    return Path(args.folder or state_folder() / "hub")


async def _hub(args: argparse.Namespace) -> int:
    from hookline.fleet.connection import Server
    from hookline.fleet.hub import Hub

    folder = private_folder(_folder(args))
    server = None if args.nats else Server(folder, host=args.host, port=args.port, sync=args.durable)
    hub = Hub(folder, server=server, url=args.nats)
    try:
        await hub.start()
        print(f"the hub runs at {hub.url}; its folder is {one_line(str(folder))}")
        if hub.server is None:
            users = one_line(str(hub.folder.users_path))
            print(f"{users} has the cluster's users; reload the cluster when a machine has joined or left")
        print("let a machine in with `hookline fleet token`; Ctrl-C stops the hub", flush=True)
        await until_one_ends(hub.run(), until_asked_to_stop(), _watch_silence(hub.admin))
    finally:
        await hub.stop()
    return 0


async def _watch_silence(hub: "Administrator") -> None:
    """Tell the people of `approvals` of each machine that falls silent, once."""
    known: set[str] = set()
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        try:
            silent = {row.machine: row for row in await hub.rows() if row.silent and row.seen}
        except Exception:  # noqa: BLE001, S112 - the hub itself says what is wrong with it, and this looks again
            continue
        for row in (silent[machine] for machine in silent.keys() - known):
            await alert(f"silent {row.machine}", f"{row.name} has fallen silent", f"it was last heard at {row.seen}")
        known = set(silent)


async def _push(args: argparse.Namespace) -> int:
    files = read_folder(args.policy)
    if problems := await asyncio.to_thread(check_in_process, args.policy):
        print("\n".join(one_line(f"{args.policy}: {problem}") for problem in problems), file=sys.stderr)
        return 1
    async with await _connected(args) as hub:
        if not args.no_replay:
            report = await asyncio.to_thread(preview, _folder(args) / "audit", args.policy)
            print(report_text(report, 20) if report else "no recorded calls to replay yet")
        question = f"push to {_of_all(args.canary)}?"
        if not args.yes and not sys.stdin.isatty():
            raise FleetError(f"{question} there is no terminal to ask at; say --yes")
        if not args.yes and not agreed(question):
            print("nothing was pushed")
            return 1
        rollout = await hub.push(files, share=args.canary, message=args.message)
        goes = f"version {rollout.version} goes to {_of_all(rollout.share)}"
        print(f"{goes}; `hookline fleet machines` shows where it is")
    return 0


def _of_all(share: float) -> str:
    return "all machines" if share >= 1 else f"{share:.0%} of the machines"


async def _change(args: argparse.Namespace) -> int:
    async with await _connected(args) as hub:
        if args.what == "token":
            print(hub.token(args.hours))
        elif args.what == "promote":
            rollout = await hub.promote(args.share)
            print(f"version {rollout.version} goes to {_of_all(rollout.share)}")
        elif args.what == "rollback":
            rollout = await hub.rollback()
            print(f"{one_line(rollout.message)}, as version {rollout.version}, for all machines")
        elif args.what == "resume":
            print(f"{one_line(hub.resume(args.machine))} may connect again")
        else:
            print(f"{one_line(hub.revoke(args.machine))} is revoked")
            if not hub.folder.address().own_server:
                users = one_line(str(hub.folder.users_path))
                print(f"reload your NATS cluster now: until then the machine gets in ({users} is up to date)")
    return 0


async def _machines(args: argparse.Namespace) -> int:
    async with await _connected(args) as hub:
        rows = await hub.rows()
        rollout = await hub.rollout()
    if args.json:
        print(json_text({"rollout": rollout, "machines": rows}))
    else:
        if rollout:
            print(f"version {rollout.version} for {_of_all(rollout.share)}")
        print("\n".join(map(_row_text, rows)) or "no machines yet; `hookline fleet token` lets one in")
    return 0 if all(row.ok for row in rows) else 1


def _row_text(row: MachineRow) -> str:
    mark = paint("✓", "green") if row.ok else paint("✗", "red")
    seen = "silent" if row.silent else "reports"
    policy = f"policy {row.policy}" if row.policy == row.wanted else f"policy {row.policy}, wants {row.wanted}"
    agents = f", {row.proven} of {counted(row.hooked, 'hooked agent')} proven" if row.hooked else ", no agent hooked"
    first = f"{mark} {one_line(row.name, 24):<24} {seen:<8} {policy:<20} {counted(row.records, 'record')}{agents}"
    return "\n".join([first, *(f"    {one_line(problem)}" for problem in row.problems)])


async def _verify(args: argparse.Namespace) -> int:
    """Follow every mirrored chain once more, from its first record."""
    ledger = Ledger(_folder(args) / "audit")
    wrong = 0
    for machine in ledger.machines():
        mirror = ledger.mirror(machine)
        found = [str(one) for one in AuditFile(mirror.path).verify()] or [str(one) for one in mirror.problems()]
        wrong += bool(found)
        said = one_line(found[0]) if found else "whole"
        print(f"{one_line(machine)}: {counted(mirror.last.seq, 'record')}, {said}")
    return 1 if wrong else 0


async def _export(args: argparse.Namespace) -> int:
    return export([(path.stem, path) for path in sorted(logs_below(_folder(args) / "audit"))], args)


async def _console(args: argparse.Namespace) -> int:
    from hookline.fleet.administrator import FleetPages
    from hookline.records.console.server import serve

    pages = FleetPages(_folder(args))
    shown = serve(
        pages.logs(), port=args.port, on_ready=lambda address: ready(address, open_it=not args.no_open),
        more={"machines": pages.machines, "rollouts": pages.rollouts}, find_logs=pages.logs,
    )  # fmt: skip
    await until_one_ends(shown, pages.follow(), until_asked_to_stop())
    return 0


async def _connected(args: argparse.Namespace) -> "contextlib.aclosing[Administrator]":
    from hookline.fleet.administrator import Administrator

    return contextlib.aclosing(await Administrator.connect(_folder(args)))


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
    if address.instance() and not Path(address.off_switch()).exists():
        with contextlib.suppress(control.NotRunning):
            control.begin(entry.__name__)
            return "the resident service keeps it connected; `hookline fleet status` shows how it stands"
    return "the resident service is off here: run `hookline fleet run` to stay connected"


async def _status(_: argparse.Namespace) -> int:
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
    from hookline.fleet.leaf import Leaf, agents

    machine = Machine()
    leaf = Leaf(machine, hosts=agents)
    if machine.connecting() is None:  # held until this process ends
        raise FleetError(f"pid {machine.connected_by()} keeps this machine connected already")
    await until_one_ends(leaf.run(), until_eof() if args.until_eof else until_asked_to_stop())
    return 0


async def _leave(_: argparse.Namespace) -> int:
    machine = Machine()
    name = one_line(machine.enrolment().name)
    shutil.rmtree(machine.folder)
    print(f"`{name}` has left; at the hub, `hookline fleet revoke {name}` takes it off the list")
    return 0


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


COMMANDS: dict[str, Callable[[argparse.Namespace], Coroutine[Any, Any, int]]] = {
    **dict.fromkeys(("token", "promote", "rollback", "revoke", "resume"), _change),
    "hub": _hub, "push": _push, "machines": _machines, "verify": _verify, "console": _console, "export": _export,
    "join": _join, "status": _status, "run": _run, "leave": _leave,
}  # fmt: skip
