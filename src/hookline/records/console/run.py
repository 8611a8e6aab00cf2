"""A console from start to end: index, follower, server."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from hookline.errors import HooklineError
from hookline.records.audit.reader import logs_in
from hookline.records.console.index import LogIndex, default_path
from hookline.records.console.jobs import Follower, ReplaySubprocess
from hookline.records.console.log_store import LogStore
from hookline.records.console.server import Console
from hookline.records.console.store import ConfiguredHook

_LOOK_SECONDS = 2.0
OnReady = Callable[[str], None]


async def serve(
    paths: Iterable[str | Path],
    *,
    port: int = 0,
    index: Path | None = None,
    key: bytes | None = None,
    configured: Iterable[ConfiguredHook] = (),
    replay: ReplaySubprocess | None = None,
    more: Mapping[str, Callable[[], Any]] | None = None,
    find_logs: Callable[[], list[Path]] | None = None,
    on_ready: OnReady,
) -> None:
    """Show these logs until it is cancelled; `on_ready` is told the address to open.

    `more` has views of others beside the logs', by name; `find_logs` is asked now and then whether there are new logs.
    """
    logs = logs_in(paths)
    if not logs and find_logs is None:
        raise HooklineError(f"{', '.join(map(str, paths))}: no audit logs here; name a `.jsonl` file that hooks wrote")
    made = LogIndex(index or default_path(logs), logs)
    store = LogStore(made, key=key, configured=configured)
    console = Console(store, check=store.check, replay=replay, more=more)
    follower = Follower(made, console.broadcast.notify)
    listening = _listen(console, port)
    server = console.server()
    follower.start()
    looking = asyncio.ensure_future(_look_for_logs(made, find_logs)) if find_logs else None
    serving = asyncio.ensure_future(server.serve(sockets=[listening]))
    try:
        on_ready(console.address())
        await asyncio.shield(serving)
    finally:
        if looking is not None:
            looking.cancel()
        console.broadcast.end()
        server.should_exit = True
        with contextlib.suppress(asyncio.CancelledError):
            await serving
        follower.stop()
        if replay is not None:
            replay.stop()


async def _look_for_logs(index: LogIndex, find: Callable[[], list[Path]]) -> None:
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        index.logs = tuple(logs_in(await asyncio.to_thread(find)))


def _listen(console: Console, port: int) -> socket.socket:
    try:
        return console.listen(port)
    except OSError as problem:
        raise HooklineError(
            f"--port {port}: {problem.strerror}; name another, or leave it out for a free one"
        ) from None
