"""Python in a line that only computes and shows: `python -c "import json, sys; print(len(json.load(sys.stdin)))"`.

A positive list of its grammar, names and attributes, in `pure_code.txt`; code with anything besides may do anything.
"""

import ast
import builtins
import re
import sys
from functools import lru_cache
from pathlib import Path

from hookline.core.shell import SimpleCommand

_ROWS = (line.split(" => ") for line in Path(__file__).with_name("pure_code.txt").read_text("utf-8").splitlines())
_MODULES = {row[0]: frozenset(row[1].split()) for row in _ROWS if len(row) == 2}
_GRAMMAR = tuple(getattr(ast, name) for name in _MODULES.pop("GRAMMAR"))
_ATTRIBUTES = _MODULES.pop("ATTRIBUTES")
_FORBIDDEN = frozenset(dir(builtins)) - _MODULES.pop("BUILTINS") | _MODULES.pop("ELSEWHERE")
_DIFFERENT = re.compile(r"(?m)^[ \t]*#.*coding[:=]|[\r\f\v\0\ufeff]")  # after `# coding: utf-7` Python reads other code
_LOOKS_INSIDE = re.compile(r"\{[^{}:!.\[]*[.\[]")  # a field of `str.format` with an attribute: `{0.__class__}`


def code_of(part: SimpleCommand) -> str | None:
    """The Python that a command is given, or stands for in what it reads; none if some of it is expanded."""
    if part.words[:1] not in (("python",), ("python3",)) or part.unknown or part.globs or part.assignments:
        return None
    words = [word for word in part.words[1:] if word not in ("-u", "-B", "-I", "-E")]
    named = words[2:]  # `json.tool` writes to a second file
    is_tool = words[:2] == ["-m", "py_compile"] or (words[:2] == ["-m", "json.tool"] and len(named) < 2)
    if is_tool and part.stdin is None and not any(file[:1] == "-" for file in named):
        return "import json\n" + "".join(f"open({file!r})\n" for file in named)
    if part.stdin is None:
        return words[1] if len(words) == 2 and words[0] == "-c" else None
    inputs = [each.fd for each in part.redirects if each.op[:1] == "<"]
    return part.stdin if words in ([], ["-"]) and inputs in ([""], ["0"]) else None


@lru_cache(256)
def files_read(code: str | None) -> tuple[str, ...] | None:
    """The files that code reads which does nothing but compute and print; none if it may do more.

    Code that neither imports nor opens anything looks at nothing, and is asked about like any other.
    """
    try:
        nodes = list(ast.walk(ast.parse(code or "")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    imports = [(node, each) for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom)) for each in node.names]
    names = {each.asname or each.name: each.name for node, each in imports if isinstance(node, ast.Import)}
    calls = [node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    opened = [node for node in calls if ast.unparse(node.func) == "open"]
    judged = {id(node.func) for node in opened}
    judged |= {id(node.value) for node in nodes if isinstance(node, ast.Attribute) and _is_of_module(node, names)}
    paths = [path for path in map(_path_read, opened) if path]
    known = all(id(node) in judged or _is_known(node, names) for node in nodes) and len(paths) == len(opened)
    is_read = code is not None and not _DIFFERENT.search(code) and (imports or paths)
    return tuple(paths) if known and is_read else None


def _is_of_module(node: ast.Attribute, names: dict[str, str]) -> bool:
    return isinstance(node.value, ast.Name) and node.attr in _MODULES.get(names.get(node.value.id, ""), ())


def _is_known(node: ast.AST, names: dict[str, str]) -> bool:
    """Whether a part of the code, by itself, does nothing else and leads to nothing else."""
    match node:
        case ast.Name(id=name):
            return not (name in names or name in _FORBIDDEN or name.startswith("__"))
        case ast.Import(names=taken):
            return all(each.name in _MODULES for each in taken)
        case ast.ImportFrom(module=str(module), names=taken, level=0):
            return all(each.name in _MODULES.get(module, ()) for each in taken)
        case ast.Call(func=called):
            return isinstance(called, (ast.Name, ast.Attribute))
        case ast.Attribute(value=value, attr="format", ctx=ast.Load()):
            return isinstance(value, ast.Constant) and not _LOOKS_INSIDE.search(str(value.value))
        case ast.Attribute(
            value=ast.Attribute(attr="stdout" | "stderr") as stream, attr="write" | "flush", ctx=ast.Load()
        ):
            return _is_of_module(stream, names)
        case ast.Attribute(attr=name, ctx=ast.Load()):
            return _is_of_module(node, names) or name in _ATTRIBUTES
    return isinstance(node, _GRAMMAR)


def _path_read(call: ast.Call) -> str | None:
    """The file that `open("FILE")` reads."""
    given = [each.value if isinstance(each, ast.Constant) else None for each in call.args]
    plain = all(each.arg in ("encoding", "errors") and isinstance(each.value, ast.Constant) for each in call.keywords)
    path = given[0] if plain and given[1:] in ([], ["r"], ["rb"], ["rt"]) else None
    return path if isinstance(path, str) and path[:1] not in ("", "~") else None


def is_replaced(folder: str) -> bool:
    """Whether Python would import a file of this folder instead of a module of its own."""
    packages = [file.parent for file in Path(folder).glob("*/__init__.*")]
    files = (*Path(folder).glob("*.py*"), *Path(folder).glob("*.so"), *packages)
    names = {file.name.partition(".")[0] for file in files} - {"__init__", "__main__"}
    return any(name[0] == "_" or name in sys.stdlib_module_names | _MODULES.keys() for name in names if name)
