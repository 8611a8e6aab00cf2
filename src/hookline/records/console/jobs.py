"""What runs beside the console's server: the follower of the logs, streams of what is new, a replay in a process."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import msgspec

from hookline.core.interpreter import hookline_argv
from hookline.records.console.index import LogIndex
from hookline.records.console.store import Filter, LogStore

log: logging.Logger = logging.getLogger("hookline.console")
_LOOK_SECONDS = 0.1
_RETRY_SECONDS = 1.0
_MOST_FLIPS = 500
_MOST_LIVE_ROWS = 200
_BATCH_SECONDS = 0.1
_ALIVE_SECONDS = 15.0
_MOST_SAID = 4_000


class Follower:
    """Looks at the logs ten times a second; `on_new` is called, in its thread, when there were new events.

    A log that cannot be read for a while (a full disk, a folder that went away) is tried again; `problem` says why.
    """

    def __init__(self, index: LogIndex, on_new: Callable[[], None]) -> None:
        self.problem: str = ""
        self._index = index
        self._on_new = on_new
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hookline-console", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        self._thread.join()
        self._index.close()

    def _run(self) -> None:
        pause = 0.0
        while not self._end.wait(pause):
            pause = _LOOK_SECONDS
            was_complete = self._index.complete
            try:
                new = self._index.refresh(self._progress)
                self.problem = ""
            except InterruptedError:
                return
            except Exception as problem:
                if not self.problem:
                    log.exception("cannot read the logs; trying again")
                self.problem = f"cannot read the logs: {problem}"
                pause = _RETRY_SECONDS
                continue
            if new or not was_complete:
                self._on_new()

    def _progress(self, done: int, total: int) -> None:
        if self._end.is_set():
            raise InterruptedError


class Broadcast:
    """Streams of new events for every page that watches: in batches, ten a second at most, never more than it can read.

    `notify` may be called from any thread.
    """

    def __init__(self, store: LogStore) -> None:
        self._store = store
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()
        self._ended = False

    def notify(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake)

    def end(self) -> None:
        """End all streams; for the event loop's own thread."""
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def stream(self, wanted: Filter, last: int) -> AsyncIterator[bytes]:
        """New events as server-sent events; a reader that is slow gets the newest and a count of the rest."""
        self._loop = asyncio.get_running_loop()
        yield b": hello\n\n"
        while not self._ended:
            news = self._news
            status = await asyncio.to_thread(self._store.status)
            ready, newest = status["ready"], status["last_id"]
            if ready and newest < last:
                last = 0  # the index was made again
            if ready and newest > last:
                rows, total = await asyncio.to_thread(self._store.after, last, wanted, _MOST_LIVE_ROWS)
                last = max(newest, rows[0]["id"] if rows else 0)
                body = {"rows": rows, "skipped": max(total - len(rows), 0), "status": status}
                yield b"event: batch\ndata: " + msgspec.json.encode(body) + b"\n\n"
                await asyncio.sleep(_BATCH_SECONDS)
                continue
            try:
                await asyncio.wait_for(news.wait(), _ALIVE_SECONDS if ready else 0.5)
            except TimeoutError:
                yield b"event: status\ndata: " + msgspec.json.encode({"status": status}) + b"\n\n"


class ReplaySubprocess:
    """Today's hooks over the recorded past: runs `hookline replay --json` when it is told to start.

    It has a process of its own: it may take long, and hooks may do anything. The flags say whose hooks.
    """

    def __init__(self, files: Sequence[str], flags: Sequence[str], hooks: str) -> None:
        self._argv = hookline_argv("replay", "--json", *flags, "--", *files)
        self._hooks = hooks
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._found: dict[str, Any] = {"state": "ready"}

    def state(self) -> dict[str, Any]:
        """`ready`, `running`, `done` or `failed`, and what was found."""
        return {"hooks": self._hooks, **self._found}

    def start(self) -> None:
        """Begin, unless it runs already."""
        with self._lock:
            if self._found["state"] == "running":
                return
            self._found = {"state": "running"}
        threading.Thread(target=self.run, name="hookline-replay", daemon=True).start()

    def run(self) -> None:
        self._process = subprocess.Popen(
            self._argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        said, problem = self._process.communicate()
        if self._process.returncode:
            self._found = {"state": "failed", "problem": problem.decode("utf-8", "replace")[-_MOST_SAID:]}
            return
        report = msgspec.json.decode(said)
        report["flips"] = report["flips"][:_MOST_FLIPS]
        self._found = {"state": "done", "report": report}

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait()
