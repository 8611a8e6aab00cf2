"""Small pieces of Markdown, and what a Python object looks like in them."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Sequence
from enum import Enum
from html import escape
from typing import Any

import msgspec

WIDTH = 100


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; pipes are escaped, line breaks become spaces, a nameless column that is empty is left out."""
    body = [list(row) for row in rows]
    shown = [at for at, name in enumerate(head) if name or any(row[at] for row in body)]
    lines = [[line[at] for at in shown] for line in (head, ["---"] * len(head), *body)]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines) + "\n"


def _cell(text: str) -> str:
    """Code with a pipe is written as HTML: within backticks some readers of Markdown show the backslash, too."""
    spaced = " ".join(text.split())
    return re.sub(r"`([^`]*\|[^`]*)`", lambda match: _html(match[1]), spaced).replace("|", "&#124;")


def _html(text: str) -> str:
    """Code as HTML, with what means something in Markdown as numbers."""
    body = re.sub(r"[|*_\[\]]", lambda sign: f"&#{ord(sign[0])};", escape(text, quote=False))
    return f"<code>{body}</code>"


def code(text: object) -> str:
    """A piece of code within a sentence."""
    return f"`{text}`"


def codes(words: Iterable[object], otherwise: str = "") -> str:
    """Several of them, joined by commas."""
    return ", ".join(map(code, words)) or otherwise


def block(text: str, language: str = "py") -> str:
    """A fenced block; `py`, unlike `python`, is shown and not executed by the documentation's tests."""
    return f"```{language}\n{text.rstrip()}\n```\n"


def kind(annotation: Any) -> str:
    """A type as people say it: `str` or `None`."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return " or ".join(code(part.strip()) for part in _alternatives(text))


def _alternatives(text: str) -> list[str]:
    """The parts of a union, those within brackets left together."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "[(") - (char in "])")
        if char == "|" and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


def doc(thing: object) -> str:
    """A docstring as Markdown."""
    text = inspect.getdoc(thing) or ""
    return _examples(text) + "\n" if text else ""


def _examples(text: str) -> str:
    """Interactive examples and indented code become blocks."""
    text = re.sub(r"(?m)(^>>> .*\n?(?:^(?:>>>|\.\.\.) .*\n?|^[^\n>].*\n?)*)", lambda m: block(m[0], "pycon"), text)
    return re.sub(r"(?m)((?:^ {4}.*\n?|^\n(?= {4}))+)", lambda m: _indented(m[0]), text)


def _indented(text: str) -> str:
    return block(textwrap.dedent(text).strip("\n")) + "\n"


def first_line(thing: object) -> str:
    """The sentence that a docstring opens with."""
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def types_of(cls: type[Any]) -> dict[str, str]:
    """The fields of a class and its bases, with their types as they are written."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        node = _source_of(base)
        said = node.body if isinstance(node, ast.ClassDef) else []
        found |= {one.target.id: ast.unparse(one.annotation).strip("\"'") for one in said
                  if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)}  # fmt: skip
    return found


def parameters_of(call: Any) -> dict[str, str]:
    """The types of a function's parameters, and of what it returns, as its source has them: an alias keeps its name."""
    node = _source_of(inspect.unwrap(call))
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return {}
    types = {one.arg: one.annotation for one in ast.walk(node.args) if isinstance(one, ast.arg)} | {
        "return": node.returns
    }
    return {name: ast.unparse(said).strip("\"'") for name, said in types.items() if said is not None}


def _source_of(thing: Any) -> ast.stmt | None:
    try:
        [node] = ast.parse(textwrap.dedent(inspect.getsource(thing))).body
    except (OSError, TypeError, SyntaxError):  # made by a library, or of C
        return None
    return node


def default(cls: type[msgspec.Struct], name: str) -> str:
    """The default of a struct's field as code, or the empty string."""
    defaults = cls.__struct_defaults__
    at = cls.__struct_fields__.index(name) - (len(cls.__struct_fields__) - len(defaults))
    value = defaults[at] if at >= 0 else msgspec.NODEFAULT
    if value is msgspec.NODEFAULT:
        return ""
    factory = getattr(value, "factory", None)
    if factory is not None:
        return {"dict": "{}", "list": "[]"}.get(getattr(factory, "__name__", ""), "…")
    return shown(value)


def shown(value: Any) -> str:
    """A default value as it would be written, when that is short."""
    if value is msgspec.UNSET:
        return "UNSET"
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, (set, frozenset)):
        return f"{type(value).__name__}({sorted(value)})"
    named = getattr(value, "__name__", "")
    text = named if callable(value) and named else repr(value)
    return "…" if " at 0x" in text or text.startswith("<") or len(text) > 60 else text
