"""What an administrator does at a hub that runs: policies, machines, and how they stand."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from hookline.errors import FleetError
from hookline.fleet import rollout as rollouts
from hookline.fleet.bundle import Bundle, fetch, pack, unpack
from hookline.fleet.connection import connect
from hookline.fleet.hub_folder import HubFolder
from hookline.fleet.overview import MachineRow, rows
from hookline.fleet.rollout import Rollout
from hookline.fleet.status import Status, read_status
from hookline.fleet.subjects import ANNOUNCE, BUNDLE_BUCKET, POLICY_BUCKET, STATUS_BUCKET, TARGET

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.js import JetStreamContext


class Administrator:
    """A connection to a running hub, with the keys in its folder."""

    def __init__(self, folder: HubFolder, client: Client) -> None:
        self.folder = folder
        self._client = client

    @classmethod
    async def connect(cls, path: Path) -> Administrator:
        """The administrator of the hub whose folder this is."""
        folder = HubFolder(path)
        return cls(folder, await connect(folder.address().url, seed=folder.seed_path, name="hookline-admin"))

    async def close(self) -> None:
        """End the connection."""
        with contextlib.suppress(Exception):
            await self._client.close()

    @property
    def js(self) -> JetStreamContext:
        """JetStream."""
        from hookline.fleet.jetstream import PatientJetStream

        return PatientJetStream(self._client)

    # -- machines ------------------------------------------------------------------------------------------------

    def token(self, hours: float) -> str:
        """The command that enrols one machine."""
        token = self.folder.registry.token(self.folder.key.public, hours)
        return f"hookline fleet join {self.folder.address().url} --token {token}"

    def revoke(self, which: str) -> str:
        """Cut a machine off for good; its id comes back. The hub's own server hears of it within a second."""
        member = self.folder.registry.revoke(which)
        self._apply()
        return member.machine

    def resume(self, which: str) -> str:
        """Let a machine that the hub has cut off in again; its id comes back."""
        member = self.folder.registry.resume(which)
        self._apply()
        return member.machine

    def _apply(self) -> None:
        if not self.folder.address().own_server:
            self.folder.write_users()

    async def statuses(self) -> dict[str, Status | None]:
        """What every machine said last, by id; `None` for what cannot be read."""
        from nats.js.errors import NoKeysError

        bucket = await self.js.key_value(STATUS_BUCKET)
        try:
            keys = await bucket.keys()
        except NoKeysError:
            return {}
        found = {}
        for key in keys:
            subject = f"$KV.{STATUS_BUCKET}.{key}"
            entry = await self.js.get_last_msg(f"KV_{STATUS_BUCKET}", subject, direct=True)
            found[key] = read_status(key, entry.data or b"", entry.time)
        return found

    async def rows(self) -> list[MachineRow]:
        """One row for each machine, as the hub sees them now."""
        ledger = self.folder.ledger
        records = {machine: ledger.mirror(machine).last.seq for machine in ledger.machines()}
        return rows(
            self.folder.registry.members(), await self.statuses(), rollout=await self.rollout(), records=records,
            breaks=ledger.problems(), now=datetime.now(UTC),
        )  # fmt: skip

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
        return unpack(await fetch(self.js, BUNDLE_BUCKET, str(version)), public=self.folder.key.public)

    async def push(
        self, files: dict[str, bytes], *, share: float = 1.0, message: str = "", restores: int | None = None
    ) -> Rollout:
        """Sign, upload and begin to roll out; the caller has checked and replayed it.

        The bundle is whole in the bucket before any machine is told of it, so that a push that is cut short changes
        nothing: the next one uploads the same version again.
        """
        last = await self.rollout()
        version = (last.version if last else 0) + 1
        data = pack(files, version=version, key=self.folder.key, message=message, restores=restores)
        bundle = unpack(data, public=self.folder.key.public)
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
        """Give all machines the last stable policy again, as a new version: machines never go back to an old number."""
        last = await self.rollout()
        if last is None or not last.stable:
            raise FleetError("there is no earlier policy to go back to")
        before = await self.bundle(last.stable)
        return await self.push(before.files, message=f"back to version {last.stable}", restores=last.stable)

    async def _announce(self, wanted: Rollout) -> None:
        bucket = await self.js.key_value(POLICY_BUCKET)
        await bucket.put(TARGET, msgspec.json.encode(wanted))
        await self._client.publish(ANNOUNCE, str(wanted.version).encode())
