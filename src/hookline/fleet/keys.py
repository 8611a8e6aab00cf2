"""Ed25519 keys: the team's, which signs policy bundles, and each machine's, which is its name towards the hub.

A machine's key is an NKey, the form in which NATS servers know their users: base32 of a prefix, the key and a
checksum. The private half never leaves the machine.
"""

from __future__ import annotations

import base64
import binascii
import os
import struct
from pathlib import Path

from hookline.errors import FleetError, HooklineError
from hookline.records.audit.signing import SigningKey, holds, vkey

_SEED = 18 << 3
_USER = 20 << 3


class TeamKey(SigningKey):
    """The key that signs bundles; its holder decides what every machine enforces."""

    problem: type[HooklineError] = FleetError

    @property
    def public(self) -> str:
        """What machines pin: the public half, in URL-safe base64."""
        return base64.urlsafe_b64encode(self.public_bytes).decode().rstrip("=")


def verify(public: str, data: bytes, signature: bytes) -> bool:
    """Whether the holder of the team's key signed exactly this."""
    try:
        key = base64.urlsafe_b64decode(public + "=" * (-len(public) % 4))
    except ValueError:
        return False
    return holds(key, data, signature)


class MachineKey(SigningKey):
    """A machine's own key, made on the machine."""

    def __init__(self, raw: bytes) -> None:
        super().__init__(raw)
        self.raw = raw

    @classmethod
    def generate(cls) -> MachineKey:
        """A new key."""
        return cls(os.urandom(32))

    @property
    def public(self) -> str:
        """The user name that a NATS server knows: `U…`."""
        return _encode(bytes([_USER]) + self.public_bytes)

    @classmethod
    def load(cls, path: Path) -> MachineKey:
        """The key whose seed is in a file."""
        try:
            raw = _decode(path.read_text().strip())
        except (OSError, ValueError) as problem:
            raise FleetError(
                f"{path}: cannot read this machine's key: {problem}; leave the fleet and join again"
            ) from None
        return cls(raw[2:])

    @property
    def seed(self) -> str:
        """The private half: `SU…`."""
        first = _SEED | (_USER >> 5)
        second = (_USER & 31) << 3
        return _encode(bytes([first, second]) + self.raw)


def log_origin(machine: str) -> str:
    """What checkpoints call a machine's log."""
    return f"hookline-fleet/{machine}"


def witness_name(team: TeamKey) -> str:
    """What a hub is called under the checkpoints that it cosigns."""
    return f"hookline-hub/{team.public_bytes.hex()[:16]}"


def vkey_of(machine: str, key: str) -> str:
    """A machine's public key, for verifiers of its checkpoints."""
    return vkey(log_origin(machine), _decode(key)[1:])


def is_machine_key(text: str) -> bool:
    """Whether a text is the public half of a machine's key, checksum included."""
    try:
        raw = _decode(text)
    except ValueError:
        return False
    return len(raw) == 33 and raw[0] == _USER


def signed_by(key: str, data: bytes, signature: bytes) -> bool:
    """Whether the machine with this public key signed exactly this."""
    return is_machine_key(key) and holds(_decode(key)[1:], data, signature)


def _decode(text: str) -> bytes:
    """What an NKey holds, without its checksum; `ValueError` if that does not fit."""
    raw = base64.b32decode(text + "=" * (-len(text) % 8))
    if struct.pack("<H", binascii.crc_hqx(raw[:-2], 0)) != raw[-2:]:
        raise ValueError("its checksum does not fit")
    return raw[:-2]


def _encode(payload: bytes) -> str:
    return base64.b32encode(payload + struct.pack("<H", binascii.crc_hqx(payload, 0))).decode().rstrip("=")
