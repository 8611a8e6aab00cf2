"""Who belongs to the fleet: the team's key, which signs policy bundles, the machines with theirs, and the tokens.

A machine's key is an NKey, the form in which NATS servers know their users: base32 of a prefix, the key and a
checksum. The private half never leaves the machine.
"""

import base64
import binascii
import hashlib
import os
import secrets
import struct
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import msgspec

from hookline.core.files import locked, private_folder, write_atomically
from hookline.errors import FleetError, HooklineError
from hookline.records.audit.checkpoint import SigningKey, holds, vkey

_SEED = 18 << 3
_USER = 20 << 3
TOKEN_HOURS = 24.0
_PREFIX = "hl1"


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

    @classmethod
    def generate(cls) -> Self:
        return cls(os.urandom(32))

    @property
    def public(self) -> str:
        """The user name that a NATS server knows: `U…`."""
        return _encode(bytes([_USER]) + self.public_bytes)

    @classmethod
    def load(cls, path: Path) -> Self:
        try:
            raw = _decode(path.read_text().strip())
        except (OSError, ValueError) as problem:
            why = f"cannot read this machine's key: {problem}"
            raise FleetError(f"{path}: {why}; leave the fleet and join again") from None
        return cls(raw[2:])

    @property
    def seed(self) -> str:
        return _encode(bytes([_SEED | (_USER >> 5), (_USER & 31) << 3]) + bytes(self._key))


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


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """One machine."""

    machine: str
    name: str
    key: str
    enrolled: str
    revoked: str = ""
    suspended: str = ""  # why the hub has cut it off, until an administrator lets it in again


class _Token(msgspec.Struct, frozen=True):
    digest: str
    expires: float


class _State(msgspec.Struct):
    members: dict[str, Member] = {}
    tokens: list[_Token] = []


class MachineRegistry:
    """The hub's list of machines, in one file that is replaced at once."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "machines.json"
        self._lock = folder / "machines.lock"
        private_folder(folder)

    def _read(self) -> _State:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=_State)
        except FileNotFoundError:
            return _State()
        except (OSError, msgspec.DecodeError) as problem:
            raise FleetError(f"{self._path}: {problem}; restore it from a back-up") from None

    def _write(self, state: _State) -> None:
        write_atomically(self._path, msgspec.json.encode(state), durable=True)

    def token(self, team: str, hours: float = TOKEN_HOURS) -> str:
        """A token that enrols one machine; it carries the team's public key, which the machine pins."""
        secret = secrets.token_urlsafe(24)
        with locked(self._lock):
            state = self._read()
            now = time.time()
            state.tokens = [token for token in state.tokens if token.expires > now]
            state.tokens.append(_Token(_digest(secret), now + hours * 3600))
            self._write(state)
        return f"{_PREFIX}.{secret}.{team}"

    def enrol(self, secret: str, key: str, name: str) -> Member:
        """Spend a token on a machine; each token does this once."""
        if not is_machine_key(key):
            raise FleetError("the machine sent no usable key; upgrade its Hookline and join again")
        with locked(self._lock):
            state = self._read()
            token = next((one for one in state.tokens if secrets.compare_digest(one.digest, _digest(secret))), None)
            if token is None or token.expires < time.time():
                raise FleetError("the token is unknown, used or too old; make a new one with `hookline fleet token`")
            member = Member(machine=f"m{_digest(key)[:16]}", name=name[:80], key=key, enrolled=timestamp())
            if (known := state.members.get(member.machine)) is not None and known.revoked:
                raise FleetError("this machine's key was revoked; delete its fleet folder and join with a new one")
            state.tokens.remove(token)
            state.members[member.machine] = member
            self._write(state)
        return member

    def revoke(self, which: str) -> Member:
        """Let a machine in no more; `which` is its id or its name."""
        return self._change(which, revoked=timestamp())

    def resume(self, which: str) -> Member:
        return self._change(which, suspended="")

    def suspend(self, machine: str, why: str) -> bool:
        """Cut a machine off until it is resumed; whether it was not cut off already."""
        if (member := self.members().get(machine)) is None or member.revoked or member.suspended:
            return False
        self._change(machine, suspended=why)
        return True

    def _change(self, which: str, **fields: str) -> Member:
        with locked(self._lock):
            state = self._read()
            found = [one for one in state.members.values() if which in (one.machine, one.name) and not one.revoked]
            if len(found) != 1:
                problem = "no such machine" if not found else "several machines have this name; use the id"
                raise FleetError(f"`{which}`: {problem}; `hookline fleet machines` lists them")
            member = msgspec.structs.replace(found[0], **fields)
            state.members[member.machine] = member
            self._write(state)
        return member

    def members(self) -> dict[str, Member]:
        return self._read().members

    def keys(self) -> dict[str, str]:
        return {one.machine: one.key for one in self.members().values() if not (one.revoked or one.suspended)}


def read_token(token: str) -> tuple[str, str]:
    """A token's secret, and the team's public key."""
    parts = token.strip().split(".")
    if len(parts) != 3 or parts[0] != _PREFIX or not all(parts):
        raise FleetError(f"not a token: expected `{_PREFIX}.….…`, as `hookline fleet token` prints it")
    return parts[1], parts[2]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def timestamp() -> str:
    """The time, as it stands in the fleet's files."""
    return datetime.now(UTC).isoformat(timespec="seconds")
