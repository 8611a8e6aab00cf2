"""A small Internet in namespaces: a machine, and a world of servers with names behind it.

Run as a program by `world()`: it makes a network with two ends, serves names, web pages, packages, repositories, a
database and an echo at one end, and runs the commands it is given at the other. Everything that reaches a server is
noted. Nothing of it can leave: neither end has a way to this machine's own network.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).parents[2] / "src"
LAUNCH = SOURCES / "hookline" / "sandbox" / "launch.py"
NO_NAMESPACES = str(Path(__file__).with_name("no_namespaces.py"))
USER = 65534
PYTHON = "/usr/bin/python3"
AS_USER = ["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups"]
NAMES = {
    "pypi.example": "11.0.0.10", "npm.example": "11.0.0.10", "crates.example": "11.0.0.10", "code.example": "11.0.0.11",
    "api.code.example": "11.0.0.12", "db.example": "11.0.0.13", "echo.example": "11.0.0.14",
    "evil.example": "11.0.0.66",
    "rebind.code.example": "127.0.0.1", "meta.code.example": "169.254.169.254", "own.code.example": "11.0.0.2",
    "near.code.example": "10.0.0.5", "six.example": "2a11::10", "nat.code.example": "64:ff9b::7f00:1",
    "proxy.example": "11.0.0.15",
}  # fmt: skip
"""Who is where; IPv6 where it is written so."""
HOSTS = "127.0.0.1 localhost\n11.0.0.14 table.example\n127.0.0.1 local.example\n"
EVIL_PORTS = (22, 80, 443, 4444)
TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJ0123"
PYPI_TOKEN = "pypi-AgEIcHlwaS5vcmcCJDNmNmY3"


class World:
    """The namespaces of one file of tests: commands run in them, one after another."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self._process, self.folder = process, folder

    def run(self, *words: str, user: bool = False, seconds: int = 60, **variables: str) -> dict[str, Any]:
        """Run a command in the project's folder: its code, its output, and what reached the world meanwhile."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        job = {"words": [*(AS_USER if user else []), *words], "seconds": seconds, "variables": variables}
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the world came to an end"
        found: dict[str, Any] = json.loads(answer)
        return found

    def confined(
        self, *words: str, flags: tuple[str, ...] = (), user: bool = False, namespaces: bool = True, **options: Any
    ) -> dict[str, Any]:
        """The same, confined to the project and the hosts of the flags."""
        before = [] if namespaces else [PYTHON, NO_NAMESPACES]
        launch = [*before, PYTHON, "-I", "-S", str(LAUNCH), "--write", str(self.folder / "project"), *flags, "--"]
        return self.run(*launch, *words, user=user, **options)


def possible() -> str:
    """Why there can be no such world here; empty if there can."""
    if not sys.platform.startswith("linux") or not Path(PYTHON).exists() or os.geteuid() != 0:
        return "needs Linux, root and the system's Python"
    trial = ["unshare", "-n", "-m", "ip", "link", "add", "near0", "type", "veth", "peer", "name", "far0"]
    try:
        done = subprocess.run(trial, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        return f"needs {error.filename}"
    version = subprocess.run([PYTHON, "-c", "import sys; assert sys.version_info >= (3, 11)"], check=False)
    readable = subprocess.run([*AS_USER, "test", "-r", str(LAUNCH)], check=False)
    if version.returncode or readable.returncode:
        return "another user cannot read this checkout, or the system's Python is too old"
    return "" if done.returncode == 0 else f"no network can be made here: {done.stderr.strip()}"


@contextmanager
def world() -> Iterator[World]:
    """Set it up, and take it down."""
    place = next(top for top in ("/srv", "/opt", "/var/lib") if Path(top).is_dir())  # temporary folders are hidden
    with tempfile.TemporaryDirectory(dir=place, prefix="hookline-world-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for each in ("project", "home"):
            (folder / each).mkdir()
            os.chown(folder / each, USER, USER)
            (folder / each).chmod(0o777)
        words = [
            "unshare",
            "-n",
            "-m",
            "--propagation",
            "private",
            sys.executable,
            "-m",
            "tests.sandbox.internet",
            name,
        ]
        process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2],
            start_new_session=True,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield World(process, folder)
        finally:
            process.kill()
            process.communicate()


# -- inside ------------------------------------------------------------------------------------------------------------


def main(folder: Path) -> None:
    """Be the machine."""
    from tests.sandbox import internet_servers

    started, ready = os.pipe()
    linked, go = os.pipe()
    child = os.fork()
    if child == 0:
        die_with_parent()
        unshare_network()
        os.write(ready, b".")
        os.read(linked, 1)
        here = [f"{at}/24" for at in sorted({*NAMES.values()}) if at.startswith("11.0.0.") and at != "11.0.0.2"]
        configure("far0", ["11.0.0.1/24", *here], "2a11::10/64")
        internet_servers.serve(folder, ready)
    os.read(started, 1)
    ip("link", "add", "near0", "type", "veth", "peer", "name", "far0", "netns", str(child))
    configure("near0", ["11.0.0.2/24"], "2a11::2/64")
    ip("route", "add", "default", "via", "11.0.0.1")
    os.write(go, b".")
    for name, text in (
        ("hosts", HOSTS),
        ("resolv.conf", "nameserver 11.0.0.1\nnameserver 2a11::10\noptions timeout:2\n"),
    ):
        (folder / name).write_text(text)
        (folder / name).chmod(0o644)
        real = os.path.realpath(f"/etc/{name}")
        subprocess.run(["mount", "--bind", str(folder / name), real], check=True)
    os.read(started, 1)
    internet_servers.listen_here(folder)
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(work(json.loads(line), folder)), flush=True)


def work(job: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Run a command, and say what came of it."""
    log = folder / "log"
    log.write_text("")
    log.chmod(0o666)
    env = {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "LANG": "C.UTF-8", "WORLD": str(folder),
           "HOOKLINE_SERVICE": os.environ.get("HOOKLINE_SERVICE", "0")}  # fmt: skip
    env |= {"SSL_CERT_FILE": str(folder / "ca.pem"), "COLUMNS": "80", **job["variables"]}
    pipe = socket.create_connection(("127.0.0.1", 18666))  # inherited: connected outside
    env["INHERITED"] = str(pipe.fileno())
    try:
        done = subprocess.run(
            job["words"], cwd=folder / "project", env=env, capture_output=True, text=True, errors="replace",
            check=False, timeout=job["seconds"], stdin=subprocess.DEVNULL, pass_fds=(pipe.fileno(),),
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        late = [
            part.decode(errors="replace") if isinstance(part, bytes) else "" for part in (error.stdout, error.stderr)
        ]
        return {"code": 124, "out": late[0], "err": late[1], "log": log.read_text().splitlines()}
    finally:
        pipe.close()
    return {"code": done.returncode, "out": done.stdout, "err": done.stderr, "log": log.read_text().splitlines()}


def configure(link: str, addresses: list[str], six: str) -> None:
    ip("link", "set", "lo", "up")
    ip("link", "set", link, "up")
    for address in addresses:
        ip("addr", "add", address, "dev", link)
    ip("-6", "addr", "add", six, "dev", link, "nodad")


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def unshare_network() -> None:
    assert ctypes.CDLL(None).unshare(0x40000000) == 0


def die_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)


def start(target: Any, *arguments: Any) -> None:
    """Run something in a thread of its own."""
    threading.Thread(target=target, args=arguments, daemon=True).start()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
