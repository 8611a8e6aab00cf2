"""A storm: writers append to one audit log while they are killed at random and started again.

`storm.py LOG WRITERS LINES SEED [MAX_BYTES [KEEP]]` prints, as JSON, how many lines each writer was told are written,
and how many kills there were. Half of the writers write line by line, half in batches. On a machine that is so quick,
or so busy elsewhere, that they are done before `LEAST_KILLS` kills, they write more lines than they were asked to.
"""

import json
import os
import random
import selectors
import signal
import sys
import time
from pathlib import Path
from typing import Any

from hookline.core.engine import Verdict
from hookline.events import PreToolUse
from hookline.records.audit.log import AuditLog
from hookline.records.audit.log_file import AuditFile
from hookline.replies import NOTHING

LEAST_KILLS = 6


def write(path: str, writer: int, start: int, lines: int, acknowledge: int, limits: dict[str, Any]) -> None:
    """Append lines from `start` on, and say after each, or after each batch, up to which number they are written."""
    if writer % 2:
        file = AuditFile(path, **limits)
        for number in range(start, lines):
            file.append([{"writer": writer, "number": number}])
            os.write(acknowledge, b"%d\n" % number)
        return
    log = AuditLog(path, user="", redact=str, **limits)
    for number in range(start, lines):
        event = PreToolUse(tool_name="Bash", tool_input={"writer": writer, "number": number})
        assert log(Verdict(event, NOTHING)) is None
        if number % 40 == 39 or number == lines - 1:
            assert log.flush()
            os.write(acknowledge, b"%d\n" % number)


class Writer:
    """One writer, and what it said before it was killed."""

    def __init__(self, number: int, lines: int) -> None:
        self.number = number
        self.lines = lines
        self.done = 0
        self.pid = 0
        self.pipe = -1
        self._rest = b""

    def start(self, path: str, limits: dict[str, Any]) -> None:
        self.pipe, child_end = os.pipe()
        self._rest = b""
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                write(path, self.number, self.done, self.lines, child_end, limits)
                code = 0
            finally:
                os._exit(code)
        os.close(child_end)

    def hear(self) -> bool:
        """Take in what it says; `False` at its end."""
        said = os.read(self.pipe, 65536)
        *whole, self._rest = (self._rest + said).split(b"\n")
        if whole:
            self.done = int(whole[-1]) + 1
        return bool(said)


def storm(path: str, writers: int, lines: int, seed: int, limits: dict[str, Any]) -> dict[str, object]:
    """Let them all write, kill one every few moments, until all have written everything."""
    chance = random.Random(seed)
    all_of_them = [Writer(number, lines) for number in range(writers)]
    selector = selectors.DefaultSelector()
    kills = 0
    next_kill = time.monotonic()
    for writer in all_of_them:
        writer.start(path, limits)
        selector.register(writer.pipe, selectors.EVENT_READ, writer)
    while selector.get_map():
        for key, _ in selector.select(0.01):
            writer = key.data
            if writer.hear():
                continue
            selector.unregister(writer.pipe)
            os.close(writer.pipe)
            _, status = os.waitpid(writer.pid, 0)
            assert writer.done == writer.lines or os.WIFSIGNALED(status), f"writer {writer.number} failed"
            if writer.done == writer.lines and kills < LEAST_KILLS:
                writer.lines += lines
            if writer.done < writer.lines:
                writer.start(path, limits)
                selector.register(writer.pipe, selectors.EVENT_READ, writer)
        if time.monotonic() >= next_kill and selector.get_map():
            victim = chance.choice(list(selector.get_map().values())).data
            os.kill(victim.pid, signal.SIGKILL)
            kills += 1
            next_kill = time.monotonic() + chance.uniform(0.005, 0.06)
    return {"acknowledged": [writer.done for writer in all_of_them], "kills": kills}


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[2:]]
    named = dict(zip(("max_bytes", "keep"), given[3:], strict=False))
    Path(sys.argv[1]).parent.mkdir(parents=True, exist_ok=True)
    print(json.dumps(storm(sys.argv[1], given[0], given[1], given[2], named)))
