"""Codex: Claude Code's nesting in a file of its own; hooks that were not trusted are skipped without a word.

A rewrite is ignored without an allow beside it. After a tool call a block takes the place of the output: what the tool
returned does not reach the model. For a proof the `profile` of the user's settings is left out: it would choose another
model.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from hookline.hosts.host import HookTrust, read_row

_CUT_TO = {"SessionEnd": 3}


def _hashes(file: str, content: Any, ours: Callable[[Any], bool]) -> dict[str, str]:
    """The key and hash of each of our entries in `hooks.json`, whatever else the file holds."""
    found = {}
    events = content.get("hooks") if isinstance(content, dict) else None
    for event, groups in events.items() if isinstance(events, dict) else ():
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
        for number, group in enumerate(groups if isinstance(groups, list) else ()):
            listed = group.get("hooks") if isinstance(group, dict) else None
            for index, hook in enumerate(listed if isinstance(listed, list) else ()):
                if isinstance(hook, dict) and ours(hook.get("command")):
                    found[f"{file}:{name}:{number}:{index}"] = _hash(event, name, group.get("matcher"), hook)
    return found


def _hash(event: str, name: str, matcher: str | None, hook: dict[str, Any]) -> str:
    """SHA-256 of the normalised definition, which the tests compare with what `codex app-server` says."""
    import hashlib  # no answer needs them
    import json

    timeout = hook.get("timeout")
    if not isinstance(timeout, int):  # an entry that was edited: none of our hashes fits it
        return ""
    timeout = min(timeout, _CUT_TO.get(event, timeout))
    handler = {"type": "command", "command": hook["command"], "timeout": timeout, "async": False}
    definition = {"event_name": name, "hooks": [handler], **({} if matcher is None else {"matcher": matcher})}
    data = json.dumps(definition, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(data.encode()).hexdigest()}"


_TRUST = HookTrust("config.toml", lambda key: ("hooks", "state", key, "trusted_hash"), _hashes)
CODEX = read_row("codex", hook_trust=_TRUST)
