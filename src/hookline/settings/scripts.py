"""Which of a project's files a command names, and what they hold.

A word of the command counts when it names an existing file inside the project or plugin: relative to the project or to
a folder the command names (`cd hooks && ./run.sh`), or after `$CLAUDE_PROJECT_DIR` and `$CLAUDE_PLUGIN_ROOT`. So do the
module of `python -m`, what Python scripts import from beside themselves, and the `Makefile` or `package.json` of a
command that runs its recipes. What a script opens, sources or downloads when it runs cannot be seen here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from hookline.hooks.actions import Command
from hookline.hooks.hook import Hook
from hookline.settings.files import is_dir, is_file, read_bytes
from hookline.settings.sources import whole

_LARGEST = 64 * 1024 * 1024
_LARGEST_COPY = 64 * 1024
_LONGEST_NAME = 4096
_MOST_IMPORTS = 200
_BREAKS = re.compile(r"[\s'\"`;|&()<>={}\[\],]+")
_QUOTED = re.compile(r"'([^']+)'|\"([^\"]+)\"")
_MODULE = re.compile(r"-m[ '\"]*([A-Za-z_][\w.]*)")


class Script(msgspec.Struct, frozen=True):
    """A file that a hook runs: its hash, and its text if it is short enough to keep."""

    path: str
    sha256: str
    text: str | None = None


class Named(msgspec.Struct, frozen=True):
    """What one hook's command names: files that are there, and paths to look at again before the next event."""

    files: tuple[str, ...] = ()
    watch: tuple[str, ...] = ()


def named_by(hook: Hook, roots: Iterable[str], project_dir: str) -> Named:
    """The files inside `roots` that the hook's command names, what they import included."""
    if not isinstance(hook.action, Command):
        return Named()
    inside = [Path(root) for root in roots if root]
    tried = list(_tried(hook.action, inside, Path(project_dir)))
    files: dict[Path, None] = {}
    for path in tried:
        if is_file(path):
            files.update(dict.fromkeys(_with_imports(path, inside)))
    beside = {str(path.parent) for path in files if path.suffix == ".py"}  # a new module there may be imported next
    likely = {str(path) for path in tried if path.suffix or "/" in hook.action.command}
    return Named(tuple(map(str, sorted(files))), tuple(sorted({*map(str, files), *beside, *likely})))


def read_script(path: Path) -> Script | None:
    """A file's hash and text; `None` if there is none. One that cannot be read hashes as what is wrong with it."""
    import hashlib  # here and below: only somebody else's hooks need these, and the time to start counts

    data = read_bytes(str(path), _LARGEST)
    if data is None:
        return None
    if isinstance(data, str):
        return Script(str(path), f"unreadable: {data}")
    return Script(str(path), hashlib.sha256(data).hexdigest(), _copy(data))


def _copy(data: bytes) -> str | None:
    if len(data) > _LARGEST_COPY or b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


RECIPES = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "npm": ("package.json",),
    "pnpm": ("package.json",),
    "yarn": ("package.json",),
    "bun": ("package.json",),
}
"""Commands that run what another file says, and that file."""


def _tried(action: Command, inside: Sequence[Path], project: Path) -> Iterator[Path]:
    """Every path inside the roots that the command may mean, existing or not."""
    texts = [action.command, *(action.args or ()), *action.env.values()]
    marked = [_marked(text, project, action.plugin_root) for text in texts]
    words = [word for text in marked for word in _words(text)]
    words += marked if action.args is not None else []
    names = [_unmarked(word, project, action.plugin_root) for word in dict.fromkeys(words)]
    names += [file for name in names for file in RECIPES.get(name, ())]
    named = [whole(project / name) for name in names if len(name) < _LONGEST_NAME and "\0" not in name]
    folders = [path for path in named if _is_inside(path, inside) and is_dir(path)]
    tried = [whole(base / name) for base in dict.fromkeys([project, *folders]) for name in names]
    tried += [folder / "__main__.py" for folder in folders]
    tried += _modules(" ".join(texts), project)
    yield from (path for path in dict.fromkeys(tried) if _is_inside(path, inside) and path not in inside)


_PROJECT, _PLUGIN = "\x01", "\x02"


def _marked(text: str, project: Path, plugin_root: str | None) -> str:
    """The text with the folders as single signs, so that blanks in their names split no word."""
    for mark, name, value in (
        (_PLUGIN, "CLAUDE_PLUGIN_ROOT", plugin_root),
        (_PROJECT, "CLAUDE_PROJECT_DIR", str(project)),
    ):
        for spelling in (f"${{{name}}}", f"${name}", value):
            text = text.replace(spelling, mark) if spelling else text
    return text


def _unmarked(word: str, project: Path, plugin_root: str | None) -> str:
    return word.replace(_PROJECT, str(project)).replace(_PLUGIN, plugin_root or "")


def _words(text: str) -> Iterator[str]:
    """Everything in a command that may be a file's name; a name too many does no harm."""
    for quoted in _QUOTED.finditer(text):
        yield quoted[1] or quoted[2]
    yield from filter(None, _BREAKS.split(text))
    bare = re.sub(r"[\"';&|()<>]", lambda sign: "" if sign[0] in "\"'" else " ", text)
    yield from (word.replace("\\ ", " ") for word in re.split(r"(?<!\\)\s+", bare) if word)


def _modules(text: str, project: Path) -> Iterator[Path]:
    for found in _MODULE.finditer(text):
        base = project.joinpath(*found[1].split("."))
        yield from (base.with_suffix(".py"), base / "__init__.py", base / "__main__.py")


def _with_imports(path: Path, inside: Sequence[Path]) -> Iterator[Path]:
    """A file and, if it is Python, what it imports from beside itself, and so on."""
    seen, waiting = {path}, [path]
    while waiting and len(seen) < _MOST_IMPORTS:
        one = waiting.pop()
        yield one
        for other in _beside(one, path.parent) if _is_python(one) else ():
            if other not in seen and _is_inside(other, inside):
                seen.add(other)
                waiting.append(other)
    yield from waiting


def _is_python(path: Path) -> bool:
    if path.suffix == ".py":
        return True
    head = read_bytes(str(path), _LARGEST) if not path.suffix else None
    return isinstance(head, bytes) and head.startswith(b"#!") and b"python" in head[:100].partition(b"\n")[0]


def _beside(path: Path, start: Path) -> Iterator[Path]:
    import ast

    source = read_bytes(str(path), _LARGEST)
    try:
        tree = ast.parse(source) if isinstance(source, bytes) else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Import):
            names = [(start, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = path.parents[node.level - 1] if 0 < node.level <= len(path.parents) else start
            parts = [f"{node.module}.{alias.name}" if node.module else alias.name for alias in node.names]
            names = [(base, name) for name in (*filter(None, [node.module]), *parts)]
        else:
            continue
        for base, name in names:
            yield from _module_files(base, name)


def _module_files(base: Path, name: str) -> Iterator[Path]:
    steps = name.split(".")
    for count in range(1, len(steps) + 1):
        at = base.joinpath(*steps[:count])
        yield from (path for path in (at.with_suffix(".py"), at / "__init__.py") if is_file(path))


def _is_inside(path: Path, roots: Iterable[Path]) -> bool:
    return any(path.is_relative_to(root) for root in roots)
