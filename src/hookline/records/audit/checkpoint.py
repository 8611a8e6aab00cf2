"""The head file beside an audit log: where its chain stands, so that lines cut off at either end are missed."""

from __future__ import annotations

import hmac
from pathlib import Path

import msgspec

from hookline.core.files import read_at, write_at
from hookline.records.audit.chain import Link, digest

_SIZE = 1024


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """Where the chain stands (`seq`, `hash`), and where it stood before the oldest line that is kept.

    `lost_at` is set when a log was found without its head: what was cut off before that record cannot be told.
    `mac` signs the rest when the log has a key.
    """

    seq: int = 0
    hash: str = Link().hash
    base_seq: int = 0
    base_hash: str = Link().hash
    lost_at: int | None = None
    keyed: bool = False
    mac: str = ""

    @property
    def last(self) -> Link:
        """The last line whose writing was acknowledged."""
        return Link(self.seq, self.hash)

    @property
    def base(self) -> Link:
        """Where the oldest kept file begins."""
        return Link(self.base_seq, self.base_hash)

    def at(self, last: Link) -> Head:
        """The head after more lines."""
        return msgspec.structs.replace(self, seq=last.seq, hash=last.hash)

    def since(self, base: Link) -> Head:
        """The head after older files were deleted."""
        return msgspec.structs.replace(self, base_seq=base.seq, base_hash=base.hash)


def _signature(head: Head, key: bytes) -> str:
    return digest(msgspec.json.encode(msgspec.structs.replace(head, mac="")), key)


def _decoded(data: bytes) -> Head | None:
    try:
        return msgspec.json.decode(data, type=Head)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def read_head(source: int | Path) -> Head | None:
    """The head, or `None` if there is none that can be read."""
    if isinstance(source, int):
        return _decoded(read_at(source, _SIZE + 1, 0))
    try:
        return _decoded(source.read_bytes())
    except OSError:
        return None


def write_head(fd: int, head: Head, key: bytes | None) -> None:
    """One write of constant size, so that it can neither be torn nor need new room on a full disk."""
    signed = msgspec.structs.replace(head, keyed=key is not None)
    if key is not None:
        signed = msgspec.structs.replace(signed, mac=_signature(signed, key))
    write_at(fd, msgspec.json.encode(signed).ljust(_SIZE) + b"\n", 0)


def key_problem(head: Head, key: bytes | None) -> str | None:
    """What is wrong with the key, or with the head that it should have signed."""
    if head.keyed and key is None:
        return "the log was written with a key; give it"
    if not head.keyed and key is not None:
        return "the log was written without a key; start a new one to use a key"
    if key is not None and not hmac.compare_digest(_signature(head, key), head.mac):
        return "the head file was changed, or the key is another one"
    return None
