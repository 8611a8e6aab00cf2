"""An inbox of the test's own: in this process, with a home, people and links that the test can read."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from hookline.processes.service import address, control
from hookline.records.approvals.inbox import path
from hookline.records.approvals.server import InboxServer

_numbers = itertools.count()


class Desk:
    """The settings, the links that were sent, and the server, which can be started again."""

    def __init__(self, base: Path) -> None:
        self.base, self.home, self.box = base, base / "home", base / "links.jsonl"
        self.state = base / "state" / "inbox"
        (self.home / ".claude").mkdir(parents=True)
        program = base / "deliver.py"
        program.write_text(f"import sys\nopen({str(self.box)!r}, 'a').write(sys.stdin.read() + chr(10))\n")
        self.deliver = {"type": "command", "command": [sys.executable, str(program)]}
        self.agent, self.path = "", path()
        self.server: InboxServer
        self._running: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()

    def configure(self, **approvals: Any) -> None:
        settings = {"people": {"ada": [self.deliver]}, **approvals}
        (self.home / ".claude" / "settings.json").write_text(json.dumps({"approvals": settings}))

    async def start(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            Path(self.path).unlink()
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.path)
        listener.listen(8)
        self._ended = asyncio.Event()
        self.server = InboxServer(self.state, lambda pid: self.agent)
        self._running = asyncio.create_task(self.server.run(listener, self._ended))
        await until(lambda: self.server.people.site.url)

    async def stop(self) -> None:
        assert self._running is not None
        self._ended.set()
        await self._running
        Path(self.path).unlink()

    def messages(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.box.read_text().splitlines()] if self.box.exists() else []

    async def link(self, number: int = 1) -> str:
        """The link that was sent as the n-th message."""
        await until(lambda: len(self.messages()) >= number)
        return str(self.messages()[number - 1]["link"])


async def until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds; the test's own time limit is the end of that."""
    while not condition():  # noqa: ASYNC110 - what is waited for has no event
        await asyncio.sleep(0.01)


async def fetch(link: str, answer: str = "", **headers: str) -> tuple[int, str]:
    """What a browser gets: the status and the page; with an answer, it is a POST."""

    def get() -> tuple[int, str]:
        made = urllib.request.Request(link, f"answer={answer}".encode() if answer else None, headers)
        try:
            with urllib.request.urlopen(made, timeout=20) as page:
                return page.status, page.read().decode()
        except urllib.error.HTTPError as problem:
            return problem.code, problem.read().decode()

    return await asyncio.to_thread(get)


async def question_behind(link: str) -> dict[str, Any]:
    """What the page shows."""
    found: dict[str, Any] = json.loads((await fetch(link.replace("?", ".json?")))[1])
    return found


@pytest_asyncio.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    """An inbox that runs."""
    monkeypatch.setenv("HOOKLINE_SERVICE", f"inbox-{os.getpid()}-{next(_numbers)}")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.setattr(control, "start", lambda entry: False)
    Path(address.folder()).mkdir(0o700, exist_ok=True)
    made = Desk(tmp_path)
    made.configure()
    await made.start()
    yield made
    await made.stop()
