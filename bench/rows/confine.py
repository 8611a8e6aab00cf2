"""Confined lines: what the start of one costs, and what each program in it costs, beside bubblewrap.

Bubblewrap is shown twice. With the options that a first example has (`BINDS`) a line writes only below the folder, and
that is all: it can kill, trace, slow down and limit programs outside, change their System V memory, type into the
terminal and goes on when bubblewrap is killed; it has no temporary folder; root's can mount everything writable again.
`HOLDS` are the options that end exactly this, as ours does. Neither keeps a line from the user's keyrings and from
abstract sockets, says why something was refused, or judges programs as they start.
"""

import asyncio
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from statistics import median

import hookline
from bench.harness import Measured, Row, Times, Unavailable, at_most, interleave
from hookline.guards.sandboxing import launcher, unavailable
from hookline.sandbox.policy import Policy
from hookline.sandbox.warm import WarmStarter, build_launcher

LAUNCH = Path(hookline.__file__).parent / "sandbox" / "launch.py"
QUICKEST = [sys.executable, "-I", "-S", str(LAUNCH)]
BLOCK = ["--block", "rm -rf /", "--block", "sudo *"]
STARTS = 1_000
PAUSE = 0.1
CREATES = """
import os, time
def batch():
    began = time.perf_counter()
    for number in range(100):
        os.close(os.open(f"made{number}", os.O_CREAT | os.O_WRONLY | os.O_TRUNC))
    return time.perf_counter() - began
times = sorted(batch() * 1e4 for _ in range(40))
print(times[0], times[20])
"""
"""Opens files for writing, new ones and the same ones again: the least microseconds that one took, and the median."""
TRUE = shutil.which("true") or "/bin/true"
COLD = ("ours", "hookline confine")
BINDS = ["--ro-bind", "/", "/", "--dev", "/dev"]
HOLDS = ["--tmpfs", "/tmp", "--unshare-pid", "--proc", "/proc", "--unshare-ipc", "--new-session", "--die-with-parent"]
CAPABILITIES = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "NET_BIND_SERVICE"]
"""What root keeps with us; whoever is not root has none with bubblewrap anyway."""


def rows() -> Iterator[Row]:
    yield Row("confine.cold", "a confined `true`, as a guard has a host run it", at_most(8, "ms over a bare one"), cold)
    yield Row(
        "confine.service", "a confined `true`, from a program that runs on", at_most(4, "ms over a bare one"), warm
    )
    yield Row("confine.starts", "a program start in a confined line", at_most(0.5, "ms over a bare one"), starts)
    yield Row("confine.creates", "a file made in a confined line", at_most(45, "µs"), creates)
    yield Row("confine.connection", "a connection by name: looked up, made, one byte", at_most(1, "ms"), connection)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, start_new_session=True)


def _candidates(folder: str, command: list[str]) -> dict[str, list[str]]:
    if reason := unavailable():
        raise Unavailable(reason)
    flags = ["--write", folder, *BLOCK, "--", *command]
    found = {"bare": command, "ours": [*QUICKEST, *flags], "hookline confine": [*launcher(warm=False), *flags]}
    return found | {name: [*words, *command] for name, words in _bubblewraps(folder).items()}


def _bubblewraps(folder: str) -> dict[str, list[str]]:
    """What stands before a command to run it in bubblewrap, where that works: a container may not allow all of it."""
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        return {}
    kept = [word for name in CAPABILITIES for word in ("--cap-add", f"CAP_{name}")]
    root = ["--cap-drop", "ALL", *kept] if os.geteuid() == 0 else []
    asked = {"bubblewrap": BINDS, "bubblewrap, holding as much": [*BINDS, *HOLDS, *root]}
    found = {name: [bwrap, *options, "--bind", folder, folder] for name, options in asked.items()}
    return {name: words for name, words in found.items() if _works(words)}


def _works(words: list[str]) -> bool:
    return subprocess.run([*words, TRUE], stderr=subprocess.DEVNULL, check=False).returncode == 0


@contextmanager
def _crew(folder: str) -> Iterator[list[str]]:
    """What stands before a command that an interpreter would confine, so that a crew does, as the service keeps it."""
    Path(folder, "hookline").mkdir()
    lines, path = Path(folder, "lines"), build_launcher(folder)
    if not path:
        raise Unavailable("no C compiler")
    serve = [sys.executable, "-m", "hookline", "confine", "--lines", str(lines)]
    env = {**os.environ, "XDG_STATE_HOME": folder}
    with subprocess.Popen(serve, stdin=subprocess.PIPE, env=env, start_new_session=True) as server:
        while not lines.exists():
            time.sleep(0.01)
        assert server.stdin is not None
        yield [path, str(lines), str(len(QUICKEST))]
        server.stdin.close()


async def cold() -> Measured:
    """A new process for each line: ours without an interpreter of its own, and with one."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as state:
        commands = _candidates(folder, [TRUE])
        with _crew(state) as before:
            commands["with an interpreter"] = commands["ours"]
            commands["ours"] = [*before, *commands["ours"]]
            times = _apart({name: partial(_run, *words) for name, words in commands.items()})
    over = {name: times.difference(name, "bare") * 1e3 for name in commands if name != "bare"}
    return Measured(over.pop("ours"), over, f"a bare one takes {times.seconds('bare') * 1e3:.1f} ms")


async def warm() -> Measured:
    if reason := unavailable():
        raise Unavailable(reason)
    starter, null = WarmStarter(), os.open(os.devnull, os.O_RDWR)
    try:
        with tempfile.TemporaryDirectory() as folder:
            policy = Policy((folder,), block=tuple(BLOCK[1::2]))
            files = dict.fromkeys((0, 1, 2), null)

            def confined() -> None:
                line = starter.start(policy, [TRUE], cwd=folder, env=os.environ, files=files)
                assert line.exit_code() == 0

            commands = _candidates(folder, [TRUE])
            runs: dict[str, Callable[[], None]] = {"ours": confined}
            runs |= {name: partial(_run, *words) for name, words in commands.items() if name not in COLD}
            times = _apart(runs)
    finally:
        starter.close()
        os.close(null)
    over = {name: times.difference(name, "bare") * 1e3 for name in times.rounds if name != "bare"}
    return Measured(over.pop("ours"), over, f"a bare one takes {times.seconds('bare') * 1e3:.1f} ms")


def _apart(runs: dict[str, Callable[[], None]]) -> Times:
    """Each in turn, with a pause: an agent's lines are seconds apart, and what waits for the next one is made in it."""
    found: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(41):
        for name, run in runs.items():
            time.sleep(PAUSE)
            began = time.perf_counter()
            run()
            if turn:  # the first one starts what the others find
                found[name].append(time.perf_counter() - began)
    return Times(found)


async def starts() -> Measured:
    """Also with every program in a bubblewrap of its own: what it takes to judge each of them there."""
    line = f"for i in {{1..{STARTS}}}; do {TRUE}; done"
    with tempfile.TemporaryDirectory() as folder:
        commands = _candidates(folder, ["bash", "-c", line])
        if words := _bubblewraps(folder).get("bubblewrap"):
            commands["bubblewrap each"] = ["bash", "-c", line.replace(TRUE, shlex.join([*words, TRUE]))]
        times = await interleave(
            {name: partial(_run, *words) for name, words in commands.items()}, rounds=3, batch_seconds=0.1
        )
    bare = times.seconds("bare")
    over = {name: (times.seconds(name) - bare) * 1e3 / STARTS for name in commands if name != "bare"}
    return Measured(over.pop("ours"), over, f"a bare one takes {bare * 1e3 / STARTS:.2f} ms")


async def creates() -> Measured:
    """Each is opened by the supervisor, which judges the folder and hands the file over."""
    with tempfile.TemporaryDirectory() as folder:
        commands = _candidates(folder, [sys.executable, "-I", "-S", "-c", CREATES])
        found = {name: [_printed(folder, *words) for _ in range(5)] for name, words in commands.items()}
    least = {name: min(times)[0] for name, times in found.items()}
    bare, usual = least.pop("bare"), median(times[1] for times in found["ours"])
    note = f"a bare one takes {bare:.1f} µs; the median of ours is {usual:.1f}"
    return Measured(least.pop("ours"), least, note)


def _printed(folder: str, *command: str) -> list[float]:
    done = subprocess.run(command, cwd=folder, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    return [float(word) for word in done.stdout.split()]


CONNECT = """
import socket, sys, time
port, name, found = int(sys.argv[1]), sys.argv[2], []
for _ in range(400):
    began = time.perf_counter()
    if name:
        socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    with socket.create_connection(("127.0.0.1", port)) as s:
        s.recv(1)
    found.append(time.perf_counter() - began)
print(sorted(found)[len(found) // 4])
"""
"""The quartile of many connections to a server that says one byte; the name's own address would be dialled the same."""
NO_NAMESPACES = Path(__file__).parents[2] / "tests" / "sandbox" / "no_namespaces.py"


async def connection() -> Measured:
    """In a network of the line's own, where a lookup is a datagram; beside it without namespaces, and bare."""
    if reason := unavailable():
        raise Unavailable(reason)
    with socket.create_server(("127.0.0.1", 0), backlog=256) as server, tempfile.TemporaryDirectory() as folder:
        threading.Thread(target=_say_one_byte, args=(server,), daemon=True).start()
        port = str(server.getsockname()[1])
        flags = ["--write", folder, "--host", f"localhost:{port}", "--host", f"bench.example:{port}", "--"]
        script = [sys.executable, "-I", "-c", CONNECT, port]
        candidates = {
            "ours": [*QUICKEST, *flags, *script, "bench.example"],
            "without namespaces": [sys.executable, str(NO_NAMESPACES), *QUICKEST, *flags, *script, "bench.example"],
            "bare, without a lookup": [*script, ""],
        }
        rounds: dict[str, list[float]] = {name: [] for name in candidates}
        for _ in range(5):
            for name, words in candidates.items():
                done = await asyncio.to_thread(subprocess.run, words, capture_output=True, text=True, check=True)
                rounds[name].append(float(done.stdout) * 1e3)
    best = {name: min(values) for name, values in rounds.items()}
    return Measured(best.pop("ours"), best)


def _say_one_byte(server: socket.socket) -> None:
    with suppress(OSError):  # it is closed at the end
        while True:
            with server.accept()[0] as conn:
                conn.sendall(b"x")
