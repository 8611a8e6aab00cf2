"""The environment a command sees (FACTS.md §6)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from hookline.core.engine import Context
from hookline.core.files import state_folder
from hookline.core.hooks.actions import PLUGIN_FOLDERS, Command
from hookline.core.hooks.hook import Hook
from hookline.errors import HookFailed
from hookline.events import Event, spec_of


def given(action: Command) -> dict[str, str]:
    """What a plugin's command is told of its plugin."""
    pairs = (("CLAUDE_PLUGIN_ROOT", action.plugin_root), ("CLAUDE_PLUGIN_DATA", action.plugin_data))
    return {name: value for name, value in pairs if value is not None}


def project_dir(ctx: Context) -> str:
    """The project's root, which stays when the agent changes directory."""
    return ctx.project_dir or ctx.event.cwd or str(Path.cwd())


def environment(action: Command, event: Event, ctx: Context, env_file: Path | None) -> dict[str, str]:
    """The environment of a command (FACTS.md §6)."""
    env = inherited(ctx.env).copy()
    if not spec_of(event).env_file:
        env.pop("CLAUDE_ENV_FILE", None)
    elif env_file is not None:
        env["CLAUDE_ENV_FILE"] = str(env_file)
    env.setdefault("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")
    env.setdefault("AI_AGENT", "hookline")
    env |= {
        "CLAUDE_PROJECT_DIR": project_dir(ctx),
        "CLAUDECODE": "1",
        "CLAUDE_CODE_SESSION_ID": event.session_id,
        "CLAUDE_CODE_CHILD_SESSION": "1",
        "CLAUDE_CODE_SESSION_ATTENDED": "0",
        "CLAUDE_PID": str(os.getpid()),
        **_effort(event),
        **given(action),
        **action.env,
    }
    if action.seal is not None and action.seal.python:
        env["PYTHONPYCACHEPREFIX"] = str(state_folder() / "pycache")  # byte code beside a script may be anybody's
    return env


_INHERITED: list[tuple[object, dict[str, str]]] = []


def inherited(env: Mapping[str, str]) -> dict[str, str]:
    """An environment as a plain dict; our own, slow to decode, is decoded again only when it has changed."""
    raw = getattr(env, "_data", None) if env is os.environ else None
    if raw is None:
        return dict(env)
    if not _INHERITED or _INHERITED[0][0] != raw:
        _INHERITED[:] = [(dict(raw), dict(env))]
    return _INHERITED[0][1]


class Environments:
    """The environment each hook had last, for as long as nothing it is made of has changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[object, ...], Mapping[str, str]]] = {}

    def of(self, hook: Hook, event: Event, ctx: Context, env_file: Path | None) -> Mapping[str, str]:
        """The environment of one run; the same object as last time if it is the same."""
        action = hook.action
        assert isinstance(action, Command)
        may_export = spec_of(event).env_file
        own = (action, event.session_id, project_dir(ctx), event.effort, may_export, env_file)
        made_of = (inherited(ctx.env), *own)
        known = self._known.get(hook.name)
        if known is None or known[0] != made_of:
            known = self._known[hook.name] = made_of, MappingProxyType(environment(action, event, ctx, env_file))
        return known[1]


def _effort(event: Event) -> dict[str, str]:
    level = (event.effort or {}).get("level") if isinstance(event.effort, Mapping) else None
    return {"CLAUDE_EFFORT": str(level)} if level else {}


def own_env_file(event: Event, env: Mapping[str, str]) -> Path | None:
    """A file for exports that will not be read, so that a hook that writes some does not fail for want of one."""
    if not spec_of(event).env_file or "CLAUDE_ENV_FILE" in env:
        return None
    import tempfile

    handle, name = tempfile.mkstemp(prefix="hookline-env-", suffix=".sh")
    os.close(handle)
    return Path(name)


def check_folders(action: Command, ctx: Context) -> None:
    """Refuse a command that names a plugin's folder where no plugin brought it: a shell would run `/hook.sh`."""
    for name in PLUGIN_FOLDERS:
        named = f"${{{name}}}"
        if named in action.command and name not in action.env and name not in ctx.env:
            raise HookFailed(f"names `{named}`, and no plugin brought this hook; write the path itself")
