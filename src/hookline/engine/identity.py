"""What was judged and what was let through, each as a hash: two records with the same one are about the same thing."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec


def identity(value: Any) -> str:
    """SHA-256 of a value's canonical JSON: keys sorted, no spaces, UTF-8."""
    data = msgspec.json.encode(msgspec.to_builtins(value, str_keys=True, enc_hook=repr), order="sorted")
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
