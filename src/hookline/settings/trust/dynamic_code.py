"""Whether it can be told which files a program runs: what is not known to run none may run any.

Only modules and names that are known to stay with their own text are taken as such; everything else is a note.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from pathlib import Path

_MODULES = frozenset(
    {
        "__future__", "abc", "argparse", "array", "ast", "asyncio", "atexit", "base64", "binascii", "bisect", "bz2",
        "calendar", "cmath", "codecs", "collections", "colorsys", "concurrent", "configparser", "contextlib",
        "contextvars", "copy", "csv", "dataclasses", "datetime", "decimal", "difflib", "email", "enum", "errno",
        "fcntl", "filecmp", "fileinput", "fnmatch", "fractions", "functools", "gc", "getopt", "getpass",
        "glob", "graphlib", "grp", "gzip", "hashlib", "heapq", "hmac", "hookline", "html", "http", "io", "ipaddress",
        "itertools", "json", "keyword", "linecache", "locale", "logging", "lzma", "math", "mimetypes", "numbers",
        "operator", "os", "pathlib", "platform", "pprint", "pwd", "queue", "quopri", "random", "re", "reprlib",
        "resource", "sched", "secrets", "select", "selectors", "shlex", "shutil", "signal", "socket", "ssl", "stat",
        "statistics", "string", "stringprep", "struct", "sys", "sysconfig", "tarfile", "tempfile", "textwrap",
        "threading", "time", "token", "tokenize", "tomllib", "traceback", "types", "typing", "unicodedata",
        "urllib", "uuid", "warnings", "weakref", "xml", "zipfile", "zlib", "zoneinfo",
    }
)  # fmt: skip
"""Modules of Python that run no file, but for the names below."""
_OF_HOOKLINE = frozenset({"hookline.guards", "hookline.events", "hookline.replies", "hookline.errors"})
"""Modules of Hookline that hooks are written with."""
_NAMES = frozenset(
    {"exec", "eval", "compile", "__import__", "__builtins__", "__loader__", "__spec__", "globals", "vars", "breakpoint"}
)
_ATTRIBUTES = re.compile(
    r"system|popen\w*|exec(?:[lv]p?e?)?|spawn\w*|posix_spawn\w*|startfile|fork|forkpty|create_subprocess_\w+|"
    r"subprocess_\w+|from_settings|AgentCheck|Cedar|Command|McpTool|Prompt|Rego|"
    r"attrgetter|methodcaller|get_type_hints|ForwardRef|_evaluate|FunctionType|CodeType|LambdaType|"
    r"run_path|run_module|exec_module|load_module|import_module|find_spec|load_extension|fileConfig|dictConfig|"
    r"__(?:import|builtins|loader|spec|globals|code|subclasses|dict|getattribute|reduce|reduce_ex)__"
)
_OF_SYS = frozenset({"path", "meta_path", "path_hooks", "path_importer_cache", "modules", "settrace", "setprofile"})
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


def python_reach(source: bytes, known: Collection[str]) -> Iterator[str]:
    """What in a Python source may run files that are not known; `known` are modules that are followed by themselves."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        yield "it cannot be read as Python"
        return
    nodes = list(ast.walk(tree))
    looked_into = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        yield from _reach_of(node, known)
        if isinstance(node, ast.Name) and node.id == "sys" and id(node) not in looked_into:
            yield _says("sys")


def _reach_of(node: ast.AST, known: Collection[str]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (_says(one.name) for one in node.names if not _is_plain(one.name, known) or _hides_sys(one))
    elif isinstance(node, ast.ImportFrom) and not node.level:
        module = node.module or ""
        if not _is_plain(module, known):
            yield _says(module)
        elif module.partition(".")[0] not in known:
            yield from (_says(f"{module}.{one.name}") for one in node.names if _is_dangerous(module, one.name))
    elif isinstance(node, ast.Name) and node.id in _NAMES:
        yield _says(node.id)
    elif isinstance(node, ast.Attribute):
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        if _is_dangerous(owner, node.attr):
            yield _says(f"{owner}.{node.attr}" if owner else node.attr)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and _reaches(node.func.id, node.args):
        yield _says(f"{node.func.id}(…)")


def _is_plain(name: str, known: Collection[str]) -> bool:
    """Whether importing a module runs no file beyond those that are followed."""
    top = name.partition(".")[0]
    if top in known:
        return True
    if top == "hookline":
        return name == top or any(name == one or name.startswith(f"{one}.") for one in _OF_HOOKLINE)
    return top in _MODULES and name not in {"logging.config", "http.server", "concurrent.interpreters"}


def _hides_sys(alias: ast.alias) -> bool:
    return alias.name == "sys" and alias.asname not in (None, "sys")


def _is_dangerous(owner: str, name: str) -> bool:
    if owner == "sys" and name in _OF_SYS:
        return True
    if (owner, name) in {("re", "compile"), ("platform", "system")}:
        return False
    return name == "*" or _ATTRIBUTES.fullmatch(name) is not None


def _reaches(name: str, args: list[ast.expr]) -> bool:
    """Whether a call gets at a name that is not plain to see, or at one that runs files."""
    at = 0 if name in ("attrgetter", "methodcaller") else 1
    return _REACHING.fullmatch(name) is not None and not all(map(_is_plain_text, args[at : at + 1]))


def _is_plain_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and not _is_dangerous("sys", node.value)


def _says(name: str) -> str:
    return f"it uses `{name}`, which may run other files"


def script_reach(path: Path, source: bytes) -> Iterator[str]:
    """The same for JavaScript and everything else that is not Python or a shell script."""
    text = source.decode("utf-8", "replace")
    if path.suffix in JAVASCRIPT:
        if found := _JS.search(text):
            yield _says(" ".join(found[0].split())[:30])
    elif (pattern := _OTHERS.get(path.suffix.removeprefix("."))) is None or pattern.search(text):
        yield "it may run other files, and which cannot be told"


def code_reach(program: str, text: str) -> bool:
    """Whether code for `awk`, `sed` or `jq` on a command line may run files."""
    pattern = _OTHERS.get({"gawk": "awk", "mawk": "awk"}.get(program, program))
    return pattern is not None and program != "sed" and pattern.search(text) is not None


JAVASCRIPT = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".jsx", ".json")
