"""What a session has seen: one append-only file per session that several processes share, or memory alone.

It is a positive list. What is lost (by a limit, a crash, a result that the host hid) adds questions and never takes one
away; a session whose file is gone counts as one that has read untrusted text.
"""

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import msgspec

from hookline.core.files import locked, private_folder, read_at, write_at
from hookline.guards.flow.values import clean, contains, fold, key_of, kind_of, names

_MOST_TEXT = 64 * 1024
_MOST_TEXTS = 2 * 1024 * 1024
_MOST_VOUCHED = 20_000
_LARGEST = 256 * 1024 * 1024
_UNTRUSTED_LETTERS = 10
Origin = Literal["record", "inside", "outside", "secret"]


class Voucher(msgspec.Struct, array_like=True, frozen=True):
    """A value that a record vouches for; `people` are the names beside it."""

    key: str
    label: Literal["field", "third"]
    path: str = ""
    people: str = ""


class FlowRow(msgspec.Struct, omit_defaults=True, tag_field="t", tag=False):
    """One line of a store; a text that was read is `direct` when the user named it, `delegated` if that leads to it."""

    kind: Literal["begin", "lost", "prompt", "called", "result", "judged"]
    time: float = 0.0
    source: str = ""
    text: str = ""
    letters: int = 0
    origin: Origin = "record"
    direct: bool = False
    delegated: bool = False
    found: list[str] = []
    vouchers: list[Voucher] = []
    secrets: list[str] = []
    tool: str = ""
    arguments: list[str] = []
    call: str = ""
    approved: bool = False
    keys: list[str] = []
    level: str = ""
    rule: str = ""
    values: list[tuple[str, str, str, str]] = []
    folded: str = ""  # of a text that is looked through; not kept


_rows = msgspec.json.Decoder(FlowRow)


class FlowStore:
    """A session's rows and what is looked up in them."""

    def __init__(self, path: Path | None = None) -> None:
        self.path: Path | None = path
        self.prompts: list[str] = []
        self.prompt: str = ""
        self.folded_prompt: str = ""
        self.vouchers: dict[str, tuple[Voucher, str]] = {}
        self.texts: list[FlowRow] = []
        self.approved: set[str] = set()
        self.secrets: set[str] = set()
        self.secret_read: str = ""
        self.letters: int = 0
        self.unanswered: int = 0
        self.results: int = 0
        self.began: bool = False
        self.judged: list[FlowRow] = []
        self.tools: dict[str, set[str]] = {}
        self._asked: dict[str, list[str]] = {}
        self._seen: dict[str, list[FlowRow]] = {}
        self._size = 0
        self._at = 0
        self._identity: tuple[int, int] | None = None
        self.refresh()

    @property
    def untrusted(self) -> bool:
        """Whether a text that the user did not write may have talked the agent into something.

        A call whose result was not seen (it is under way, the host hid it, it could not be kept) may have returned one.
        """
        return self.letters >= _UNTRUSTED_LETTERS or not self.began or self.unanswered > 0

    def put(self, row: FlowRow) -> None:
        """Keep a row: here, and for the other processes."""
        row.time = time.time()
        if self.path is None:
            self._apply(row)
            return
        private_folder(self.path.parent)
        with locked(self.path) as fd:
            end = os.fstat(fd).st_size
            torn = end and read_at(fd, 1, end - 1) != b"\n"  # a writer died within its line
            write_at(fd, b"\n" * bool(torn) + msgspec.json.encode(row) + b"\n", end)
        self.refresh()

    def refresh(self) -> None:
        """Read what other processes have added; a file that was exchanged is not a continuation of the old one."""
        if self.path is None:
            return
        try:
            with self.path.open("rb") as file:
                status = os.fstat(file.fileno())
                identity = status.st_dev, status.st_ino
                if self._identity not in (None, identity) or status.st_size < self._at:
                    self._apply(FlowRow("lost"))
                    self._at = 0
                self._identity = identity
                file.seek(self._at)
                added = file.read(_LARGEST)
        except FileNotFoundError:
            if self._identity is not None:
                self._apply(FlowRow("lost"))
            return
        added = added[: added.rfind(b"\n") + 1]
        self._at += len(added)
        for line in added.splitlines():
            with suppress(msgspec.MsgspecError, UnicodeDecodeError):  # a line that was torn: one voucher less
                self._apply(_rows.decode(line))

    def _apply(self, row: FlowRow) -> None:
        self.began |= row.kind == "begin"
        self.unanswered += row.kind == "called"
        if row.kind == "lost":
            self.letters = max(self.letters, _UNTRUSTED_LETTERS)
        elif row.kind == "prompt":
            self.prompts.append(row.text)
            self.prompt = "\n".join(self.prompts)
            self.folded_prompt = fold(self.prompt)
        elif row.kind in ("result", "judged"):
            self.tools.setdefault(row.tool, set()).update(row.arguments)
            self.judged += [row] if row.kind == "judged" else []
            if row.kind == "result":
                self._add_result(row)
            elif row.level == "ask":
                self._asked[row.call] = row.keys

    def _add_result(self, row: FlowRow) -> None:
        self.results += 1
        self.unanswered = max(0, self.unanswered - 1)  # a result of a call that was not judged answers no other one
        self.letters += row.letters
        if row.approved:
            self.approved.update(self._asked.pop(row.call, ()))
        for voucher in row.vouchers:
            old = self.vouchers.get(voucher.key)
            if len(self.vouchers) < _MOST_VOUCHED and not (old and old[0].label == "field"):
                self.vouchers[voucher.key] = voucher, row.source
        self.secrets.update(row.secrets)
        if row.origin == "secret":
            self.secret_read = row.source
        self._seen.clear()
        if row.text:
            row.folded = row.text.casefold()
            self._size += len(row.text)
            self.texts.append(row)
        while self._size > _MOST_TEXTS:
            self._size -= len(self.texts.pop(0).text)

    def seen(self, value: str) -> list[FlowRow]:
        key = key_of(value)
        if key not in self._seen:
            is_name, needle = kind_of(value) == "name", fold(value)
            self._seen[key] = [
                text for text in self.texts
                if (contains(text.folded, needle) >= 0 if is_name else key in text.found)
            ]  # fmt: skip
        return self._seen[key]

    def names(self, value: str) -> bool:
        return names(self.prompt, self.folded_prompt, value)

    def says(self, word: str) -> bool:
        return contains(self.folded_prompt, fold(word)) >= 0

    def has_outside(self) -> bool:
        return any(text.origin in ("outside", "record") for text in self.texts)

    def text_with(self, value: str, *, outside: bool = False) -> FlowRow | None:
        """The first text (from outside) in which a value stands."""
        texts = (text for text in self.texts if not outside or text.origin != "inside")
        return next((text for text in texts if contains(text.folded, fold(value)) >= 0), None)


def store_path(folder: Path, session: str) -> Path:
    """The file of a session."""
    return folder / f"{sha256(session.encode()).hexdigest()[:32]}.jsonl"


def call_hash(tool: str, arguments: Mapping[str, Any]) -> str:
    """What a call is recognized by when its result comes."""
    return sha256(json.dumps([tool, arguments], sort_keys=True, default=str).encode()).hexdigest()[:24]


def bounded(text: str) -> str:
    """A text as it is kept: clean, and of a long one the beginning and the end."""
    plain, half = clean(text), _MOST_TEXT // 2
    return plain if len(plain) <= _MOST_TEXT else f"{plain[:half]}\n{plain[-half:]}"
