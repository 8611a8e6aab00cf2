"""Prompts on a terminal: with line editing and a history where the terminal has them, line by line where not."""

from __future__ import annotations

import asyncio
import atexit
import os
import sys
import threading
from contextlib import suppress
from typing import Any

from hookline.core.files import private, private_folder, state_folder

MOST_REMEMBERED = 1000


async def read_line(prompt: str) -> str | None:
    """One line from the terminal, without holding the agent up; None at the end of the input.

    The terminal is read only once it has a line, so that a caller that stops waiting leaves no thread behind that would
    take the next one, or keep the program from ending.
    """
    print(prompt, end="", file=sys.stderr, flush=True)
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(sys.stdin.fileno())
    return sys.stdin.readline() or None


class LineEditor:
    """Reads prompts: arrows move and bring back earlier ones, which are kept in the user's state folder."""

    def __init__(self) -> None:
        self._readline = _readline()
        self._path = state_folder() / "prompts"
        if self._readline is not None:
            with suppress(OSError):
                self._readline.read_history_file(str(self._path))
            self._readline.set_history_length(MOST_REMEMBERED)
            _restore_terminal_at_exit()

    async def read(self, prompt: str) -> str | None:
        """The next line, or None at the end of the input."""
        if self._readline is None:
            return await read_line(f"\n{prompt}")
        print(file=sys.stderr, flush=True)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[str | None] = loop.create_future()
        # a thread of its own that is not waited for: Ctrl-C ends the program while it still reads
        threading.Thread(target=_ask, args=(prompt, loop, answer), name="prompt", daemon=True).start()
        line = await answer
        if line is not None and line.strip():
            self._remember()
        return line

    def _remember(self) -> None:
        with suppress(OSError):  # a prompt that cannot be kept is not a reason to lose it
            private_folder(self._path.parent)
            os.close(private(str(self._path), os.O_WRONLY | os.O_CREAT))
            self._readline.write_history_file(str(self._path))


def _ask(prompt: str, loop: asyncio.AbstractEventLoop, answer: asyncio.Future[str | None]) -> None:
    try:
        line: str | None = input(prompt)
    except (EOFError, OSError, ValueError):
        line = None

    def tell() -> None:
        if not answer.done():
            answer.set_result(line)

    with suppress(RuntimeError):  # the program has ended meanwhile
        loop.call_soon_threadsafe(tell)


def _readline() -> Any:
    """The module that edits lines, if this terminal can show it."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM", "dumb") == "dumb":
        return None
    try:
        import readline
    except ImportError:
        return None
    return readline


def _restore_terminal_at_exit() -> None:
    """A signal while a line is edited leaves the terminal as it was."""
    import termios

    with suppress(termios.error, OSError):
        before = termios.tcgetattr(sys.stdin.fileno())

        def restore() -> None:
            with suppress(termios.error, OSError, ValueError):
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, before)

        atexit.register(restore)
