"""What the service keeps, a process each: a connection to the fleet, the log's way out, a crew for confined lines."""

from __future__ import annotations

import asyncio
import os
import pwd
import sys
from typing import Any

from hookline.processes.service import address
from hookline.processes.service.kept_process import KeptProcess
from hookline.processes.service.pool import Log

LOOK = 5.0
"""Seconds between two looks at whether this machine is in a fleet."""


class WantedProcess(KeptProcess):
    """A process that runs while files say that it is wanted."""

    unwanted = ""

    @property
    def wanted(self) -> bool:
        """Whether it is, now."""
        raise NotImplementedError

    async def run(self) -> None:
        """Look, start and start again until cancelled; then end the child."""
        try:
            while True:
                await asyncio.to_thread(self._look)
                await asyncio.sleep(LOOK)
        finally:
            self.end()

    def _look(self) -> None:
        self.has_ended()
        if self.wanted and self.process is None:
            self.start()
        elif not self.wanted and self.process is not None:
            self.log(self.unwanted)
            self.end()


class LeafKeeper(WantedProcess):
    """The connection of one state folder, while that folder says that this machine is in a fleet."""

    unwanted = "fleet: this machine has left its fleet"

    def __init__(self, state: str, log: Log) -> None:
        words = ("fleet", "run", "--until-eof")
        super().__init__("fleet: the connection", words, f"{state}/fleet/leaf.log", environment(state), log)
        self.state = state

    @property
    def wanted(self) -> bool:
        """Whether this machine is in a fleet, and the folder is this user's alone to write."""
        try:
            found = os.stat(f"{self.state}/fleet/machine.json")
        except OSError:
            return False
        return found.st_uid == os.getuid() and not found.st_mode & 0o022

    def status(self) -> dict[str, Any]:
        """Which folder, which process, since when."""
        return {"state": self.state, **super().status()}


class SinkKeeper(WantedProcess):
    """Pushes the log of one state folder while the user's or the administrator's settings name a `sink`."""

    unwanted = "push: no sink is named any more"

    def __init__(self, state: str, log: Log, home: str = "") -> None:
        words, home = ("audit", "push", "--follow", "--until-eof"), home or pwd.getpwuid(os.getuid()).pw_dir
        super().__init__("push: the audit log's way out", words, f"{state}/push.log", environment(state, home), log)
        self._settings = (f"{home}/.claude/settings.json", "/etc/claude-code/managed-settings.json")

    @property
    def wanted(self) -> bool:
        """Whether a sink is named; what it is, the process reads itself."""
        return any(b'"sink"' in _contents(path) for path in self._settings)


class CrewKeeper(WantedProcess):
    """Keeps a crew for the confined lines of other programs, once a guard has had a line confined for one."""

    unwanted = "confined lines: no line is confined any more"

    def __init__(self, name: str, state: str, log: Log) -> None:
        words = ("confine", "--lines", f"{address.folder()}/{name}.lines")
        super().__init__("confined lines: the crew", words, f"{state}/lines.log", environment(state), log)
        self._calls = f"{state}/confine"

    @property
    def wanted(self) -> bool:
        """Whether lines have been confined here."""
        return sys.platform == "linux" and os.path.isdir(self._calls)


def _contents(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(1 << 20)
    except OSError:
        return b""


def keepers(state: str, log: Log) -> tuple[list[LeafKeeper], list[SinkKeeper]]:
    """Those for the user's usual state folder, and for another, if the command that started the service uses one."""
    folders = [folder for folder in dict.fromkeys((usual_state(), state)) if os.path.isabs(folder)]
    return [LeafKeeper(folder, log) for folder in folders], [SinkKeeper(folder, log) for folder in folders]


def usual_state() -> str:
    """The state folder of this user's account, whatever a project's variables say."""
    return f"{pwd.getpwuid(os.getuid()).pw_dir}/.local/state/hookline"


def environment(state: str, home: str = "") -> dict[str, str]:
    """What a child gets: nothing of the project whose event started the service."""
    home = home or pwd.getpwuid(os.getuid()).pw_dir
    path = f"{home}/.local/bin:{home}/bin:/usr/local/bin:/usr/bin:/bin"
    return {"PATH": path, "HOME": home, "LC_ALL": "C.UTF-8", "XDG_STATE_HOME": os.path.dirname(state)}
