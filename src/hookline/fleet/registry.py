"""Who belongs to the fleet: machines, their public keys, and the tokens that let one more in."""

from __future__ import annotations

import hashlib
import secrets
import time
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from hookline.core.files import locked, private_folder, write_atomically
from hookline.errors import FleetError
from hookline.fleet.keys import is_machine_key

TOKEN_HOURS = 24.0
_PREFIX = "hl1"


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """One machine."""

    machine: str
    name: str
    key: str
    enrolled: str
    revoked: str = ""
    suspended: str = ""
    """Why the hub has cut it off, until an administrator lets it in again."""


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
            member = Member(machine=f"m{_digest(key)[:16]}", name=name[:80], key=key, enrolled=_now())
            known = state.members.get(member.machine)
            if known is not None and known.revoked:
                raise FleetError("this machine's key was revoked; delete its fleet folder and join with a new one")
            state.tokens.remove(token)
            state.members[member.machine] = member
            self._write(state)
        return member

    def revoke(self, which: str) -> Member:
        """Let a machine in no more; `which` is its id or its name."""
        return self._change(which, revoked=_now())

    def resume(self, which: str) -> Member:
        """Let a machine in again that was cut off."""
        return self._change(which, suspended="")

    def suspend(self, machine: str, why: str) -> bool:
        """Cut a machine off until it is resumed; whether it was not cut off already."""
        member = self.members().get(machine)
        if member is None or member.revoked or member.suspended:
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
        """Every machine that was ever enrolled, by id."""
        return self._read().members

    def keys(self) -> dict[str, str]:
        """The machines that may connect, and their keys."""
        return {one.machine: one.key for one in self.members().values() if not (one.revoked or one.suspended)}


def read_token(token: str) -> tuple[str, str]:
    """A token's secret, and the team's public key."""
    parts = token.strip().split(".")
    if len(parts) != 3 or parts[0] != _PREFIX or not all(parts):
        raise FleetError(f"not a token: expected `{_PREFIX}.….…`, as `hookline fleet token` prints it")
    return parts[1], parts[2]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
