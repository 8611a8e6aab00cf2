"""What was recorded, as events again: our audit files and transcripts, and Claude Code's transcript JSONL."""

import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from hookline.core.wire.json_text import read_as
from hookline.events import Event, PermissionRequest, PostToolUse, PostToolUseFailure, PreToolUse, UserPromptSubmit

MOST_LINE = 32 << 20
"""A longer line is passed over: no record of one call is that long, and it must not fill the memory."""

HEARD = "heard"
"""In the place of a decision: a prompt or a result, which hooks that remember are told of and which is not compared."""
_MOST_OPEN = 10_000
_LOOK_AHEAD = 200
_SPOKEN = ("assistant", "user")
_PARTIAL = (b"[redacted: ", "… (".encode())
_REFUSED = re.compile(
    r"(?i)PreToolUse:.{0,200} hook error:"
    r"|PreToolUse:.{0,200} hook stopped the turn"
    r"|Hook PreToolUse:.{0,200} (?:asked for confirmation|denied)"
    r"|Permission to use .{0,200} has been (?:auto-)?denied"
    r"|Claude requested permissions? to .{0,2000} but you haven't granted it"
    r"|The user doesn't want to (?:proceed|take this action)"
    r"|Permission denied by hook"
    r"|\[.{0,2000}\]: (?:failed|timed out); blocking because"
)  # how the result of a call that was not made begins, where nothing but the text says so; the first two are ours too


class RecordedCall(msgspec.Struct, frozen=True):
    """One thing an agent wanted to do, and what was decided then: `deny`, `ask` or `allow`."""

    file: str
    line: int
    event: Event
    decided: str
    by: str = ""
    partial: bool = False
    rejected: bool = False  # a person said no: no hook had denied it
    time: str = ""
    ran: bool = False  # a transcript has its result; an audit log says so in a record of its own (`PostToolUse`)


class _Audit(msgspec.Struct):
    event: str
    decision: str
    blocked: bool = False
    tool: str = ""
    input: dict[str, Any] | None = None
    prompt: str = ""
    cwd: str = ""
    run: str = ""
    time: str = ""
    by: str = ""
    tool_use_id: str = ""
    mode: str | None = None
    agent: str | None = None
    agent_type: str | None = None
    result: Any = None
    error: str = ""


class _Message(msgspec.Struct):
    content: str | list[dict[str, Any]] = ""


class _Line(msgspec.Struct, rename="camel"):
    type: str = ""
    message: _Message | None = None
    cwd: str = ""
    session_id: str = ""
    timestamp: str = ""
    denial: str | None = msgspec.field(default=None, name="toolDenialKind")
    permission: dict[str, Any] | None = msgspec.field(default=None, name="permissionDecision")
    is_sidechain: bool = False
    is_meta: bool = False
    result: Any = msgspec.field(default=None, name="toolUseResult")


def is_within(time: str, since: datetime | None, until: datetime | None = None) -> bool:
    """Whether a record was made in this time; one that does not say when it was made was not."""
    if since is None and until is None:
        return True
    try:
        moment = datetime.fromisoformat(time).astimezone()
    except ValueError:
        return False
    return (since is None or moment >= since) and (until is None or moment <= until)


def finished(path: str | Path) -> set[str]:
    """The ids of the calls that an audit log says have run."""
    with Path(path).open("rb") as file:
        lines = (line for line in iter(lambda: file.readline(MOST_LINE), b"") if b'"PostToolUse"' in line)
        records = (read_as(line, _Audit) for line in lines)
        return {said.tool_use_id for said in records if said is not None and said.event == "PostToolUse"}


class Range:
    """The calls recorded in the lines of a file, or in those that begin in its bytes `start` to `end`.

    Never more than a line is held; a line that is too long, or no record, is passed over. `before` is how many lines
    the file has before `start`. With `heard` there are prompts and results among them, as far as they were recorded.
    """

    def __init__(
        self, path: str | Path, start: int = 0, end: int | None = None, *, before: int = 0, heard: bool = False
    ) -> None:
        self._file, self._start, self._end, self._before, self._heard = str(path), start, end, before, heard
        self._open: OrderedDict[str, RecordedCall] = OrderedDict()  # calls whose results are not read yet

    def __iter__(self) -> Iterator[RecordedCall]:
        self._open.clear()
        at, number = self._start, self._before
        with Path(self._file).open("rb") as file:
            file.seek(at)
            while self._end is None or at < self._end:
                line, length = next_line(file)
                if not length:
                    break
                at, number = at + length, number + 1
                yield from self._read(number, line)
            yield from self._rest(file)

    def _read(self, number: int, line: bytes) -> Sequence[RecordedCall]:
        is_heard = self._heard and b'"user"' in line
        if not is_heard and not any(mark in line for mark in (b'"tool_use"', b'"tool_result"', b'"decision":')):
            return ()
        if (b'"message"' not in line or b'"hash"' in line) and (found := self._audited(number, line)):
            return (found,)
        if (entry := read_as(line, _Line)) is None or entry.message is None or entry.type not in _SPOKEN:
            return ()
        if prompt := _prompt(entry) if self._heard else "":
            event = UserPromptSubmit(session_id=entry.session_id, cwd=entry.cwd, prompt=prompt)
            return (RecordedCall(self._file, number, event, HEARD),)
        if isinstance(entry.message.content, str):
            return ()
        return self._message(number, entry, entry.message.content)

    def _audited(self, number: int, line: bytes) -> RecordedCall | None:
        said = read_as(line, _Audit)
        event = _event(said) if said is not None else None
        if said is None or event is None:
            return None
        if said.event in _RESULTS:
            return RecordedCall(self._file, number, event, HEARD, time=said.time) if self._heard else None
        decided = "deny" if said.blocked else {"ask": "ask", "defer": "ask"}.get(said.decision, "allow")
        partial = any(mark in line for mark in _PARTIAL)
        return RecordedCall(self._file, number, event, decided, said.by, partial, time=said.time)

    def _message(self, number: int, entry: _Line, blocks: list[dict[str, Any]]) -> list[RecordedCall]:
        done = []
        for block in blocks:
            kind = block.get("type")
            if kind == "tool_use" and isinstance(block.get("input"), dict):
                call_id = str(block.get("id"))
                event = PreToolUse(
                    session_id=entry.session_id, cwd=entry.cwd, tool_name=str(block.get("name")),
                    tool_input=block["input"], tool_use_id=call_id,
                )  # fmt: skip
                self._open[call_id] = RecordedCall(self._file, number, event, "allow", time=entry.timestamp)
            elif kind == "tool_result" and (call := self._open.pop(str(block.get("tool_use_id")), None)):
                done.append(_decided(call, entry, block))
                if self._heard and done[-1].decided == "allow":
                    done.append(_heard_result(call, entry, block))
        while len(self._open) > _MOST_OPEN:
            done.append(self._open.popitem(last=False)[1])
        return done

    def _rest(self, file: BinaryIO) -> Iterator[RecordedCall]:
        """Calls whose results lie beyond the range: look a little ahead for them, where lines count as number 0."""
        for _ in range(_LOOK_AHEAD):
            line, length = next_line(file) if any(call.line for call in self._open.values()) else (b"", 0)
            if not length:
                break
            yield from (call for call in self._read(0, line) if call.line)
        yield from (call for call in self._open.values() if call.line)


def calls(path: str | Path) -> Iterator[RecordedCall]:
    """The calls recorded in a file."""
    return iter(Range(path))


def next_line(file: BinaryIO) -> tuple[bytes, int]:
    """The next line and its length; of one that is too long only the length."""
    line = file.readline(MOST_LINE)
    length = len(line)
    if length < MOST_LINE or line.endswith(b"\n"):
        return line, length
    while part := file.readline(1 << 20):
        length += len(part)
        if part.endswith(b"\n"):
            break
    return b"", length


_RECORDED = {cls.event_name: cls for cls in (PreToolUse, PermissionRequest, UserPromptSubmit)}
_RESULTS = {cls.event_name: cls for cls in (PostToolUse, PostToolUseFailure)}


def _event(said: _Audit) -> Event | None:
    """What an audit log has of an event that is judged, or of a call's result."""
    cls: type[Event] | None = (_RECORDED | _RESULTS).get(said.event)
    if cls is None or not (said.tool or cls is UserPromptSubmit):
        return None
    found = {
        "session_id": said.run, "cwd": said.cwd, "permission_mode": said.mode, "agent_id": said.agent,
        "agent_type": said.agent_type, "tool_name": said.tool, "tool_input": said.input or {}, "prompt": said.prompt,
        "tool_use_id": said.tool_use_id, "tool_response": said.result, "error": said.error,
    }  # fmt: skip
    return cls(**{name: found[name] for name in cls.__struct_fields__ if name in found})


def _heard_result(call: RecordedCall, entry: _Line, block: dict[str, Any]) -> RecordedCall:
    """What a call returned, as a transcript has it: structured where the line has just this result."""
    made = call.event
    alone = entry.message is not None and len(entry.message.content) == 1 and entry.result is not None
    result = entry.result if alone else block.get("content")
    event = PostToolUse(session_id=made.session_id, cwd=made.cwd, tool_name=made.tool_name or "",
                        tool_input=made.tool_input or {}, tool_response=result)  # fmt: skip
    return RecordedCall(call.file, call.line, event, HEARD)


def _prompt(entry: _Line) -> str:
    """What the user said on a line of a transcript; what a subagent is told is not the user's."""
    if entry.type != "user" or entry.is_sidechain or entry.is_meta or entry.message is None:
        return ""
    content = entry.message.content
    if isinstance(content, str):
        return content
    spoken = not any(block.get("type") == "tool_result" for block in content)
    return "\n".join(str(block.get("text", "")) for block in content if block.get("type") == "text") if spoken else ""


_BY_A_PERSON = re.compile(
    r"(?i)The user doesn't want to (?:proceed|take this action)|the user said"
    r"|Claude requested permissions? to .{0,2000} but you haven't granted it"
)  # how a result begins when a person said no, or was not there to say yes: hooks had let the call pass


def _decided(call: RecordedCall, entry: _Line, result: dict[str, Any]) -> RecordedCall:
    """Whether a call was made, and who refused it: by what the line says of permission, else by the result's text."""
    rejected = entry.permission.get("decision") == "reject" if entry.permission is not None else refused(result)
    if entry.denial is None and not rejected:
        return msgspec.structs.replace(call, ran=True)
    person = _BY_A_PERSON.match(_text(result).removeprefix("Error: ")) is not None
    by_user = person or (entry.denial or "").lower().startswith("user")
    if by_user or (entry.permission is not None and str(entry.permission.get("source")).lower().startswith("user")):
        return msgspec.structs.replace(call, decided="ask", rejected=True)
    return msgspec.structs.replace(call, decided="deny")


def refused(result: dict[str, Any]) -> bool:
    """Whether a tool result says that the call was not made at all."""
    return bool(result.get("is_error")) and _REFUSED.match(_text(result).removeprefix("Error: ")) is not None


def _text(result: dict[str, Any]) -> str:
    content = result.get("content")
    if isinstance(content, list):
        content = " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""
