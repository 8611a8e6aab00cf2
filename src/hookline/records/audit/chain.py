"""Lines that hold each other, each naming the hash of the one before, and whether a log of them is whole.

A line is a JSON object whose last key is `hash`, over all bytes before it. `seq` counts from 1 across rotated files;
`prev` is the hash of the line before. With a key the hash is an HMAC, which cannot be computed without the key.

The head file beside a log says where the chain stands, so that lines cut off at either end are missed. Who can replace
a log can put older copies of both back, signatures and all. An anchor, which finds that out, is the last record's
number and hash in another place: a file in the user's state folder (what a log with a key has unless you say
differently), a file of your choice on another disk, or a function that sends it away.
"""

import hashlib
import hmac
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol, Self

import msgspec

from hookline.core.files import locked, private_folder, read_at, state_folder, write_at
from hookline.core.wire.json_text import read_as, read_object
from hookline.errors import AuditError

START = "0" * 64
RESERVED = frozenset({"seq", "prev", "hash"})
_TAIL = re.compile(rb',"hash":"([0-9a-f]{64})"\}\Z')
_HASH = re.compile("[0-9a-f]{64}")
MOST_LINE = 16 << 20  # a longer line is not a record of ours, and is read in parts
MOST_BREAKS = 1_000
BREAK = "AuditBreak"
"""The event of the record that a writer begins a new file with when it finds the log cut or changed."""
_MARK = b'"event":"AuditBreak"'
_Files = Sequence[tuple[Path, BinaryIO, int]]
_HEAD_BYTES = 1024
_ANCHOR_BYTES = 512


class Link(msgspec.Struct, frozen=True):
    """Where the chain stands: the last line's number and hash."""

    seq: int = 0
    hash: str = START


class Break(msgspec.Struct, frozen=True):
    """Where the chain does not hold, and what is wrong there."""

    file: str
    line: int
    problem: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.problem}"


class _Place(msgspec.Struct):
    seq: int
    prev: str


def digest(body: bytes, key: bytes | None) -> str:
    """The hash of a line's bytes before its own hash."""
    if key is not None:
        return hmac.new(key, body, hashlib.sha256).hexdigest()
    return hashlib.sha256(body).hexdigest()


def chain_line(record: Mapping[str, Any], last: Link, key: bytes | None = None) -> tuple[bytes, Link]:
    """The next line of the chain, with its newline, and where the chain stands then."""
    seq = last.seq + 1
    said = {name: value for name, value in record.items() if name not in RESERVED}
    body = msgspec.json.encode({"seq": seq, "prev": last.hash, **said})[:-1]
    hashed = digest(body, key)
    return body + b',"hash":"' + hashed.encode() + b'"}\n', Link(seq, hashed)


def link_of(line: bytes) -> Link | None:
    """Where the chain stood after `line`, or `None` if it is not a line of a chain."""
    read = _read(line)
    return read and Link(read[0].seq, read[2])


def link_before(line: bytes) -> Link | None:
    """Where the chain stood before `line`, or `None` if it is not a line of a chain."""
    read = _read(line)
    return read and Link(read[0].seq - 1, read[0].prev)


def _read(line: bytes) -> tuple[_Place, bytes, str] | None:
    """A line's place, the bytes its hash is over, and its hash."""
    stripped = line.removesuffix(b"\n")
    found = _TAIL.search(stripped)
    place = read_as(stripped, _Place) if found else None
    return (place, stripped[: found.start()], found[1].decode()) if found and place else None


def follow(lines: Iterable[bytes], start: Link, key: bytes | None = None) -> Iterator[tuple[Link, str | None]]:
    """Follow the chain: for each line where it stands then, and what is wrong with the line, if anything.

    One edit is one problem: after it, the chain is taken up again with what the line itself says.
    """
    last = start
    for line in lines:
        last, problem = _checked(line, last, key)
        yield last, problem


def _checked(line: bytes, last: Link, key: bytes | None) -> tuple[Link, str | None]:
    if not line.endswith(b"\n"):
        return last, "the line is torn: it does not end"
    if (read := _read(line)) is None:
        return Link(last.seq + 1, ""), "the line was changed: it is not a record of this log"
    place, body, hashed = read
    if not hmac.compare_digest(digest(body, key), hashed):
        problem = f"the line was changed: record {last.seq + 1} does not match its hash"
        return Link(last.seq + 1, hashed), problem
    here = Link(place.seq, hashed)
    if place.seq > last.seq + 1:
        return here, f"{records(last.seq + 1, place.seq - 1, 'is', 'are')} missing: found record {place.seq}"
    if place.seq <= last.seq:
        return here, f"out of order: found record {place.seq} after record {last.seq}"
    if last.hash and place.prev != last.hash:
        return here, f"record {place.seq} does not follow the line before it: that one was changed or replaced"
    return here, None


def records(first: int, last: int, one: str, many: str) -> str:
    """The records of a range in words, with the verb that fits."""
    return f"record {first} {one}" if first == last else f"records {first} to {last} {many}"


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """Where the chain stands (`seq`, `hash`), and where it stood before the oldest line that is kept.

    `lost_at` is set when a log was found without its head: what was cut off before that record cannot be told.
    `mac` signs the rest when the log has a key.
    """

    seq: int = 0
    hash: str = Link().hash
    base_seq: int = 0
    base_hash: str = Link().hash
    lost_at: int | None = None
    keyed: bool = False
    mac: str = ""

    @property
    def last(self) -> Link:
        return Link(self.seq, self.hash)

    @property
    def base(self) -> Link:
        return Link(self.base_seq, self.base_hash)

    @property
    def is_sound(self) -> bool:
        """Whether the oldest line comes before the last; a head with a key has a signature that says more."""
        return 0 <= self.base_seq <= self.seq and _HASH.fullmatch(self.base_hash) is not None

    def at(self, last: Link) -> Self:
        return msgspec.structs.replace(self, seq=last.seq, hash=last.hash)

    def since(self, base: Link) -> Self:
        return msgspec.structs.replace(self, base_seq=base.seq, base_hash=base.hash)

    def signature(self, key: bytes) -> str:
        return digest(msgspec.json.encode(msgspec.structs.replace(self, mac="")), key)

    def write(self, fd: int, key: bytes | None) -> None:
        """One write of constant size, so that it can neither be torn nor need new room on a full disk."""
        signed = msgspec.structs.replace(self, keyed=key is not None)
        if key is not None:
            signed = msgspec.structs.replace(signed, mac=signed.signature(key))
        write_at(fd, msgspec.json.encode(signed).ljust(_HEAD_BYTES) + b"\n", 0)

    def key_problem(self, key: bytes | None) -> str | None:
        if self.keyed and key is None:
            return "the log was written with a key; give it"
        if not self.keyed and key is not None:
            return "the log was written without a key; start a new one to use a key"
        if key is not None and not hmac.compare_digest(self.signature(key), self.mac):
            return "the head file was changed, or the key is another one"
        return None


def read_head(source: int | Path) -> Head | None:
    """The head, or `None` if there is none that can be read, or that could have been written."""
    if isinstance(source, int):
        data = read_at(source, _HEAD_BYTES + 1, 0)
    else:
        try:
            data = source.read_bytes()
        except OSError:
            return None
    head = read_as(data, Head)
    return head if head is not None and (head.keyed or head.is_sound) else None


class Anchor(Protocol):
    """Somewhere else that remembers where a log stood."""

    required: bool = True  # whether a log may not be written when this cannot be

    def read(self, key: bytes | None) -> Link | None:
        """The last record this knows of; `None` where nothing was remembered yet."""
        return None

    def write(self, last: Link, key: bytes | None) -> None:
        """Remember this one from now on."""


class _Mark(msgspec.Struct, frozen=True, kw_only=True):
    seq: int
    hash: str
    mac: str = ""


class FileAnchor(Anchor):
    """An anchor in a file: as far from the log as you can put it, and where its writers' enemies cannot write."""

    def __init__(self, path: str | Path, *, required: bool = True) -> None:
        self.path: Path = Path(path)
        self.required = required

    def __str__(self) -> str:
        return str(self.path)

    def read(self, key: bytes | None) -> Link | None:
        """The last record; raises `AuditError` when the file is damaged, or was signed with another key."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise AuditError(f"{self.path}: the anchor cannot be read: {problem.strerror}") from None
        if (mark := read_as(data, _Mark)) is None:
            raise AuditError(f"{self.path}: the anchor is damaged")
        if key is not None and not hmac.compare_digest(_signature(mark.seq, mark.hash, key), mark.mac):
            raise AuditError(f"{self.path}: the anchor was changed, or the key is another one")
        return Link(mark.seq, mark.hash)

    def write(self, last: Link, key: bytes | None) -> None:
        """Remember a record, in one write of constant size."""
        mac = "" if key is None else _signature(last.seq, last.hash, key)
        data = msgspec.json.encode(_Mark(seq=last.seq, hash=last.hash, mac=mac)).ljust(_ANCHOR_BYTES) + b"\n"
        try:
            private_folder(self.path.parent)
            with locked(self.path) as fd:
                write_at(fd, data, 0)
        except OSError as problem:
            raise AuditError(f"{self.path}: the anchor cannot be written: {problem.strerror}") from None


class SinkAnchor(Anchor):
    """An anchor that a function sends away: it is told `(seq, hash)`, to compare with `audit verify --expect`."""

    def __init__(self, send: Callable[[int, str], object]) -> None:
        self._send = send

    def __str__(self) -> str:
        return "a function"

    def write(self, last: Link, key: bytes | None) -> None:
        try:
            self._send(last.seq, last.hash)
        except Exception as problem:
            raise AuditError(f"the anchor cannot be sent: {type(problem).__name__}: {problem}") from problem


class ExpectedAnchor(Anchor):
    """An anchor that was written down: `--expect SEQ:HASH`. It is only compared with."""

    def __init__(self, last: Link) -> None:
        self._last = last

    def __str__(self) -> str:
        return f"record {self._last.seq}"

    def read(self, key: bytes | None) -> Link | None:
        return self._last

    def write(self, last: Link, key: bytes | None) -> None:
        """Nothing is remembered."""


AnchorSpec = str | Path | Callable[[int, str], object] | Anchor | bool | None
"""A file, a function, an anchor of your own, `True` for the state folder, `False` for none; `None` is by the key."""


def anchor_for(given: AnchorSpec, log: Path, key: bytes | None) -> Anchor | None:
    """The anchor of a log: a file's, a function's, your own, or unless switched off the state folder's with a key."""
    if given is False or (given is None and key is None):
        return None
    if given is None or given is True:  # in the state folder, one for each log and key
        fingerprint = b"" if key is None else digest(b"fingerprint", key).encode()
        name = hashlib.sha256(os.path.realpath(log).encode("utf-8", "surrogateescape") + b"\0" + fingerprint)
        return FileAnchor(state_folder() / "audit" / f"{name.hexdigest()[:40]}.json", required=False)
    if isinstance(given, (str, Path)):
        return FileAnchor(given)
    return SinkAnchor(given) if callable(given) else given


def _signature(seq: int, hashed: str, key: bytes) -> str:
    return digest(f"anchor {seq} {hashed}".encode(), key)


def verified(
    path: Path, head_path: Path, head: Head | None, files: _Files, *, key: bytes | None, anchor: Anchor | None
) -> list[Break]:
    """Everything that is wrong with a log as it was at one moment, with its files opened; nothing if it is whole."""
    mark, problems = _marked(head, key, anchor)
    wrong_key = None if head is None else head.key_problem(key)
    lost = ""
    if head is None and (files or mark is not None):
        lost = "the head file is missing or damaged: it cannot be told whether lines were cut off"
    elif head is not None and head.lost_at is not None:
        where = f"the head file was lost at record {head.lost_at}"
        lost = f"{where}: it cannot be told whether lines before it were cut off"
    if wrong_key or lost:
        problems.append(Break(str(head_path), 1, wrong_key or lost))
    if wrong_key or (head is None and not lost):
        return problems
    walk = _Walk(key, mark)
    walk.through(files, head)
    last = walk.last or Link()
    ends = _wrong_at_the_end(walk, last, last if head is None else head.last, mark or last)
    return [*problems, *walk.breaks, *(Break(str(path), line, why) for line, why in ends)]


def _marked(head: Head | None, key: bytes | None, anchor: Anchor | None) -> tuple[Link | None, list[Break]]:
    """The record that the anchor knows, or what is wrong with the anchor."""
    if anchor is None:
        return None, []
    try:
        mark = anchor.read(key)
    except AuditError as problem:
        return None, [Break(str(anchor), 1, str(problem).removeprefix(f"{anchor}: "))]
    if mark is None and anchor.required and hasattr(anchor, "path") and head is not None and head.seq:
        return None, [Break(str(anchor), 1, "the anchor is missing: it cannot be told whether the log was rolled back")]
    return mark, []


def _wrong_at_the_end(walk: "_Walk", last: Link, head: Link, mark: Link) -> Iterator[tuple[int, str]]:
    """Whether the log ends where its head says, and still holds the record that its anchor knows."""
    if last.seq < head.seq:
        yield walk.lines + 1, f"{records(last.seq + 1, head.seq, 'was', 'were')} cut off"
    elif last.seq == head.seq and last.hash not in (head.hash, ""):
        yield walk.lines, f"record {last.seq} is not the one that was written last"
    if last.seq < mark.seq:
        gone = records(last.seq + 1, mark.seq, "was", "were")
        yield walk.lines + 1, f"{gone} removed: the log was rolled back or deleted"
    elif walk.at_mark is not None and walk.at_mark.hash not in (mark.hash, ""):
        why = f"record {mark.seq} is not the one that the anchor knows: the log was rolled back and written again"
        yield walk.lines, why


class _Walk:
    def __init__(self, key: bytes | None, mark: Link | None) -> None:
        self._key, self._mark = key, mark
        self.at_mark: Link | None = None
        self.last: Link | None = None
        self.lines = 0
        self.breaks: list[Break] = []

    def through(self, files: _Files, head: Head | None) -> None:
        """All files, the oldest first; `lines` is then how many the last one has."""
        self.last = head.base if head is not None else None
        for path, file, size in files:
            before = link_before(file.readline(MOST_LINE))
            file.seek(0)
            if head is not None and before is not None and before.seq < head.base_seq:
                continue  # it was to be deleted, and only a kill left it there
            torn = self._follow(path, file, size, self.last or before or Link())
            if torn and (file is not files[-1][1] or head is None or (self.last or Link()).seq < head.seq):
                self._say(path, self.lines + 1, "the line is torn: it does not end")

    def _follow(self, path: Path, file: BinaryIO, size: int, start: Link) -> bool:
        """Follow one file; says whether its end is torn, as a writer that was killed leaves it; no one misses it."""
        self.lines, self.last = 0, start
        for number, line in enumerate(lines_of(file, size), 1):
            link, problem = _checked(line, self.last, self._key)
            if not line.endswith(b"\n") and file.tell() >= size:
                return True
            self.lines, self.last = number, link
            if self._mark is not None and link.seq == self._mark.seq:
                self.at_mark = link
            if problem is not None:
                self._say(path, number, problem)
            found = read_object(line) if _MARK in line and link.hash else None
            if found is not None and found.get("event") == BREAK:  # a record that only quotes such a line has another
                self._say(path, number, f"a writer found the log broken here: {found.get('problem')}")
        return False

    def _say(self, path: Path, line: int, problem: str) -> None:
        if len(self.breaks) < MOST_BREAKS:
            self.breaks.append(Break(str(path), line, problem))


def lines_of(file: BinaryIO, size: int) -> Iterator[bytes]:
    """The lines in the first `size` bytes; of one that is too long to be a record, only its parts."""
    left = size
    while left > 0 and (line := file.readline(min(MOST_LINE, left))):
        left -= len(line)
        yield line
