"""The hub: lets machines in, hands out policy, mirrors every audit log, and knows what is in force where."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hookline.core.files import write_atomically
from hookline.errors import FleetError
from hookline.fleet import rollout as rollouts
from hookline.fleet.bundle import Bundle, pack, unpack
from hookline.fleet.connection import connect, end
from hookline.fleet.keys import MachineKey, TeamKey, signed_by
from hookline.fleet.ledger import ChainProblem, Ledger
from hookline.fleet.objects import fetch
from hookline.fleet.overview import MachineRow, rows
from hookline.fleet.registry import MachineRegistry
from hookline.fleet.rollout import Rollout
from hookline.fleet.server import Server, users
from hookline.fleet.status import Status
from hookline.fleet.subjects import (
    ANNOUNCE,
    AUDIT,
    AUDIT_STREAM,
    BUNDLE_BUCKET,
    ENROL,
    POLICY_BUCKET,
    SIGNATURE_HEADER,
    STATUS_BUCKET,
    TARGET,
)

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.js import JetStreamContext
    from nats.js.api import RawStreamMsg

log: logging.Logger = logging.getLogger("hookline.fleet")
_CONSUMER = "ledger"
_MEMBER_SECONDS = 0.5


class _Ask(msgspec.Struct, frozen=True):
    """What a machine that wants to join sends."""

    secret: str
    key: str
    name: str


class _HubFile(msgspec.Struct, frozen=True):
    """How other commands find a hub: where it is, and whether the server there is its own."""

    url: str
    own_server: bool = True


class Hub:
    """A team's hub in one folder: keys, machines, mirrors, and its own NATS server unless `url` names another."""

    def __init__(self, folder: Path, *, server: Server | None = None, url: str = "") -> None:
        self.folder = folder
        self.server = server
        self.own_server: bool = server is not None
        self.url: str = url or (server.url if server else "")
        self.registry: MachineRegistry = MachineRegistry(folder)
        self.ledger: Ledger = Ledger(folder / "audit")
        self.key: TeamKey = _team_key(folder / "team.key")
        self._tasks: list[asyncio.Task[None]] = []
        self._client: Client | None = None
        self._keys: dict[str, str] = {}

    # -- running -------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the server if it is ours, make the streams, and serve."""
        if self.server is not None:
            self.server.configure(self._hub_key().public, self.registry.keys())
            self.server.start()
        else:
            self.apply_members()
        self._client = await self._connected()
        await self._provision()
        file = _HubFile(self.url, own_server=self.server is not None)
        write_atomically(self.folder / "hub.json", msgspec.json.encode(file))
        await self._client.subscribe(ENROL, cb=self._enrol)
        self._tasks = [asyncio.create_task(self._mirror()), asyncio.create_task(self._follow_members())]

    @classmethod
    async def of(cls, folder: Path) -> Hub:
        """A hub that runs already, for whoever administers it: connected, but serving nothing itself."""
        try:
            file = msgspec.json.decode((folder / "hub.json").read_bytes(), type=_HubFile)
        except (OSError, msgspec.DecodeError):
            raise FleetError(f"{folder}: no hub was ever started here; run `hookline fleet hub`") from None
        hub = cls(folder, url=file.url)
        hub.own_server = file.own_server
        hub._client = await connect(file.url, seed=hub._seed_path, name="hookline-admin")
        return hub

    async def _connected(self) -> Client:
        try:
            return await connect(self.url, seed=self._seed_path, name="hookline-hub")
        except FleetError as problem:
            if self.own_server:
                raise
            hint = f"{problem}; the users it has to know are in {self.users_path}: include that file in the account"
            raise FleetError(f"{hint} that the fleet may use (with JetStream), and reload the server") from None

    async def stop(self) -> None:
        """End everything in good order."""
        await end(*self._tasks)
        if self._client is not None:
            with contextlib.suppress(Exception):
                await self._client.close()
        if self.server is not None:
            self.server.stop()

    @property
    def js(self) -> JetStreamContext:
        """JetStream, once started."""
        if self._client is None:
            raise FleetError("the hub is not running; start it with `hookline fleet hub`")
        from hookline.fleet.jetstream import PatientJetStream

        return PatientJetStream(self._client)

    @property
    def _seed_path(self) -> Path:
        return self.folder / "hub.seed"

    @property
    def users_path(self) -> Path:
        """Who may connect, for the configuration of a cluster that is not ours."""
        return self.folder / "nats-users.json"

    def _hub_key(self) -> MachineKey:
        """The hub's own credentials; made at its first start."""
        if not self._seed_path.exists():
            made = MachineKey.create()
            write_atomically(self._seed_path, made.seed.encode(), durable=True)
            write_atomically(self.folder / "hub.key", made.raw, durable=True)
            return made
        return MachineKey((self.folder / "hub.key").read_bytes())

    async def _provision(self) -> None:
        """Streams and buckets; what is there already stays as it is."""
        from nats.js.api import KeyValueConfig, StorageType, StreamConfig
        from nats.js.errors import BadRequestError

        audit = StreamConfig(
            name=AUDIT_STREAM, subjects=[f"{AUDIT}.*"], storage=StorageType.FILE, allow_direct=True,
            duplicate_window=120, deny_delete=True,
        )  # fmt: skip
        with contextlib.suppress(BadRequestError):  # each may exist, with settings of the team's own
            await self.js.add_stream(audit)
        for bucket, history in ((POLICY_BUCKET, 16), (STATUS_BUCKET, 1)):
            with contextlib.suppress(BadRequestError):
                await self.js.create_key_value(KeyValueConfig(bucket=bucket, history=history, direct=True))
        with contextlib.suppress(BadRequestError):
            await self.js.create_object_store(BUNDLE_BUCKET)

    # -- machines ------------------------------------------------------------------------------------------------

    async def _enrol(self, message: Any) -> None:
        try:
            ask = msgspec.json.decode(message.data, type=_Ask)
            member = self.registry.enrol(ask.secret, ask.key, ask.name)
        except (FleetError, msgspec.DecodeError) as problem:
            await message.respond(msgspec.json.encode({"error": str(problem)}))
            return
        self.apply_members()
        answer = msgspec.json.encode({"machine": member.machine, "key": member.key})
        signature = self.key.sign(answer).hex()
        await message.respond(msgspec.json.encode({"answer": answer.decode(), "signature": signature}))
        log.info("%s joined as %s", member.name, member.machine)

    async def _follow_members(self) -> None:
        """Somebody may have revoked a machine with another command: the server hears of it within a second."""
        known = self.registry.keys()
        while True:
            await asyncio.sleep(_MEMBER_SECONDS)
            keys = await asyncio.to_thread(self.registry.keys)
            if keys != known:
                known = keys
                self.apply_members()

    def apply_members(self) -> None:
        """Let the server know who may connect now; a cluster that is not ours reads the file when it is reloaded."""
        if self.server is not None:
            self.server.configure(self._hub_key().public, self.registry.keys())
            self.server.reload()
        elif not self.own_server:
            known = msgspec.json.encode({"users": users(self._hub_key().public, self.registry.keys())})
            write_atomically(self.users_path, msgspec.json.format(known, indent=1))

    def revoke(self, which: str) -> str:
        """Cut a machine off; its id comes back."""
        member = self.registry.revoke(which)
        self.apply_members()
        return member.machine

    async def statuses(self) -> dict[str, Status]:
        """What every machine said last, by id."""
        bucket = await self.js.key_value(STATUS_BUCKET)
        from nats.js.errors import NoKeysError

        try:
            keys = await bucket.keys()
        except NoKeysError:
            return {}
        found = {}
        for key in keys:
            subject = f"$KV.{STATUS_BUCKET}.{key}"
            entry = await self.js.get_last_msg(f"KV_{STATUS_BUCKET}", subject, direct=True)
            with contextlib.suppress(msgspec.DecodeError, ValueError):  # nonsense counts as nothing said
                status = msgspec.json.decode(entry.data or b"", type=Status)
                if status.machine == key:
                    found[key] = _received(status, entry)
        return found

    async def rows(self) -> list[MachineRow]:
        """One row for each machine, as the hub sees them now."""
        records = {machine: self.ledger.mirror(machine).last.seq for machine in self.ledger.machines()}
        return rows(
            self.registry.members(), await self.statuses(), rollout=await self.rollout(), records=records,
            breaks=self.problems(), now=datetime.now(UTC),
        )  # fmt: skip

    # -- audit ---------------------------------------------------------------------------------------------------

    async def _mirror(self) -> None:
        """Follow the audit stream: write, then acknowledge. After a kill it goes on with what was not acknowledged."""
        from nats.errors import Error as NatsError

        while True:
            try:
                pull = await self._subscribe()
                while True:
                    with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
                        for message in await pull.fetch(64, timeout=2):
                            await asyncio.to_thread(self._take, message.subject, message.data, message.headers or {})
                            await message.ack()
            except (NatsError, OSError, EOFError) as problem:
                log.warning("the audit stream cannot be mirrored: %s; trying again", _advice(problem))
                await asyncio.sleep(1)

    async def _subscribe(self) -> Any:
        """Read on from the first block that was not acknowledged.

        What an earlier reader was handed and did not finish would come again later than what follows it, and look like
        a gap; so the consumer is made again, and starts there.
        """
        from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
        from nats.js.errors import NotFoundError

        start = 1
        with contextlib.suppress(NotFoundError):
            known = await self.js.consumer_info(AUDIT_STREAM, _CONSUMER)
            start = (known.ack_floor.stream_seq if known.ack_floor else 0) + 1
            await self.js.delete_consumer(AUDIT_STREAM, _CONSUMER)
        config = ConsumerConfig(
            durable_name=_CONSUMER, ack_policy=AckPolicy.EXPLICIT, ack_wait=30, max_ack_pending=1_000,
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=start,
        )  # fmt: skip
        return await self.js.pull_subscribe(f"{AUDIT}.*", durable=_CONSUMER, stream=AUDIT_STREAM, config=config)

    def _take(self, subject: str, data: bytes, headers: Mapping[str, str]) -> None:
        machine = subject.removeprefix(f"{AUDIT}.")
        if not self._signed(machine, data, headers.get(SIGNATURE_HEADER, "")):
            log.warning("%s: something that this machine did not sign was sent in its name; it is left out", machine)
            return
        _, problems = self.ledger.mirror(machine).take(data)
        for problem in problems:
            log.warning("%s", problem)

    def _signed(self, machine: str, data: bytes, signature: str) -> bool:
        if machine not in self._keys:
            self._keys = {one.machine: one.key for one in self.registry.members().values()}
        try:
            return signed_by(self._keys.get(machine, ""), data, bytes.fromhex(signature))
        except ValueError:
            return False

    def problems(self) -> list[ChainProblem]:
        """Where chains do not hold."""
        return self.ledger.problems()

    # -- policy --------------------------------------------------------------------------------------------------

    async def rollout(self) -> Rollout | None:
        """The rollout that is under way or was the last."""
        from nats.js.errors import KeyNotFoundError

        bucket = await self.js.key_value(POLICY_BUCKET)
        try:
            entry = await bucket.get(TARGET)
        except KeyNotFoundError:
            return None
        return msgspec.json.decode(entry.value or b"", type=Rollout)

    async def rollouts(self) -> list[Rollout]:
        """The last steps of rollouts, oldest first."""
        from nats.js.errors import KeyNotFoundError, NoKeysError

        bucket = await self.js.key_value(POLICY_BUCKET)
        try:
            entries = await bucket.history(TARGET)
        except (KeyNotFoundError, NoKeysError):
            return []
        return [msgspec.json.decode(entry.value, type=Rollout) for entry in entries if entry.value]

    async def bundle(self, version: int) -> Bundle:
        """The bundle of a version, checked."""
        return unpack(await fetch(self.js, BUNDLE_BUCKET, str(version)), public=self.key.public)

    async def push(
        self, files: dict[str, bytes], *, share: float = 1.0, message: str = "", restores: int | None = None
    ) -> Rollout:
        """Sign, upload and begin to roll out; the caller has checked and replayed it."""
        last = await self.rollout()
        version = (last.version if last else 0) + 1
        data = pack(files, version=version, key=self.key, message=message, restores=restores)
        bundle = unpack(data, public=self.key.public)
        store = await self.js.object_store(BUNDLE_BUCKET)
        await store.put(str(version), data)
        started = datetime.now(UTC).isoformat(timespec="seconds")
        wanted = rollouts.first(last, version, bundle.digest, share, message=message, started=started)
        await self._announce(wanted)
        return wanted

    async def promote(self, share: float = 1.0) -> Rollout:
        """Bring the version that is being tried to more machines, or to all."""
        last = await self.rollout()
        if last is None:
            raise FleetError("there is nothing to promote; push a policy first: `hookline fleet push FOLDER`")
        wanted = rollouts.widened(last, share)
        await self._announce(wanted)
        return wanted

    async def rollback(self) -> Rollout:
        """Give everybody the last stable policy again, as a new version: machines never go back to an old number."""
        last = await self.rollout()
        if last is None or not last.stable:
            raise FleetError("there is no earlier policy to go back to")
        before = await self.bundle(last.stable)
        return await self.push(before.files, message=f"back to version {last.stable}", restores=last.stable)

    async def _announce(self, wanted: Rollout) -> None:
        bucket = await self.js.key_value(POLICY_BUCKET)
        await bucket.put(TARGET, msgspec.json.encode(wanted))
        assert self._client is not None
        await self._client.publish(ANNOUNCE, str(wanted.version).encode())


def _received(status: Status, entry: RawStreamMsg) -> Status:
    datetime.fromisoformat(status.time)  # one that cannot be read is refused here
    return msgspec.structs.replace(status, received=entry.time.isoformat(timespec="milliseconds") if entry.time else "")


def _advice(problem: Exception) -> str:
    if isinstance(problem, OSError) and problem.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        return f"{problem.strerror}; make room on the hub's disk: machines keep what is not acknowledged"
    return str(problem) or type(problem).__name__


def _team_key(path: Path) -> TeamKey:
    return TeamKey.load(path) if path.exists() else TeamKey.create(path)
