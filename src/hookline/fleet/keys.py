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
from typing import TYPE_CHECKING, Any

from hookline.core.files import private_folder, write_atomically
from hookline.errors import FleetError, extra

if TYPE_CHECKING:
    from nacl.signing import SigningKey

_SEED = 18 << 3
_USER = 20 << 3


def _signing() -> Any:
    with extra("a fleet", "fleet"):
        from nacl import signing
    return signing


class TeamKey:
    """The key that signs bundles; its holder decides what every machine enforces."""

    def __init__(self, seed: bytes) -> None:
        self._key: SigningKey = _signing().SigningKey(seed)

    @classmethod
    def create(cls, path: Path) -> TeamKey:
        """A new key in a file that only its owner can read; an existing file is never replaced."""
        if path.exists():
            raise FleetError(f"{path}: there is a key already; move it away first if a new one is meant")
        seed = os.urandom(32)
        private_folder(path.parent)
        write_atomically(path, base64.b64encode(seed) + b"\n", durable=True)
        return cls(seed)

    @classmethod
    def load(cls, path: Path) -> TeamKey:
        """The key in a file."""
        try:
            seed = base64.b64decode(path.read_bytes(), validate=False)
        except (OSError, binascii.Error) as problem:
            raise FleetError(f"{path}: cannot read the team's key: {problem}") from None
        if len(seed) != 32:
            raise FleetError(f"{path}: not a key: expected 32 bytes in base64, got {len(seed)}")
        return cls(seed)

    @property
    def public(self) -> str:
        """What machines pin: the public half, in URL-safe base64."""
        return base64.urlsafe_b64encode(bytes(self._key.verify_key)).decode().rstrip("=")

    def sign(self, data: bytes) -> bytes:
        """A signature of 64 bytes."""
        return bytes(self._key.sign(data).signature)


def verify(public: str, data: bytes, signature: bytes) -> bool:
    """Whether the holder of the team's key signed exactly this."""
    try:
        key = base64.urlsafe_b64decode(public + "=" * (-len(public) % 4))
    except ValueError:
        return False
    return _holds(key, data, signature)


def _holds(key: bytes, data: bytes, signature: bytes) -> bool:
    verifier = _signing().VerifyKey
    from nacl.exceptions import BadSignatureError

    try:
        verifier(key).verify(data, signature)
    except (BadSignatureError, ValueError, TypeError):
        return False
    return True


class MachineKey:
    """A machine's own key, made on the machine."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self._key: SigningKey = _signing().SigningKey(raw)

    @classmethod
    def create(cls) -> MachineKey:
        """A new key."""
        return cls(os.urandom(32))

    @property
    def public(self) -> str:
        """The user name that a NATS server knows: `U…`."""
        return _encode(bytes([_USER]) + bytes(self._key.verify_key))

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

    def sign(self, data: bytes) -> bytes:
        """A signature of 64 bytes."""
        return bytes(self._key.sign(data).signature)

    @property
    def seed(self) -> str:
        """The private half: `SU…`."""
        first = _SEED | (_USER >> 5)
        second = (_USER & 31) << 3
        return _encode(bytes([first, second]) + self.raw)


def is_machine_key(text: str) -> bool:
    """Whether a text is the public half of a machine's key, checksum included."""
    try:
        raw = _decode(text)
    except ValueError:
        return False
    return len(raw) == 33 and raw[0] == _USER


def signed_by(key: str, data: bytes, signature: bytes) -> bool:
    """Whether the machine with this public key signed exactly this."""
    return is_machine_key(key) and _holds(_decode(key)[1:], data, signature)


def _decode(text: str) -> bytes:
    """What an NKey holds, without its checksum; `ValueError` if that does not fit."""
    raw = base64.b32decode(text + "=" * (-len(text) % 8))
    if struct.pack("<H", _crc16(raw[:-2])) != raw[-2:]:
        raise ValueError("its checksum does not fit")
    return raw[:-2]


def _encode(payload: bytes) -> str:
    return base64.b32encode(payload + struct.pack("<H", _crc16(payload))).decode().rstrip("=")


def _crc16(data: bytes) -> int:
    return binascii.crc_hqx(data, 0)
