"""The same hooks inside the agent frameworks: one adapter per framework, imported where it is used.

from hookline.frameworks import langchain

agent = create_agent(model, tools, middleware=[langchain.HooklineMiddleware(hooks)])
"""

from __future__ import annotations

import re
from types import MappingProxyType

import msgspec

from hookline.errors import MissingExtra, UnknownVersion


class TestedVersions(msgspec.Struct, frozen=True):
    """The versions of one package that its adapter was tested with: from `first`, below `below`."""

    package: str
    extra: str
    first: str
    below: str


KNOWN = MappingProxyType({
    row.extra: row
    for row in (
        TestedVersions("langchain", "langchain", "1.4", "2"),
        TestedVersions("pydantic-ai-slim", "pydantic-ai", "2.66", "3"),
        TestedVersions("strands-agents", "strands", "1.62", "2"),
        TestedVersions("agent-framework-core", "agent-framework", "1.23", "2"),
        TestedVersions("google-adk", "google-adk", "2.13", "3"),
        TestedVersions("openai-agents", "openai-agents", "0.24", "0.25"),
        TestedVersions("crewai", "crewai", "1.15", "2"),
        TestedVersions("agent-hooks-sdk", "agent-hooks", "0.1.0b3", "0.2"),
    )
})  # fmt: skip
"""Extra → the versions its adapter knows."""


def require(extra: str) -> str:
    """The installed version; a missing package, or a version the adapter does not know, is refused."""
    from importlib.metadata import PackageNotFoundError, version  # takes a while

    known = KNOWN[extra]
    try:
        found = version(known.package)
    except PackageNotFoundError:
        raise MissingExtra(f"the `{extra}` adapter", extra) from None
    if not _numbers(known.first) <= _numbers(found) < _numbers(known.below):
        raise UnknownVersion(known.package, found, f"{known.first} and later, below {known.below}", extra)
    return found


def _numbers(text: str) -> tuple[int, ...]:
    """The leading numbers of a version: `1.4.7rc1` → (1, 4, 7)."""
    match = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in match.group().split(".")) if match else ()
