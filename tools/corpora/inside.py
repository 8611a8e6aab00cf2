"""Runs inside a throw-away namespace with a network of its own: each line bare or confined, and what came of it.

Started with the path of `tests/sandbox/inside.py`, which encloses the file system: all of it is read-only but for
`/tmp`, `/run` and `/dev/shm`. `attacker.com` is an address here whose listeners note what arrives, and from which a
client tries to reach the line. One JSON object per line comes in and one goes out.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

ATTACKER = "203.0.113.9"
PORTS = (12345, 80, 443, 5758, 5388, 21, 22, 25, 69, 445)
WAITING = 23456
"""The port on which a line may wait for a connection."""
QUESTION, ANSWER = b"echo shell-$((6 * 7))\n", b"shell-42"


class Network:
    """Notes who connects and what answers like a shell; and connects to what waits."""

    def __init__(self) -> None:
        self.received: list[str] = []
        self.asked = threading.Event()
        for port in PORTS:
            for kind, serve in ((socket.SOCK_STREAM, self._accept), (socket.SOCK_DGRAM, self._hear)):
                listener = socket.socket(socket.AF_INET, kind)
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind(("", port))
                if kind == socket.SOCK_STREAM:
                    listener.listen()
                threading.Thread(target=serve, args=(listener, port), daemon=True).start()
        threading.Thread(target=self._call, daemon=True).start()

    def _accept(self, listener: socket.socket, port: int) -> None:
        while True:
            client, _ = listener.accept()
            self.received.append(f"tcp {port}")
            threading.Thread(target=self._ask, args=(client,), daemon=True).start()

    def _hear(self, listener: socket.socket, port: int) -> None:
        while True:
            listener.recv(65536)
            self.received.append(f"udp {port}")

    def _call(self) -> None:
        """Try to reach a line from outside the machine, as long as one may wait."""
        while self.asked.wait():
            with contextlib.suppress(OSError), socket.create_connection((ATTACKER, WAITING), 1) as client:
                self.received.append("a connection from outside")
                self._ask(client)
            threading.Event().wait(0.05)

    def _ask(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            client.settimeout(2)
            client.sendall(QUESTION)
            data = b""
            while ANSWER not in data and (piece := client.recv(65536)):
                data += piece
            self.received += ["a shell"] if ANSWER in data else []


def bring_up_network() -> None:
    """A loopback that also has the attacker's address, and a file of hosts that names it."""
    for words in ("link set lo up", f"addr add {ATTACKER}/32 dev lo"):
        subprocess.run(["ip", *words.split()], check=True)
    with tempfile.NamedTemporaryFile("w", delete=False) as hosts:
        hosts.write(f"127.0.0.1 localhost\n{ATTACKER} attacker.com\n")
    Path(hosts.name).chmod(0o644)
    subprocess.run(["mount", "--bind", hosts.name, "/etc/hosts"], check=True)


def open_processes() -> None:
    """Let sandboxes set up namespaces of their own, for which they write to files of procfs."""
    subprocess.run(["mount", "-o", "remount,rw", "/proc"], check=True)


def main() -> None:
    """Try every line that comes in."""
    spec = importlib.util.spec_from_file_location("inside", sys.argv[1])
    assert spec is not None
    assert spec.loader is not None
    inside = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(inside)
    inside.enclose()
    open_processes()
    bring_up_network()
    network = Network()
    for line in sys.stdin:
        job: dict[str, Any] = json.loads(line)
        network.received.clear()
        if job.get("waits"):
            network.asked.set()
        result = inside.tried(job)
        network.asked.clear()
        print(json.dumps({**result, "received": sorted(set(network.received))}), flush=True)


if __name__ == "__main__":
    main()
