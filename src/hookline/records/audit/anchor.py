"""What a log has been: in the head file beside it, and in an anchor elsewhere.

The head says where the chain stands, so that lines cut off at either end are missed. Who can replace a log can put
older copies of both back, signatures and all. An anchor, which finds that out, is the last record's number and hash in
another place: a file in the user's state folder (what a log with a key has unless you say differently), a file of your
choice on another disk, or a function that sends it away.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec

from hookline.core.files import locked, private_folder, read_at, state_folder, write_at
from hookline.core.wire.json_text import read_as
from hookline.errors import AuditError
from hookline.records.audit.chain import Link, digest

_HEAD_BYTES = 1024
_ANCHOR_BYTES = 512


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


def _head_signature(head: Head, key: bytes) -> str:
    return digest(msgspec.json.encode(msgspec.structs.replace(head, mac="")), key)


def read_head(source: int | Path) -> Head | None:
    """The head, or `None` if there is none that can be read."""
    if isinstance(source, int):
        return read_as(read_at(source, _HEAD_BYTES + 1, 0), Head)
    try:
        return read_as(source.read_bytes(), Head)
    except OSError:
        return None


def write_head(fd: int, head: Head, key: bytes | None) -> None:
    """One write of constant size, so that it can neither be torn nor need new room on a full disk."""
    signed = msgspec.structs.replace(head, keyed=key is not None)
    if key is not None:
        signed = msgspec.structs.replace(signed, mac=_head_signature(signed, key))
    write_at(fd, msgspec.json.encode(signed).ljust(_HEAD_BYTES) + b"\n", 0)


def key_problem(head: Head, key: bytes | None) -> str | None:
    """What is wrong with the key, or with the head that it should have signed."""
    if head.keyed and key is None:
        return "the log was written with a key; give it"
    if not head.keyed and key is not None:
        return "the log was written without a key; start a new one to use a key"
    if key is not None and not hmac.compare_digest(_head_signature(head, key), head.mac):
        return "the head file was changed, or the key is another one"
    return None


# -- the anchor ----------------------------------------------------------------------------------------------------


class Anchor(Protocol):
    """Somewhere else that remembers where a log stood; `read` gives `None` where nothing was remembered yet."""

    required: bool
    """Whether a log may not be written when this cannot be."""

    def read(self, key: bytes | None) -> Link | None:
        """The last record this knows of."""

    def write(self, last: Link, key: bytes | None) -> None:
        """Remember this one from now on."""


class _Mark(msgspec.Struct, frozen=True, kw_only=True):
    seq: int
    hash: str
    mac: str = ""


class FileAnchor:
    """An anchor in a file: as far from the log as you can put it, and where its writers' enemies cannot write."""

    def __init__(self, path: str | Path, *, required: bool = True) -> None:
        self.path: Path = Path(path)
        self.required = required

    def __str__(self) -> str:
        return str(self.path)

    def read(self, key: bytes | None) -> Link | None:
        """The last record; raises `AuditError` when the file is damaged, or was signed with another key."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise AuditError(f"{self.path}: the anchor cannot be read: {problem.strerror}") from None
        mark = read_as(data, _Mark)
        if mark is None:
            raise AuditError(f"{self.path}: the anchor is damaged")
        if key is not None and not hmac.compare_digest(_signature(mark.seq, mark.hash, key), mark.mac):
            raise AuditError(f"{self.path}: the anchor was changed, or the key is another one")
        return Link(mark.seq, mark.hash)

    def write(self, last: Link, key: bytes | None) -> None:
        """Remember a record, in one write of constant size."""
        mac = "" if key is None else _signature(last.seq, last.hash, key)
        data = msgspec.json.encode(_Mark(seq=last.seq, hash=last.hash, mac=mac)).ljust(_ANCHOR_BYTES) + b"\n"
        try:
            private_folder(self.path.parent)
            with locked(self.path) as fd:
                write_at(fd, data, 0)
        except OSError as problem:
            raise AuditError(f"{self.path}: the anchor cannot be written: {problem.strerror}") from None


class SinkAnchor:
    """An anchor that a function sends away, to a log collector or a queue: it is told `(seq, hash)` after each write.

    Nothing is read back: compare with `hookline audit verify --expect SEQ:HASH`.
    """

    required = True

    def __init__(self, send: Callable[[int, str], object]) -> None:
        self._send = send

    def __str__(self) -> str:
        return "a function"

    def read(self, key: bytes | None) -> Link | None:
        """Nothing: what was sent away stays there."""
        return None

    def write(self, last: Link, key: bytes | None) -> None:
        """Send it."""
        try:
            self._send(last.seq, last.hash)
        except Exception as problem:
            raise AuditError(f"the anchor cannot be sent: {type(problem).__name__}: {problem}") from problem


class ExpectedAnchor:
    """An anchor that was written down: `--expect SEQ:HASH`. It is only compared with."""

    required = True

    def __init__(self, last: Link) -> None:
        self._last = last

    def __str__(self) -> str:
        return f"record {self._last.seq}"

    def read(self, key: bytes | None) -> Link | None:
        """What was written down."""
        return self._last

    def write(self, last: Link, key: bytes | None) -> None:
        """Nothing is remembered."""


AnchorSpec = str | Path | Callable[[int, str], object] | Anchor | bool | None
"""A file, a function, an anchor of your own, `True` for the state folder, `False` for none; `None` is by the key."""


def anchor_for(given: AnchorSpec, log: Path, key: bytes | None) -> Anchor | None:
    """The anchor of a log: a file's, a function's, your own, or unless switched off the state folder's with a key."""
    if given is False or (given is None and key is None):
        return None
    if given is None or given is True:  # in the state folder, one for each log and key
        fingerprint = b"" if key is None else digest(b"fingerprint", key).encode()
        name = hashlib.sha256(os.path.realpath(log).encode("utf-8", "surrogateescape") + b"\0" + fingerprint)
        return FileAnchor(state_folder() / "audit" / f"{name.hexdigest()[:40]}.json", required=False)
    if isinstance(given, (str, Path)):
        return FileAnchor(given)
    return SinkAnchor(given) if callable(given) else given


def _signature(seq: int, hashed: str, key: bytes) -> str:
    return digest(f"anchor {seq} {hashed}".encode(), key)
