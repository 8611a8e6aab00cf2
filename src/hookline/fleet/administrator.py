"""What an administrator does at a hub that runs: policies, machines, and how they stand; for the console, too."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import msgspec

from hookline.core.files import write_atomically
from hookline.errors import FleetError, extra
from hookline.fleet import connection as wire
from hookline.fleet.bundle import pack, unpack
from hookline.fleet.ledger import Ledger, MachineRow, Rollout, Status, first, logs_below, read_status, rows
from hookline.fleet.members import MachineKey, MachineRegistry, Member, TeamKey, timestamp

with extra("a fleet", "fleet"):
    from nats.aio.client import Client
    from nats.js import JetStreamContext
    from nats.js.errors import KeyNotFoundError, NoKeysError

SECONDS = 2.0  # how often the console's pages ask the hub again


class HubAddress(msgspec.Struct, frozen=True):
    """How other commands find a hub: where it is, and whether the server there is its own."""

    url: str
    own_server: bool = True


class HubFolder:
    """The files of one hub."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.registry: MachineRegistry = MachineRegistry(path)
        self.ledger: Ledger = Ledger(path / "audit")
        self.seed_path: Path = path / "hub.seed"  # the hub's own credentials, for its connection
        self.users_path: Path = path / "nats-users.json"  # who may connect, for a cluster that is not ours
        key = path / "team.key"
        self.key: TeamKey = TeamKey.load(key) if key.exists() else TeamKey.create(key)

    def hub_key(self) -> MachineKey:
        if not self.seed_path.exists():
            write_atomically(self.seed_path, MachineKey.generate().seed.encode(), durable=True)
        return MachineKey.load(self.seed_path)

    def write_users(self) -> None:
        """Write who may connect; a cluster that is not ours reads it when it is reloaded."""
        known = msgspec.json.encode({"users": wire.users(self.hub_key().public, self.registry.keys())})
        write_atomically(self.users_path, msgspec.json.format(known, indent=1))

    def address(self) -> HubAddress:
        try:
            return msgspec.json.decode((self.path / "hub.json").read_bytes(), type=HubAddress)
        except (OSError, msgspec.DecodeError):
            raise FleetError(f"{self.path}: no hub was ever started here; run `hookline fleet hub`") from None


class Administrator:
    """A connection to a running hub, with the keys in its folder."""

    def __init__(self, folder: HubFolder, client: Client) -> None:
        self.folder = folder
        self.js: JetStreamContext = wire.patient_jetstream(client)
        self._client = client

    @classmethod
    async def connect(cls, path: Path) -> Self:
        folder = HubFolder(path)
        return cls(folder, await wire.connect(folder.address().url, seed=folder.seed_path, name="hookline-admin"))

    async def aclose(self) -> None:
        with contextlib.suppress(Exception):
            await self._client.close()

    def token(self, hours: float) -> str:
        token = self.folder.registry.token(self.folder.key.public, hours)
        return f"hookline fleet join {self.folder.address().url} --token {token}"

    def revoke(self, which: str) -> str:
        """Cut a machine off for good; its id comes back. The hub's own server hears of it within a second."""
        return self._changed(self.folder.registry.revoke(which))

    def resume(self, which: str) -> str:
        """Let a machine that the hub has cut off in again; its id comes back."""
        return self._changed(self.folder.registry.resume(which))

    def _changed(self, member: Member) -> str:
        if not self.folder.address().own_server:
            self.folder.write_users()
        return member.machine

    async def statuses(self) -> dict[str, Status | None]:
        """What every machine said last, by id; `None` for what cannot be read."""
        bucket = await self.js.key_value(wire.STATUS_BUCKET)
        found = {}
        with contextlib.suppress(NoKeysError):
            for key in await bucket.keys():
                subject = f"$KV.{wire.STATUS_BUCKET}.{key}"
                entry = await self.js.get_last_msg(f"KV_{wire.STATUS_BUCKET}", subject, direct=True)
                found[key] = read_status(key, entry.data or b"", entry.time)
        return found

    async def rows(self) -> list[MachineRow]:
        ledger = self.folder.ledger
        records = {machine: ledger.mirror(machine).last.seq for machine in ledger.machines()}
        return rows(
            self.folder.registry.members(), await self.statuses(), rollout=await self.rollout(), records=records,
            breaks=ledger.problems(), now=datetime.now(UTC),
        )  # fmt: skip

    async def rollout(self) -> Rollout | None:
        return await wire.read_rollout(self.js)

    async def rollouts(self) -> list[Rollout]:
        """The last steps of rollouts, oldest first."""
        bucket = await self.js.key_value(wire.POLICY_BUCKET)
        with contextlib.suppress(KeyNotFoundError, NoKeysError):
            entries = await bucket.history(wire.TARGET)
            return [msgspec.json.decode(entry.value, type=Rollout) for entry in entries if entry.value]
        return []

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
        store = await self.js.object_store(wire.BUNDLE_BUCKET)
        await store.put(str(version), data)
        return await self._announce(first(last, version, bundle.digest, share, message=message, started=timestamp()))

    async def promote(self, share: float = 1.0) -> Rollout:
        """Bring the version that is being tried to more machines, or to all."""
        if (last := await self.rollout()) is None:
            raise FleetError("there is nothing to promote; push a policy first: `hookline fleet push FOLDER`")
        return await self._announce(last.widened(share))

    async def rollback(self) -> Rollout:
        """Give all machines the last stable policy again, as a new version: machines never go back to an old number."""
        if (last := await self.rollout()) is None or not last.stable:
            raise FleetError("there is no earlier policy to go back to")
        before = unpack(await wire.fetch(self.js, wire.BUNDLE_BUCKET, str(last.stable)), public=self.folder.key.public)
        return await self.push(before.files, message=f"back to version {last.stable}", restores=last.stable)

    async def _announce(self, wanted: Rollout) -> Rollout:
        bucket = await self.js.key_value(wire.POLICY_BUCKET)
        await bucket.put(wire.TARGET, msgspec.json.encode(wanted))
        await self._client.publish(wire.ANNOUNCE, str(wanted.version).encode())
        return wanted


class FleetPages:
    """What the console's Machines and Rollouts ask for; `problem` says why it may be old."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problem: str = "the hub has not answered yet"
        self._rows: Sequence[MachineRow] = ()
        self._steps: Sequence[Rollout] = ()

    async def follow(self) -> None:
        """Ask the hub again and again; if it goes away, what it said last is shown, and that it is away."""
        while True:
            try:
                async with contextlib.aclosing(await Administrator.connect(self.folder)) as hub:
                    while True:
                        self._rows, self._steps = await hub.rows(), await hub.rollouts()
                        self.problem = ""
                        await asyncio.sleep(SECONDS)
            except FleetError as problem:
                self.problem = str(problem)
                await asyncio.sleep(SECONDS)
            except Exception as problem:  # noqa: BLE001 - whatever it was, it is shown, and asked again
                self.problem = f"the hub does not answer: {problem}; is `hookline fleet hub` running?"

    def logs(self) -> list[Path]:
        return sorted(logs_below(self.folder / "audit"))

    def machines(self) -> dict[str, Any]:
        more = ("ok", "hooked", "proven")
        rows = [msgspec.to_builtins(row) | {name: getattr(row, name) for name in more} for row in self._rows]
        return {"problem": self.problem, "machines": rows}

    def rollouts(self) -> dict[str, Any]:
        return {"problem": self.problem, "rollouts": steps(self._steps, self._rows)}


def steps(history: Sequence[Rollout], rows: Sequence[MachineRow]) -> list[dict[str, Any]]:
    """How each step of the rollouts, and the machines that should have its version, stand; the newest first."""
    wanted = Counter(row.wanted for row in rows)
    in_force = Counter(row.policy for row in rows)
    refused = [(row.wanted, f"{row.name}: {text}") for row in rows for text in row.problems if "refused" in text]
    return [
        {name: getattr(step, name) for name in ("version", "share", "stable", "message", "started")}
        | {"current": place == 0, "wanted": wanted[step.version], "in_force": in_force[step.version]}
        | {"refused": [text for version, text in refused if version == step.version]}
        for place, step in enumerate(reversed(history))
    ]
