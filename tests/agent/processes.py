"""Looking at processes, the portable way."""

from __future__ import annotations

import os
import subprocess


def alive(pid: int) -> bool:
    """Whether a process is there and not merely waiting to be reaped."""
    return any(row[1] == pid for row in _table())


def children() -> set[int]:
    """The processes we started that are still there; compare with `<=`, since other tests may have left some."""
    return {pid for parent, pid in _table() if parent == os.getpid()}


def _table() -> list[tuple[int, int]]:
    with subprocess.Popen(["ps", "-A", "-o", "ppid=,pid=,stat="], stdout=subprocess.PIPE, text=True) as ps:
        rows = [line.split() for line in ps.communicate()[0].splitlines()]
    return [(int(parent), int(pid)) for parent, pid, state, *_ in rows if state[0] != "Z" and int(pid) != ps.pid]
