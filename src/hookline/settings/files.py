"""Reading other people's files: whole, bounded, and never waiting for one that is not a file."""

import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from hookline.display import one_line
from hookline.errors import extra

T = TypeVar("T")
MOST_BYTES = 4 * 1024 * 1024  # a settings file larger than this is not read
LARGEST = 16 * 1024 * 1024  # a file of code larger than this is not read
_LARGEST_COPY = 64 * 1024

_SAY = {
    **dict.fromkeys((errno.EACCES, errno.EPERM), "may not be read; run `chmod u+r` on it"),
    errno.ELOOP: "is a link that leads back to itself; remove it",
    errno.EISDIR: "is a folder; a file was expected",
    errno.ENAMETOOLONG: "has too long a name",
}
_MISSING = (errno.ENOENT, errno.ENOTDIR)
_NO_FILE = "is a pipe, a socket or a device; a file was expected"
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


Severity = Literal["error", "warning", "note"]


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong with a file.

    `error`: something written there does not count · `warning`: it counts, but hardly as meant · `note`: good to know.
    """

    where: str
    message: str
    severity: Severity = "error"
    line: int = 0
    column: int = 0  # where in the file that is, from 1; 0 where it is not known

    def __str__(self) -> str:
        return one_line(f"{self.where}: {self.message}")


is_dir, is_file = os.path.isdir, os.path.isfile  # what may not be looked at is neither; `Path.is_dir` would raise


def file_state(path: str, *, of_link: bool = False) -> tuple[int, ...] | None:
    """What every edit changes (no program can set `ctime`); with `of_link`, what tells another one in its place."""
    try:
        it = os.lstat(path) if of_link else os.stat(path)  # noqa: PTH116 - before every event and at every run
    except (OSError, ValueError):
        return None
    state = it.st_dev, it.st_ino, it.st_mode, it.st_mtime_ns, it.st_ctime_ns
    return state if of_link else (*state, it.st_size)


def expanded(name: str | Path) -> str:
    """A file's name with a home folder for its `~`; `~x` of no user is a name like any other."""
    try:
        return os.path.expanduser(name)  # noqa: PTH111 - `Path.expanduser` raises where there is no such user
    except ValueError:  # a NUL, which is in the name of no file
        return str(name)


def _taken(path: str, take: Callable[[BufferedReader], T]) -> T | str | None:
    """What is taken of a file's bytes; a text is what is wrong with it; `None` says that there is none."""
    try:
        with open(path, "rb", opener=lambda name, _: os.open(name, _FLAGS)) as file:
            return take(file) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else _NO_FILE
    except OSError as error:
        if error.errno in _MISSING:
            return None
        said = f"cannot be read: {(error.strerror or str(error)).lower()}"
        return _SAY.get(errno.EISDIR if is_dir(path) else error.errno or 0, said)
    except ValueError:
        return "has a name that no file can have"


def read_bytes(path: str, most: int = MOST_BYTES) -> bytes | str | None:
    """The file's bytes; a text is what is wrong with it; `None` says that there is none."""
    found = _taken(path, lambda file: file.read(most + 1))
    large = isinstance(found, bytes) and len(found) > most
    return f"is larger than {most // 1024:,} KiB; nothing of it is read" if large else found


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


DEEPEST = 100  # values nested deeper than this are not read


def plain(value: Any, depth: int = 0) -> Any:
    """The value as JSON has it: text keys, lists, and text for whatever JSON does not know."""
    if depth > DEEPEST:
        raise RecursionError
    if isinstance(value, dict):
        names = {key: str(key).lower() if isinstance(key, bool) else str(key) for key in value}
        return {names[key]: plain(one, depth + 1) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(one, depth + 1) for one in value]
    if isinstance(value, bool | str | float) or value is None:
        return value
    return value if isinstance(value, int) and abs(value) < 2**63 else str(value)[:100]


def pretty(value: Any, indent: int = 2) -> str:
    """The value for people, over several lines; with no indent, on one."""
    return msgspec.json.format(msgspec.json.encode(value), indent=indent).decode()


def parse_json(text: str, label: str) -> tuple[Any, tuple[Problem, ...]]:
    """The value of a JSON text; what is no JSON is a problem with line and column, a key said twice is one, too."""
    twice: dict[str, None] = {}

    def pairs(found: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in found]
        if len(set(names)) < len(names):  # JSON readers keep the last and say nothing
            twice.update(dict.fromkeys(name for name in names if names.count(name) > 1))

    if not text.strip():
        return None, (Problem(label, "is empty; write `{}`"),)
    try:
        json.loads(text, object_pairs_hook=pairs, parse_int=str)
        value = plain(msgspec.json.decode(text))
    except RecursionError:
        return None, (Problem(label, "is nested too deeply"),)
    except json.JSONDecodeError as error:
        said = f"line {error.lineno} column {error.colno}: {error.msg.lower()}"
        return None, (Problem(label, f"is not JSON: {said}"),)
    except msgspec.MsgspecError as error:  # it is stricter
        return None, (Problem(label, f"is not JSON: {str(error).lower()}"),)
    message = "stands there twice, and only the last one counts; join them"
    return value, tuple(Problem(label, f"`{name}` {message}") for name in twice)


class HookScript(msgspec.Struct, frozen=True):
    """A file that a hook runs: its hash, and its text if it is short enough to keep."""

    path: str
    sha256: str
    text: str | None = None


def read_script(path: str | Path) -> HookScript | None:
    """A file's hash and text; `None` if there is none. One that cannot be read hashes as what is wrong with it."""
    found = _taken(str(path), _hashed)
    if not isinstance(found, tuple):
        return HookScript(str(path), f"unreadable: {found}") if found else None
    text = None
    if len(found[1]) <= _LARGEST_COPY and b"\0" not in found[1]:
        with suppress(UnicodeDecodeError):
            text = found[1].decode()
    return HookScript(str(path), found[0], text)


def _hashed(file: BufferedReader) -> tuple[str, bytes]:
    start = file.read(_LARGEST_COPY + 1)
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest(), start


def shown(value: Any, most: int = 60) -> str:
    """A value as the user wrote it, in backticks and not too long."""
    try:
        text = msgspec.json.encode(value).decode("utf-8", "replace")
    except (TypeError, ValueError, OverflowError, RecursionError):
        text = type(value).__name__
    return f"`{one_line(text, most)}`"


# People write headers by hand, and Claude Code reads them leniently: `description: Use this: when asked` and
# `argument-hint: [file] [line]` are no YAML, and mean what they say. So a header that is not YAML is read key by key,
# and a value that is not YAML is text. What cannot be read even so is a problem; readers take it as the strictest.

_HEADER = re.compile(r"\A---[ \t]*\r?\n(.*?)(?:^---[ \t]*(?:\r?\n|\Z))(.*)\Z", re.DOTALL | re.MULTILINE)
_MOST_CHARACTERS = 256 * 1024
_KEY = re.compile(r"^(?=[A-Za-z][\w-]*[ \t]*:(?:\s|$))", re.MULTILINE)
_KEYED = re.compile(r"(\s*(?:- +)*[\w-]+[ \t]*: +)(\S.*)")


class Markdown(msgspec.Struct, frozen=True):
    """A markdown file: its header's fields, its text, and what is wrong with it."""

    header: dict[str, Any]
    body: str
    problems: tuple[Problem, ...] = ()


def read_markdown(path: str | Path, label: str = "") -> Markdown:
    """Read a markdown file with or without a header; whatever is wrong is a problem, and the text is kept.

    Only a header needs the `yaml` extra; without it `MissingExtra` is raised.
    """
    text, problems = read_text(str(path), label or str(path))
    return Markdown({}, "", problems) if text is None else parse_markdown(text, label or str(path))


def parse_markdown(text: str, label: str) -> Markdown:
    """A markdown text with or without a header."""
    found = _HEADER.match(text)
    if found is None:
        unclosed = re.match(r"---[ \t]*\r?\n", text)
        problem = Problem(label, "its header has no end; write `---` on a line of its own after it")
        return Markdown({}, text, (problem,) if unclosed else ())
    header, problems = _parse_yaml(found[1], label)
    return Markdown(header, found[2], problems)


def _parse_yaml(text: str, label: str) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    if len(text) > _MOST_CHARACTERS:
        return {}, (Problem(label, f"its header is longer than {_MOST_CHARACTERS // 1024} KiB; nothing of it is read"),)
    with extra(f"reading the header of {label}", "yaml"):
        import yaml
    try:
        value = plain(yaml.load(text, Loader=_loader(yaml)))  # noqa: S506 - a safe loader that refuses aliases
    except yaml.YAMLError as error:
        return _leniently(text, label, error)
    except (ValueError, RecursionError) as error:
        return {}, (Problem(label, f"its header cannot be read: {str(error).lower() or 'it is nested too deeply'}"),)
    if value is not None and not isinstance(value, dict):
        return {}, (Problem(label, f"its header must be `key: value` lines, got {shown(value)}"),)
    return value or {}, ()


def _leniently(text: str, label: str, error: Any) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    """A header that is not YAML, by each key at the margin; nothing of it if it begins with something else."""
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 2} column {mark.column + 1}: {error.problem or error.context}" if mark else str(error)
    before, *parts = _KEY.split(text)
    if not parts or re.search(r"^\s*[^\s#]", before, re.MULTILINE):
        return {}, (Problem(label, f"its header is not YAML: {where}"),)
    header: dict[str, Any] = {}
    problems: list[Problem] = []
    number = 2 + before.count("\n")
    for part in parts:
        key = part.partition(":")[0].rstrip()
        for attempt in (part, "\n".join(map(_quoted, part.splitlines()))):  # YAML, or with what is none in quotes
            read = _read(attempt)
            if isinstance(read, dict) and list(read) == [key]:
                header[key] = read[key]
                break
        else:
            problems.append(Problem(label, f"line {number}: `{key}` of its header is not YAML and cannot be read"))
        number += part.count("\n")
    if not problems:
        why = f"its header is not YAML ({where}) and is read as it seems to be meant; quote the value"
        problems.append(Problem(label, why, "warning"))
    return header, tuple(problems)


def _read(text: str) -> Any:
    """The value of a text; an empty object if it is not YAML."""
    import yaml

    try:
        return plain(yaml.load(text, Loader=_loader(yaml)))  # noqa: S506 - the same safe loader
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}


def _quoted(line: str) -> str:
    """A line whose value is not YAML, or an object, with the value in quotes."""
    found = _KEYED.match(line)
    if found is None or not isinstance(_read(found[2]), dict):
        return line
    return found[1] + msgspec.json.encode(found[2].strip()).decode()


def _loader(yaml: Any) -> Any:
    """The safe loader, with dates left as text and without aliases, so that a small header stays small."""

    class PlainLoader(yaml.SafeLoader):  # type: ignore[misc]
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.events.AliasEvent):
                mark = self.peek_event().start_mark
                raise yaml.YAMLError(f"line {mark.line + 2}: `*` begins an alias, which is not understood; quote it")
            return super().compose_node(parent, index)

    PlainLoader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in rules if tag != "tag:yaml.org,2002:timestamp"]
        for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    return PlainLoader
