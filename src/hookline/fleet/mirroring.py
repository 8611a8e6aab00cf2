"""The audit stream, mirrored: each block is checked, written, and only then acknowledged.

What one machine sends never stops the others. A block that cannot be taken is put aside and reported; a machine that
sends what it did not sign, or more than its share, or whose key two computers use, is cut off and reported.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hookline.fleet.hub_folder import HubFolder
from hookline.fleet.keys import signed_by
from hookline.fleet.status import Status
from hookline.fleet.subjects import AUDIT, AUDIT_STREAM, INSTANCE_HEADER, SIGNATURE_HEADER
from hookline.records.audit.chain import link_of

if TYPE_CHECKING:
    from nats.js import JetStreamContext

log: logging.Logger = logging.getLogger("hookline.fleet")
DAY_BYTES = 1 << 30
"""How much a machine may send within a day: some 500 times what an agent at work writes."""
FORGED_BYTES = 1 << 20
"""How much a machine may send that it did not sign, before it is cut off."""
_CONSUMER = "ledger"
_DAY = 86_400.0
_SHARED = "two computers use its key, as copies of one image do; revoke it, and let each join with a token of its own"


class Instances:
    """Which process speaks for each machine, in the order of what they say: one that ended never comes back."""

    def __init__(self) -> None:
        self._now: dict[str, str] = {}
        self._before: dict[str, set[str]] = {}
        self._place = 0

    def is_shared(self, machine: str, instance: str, place: int | None = None) -> bool:
        """Whether a process speaks again after another has; what is read twice, by its `place`, does not count."""
        if not instance or (place is not None and place <= self._place):
            return False
        self._place = self._place if place is None else place
        known = self._now.get(machine)
        if known not in (None, instance):
            self._before.setdefault(machine, set()).add(str(known))
        self._now[machine] = instance
        return instance in self._before.get(machine, ())


class Mirroring:
    """Follows the audit stream into the ledger."""

    def __init__(
        self, folder: HubFolder, js: Callable[[], JetStreamContext], *, on_cut_off: Callable[[], None], quota: int
    ) -> None:
        self._folder, self._js, self._on_cut_off, self._quota = folder, js, on_cut_off, quota
        self._keys: dict[str, str] = {}
        self._instances = Instances()
        self._speakers = Instances()
        self._sent: Counter[str] = Counter()
        self._forged: Counter[str] = Counter()
        self._day = time.monotonic()

    async def run(self) -> None:
        """Until it is cancelled. After a kill it goes on with what was not acknowledged."""
        from nats.errors import Error as NatsError

        while True:
            try:
                pull = await self.subscribe()
                while True:
                    with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
                        for message in await pull.fetch(64, timeout=2):
                            await self.take(message)
                            await message.ack()
            except (NatsError, OSError, EOFError) as problem:
                log.warning("the audit stream cannot be mirrored: %s; trying again", advice(problem))
                await asyncio.sleep(1)

    async def subscribe(self) -> Any:
        """Read on from the first block that was not acknowledged; from the beginning if a mirror lacks older ones.

        What an earlier reader was handed and did not finish would come again later than what follows it, and look like
        a gap; so the consumer is made again, and starts there.
        """
        from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
        from nats.js.errors import NotFoundError

        js, start = self._js(), 1
        with contextlib.suppress(NotFoundError):
            known = await js.consumer_info(AUDIT_STREAM, _CONSUMER)
            start = (known.ack_floor.stream_seq if known.ack_floor else 0) + 1
            await js.delete_consumer(AUDIT_STREAM, _CONSUMER)
        if start > 1 and (behind := await self._behind(start)):
            log.warning("the mirrors of %s lack what the stream has; they are filled again", ", ".join(behind))
            start = 1
        config = ConsumerConfig(
            durable_name=_CONSUMER, ack_policy=AckPolicy.EXPLICIT, ack_wait=30, max_ack_pending=1_000,
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=start,
        )  # fmt: skip
        return await js.pull_subscribe(f"{AUDIT}.*", durable=_CONSUMER, stream=AUDIT_STREAM, config=config)

    async def _behind(self, start: int) -> list[str]:
        """The machines whose last acknowledged block is not at the end of their mirror, nor anywhere in it."""
        from nats.js.errors import NotFoundError

        found = []
        for machine in self._folder.registry.members():
            with contextlib.suppress(NotFoundError):
                last = await self._js().get_last_msg(AUDIT_STREAM, f"{AUDIT}.{machine}", direct=True)
                lines = (last.data or b"").splitlines(keepends=True)
                ends = link_of(lines[-1]) if lines else None
                if (last.seq or 0) < start and ends is not None and not self._folder.ledger.mirror(machine).holds(ends):
                    found.append(machine)
        return found

    # -- one block -----------------------------------------------------------------------------------------------

    async def take(self, message: Any) -> None:
        """Put a block into its machine's mirror, or aside; only a disk that is full, or worse, is raised."""
        machine, data = message.subject.removeprefix(f"{AUDIT}."), message.data
        headers, place = message.headers or {}, message.metadata.sequence.stream
        if not self._is_signed(machine, data, headers.get(SIGNATURE_HEADER, "")):
            log.warning("%s: something that this machine did not sign was sent in its name; it is left out", machine)
            if not await self._is_servers_answer(data, headers):
                self._forged[machine] += len(data)
                if self._forged[machine] > FORGED_BYTES:
                    self._cut_off(machine, "it sends what it did not sign")
            return
        await asyncio.to_thread(self._take_signed, machine, data, headers.get(INSTANCE_HEADER, ""), place)

    def _take_signed(self, machine: str, data: bytes, instance: str, place: int) -> None:
        if self._instances.is_shared(machine, instance, place):
            self._cut_off(machine, _SHARED)
        self._count(machine, len(data))
        mirror = self._folder.ledger.mirror(machine)
        try:
            _, problems = mirror.take(data)
        except Exception as problem:  # whatever is wrong with one block, the others are mirrored
            if isinstance(problem, OSError):  # that is the disk
                raise
            problems = [mirror.put_aside(data, place, f"{type(problem).__name__}: {problem}")]
        for one in problems:
            log.warning("%s", one)

    def _count(self, machine: str, size: int) -> None:
        now = time.monotonic()
        if now - self._day > _DAY:
            self._day, self._sent = now, Counter()
        self._sent[machine] += size
        if self._sent[machine] > self._quota:
            self._cut_off(machine, f"it sent more than {self._quota:,} bytes of records within a day")

    def heard(self, machine: str, status: Status) -> None:
        """A status came in: a process said that it speaks for a machine, and how its log stands."""
        if self._speakers.is_shared(machine, status.instance):
            self._cut_off(machine, _SHARED)
        member = self._folder.registry.members().get(machine)
        if status.checkpoint and member is not None:
            problem = self._folder.ledger.mirror(machine).witness(status.checkpoint, member.key, self._folder.key)
            if problem is not None:
                log.warning("%s", problem)

    def _cut_off(self, machine: str, why: str) -> None:
        if self._folder.registry.suspend(machine, why):
            log.error("%s is cut off: %s", machine, why)
            self._on_cut_off()

    def _is_signed(self, machine: str, data: bytes, signature: str) -> bool:
        if machine not in self._keys:
            self._keys = {one.machine: one.key for one in self._folder.registry.members().values()}
        try:
            return signed_by(self._keys.get(machine, ""), data, bytes.fromhex(signature))
        except ValueError:
            return False

    async def _is_servers_answer(self, data: bytes, headers: Mapping[str, str]) -> bool:
        """Whether the server said this: another machine may have had its answers sent here."""
        from nats.js.errors import Error as StreamError

        if data.startswith(b'{"type":"io.nats.jetstream.api.') and len(data) < 16_384:
            return True
        try:
            kept = await self._js().get_msg(headers.get("Nats-Stream", ""), int(headers.get("Nats-Sequence", "")))
        except (StreamError, ValueError):
            return False
        return kept.data == data


def advice(problem: Exception) -> str:
    """What went wrong, and what to do where that is known."""
    if isinstance(problem, OSError) and problem.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        return f"{problem.strerror}; make room on the hub's disk: machines keep what is not acknowledged"
    return str(problem) or type(problem).__name__
