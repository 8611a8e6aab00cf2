"""The page of errors: the tree, and every exception in it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

from hookline import errors
from hookline.errors import HooklineError
from tools.reference.markdown import block, code, doc, table

INTRO = """# Errors

Everything Hookline raises on purpose is a `HooklineError`, from `hookline.errors`. A message says where, what, and
what to do. A hook that fails while an event is fired raises nothing: its failure is an outcome in the verdict.

"""


def page() -> str:
    """The tree, then one row each."""
    rows = [(code(cls.__name__), doc(cls).partition("\n\n")[0], _values(cls)) for cls, _ in _walk(HooklineError)]
    warning = errors.HooksIgnored
    return (
        INTRO
        + block("\n".join(f"{'    ' * depth}{cls.__name__}" for cls, depth in _walk(HooklineError)), "text")
        + "\n"
        + table(("error", "means", "has"), rows)
        + f"\n`{warning.__name__}` is a warning: {doc(warning).strip()[0].lower()}{doc(warning).strip()[1:]}\n"
    )


def _walk(cls: type[Exception], depth: int = 0) -> Iterator[tuple[type[Exception], int]]:
    yield cls, depth
    for below in cls.__subclasses__():
        if below.__module__ == errors.__name__:
            yield from _walk(below, depth + 1)


def _values(cls: type[Exception]) -> str:
    """The values an error carries besides its message."""
    names: list[str] = []
    for base in cls.__mro__:
        if base.__module__ == errors.__name__ and "__init__" in vars(base):
            names += re.findall(r"self\.(\w+)(?:: [^=\n]+)? = ", inspect.getsource(base.__dict__["__init__"]))
            break
    return ", ".join(map(code, names))
