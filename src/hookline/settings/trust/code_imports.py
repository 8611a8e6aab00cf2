"""What code files run besides themselves: what they import from beside them, and whether more can be told.

A new file beside a Python script may shadow any module that it, or what it imports, asks for; so the names that could
do that belong to what is trusted, as a `Listing` of the folder. Only modules and names that are known to stay with
their own text are taken as such (`plain_*.txt`); what is not known to run no files may run any, and is a note.
"""

import ast
import glob
import hashlib
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import msgspec

from hookline.core.hooks.hook import Cedar, Rego
from hookline.settings.files import LARGEST, HookScript, expanded, is_file, read_bytes

_TEXT = re.sub(r"\n +", " ", Path(__file__).with_name("words.txt").read_text("utf-8"))
_LINES = (line.partition(": ") for line in _TEXT.splitlines())
WORDS: dict[str, tuple[str, ...]] = {name: tuple(words.split()) for name, _, words in _LINES}  # of `words.txt`
_MOST_FILES = 400
_STARTUP = frozenset({"sitecustomize", "usercustomize"})
_ATTRIBUTES = re.compile("|".join(WORDS["attributes"]))
_REACHING = re.compile(r"getattr|setattr|attrgetter|methodcaller|__getattr__")
_JS = re.compile(
    r"child_process|worker_threads|\bcluster\b|\bvm\b|\beval\s*\(|\bFunction\s*\(|createRequire|dlopen|"
    r"process\.(?:binding|mainModule|getBuiltinModule)|WebAssembly|globalThis\s*\[|\bDeno\.|\bBun\.|"
    r"\b(?:require|import)\s*\((?!\s*[\"'`][^\"'`$]*[\"'`]\s*\))|\brequire\b(?!\s*\()"
)
_OTHERS = {
    "awk": re.compile(r"system|getline|\||@include|@load|@"),
    "jq": re.compile(r"\b(?:include|import)\b|\$__prog"),
    "sed": re.compile(r"[erRwW]"),
}
_JS_IMPORT = re.compile(
    r"""(?:\bfrom|\bimport|\brequire\s{0,8}\(|\bimport\s{0,8}\()\s{0,80}["'`]([^"'`\n]{1,400})["'`]"""
)


class Listing(msgspec.Struct, frozen=True):
    """The names in a folder that an import may find; only `names`, unless there are none: then all; or all `code`."""

    folder: str
    names: tuple[str, ...] = ()
    code: bool = False

    def read(self) -> HookScript:
        """One line for each file or folder that counts, as if they were a file; its name ends with a slash."""
        try:
            with os.scandir(self.folder) as entries:
                text = "".join(f"{name}\n" for name in sorted(one.name for one in entries if self._counts(one)))
        except OSError:
            text = ""
        sha256 = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
        return HookScript(self.folder + os.sep, sha256, text)

    def _counts(self, entry: os.DirEntry[str]) -> bool:
        if entry.name == "__pycache__" or entry.name.startswith("."):
            return False
        if self.code and is_code(Path(entry.path)):
            return True
        stem = entry.name.partition(".")[0]
        importable = entry.name.endswith(WORDS["importable"]) or ("." not in entry.name and not is_file(entry.path))
        return importable and (not self.names or stem in self.names or stem in sys.stdlib_module_names)


class ImportedFiles(msgspec.Struct, frozen=True):
    """What a script brings along: files, listings of folders, and what cannot be told."""

    files: tuple[Path, ...] = ()
    listings: tuple[Listing, ...] = ()
    notes: tuple[str, ...] = ()


def imported(path: Path, inside: Sequence[Path]) -> ImportedFiles:
    """What a file imports, whatever language it is in; itself included."""
    if is_python(path):
        return python_imports(path, path.parent, inside)
    if path.suffix in WORDS["javascript"]:
        return _js_imports(path, inside)
    return ImportedFiles((path,), (), () if is_shell(path) else tuple(_script_reach(path)))


def _source(path: Path) -> bytes:
    found = read_bytes(str(path), LARGEST)
    return found if isinstance(found, bytes) else b""


def _first_line(path: Path) -> bytes:
    return b"" if path.suffix else _source(path)[:100].partition(b"\n")[0]


def is_python(path: Path) -> bool:
    """By its suffix or its first line."""
    return path.suffix in (".py", ".pyw") or re.match(rb"#!.*python", _first_line(path)) is not None


def is_shell(path: Path) -> bool:
    """By its suffix or its first line."""
    shells = (".sh", ".bash", ".zsh", ".ksh")
    return path.suffix in shells or re.match(rb"#!.*\b(?:ba|da|z|k|a)?sh\b", _first_line(path)) is not None


def code_beside(path: Path, inside: Sequence[Path]) -> ImportedFiles:
    """All code in the folder of a script, and below it: what the script may run if that cannot be told."""
    found: dict[Path, None] = {}
    folders: list[Listing] = []
    roots = [path.parent] if is_inside(path.parent, inside) and path.parent not in inside else []
    for root, names, files in (step for start in roots for step in os.walk(start)):
        names[:] = sorted(name for name in names if name not in WORDS["skipped"])
        folders.append(Listing(root, (), code=True))
        found |= dict.fromkeys(Path(root, name) for name in sorted(files) if is_code(Path(root, name)))
        if len(found) > _MOST_FILES:
            break
    return ImportedFiles(tuple(found)[:_MOST_FILES], tuple(folders))


def is_code(path: Path) -> bool:
    """Whether a file may be run: by its suffix, or because it is executable or has no suffix at all."""
    return is_file(path) and (path.suffix in ("", *WORDS["code"]) or os.access(path, os.X_OK))


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
        if isinstance(source, bytes) and one.suffix not in WORDS["compiled"]:
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


def _imports(source: bytes, path: Path, start: Path) -> Iterator[tuple[Path, str]]:
    for node in _nodes(source):
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
        candidates = [at / "__init__.py", at.with_suffix(".py"), at.with_suffix(".pyc")]
        with suppress(OSError, ValueError):
            candidates += [one for end in (".so", ".pyd") for one in at.parent.glob(f"{glob.escape(at.name)}*{end}")]
        yield from (path for path in candidates if is_file(path))


def _js_imports(path: Path, inside: Sequence[Path]) -> ImportedFiles:
    seen: dict[Path, None] = {path: None}
    waiting, packages = [path], dict[str, None]()
    while waiting and len(seen) < _MOST_FILES:
        one = waiting.pop()
        for name in _JS_IMPORT.findall(_source(one).decode("utf-8", "replace")):
            if name.startswith((".", "/")):
                whole = Path(os.path.normpath(one.parent / name))
                files = [whole, *(whole.with_name(whole.name + suffix) for suffix in WORDS["javascript"])]
                files += [whole / f"index{suffix}" for suffix in WORDS["javascript"]]
                waiting += _new(filter(is_file, files), seen, inside)
            elif not name.startswith("node:") and name not in _plain("node"):
                packages[name] = None
    notes = [f"it imports `{name}`, which is looked for in the project's node_modules" for name in packages]
    reach = dict.fromkeys(note for one in seen for note in _script_reach(one))
    return ImportedFiles(tuple(seen), (), (*reach, *notes[:3]))


def is_inside(path: Path, roots: Iterable[Path]) -> bool:
    """Whether a path lies in one of the folders; links are not followed."""
    return any(path.is_relative_to(root) for root in roots)


def policy_files(action: Cedar | Rego, folder: str) -> list[Path]:
    """The files that a hook of policies reads: those that its pattern matches now, and its entities."""
    policies = str(Path(folder, expanded(action.policies)))
    found = [Path(path) for path in glob.glob(policies, recursive=True)]  # noqa: PTH207 - patterns may be absolute
    if isinstance(action, Cedar) and action.entities:
        found.append(Path(folder, expanded(action.entities)))
    return [path for path in found if is_file(path)]


@cache
def _plain(language: str) -> frozenset[str]:
    """The modules of Python or Node that run no file, but for the names above."""
    return frozenset(Path(__file__).with_name(f"plain_{language}.txt").read_text("utf-8").split())


def _nodes(source: bytes) -> list[ast.AST]:
    """Everything in a Python source; nothing if it cannot be read."""
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        return list(ast.walk(ast.parse(source)))
    return []


def python_reach(source: bytes, known: Collection[str]) -> Iterator[str]:
    """What in a Python source may run files that are not known; `known` are modules that are followed by themselves."""
    nodes = _nodes(source)
    if not nodes:
        yield "it cannot be read as Python"
    looked_into = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        yield from map(_says, _reach_of(node, known))
        if isinstance(node, ast.Name) and node.id == "sys" and id(node) not in looked_into:
            yield _says("sys")


def _reach_of(node: ast.AST, known: Collection[str]) -> Iterator[str]:
    """The names of a node that may run other files, or get at some that do."""
    if isinstance(node, ast.Import):
        yield from (one.name for one in node.names if not _is_plain(one.name, known))
        yield from (one.name for one in node.names if one.name == "sys" and one.asname not in (None, "sys"))
    elif isinstance(node, ast.ImportFrom) and not node.level:
        module = node.module or ""
        if not _is_plain(module, known):
            yield module
        elif module.partition(".")[0] not in known:
            yield from (f"{module}.{one.name}" for one in node.names if _is_dangerous(module, one.name))
    elif isinstance(node, ast.Name) and node.id in WORDS["names"]:
        yield node.id
    elif isinstance(node, ast.Attribute):
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        if _is_dangerous(owner, node.attr):
            yield f"{owner}.{node.attr}" if owner else node.attr
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and _REACHING.fullmatch(node.func.id):
        at = 0 if node.func.id in ("attrgetter", "methodcaller") else 1
        names = [one.value if isinstance(one, ast.Constant) else None for one in node.args[at : at + 1]]
        if any(not isinstance(name, str) or _is_dangerous("sys", name) for name in names):
            yield f"{node.func.id}(…)"  # the name that it gets at must be plain to see


def _is_plain(name: str, known: Collection[str]) -> bool:
    """Whether importing a module runs no file beyond those that are followed."""
    top = name.partition(".")[0]
    if top in known:
        return True
    if top == "hookline":
        return name == top or any(f"{name}.".startswith(f"{one}.") for one in WORDS["of-hookline"])
    return top in _plain("python") and name not in {"logging.config", "http.server", "concurrent.interpreters"}


def _is_dangerous(owner: str, name: str) -> bool:
    if owner == "sys" and name in WORDS["of-sys"]:
        return True
    if (owner, name) in {("re", "compile"), ("platform", "system")}:
        return False
    return name == "*" or _ATTRIBUTES.fullmatch(name) is not None


def _says(name: str) -> str:
    return f"it uses `{name}`, which may run other files"


def _script_reach(path: Path) -> Iterator[str]:
    """The same for JavaScript and everything else that is not Python or a shell script."""
    text = _source(path).decode("utf-8", "replace")
    if path.suffix in WORDS["javascript"]:
        if found := _JS.search(text):
            yield _says(" ".join(found[0].split())[:30])
    elif (pattern := _OTHERS.get(path.suffix.removeprefix("."))) is None or pattern.search(text):
        yield "it may run other files, and which cannot be told"


def code_reach(program: str, text: str) -> bool:
    """Whether code for `awk` or `jq` on a command line may run files."""
    pattern = _OTHERS.get({"gawk": "awk", "mawk": "awk"}.get(program, program))
    return pattern is not None and program != "sed" and pattern.search(text) is not None
