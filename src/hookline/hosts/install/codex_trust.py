"""Codex runs a hook only once its hash is in `config.toml`. Writing it there replaces Codex's own question.

So it is written on the user's explicit yes only, and for our own entries only. The hash is Codex's: SHA-256 of the
hook's normalised definition, which the tests compare with what `codex app-server` says.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from hookline.hosts.codex import CODEX
from hookline.hosts.install import jsonc, toml_block
from hookline.hosts.install.entries import is_ours

_CLAMP = {"session_end": 3}


def trusted(hooks_file: Path, text: str) -> dict[str, str]:
    """Codex's key and hash for each of our entries in its `hooks.json`."""
    found = {}
    for event, groups in jsonc.parse(text).value.get("hooks", {}).items():
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
        for number, group in enumerate(groups):
            for index, hook in enumerate(group.get("hooks", ())):
                if is_ours(hook.get("command"), CODEX):
                    found[f"{hooks_file}:{name}:{number}:{index}"] = _hash(name, group.get("matcher"), hook)
    return found


def _hash(event: str, matcher: str | None, hook: dict[str, Any]) -> str:
    timeout = min(hook["timeout"], _CLAMP.get(event, hook["timeout"]))
    handler = {"type": "command", "command": hook["command"], "timeout": timeout, "async": False}
    definition = {"event_name": event, "hooks": [handler], **({} if matcher is None else {"matcher": matcher})}
    data = json.dumps(definition, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(data.encode()).hexdigest()}"


def with_trust(text: str, files: Collection[Path], hashes: dict[str, str]) -> str:
    """Codex's `config.toml` with our hashes for hook files, in place of older ones for the same files.

    Those for other files stay: the user's hooks and each project's are trusted side by side. One that Codex noted
    itself for the same place is replaced. Without any hash left, our block is gone.
    """
    noted = {**_hashes_of_other_files(text, files), **hashes}
    text = toml_block.without(text)
    known = toml_block.checked(text).get("hooks", {}).get("state", {})
    for key in noted.keys() & known.keys():
        text = _without_table(text, key)
    if not noted:
        return text
    body = "\n".join(
        f"[hooks.state.{json.dumps(key)}]\ntrusted_hash = {json.dumps(value)}\n" for key, value in noted.items()
    )
    made = toml_block.with_block(text, "codex", body)
    toml_block.checked(made)
    return made


def _hashes_of_other_files(text: str, files: Collection[Path]) -> dict[str, str]:
    """The hashes in our block that are for other hook files."""
    state = toml_block.checked(toml_block.block_of(text)).get("hooks", {}).get("state", {})
    own = tuple(f"{file}:" for file in files)
    return {key: value["trusted_hash"] for key, value in state.items() if not key.startswith(own)}


def _without_table(text: str, key: str) -> str:
    """Without the table of one hook, up to the next table."""
    header = re.escape(f"[hooks.state.{json.dumps(key)}]")
    return re.sub(rf"^{header}[^\n]*\n(?:(?!\[)[^\n]*\n?)*", "", text, count=1, flags=re.MULTILINE)


def is_trusted(text: str, hashes: dict[str, str]) -> bool:
    """Whether Codex will run all of our entries."""
    state = toml_block.checked(text).get("hooks", {}).get("state", {})
    return all(isinstance(state.get(key), dict) and state[key].get("trusted_hash") == hashes[key] for key in hashes)
