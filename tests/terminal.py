"""Run a program on a terminal of its own, with a person there who gives an answer to each `[y/N]`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

QUESTION = b"[y/N] "


def on_terminal(
    command: Sequence[str], answer: str = "y", env: Mapping[str, str] | None = None, cwd: str | None = None
) -> tuple[int, str]:
    """Its exit code and what it printed; what the person typed is not shown."""
    import pty
    import termios

    ours, theirs = pty.openpty()
    modes = termios.tcgetattr(theirs)
    modes[1] &= ~termios.OPOST
    modes[3] &= ~termios.ECHO
    termios.tcsetattr(theirs, termios.TCSANOW, modes)
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, cwd=cwd, start_new_session=True
    )
    os.close(theirs)
    text, asked = b"", 0
    while data := _read(ours):
        text += data
        for _ in range(asked, text.count(QUESTION)):
            asked += 1
            os.write(ours, f"{answer}\n".encode())
    os.close(ours)
    return process.wait(60), text.decode()


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, 65536)
    except OSError:  # the other end is closed
        return b""


if __name__ == "__main__":
    code, printed = on_terminal(sys.argv[1:])
    print(printed, end="")
    sys.exit(code)
