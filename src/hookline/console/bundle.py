"""The page's own modules as one script, for a file that is opened from disk, where modules cannot be imported. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

_IMPORT = re.compile(r'^import \{ ([^}]+) \} from "\./([\w.]+)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function\*?|const|class) (\w+))", re.MULTILINE)


def bundle(modules: Mapping[str, str], main: str) -> str:
    """`main` and what it imports, each in a scope of its own, what is imported first."""
    order: list[str] = []
    _visit(main, modules, order)
    return "const modules = {};\n" + "\n".join(_wrapped(name, modules[name]) for name in order)


def _visit(name: str, modules: Mapping[str, str], order: list[str]) -> None:
    for _, other in _IMPORT.findall(modules[name]):
        if other not in order:
            _visit(other, modules, order)
    if name not in order:
        order.append(name)


def _wrapped(name: str, source: str) -> str:
    body = _IMPORT.sub(r'const { \1 } = modules["\2"];', source)
    names = [match[2] for match in _EXPORT.finditer(body)]
    body = _EXPORT.sub(r"\1", body)
    return f'modules["{name}"] = (() => {{\n{body}\nreturn {{ {", ".join(names)} }};\n}})();'
