"""`hookline` as a real process for a tenth of a cold start: forked from one that has imported the package.

The process has its own arguments, environment, folder and pipes, and ends as the interpreter ends. What only a cold
start shows (start-up variables, lazy imports, a terminal) needs one: `tests/test_forked.py` compares the two.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hookline.core import template
from hookline.processes.service.client import nameless_file

MAIN = "hookline.cli.main"
IMPORTED = (
    "hookline.__main__", MAIN, "hookline.cli.commands.audit", "hookline.cli.commands.listing",
    "hookline.cli.commands.run", "hookline.agent.agent", "hookline.agent.tools.mcp", "hookline.agent.subagents",
    "hookline.core.shell.parser", "hookline.core.shell.wrappers", "hookline.hosts.install.apply",
    "hookline.records.audit.push", "hookline.records.console.report", "hookline.records.replay.compare",
    "hookline.runners.prompt",
)  # fmt: skip
"""Imported ahead, with what the service imports ahead."""
START_UP = ("PYTHON", "LC_", "LANG", "COV", "LD_", "MALLOC_")
"""Variables that an interpreter heeds while it starts: for each set of them, another one forks."""
NUMBER = b"%12d"
"""How a process and its exit code are told."""
_lock = threading.Lock()


def run(
    words: Sequence[str], *, cwd: Path | str, env: Mapping[str, str], stdin: bytes = b"", module: str = MAIN,
    timeout: float = 120,
) -> subprocess.CompletedProcess[bytes]:  # fmt: skip
    """Run `python -m MODULE WORDS` to its end."""
    argv = [sys.executable, "-m", module, *words]
    if not hasattr(os, "pidfd_open"):
        return subprocess.run(argv, cwd=cwd, env=env, input=stdin, capture_output=True, timeout=timeout, check=False)
    (their_in, our_in), (our_out, their_out), (our_err, their_err), (our_end, their_end) = (os.pipe() for _ in range(4))
    with (
        io.FileIO(our_in, "w") as inlet, io.FileIO(our_out) as said, io.FileIO(our_err) as complained,
        io.FileIO(our_end) as status,
    ):  # fmt: skip
        _ask([module, list(words), str(cwd), dict(env)], (their_in, their_out, their_err, their_end))
        pid = int(status.read(len(NUMBER % 0)))
        try:
            out, err = _communicate(inlet, stdin, said, complained, timeout)
            if not select.select([status], [], [], timeout)[0]:
                raise TimeoutError
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired(argv, timeout) from None
        code = int(status.read(len(NUMBER % 0)))
    return subprocess.CompletedProcess(argv, code, out, err)


def as_text(done: subprocess.CompletedProcess[bytes]) -> subprocess.CompletedProcess[str]:
    """What `subprocess.run(…, text=True)` would have returned."""
    out, err = (io.TextIOWrapper(io.BytesIO(data)).read() for data in (done.stdout, done.stderr))
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


def _ask(request: list[Any], fds: Sequence[int]) -> None:
    *_, env = request
    order = nameless_file(json.dumps(request).encode())
    try:
        with _lock:
            link = _parent(tuple(sorted((name, value) for name, value in env.items() if name.startswith(START_UP))))
            template.send(link, b".", [*fds, order])
    finally:
        for fd in (*fds, order):
            os.close(fd)


@functools.cache
def _parent(start_up: tuple[tuple[str, str], ...]) -> socket.socket:
    """The process that forks; it ends with this one."""
    ours, theirs = socket.socketpair()
    atexit.register(ours.close)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(START_UP)}
    pipe = subprocess.PIPE
    with (
        theirs,
        subprocess.Popen(
            [sys.executable, "-m", "tests.forked", str(theirs.fileno())], pass_fds=[theirs.fileno()], stdin=pipe,
            stdout=pipe, stderr=pipe, cwd=Path(__file__).parent.parent, env={**inherited, **dict(start_up)},
        ) as started,
    ):  # fmt: skip
        if started.wait():
            raise ChildProcessError(started.communicate()[1].decode())
    return ours


def _communicate(inlet: io.FileIO, data: bytes, out: io.FileIO, err: io.FileIO, timeout: float) -> tuple[bytes, bytes]:
    """Write all of stdin, as far as somebody reads it, and read stdout and stderr to their ends."""
    os.set_blocking(inlet.fileno(), False)
    left = memoryview(data)
    found: dict[io.FileIO, list[bytes]] = {out: [], err: []}
    reading = {out, err}
    while reading or left:
        if not left:
            inlet.close()
        readable, writable, _ = select.select(reading, [inlet] if left else [], [], timeout)
        if not readable and not writable:
            raise TimeoutError
        for pipe in readable:
            chunk = os.read(pipe.fileno(), 1 << 16)
            found[pipe].append(chunk)
            if not chunk:
                reading.discard(pipe)
        if writable:
            try:
                left = left[inlet.write(left) :]
            except BrokenPipeError:
                left = left[:0]
    return b"".join(found[out]), b"".join(found[err])


# ---- the process that forks


class Commands(template.Template):
    """Forks for every command, and tells who asked how it ended."""

    def ended(self, pid: int, run: template.Run, status: int) -> None:
        [told] = run.fds
        say(told, os.waitstatus_to_exitcode(status))
        os.close(told)

    def become(self) -> tuple[str, str]:
        """Take on the place of a process that was started; its module and folder."""
        *streams, told, order = self.next_request(1, 5)[1]
        self.note(template.TAKEN, b"", told)
        say(told, os.getpid())
        module, words, cwd, env = json.loads(template.read_file(order))
        template.redirect(streams)
        for fd in (*streams, told, self.requests.detach(), self.to_template.detach()):
            os.close(fd)
        template.replace_environ([os.fsencode(f"{name}={value}") for name, value in env.items()])
        os.chdir(cwd)
        sys.argv[1:] = words
        return module, cwd


def say(status: int, number: int) -> None:
    """Tell who asked."""
    with contextlib.suppress(BrokenPipeError):  # who asked has given up
        os.write(status, NUMBER % number)


def main() -> None:
    """Import, serve, and be the command."""
    from hookline.cli.main import PRELOAD
    from hookline.processes.service.event_process import finish

    for name in (*PRELOAD, *IMPORTED):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    if os.fork():
        os._exit(0)  # the process that serves is a child of `init`, so that no test counts it among its own
    commands = Commands(socket.socket(fileno=int(sys.argv[1])))
    commands.serve()
    module, sys.path[0] = commands.become()
    entry = importlib.import_module(module)
    sys.argv[0] = str(entry.__file__)
    try:
        code = entry.main()
    except SystemExit as left:
        if isinstance(left.code, str):
            raise
        code = left.code
    os._exit(finish(code or 0))  # taking apart all that was imported ahead costs more than most commands


if __name__ == "__main__":
    main()
