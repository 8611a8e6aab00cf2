"""Today's hooks over the recorded past, in a process of its own: it may take long, and hooks may do anything."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Sequence
from typing import Any

import msgspec

from hookline.core.interpreter import hookline_argv

_MOST_FLIPS = 500
_MOST_SAID = 4_000


class ReplaySubprocess:
    """Runs `hookline replay --json` with the flags that say whose hooks, when it is told to start."""

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
        """Run to the end, in this thread."""
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
        """End a replay that runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait()
