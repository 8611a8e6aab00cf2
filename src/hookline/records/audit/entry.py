"""From a verdict to the record that is written of it. Pure but for what is handed in.

It is made in two steps: `kept` copies what a tool could still change, when the verdict is made; `record` bounds it,
takes secrets out and puts it into words, later and elsewhere.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal

import msgspec

from hookline.core.calls import observed_effect
from hookline.core.engine import Outcome, Verdict
from hookline.core.engine.policy import policy_digest
from hookline.core.engine.verdict import Word, decision_word
from hookline.core.wire.json_text import valid_text
from hookline.events import Event, PostToolUse, PostToolUseFailure
from hookline.guards.detect import names_a_secret
from hookline.replies import Decision

MOST_TEXT = 4_000
MOST_PARTS = 2_000
MOST_ALL_TEXT = 64_000
MOST_DEPTH = 32
_MARGIN = 16_000  # how far beyond the cut a secret that begins before it is looked for: longer than any private key
_BIG = 1 << 63
_PIN = re.compile(r"(?i)pass|pin\Z|secret")
_LEFT_OUT = "… (left out: the record is too long)"
_VALUE_NAMES = ("value", "default", "content", "data")
_WORDS = {"tool_input": "input", "tool_response": "result", "permission_mode": "mode"}
_ELSEWHERE = frozenset(
    {"session_id", "cwd", "agent_id", "agent_type", "timestamp", "tool_name", "tool_use_id", "prompt_id", "effort"}
)
_SESSION_ONLY = frozenset({"transcript_path"})

IDENTITIES = ("input_identity", "enforced_identity")
"""What a log with `identities=True` has more: hashes of what was judged, and of what was let through."""

Redactor = Callable[[str], str]


def kept(verdict: Verdict) -> dict[str, Any]:
    """A copy of what the event was about, so that it cannot change before it is written."""
    event = verdict.event
    left = [MOST_PARTS]
    said = {}
    for field, word in _fields(event.__class__):
        if (value := getattr(event, field)) is not None:
            said[word] = value if value.__class__ is str else _copied(value, left, 0)
    if verdict.reply.input is not None:
        said["rewritten"] = _copied(verdict.reply.input, left, 0)
    return said


@cache
def _fields(cls: type[Event]) -> tuple[tuple[str, str], ...]:
    """The fields of an event that belong in its record, and the words people look for them by."""
    skipped = _ELSEWHERE if cls.event_name.startswith("Session") else _ELSEWHERE | _SESSION_ONLY
    return tuple((name, _WORDS.get(name, name)) for name in cls.__struct_fields__ if name not in skipped)


def _copied(value: Any, left: list[int], depth: int) -> Any:
    """A JSON value whose containers are not shared; what comes after `MOST_PARTS` parts is left out."""
    left[0] -= 1
    kind = value.__class__
    if kind is str or value is None or kind is int or kind is float or kind is bool:
        return value
    if left[0] < 0 or depth > MOST_DEPTH:
        return _LEFT_OUT
    if isinstance(value, dict):
        return {str(key): _copied(item, left, depth + 1) for key, item in list(value.items())[: left[0] + 1]}
    if isinstance(value, (list, tuple)):
        return [_copied(item, left, depth + 1) for item in list(value)[: left[0] + 1]]
    return _copied(_plain(value), left, depth + 1)


def _plain(value: Any) -> Any:
    """Any other object as a JSON value: its fields, or how it shows itself."""
    try:
        found = msgspec.to_builtins(value, str_keys=True, enc_hook=repr)
    except Exception:  # noqa: BLE001 - an object of the user's own may do anything when looked at
        return f"<{type(value).__name__}>"
    return found if isinstance(found, (str, dict, list, int, float, bool)) else repr(found)


def record(
    verdict: Verdict, said: Mapping[str, Any] | None = None, *, user: str = "", redact: Redactor = str
) -> dict[str, Any]:
    """Time, run, agent, event, tool, decision, who decided and why, durations, user; secrets taken out."""
    event = verdict.event
    outcomes = verdict.outcomes
    body: dict[str, Any] = {
        "time": event.timestamp.isoformat(timespec="milliseconds"),
        "run": event.session_id,
        "user": user,
        "agent": event.agent_id,
        "agent_type": event.agent_type,
        "cwd": event.cwd,
        "event": event.event_name,
        "subject": event.subject,
        "tool": event.tool_name,
        "tool_use_id": event.tool_use_id,
        "decision": str(verdict.decision),
        "blocked": verdict.blocked and verdict.evaluated is None,
        "enforced": None if verdict.evaluated is None else False,
        "by": verdict.decided_by,
        "reasons": list(verdict.reply.reasons) or ([verdict.reason] if verdict.reason else []),
        "ms": round(sum(outcome.ms for outcome in outcomes), 3),
        "hooks": [_hook(outcome) for outcome in outcomes],
        "stop": verdict.stop or None,
        "keep_going": verdict.keep_going or None,
        "replaced": verdict.reply.output is not msgspec.UNSET or None,
        "policy_digest": policy_digest(verdict.chosen) if verdict.chosen else None,
        "approval": None if verdict.approval is None else msgspec.to_builtins(verdict.approval),
        "observed": _observed(event),
    }
    for name, value in (kept(verdict) if said is None else said).items():
        body[f"{name}_" if name in body else name] = value
    cleaner = _Cleaner(redact)
    body["hooks"] = [cleaner.row(row, {"status", "decision"}) for row in body["hooks"]]
    said_at_all = {name: value for name, value in body.items() if value not in (None, "", [], {})}
    return cleaner.row(said_at_all, {"time", "event", "decision", "hooks", "policy_digest", *IDENTITIES})


def _observed(event: Event) -> dict[str, Any] | None:
    """What a confined line did, as the kernel's judge saw it; nothing where none was confined."""
    if not isinstance(event, (PostToolUse, PostToolUseFailure)) or not isinstance(event.tool_input.get("command"), str):
        return None
    return observed_effect(event.session_id, event.tool_use_id, event.tool_input["command"])


def decision_word_of(entry: Mapping[str, Any]) -> Word | Literal[""]:
    """What a recorded verdict came to, in the word that the verdict itself has; nothing for a line that is none."""
    if not (decision := str(entry.get("decision") or "")):
        return ""
    said = {name: bool(entry.get(name)) for name in ("stop", "keep_going", "replaced")}
    return decision_word(decision, rewritten="rewritten" in entry, **said)


def _hook(outcome: Outcome) -> dict[str, Any]:
    row: dict[str, Any] = {"hook": outcome.hook, "status": str(outcome.status), "ms": round(outcome.ms, 3)}
    if outcome.decision is not Decision.PASS:
        row["decision"] = str(outcome.decision)
    more = {name: getattr(outcome, name) for name in ("exit_code", "error", "note", "would")}
    return row | {name: value for name, value in more.items() if value is not None}


class _Cleaner:
    """Makes a value fit to be written: bounded as a whole, valid JSON, without secrets."""

    def __init__(self, redact: Redactor) -> None:
        self._redact = redact
        self._left = MOST_ALL_TEXT

    def row(self, row: dict[str, Any], done: set[str]) -> dict[str, Any]:
        """A row whose keys are words of ours, and so are, or are clean already, the values of those in `done`."""
        return {key: value if key in done else self._named(key, value) for key, value in row.items()}

    def clean(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return self._fields(value)
        if isinstance(value, (list, tuple)):
            return self._items(value)
        fits = isinstance(value, int) and -_BIG < value < _BIG
        return value if value is None or fits or isinstance(value, (bool, float)) else self._text(str(value))

    def _named(self, key: str, value: Any) -> Any:
        """What a field called `password` holds is a secret, whatever it looks like and however deep it lies."""
        return self._hidden(value, key) if self._redact is not str and names_a_secret(key) else self.clean(value)

    def _hidden(self, value: Any, key: str) -> Any:
        if isinstance(value, dict):
            return {self._text(str(name)): self._hidden(item, str(name)) for name, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._hidden(item, key) for item in value]
        if value is None or isinstance(value, (bool, float)) or value == "":
            return value
        if isinstance(value, int) and not _PIN.search(key):  # a number of tokens is not a token
            return self.clean(value)
        return f"[redacted: {self._text(key)}]"

    def _fields(self, fields: Mapping[Any, Any]) -> dict[str, Any]:
        """An object's fields; in `{"name": "PASSWORD", "value": "…"}` it is the name that counts."""
        name = next((fields[word] for word in ("name", "key") if isinstance(fields.get(word), str)), "")
        secret = self._redact is not str and names_a_secret(name)
        return {
            self._text(str(key)): self._hidden(item, name)
            if secret and key in _VALUE_NAMES
            else self._named(str(key), item)
            for key, item in fields.items()
        }

    def _items(self, items: Any) -> list[Any]:
        """A list's items; what follows `--password` in a list of arguments is a secret."""
        cleaned, before = [], ""
        for item in items:
            secret = self._redact is not str and before.startswith("-") and names_a_secret(before)
            cleaned.append(self._hidden(item, before) if secret and isinstance(item, str) else self.clean(item))
            before = item if isinstance(item, str) and "=" not in item else ""
        return cleaned

    def _text(self, text: str) -> str:
        if self._left <= 0:
            return _LEFT_OUT
        whole = len(text)
        said = valid_text(self._redact(valid_text(text[: MOST_TEXT + _MARGIN])))
        if whole > MOST_TEXT + _MARGIN:
            said = said[: max(len(said) - _MARGIN, 0)]  # a secret that the first cut went through is at the very end
        if whole > MOST_TEXT:
            said = f"{said[:MOST_TEXT]}… ({whole:,} characters)"
        self._left -= len(said)
        return said
