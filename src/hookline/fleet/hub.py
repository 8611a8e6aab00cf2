"""The hub: runs the server, lets machines in, and mirrors every audit log."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hookline.errors import FleetError
from hookline.fleet.administrator import Administrator
from hookline.fleet.connection import connect, end
from hookline.fleet.hub_folder import HubAddress, HubFolder
from hookline.fleet.mirroring import DAY_BYTES, Mirroring, advice
from hookline.fleet.server import Server
from hookline.fleet.status import MOST_STATUS, read_status
from hookline.fleet.subjects import AUDIT, AUDIT_STREAM, BUNDLE_BUCKET, ENROL, POLICY_BUCKET, STATUS_BUCKET

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.js import JetStreamContext

log: logging.Logger = logging.getLogger("hookline.fleet")
_MEMBER_SECONDS = 0.5
_LEAST_FREE = 4 << 20


class _Ask(msgspec.Struct, frozen=True):
    """What a machine that wants to join sends."""

    secret: str
    key: str
    name: str


class Hub:
    """A team's hub in one folder, with its own NATS server unless `url` names another.

    `quota` bounds the bytes of records that a machine may send within a day.
    """

    def __init__(self, path: Path, *, server: Server | None = None, url: str = "", quota: int = DAY_BYTES) -> None:
        self.folder: HubFolder = HubFolder(path)
        self.server = server
        self.url: str = url or (server.url if server else "")
        self.mirroring: Mirroring = Mirroring(self.folder, lambda: self.js, on_cut_off=self._apply_members, quota=quota)
        self._tasks: list[asyncio.Task[None]] = []
        self._client: Client | None = None
        self._disk_was_full = False

    async def start(self) -> None:
        """Start the server if it is ours, make the streams, and serve."""
        self._configure()
        if self.server is not None:
            self.server.start()
        self._client = await self._connected()
        await self._provision()
        self.folder.write_address(HubAddress(self.url, own_server=self.server is not None))
        await self._client.subscribe(ENROL, cb=self._enrol)
        await self._client.subscribe(f"$KV.{STATUS_BUCKET}.*", cb=self._hear)
        self._tasks = [asyncio.create_task(self.mirroring.run()), asyncio.create_task(self._follow_members())]

    async def run(self) -> None:
        """Serve until a part of the hub fails; what it failed with is raised."""
        await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in self._tasks:
            if task.done() and not task.cancelled():
                task.result()
        raise FleetError("a part of the hub has ended; start it again")

    async def _connected(self) -> Client:
        try:
            return await connect(self.url, seed=self.folder.seed_path, name="hookline-hub")
        except FleetError as problem:
            if self.server is not None:
                raise
            hint = f"{problem}; the users it has to know are in {self.folder.users_path}: include that file in"
            raise FleetError(
                f"{hint} the account that the fleet may use (with JetStream), and reload the server"
            ) from None

    async def stop(self) -> None:
        """End everything in good order."""
        await end(*self._tasks)
        if self._client is not None:
            with contextlib.suppress(Exception):
                await self._client.close()
        if self.server is not None:
            self.server.stop()

    @property
    def admin(self) -> Administrator:
        """Its administrator, over the hub's own connection."""
        return Administrator(self.folder, self._running_client)

    @property
    def js(self) -> JetStreamContext:
        """JetStream, once started."""
        return self.admin.js

    @property
    def _running_client(self) -> Client:
        if self._client is None:
            raise FleetError("the hub is not running; start it with `hookline fleet hub`")
        return self._client

    async def _provision(self) -> None:
        """Streams and buckets; what is there already stays as it is, but for what a machine may do to others."""
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
        statuses = (await self.js.stream_info(f"KV_{STATUS_BUCKET}")).config
        statuses.allow_rollup_hdrs = False  # one machine's message could remove what all others have said
        statuses.max_msg_size = MOST_STATUS
        await self.js.update_stream(statuses)

    # -- machines ------------------------------------------------------------------------------------------------

    async def _enrol(self, message: Any) -> None:
        try:
            ask = msgspec.json.decode(message.data, type=_Ask)
            member = self.folder.registry.enrol(ask.secret, ask.key, ask.name)
        except (FleetError, msgspec.DecodeError, RecursionError) as problem:
            await message.respond(msgspec.json.encode({"error": str(problem)}))
            return
        self._apply_members()
        answer = msgspec.json.encode({"machine": member.machine, "key": member.key})
        signature = self.folder.key.sign(answer).hex()
        await message.respond(msgspec.json.encode({"answer": answer.decode(), "signature": signature}))
        log.info("%s joined as %s", member.name, member.machine)

    async def _hear(self, message: Any) -> None:
        machine = message.subject.rpartition(".")[2]
        status = read_status(machine, message.data, None)
        if status is not None:
            await asyncio.to_thread(self.mirroring.heard, machine, status)

    async def _follow_members(self) -> None:
        """Apply what other commands do to the list of machines, and see that the server is there and can write."""
        known = self.folder.registry.keys()
        while True:
            await asyncio.sleep(_MEMBER_SECONDS)
            if self.server is not None:
                await self._look_after(self.server)
            try:
                keys = await asyncio.to_thread(self.folder.registry.keys)
                if keys != known:
                    self._apply_members()
                    known = keys
            except OSError as problem:
                log.warning("the list of machines cannot be applied: %s; trying again", advice(problem))

    async def _look_after(self, server: Server) -> None:
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
        """Let the server know who may connect now."""
        self._configure()
        if self.server is not None:
            self.server.reload()

    def _configure(self) -> None:
        if self.server is not None:
            self.server.configure(self.folder.hub_key().public, self.folder.registry.keys())
        else:
            self.folder.write_users()
