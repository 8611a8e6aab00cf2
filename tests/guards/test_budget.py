"""What a session may spend: calls, seconds, calls of single tools; in memory, and in files that processes share."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks
from hookline.errors import HookError
from hookline.events import PreToolUse, SessionEnd, SessionStart
from hookline.guards import budget


def guarded(**limits: Any) -> Hooks:
    """Hooks with a budget."""
    hooks = Hooks()
    hooks.add(*budget.limit(**limits))
    return hooks


async def blocked(hooks: Hooks, tool: str = "Bash", session: str = "s") -> bool:
    """Whether one more call is refused."""
    return (await hooks.fire(PreToolUse(session_id=session, tool_name=tool, tool_input={}))).blocked


@pytest.mark.parametrize("in_files", [False, True])
async def test_calls_beyond_the_budget_are_denied(tmp_path: Path, in_files: bool) -> None:
    """Each session has its own; a refused call costs nothing."""
    hooks = guarded(tool_calls=3, per_tool={"Bash": 2}, state=tmp_path / "b" if in_files else None)

    first = [await blocked(hooks), await blocked(hooks), await blocked(hooks)]
    other = [await blocked(hooks, "Read"), await blocked(hooks, "Read")]
    fresh = await blocked(hooks, session="t")

    assert (first, other, fresh) == ([False, False, True], [False, True], False)


async def test_time_runs_from_the_start_of_the_session() -> None:
    """And is checked at every call."""
    now = [0.0]
    hooks = guarded(seconds=10, clock=lambda: now[0])
    await hooks.fire(SessionStart(session_id="s", source="startup"))
    now[0] = 9.0
    early = await blocked(hooks)
    now[0] = 11.0
    late = await blocked(hooks)

    assert (early, late) == (False, True)


@pytest.mark.parametrize("in_files", [False, True])
async def test_a_session_that_ended_is_forgotten(tmp_path: Path, in_files: bool) -> None:
    """Its files go, too."""
    hooks = guarded(tool_calls=1, state=tmp_path / "b" if in_files else None)
    await blocked(hooks)
    await hooks.fire(SessionEnd(session_id="s", reason="other"))

    left = sorted(each.name for each in (tmp_path / "b").iterdir()) if in_files else []
    assert (left, await blocked(hooks)) == ([], False)


async def test_a_state_that_cannot_be_read_denies(tmp_path: Path) -> None:
    """A gate fails closed."""
    hooks = guarded(tool_calls=1, state=tmp_path)
    await blocked(hooks)
    for file in tmp_path.iterdir():
        file.write_bytes(b"{broken")

    assert await blocked(hooks)


async def test_sessions_in_memory_are_bounded() -> None:
    """A thousand are remembered; the oldest goes first."""
    hooks = guarded(tool_calls=1)
    for number in range(1_001):
        await blocked(hooks, session=str(number))

    assert (await blocked(hooks, session="1000"), await blocked(hooks, session="0")) == (True, False)


SPEND = """
import asyncio, sys
from hookline import Hooks
from hookline.events import PreToolUse
from hookline.guards import budget

async def main():
    hooks = Hooks()
    hooks.add(*budget.limit(tool_calls=40, state=sys.argv[1]))
    verdicts = [await hooks.fire(PreToolUse(session_id="s", tool_name="Bash", tool_input={})) for _ in range(20)]
    print(sum(not verdict.blocked for verdict in verdicts))

asyncio.run(main())
"""


def test_processes_share_one_budget(tmp_path: Path) -> None:
    """Four processes try twenty calls each; forty get through, no more and no less."""
    running = [
        subprocess.Popen([sys.executable, "-c", SPEND, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]

    assert sum(int(process.communicate(timeout=60)[0]) for process in running) == 40


@pytest.mark.parametrize("limits", [{}, {"tool_calls": 0}, {"seconds": -1}, {"per_tool": {"Bash": 0}}])
def test_a_budget_that_limits_nothing_is_refused(limits: dict[str, Any]) -> None:
    """A mistake is told at once."""
    with pytest.raises(HookError):
        budget.limit(**limits)


@pytest.mark.parametrize("in_files", [False, True])
async def test_calls_that_come_too_fast_are_denied(tmp_path: Path, in_files: bool) -> None:
    """The last seconds count, whenever they began; a refused call does not, and other tools and sessions do not."""
    now = [0.0]
    hooks = Hooks()
    hooks.add(budget.rate(2, per=10, match="Bash", clock=lambda: now[0], state=tmp_path / "r" if in_files else None))

    answers = []
    for moment in (0.0, 4.0, 9.0, 9.5, 10.0, 13.9, 14.0):
        now[0] = moment
        answers.append(await blocked(hooks))

    assert answers == [False, False, True, True, False, True, False]
    assert not await blocked(hooks, "Read")
    assert not await blocked(hooks, session="t")


async def test_a_rate_says_when_to_try_again() -> None:
    """And one without a limit is refused at once."""
    hooks = Hooks()
    hooks.add(budget.rate(1, per=60, clock=lambda: 100.0))
    event = PreToolUse(session_id="s", tool_name="Bash", tool_input={})
    await hooks.fire(event)

    assert (await hooks.fire(event)).reason == "more than 1 calls in 60 seconds; try again in 60 s"
    with pytest.raises(HookError, match="more than 0"):
        budget.rate(0)
