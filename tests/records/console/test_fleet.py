"""A fleet in the browser: its machines, its rollouts, and everybody's events on one page."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from hookline.fleet.connection import Server
from hookline.fleet.hub import Hub
from hookline.fleet.leaf import Leaf, join
from hookline.fleet.machine import Machine
from hookline.records.audit import AuditFile
from tests.fleet.faults import free_port
from tests.records.console.test_browser import visit

POLICY = {"hooks.py": b"from hookline import Hooks\nhooks = Hooks()\n"}


class Small:
    """A hub and machines, in a thread of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hub = Hub(folder / "hub", server=Server(folder / "hub", port=free_port()))
        self.loop = asyncio.new_event_loop()
        self._leaves: list[asyncio.Task[None]] = []

    def do(self, what: object) -> None:
        asyncio.run_coroutine_threadsafe(what, self.loop).result(120)  # type: ignore[arg-type]

    async def begin(self) -> None:
        await self.hub.start()

    async def add(self, name: str, *problems: str) -> None:
        machine, token = Machine(self.folder / name), self.hub.folder.registry.token(self.hub.folder.key.public)
        await join(self.hub.url, token, machine=machine, name=name, audit=str(self.folder / f"{name}.jsonl"))
        agents: list[dict[str, Any]] = [
            {"host": "claude", "hooked": ["user"], "proven": True},
            {"host": "codex", "hooked": []},
        ]
        leaf = Leaf(machine, hosts=lambda: agents, check=lambda folder: list(problems))
        self._leaves.append(asyncio.create_task(leaf.run()))

    async def push(self, share: float, message: str) -> None:
        await self.hub.admin.push(POLICY, share=share, message=message)

    async def end(self) -> None:
        for task in self._leaves:
            task.cancel()
        await asyncio.gather(*self._leaves, return_exceptions=True)
        await self.hub.stop()


@contextmanager
def fleet(folder: Path) -> Iterator[Small]:
    made = Small(folder)
    thread = threading.Thread(target=made.loop.run_forever)
    thread.start()
    try:
        made.do(made.begin())
        yield made
    finally:
        made.do(made.end())
        made.loop.call_soon_threadsafe(made.loop.stop)
        thread.join()
        made.loop.close()


@contextmanager
def shown(folder: Path, page: Page) -> Iterator[None]:
    """`hookline fleet console` as a real process, on the page for as long as it runs."""
    argv = [sys.executable, "-m", "hookline.cli.main", "fleet", "console", "--folder", str(folder / "hub"), "--no-open"]
    env = {**os.environ, "HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=env)
    assert process.stdout is not None
    try:
        page.goto(process.stdout.readline().split()[1])
        expect(page.locator("h1")).to_have_text("Live")
        yield
        page.goto("about:blank")  # a page without its console complains
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


def test_machines_and_rollouts(tmp_path: Path, page: Page) -> None:
    """Who reports, what is in force there, what is wrong, which agents are proven; and each step of each rollout."""
    with fleet(tmp_path) as small, shown(tmp_path, page):
        visit(page, "machines")
        expect(page.locator("main")).to_contain_text("No machines yet")

        small.do(small.add("laptop"))
        small.do(small.add("<b>runner</b>", "hooks.py: it does not load"))
        small.do(small.push(1.0, "no force pushes"))
        AuditFile(tmp_path / "laptop.jsonl").append(
            [{"event": "PreToolUse", "tool": "Bash", "input": {"command": "git push -f"}, "decision": "deny"}]
        )

        good = page.locator("table.machines tbody tr", has_text="laptop")
        bad = page.locator("table.machines tbody tr", has_text="<b>runner</b>")
        expect(good.locator("td").nth(3)).to_have_text("1", timeout=60_000)
        expect(good.locator("td").nth(5)).to_have_text("1", timeout=60_000)
        expect(good.locator("td").nth(4)).to_contain_text("claude proven")
        expect(good.locator("td").nth(4)).to_contain_text("codex not hooked")
        expect(bad).to_contain_text("policy refused: version 1: hooks.py: it does not load", timeout=60_000)
        expect(page.locator(".figure", has_text="need attention").locator(".figure-value")).to_have_text("1")

        visit(page, "rollouts")
        row = page.locator("table.rollouts tbody tr")
        expect(row).to_have_count(1)
        expect(row).to_contain_text("1 of 2")
        expect(row).to_contain_text("all machines")
        expect(row).to_contain_text("no force pushes")

        visit(page, "live")  # a log that came after the console was started
        expect(page.locator("table.events tbody tr").first).to_contain_text("git push -f", timeout=60_000)


def test_a_hub_that_is_away_is_said(tmp_path: Path, page: Page) -> None:
    """The page stays, and says what to do."""
    with fleet(tmp_path):
        pass
    with shown(tmp_path, page):
        visit(page, "machines")

        expect(page.locator(".notice")).to_contain_text("cannot connect to the hub", timeout=60_000)
