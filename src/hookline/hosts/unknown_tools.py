"""A tool that is not in a host's table is judged by what it is given: a patch, a shell line, a path. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hookline.core.patches import holds_patch, read_patch
from hookline.guards.tool_inputs import lines_of, paths_in, texts_of
from hookline.hosts.host import NAMESPACE, Host


def unknown_offers(host: Host, offered: Iterable[str], servers: Iterable[str] = ()) -> list[str]:
    """The tools that a host offers its model and that its table does not have; MCP servers' tools aside."""
    return sorted(name for name in offered if not _known_offer(host, name, list(servers)))


def _known_offer(host: Host, name: str, servers: list[str]) -> bool:
    space, _, short = name.rpartition(NAMESPACE)
    if name.startswith("mcp_") or space.startswith("mcp_"):
        return True
    if any(each in host.tools or each in host.other_tools for each in (name, short, space + short)):
        return True
    return host.mcp is not None and bool(host.mcp(name, {"mcp_servers": servers}))


Call = tuple[str, dict[str, Any]]
_RUNS = re.compile(r"bash|shell|terminal|command|exec|run|process|monitor|ssh|console|pty", re.IGNORECASE)
_PATH = re.compile(r"(?:/|~/|\.\./)\S{1,4000}")


def calls_inside(name: str, given: Mapping[str, Any]) -> Iterator[Call]:
    """The calls that a tool's input may amount to; a path may be read or written, so it is both."""
    patches = [text for text in texts_of(given, all_of_them=True) if holds_patch(text)]
    for patch in patches:
        yield from ((change.tool, change.tool_input) for change in read_patch(patch))
    for line in lines_of(given, runs=_RUNS.search(name) is not None):
        if line.text not in patches:
            yield "Bash", {"command": line.text}
    named = [path for _, path in paths_in(given)]
    for path in dict.fromkeys([*named, *filter(_PATH.fullmatch, texts_of(given))]):
        yield "Read", {"file_path": path}
        yield "Write", {"file_path": path, "content": ""}
