"""Keeping an index up with its logs, in a thread, and telling waiting pages that something came in."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from hookline.records.console.index import LogIndex

log: logging.Logger = logging.getLogger("hookline.console")
_LOOK_SECONDS = 0.1
_RETRY_SECONDS = 1.0


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

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def stop(self) -> None:
        """End, and close the index."""
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
