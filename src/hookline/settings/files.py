"""Reading other people's files: whole, bounded, and never waiting for one that is not a file."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec

from hookline.display import one_line

MOST_BYTES = 4 * 1024 * 1024
"""A settings file larger than this is not read."""
LARGEST = 16 * 1024 * 1024
"""A file of code larger than this is not read."""
_LARGEST_COPY = 64 * 1024

_SAY = {
    errno.EACCES: "may not be read; run `chmod u+r` on it",
    errno.EPERM: "may not be read; run `chmod u+r` on it",
    errno.ELOOP: "is a link that leads back to itself; remove it",
    errno.EISDIR: "is a folder; a file was expected",
    errno.ENAMETOOLONG: "has too long a name",
}
_MISSING = (errno.ENOENT, errno.ENOTDIR)
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def is_dir(path: str | Path) -> bool:
    """Whether there is a folder; one that may not be looked at is none."""
    return os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises where a folder above may not be entered


def is_file(path: str | Path) -> bool:
    """Whether there is a file; one that may not be looked at is none."""
    return os.path.isfile(path)  # noqa: PTH113 - as above


def read_bytes(path: str, most: int = MOST_BYTES) -> bytes | str | None:
    """The file's bytes; a text is what is wrong with it; `None` says that there is none."""
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError as error:
        if error.errno in _MISSING:
            return None
        if is_dir(path):
            return _SAY[errno.EISDIR]
        return _SAY.get(error.errno or 0, f"cannot be opened: {(error.strerror or str(error)).lower()}")
    except ValueError:
        return "has a name that no file can have"
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            other = "is a pipe, a socket or a device; a file was expected"
            return _SAY[errno.EISDIR] if stat.S_ISDIR(mode) else other
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(most + 1)
    except OSError as error:
        return f"cannot be read: {(error.strerror or str(error)).lower()}"
    finally:
        os.close(descriptor)
    return data if len(data) <= most else f"is larger than {most // 1024:,} KiB; nothing of it is read"


def read_text(path: str, label: str) -> tuple[str | None, tuple[Problem, ...]]:
    """The file's text, or `None` with what is wrong; a file that is not there is no problem."""
    found = read_bytes(path)
    if found is None:
        return None, ()
    if isinstance(found, str):
        return None, (Problem(label, found),)
    try:
        return found.decode("utf-8-sig"), ()
    except UnicodeDecodeError as error:
        return None, (Problem(label, f"is not UTF-8 (byte {error.start}); save it as UTF-8"),)


def read_json(path: str, label: str) -> tuple[Any, tuple[Problem, ...]]:
    """The file's JSON value, or `None` with what is wrong; a file that is not there is no problem."""
    text, problems = read_text(path, label)
    return (None, problems) if text is None else parse_json(text, label)


DEEPEST = 100
"""Values nested deeper than this are not read."""


def plain(value: Any, depth: int = 0) -> Any:
    """The value as JSON has it: text keys, lists, and text for whatever JSON does not know."""
    if depth > DEEPEST:
        raise RecursionError
    if isinstance(value, dict):
        keys = (
            key if isinstance(key, str) else str(key).lower() if isinstance(key, bool) else str(key) for key in value
        )
        return {key: plain(one, depth + 1) for key, one in zip(keys, value.values(), strict=True)}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(one, depth + 1) for one in value]
    if isinstance(value, bool | str | float) or value is None:
        return value
    return value if isinstance(value, int) and abs(value) < 2**63 else str(value)[:100]


def canonical(value: Any) -> bytes:
    """Bytes that are the same for the same value."""
    return msgspec.json.encode(value)


def pretty(value: Any, indent: int = 2) -> str:
    """The value for people, over several lines; with no indent, on one."""
    return msgspec.json.format(canonical(value), indent=indent).decode()


def parse_json(text: str, label: str) -> tuple[Any, tuple[Problem, ...]]:
    """The value of a JSON text; what is no JSON is a problem with line and column, a key said twice is one, too."""
    if not text.strip():
        return None, (Problem(label, "is empty; write `{}`"),)
    try:
        value = plain(msgspec.json.decode(text))
        return value, _said_twice(text, value, label)
    except RecursionError:
        return None, (Problem(label, "is nested too deeply"),)
    except msgspec.MsgspecError as error:
        import json  # only a broken file needs it: the time to start counts

        said = str(error).lower()
        try:
            json.loads(text)
        except json.JSONDecodeError as found:
            said = f"line {found.lineno} column {found.colno}: {found.msg.lower()}"
        except (ValueError, RecursionError):
            pass
        return None, (Problem(label, f"is not JSON: {said}"),)


_STRING = re.compile(r'"(?:[^"\\]|\\.)*"(\s*:)?')


def _said_twice(text: str, value: Any, label: str) -> tuple[Problem, ...]:
    """A problem for every key that its object has twice: JSON readers keep the last and say nothing."""
    if sum(1 for found in _STRING.finditer(text) if found[1]) == _keys(value):
        return ()
    import json  # as above

    twice: list[str] = []

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in found]
        twice.extend(name for name in dict.fromkeys(names) if names.count(name) > 1)
        return dict(found)

    json.loads(text, object_pairs_hook=pairs)
    message = "stands there twice, and only the last one counts; join them"
    return tuple(Problem(label, f"`{name}` {message}") for name in dict.fromkeys(twice))


def _keys(value: Any) -> int:
    if isinstance(value, dict):
        return len(value) + sum(map(_keys, value.values()))
    return sum(map(_keys, value)) if isinstance(value, list) else 0


# -- the files that hooks run ----------------------------------------------------------------------------------------


class HookScript(msgspec.Struct, frozen=True):
    """A file that a hook runs: its hash, and its text if it is short enough to keep."""

    path: str
    sha256: str
    text: str | None = None


def read_script(path: str | Path) -> HookScript | None:
    """A file's hash and text; `None` if there is none. One that cannot be read hashes as what is wrong with it."""
    import hashlib  # only other people's hooks need it, and the time to start counts

    try:
        with Path(path).open("rb") as file:
            if not is_file(path):
                return HookScript(str(path), "unreadable: is a pipe, a socket or a device; a file was expected")
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = file.tell()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        found = read_bytes(str(path), LARGEST)
        return HookScript(str(path), f"unreadable: {found}") if isinstance(found, str) else None
    data = read_bytes(str(path), _LARGEST_COPY) if size <= _LARGEST_COPY else None
    text = None
    if isinstance(data, bytes) and b"\0" not in data:
        with suppress(UnicodeDecodeError):
            text = data.decode()
    return HookScript(str(path), digest, text)


Severity = Literal["error", "warning", "note"]


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong with a file.

    `error`: something written there does not count · `warning`: it counts, but hardly as meant · `note`: good to know.
    """

    where: str
    message: str
    severity: Severity = "error"
    line: int = 0
    column: int = 0
    """Where in the file that is, from 1; 0 where it is not known."""

    def __str__(self) -> str:
        return one_line(f"{self.where}: {self.message}")


def shown(value: Any, most: int = 60) -> str:
    """A value as the user wrote it, in backticks and not too long."""
    try:
        text = msgspec.json.encode(value).decode("utf-8", "replace")
    except (TypeError, ValueError, OverflowError, RecursionError):
        text = type(value).__name__
    return f"`{one_line(text, most)}`"


def is_misspelling(word: str, known: Iterable[str]) -> bool:
    """Whether a word is so near a known one that it can hardly mean anything else: `timout`, `on_failure`."""
    from difflib import get_close_matches

    plain = word.lower().replace("_", "").replace("-", "")
    return bool(get_close_matches(plain, [name.lower() for name in known], n=1, cutoff=_NEARLY))


_NEARLY = 0.8
