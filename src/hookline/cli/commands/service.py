"""`hookline service`: the resident process that answers command hooks quickly."""

import argparse
import json
import shutil
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hookline.cli import main as entry
from hookline.cli.options import parser_for
from hookline.cli.style import paint
from hookline.display import one_line
from hookline.errors import HooklineError
from hookline.processes.service import address, control
from hookline.records.audit.push import push_states

NOT_RUNNING = 3
WIDEST = 120  # columns that a status fills at most
_OFF = "HOOKLINE_SERVICE says so, or this system has no Unix sockets"
FEWEST = 6  # lines that hook sets have at least, however low the terminal is


def main(argv: list[str]) -> int:
    """Show or change what the service does."""
    args = parser_for("service").parse_args(argv)
    if not address.instance() and args.action in ("start", "restart"):
        raise HooklineError(f"the service is turned off here: {_OFF}")
    try:
        if args.action == "status":
            return _status(args)
        if args.action == "logs":
            return _logs(args.lines)
        found, text = _change(args.action)
    except control.NotRunning as problem:
        raise HooklineError(f"the service cannot be reached: {problem}") from None
    print(json.dumps(found) if args.json else text)
    return 0


def _status(args: argparse.Namespace) -> int:
    try:
        found = control.status() if address.instance() else None
    except control.NotRunning:
        found = None
    pushed = [one.summary() for one in push_states()]
    if args.json:
        print(json.dumps({"running": found is not None, **(found or {}), "push": pushed}))
    else:
        print("\n".join(_described(found, everything=args.all) if found else [f"not running; {_why_not()}"]))
        print("".join(f"  push     {_pushed(one)}\n" for one in pushed), end="")
    return 0 if found else NOT_RUNNING


def _why_not() -> str:
    if not address.instance():
        return f"turned off: {_OFF}"
    if Path(address.off_switch()).exists():
        return f"turned off by {address.off_switch()} (`hookline service on`)"
    return "it starts with the first command hook"


def _described(found: dict[str, Any], *, everything: bool) -> Iterator[str]:
    """As many hook sets as fit the terminal, those with most events first; everything else in full."""
    terminal = shutil.get_terminal_size()
    width = min(terminal.columns, WIDEST)
    head, workers = list(_about(found)), list(_workers(found["workers"], width))
    room = terminal.lines - len(head) - len(workers) - 1  # for the next prompt
    yield from head
    yield from _hook_sets(found["hook_sets"], width, None if everything else max(room, FEWEST))
    yield from workers


def _about(found: dict[str, Any]) -> Iterator[str]:
    memory = sum(one["memory"] or 0 for one in (found, *found["workers"]))
    yield f"{paint('running', 'green')}, pid {found['pid']}, since {_clock(found['since'])} ({_ago(found['since'])})"
    yield f"  socket   {found['socket']}"
    yield f"  events   {found['events']:,}; {found['declined']:,} left to their clients"
    for leaf in found.get("fleet", ()):
        keeper = f"pid {leaf['pid']} keeps this machine connected" if leaf["pid"] else "not connected; see the log"
        yield f"  fleet    {keeper} ({leaf['state']}/fleet)"
    if found.get("inbox", {}).get("pid"):
        yield f"  inbox    pid {found['inbox']['pid']} keeps the questions; `hookline inbox` lists them"
    yield f"  memory   {memory / 1e6:.1f} MB in all; ends after {found['idle_limit'] / 60:.0f} minutes without an event"


def _pushed(one: dict[str, Any]) -> str:
    wait = f"{one['behind']:,} wait" if one["behind"] else "none waits"
    lost = f", {one['missing']:,} were deleted before they were sent" if one["missing"] else ""
    said = f"{one['sent']:,} records sent, {wait}{lost}, {_ago(one['time'])} ago: {one_line(one['to'])}"
    return said + (paint(f" ({one_line(one['problem'])})", "red") if one["problem"] else "")


def _hook_sets(sets: dict[str, dict[str, Any]], width: int, room: int | None) -> Iterator[str]:
    if not sets:
        return
    rows = sorted(sets.items(), key=lambda pair: -pair[1]["events"])
    shown = rows if room is None or len(rows) + 2 <= room else rows[: room - 3]
    yield ""
    yield "   events       p50       p95  hook set"
    for name, one in shown:
        died = f"  {one['died']} died" if one["died"] else ""
        fitted = _fit(name, width - 31 - len(died))
        times = " ".join("        -" if one[key] is None else f"{one[key]:>6.1f} ms" for key in ("p50", "p95"))
        yield f"  {one['events']:>7,} {times}  {fitted}{paint(died, 'red')}"
    if rest := rows[len(shown) :]:
        events = sum(one["events"] for _, one in rest)
        yield f"  {events:>7,}                      and {len(rest):,} more (`--all` shows them)"


def _workers(workers: list[dict[str, Any]], width: int) -> Iterator[str]:
    if workers:
        yield ""
        yield "   worker  since     memory  running  python"
    for one in workers:
        state, size = one["running"] if one["ready"] else "starts", f"{(one['memory'] or 0) / 1e6:.1f} MB"
        python = _fit(one["python"], width - 40)
        yield f"  {one['pid']:>7}  {_clock(one['since'])} {size:>9} {state:>8}  {python}"


def _fit(text: str, room: int) -> str:
    """In one line; of a path that is too long, the end says more than the beginning."""
    shown = one_line(text)
    return shown if len(shown) <= room else f"…{shown[len(shown) - room + 1 :]}"


def _clock(seconds: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(seconds))


def _ago(seconds: float) -> str:
    minutes = max(0, int(time.time() - seconds)) // 60
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


def _logs(lines: int) -> int:
    path = Path(control.log_path())
    if not path.exists():
        print(f"no log yet at {one_line(str(path))}", file=sys.stderr)
        return 0
    with path.open(errors="backslashreplace") as log:
        for line in deque(log, lines):
            print(one_line(line.rstrip("\n")))
    return 0


def _change(action: str) -> tuple[dict[str, Any], str]:
    """Start, stop or switch it: what is so now, and the same in words."""
    if action == "on":
        return {"on": True}, f"on: {one_line(str(control.turn(on=True)))} is gone"
    off = one_line(str(control.turn(on=False))) if action == "off" else ""
    was = control.stop() if action != "start" and address.instance() else False
    if off:
        return {"on": False}, f"off: {off} says so"
    if action == "stop":
        return {"stopped": was}, "stopped" if was else "was not running"
    found = control.begin(entry.__name__)
    return found, f"running, pid {found['pid']}"
