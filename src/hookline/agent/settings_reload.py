"""Settings that change while the agent runs: ConfigChange may refuse the change, else it holds from now on."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from hookline.events import ConfigChange
from hookline.settings.watcher import signature

if TYPE_CHECKING:
    from hookline.agent.factory import AgentBundle
    from hookline.agent.run_options import RunOptions

INTERVAL = 0.5
#: which settings file is called what in the event
SOURCES = {
    "user": "user_settings",
    "project": "project_settings",
    "local": "local_settings",
    "managed": "policy_settings",
}


async def keep_up(made: AgentBundle, options: RunOptions) -> None:
    """Look at the settings files again and again, until cancelled."""
    if made.hooks.settings is None:
        return
    loaded = made.hooks.settings.loaded
    kinds = {file.source.path: SOURCES[file.source.kind] for file in loaded.files if file.source.kind in SOURCES}
    paths = [path for path in kinds if path]
    before = signature(paths)
    while True:
        await asyncio.sleep(INTERVAL)
        now = signature(paths)
        changed = [path for path, old, new in zip(paths, before, now, strict=True) if old != new]
        before = now
        if changed and all([await _accepted(made, kinds[path], path) for path in changed]):
            _take(made, options)


async def _accepted(made: AgentBundle, source: str, path: str) -> bool:
    """ConfigChange: whether hooks let the change take effect."""
    verdict = await made.agent.conversation.fire(ConfigChange, source=source, file_path=path)
    if verdict.blocked:
        made.agent.output.inform(f"{path}: the change is not applied: {verdict.reason}", level="warning")
    return not verdict.blocked


def _take(made: AgentBundle, options: RunOptions) -> None:
    """Let the files say what they say now: hooks, environment, permissions."""
    from hookline.agent.factory import permissions

    change = made.hooks.settings.refresh() if made.hooks.settings else None
    if change is None:
        return
    session = made.agent.session
    made.env.apply(change.loaded.env)
    session.environ = dict(os.environ)
    mode = session.policy.mode
    rules, dirs, _ = permissions(options, made.hooks)
    session.policy.rules, session.policy.dirs, session.policy.mode = rules, dirs, mode
