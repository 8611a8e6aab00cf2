"""What a policy would have changed: its hooks over everything the hub has recorded in the last week."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from hookline.api import Hooks
from hookline.fleet.enforce import load_policy
from hookline.records.replay.compare import Report, replay

DAYS = 7.0


def preview(audit: Path, policy: Path, *, days: float = DAYS) -> Report | None:
    """The flips among recent records; `None` if there are no records."""
    since = time.time() - days * 86_400
    logs = [path for path in audit.glob("*.jsonl") if _recent(path, since)]
    return replay(logs, partial(_hooks, policy), jobs=1) if logs else None


def _recent(path: Path, since: float) -> bool:
    return not path.name.endswith(".problems.jsonl") and path.stat().st_mtime >= since


def _hooks(policy: Path) -> Hooks:
    hooks = Hooks()
    hooks.add(*load_policy(policy))
    return hooks
