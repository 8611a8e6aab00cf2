"""Codex runs a hook only once its hash is in `config.toml`. Writing it there replaces Codex's own question.

So it is written on the user's explicit yes only, and for our own entries only. The hash is Codex's: SHA-256 of the
hook's normalised definition, which the tests compare with what `codex app-server` says.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from hookline.hosts.codex import CODEX
from hookline.hosts.install import jsonc, toml_edit
from hookline.hosts.install.entries import is_ours
from hookline.hosts.install.text_form import keep_form, without_mark


def hashes_of(hooks_file: Path, text: str) -> dict[str, str]:
    """Codex's key and hash for each of our entries in its `hooks.json`, whatever else the file holds."""
    found = {}
    for event, groups in _members(jsonc.parse(without_mark(text)).value, "hooks").items():
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
        for number, group in enumerate(groups if isinstance(groups, list) else ()):
            listed = group.get("hooks") if isinstance(group, dict) else None
            for index, hook in enumerate(listed if isinstance(listed, list) else ()):
                if isinstance(hook, dict) and is_ours(hook.get("command"), CODEX):
                    found[f"{hooks_file}:{name}:{number}:{index}"] = _hash(event, name, group.get("matcher"), hook)
    return found


def _members(value: Any, name: str) -> dict[str, Any]:
    inner = value.get(name) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}


def _hash(event: str, name: str, matcher: str | None, hook: dict[str, Any]) -> str:
    timeout = hook.get("timeout")
    if not isinstance(timeout, int):  # an entry that was edited: none of our hashes fits it
        return ""
    timeout = min(timeout, CODEX.config.cut_to.get(event, timeout))
    handler = {"type": "command", "command": hook["command"], "timeout": timeout, "async": False}
    definition = {"event_name": name, "hooks": [handler], **({} if matcher is None else {"matcher": matcher})}
    data = json.dumps(definition, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(data.encode()).hexdigest()}"


def with_trust(text: str, hashes: dict[str, str], old: dict[str, str]) -> str:
    """Codex's `config.toml` with our hashes, and without older ones of ours; everything else stays as it is."""
    return keep_form(text, lambda body: _with_trust(body, hashes, old))


def _with_trust(text: str, hashes: dict[str, str], old: dict[str, str]) -> str:
    for key in old.keys() - hashes.keys():
        if toml_edit.lookup(toml_edit.checked(text), _path(key)) == old[key]:
            text = toml_edit.remove_value(text, _path(key))
    for key, value in hashes.items():
        text = toml_edit.set_value(text, _path(key), value)
    return text


def _path(key: str) -> tuple[str, ...]:
    return ("hooks", "state", key, "trusted_hash")


def is_trusted(text: str, hashes: dict[str, str]) -> bool:
    """Whether Codex will run all of our entries."""
    known = toml_edit.checked(without_mark(text))
    return all(value and toml_edit.lookup(known, _path(key)) == value for key, value in hashes.items())
