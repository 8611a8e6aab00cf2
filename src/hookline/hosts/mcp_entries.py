"""A host's entry for an MCP server, with the gateway in front of the server. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

_LOGIN = ("oauth", "auth", "authProviderType", "oauth_resource", "scopes")
_TOKENS = ("bearer_token_env_var", "bearerTokenEnvVar", "api_key_env", "env_http_headers", "headersHelper")
_HEADERS = ("headers", "http_headers")
_VARIABLE = "HOOKLINE_HEADER_"


class ServerFile(msgspec.Struct, frozen=True, kw_only=True):
    """Where a host keeps its MCP servers, and the form of an entry there.

    `user` is relative to the home (or to the host's own folder, where a variable moves that), `project` to a project.
    `nested` is a table of folders, each with servers of its own. `marks` is what the entry of a program says besides.
    """

    user: str
    project: str = ""
    key: str = "mcpServers"
    nested: str = ""
    kind: Literal["json", "toml", "rows"] = "json"
    url: str = "url"
    """The field with an address that speaks streamable HTTP."""
    env: str = "env"
    marks: Mapping[str, str] = MappingProxyType({})
    as_list: bool = False
    """Whether `command` is the list of all words."""
    beyond: str = ""
    """Servers of the host that have no entry."""


def wrap(
    form: ServerFile, name: str, entry: Any, *, program: Sequence[str], flags: Sequence[str]
) -> dict[str, Any] | str:
    """An entry that starts the gateway, which starts the server; why not, if that cannot be done."""
    if not isinstance(entry, dict):
        return "its entry is not an object"
    headers: dict[str, Any] = {}
    if words := _words(entry):
        kept = entry
    elif isinstance(address := entry.get(form.url), str) and entry.get("type") != "sse":
        if any(field in entry for field in _LOGIN):
            return "it wants a login by OAuth, which is between the host and the server"
        if found := next((field for field in _TOKENS if field in entry), ""):
            return f"its token comes by `{found}`; write the entry yourself, with `hookline mcp --header`"
        headers = next((entry[field] for field in _HEADERS if isinstance(entry.get(field), dict)), {})
        if not _are_texts(headers.values()):
            return "its headers are not texts"
        if not headers and urlsplit(address).hostname not in ("localhost", "127.0.0.1", "::1"):
            return "it may want a login by OAuth, which is between the host and the server"
        words, kept = [address], {key: entry[key] for key in entry if key not in (form.url, "type", *_HEADERS)}
    else:
        is_address = isinstance(entry.get("url"), str)
        return f"it is {'reached by server-sent events' if is_address else 'neither a program nor an address'}"
    named = {f"{_VARIABLE}{number}": header for number, header in enumerate(headers)}
    pins = f"{server_name(name)}-{hashlib.sha256(msgspec.json.encode(words)).hexdigest()[:8]}"
    sent = [word for variable, header in named.items() for word in ("--header", f"{header}={variable}")]
    argv = [*program, "mcp", "--name", server_name(name), "--pins", pins, *flags, *sent, "--", *words]
    made = {**kept, **form.marks, **({"command": argv} if form.as_list else {"command": argv[0], "args": argv[1:]})}
    if named:
        made[form.env] = {**(kept.get(form.env) or {}), **{variable: headers[name] for variable, name in named.items()}}
    return made


def is_wrapped(entry: Any) -> bool:
    """Whether an entry starts the gateway."""
    words = _words(entry) if isinstance(entry, dict) else []
    before = words[: words.index("--")] if "--" in words else []
    return "mcp" in before and "--pins" in before and any("hookline" in word for word in before)


def server_name(name: str) -> str:
    """A server's name as it stands in `mcp__NAME__TOOL`."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name).strip("_-")[:48] or "server"


def _words(entry: Mapping[str, Any]) -> list[str]:
    """The command line of a program's entry; none if it is not one."""
    command, arguments = entry.get("command"), entry.get("args") or []
    words = command if isinstance(command, list) else [command, *(arguments if isinstance(arguments, list) else [None])]
    return words if all(isinstance(word, str) and word for word in words[:1]) and _are_texts(words) else []


def _are_texts(words: Iterable[Any]) -> bool:
    return all(isinstance(word, str) for word in words)
