"""What was recorded, as events again: our audit files and transcripts, and Claude Code's transcript JSONL."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from hookline.events import Event, PermissionRequest, PreToolUse, UserPromptSubmit

_MOST_OPEN = 10_000
_LOOK_AHEAD = 200
_INTERESTING = (b'"tool_use"', b'"tool_result"', b'"decision":')
_REFUSED = (
    "hook error:",
    "hook denied",
    "denied by",
    "was denied",
    "permission to use",
    "permission denied by hook",
    "the user doesn't want to",
    "blocked by hook",
    "blocking because",
    "it fails closed",
)


class Call(msgspec.Struct, frozen=True):
    """One thing an agent wanted to do, and what was decided then: `deny`, `ask` or `allow`."""

    file: str
    line: int
    event: Event
    decided: str
    by: str = ""
    partial: bool = False


class _Audit(msgspec.Struct):
    event: str
    decision: str
    blocked: bool = False
    tool: str = ""
    input: dict[str, Any] | None = None
    prompt: str = ""
    cwd: str = ""
    run: str = ""
    by: str = ""
    tool_use_id: str = ""


class _Message(msgspec.Struct):
    content: str | list[dict[str, Any]] = ""


class _Line(msgspec.Struct, rename={"session_id": "sessionId"}):
    type: str = ""
    message: _Message | None = None
    cwd: str = ""
    session_id: str = ""


_audit = msgspec.json.Decoder(_Audit)
_line = msgspec.json.Decoder(_Line)


def calls(path: str | Path, start: int = 0, end: int | None = None) -> Iterator[Call]:
    """The calls recorded in the bytes `start` to `end` of a file, without ever holding more than a line of it.

    A range begins after the first newline at or past `start` and ends with the line that `end` falls in, so ranges
    that meet cover every line once. Lines that are no records are passed over.
    """
    reader = _Reader(str(path))
    with Path(path).open("rb") as file:
        number = _seek(file, start)
        for line in file:
            number += 1
            yield from reader.read(number, line)
            if end is not None and file.tell() > end:
                break
        yield from reader.rest(file, number)


def _seek(file: Any, start: int) -> int:
    """Move to the first line of the range; line numbers count from there when it is not the file's first."""
    if start:
        file.seek(start - 1)
        file.readline()
    return 0


class _Reader:
    """Pairs tool calls with their results, which say whether they were refused."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._open: OrderedDict[str, Call] = OrderedDict()

    def read(self, number: int, line: bytes) -> Iterator[Call]:
        if not any(mark in line for mark in _INTERESTING):
            return
        found = self._audited(number, line)
        if found is not None:
            yield found
            return
        try:
            entry = _line.decode(line)
        except (msgspec.MsgspecError, RecursionError):
            return
        if entry.message is not None and not isinstance(entry.message.content, str):
            yield from self._message(number, entry, entry.message.content)

    def _audited(self, number: int, line: bytes) -> Call | None:
        if b'"tool_use"' in line and b'"message"' in line:
            return None
        try:
            said = _audit.decode(line)
        except (msgspec.MsgspecError, RecursionError):
            return None
        event = _event(said)
        if event is None:
            return None
        decided = "deny" if said.blocked else {"ask": "ask", "defer": "ask"}.get(said.decision, "allow")
        return Call(self._file, number, event, decided, said.by, b"[redacted: " in line or "… (".encode() in line)

    def _message(self, number: int, entry: _Line, blocks: list[dict[str, Any]]) -> Iterator[Call]:
        for block in blocks:
            kind = block.get("type")
            if kind == "tool_use" and isinstance(block.get("input"), dict):
                self._opened(number, entry, block)
            elif kind == "tool_result":
                call = self._open.pop(str(block.get("tool_use_id")), None)
                if call is not None:
                    yield msgspec.structs.replace(call, decided="deny") if refused(block) else call
        while len(self._open) > _MOST_OPEN:
            yield self._open.popitem(last=False)[1]

    def _opened(self, number: int, entry: _Line, block: dict[str, Any]) -> None:
        call_id = str(block.get("id"))
        event = PreToolUse(
            session_id=entry.session_id, cwd=entry.cwd, tool_name=str(block.get("name")), tool_input=block["input"],
            tool_use_id=call_id,
        )  # fmt: skip
        self._open[call_id] = Call(self._file, number, event, "allow")

    def rest(self, file: Any, number: int) -> Iterator[Call]:
        """Calls whose results lie beyond the range: look a little ahead for them."""
        for _ in range(_LOOK_AHEAD):
            if not self._open:
                break
            line = file.readline()
            if not line:
                break
            before = set(self._open)
            for call in self.read(number, line):
                if call.event.__class__ is PreToolUse and call.event.tool_use_id in before:
                    yield call
            for new in set(self._open) - before:
                del self._open[new]
        yield from self._open.values()


def _event(said: _Audit) -> Event | None:
    base: dict[str, Any] = {"session_id": said.run, "cwd": said.cwd}
    if said.event == "PreToolUse" and said.input is not None:
        return PreToolUse(tool_name=said.tool, tool_input=said.input, tool_use_id=said.tool_use_id, **base)
    if said.event == "PermissionRequest" and said.input is not None:
        return PermissionRequest(tool_name=said.tool, tool_input=said.input, **base)
    if said.event == "UserPromptSubmit":
        return UserPromptSubmit(prompt=said.prompt, **base)
    return None


def refused(result: dict[str, Any]) -> bool:
    """Whether a tool result says that the call was not made at all."""
    if not result.get("is_error"):
        return False
    content = result.get("content")
    text = content if isinstance(content, str) else " ".join(str(part.get("text", "")) for part in content or [])
    lowered = text[:2000].lower()
    return any(mark in lowered for mark in _REFUSED)
