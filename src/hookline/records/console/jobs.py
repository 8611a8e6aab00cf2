"""What runs beside the console's server: the follower of the logs, and a replay in a process."""

from __future__ import annotations

import logging
import subprocess
import threading
from collections.abc import Sequence
from typing import Any

import msgspec

from hookline.core.interpreter import hookline_argv
from hookline.records.console.index import LogIndex

log: logging.Logger = logging.getLogger("hookline.console")
_LOOK_SECONDS = 0.1
_RETRY_SECONDS = 1.0
_MOST_FLIPS = 500
_MOST_SAID = 4_000


class Follower:
    """Looks at the logs ten times a second, in a thread of its own, until it is stopped.

    A log that cannot be read for a while (a full disk, a folder that went away) is tried again.
    """

    def __init__(self, index: LogIndex) -> None:
        self._index = index
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hookline-console", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        self._thread.join()
        self._index.close()

    def _run(self) -> None:
        pause, failing = 0.0, False
        while not self._end.wait(pause):
            pause = _LOOK_SECONDS
            try:
                self._index.refresh(self._progress)
                failing = False
            except InterruptedError:
                return
            except Exception:
                if not failing:
                    log.exception("cannot read the logs; trying again")
                pause, failing = _RETRY_SECONDS, True

    def _progress(self, done: int, total: int) -> None:
        if self._end.is_set():
            raise InterruptedError


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
