"""What was said, on disk: one JSON object per line, only ever appended to, whole after a crash.

Files lie where Claude Code keeps its own (`~/.claude/projects/SLUG/SESSION.jsonl`) and in the same form, so either can
read the other's. Each line is one `write` to a file opened for appending. A run that is killed leaves at most its last
line torn; `resume` cuts that off (the bytes go to `….torn`) and goes on. A lock keeps two runs from writing into one
file: the second is given a copy to go on with, and says so.
"""

import errno
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

from msgspec import structs

from hookline.agent.messages import Assistant, Message, ToolOutput, ToolUse, Usage, User, decode_entry, encode_entry
from hookline.core.files import lock_now, private, private_folder, write_atomically
from hookline.core.wire.json_text import read_object, write_lossy
from hookline.errors import TranscriptError

INTERRUPTED = "[Request interrupted before this tool finished]"


Mirror: TypeAlias = Callable[[str, dict[str, Any]], None]  # told of every line that is written, and its file


@dataclass(eq=False)
class Transcript:
    """An open transcript: `add` messages, `append` anything else.

    Raises `TranscriptError` when the disk is full; the lines before stay whole. `locked` is false when another run is
    writing to the same file. `sidechain` is the id of the subagent whose it is.
    """

    path: Path
    session_id: str
    cwd: str = ""
    sidechain: str = ""
    mirror: Mirror | None = None
    last_uuid: str | None = None

    def __post_init__(self) -> None:
        try:
            private_folder(self.path.parent)
            self._fd = private(str(self.path), os.O_RDWR | os.O_APPEND | os.O_CREAT)
        except OSError as problem:
            raise TranscriptError(self.path, f"cannot open: {problem.strerror}") from problem
        self.locked: bool = False
        with suppress(OSError):  # the system frees the lock when the process ends, however it ends
            lock_now(self._fd)
            self.locked = True

    def add(self, message: Message, uuids: tuple[str, ...] = (), **more: Any) -> str:
        """Write a message down; its uuid. An answer whose blocks have a uuid each gets a line for each."""
        if not isinstance(message, Assistant) or not message.id or len(uuids) != len(message.content) or not uuids:
            return self.append(encode_entry(message), **more)
        for block, uuid in zip(message.content, uuids, strict=True):
            self.append(encode_entry(structs.replace(message, content=(block,))), uuid, **more)
        return uuids[-1]

    def append(self, entry: Mapping[str, Any], uuid: str = "", **more: Any) -> str:
        """Write any entry down, with who, when and what came before; its uuid."""
        uuid = uuid or str(uuid4())
        stamp = {"uuid": uuid, "sessionId": self.session_id, "timestamp": now(), "cwd": self.cwd}
        side = {"isSidechain": True, "agentId": self.sidechain} if self.sidechain else {"isSidechain": False}
        whole = {"parentUuid": self.last_uuid, **entry, **more, **stamp, **side}
        self._write(write_lossy(whole) + b"\n")
        if self.mirror is not None:
            self.mirror(str(self.path), whole)
        self.last_uuid = uuid
        return uuid

    def compacted(self, summary: str, trigger: str = "manual", **more: Any) -> None:
        """From here on a summary stands for everything before; a resume starts at it."""
        boundary = {"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted"}
        self.append(boundary, compactMetadata={"trigger": trigger, **more})
        self.add(User.of(summary, synthetic=True), isCompactSummary=True)

    def describe(self, about: Mapping[str, Any]) -> None:
        """Say beside the file whose conversation it is, as Claude Code does for subagents."""
        write_atomically(self.path.with_suffix(".meta.json"), write_lossy(about))
        if self.mirror is not None:
            self.mirror(str(self.path), {"type": "agent_metadata", **about})

    def renewed(self, session_id: str) -> "Transcript":
        """The transcript of the session that begins when this one is cleared; this one is closed."""
        self.close()
        path = self.path.with_name(f"{session_id}.jsonl")
        return Transcript(path, session_id, cwd=self.cwd, mirror=self.mirror)

    def close(self) -> None:
        """Give the file back; closing twice is fine."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _write(self, line: bytes) -> None:
        size = os.fstat(self._fd).st_size
        try:
            if os.write(self._fd, line) < len(line):  # one write for one line; a short one means that the disk is full
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # noqa: TRY301 - told below
        except OSError as problem:
            os.ftruncate(self._fd, size)  # half a line must not be followed by others
            what = f"cannot write: {problem.strerror}; what was written before is whole"
            raise TranscriptError(self.path, what) from problem


def resume(
    path: Path, *, cwd: str = "", fork: bool = False, upto: str | None = None, drops: str | None = None
) -> tuple[Transcript, tuple[Message, ...]]:
    """Open a transcript to go on with it, and what was said: repaired if torn, copied if `fork` or another run's.

    With `upto` the conversation goes on after the message of that uuid; what came later stays in the file, and a
    marker tells later readers that it does not count. With `drops`, that must be the turn of this prompt alone.
    """
    if not path.is_file():
        raise TranscriptError(path, "no such transcript")
    if upto is not None and drops is not None:
        _check_dropped(path, upto, drops)
    transcript = Transcript(path, path.stem, cwd=cwd)
    if fork or not transcript.locked:
        transcript.close()
        transcript = _forked(path, cwd)
    else:
        _mend(path)
    messages, transcript.last_uuid = read_transcript(transcript.path)  # the chain of parents goes on
    if upto is not None:
        if not any(entry.get("uuid") == upto for entry in _entries(transcript.path)):
            transcript.close()
            raise TranscriptError(transcript.path, f"no message `{upto}` in it to go on after")
        transcript.append({"type": "system", "subtype": "rewound", "upTo": upto})
        transcript.last_uuid = upto
        messages, _ = read_transcript(transcript.path)
    return transcript, messages


def _check_dropped(path: Path, upto: str, drops: str) -> None:
    """Refuse to leave out more, or something else, than the turn of one prompt."""
    entries = _entries(path)
    at = next((number for number, entry in enumerate(entries) if entry.get("uuid") == upto), len(entries))
    dropped = []
    for entry in entries[at + 1 :]:  # what of it the user said
        message = None if entry.get("isMeta") or entry.get("isSidechain") else decode_entry(entry)
        if isinstance(message, User) and not any(isinstance(block, ToolOutput) for block in message.content):
            dropped.append(str(entry.get("uuid")))
    if dropped != [drops]:
        found = ", ".join(f"`{uuid}`" for uuid in dropped) or "none"
        problem = f"resuming at `{upto}` would leave out the prompts {found}, not `{drops}` alone"
        raise TranscriptError(path, f"Resume rejected by --resume-drops-turn: {problem}")


def now() -> str:
    """The time, as lines of transcripts and messages of the stream tell it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def unanswered(messages: Iterable[Message]) -> tuple[ToolUse, ...]:
    """The tool calls without an answer: the run ended (was killed, or deferred them) before they were done."""
    uses: dict[str, ToolUse] = {}
    for message in messages:
        if isinstance(message, Assistant):
            uses.update({use.id: use for use in message.tool_uses})
        elif isinstance(message, User):
            for block in message.content:
                uses.pop(block.tool_use_id if isinstance(block, ToolOutput) else "", None)
    return tuple(uses.values())


def deferred(path: Path) -> set[str]:
    """The ids of the calls that a run left, on purpose, to the run that resumes it."""
    return {str(entry.get("toolUseID")) for entry in _entries(path) if entry.get("subtype") == "tool_deferred"}


def read_transcript(path: Path) -> tuple[tuple[Message, ...], str | None]:
    """Messages since the last compaction, and the last line's uuid; lines that make no sense are left out."""
    messages: list[Message] = []
    entries = _entries(path)
    rewound = (entry for entry in entries if entry.get("subtype") == "rewound")
    marks: dict[str, tuple[Message, ...]] = {str(entry.get("upTo")): () for entry in rewound}
    last, own = None, not path.name.startswith("agent-")
    for entry in entries:
        last = entry.get("uuid") or last
        if entry.get("subtype") == "compact_boundary":
            messages.clear()
        if entry.get("subtype") == "rewound":
            messages[:] = marks.get(str(entry.get("upTo")), ())
        message = None if own and entry.get("isSidechain") else decode_entry(entry)
        if message is not None:
            _join(messages, message)
        if entry.get("uuid") in marks:
            marks[entry["uuid"]] = tuple(messages)
    return tuple(messages), last


def _join(messages: list[Message], message: Message) -> None:
    """Add a message; Claude Code writes one line per block of an answer, so lines of one answer are joined again."""
    before = messages[-1] if messages else None
    if isinstance(message, Assistant) and isinstance(before, Assistant) and message.id and message.id == before.id:
        usage = message.usage if message.usage != Usage() else before.usage
        messages[-1] = structs.replace(message, content=before.content + message.content, usage=usage)
    else:
        messages.append(message)


def _entries(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a file; one that makes no sense is empty."""
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise TranscriptError(path, f"cannot read: {problem.strerror}") from problem
    return [read_object(line) or {} for line in data[: data.rfind(b"\n") + 1].split(b"\n") if line.strip()]


def _mend(path: Path) -> None:
    """Cut a torn last line off, keeping its bytes beside the file."""
    data = path.read_bytes()
    tail = data[data.rfind(b"\n") + 1 :]
    if tail:
        with open(path.with_suffix(".torn"), "ab", opener=private) as beside:
            beside.write(tail + b"\n")
        os.truncate(path, len(data) - len(tail))


def _forked(path: Path, cwd: str) -> Transcript:
    """A copy of every whole line under a new session id, written as one piece so that it is never half there."""
    session_id = str(uuid4())
    copy = path.with_name(f"{session_id}.jsonl")
    data = path.read_bytes()
    try:
        write_atomically(copy, data[: data.rfind(b"\n") + 1])
    except OSError as problem:
        raise TranscriptError(copy, f"cannot write: {problem.strerror}") from problem
    return Transcript(copy, session_id, cwd=cwd)


SLUG_LIMIT = 200


def config_folder(environ: Mapping[str, str]) -> Path:
    """The user's own folder of settings, instructions and transcripts."""
    return Path(environ.get("CLAUDE_CONFIG_DIR") or Path(environ.get("HOME") or Path.home(), ".claude"))


def project_folder(cwd: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Where the transcripts of a project lie."""
    slug = re.sub(r"[^a-zA-Z0-9]", "-", cwd)
    if len(slug) > SLUG_LIMIT:  # file systems allow 255 bytes
        slug = f"{slug[:SLUG_LIMIT]}-{hashlib.sha256(cwd.encode()).hexdigest()[:8]}"
    return config_folder(environ) / "projects" / slug


def transcript_path(cwd: str, session_id: str, environ: Mapping[str, str] = os.environ) -> Path:
    """A session's file."""
    return project_folder(cwd, environ) / f"{session_id}.jsonl"


def find(session: str, cwd: str, environ: Mapping[str, str] = os.environ) -> Path:
    """The transcript a `--resume` value means: a path, or a session id of this project or, failing that, of any."""
    if session.endswith(".jsonl") and Path(session).is_file():
        return Path(session)
    folder = project_folder(cwd, environ)
    name = f"{session}.jsonl"
    candidates = [folder / name, *sorted(folder.parent.glob(f"*/{name}"))] if re.fullmatch(r"[\w-]+", session) else []
    found = next((path for path in candidates if path.is_file()), None)
    if found is None:
        raise TranscriptError(folder, f"no session `{session}`; `--continue` resumes the last one")
    return found


def latest(cwd: str, environ: Mapping[str, str] = os.environ) -> Path:
    """The project's last written transcript (`--continue`)."""
    folder = project_folder(cwd, environ)
    found = max(folder.glob("*.jsonl"), key=lambda path: path.stat().st_mtime_ns, default=None)
    if found is None:
        raise TranscriptError(folder, "no session to continue")
    return found
