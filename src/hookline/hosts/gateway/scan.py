"""Descriptions that read like orders to the model: a warning, nothing more. Pure.

Plain patterns find little: of the 31 tools of Damn Vulnerable MCP they flag 6 (`python -m tools.vulnerable_mcp`), of 42
tools of five real servers none. What a tool may do is for the hooks, the pins and confinement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_SIGNS = {
    "a tag for the model": r"<\s*/?\s*(important|system|secret|hidden|instructions?|admin)\b",
    "orders to ignore others": r"\b(ignore|disregard|forget|override)\b.{0,40}\b(previous|prior|above|instructions?)\b",
    "secrecy": r"\b(do not|don'?t|never|without)\b.{0,40}\b(tell|mention|reveal|inform|notify(?:ing)?|disclose)\b",
    "orders before its use": r"\b(before|prior to|in order to)\b.{0,60}\b(use|using|call|calling|invoking|this tool)\b"
    r".{0,80}\b(must|first|always|read|access)\b",
    "places of secrets": r"~?/?\.(ssh|aws|netrc|gnupg|kube)\b|\bid_rsa\b|\bmcp\.json\b|/etc/passwd|\bprivate keys?\b"
    r"|\bcredentials?\b|\bapi[_ -]?keys?\b|\bpasswords?\b|\binternal://",
    "rules for other tools": r"\b(when|if|whenever)\b.{0,80}\b(other tools?|another tool|tool is (called|available))",
}
_PATTERNS = {sign: re.compile(pattern, re.IGNORECASE | re.DOTALL) for sign, pattern in _SIGNS.items()}


def signs(definition: Any) -> list[str]:
    """By what a tool's definition, or a server's instructions, look suspicious."""
    text = "\n".join(_texts(definition))
    return [sign for sign, pattern in _PATTERNS.items() if pattern.search(text)]


def _texts(value: Any, key: str = "description") -> Iterator[str]:
    """The texts that are there to be read."""
    if isinstance(value, str) and key in ("description", "title"):
        yield value
    for name, item in value.items() if isinstance(value, dict) else ():
        yield from _texts(item, name)
    for item in value if isinstance(value, list) else ():
        yield from _texts(item, key)
