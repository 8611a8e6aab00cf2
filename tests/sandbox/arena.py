"""The red team's method: a line runs in real bash in a throw-away namespace, and its effect is looked for."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

LAUNCH = Path(__file__).parents[2] / "src" / "hookline" / "sandbox" / "launch.py"
INSIDE = Path(__file__).with_name("inside.py")
HOOKLINE = [sys.executable, "-I", "-S", str(LAUNCH)]
CREW = ["crew"]
"""In place of a program: a crew that was forked ahead runs the line, as it does for our own agent."""
PROJECT = "/tmp/arena/home/project"
BLOCKED = ("rm -rf *", "sudo *", "git push --force *", "dd *", "chmod -R 777 *")
"""The patterns that the tables try to get past."""


def confined(
    *,
    write: Iterable[str] = (PROJECT,),
    block: Iterable[str] = (),
    extra: Iterable[str] = (),
    by: Iterable[str] = HOOKLINE,
) -> list[str]:
    """What to put before a line so that it runs confined."""
    flags = [word for folder in write for word in ("--write", folder)]
    flags += [word for pattern in block for word in ("--block", pattern)]
    return [*by, *flags, *extra, "--"]


@cache
def possible() -> str:
    """Why lines cannot be tried here; empty if they can."""
    if not sys.platform.startswith("linux") or shutil.which("unshare") is None:
        return "needs Linux and unshare"
    hidden = [
        top for top in ("/tmp/", "/run/", "/dev/shm/") for path in (sys.prefix, LAUNCH) if str(path).startswith(top)
    ]
    if hidden:
        return f"this checkout lies below {hidden[0]}, which is empty in the arena"
    done = subprocess.run([*_namespace(), "true"], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"no namespaces here: {done.stderr.strip()}"


def _namespace(user: int = 0) -> list[str]:
    return ["unshare", *([] if user else ["-r"]), "-m", "-i", "-p", "-f", "--kill-child", "--mount-proc"]


def tried(jobs: Iterable[dict[str, Any]], user: int = 0) -> Iterator[dict[str, Any]]:
    """What each line changed, in order: `outside`, `commands`, `code`, `output`.

    Lines run as root of the namespace or, where the tests run as root, as another user.
    """
    idle = _idle.setdefault(user, [])
    process = idle.pop() if idle else _started(user)
    assert process.stdin is not None
    assert process.stdout is not None
    done = False
    try:
        for job in jobs:
            process.stdin.write(json.dumps(job) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            assert answer, f"the arena died of {job['line']!r}"
            yield json.loads(answer)
        done = True
    finally:
        idle.append(process) if done else _end(process)


_idle: dict[int, list[subprocess.Popen[str]]] = {}
"""For each user a namespace with nothing to do, kept for the next table: to start one takes as long as ten lines."""


def _started(user: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*_namespace(user), sys.executable, "-I", str(INSIDE), str(user)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def end_idle() -> None:
    """Let go of the namespace: done after each file, since a test elsewhere may look for processes that are left."""
    for idle in _idle.values():
        while idle:
            _end(idle.pop())
