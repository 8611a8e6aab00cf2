"""Ed25519 keys, and what they sign for others to verify: C2SP notes and cosignatures, DSSE envelopes."""

from __future__ import annotations

import base64
import binascii
import os
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from hookline.core.files import private_folder, write_atomically
from hookline.errors import AuditError, HooklineError, extra

if TYPE_CHECKING:
    from nacl.signing import SigningKey as _Nacl

NOTE, COSIGNATURE = 1, 4
"""C2SP's numbers for the two kinds of signature on a note."""


def _signing() -> Any:
    with extra("signing", "proofs"):
        from nacl import signing
    return signing


class SigningKey:
    """A private key of 32 bytes; in a file it is base64, and only its owner can read that."""

    problem: type[HooklineError] = AuditError

    def __init__(self, seed: bytes) -> None:
        self._key: _Nacl = _signing().SigningKey(seed)

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
        """The key in a file."""
        try:
            seed = base64.b64decode(path.read_bytes(), validate=False)
        except (OSError, binascii.Error) as problem:
            raise cls.problem(f"{path}: cannot read the key: {problem}") from None
        if len(seed) != 32:
            raise cls.problem(f"{path}: not a key: expected 32 bytes in base64, got {len(seed)}")
        return cls(seed)

    @property
    def public_bytes(self) -> bytes:
        """The public half: 32 bytes."""
        return bytes(self._key.verify_key)

    def sign(self, data: bytes) -> bytes:
        """A signature of 64 bytes."""
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
    kind, stamp, signed = NOTE, b"", text
    if time is not None:
        kind, stamp, signed = COSIGNATURE, time.to_bytes(8, "big"), f"cosignature/v1\ntime {time}\n{text}"
    made = _key_id(name, key.public_bytes, kind) + stamp + key.sign(signed.encode())
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
            if (
                (dash, signer) == ("—", name)
                and raw[:4] == _key_id(name, public, kind)
                and _fits(text, kind, public, raw[4:])
            ):
                return text
    except ValueError as problem:
        raise AuditError(f"not a signed note, or not a key: {problem}") from None
    raise AuditError(f"the note is not signed by {name}, or it was changed")


def _fits(text: str, kind: int, public: bytes, signature: bytes) -> bool:
    if kind == COSIGNATURE:
        text = f"cosignature/v1\ntime {int.from_bytes(signature[:8], 'big')}\n{text}"
        signature = signature[8:]
    return holds(public, text.encode(), signature)


# -- DSSE --------------------------------------------------------------------------------------------------------------

IN_TOTO = "application/vnd.in-toto+json"


def dsse_envelope(payload: bytes, key: SigningKey, key_name: str, kind: str = IN_TOTO) -> dict[str, Any]:
    """A payload in a DSSE envelope."""
    signed = b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)
    signature = {"keyid": key_name, "sig": base64.b64encode(key.sign(signed)).decode()}
    return {"payloadType": kind, "payload": base64.b64encode(payload).decode(), "signatures": [signature]}
