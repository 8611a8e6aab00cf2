"""The hub: runs the server, lets machines in, and mirrors every audit log.

Each block of the audit stream is checked, written, and only then acknowledged. What one machine sends never stops the
others. A block that cannot be taken is put aside and reported; a machine that sends what it did not sign, or more than
its share, or whose key two computers use, is cut off and reported.
"""

import asyncio
import contextlib
import logging
import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from hookline.core.files import write_atomically
from hookline.errors import FleetError, extra
from hookline.fleet import connection as wire
from hookline.fleet.administrator import Administrator, HubAddress, HubFolder
from hookline.fleet.ledger import MOST_STATUS, Status, read_status
from hookline.fleet.members import signed_by
from hookline.records.audit.chain import Link

with extra("a fleet", "fleet"):
    from nats.errors import Error as NatsError
    from nats.js import JetStreamContext
    from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, KeyValueConfig, StorageType, StreamConfig
    from nats.js.errors import BadRequestError, NotFoundError
    from nats.js.errors import Error as StreamError

log: logging.Logger = logging.getLogger("hookline.fleet")
DAY_BYTES = 1 << 30  # how much a machine may send within a day: some 500 times what an agent at work writes
FORGED_BYTES = 1 << 20  # how much a machine may send that it did not sign, before it is cut off
_CONSUMER = "ledger"
_DAY = 86_400.0
_SHARED = "two computers use its key, as copies of one image do; revoke it, and let each join with a token of its own"
_MEMBER_SECONDS = 0.5
_LEAST_FREE = 4 << 20


class Hub:
    """A team's hub in one folder, with its own NATS server unless `url` names another."""

    def __init__(self, path: Path, *, server: wire.Server | None = None, url: str = "", quota: int = DAY_BYTES) -> None:
        self.folder: HubFolder = HubFolder(path)
        self.server = server
        self.url: str = url or (server.url if server else "")
        self.mirroring: Mirroring = Mirroring(self.folder, lambda: self.admin.js, self._apply_members, quota)
        self._tasks: list[asyncio.Task[None]] = []
        self.admin: Administrator  # since it runs
        self._disk_was_full = False

    async def start(self) -> None:
        self._apply_members()
        if self.server is not None:
            self.server.start()
        try:
            client = await wire.connect(self.url, seed=self.folder.seed_path, name="hookline-hub")
        except FleetError as problem:
            if self.server is not None:
                raise
            raise FleetError(
                f"{problem}; the users it has to know are in {self.folder.users_path}: include that file in the "
                "account that the fleet may use (with JetStream), and reload the server"
            ) from None
        self.admin = Administrator(self.folder, client)
        await self._provision()
        address = HubAddress(self.url, own_server=self.server is not None)  # for other commands
        write_atomically(self.folder.path / "hub.json", msgspec.json.encode(address))
        await client.subscribe(wire.ENROL, cb=self._enrol)
        await client.subscribe(f"$KV.{wire.STATUS_BUCKET}.*", cb=self._hear)
        self._tasks = [asyncio.create_task(self.mirroring.run()), asyncio.create_task(self._follow_members())]

    async def run(self) -> None:
        """Serve until a part of the hub fails; what it failed with is raised."""
        await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in self._tasks:
            if task.done() and not task.cancelled():
                task.result()
        raise FleetError("a part of the hub has ended; start it again")

    async def stop(self) -> None:
        await wire.end(*self._tasks)
        if hasattr(self, "admin"):
            await self.admin.aclose()
        if self.server is not None:
            self.server.stop()

    async def _provision(self) -> None:
        """Streams and buckets; what is there already stays as it is, but for what a machine may do to others."""
        js = self.admin.js
        audit = StreamConfig(
            name=wire.AUDIT_STREAM, subjects=[f"{wire.AUDIT}.*"], storage=StorageType.FILE, allow_direct=True,
            duplicate_window=120, deny_delete=True,
        )  # fmt: skip
        with contextlib.suppress(BadRequestError):  # each may exist, with settings of the team's own
            await js.add_stream(audit)
        for bucket, history in ((wire.POLICY_BUCKET, 16), (wire.STATUS_BUCKET, 1)):
            with contextlib.suppress(BadRequestError):
                await js.create_key_value(KeyValueConfig(bucket=bucket, history=history, direct=True))
        with contextlib.suppress(BadRequestError):
            await js.create_object_store(wire.BUNDLE_BUCKET)
        statuses = (await js.stream_info(f"KV_{wire.STATUS_BUCKET}")).config
        statuses.allow_rollup_hdrs = False  # one machine's message could remove what all others have said
        statuses.max_msg_size = MOST_STATUS
        await js.update_stream(statuses)

    async def _enrol(self, message: Any) -> None:
        try:
            ask = msgspec.json.decode(message.data, type=dict[str, str])
            member = self.folder.registry.enrol(ask["secret"], ask["key"], ask["name"])
        except (FleetError, msgspec.DecodeError, RecursionError, KeyError) as problem:
            await message.respond(msgspec.json.encode({"error": str(problem)}))
            return
        self._apply_members()
        answer = msgspec.json.encode({"machine": member.machine, "key": member.key})
        signature = self.folder.key.sign(answer).hex()
        await message.respond(msgspec.json.encode({"answer": answer.decode(), "signature": signature}))
        log.info("%s joined as %s", member.name, member.machine)

    async def _hear(self, message: Any) -> None:
        machine = message.subject.rpartition(".")[2]
        if (status := read_status(machine, message.data, None)) is not None:
            await asyncio.to_thread(self.mirroring.heard, machine, status)

    async def _follow_members(self) -> None:
        """Apply what other commands do to the list of machines, and see that the server is there and can write."""
        known = self.folder.registry.keys()
        while True:
            await asyncio.sleep(_MEMBER_SECONDS)
            if self.server is not None:
                await self._look_after(self.server)
            try:
                if (keys := await asyncio.to_thread(self.folder.registry.keys)) != known:
                    self._apply_members()
                    known = keys
            except OSError as problem:
                log.warning("the list of machines cannot be applied: %s; trying again", wire.advice(problem))

    async def _look_after(self, server: wire.Server) -> None:
        """A server that could not write once does not write again, whatever room there is, until it is restarted."""
        if not server.running:
            raise FleetError(f"nats-server has ended: {server.last_words()}; start the hub again")
        free = shutil.disk_usage(self.folder.path).free
        if free < _LEAST_FREE and not self._disk_was_full:
            self._disk_was_full = True
            log.error("%s: the disk is full; make room: machines keep what the hub does not take", self.folder.path)
        elif free > 2 * _LEAST_FREE and self._disk_was_full:
            log.warning("%s: there is room again; the server is restarted", self.folder.path)
            await asyncio.to_thread(server.stop)
            await asyncio.to_thread(server.start)
            self._disk_was_full = False

    def _apply_members(self) -> None:
        if self.server is None:
            self.folder.write_users()
        else:
            self.server.configure(self.folder.hub_key().public, self.folder.registry.keys())
            self.server.reload()


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
        self, folder: HubFolder, js: Callable[[], JetStreamContext], on_cut_off: Callable[[], None], quota: int
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
        while True:
            try:
                pull = await self.subscribe()
                while True:
                    with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
                        for message in await pull.fetch(64, timeout=2):
                            await self.take(message)
                            await message.ack()
            except (NatsError, OSError, EOFError) as problem:
                log.warning("the audit stream cannot be mirrored: %s; trying again", wire.advice(problem))
                await asyncio.sleep(1)

    async def subscribe(self) -> Any:
        """Read on from the first block that was not acknowledged; from the beginning if a mirror lacks older ones.

        What an earlier reader was handed and did not finish would come again later than what follows it, and look like
        a gap; so the consumer is made again, and starts there.
        """
        js, start = self._js(), 1
        with contextlib.suppress(NotFoundError):
            known = await js.consumer_info(wire.AUDIT_STREAM, _CONSUMER)
            start = (known.ack_floor.stream_seq if known.ack_floor else 0) + 1
            await js.delete_consumer(wire.AUDIT_STREAM, _CONSUMER)
        if start > 1 and (behind := await self._behind(start)):
            log.warning("the mirrors of %s lack what the stream has; they are filled again", ", ".join(behind))
            start = 1
        config = ConsumerConfig(
            durable_name=_CONSUMER, ack_policy=AckPolicy.EXPLICIT, ack_wait=30, max_ack_pending=1_000,
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=start,
        )  # fmt: skip
        return await js.pull_subscribe(f"{wire.AUDIT}.*", durable=_CONSUMER, stream=wire.AUDIT_STREAM, config=config)

    async def _behind(self, start: int) -> list[str]:
        """The machines whose mirror lacks what `start` follows: their last block, or what their next block follows."""
        found = []
        for machine in self._folder.registry.members():
            ends, place = await wire.last_block(self._js(), machine)
            if place >= start:
                ends = await wire.first_follows(self._js(), machine, start)
            if ends != Link() and not self._folder.ledger.mirror(machine).holds(ends):
                found.append(machine)
        return found

    async def take(self, message: Any) -> None:
        """Put a block into its machine's mirror, or aside; only a disk that is full, or worse, is raised."""
        machine, data = message.subject.removeprefix(f"{wire.AUDIT}."), message.data
        headers, place = message.headers or {}, message.metadata.sequence.stream
        if not self._is_signed(machine, data, headers.get(wire.SIGNATURE_HEADER, "")):
            log.warning("%s: something that this machine did not sign was sent in its name; it is left out", machine)
            if not await self._is_servers_answer(data, headers):
                self._forged[machine] += len(data)
                if self._forged[machine] > FORGED_BYTES:
                    self._cut_off(machine, "it sends what it did not sign")
            return
        await asyncio.to_thread(self._take_signed, machine, data, headers.get(wire.INSTANCE_HEADER, ""), place)

    def _take_signed(self, machine: str, data: bytes, instance: str, place: int) -> None:
        if self._instances.is_shared(machine, instance, place):
            self._cut_off(machine, _SHARED)
        now = time.monotonic()
        if now - self._day > _DAY:
            self._day, self._sent = now, Counter()
        self._sent[machine] += len(data)
        if self._sent[machine] > self._quota:
            self._cut_off(machine, f"it sent more than {self._quota:,} bytes of records within a day")
        mirror = self._folder.ledger.mirror(machine)
        try:
            problems = mirror.take(data)
        except OSError:  # that is the disk
            raise
        except Exception as problem:  # noqa: BLE001 - whatever is wrong with one block, the others are mirrored
            problems = [mirror.put_aside(data, place, f"{type(problem).__name__}: {problem}")]
        for one in problems:
            log.warning("%s", one)

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
        with contextlib.suppress(ValueError):
            return signed_by(self._keys.get(machine, ""), data, bytes.fromhex(signature))
        return False

    async def _is_servers_answer(self, data: bytes, headers: Mapping[str, str]) -> bool:
        """Whether the server said this: another machine may have had its answers sent here."""
        if data.startswith(b'{"type":"io.nats.jetstream.api.') and len(data) < 16_384:
            return True
        try:
            kept = await self._js().get_msg(headers.get("Nats-Stream", ""), int(headers.get("Nats-Sequence", "")))
        except (StreamError, ValueError):
            return False
        return kept.data == data
