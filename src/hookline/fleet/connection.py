"""Connections to the hub: NATS, with our keys, errors that say what to do, and the names on the wire."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import sys
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from hookline.errors import FleetError, extra
from hookline.fleet.overview import Rollout

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.js import JetStreamContext

log: logging.Logger = logging.getLogger("hookline.fleet")

IMPATIENCE = 10.0
"""Seconds after which a caller that waits for a connection is told why there is none."""

LOST = 5.0
"""Seconds after which a task that goes on is cancelled again."""


async def end(*tasks: asyncio.Task[Any], lost: float = LOST) -> None:
    """Cancel tasks until they have ended.

    Once is not always enough: `asyncio.wait_for` of Python 3.11 forgets a cancellation that comes with the answer.
    """
    going = set(tasks)
    while going:
        for task in going:
            task.cancel()
        _, going = await asyncio.wait(going, timeout=lost)
    await asyncio.gather(*tasks, return_exceptions=True)


async def read_rollout(js: JetStreamContext) -> Rollout | None:
    """The rollout that is under way or was the last."""
    from nats.js.errors import KeyNotFoundError

    bucket = await js.key_value(POLICY_BUCKET)
    try:
        entry = await bucket.get(TARGET)
    except KeyNotFoundError:
        return None
    return msgspec.json.decode(entry.value or b"", type=Rollout)


async def connect(
    url: str,
    *,
    seed: Path | None = None,
    inbox: str = "_INBOX",
    name: str = "hookline",
    patient: bool = False,
    on_back: Callable[[], Awaitable[None]] | None = None,
    on_problem: Callable[[str], None] | None = None,
    **more: Any,
) -> Client:
    """Connect; with `patient` go on trying for as long as it takes, else say after `IMPATIENCE` why it failed."""
    with extra("a fleet", "fleet"), _without_package("aiohttp"):  # it takes as long to import as NATS itself
        from nats.aio.client import Client
        from nats.errors import Error as NatsError
    if url.startswith(("ws://", "wss://")):
        _load_websockets(url)

    problems: list[str] = []

    async def on_error(problem: Exception) -> None:
        problems.append(_explained(problem))
        log.debug("%s: %s", url, problem)
        if not client.is_connected and (transport := client._transport) is not None:  # noqa: SLF001
            transport.close()  # type: ignore[no-untyped-call]  # an attempt that failed leaves its socket open
        if on_problem is not None:
            on_problem(problems[-1])

    options: dict[str, Any] = {
        "error_cb": on_error,
        "inbox_prefix": inbox.encode(),
        "name": name,
        "connect_timeout": 5,
        "reconnect_time_wait": 1,
        "max_reconnect_attempts": -1,
        "ping_interval": 20,
        **({"nkeys_seed": str(seed)} if seed is not None else {}),
        **({"reconnected_cb": on_back} if on_back is not None else {}),
        **more,
    }
    while True:
        client = Client()
        try:
            await asyncio.wait_for(
                client.connect(url, allow_reconnect=True, **options), None if patient else IMPATIENCE
            )
        except (NatsError, OSError, TimeoutError) as problem:
            with contextlib.suppress(Exception):
                await client.close()
            if not patient:
                why = problems[-1] if problems else str(problem) or f"no answer within {IMPATIENCE:g} s"
                raise FleetError(f"{url}: cannot connect to the hub: {why}") from None
            await asyncio.sleep(1)
        else:
            return client


@contextlib.contextmanager
def _without_package(name: str) -> Iterator[None]:
    """Imports in the `with` block do without a package that they would take if they could."""
    kept_out = name not in sys.modules
    if kept_out:
        sys.modules[name] = None  # type: ignore[assignment]  # what an import meets is then an ImportError
    try:
        yield
    finally:
        if kept_out:
            del sys.modules[name]


def _load_websockets(url: str) -> None:
    """Give NATS what it needs for an address with `ws://`."""
    from nats.aio import transport

    try:
        transport.aiohttp = importlib.import_module("aiohttp")  # type: ignore[attr-defined]
    except ImportError:
        raise FleetError(f"{url}: websockets need aiohttp; run `pip install aiohttp`") from None


def _explained(problem: Exception) -> str:
    """What went wrong, and what to do where that is known."""
    text = str(problem) or type(problem).__name__
    if "authorization" in text.lower():
        return (
            "the hub does not let this machine in: it was revoked, the hub was set up again, or its NATS cluster was "
            "not reloaded since; run `hookline fleet leave`, then join with a new token"
        )
    return text


PATIENCE = 5.0
"""Seconds in which JetStream has to answer."""
_PAUSE = 0.05
T = TypeVar("T")


def patient_jetstream(client: Client) -> JetStreamContext:
    """JetStream, asked once more: a server that reads its list of users again does not answer for a moment.

    A request without an answer has changed nothing, so it may be sent again.
    """
    js = client.jetstream()
    for name in ("_api_request", "publish"):
        setattr(js, name, partial(_answered, getattr(js, name)))
    return js


async def _answered(ask: Callable[..., Awaitable[T]], *args: Any, **options: Any) -> T:
    from nats.js.errors import NoStreamResponseError, ServiceUnavailableError

    clock = asyncio.get_running_loop().time
    until = clock() + PATIENCE
    while True:
        try:
            return await ask(*args, **options)
        except (NoStreamResponseError, ServiceUnavailableError):
            if clock() > until:
                raise
        await asyncio.sleep(_PAUSE)


# -- names on the wire: one table, so that what a machine may do can be written down exactly --------------------------

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
TARGET = "target"
"""The key in the policy bucket that says which version is wanted, and for whom."""


def audit_of(machine: str) -> str:
    """Where a machine's audit blocks go."""
    return f"{AUDIT}.{machine}"


def inbox_of(machine: str) -> str:
    """The prefix of a machine's inboxes, so that none can read another's answers."""
    return f"_INBOX_{machine}"


def machine_may(machine: str) -> dict[str, dict[str, list[str]]]:
    """What a machine's credentials allow, in the words of a NATS server's configuration."""
    publish = [
        audit_of(machine),
        f"$KV.{STATUS_BUCKET}.{machine}",
        f"$JS.API.DIRECT.GET.{AUDIT_STREAM}.{audit_of(machine)}",
        f"$JS.API.DIRECT.GET.KV_{POLICY_BUCKET}.$KV.{POLICY_BUCKET}.>",
        "$JS.API.STREAM.NAMES",
        f"$JS.API.STREAM.INFO.KV_{POLICY_BUCKET}",
        f"$JS.API.STREAM.INFO.KV_{STATUS_BUCKET}",
        f"$JS.API.DIRECT.GET.OBJ_{BUNDLE_BUCKET}",
        f"$JS.API.DIRECT.GET.OBJ_{BUNDLE_BUCKET}.>",
    ]
    return {"publish": {"allow": publish}, "subscribe": {"allow": [f"{inbox_of(machine)}.>", ANNOUNCE]}}


JOIN_MAY = {"publish": {"allow": [ENROL]}, "subscribe": {"allow": ["_INBOX_join.>"]}}
"""What a machine may do that has only a token: ask to be enrolled."""
