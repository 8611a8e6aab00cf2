"""Keeps the inbox of open questions: a process of its own, started when one is asked for.

The service only holds the socket, so that no question is lost between two of these processes. The settings that say
who may approve are the account's; a service with a name of its own, as tests have, takes those of the user it was
started for.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time

from hookline.processes.service import address
from hookline.processes.service.kept_process import KeptProcess
from hookline.processes.service.leaf_keeper import environment, usual_state
from hookline.processes.service.pool import Log

PAUSE = 1.0
"""Seconds between two starts, so that a process that cannot run is not started without end."""


class InboxKeeper(KeptProcess):
    """The process that keeps the questions of this service's user."""

    def __init__(self, name: str, home: str, state: str, log: Log) -> None:
        if name == address.DEFAULT or not (os.path.isabs(state) and os.path.isabs(home)):
            home, state = "", usual_state()
        env = environment(state, home) | {"HOOKLINE_SERVICE": name}
        super().__init__("the inbox", ("inbox", "serve"), f"{state}/inbox/inbox.log", env, log)
        self.path: str = f"{name}.inbox.sock"

    @property
    def running(self) -> bool:
        """Whether it has something to do: it ends when it has not."""
        return self.process is not None and self.process.poll() is None

    async def run(self) -> None:
        """Wait for a connection, start the process that takes it, and again when it has ended; until cancelled."""
        loop = asyncio.get_running_loop()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)  # the service holds its lock, so the one that made it has gone
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(self.path)
            listener.listen(64)
            try:
                while True:
                    asked = loop.create_future()
                    loop.add_reader(listener, _settle, asked)
                    await asked
                    loop.remove_reader(listener)
                    begun = time.monotonic()
                    self.start(listener.fileno())
                    if self.process is not None:
                        await asyncio.to_thread(self.process.wait)
                        self.has_ended()
                    await asyncio.sleep(max(0.0, begun + PAUSE - time.monotonic()))
            finally:
                loop.remove_reader(listener)
                self.end()
                with contextlib.suppress(OSError):
                    os.unlink(self.path)


def _settle(asked: asyncio.Future[None]) -> None:
    if not asked.done():
        asked.set_result(None)
