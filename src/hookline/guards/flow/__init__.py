"""Who vouches for where this goes? A guard against prompt injection that sees prompts, calls and results. No model.

    hooks.add(*flow(strict=True, known=["*@corp.example"]))

Every destination of a call needs a voucher: the user, or a field of a record that was read. What only a text says is
asked about or denied, with the sentence and its source. It checks who vouches for a destination, not whether the
content is right.
"""

import json
import re
import threading
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, cast

from hookline.core.files import remove_older, state_folder
from hookline.core.hooks import Hook, hook
from hookline.core.hooks.condition import EDITING
from hookline.core.hooks.declare import declared
from hookline.errors import extra
from hookline.events import Event, PostToolUse, PostToolUseFailure, PreToolUse, SessionStart, UserPromptSubmit
from hookline.events.base import thaw
from hookline.guards.flow.coding import origin_of, secrets_in
from hookline.guards.flow.config import FlowConfig, FlowToolRule, is_document, make_config
from hookline.guards.flow.rules import FlowJudge
from hookline.guards.flow.store import FlowRow, FlowStore, Voucher, bounded, call_hash, store_path
from hookline.guards.flow.values import addresses, flat, fold, key_of, kind_of, leaves
from hookline.guards.flow.words import row, tokens
from hookline.guards.tool_inputs import json_inside
from hookline.replies import Reply, ask, deny

__all__ = ["FlowConfig", "FlowToolRule", "explain", "flow", "history"]

_MOST_SESSIONS, _MOST_VOUCHERS = 64, 400
_OLD_SECONDS = 14 * 86_400
_LONGEST_VALUE = 200
_BLOCKS = ("text", "image", "audio", "resource", "resource_link")
_PERSON = re.compile(r"name|sender|author|from", re.IGNORECASE)
_QUOTES = "'\"`\u2018\u2019\u201c\u201d"
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
    return declared(FlowHooks(make_config(settings, file), state))


def explain(source: Hook | Mapping[str, Any]) -> list[str]:
    """What a guard (its hook, or its settings) takes for granted of each tool that its sessions have met."""
    owner = getattr(getattr(source.action, "call", None), "__self__", None) if isinstance(source, Hook) else None
    hooks = owner if isinstance(owner, FlowHooks) else FlowHooks(make_config(cast("Mapping[str, Any]", source)), None)
    tools: dict[str, set[str]] = {}
    for path in sorted(hooks.folder.glob("*.jsonl")) if hooks.folder is not None else ():
        for tool, arguments in FlowStore(path).tools.items():
            tools.setdefault(tool, set()).update(arguments)
    return [hooks.config.explain(tool, arguments) for tool, arguments in sorted(tools.items())]


def history(session: str) -> list[dict[str, Any]]:
    """The judged calls of a session, for people to see: where each destination came from, and what was said to it."""
    rows = FlowStore(store_path(state_folder() / "flow", session)).judged
    return [
        {"time": row.time * 1000, "tool": row.tool, "level": row.level or "pass", "rule": row.rule, "why": row.text,
         "values": [dict(zip(("argument", "value", "label", "source"), one, strict=True)) for one in row.values]}
        for row in rows
    ]  # fmt: skip


class FlowHooks:
    """The hooks of the guard: prompts and results are kept, calls are judged by them."""

    def __init__(self, config: FlowConfig, state: str | Path | Literal[False] | None) -> None:
        self.config: FlowConfig = config
        self._state = state
        self._open = lru_cache(_MOST_SESSIONS)(lambda _session, path: FlowStore(path))
        self._lock = threading.Lock()

    @property
    def folder(self) -> Path | None:
        """Where sessions are kept; None for memory."""
        return None if self._state is False else Path(self._state or state_folder() / "flow")

    def _store(self, session: str) -> FlowStore:
        store = self._open(session, None if self.folder is None else store_path(self.folder, session))
        store.refresh()
        return store

    @hook(SessionStart, name="flow.start", priority=90, rejudge=False, on_failure="continue")
    def start(self, event: SessionStart) -> None:
        """A new session has read nothing; one that goes on keeps what it has seen, or counts as untrusted."""
        with self._lock:
            store = self._store(event.session_id)
            if not store.began and event.source in ("startup", "clear") and not _has_results(event):
                store.put(FlowRow("begin"))
            if self.folder is not None:
                remove_older(self.folder.glob("*.jsonl"), _OLD_SECONDS)

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
            store.put(result_row(self.config, store, tool, thaw(event.tool_input), result, approved=approved))

    @hook(PreToolUse, name="flow.judge", priority=80)
    def judge(self, event: PreToolUse) -> Reply | None:
        with self._lock:
            judge = FlowJudge(self.config, self._store(event.session_id))
            found = judge.judge(event.tool_name, thaw(event.tool_input))
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


def result_row(
    config: FlowConfig, store: FlowStore, tool: str, arguments: Mapping[str, Any], result: Any, *, approved: bool
) -> FlowRow:
    """The row of one result."""
    source = f"{tool}#{store.results + 1}"
    made = FlowRow("result", source=source, tool=tool, arguments=sorted(arguments), call=call_hash(tool, arguments),
               approved=approved)  # fmt: skip
    made.origin = origin_of(tool, arguments)
    value, guessed = _structure(result, config.rule(tool).parse), False
    if isinstance(value, str) and made.origin in ("record", "outside") and not is_document(tool, arguments, text=True):
        found = json_inside(value)
        value, guessed = (value, False) if found is None else (found, True)
    if made.origin == "secret":
        made.source = f"{tool} {next(iter(flat(arguments)), '')}"[:80]
        made.secrets = secrets_in("\n".join(flat(value)))
        made.letters = sum(map(str.isalpha, "".join(flat(value))))
        return made
    texts: list[str] = []
    own = {key_of(one) for one in flat(arguments)}  # what the model has put in is not vouched for by coming back
    for path, leaf, people in _parts(value):
        text = str(leaf)
        if config.rule(tool).reads == "trusted":
            given = [text, *(one.text for one in addresses(text))]
            made.vouchers += (Voucher(key_of(one), "field", path) for one in given if len(one) <= _LONGEST_VALUE)
            continue
        label = config.label(tool, path, leaf, document=is_document(tool, arguments))
        label = "third" if label == "field" and guessed else label  # a text that looks like records, from anyone
        made.letters += sum(map(str.isalpha, text))
        if label == "text":
            texts.append(text)
        elif key_of(text) not in own:
            made.vouchers.append(Voucher(key_of(text), label, path, people))
    del made.vouchers[_MOST_VOUCHERS:]
    made.text = bounded("\n\n".join(texts))
    made.found = sorted({key_of(one.text) for one in addresses(made.text)})
    made.direct = _is_direct(store, tool, arguments)
    # a text that the user named may lead to it
    leads = (value for value in flat(arguments) if len(value) >= 4 and kind_of(value) != "name")
    made.delegated = made.direct or any(text.delegated for value in leads for text in store.seen(value))
    return made


def _parts(value: Any) -> Iterator[tuple[str, Any, str]]:
    """The leaves of each record, with the names of people in it."""
    for record in value if isinstance(value, (list, tuple)) else [value]:
        found = list(leaves(record, "[]" if record is not value else ""))
        people = " ".join(str(leaf) for path, leaf in found if _PERSON.search(path) and len(str(leaf)) <= 80)
        yield from ((path, leaf, people) for path, leaf in found)


def _structure(result: Any, parse: str | None) -> Any:
    """What a result says: an MCP result's structured content where it has one, else the text of its blocks."""
    if isinstance(result, Mapping) and result.get("structuredContent") is not None:
        return result["structuredContent"]
    blocks = result.get("content") if isinstance(result, Mapping) else result
    listed = blocks if isinstance(blocks, (list, tuple)) else ()
    if listed and all(isinstance(block, Mapping) and block.get("type") in _BLOCKS for block in listed):
        result = "\n\n".join(str(block.get("text") or block.get("resource") or "") for block in listed)
    return _parsed(result, parse) if isinstance(result, str) and parse else result


def _parsed(text: str, how: str) -> Any:
    """A dump of records as records; a text that is not one stays text."""
    if how == "json":
        try:
            return json.loads(text)
        except ValueError:
            return text
    with extra('`parse = "yaml"`', "yaml"):
        import yaml
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def _is_direct(store: FlowStore, tool: str, arguments: Mapping[str, Any]) -> bool:
    """Whether the user named what was read: a file, an address, a title in quotes; a word that is searched does not."""
    searches = set(tokens(tool)) & row("searches")
    for value in flat(arguments):
        if len(value) >= 4 and store.names(value):
            if not searches or kind_of(value) != "name" or re.search(r"[\w-]\.[a-z]{2,5}$", value):
                return True
            if re.search(f"[{_QUOTES}]{re.escape(fold(value))}[{_QUOTES}.]", store.folded_prompt):
                return True
    return False
