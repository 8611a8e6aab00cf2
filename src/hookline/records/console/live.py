"""What comes in, sent to every page that watches: in batches, ten a second at most, and never more than it can read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec

from hookline.records.console.store import Filter, Store

BATCH_SECONDS = 0.1
MOST_ROWS = 200
_ALIVE_SECONDS = 15.0
_encode = msgspec.json.Encoder().encode


class Broadcast:
    """Streams of new events. `notify` may be called from any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news: asyncio.Event | None = None
        self._ended = False

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Use this event loop."""
        self._loop = loop
        self._news = asyncio.Event()

    def notify(self) -> None:
        """Something came in."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake)

    def end(self) -> None:
        """End all streams; for the event loop's own thread."""
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        if self._news is not None:
            self._news.set()
            self._news = asyncio.Event()

    async def stream(self, wanted: Filter, last: int) -> AsyncIterator[bytes]:
        """New events as server-sent events; a reader that is slow gets the newest and a count of the rest."""
        yield b": hello\n\n"
        while not self._ended:
            news = self._news
            assert news is not None
            status = await asyncio.to_thread(self._store.status)
            if status.ready and status.last_id < last:
                last = 0  # the index was made again
            if status.ready and status.last_id > last:
                rows, total = await asyncio.to_thread(self._store.after, last, wanted, MOST_ROWS)
                last = max(status.last_id, rows[0].id if rows else 0)
                body = {"rows": rows, "skipped": max(total - len(rows), 0), "status": status}
                yield b"event: batch\ndata: " + _encode(body) + b"\n\n"
                await asyncio.sleep(BATCH_SECONDS)
                continue
            try:
                await asyncio.wait_for(news.wait(), _ALIVE_SECONDS if status.ready else 0.5)
            except TimeoutError:
                yield b"event: status\ndata: " + _encode({"status": status}) + b"\n\n"
