"""What judged, as one hash: the hooks that were chosen for an event, and the code and files behind them."""

import hashlib
import os
import re
import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from pathlib import Path, PurePath
from types import CellType, FunctionType, MethodType
from typing import Any

import msgspec

from hookline.core.hooks.hook import Command, Hook
from hookline.core.shell import parse_line

_MOST_PARTS, _DEEPEST, _MOST_KNOWN = 5_000, 20, 1_000
_PLACES = ("source", "seal", "plugin_root", "plugin_data")  # fields that say where a hook lies, not what it is
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
        _known[id(hook)] = known = (hook, _sha256(_plain(hook, [_MOST_PARTS])))
    return known[1]


def _named_files(hook: Hook) -> list[tuple[str, str]]:
    """The files that the words of a command name, as they are now; a trusted hook's are in its seal."""
    action = hook.action
    if not isinstance(action, Command) or action.seal is not None:
        return []
    words = action.args or [word for command in parse_line(action.command).commands for word in command.words]
    folder = action.plugin_root or os.environ.get("CLAUDE_PROJECT_DIR") or "."
    return sorted((word, digest) for word in {action.command, *words} if (digest := _file(folder, word)))


def _file(folder: str, word: str) -> str:
    path = os.path.join(folder, os.path.expanduser(os.path.expandvars(word)))  # noqa: PTH111, PTH118 - at every verdict
    try:
        status = os.stat(path)  # noqa: PTH116
        return _bytes(path, status.st_ino, status.st_mtime_ns, status.st_size) if Path(path).is_file() else ""
    except (OSError, ValueError):
        return ""


@lru_cache(1_000)
def _bytes(path: str, *_stamp: int) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _source(name: str) -> str:
    """The code of a module: for a hook file as it was loaded, with its neighbours'; for ours the version."""
    if name.partition(".")[0] == "hookline":
        return f"hookline {sys.modules['hookline'].__version__}"
    module = sys.modules.get(name)
    loaded: Mapping[str, bytes] | None = getattr(getattr(module, "__loader__", None), "loaded", None)
    if loaded:
        return _sha256(sorted((Path(path).name, hashlib.sha256(data).hexdigest()) for path, data in loaded.items()))
    file = getattr(module, "__file__", None)
    return _bytes(file) if file and Path(file).is_file() else ""  # once in a process: what runs is what was loaded


def _plain(value: Any, left: list[int], depth: int = 0) -> Any:
    """A value, or of what is too much of it, or has a life of its own, its kind."""
    left[0] -= 1
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if left[0] < 0 or depth > _DEEPEST:
        return type(value).__qualname__
    if isinstance(value, Mapping):
        return sorted(([str(key), _plain(item, left, depth + 1)] for key, item in value.items()), key=repr)
    if isinstance(value, (list, tuple, set, frozenset)):
        parts = [_plain(item, left, depth + 1) for item in value]
        return sorted(parts, key=repr) if isinstance(value, (set, frozenset)) else parts
    kind = value if isinstance(value, (type, FunctionType)) else type(value)
    return [kind.__qualname__, _source(kind.__module__), *(_plain(part, left, depth + 1) for part in _made_with(value))]


def _made_with(value: Any) -> tuple[Any, ...]:
    """What tells a function or an object from others of its kind; a time that an object keeps does not."""
    if isinstance(value, FunctionType):
        # a cell is empty in a function that names itself, before it is defined
        cells = [cell.cell_contents for cell in value.__closure__ or () if cell != CellType()]
        return value.__code__.co_firstlineno, cells, value.__defaults__, value.__kwdefaults__
    if isinstance(value, MethodType):
        return value.__func__, value.__self__
    if isinstance(value, partial):
        return value.func, value.args, value.keywords
    if isinstance(value, (bytes, PurePath, re.Pattern)):
        return (str(value),)
    if isinstance(value, type):
        return ()
    if isinstance(value, msgspec.Struct):
        seals = [one[1] for part in ("files", "listings") for one in getattr(getattr(value, "seal", None), part, ())]
        return {name: getattr(value, name) for name in value.__struct_fields__ if name not in _PLACES}, seals
    slots = {name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())} - {"__weakref__"}
    said = {name: getattr(value, name, None) for name in slots} | getattr(value, "__dict__", {})
    return ({name: part for name, part in said.items() if not isinstance(part, float)},)
