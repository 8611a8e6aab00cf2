"""What code files import from beside themselves: Python modules and packages, JavaScript's relative imports.

A new file beside a Python script may shadow any module that it, or what it imports, asks for; so the names that could
do that belong to what is trusted, as a `Listing` of the folder.
"""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from hookline.core.hooks.actions import Cedar, Rego
from hookline.settings.files import LARGEST, HookScript, is_file, read_bytes
from hookline.settings.trust.dynamic_code import JAVASCRIPT, python_reach, script_reach
from hookline.settings.trust.script_programs import CODE

_MOST_FILES = 400
_COMPILED = (".so", ".pyd", ".pyc")
_SUFFIXES = (".py", ".pyc", ".so", ".pyd", ".zip", ".pth")
_SKIPPED = frozenset({"__pycache__", ".git", "node_modules", ".venv", "venv"})
_STARTUP = frozenset({"sitecustomize", "usercustomize"})
_JS_IMPORT = re.compile(
    r"""(?:\bfrom|\bimport|\brequire\s{0,8}\(|\bimport\s{0,8}\()\s{0,80}["'`]([^"'`\n]{1,400})["'`]"""
)


class Listing(msgspec.Struct, frozen=True):
    """The names in a folder that an import may find; only `names`, unless there are none: then all; or all `code`."""

    folder: str
    names: tuple[str, ...] = ()
    code: bool = False

    def text(self) -> str:
        """One line for each file or folder that counts."""
        try:
            with os.scandir(self.folder) as entries:
                found = sorted(entry.name for entry in entries if self._counts(entry))
        except OSError:
            return ""
        return "".join(f"{name}\n" for name in found)

    def _counts(self, entry: os.DirEntry[str]) -> bool:
        if entry.name == "__pycache__" or entry.name.startswith("."):
            return False
        if self.code and is_code(Path(entry.path)):
            return True
        stem = entry.name.partition(".")[0]
        importable = entry.name.endswith(_SUFFIXES) or ("." not in entry.name and _is_folder(entry))
        return importable and (not self.names or stem in self.names or stem in sys.stdlib_module_names)


def read_listing(listing: Listing) -> HookScript:
    """The names that an import may find in a folder, as if they were a file; its name ends with a slash."""
    import hashlib

    text = listing.text()
    return HookScript(
        listing.folder + os.sep, hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest(), text
    )


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return True


class ImportedFiles(msgspec.Struct, frozen=True):
    """What a script brings along: files, listings of folders, and what cannot be told."""

    files: tuple[Path, ...] = ()
    listings: tuple[Listing, ...] = ()
    notes: tuple[str, ...] = ()


def imported(path: Path, inside: Sequence[Path]) -> ImportedFiles:
    """What a file imports, whatever language it is in; itself included."""
    if is_python(path):
        return python_imports(path, path.parent, inside)
    if path.suffix in JAVASCRIPT:
        return _js_imports(path, inside)
    return ImportedFiles((path,), (), () if is_shell(path) else tuple(script_reach(path, _source(path))))


def _source(path: Path) -> bytes:
    found = read_bytes(str(path), LARGEST)
    return found if isinstance(found, bytes) else b""


def is_python(path: Path) -> bool:
    """By its suffix or its first line."""
    if path.suffix in (".py", ".pyw"):
        return True
    head = read_bytes(str(path), LARGEST) if not path.suffix else None
    return isinstance(head, bytes) and head.startswith(b"#!") and b"python" in head[:100].partition(b"\n")[0]


def is_shell(path: Path) -> bool:
    """By its suffix or its first line."""
    if path.suffix in (".sh", ".bash", ".zsh", ".ksh"):
        return True
    first = _source(path)[:100].partition(b"\n")[0] if not path.suffix else b""
    return re.match(rb"#!.*\b(?:ba|da|z|k|a)?sh\b", first) is not None


def code_beside(path: Path, inside: Sequence[Path]) -> ImportedFiles:
    """All code in the folder of a script, and below it: what the script may run if that cannot be told."""
    found: dict[Path, None] = {}
    folders: list[Listing] = []
    roots = [path.parent] if is_inside(path.parent, inside) and path.parent not in inside else []
    for root, names, files in (step for start in roots for step in os.walk(start)):
        names[:] = sorted(name for name in names if name not in _SKIPPED)
        folders.append(Listing(root, (), code=True))
        found |= dict.fromkeys(Path(root, name) for name in sorted(files) if is_code(Path(root, name)))
        if len(found) > _MOST_FILES:
            break
    return ImportedFiles(tuple(found)[:_MOST_FILES], tuple(folders))


def is_code(path: Path) -> bool:
    """Whether a file may be run: by its suffix, or because it is executable or has no suffix at all."""
    try:
        return is_file(path) and (path.suffix in CODE or not path.suffix or os.access(path, os.X_OK))
    except ValueError:
        return False


# -- Python ----------------------------------------------------------------------------------------------------------


def python_imports(path: Path | None, start: Path, inside: Sequence[Path], code: str | None = None) -> ImportedFiles:
    """A Python file, or `code`, with what it imports from `start`, the folder that Python looks in first."""
    seen: dict[Path, None] = {} if path is None else {path: None}
    waiting: list[Path] = list(seen)
    names: set[str] = set(_STARTUP)
    strangers: set[str] = set()
    sources: list[bytes] = []
    notes: dict[str, None] = {}
    if code is not None:
        sources.append(code.encode("utf-8", "replace"))
        waiting += _new(_followed(sources[0], start, start, names, strangers), seen, inside)
    while waiting and len(seen) < _MOST_FILES:
        one = waiting.pop()
        source = read_bytes(str(one), LARGEST)
        if isinstance(source, bytes) and one.suffix not in _COMPILED:
            sources.append(source)
            waiting += _new(_followed(source, one, start, names, strangers), seen, inside)
        else:
            notes[f"it imports `{one.name}`, which cannot be read"] = None
    if waiting:
        notes["it imports more files than are followed"] = None
    followed = {top for top in names if any(is_inside(at, inside) and at in seen for at in _module_files(start, top))}
    followed |= {top for top in names - strangers if (start / top).is_dir() and is_inside(start / top, inside)}
    notes |= dict.fromkeys(note for source in sources for note in python_reach(source, followed))
    listing = Listing(str(start), () if strangers or notes else tuple(sorted(names)))
    return ImportedFiles(tuple(seen), (listing,) if is_inside(start, inside) else (), tuple(notes))


def _new(found: Iterable[Path], seen: dict[Path, None], inside: Sequence[Path]) -> Iterator[Path]:
    for path in found:
        if path not in seen and is_inside(path, inside):
            seen[path] = None
            yield path


def _followed(source: bytes, path: Path, start: Path, names: set[str], strangers: set[str]) -> Iterator[Path]:
    """The files that a source imports; `names` has all it asks for, `strangers` what is not here nor Python's own."""
    for base, name in _imports(source, path, start):
        top = name.partition(".")[0]
        files = list(_module_files(base, name))
        if base == start:
            names.add(top)
            if not files and top not in sys.stdlib_module_names:
                strangers.add(top)
        yield from files
        shadow = [start / f"{other}.py" for other in (top,) if base == start]
        yield from (one for one in shadow if is_file(one))


def _imports(source: bytes, path: Path, start: Path) -> Iterator[tuple[Path, str]]:
    import ast

    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((start, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = path.parents[node.level - 1] if 0 < node.level <= len(path.parents) else start
            yield from ((base, name) for name in filter(None, [node.module]))
            yield from ((base, f"{node.module}.{one.name}" if node.module else one.name) for one in node.names)


def _module_files(base: Path, name: str) -> Iterator[Path]:
    """The files of a module, and of the packages around it: a package, an extension, source or bare byte code."""
    steps = name.split(".")
    for count in range(1, len(steps) + 1):
        at = base.joinpath(*steps[:count])
        candidates = [at / "__init__.py", at.with_suffix(".py"), at.with_suffix(".pyc"), *_extensions(at)]
        yield from (path for path in candidates if is_file(path))


def _extensions(at: Path) -> list[Path]:
    try:
        return [*at.parent.glob(f"{glob_escape(at.name)}*.so"), *at.parent.glob(f"{glob_escape(at.name)}*.pyd")]
    except (OSError, ValueError):
        return []


def glob_escape(name: str) -> str:
    """A name that a glob takes as it is."""
    return re.sub(r"([*?\[])", r"[\1]", name)


# -- JavaScript ------------------------------------------------------------------------------------------------------


def _js_imports(path: Path, inside: Sequence[Path]) -> ImportedFiles:
    seen: dict[Path, None] = {path: None}
    waiting, packages = [path], dict[str, None]()
    while waiting and len(seen) < _MOST_FILES:
        one = waiting.pop()
        source = read_bytes(str(one), LARGEST)
        text = source.decode("utf-8", "replace") if isinstance(source, bytes) else ""
        for name in _JS_IMPORT.findall(text):
            if name.startswith((".", "/")):
                waiting += _new(_js_files(one.parent / name), seen, inside)
            elif not name.startswith("node:") and name not in _NODE:
                packages[name] = None
    notes = [f"it imports `{name}`, which is looked for in the project's node_modules" for name in packages]
    reach = dict.fromkeys(note for one in seen for note in script_reach(one, _source(one)))
    return ImportedFiles(tuple(seen), (), (*reach, *notes[:3]))


def _js_files(at: Path) -> Iterator[Path]:
    whole = Path(os.path.normpath(at))
    candidates = [whole, *(whole.with_name(whole.name + suffix) for suffix in JAVASCRIPT)]
    candidates += [whole / f"index{suffix}" for suffix in JAVASCRIPT]
    yield from (path for path in candidates if is_file(path))


_NODE = frozenset(
    {
        "assert", "async_hooks", "buffer", "child_process", "cluster", "console", "constants", "crypto",
        "dgram", "dns", "domain", "events", "fs", "fs/promises", "http", "http2", "https", "inspector",
        "module", "net", "os", "path", "path/posix", "perf_hooks", "process", "punycode", "querystring",
        "readline", "repl", "stream", "stream/promises", "string_decoder", "sys", "timers", "timers/promises",
        "tls", "tty", "url", "util", "v8", "vm", "worker_threads", "zlib",
    }
)  # fmt: skip


def is_inside(path: Path, roots: Iterable[Path]) -> bool:
    """Whether a path lies in one of the folders; links are not followed."""
    return any(path.is_relative_to(root) for root in roots)


# -- policies --------------------------------------------------------------------------------------------------------


def policy_files(action: Cedar | Rego, folder: str) -> list[Path]:
    """The files that a hook of policies reads: those that its pattern matches now, and its entities."""
    found = [Path(path) for path in glob.glob(str(_at(folder, action.policies)), recursive=True)]  # noqa: PTH207 - patterns may be absolute
    entities = action.entities if isinstance(action, Cedar) else None
    return [path for path in (*found, *((_at(folder, entities),) if entities else ())) if path.is_file()]


def _at(folder: str, pattern: str) -> Path:
    return Path(folder, Path(pattern).expanduser())
