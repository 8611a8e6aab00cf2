"""Alerts: what people are told unasked, over the same channels, and not over and over."""

from __future__ import annotations

import asyncio

import pytest

from hookline import Hooks, deny
from hookline.api import report_trouble
from hookline.cli.commands import fleet
from hookline.events import PreToolUse
from hookline.fleet.ledger import MachineRow
from hookline.records.approvals.inbox import alert
from tests.records.approvals.conftest import Desk, until
from tests.records.approvals.test_inbox import event


def watched() -> Hooks:
    hooks = Hooks()
    hooks.observe(report_trouble)
    return hooks


async def test_a_burst_of_denials_is_told_once(desk: Desk) -> None:
    """Two are not a burst; more than three are the same one."""
    desk.configure(alerts={"denials": 3})
    hooks = watched()
    hooks.add(PreToolUse, lambda event: deny("no"), name="no")
    await hooks.fire(event())
    await hooks.fire(event())
    assert desk.messages() == []
    for _ in range(3):
        await hooks.fire(event())
    await hooks.aclose()
    await until(desk.messages)

    [message] = desk.messages()
    assert message["title"] == "3 calls were denied in 300 s"
    assert message["text"] == "the last one: Bash: no"
    assert message["link"] == ""


async def test_hooks_that_fail_or_time_out_are_told_each(desk: Desk) -> None:
    """By name, with what went wrong."""
    desk.configure(alerts={})
    hooks = watched()

    async def slow(event: PreToolUse) -> None:
        await asyncio.sleep(60)

    def crash(event: PreToolUse) -> None:
        raise ValueError("broken")

    hooks.add(PreToolUse, crash, name="crash", on_failure="continue")
    hooks.add(PreToolUse, slow, name="slow", timeout=0.05, on_failure="continue")
    for _ in range(2):
        await hooks.fire(event())
    await hooks.aclose()
    await until(lambda: len(desk.messages()) == 2)

    assert {one["title"]: "broken" in one["text"] for one in desk.messages()} == {
        "hook `crash` failed on PreToolUse": True, "hook `slow` timed out on PreToolUse": False,
    }  # fmt: skip


async def test_a_machine_that_falls_silent_is_told_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the hub sees it; one that was never heard, or that cannot be asked about now, is not news."""
    desk.configure(alerts={"pause": 0.0})
    monkeypatch.setattr(fleet, "_LOOK_SECONDS", 0.01)
    looks: list[int] = []
    quiet = {"policy": 0, "wanted": 0, "records": 0, "problems": (), "agents": ()}

    class Fleet:
        async def rows(self) -> list[MachineRow]:
            looks.append(1)
            if len(looks) == 2:
                raise OSError("away")
            states = [("a", "laptop", "2026-11-18T08:00:00Z", len(looks) > 3), ("b", "new", "", True)]
            return [MachineRow(machine=key, name=name, seen=seen, silent=silent, **quiet)  # type: ignore[arg-type]
                    for key, name, seen, silent in states]  # fmt: skip

    watching = asyncio.create_task(fleet._watch_silence(Fleet()))  # type: ignore[arg-type]
    await until(desk.messages)
    seen = len(looks)
    await until(lambda: len(looks) > seen + 5)
    watching.cancel()

    assert [one["title"] for one in desk.messages()] == ["laptop has fallen silent"]


async def test_without_alerts_no_one_is_told(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """Off unless the settings say so; settings that are wrong, and an inbox that is away, break nothing."""
    await alert("x", "title", "text")
    (desk.home / ".claude" / "settings.json").write_text('{"approvals": 1}')
    await alert("x", "title", "text")
    desk.configure(alerts={})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOOKLINE_SERVICE", "0")
        await alert("x", "title", "text")

    assert desk.messages() == []
    assert caplog.text.count("no one could be told `title`") == 2
