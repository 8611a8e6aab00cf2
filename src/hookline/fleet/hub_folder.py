"""What a hub keeps in its folder: its keys, its machines, their mirrored logs, and where it runs."""

from __future__ import annotations

from pathlib import Path

import msgspec

from hookline.core.files import write_atomically
from hookline.errors import FleetError
from hookline.fleet.keys import MachineKey, TeamKey
from hookline.fleet.ledger import Ledger
from hookline.fleet.registry import MachineRegistry
from hookline.fleet.server import users


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
        key = path / "team.key"
        self.key: TeamKey = TeamKey.load(key) if key.exists() else TeamKey.create(key)

    @property
    def seed_path(self) -> Path:
        """The hub's own credentials, for its connection."""
        return self.path / "hub.seed"

    @property
    def users_path(self) -> Path:
        """Who may connect, for the configuration of a cluster that is not ours."""
        return self.path / "nats-users.json"

    def hub_key(self) -> MachineKey:
        """The hub's own credentials; made at its first start."""
        if not self.seed_path.exists():
            made = MachineKey.generate()
            write_atomically(self.seed_path, made.seed.encode(), durable=True)
            write_atomically(self.path / "hub.key", made.raw, durable=True)
            return made
        return MachineKey((self.path / "hub.key").read_bytes())

    def write_users(self) -> None:
        """Write who may connect; a cluster that is not ours reads it when it is reloaded."""
        known = msgspec.json.encode({"users": users(self.hub_key().public, self.registry.keys())})
        write_atomically(self.users_path, msgspec.json.format(known, indent=1))

    def write_address(self, address: HubAddress) -> None:
        """Let other commands find the hub."""
        write_atomically(self.path / "hub.json", msgspec.json.encode(address))

    def address(self) -> HubAddress:
        """Where the hub runs."""
        try:
            return msgspec.json.decode((self.path / "hub.json").read_bytes(), type=HubAddress)
        except (OSError, msgspec.DecodeError):
            raise FleetError(f"{self.path}: no hub was ever started here; run `hookline fleet hub`") from None
