"""Programs that outlive us: started, told what they are started for, and left to themselves."""

from __future__ import annotations

import asyncio
import subprocess

from hookline.processes.spawn import ProcessSpec

#: the shell starts the program and ends: from then on it is a child of `init`
STARTER = 'exec 3<&0; "$@" <&3 3<&- >/dev/null 2>&1 &'


async def leave_running(spec: ProcessSpec) -> None:
    """Start a program that is not waited for, in a session of its own; what it prints is lost. Raises `OSError`."""
    await asyncio.to_thread(_start, spec)


def _start(spec: ProcessSpec) -> None:
    import tempfile

    with tempfile.TemporaryFile() as stdin:  # a pipe would break once we are gone
        stdin.write(spec.stdin)
        stdin.seek(0)
        argv = ["/bin/sh", "-c", STARTER, "sh", *spec.argv]
        subprocess.run(
            argv, cwd=spec.cwd, env=spec.environ(), stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True, check=False,
        )  # fmt: skip
