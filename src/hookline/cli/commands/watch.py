"""`hookline watch`: what agents do and what is decided, live in the terminal."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hookline.cli.commands.console import logs
from hookline.cli.options import parser
from hookline.cli.style import colour_of, paint
from hookline.errors import HooklineError

if TYPE_CHECKING:
    from hookline.records.console.tail import Tail
    from hookline.records.console.watch import WatchScreen

_EXAMPLES = """examples:
  hookline watch audit.jsonl
  hookline watch                    the logs in this folder, and the resident service
  hookline watch logs/ | grep DENY"""
_LOOK_SECONDS = 0.1
_SERVICE_SECONDS = 2.0
_OLD_SECONDS = 60.0  # what was there before does not count for the rate
_MOST_SERVICE_LOG = 1 << 16


def main(argv: list[str]) -> int:
    """Watch until Ctrl-C."""
    flags = parser(
        "watch",
        "Watch audit logs as they are written: events, verdicts, slow hooks. In a pipe it prints a line per event.",
        _EXAMPLES,
    )
    flags.add_argument("files", nargs="*", metavar="AUDIT.jsonl|FOLDER", help="logs (default: those in this folder)")
    args = flags.parse_args(argv)

    from hookline.records.console.tail import Tail
    from hookline.records.console.watch import WatchScreen

    tail, screen = Tail(_watched(args.files)), WatchScreen(paint, colour_of)
    try:
        if sys.stdout.isatty():
            _draw(tail, screen)
        else:
            _print(tail, screen)
    except KeyboardInterrupt:
        pass
    return 0


def _watched(files: list[str]) -> list[str]:
    """The logs; none is fine where there is a service to watch, and somebody to see it."""
    try:
        return logs(files)
    except HooklineError:
        log = _service_log()
        if log is not None and log.is_file() and sys.stdout.isatty():
            return []
        raise


def _print(tail: Tail, screen: WatchScreen) -> None:
    while True:
        for record in tail.read():
            print(screen.line(record, None).rstrip())
        sys.stdout.flush()
        time.sleep(_LOOK_SECONDS)


def _draw(tail: Tail, screen: WatchScreen) -> None:
    """Redraw when something changed: events, the size of the window, the second that the rate is counted in."""
    service, shown = _Service(), ""
    screen.add(tail.read(), time.monotonic() - _OLD_SECONDS)
    with _alternate_screen():
        while True:
            screen.add(tail.read(), time.monotonic())
            for line in service.news():
                screen.note(line)
            width, height = shutil.get_terminal_size()
            lines = screen.lines(max(width, 80), height, time.monotonic(), service.about(tail.logs))
            drawn = "\x1b[H" + "\r\n".join(f"\x1b[K{line}" for line in lines)
            if drawn != shown:
                shown = drawn
                sys.stdout.write(drawn)
                sys.stdout.flush()
            time.sleep(_LOOK_SECONDS)


@contextmanager
def _alternate_screen() -> Iterator[None]:
    """The terminal's other screen, without a cursor; the one before comes back however this ends."""
    sys.stdout.write("\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J")
    try:
        yield
    finally:
        sys.stdout.write("\x1b[?7h\x1b[?25h\x1b[?1049l")
        sys.stdout.flush()


class _Service:
    """What the resident service says of itself, asked now and then, and what it writes to its log."""

    def __init__(self) -> None:
        self._asked = -_SERVICE_SECONDS
        self._said = ""
        self._log = _service_log()
        self._at = self._log.stat().st_size if self._log is not None and self._log.is_file() else 0

    def about(self, number: int) -> str:
        """For the head of the screen: how many logs, and whether a service runs."""
        now = time.monotonic()
        if now - self._asked >= _SERVICE_SECONDS:
            self._asked, self._said = now, _service()
        return f"{number} log{'' if number == 1 else 's'}{self._said}"

    def news(self) -> list[str]:
        """Lines of the service's log since the last time."""
        if self._log is None:
            return []
        try:
            with self._log.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(self._at if size >= self._at else 0)
                data = file.read(_MOST_SERVICE_LOG)
        except OSError:  # there is none, or no longer
            return []
        end = data.rfind(b"\n") + 1
        self._at = (self._at if size >= self._at else 0) + end
        return [f"service  {line}" for line in data[:end].decode("utf-8", "replace").splitlines()]


def _service_log() -> Path | None:
    from hookline.processes.service import address, control

    return Path(control.log_path()) if address.instance() else None


def _service() -> str:
    from hookline.processes.service import address, control

    if not address.instance():
        return ""
    try:
        found = control.status()
    except control.NotRunning:
        return ", no service"
    return f", service: {found.get('events', 0):,} events"
