"""Hooks for a CLI that nobody can call back: an interactive one is pointed at an endpoint on loopback.

The settings that do so are ordinary `http` hooks, so every Claude Code understands them; they are put into a settings
file and taken out again. A token in a header keeps other users of the machine out. When the endpoint is gone, the
entries' own `onFailure` decides: a gate on which some hook fails closed is blocked.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import secrets
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from hookline.engine import HookSet
from hookline.errors import ConfigError, HooklineError, MissingExtra
from hookline.events import Event
from hookline.hosts.answer import answer, fails_closed, refusal
from hookline.hosts.claude_code.door import Door, bounded_log
from hookline.hosts.claude_code.quirks import HTTP_NEVER_ASKED
from hookline.hosts.claude_code.registration import plan
from hookline.replies import Reply, deny
from hookline.wire import claude

PATH = "/hookline/hook"
_MOST_BYTES = 64 * 1024 * 1024


class HttpAnswer(msgspec.Struct, frozen=True):
    """The status and the body of a response."""

    status: int
    body: bytes


class Endpoint(msgspec.Struct, frozen=True):
    """Where the hooks are served, and the token that opens the door."""

    url: str
    token: str


def settings_for(hooks: HookSet, endpoint: Endpoint) -> dict[str, Any]:
    """The `hooks` table that makes a CLI ask this endpoint, one entry per event."""
    table: dict[str, Any] = {}
    for name, entries in plan(hooks).hooks.items():
        if name in HTTP_NEVER_ASKED.events:
            continue
        for entry in entries:
            handler: dict[str, Any] = {
                "type": "http",
                "url": endpoint.url,
                "headers": {"Authorization": f"Bearer {endpoint.token}"},
                "timeout": entry.timeout,
            }
            if entry.on_failure:
                handler["onFailure"] = entry.on_failure
            group: dict[str, Any] = {"hooks": [handler]}
            table[name] = [{"matcher": entry.matcher, **group} if entry.matcher else group]
    return table


def unasked(hooks: HookSet) -> list[str]:
    """The events of these hooks that a Claude Code will not ask about."""
    return [name for name in plan(hooks).hooks if name in HTTP_NEVER_ASKED.events]


@asynccontextmanager
async def serving(hooks: HookSet, *, port: int = 0) -> AsyncIterator[Endpoint]:
    """Serve the hooks on loopback for as long as this lasts."""
    try:
        from aiohttp import web
    except ImportError:
        raise MissingExtra("`hookline attach`", "http") from None
    token = secrets.token_urlsafe(32)
    codec = _HttpCodec()

    async def respond(request: web.Request) -> web.Response:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode("utf-8", "surrogateescape"), token.encode()):
            return web.json_response({"error": "wrong token"}, status=401)
        door.begin(request.transport)
        try:
            said = await answer(hooks, await request.read(), codec)
        finally:
            door.done(request.transport)
        return web.Response(status=said.status, body=said.body, content_type="application/json")

    app = web.Application(client_max_size=_MOST_BYTES)
    app.router.add_post(PATH, respond)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0, logger=bounded_log("hookline.attach.server"))
    await runner.setup()
    assert runner.server is not None
    door = Door(runner.server)
    try:
        server = await asyncio.get_running_loop().create_server(door, "127.0.0.1", port, backlog=1024)
    except OSError as problem:
        await runner.cleanup()
        raise HooklineError(f"port {port} cannot be used: {problem.strerror or problem}") from None
    try:
        yield Endpoint(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{PATH}", token)
    finally:
        server.close()
        await runner.cleanup()


class _HttpCodec:
    """Claude Code's words as an HTTP exchange.

    A gate that cannot be asked is denied; other failures are a 4xx or 5xx, which the CLI takes as a failed hook.
    """

    def decode(self, body: bytes) -> Event:
        return claude.decode_event(body)

    def encode(self, reply: Reply, event: Event) -> HttpAnswer:
        return HttpAnswer(200, claude.encode_reply(reply, event))

    def refuse(self, problem: BaseException, body: bytes, event: Event | None) -> HttpAnswer:
        if event is None:
            return HttpAnswer(400, msgspec.json.encode({"error": str(problem)}))
        reason = refusal(problem, event)
        if not fails_closed(event):
            return HttpAnswer(500, msgspec.json.encode({"error": reason}))
        return HttpAnswer(200, claude.encode_reply(deny(reason), event))


# -- the settings file -------------------------------------------------------------------------------------------


def put_in(path: Path, table: dict[str, Any]) -> None:
    """Add entries to a settings file, in place of what an earlier attach left there."""
    settings = _without(_read(path), None)
    hooks = settings.setdefault("hooks", {})
    for name, groups in table.items():
        hooks[name] = [*hooks.get(name, []), *groups]
    _write(path, settings)


def take_out_all(path: Path) -> bool:
    """Remove what attaches that died have left."""
    return _taken_out(path, None)


def take_out(path: Path, url: str) -> bool:
    """Remove the entries of one endpoint, and nothing else; a file that held nothing else goes, too."""
    return _taken_out(path, url)


def _taken_out(path: Path, url: str | None) -> bool:
    if not path.exists():
        return False
    before = _read(path)
    after = _without(before, url)
    if after == before:
        return False
    if after:
        _write(path, after)
    else:
        path.unlink()
    return True


def _without(settings: dict[str, Any], url: str | None) -> dict[str, Any]:
    """Settings without the handlers of one endpoint, or of any (`None`)."""
    hooks = {name: _groups(groups, url) for name, groups in settings.get("hooks", {}).items()}
    kept = {name: groups for name, groups in hooks.items() if groups != []}
    rest = {key: value for key, value in settings.items() if key != "hooks"}
    return {**rest, "hooks": kept} if kept else rest


def _groups(groups: Any, url: str | None) -> Any:
    if not isinstance(groups, list):
        return groups
    kept = []
    for group in groups:
        if not isinstance(group, dict) or not isinstance(group.get("hooks"), list):
            kept.append(group)
            continue
        handlers = [one for one in group["hooks"] if not _ours(one, url)]
        if handlers:
            kept.append({**group, "hooks": handlers})
    return kept


def _ours(handler: Any, url: str | None) -> bool:
    given = handler.get("url") if isinstance(handler, dict) else None
    if not isinstance(given, str):
        return False
    return given == url if url is not None else given.startswith("http://127.0.0.1:") and given.endswith(PATH)


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text() or "{}") if path.exists() else {}
    except (OSError, ValueError) as problem:
        raise ConfigError(str(path), f"cannot be read: {problem}; fix it first, nothing was changed") from None
    if not isinstance(found, dict) or not isinstance(found.get("hooks", {}), dict):
        raise ConfigError(str(path), "is not a settings file; fix it first, nothing was changed")
    return found


def _write(path: Path, settings: dict[str, Any]) -> None:
    """Replace the file in one step, readable by its owner alone: it holds a token."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=".settings-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(json.dumps(settings, indent=2) + "\n")
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
