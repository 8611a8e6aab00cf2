"""Who vouches for where this goes? A guard against prompt injection that sees prompts, calls and results. No model.

    hooks.add(*flow(strict=True, known=["*@corp.example"]))

Every destination of a call needs a voucher: the user, or a field of a record that was read. What only a text says is
asked about or denied, with the sentence and its source. It checks who vouches for a destination, not whether the
content is right.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, cast

from hookline.core.files import state_folder
from hookline.core.hooks import Hook, hook
from hookline.core.hooks.declare import declared
from hookline.core.hooks.tools import EDITING
from hookline.events import (
    Event,
    PostToolUse,
    PostToolUseFailure,
    PreToolUse,
    SessionStart,
    UserPromptSubmit,
)  # fmt: skip
from hookline.events.frozen import thaw
from hookline.guards.flow.config import FlowConfig, FlowToolRule, make_config, read_config
from hookline.guards.flow.record import result_row
from hookline.guards.flow.rules import FlowJudge
from hookline.guards.flow.store import FlowRow, FlowStore, bounded, remove_old, store_path
from hookline.replies import Reply, ask, deny

__all__ = ["FlowConfig", "FlowToolRule", "explain", "flow", "history"]

_MOST_SESSIONS = 64
_ASKS_A_PERSON = ("default", "plan", "acceptEdits")
"""The permission modes in which a question is put to a person; in any other, a call that ran proves no approval."""


def flow(
    file: str | Path | None = None, *, state: str | Path | Literal[False] | None = None, **settings: Any
) -> list[Hook]:
    """Ask about or deny calls whose destination only a text vouches for: `hooks.add(*flow(strict=True))`.

    `file` is a TOML file with a `[flow]` table; `settings` are the same keys: `strict`, `me`, `known`, `tools`,
    `intent`. What a session has seen is kept in a file of its own in `state` (default: the user's state folder), so
    that hooks may run as a process each; `state=False` keeps it in memory.
    """
    config = make_config(settings) if file is None else read_config(file, **settings)
    return declared(FlowHooks(config, state))


def flow_folder() -> Path:
    """Where sessions are kept that have no folder of their own."""
    return state_folder() / "flow"


def explain(source: Hook | Mapping[str, Any]) -> list[str]:
    """What a guard (its hook, or its settings) takes for granted of each tool that its sessions have met."""
    owner = getattr(getattr(source.action, "call", None), "__self__", None) if isinstance(source, Hook) else None
    hooks = owner if isinstance(owner, FlowHooks) else FlowHooks(make_config(cast("Mapping[str, Any]", source)), None)
    folder, tools = hooks.folder(), dict[str, set[str]]()
    for path in sorted(folder.glob("*.jsonl")) if folder is not None else ():
        for tool, arguments in FlowStore(path).tools.items():
            tools.setdefault(tool, set()).update(arguments)
    return [hooks.config.explain(tool, arguments) for tool, arguments in sorted(tools.items())]


def history(session: str) -> list[dict[str, Any]]:
    """The judged calls of a session, for people to see: where each destination came from, and what was said to it."""
    rows = FlowStore(store_path(flow_folder(), session)).judged
    return [
        {"time": row.time * 1000, "tool": row.tool, "level": row.level or "pass", "rule": row.rule, "why": row.text,
         "values": [dict(zip(("argument", "value", "label", "source"), one, strict=True)) for one in row.values]}
        for row in rows
    ]  # fmt: skip


class FlowHooks:
    """The hooks of the guard: prompts and results are kept, calls are judged by them."""

    def __init__(self, config: FlowConfig, state: str | Path | Literal[False] | None) -> None:
        self._config, self._state = config, state
        self._stores: OrderedDict[str, FlowStore] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def config(self) -> FlowConfig:
        """The settings."""
        return self._config

    def folder(self) -> Path | None:
        """Where sessions are kept; None for memory."""
        if self._state is False:
            return None
        return flow_folder() if self._state is None else Path(self._state)

    def _store(self, session: str) -> FlowStore:
        folder = self.folder()
        path = None if folder is None else store_path(folder, session)
        store = self._stores.get(session)
        if store is None or store.path != path:
            store = self._stores[session] = FlowStore(path)
            if len(self._stores) > _MOST_SESSIONS:
                self._stores.popitem(last=False)
        self._stores.move_to_end(session)
        store.refresh()
        return store

    @hook(SessionStart, name="flow.start", priority=90, rejudge=False, on_failure="continue")
    def start(self, event: SessionStart) -> None:
        """A new session has read nothing; one that goes on keeps what it has seen, or counts as untrusted."""
        with self._lock:
            store = self._store(event.session_id)
            if not store.began and event.source in ("startup", "clear") and not _has_results(event):
                store.put(FlowRow("begin"))
            folder = self.folder()
            if folder is not None:
                remove_old(folder)

    @hook(UserPromptSubmit, name="flow.prompt", priority=90, rejudge=False, on_failure="continue")
    def hear(self, event: UserPromptSubmit) -> None:
        """What the user says vouches; what a subagent is told is the model's text and does not."""
        if event.agent_id:
            return
        with self._lock:
            store = self._store(event.session_id)
            if not store.began and not store.results and not _has_results(event):
                store.put(FlowRow("begin"))
            store.put(FlowRow("prompt", text=bounded(event.prompt)))

    @hook(PostToolUse, PostToolUseFailure, name="flow.result", priority=90, rejudge=False, on_failure="continue")
    def see(self, event: PostToolUse | PostToolUseFailure) -> None:
        """A result is taken apart; an error message is a text from outside, too."""
        result = thaw(event.tool_response) if isinstance(event, PostToolUse) else event.error
        mode, tool = event.permission_mode, event.tool_name
        approved = mode in _ASKS_A_PERSON and not (mode == "acceptEdits" and tool in EDITING)
        with self._lock:
            store = self._store(event.session_id)
            store.put(result_row(self._config, store, tool, thaw(event.tool_input), result, approved=approved))

    @hook(PreToolUse, name="flow.judge", priority=80)
    def judge(self, event: PreToolUse) -> Reply | None:
        """Ask, deny, or let pass."""
        with self._lock:
            found = FlowJudge(self._config, self._store(event.session_id)).judge(
                event.tool_name, thaw(event.tool_input)
            )
        if found is None:
            return None
        return (deny if found.level == "deny" else ask)(f"[flow: {found.rule}] {found.reason}")


def _has_results(event: Event) -> bool:
    """Whether the session's transcript has results of tools already, that were not seen here."""
    path = Path(event.transcript_path) if event.transcript_path else None
    if path is None or not path.is_file():
        return False
    with path.open("rb") as file:
        return any(b'"tool_result"' in line or b'"function_call_output"' in line for line in file)
