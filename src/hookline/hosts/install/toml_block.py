"""A marked block at the end of a TOML file: everything else stays as it is, to the letter. Pure."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from hookline.errors import HooklineError

_BEGIN = "# >>> hookline: `hookline uninstall {0}` takes this out"
_END = "# <<< hookline"
_BLOCK = re.compile(r"(?:(?<=\n)\n|^)# >>> hookline.*?(?:\n# <<< hookline\n?|\Z)", re.DOTALL | re.MULTILINE)


def without(text: str) -> str:
    """The text without our block, if it has one, and without the blank line that set it off."""
    return _BLOCK.sub("", text, count=1)


def block_of(text: str) -> str:
    """Our block, or nothing."""
    found = _BLOCK.search(text)
    return found[0] if found else ""


def with_block(text: str, host: str, body: str) -> str:
    """The text with our block at its end, in place of an older one."""
    kept = without(text)
    if kept and not kept.endswith("\n"):
        kept += "\n"
    gap = "\n" if kept else ""
    return f"{kept}{gap}{_BEGIN.format(host)}\n{body.rstrip()}\n{_END}\n"


def checked(text: str) -> dict[str, Any]:
    """The values of a TOML text; one that cannot be read is an error that names the line."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise HooklineError(str(error)) from None


def tables(name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows of an array of tables."""
    return "\n".join(
        f"[[{name}]]\n" + "".join(f"{key} = {literal(value)}\n" for key, value in row.items()) for row in rows
    )


def literal(value: Any) -> str:
    """A value as TOML writes it; texts are JSON's, which TOML's basic strings include."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)
