"""What a server's tools were when they were first seen: a tool that changed is not offered until it is accepted.

One file per server in the user's state folder holds each tool's whole definition, and the server's instructions under
the empty name. A file that is damaged is refused, never written again. What happens is in a chained log beside it.
"""

import asyncio
import hashlib
import logging
import os
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from hookline.core.files import locked, private_folder, write_atomically
from hookline.core.wire.json_text import read_as
from hookline.display import lines, one_line
from hookline.errors import ConfigError
from hookline.hosts.gateway import messages as wire
from hookline.hosts.gateway.messages import Id, Message

log: logging.Logger = logging.getLogger("hookline.mcp")
INSTRUCTIONS = ""  # the name under which the instructions are pinned; a tool cannot have it
_LIST_SECONDS = 60.0
_MOST_PAGES = 100
_MOST_LISTS = 5
Send = Callable[[Message], Awaitable[None]]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Definitions(msgspec.Struct):
    """What is pinned, and what the server offered instead since then."""

    pinned: dict[str, Any] = {}
    offered: dict[str, Any] = {}


class _Stored(msgspec.Struct):
    sha256: str
    definitions: msgspec.Raw


class PinFile:
    """The pins of one server on disk; `log` takes a record of each thing that happens to them."""

    def __init__(self, server: str, folder: Path, log: Callable[[dict[str, Any]], object]) -> None:
        if not _NAME.fullmatch(server):
            raise ConfigError("--name", f"expected letters, digits, `.`, `_` and `-`, got `{server}`")
        self.server = server
        self.folder = folder
        self._log = log
        self.path: Path = self.folder / f"{server}.json"

    def read(self) -> Definitions | None:
        """What the file says; `None` if there is none, a `ConfigError` if it is damaged."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise ConfigError(str(self.path), f"the pins cannot be read: {problem.strerror}") from None
        stored = read_as(data, _Stored)
        fits = stored is not None and stored.sha256 == hashlib.sha256(stored.definitions).hexdigest()
        definitions = read_as(bytes(stored.definitions), Definitions) if stored is not None and fits else None
        if definitions is None:
            raise ConfigError(str(self.path), "the pins are damaged; restore them, or remove the file to pin again")
        return definitions

    def write(self, definitions: Definitions, event: str, names: Sequence[str]) -> None:
        """Note in the log what is about to change, then change it; the caller holds the lock."""
        self.record(event, names, definitions)
        body = _canonical(definitions)
        digest = hashlib.sha256(body).hexdigest().encode()
        write_atomically(self.path, b'{"sha256": "' + digest + b'",\n"definitions": ' + body + b"}\n", durable=True)

    def record(self, event: str, names: Sequence[str], definitions: Definitions) -> None:
        """Add a line to the log: the tools, with the digests of what is pinned and of what is offered instead."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        tools = [name or "(instructions)" for name in names]
        told = {"pinned": definitions.pinned, "offered": definitions.offered}
        digests = {kind: [digest(values[name]) for name in names if name in values] for kind, values in told.items()}
        found = {kind: values for kind, values in digests.items() if values}
        self._log({"time": now, "event": event, "server": self.server, "tools": tools, **found})

    def accept(self, names: Sequence[str], shown: dict[str, Any]) -> list[str]:
        """Pin what the server offers now, all of it or these tools, if it is what was shown; which they were."""
        with self.lock():
            stored = self.read() or Definitions()
            chosen = [name for name in stored.offered if not names or name in names]
            if any(name not in shown or _canonical(stored.offered[name]) != _canonical(shown[name]) for name in chosen):
                raise ConfigError(self.server, "the server has changed its tools again; look at them once more")
            if missing := set(names) - set(chosen):
                raise ConfigError(self.server, f"nothing to accept for `{'`, `'.join(sorted(missing))}`")
            if chosen:
                stored.pinned |= {name: stored.offered.pop(name) for name in chosen}
                self.write(stored, "ToolsAccepted", chosen)
        return chosen

    def lock(self) -> Any:
        """Hold off other processes that would change the pins."""
        return locked(private_folder(self.folder) / f".{self.server}.lock")


class Pins:
    """The pins of one server as a gateway uses them: what may be offered, and why something may not.

    Tools that come up later in the session in which the server was first seen are pinned as they come up.
    """

    def __init__(self, file: PinFile) -> None:
        self._file = file
        stored = file.read()
        self._first = stored is None
        self._stored = stored or Definitions()
        self._seen: dict[str, Any] = {}
        self._twice: set[str] = set()

    def observe(self, definitions: Sequence[tuple[str, Any]]) -> None:
        """Compare what a server offers with the pins; what is new at the first use is pinned, and the rest is noted."""
        events: dict[str, list[str]] = {"ToolsPinned": [], "ToolsChanged": [], "ToolsRestored": []}
        pinned, offered = self._stored.pinned, self._stored.offered
        for name, value in definitions:
            self._seen[name] = value
            if name not in pinned and self._first:
                events["ToolsPinned"].append(name)
            elif name in pinned and _canonical(value) == _canonical(pinned[name]):
                events["ToolsRestored"] += [name] if name in offered else []
            elif name not in offered or _canonical(value) != _canonical(offered[name]):
                events["ToolsChanged"].append(name)
        names = [name for name, _ in definitions]
        self._twice |= {name for name in names if names.count(name) > 1}
        if any(events.values()):
            self._keep(events)

    def _keep(self, events: dict[str, list[str]]) -> None:
        with self._file.lock():
            stored = self._file.read() or Definitions()
            for name in events["ToolsPinned"]:
                stored.pinned.setdefault(name, self._seen[name])
            stored.offered |= {name: self._seen[name] for name in events["ToolsChanged"]}
            for name in events["ToolsRestored"]:
                stored.offered.pop(name, None)
            new = [*events["ToolsPinned"], *events["ToolsChanged"]]
            suspicious = {name: found for name in new if (found := signs(self._seen[name]))}
            for event, names in {**events, "ToolsSuspicious": list(suspicious)}.items():
                if names:
                    self._file.write(stored, event, names)
            self._stored = stored
        for name, found in suspicious.items():
            log.warning("`%s` reads like orders to the model: %s", one_line(name) or "(instructions)", ", ".join(found))

    def problem(self, name: str) -> str | None:
        """Why a tool is not offered, or the instructions are not shown; `None` if they are what was pinned."""
        if name not in self._seen:
            return "the server does not offer it"
        if name in self._twice:
            return "the server offers it twice"
        seen = _canonical(self._seen[name])
        if seen != _canonical(self._stored.pinned.get(name)):  # it may have been accepted since
            self._stored = self._file.read() or self._stored
        if name not in self._stored.pinned:
            return f"it is new since the server was pinned; read it with `hookline mcp diff {self._file.server}`"
        if seen != _canonical(self._stored.pinned[name]):
            return f"its definition changed since it was pinned; read it with `hookline mcp diff {self._file.server}`"
        return None

    def schema(self, name: str, field: str) -> Any:
        tool = self._seen.get(name)
        return tool.get(field) if isinstance(tool, dict) else None

    def digest(self, name: str) -> str:
        return digest(self._seen[name]) if name in self._seen else ""

    def refuse(self, name: str) -> None:
        private_folder(self._file.folder)
        self._file.record("ToolRefused", [name], self._stored)


class LoginNeeded(Exception):
    """The server wants a login before it lists its tools; made with its error, which says so to the client."""


class OwnRequests:
    """What the gateway itself asks the client or the server; no id of theirs can be one of its own."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._prefix = f"hookline-{os.urandom(6).hex()}-"
        self._waiting: dict[Id, asyncio.Future[Message]] = {}

    async def ask(self, send: Send, method: str, params: Mapping[str, Any], seconds: float) -> Message:
        """The answer; none in time is a `ConfigError`."""
        key = f"{self._prefix}{os.urandom(6).hex()}"
        self._waiting[key] = asyncio.get_running_loop().create_future()
        try:
            await send(wire.request(key, method, params))
            return await asyncio.wait_for(self._waiting[key], seconds)
        except TimeoutError:
            raise ConfigError(self._server, f"no answer to `{method}` within {seconds:g} s") from None
        finally:
            self._waiting.pop(key, None)

    def take(self, key: Id | None, message: Message) -> bool:
        waiting = self._waiting.get(key) if key is not None else None
        if waiting is not None and not waiting.done():
            waiting.set_result(message)
        return waiting is not None


class ToolList:
    """The server's tools, listed before they are used: a client may call from a list that it remembers."""

    def __init__(self, own: OwnRequests, to_server: Send, pins: Pins, server: str) -> None:
        self._own, self._to_server, self._pins, self._server = own, to_server, pins, server
        self._listing: asyncio.Task[None] | None = None

    def forget(self) -> None:
        """The server says that they have changed, or is gone."""
        if self._listing is not None and not self._listing.done():
            self._listing.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._listing = None

    async def ensure(self, params: Mapping[str, Any]) -> None:
        """Compare them with the pins, once for all who ask; `params` say in which era to list."""
        for _ in range(_MOST_LISTS):
            if self._listing is None or (self._listing.done() and self._listing.exception() is not None):
                self._listing = asyncio.create_task(self._list(wire.meta_of(params)))
            listing = self._listing
            await asyncio.shield(listing)
            if listing is self._listing:
                return
        raise ConfigError(self._server, "the server's tools change all the time")

    async def _list(self, meta: dict[str, Any]) -> None:
        about = {"_meta": {key: value for key, value in meta.items() if key != "progressToken"}} if meta else {}
        tools: list[tuple[str, Any]] = []
        cursor: dict[str, Any] = {}
        for _ in range(_MOST_PAGES):
            page = await self._own.ask(self._to_server, "tools/list", {**about, **cursor}, _LIST_SECONDS)
            found = page.get("result")
            failed = page.get("error")
            if isinstance(failed, dict) and isinstance(failed.get("data"), dict) and "login" in failed["data"]:
                raise LoginNeeded(failed)
            if not isinstance(found, dict):
                raise ConfigError(self._server, f"the server does not list its tools: {failed}")
            tools += definitions_in(found)
            if not found.get("nextCursor"):
                return self._pins.observe(tools)
            cursor = {"cursor": found["nextCursor"]}
        raise ConfigError(self._server, f"the list of tools has more than {_MOST_PAGES} pages")


def offer(pins: Pins, value: dict[str, Any]) -> dict[str, Any]:
    """A server's description of itself without what is not pinned, or does not show."""
    offered = dict(value)
    if isinstance(value.get("instructions"), str):
        pins.observe([(INSTRUCTIONS, value["instructions"])])
        problem = pins.problem(INSTRUCTIONS)
        note = "" if problem is None else f"(hookline withholds the server's instructions: {problem})"
        offered["instructions"] = note or wire.strip_text(value["instructions"])
    if "tools" in value:
        tools = definitions_in(value)
        pins.observe(tools)
        clean = [wire.strip_tool(tool) for name, tool in tools if pins.problem(name) is None]
        offered["tools"] = [tool for tool in clean if tool is not None]
    return offered


def definitions_in(listed: dict[str, Any]) -> list[tuple[str, Any]]:
    """The tools of a list, by name; what has none is left out."""
    tools = listed.get("tools")
    found = [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    return [(tool["name"], tool) for tool in found if isinstance(tool.get("name"), str) and tool["name"]]


def diff(definitions: Definitions, names: Sequence[str] = ()) -> Iterator[str]:
    """What the server offers instead of what was pinned (of these tools alone), line by line, safe to show."""
    from difflib import unified_diff

    for name, offered in definitions.offered.items():
        if names and name not in names:
            continue
        before = _shown(definitions.pinned[name]) if name in definitions.pinned else []
        title = name or "(instructions)"
        yield from unified_diff(before, _shown(offered), f"{title} (pinned)", f"{title} (offered)", lineterm="")
        if found := signs(offered):
            yield f"warning: this reads like orders to the model: {', '.join(found)}"


def _shown(value: Any) -> list[str]:
    text = value if isinstance(value, str) else msgspec.json.format(_canonical(value)).decode()
    return lines(text)


def digest(value: Any) -> str:
    """What tells a definition from every other one."""
    return f"sha256:{hashlib.sha256(_canonical(value)).hexdigest()}"


def _canonical(value: Any) -> bytes:
    return msgspec.json.encode(value, order="sorted")


# Descriptions that read like orders to the model: a warning, nothing more. Plain patterns find little: of the 31 tools
# of Damn Vulnerable MCP they flag 6 (`python -m tools.vulnerable_mcp`), of 42 tools of five real servers none. What a
# tool may do is for the hooks, the pins and confinement.
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
