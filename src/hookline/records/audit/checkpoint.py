"""Checkpoints: an audit log as a C2SP transparency log, signed now and then, and proofs for third parties.

Beside the log are three files. `.checkpoint` is the newest one, a C2SP signed note; `.leaves` has the hash of each raw
line, 32 bytes each, so that proofs outlast a rotation that deletes lines; `.tree` is where the reading stands. All is
made from the log itself, by any process, and never on the way of a tool call. Nothing is signed that does not follow
from the checkpoint before: a log that was cut or changed has none from then on.

What is signed is signed with Ed25519 keys, for others to verify: C2SP notes and cosignatures, DSSE envelopes.
"""

import base64
import binascii
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import msgspec

from hookline.core.files import locked, private_folder, read_at, state_folder, write_at, write_atomically
from hookline.core.wire.json_text import read_as
from hookline.errors import AuditError, HooklineError, extra
from hookline.records.audit.chain import Anchor, Link, link_of
from hookline.records.audit.reader import Cursor, LogReader

EVERY = 1_000
_LEAF = 32
_STATE_BYTES = 4096
NOTE, COSIGNATURE = 1, 4  # C2SP's numbers for the two kinds of signature on a note
IN_TOTO = "application/vnd.in-toto+json"


def _signing() -> Any:
    with extra("signing", "proofs"):
        from nacl import signing
    return signing


class SigningKey:
    """A private key of 32 bytes; in a file it is base64, and only its owner can read that."""

    problem: type[HooklineError] = AuditError

    def __init__(self, seed: bytes) -> None:
        self._key = _signing().SigningKey(seed)

    @classmethod
    def create(cls, path: Path) -> Self:
        """A new key in a file; an existing file is never replaced."""
        if path.exists():
            raise cls.problem(f"{path}: there is a key already; move it away first if a new one is meant")
        seed = os.urandom(32)
        private_folder(path.parent)
        write_atomically(path, base64.b64encode(seed) + b"\n", durable=True)
        return cls(seed)

    @classmethod
    def load(cls, path: Path) -> Self:
        try:
            seed = base64.b64decode(path.read_bytes(), validate=False)
        except (OSError, binascii.Error) as problem:
            raise cls.problem(f"{path}: cannot read the key: {problem}") from None
        if len(seed) != 32:
            raise cls.problem(f"{path}: not a key: expected 32 bytes in base64, got {len(seed)}")
        return cls(seed)

    @property
    def public_bytes(self) -> bytes:
        return bytes(self._key.verify_key)

    def sign(self, data: bytes) -> bytes:
        return bytes(self._key.sign(data).signature)


def holds(public: bytes, data: bytes, signature: bytes) -> bool:
    """Whether the holder of a key signed exactly this."""
    from nacl.exceptions import BadSignatureError

    try:
        _signing().VerifyKey(public).verify(data, signature)
    except (BadSignatureError, ValueError, TypeError):
        return False
    return True


# -- C2SP notes: a text, an empty line, a line for each signature ------------------------------------------------------


def _key_id(name: str, public: bytes, kind: int) -> bytes:
    return sha256(f"{name}\n".encode() + bytes([kind]) + public).digest()[:4]


def vkey(name: str, public: bytes, kind: int = NOTE) -> str:
    """A public key as tools for notes take it: `NAME+ID+KEY`."""
    key = base64.b64encode(bytes([kind]) + public).decode()
    return f"{name}+{_key_id(name, public, kind).hex()}+{key}"


def signature_line(name: str, key: SigningKey, text: str, time: int | None = None) -> str:
    """A signature under a note; with a `time` a witness's, who says that it saw this text then."""
    kind, stamp = (NOTE, b"") if time is None else (COSIGNATURE, time.to_bytes(8, "big"))
    made = _key_id(name, key.public_bytes, kind) + stamp + key.sign(_signed_text(text, stamp))
    return f"— {name} {base64.b64encode(made).decode()}\n"


def verified_note(note: str, verifier: str) -> str:
    """The text of a note that the holder of a `vkey` signed or cosigned; `AuditError` if it was not."""
    try:
        name, _, encoded = verifier.strip().split("+", 2)
        kind, *key = base64.b64decode(encoded, validate=True)
        text, _, lines = note.rpartition("\n\n")
        text, public = f"{text}\n", bytes(key)
        for line in lines.splitlines():
            dash, signer, signature = line.split(" ")
            raw = base64.b64decode(signature, validate=True)
            stamp, signed = (raw[4:12], raw[12:]) if kind == COSIGNATURE else (b"", raw[4:])
            known = (dash, signer) == ("—", name) and raw[:4] == _key_id(name, public, kind)
            if known and holds(public, _signed_text(text, stamp), signed):
                return text
    except ValueError as problem:
        raise AuditError(f"not a signed note, or not a key: {problem}") from None
    raise AuditError(f"the note is not signed by {name}, or it was changed")


def _signed_text(text: str, stamp: bytes) -> bytes:
    """What is signed: the text of a note, or with a time's stamp that a witness saw it then."""
    saw = f"cosignature/v1\ntime {int.from_bytes(stamp, 'big')}\n" if stamp else ""
    return f"{saw}{text}".encode()


def dsse_envelope(payload: bytes, key: SigningKey, key_name: str, kind: str = IN_TOTO) -> dict[str, Any]:
    """A payload in a DSSE envelope."""
    signed = b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)
    signature = {"keyid": key_name, "sig": base64.b64encode(key.sign(signed)).decode()}
    return {"payloadType": kind, "payload": base64.b64encode(payload).decode(), "signatures": [signature]}


class TreeHead(msgspec.Struct, frozen=True):
    """What a checkpoint says: which log, how many records, and the hash over them."""

    origin: str
    size: int
    root: bytes

    @property
    def text(self) -> str:
        return f"{self.origin}\n{self.size}\n{_base64(self.root)}\n"

    @classmethod
    def parse(cls, note: str) -> Self:
        """The head in a checkpoint, signed or not; `AuditError` if it is not one."""
        origin, size, root, *_ = [*note.split("\n"), "", "", ""]
        try:
            return cls(origin, int(size), base64.b64decode(root, validate=True))
        except ValueError:
            raise AuditError("not a checkpoint: expected an origin, a size and a hash, a line each") from None


class _State(msgspec.Struct):
    size: int = 0
    roots: list[bytes] = []
    cursor: Cursor = Cursor()
    last: Link = Link()


def default_key() -> SigningKey:
    """The user's own key for checkpoints, in the state folder; made when it is first needed."""
    path = private_folder(state_folder() / "audit") / "checkpoint.key"
    with locked(path.with_suffix(".lock")):  # two that begin at once must not have two
        return SigningKey.load(path) if path.exists() else SigningKey.create(path)


class LogTree:
    """The Merkle tree over a log; it can be grown and asked by anyone who may write beside the log."""

    def __init__(self, log: str | Path) -> None:
        self.log: Path = Path(log)
        self.leaves_path: Path = self._beside("leaves")

    def _beside(self, ending: str) -> Path:
        return self.log.with_name(f"{self.log.name}.{ending}")

    def grow(self, known: Iterable[TreeHead] = (), up_to: int = sys.maxsize) -> "Frontier":
        """Read what the log has more; raises `AuditError` if that does not follow from what was read, or is `known`."""
        roots = {head.size: head.root for head in known}
        with locked(self._beside("tree")) as fd:
            state, leaves = read_as(read_at(fd, _STATE_BYTES, 0), _State) or _State(), []
            tree, reader = Frontier(state.size, state.roots), LogReader(self.log)
            cursor = reader.found_again(state.cursor, state.last) if state.size else state.cursor
            if cursor is None:
                ends = f"record {state.last.seq}, which the tree ends with"
                raise AuditError(f"{self.log}: {ends}, is not in it any more")
            while tree.size < up_to and (batch := reader.read(cursor, most_lines=up_to - tree.size)).data:
                for line in batch.lines:
                    leaves.append(leaf_hash(line))
                    tree.add(leaves[-1])
                    if tree.size in roots and roots[tree.size] != tree.root:
                        raise AuditError(f"{self.log}: its first {tree.size} records are not those of the checkpoint")
                cursor, state.last = batch.cursor, link_of(batch.lines[-1]) or state.last
            if leaves:
                with os.fdopen(os.open(self.leaves_path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
                    file.seek(state.size * _LEAF)
                    file.write(b"".join(leaves))
                state.size, state.roots, state.cursor = tree.size, tree.roots, cursor
                write_at(fd, msgspec.json.encode(state).ljust(_STATE_BYTES), 0)
            return tree

    def leaves(self, size: int) -> list[bytes]:
        try:
            data = self.leaves_path.read_bytes()[: size * _LEAF]
        except OSError as problem:
            raise AuditError(f"{self.leaves_path}: {problem.strerror}; run `hookline audit checkpoint`") from None
        if len(data) < size * _LEAF:
            raise AuditError(f"{self.leaves_path}: it has {len(data) // _LEAF} leaves, {size} are needed")
        return [data[start : start + _LEAF] for start in range(0, len(data), _LEAF)]

    def check(self, head: TreeHead) -> None:
        """Raise `AuditError` unless the log's first records, as they are now, are those that a checkpoint is over."""
        size, kept = -1, []
        while size != (size := self.grow().size):  # until no one has written meanwhile
            kept = [leaf_hash(line) for batch in LogReader(self.log).batches() for line in batch.lines]
        if size < head.size:
            raise AuditError(f"{self.log}: it ends before record {head.size}, which the checkpoint covers")
        deleted = self.leaves(size - len(kept)) if size > len(kept) else []
        if root_of([*deleted, *kept][: head.size]) != head.root:
            raise AuditError(f"{self.log}: its first {head.size} records are not those of the checkpoint")


class Checkpoints(LogTree):
    """Signs a log's tree: `update()` when `is_due`, at the end of a session, or whenever you like.

    `origin` is the log's name for verifiers, such as `audit.example.org/laptop-7`; without one it is made of the names
    of the machine and the file. The `anchor`'s folder has a copy of the newest checkpoint, if it is a file's.
    """

    def __init__(
        self, log: str | Path, key: SigningKey | None = None, *, origin: str = "", every: int = EVERY,
        anchor: Anchor | None = None,
    ) -> None:  # fmt: skip
        super().__init__(log)
        self.key: SigningKey = key or default_key()
        self.origin: str = origin or f"{platform.node() or 'localhost'}/{self.log.name}"
        if not self.origin.isprintable() or set(self.origin) & set(" +"):
            raise AuditError(f"origin: expected a name without spaces or `+`, got `{self.origin}`")
        self.every = every
        place: Path | None = getattr(anchor, "path", None)
        copies = () if place is None else (place.with_name(f"{place.name}.checkpoint"),)
        self.paths: tuple[Path, ...] = (self._beside("checkpoint"), *copies)

    @property
    def vkey(self) -> str:
        return vkey(self.origin, self.key.public_bytes)

    def is_due(self, before: int, after: int) -> bool:
        return before // self.every != after // self.every

    def newest(self) -> list[str]:
        return [path.read_text() for path in self.paths if path.exists()]

    def update(self) -> str:
        try:
            known = [TreeHead.parse(note) for note in self.newest()]
            tree = self.grow(known)
            if ahead := [head.size for head in known if head.size > tree.size]:
                raise AuditError(f"{self.log}: it has {tree.size} records, and a checkpoint is known over {ahead[0]}")
            head = TreeHead(self.origin, tree.size, tree.root)
            note = f"{head.text}\n{signature_line(self.origin, self.key, head.text)}"
            for path in self.paths:
                write_atomically(path, note.encode())
        except OSError as problem:
            raise AuditError(f"{problem.filename or self.log}: no checkpoint: {problem.strerror}") from None
        return note

    def proof_of(self, record: int) -> dict[str, Any]:
        """That a record is in the log that the newest checkpoint is over, with all that a verifier needs."""
        about, leaves = self._signed()
        lines = (line for batch in LogReader(self.log).batches() for line in batch.lines)
        line = next((line for line in lines if (link := link_of(line)) and link.seq == record), None)
        if line is None:
            raise AuditError(f"{self.log}: record {record} is not in it, or not any more")
        if (leaf := leaf_hash(line)) not in leaves:
            raise AuditError(f"{self.log}: record {record} is not as it was, or is newer than the checkpoint")
        index = leaves.index(leaf)
        path = [*map(_base64, inclusion_proof(index, leaves))]
        return {**about, "index": index, "leaf": _base64(line.removesuffix(b"\n")), "path": path}

    def proof_since(self, old: TreeHead) -> dict[str, Any]:
        """That the log's first records are still those of an older checkpoint."""
        about, leaves = self._signed()
        if old.size > len(leaves) or root_of(leaves[: old.size]) != old.root:
            raise AuditError(f"{self.log}: it does not go on from that checkpoint: records were changed or removed")
        path = [*map(_base64, consistency_proof(old.size, leaves))]
        return {**about, "from": old.size, "fromRoot": _base64(old.root), "path": path}

    def _signed(self) -> tuple[dict[str, Any], list[bytes]]:
        """What a proof says of the newest checkpoint, and the leaves that it is over."""
        if not (notes := self.newest()):
            raise AuditError(f"{self.log}: it has no checkpoint; run `hookline audit checkpoint {self.log}`")
        head = TreeHead.parse(notes[0])
        leaves = self.leaves(head.size)
        if root_of(leaves) != head.root:
            raise AuditError(f"{self.leaves_path}: it is not what the checkpoint is over")
        about = {"checkpoint": notes[0], "vkey": self.vkey, "size": head.size, "root": _base64(head.root)}
        return about, leaves


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


# -- Merkle trees as in RFC 6962 and 9162; leaves are hashes of raw lines, without their ends --------------------------


def leaf_hash(line: bytes) -> bytes:
    """The leaf of a line."""
    return sha256(b"\0" + line.removesuffix(b"\n")).digest()


def _join(left: bytes, right: bytes) -> bytes:
    return sha256(b"\1" + left + right).digest()


class Frontier:
    """A tree that grows: the roots of its whole subtrees, the largest first, which is all that further leaves need."""

    def __init__(self, size: int = 0, roots: Iterable[bytes] = ()) -> None:
        self.size: int = size
        self.roots: list[bytes] = list(roots)

    def add(self, leaf: bytes) -> None:
        self.roots.append(leaf)
        self.size += 1
        carried = self.size
        while not carried & 1:
            self.roots[-2:] = [_join(*self.roots[-2:])]
            carried >>= 1

    @property
    def root(self) -> bytes:
        if not self.roots:
            return sha256(b"").digest()
        found = self.roots[-1]
        for left in self.roots[-2::-1]:
            found = _join(left, found)
        return found


def root_of(leaves: Iterable[bytes]) -> bytes:
    """The hash of the tree over these leaves."""
    tree = Frontier()
    for leaf in leaves:
        tree.add(leaf)
    return tree.root


def inclusion_proof(index: int, leaves: Sequence[bytes]) -> list[bytes]:
    """The hashes that lead from one leaf to the root."""
    if len(leaves) <= 1:
        return []
    half = 1 << (len(leaves) - 1).bit_length() - 1
    if index < half:
        return [*inclusion_proof(index, leaves[:half]), root_of(leaves[half:])]
    return [*inclusion_proof(index - half, leaves[half:]), root_of(leaves[:half])]


def consistency_proof(size: int, leaves: Sequence[bytes], *, whole: bool = True) -> list[bytes]:
    """The hashes by which the root over the first `size` leaves, and that over all of them, are both reached."""
    if size in (0, len(leaves)):
        return [] if whole else [root_of(leaves)]
    half = 1 << (len(leaves) - 1).bit_length() - 1
    if size <= half:
        return [*consistency_proof(size, leaves[:half], whole=whole), root_of(leaves[half:])]
    return [*consistency_proof(size - half, leaves[half:], whole=False), root_of(leaves[:half])]
