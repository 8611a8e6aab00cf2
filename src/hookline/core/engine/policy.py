"""What judged, as one hash: the hooks that were chosen for an event, and the code and files behind them."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from pathlib import Path, PurePath
from stat import S_ISREG
from types import CellType, FunctionType, MethodType
from typing import Any

import msgspec

from hookline.core.hooks.actions import Command
from hookline.core.hooks.hook import Hook
from hookline.core.shell import parse_line

_MOST_PARTS = 5_000
_MOST_KNOWN = 1_000
_PLACES = ("source", "seal", "plugin_root", "plugin_data")
"""Fields that say where a hook lies, not what it is."""
_known: dict[int, tuple[Hook, str]] = {}


def policy_digest(hooks: Iterable[Hook]) -> str:
    """`sha256:…` over hooks in their order: another one when a hook is added, set differently or runs other code.

    Of a Python hook it has the source of its module (for a hook file, of all modules that came from its folder) and
    what the function was made with; of a command the files that trust was given to, else those that its words name.
    It is the same in every process, and on every machine, that has the same files and the same Hookline.
    """
    return f"sha256:{_sha256([[_declared(hook), _named_files(hook)] for hook in hooks])}"


def _sha256(value: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()


def _declared(hook: Hook) -> str:
    """What a hook is: looked at once, when it has not yet counted or kept anything."""
    known = _known.get(id(hook))
    if known is None or known[0] is not hook:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[id(hook)] = known = (hook, _sha256(_Walk().plain(hook)))
    return known[1]


# -- files -----------------------------------------------------------------------------------------------------------


def _named_files(hook: Hook) -> list[tuple[str, str]]:
    """The files that the words of a command name, as they are now; a trusted hook's are in its seal."""
    action = hook.action
    if not isinstance(action, Command) or action.seal is not None or "\0" in action.command:
        return []
    words = action.args or [word for command in parse_line(action.command).commands for word in command.words]
    folder = action.plugin_root or os.environ.get("CLAUDE_PROJECT_DIR") or "."
    return sorted((word, digest) for word in {action.command, *words} if (digest := _of_file(folder, word)))


def _of_file(folder: str, word: str) -> str:
    path = os.path.join(folder, os.path.expanduser(os.path.expandvars(word)))  # noqa: PTH111, PTH118 - at every verdict
    try:
        status = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return ""
    return _of_bytes(path, status.st_ino, status.st_mtime_ns, status.st_size) if S_ISREG(status.st_mode) else ""


@lru_cache(1_000)
def _of_bytes(path: str, *_stamp: int) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


@lru_cache(1_000)
def _source_of(file: str) -> str:
    """A module's file, once in a process: what runs is what it was when it was loaded."""
    return _of_bytes(file)


def _source(name: str) -> str:
    """The code of a module: its own file's, for a hook file also that of its neighbours, for ours the version."""
    module = sys.modules.get(name)
    if name.partition(".")[0] == "hookline":
        return f"hookline {sys.modules['hookline'].__version__}"
    loaded: Mapping[str, bytes] | None = getattr(getattr(module, "__loader__", None), "loaded", None)
    if loaded:
        return _sha256(sorted((Path(path).name, hashlib.sha256(data).hexdigest()) for path, data in loaded.items()))
    return _source_of(getattr(module, "__file__", None) or "")


# -- values ----------------------------------------------------------------------------------------------------------


class _Walk:
    """Values as JSON that two processes agree on; of what has a life of its own, only its kind."""

    def __init__(self) -> None:
        self._left = _MOST_PARTS
        self._inside: set[int] = set()

    def plain(self, value: Any) -> Any:
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        self._left -= 1
        if self._left < 0 or id(value) in self._inside:
            return type(value).__qualname__
        self._inside.add(id(value))
        try:
            return self._parts(value)
        finally:
            self._inside.discard(id(value))

    def _parts(self, value: Any) -> Any:
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, (MethodType, partial)):
            parts = ("__func__", "__self__") if isinstance(value, MethodType) else ("func", "args", "keywords")
            return [self.plain(getattr(value, part)) for part in parts]
        if isinstance(value, Mapping):
            return sorted(([str(key), self.plain(item)] for key, item in value.items()), key=repr)
        if isinstance(value, (list, tuple)):
            return [self.plain(item) for item in value]
        if isinstance(value, (set, frozenset)):
            return sorted((self.plain(item) for item in value), key=repr)
        if isinstance(value, re.Pattern):
            return [str(value.pattern), value.flags]
        if isinstance(value, (bytes, PurePath)):
            return str(value)
        kind = value if isinstance(value, type) else type(value)
        return [f"{kind.__module__}.{kind.__qualname__}", _source(kind.__module__), self._fields(value)]

    def _function(self, value: FunctionType) -> Any:
        cells = [cell.cell_contents for cell in value.__closure__ or () if _is_set(cell)]
        made = [self.plain(given) for given in (cells, value.__defaults__, value.__kwdefaults__)]
        return [value.__qualname__, value.__code__.co_firstlineno, _source(value.__module__), made]

    def _fields(self, value: Any) -> dict[str, Any]:
        """What an object was made with; a time that it keeps is not, and differs from run to run."""
        if isinstance(value, msgspec.Struct):
            said = {name: getattr(value, name) for name in value.__struct_fields__ if name not in _PLACES}
            sealed = getattr(value, "seal", None)
            seals = [digest for part in ("files", "listings") for _, digest in getattr(sealed, part, ())]
            return {name: self.plain(given) for name, given in said.items()} | ({"seal": seals} if sealed else {})
        slots = {name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())} - {"__weakref__"}
        said = {name: getattr(value, name, None) for name in slots} | getattr(value, "__dict__", {})
        if isinstance(value, type):
            said = {}
        return {name: self.plain(given) for name, given in said.items() if not isinstance(given, float)}


def _is_set(cell: CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:  # a function that names itself, before it is defined
        return False
