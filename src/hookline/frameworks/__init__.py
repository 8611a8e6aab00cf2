"""The same hooks inside the agent frameworks: one adapter per framework, imported where it is used.

from hookline.frameworks import langchain

agent = create_agent(model, tools, middleware=[langchain.HooklineMiddleware(hooks)])
"""

import re
from typing import NamedTuple

from hookline.errors import MissingExtra, UnknownVersion


class TestedVersions(NamedTuple):
    """The versions of one package that its adapter was tested with: from `first`, below `below`."""

    package: str
    first: str
    below: str


KNOWN = {  # extra → the versions its adapter knows
    "langchain": TestedVersions("langchain", "1.4", "2"),
    "pydantic-ai": TestedVersions("pydantic-ai-slim", "2.66", "3"),
    "strands": TestedVersions("strands-agents", "1.62", "2"),
    "agent-framework": TestedVersions("agent-framework-core", "1.23", "2"),
    "google-adk": TestedVersions("google-adk", "2.13", "3"),
    "openai-agents": TestedVersions("openai-agents", "0.24", "0.25"),
    "crewai": TestedVersions("crewai", "1.15", "2"),
    "agent-hooks": TestedVersions("agent-hooks-sdk", "0.1.0b3", "0.2"),
}


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
