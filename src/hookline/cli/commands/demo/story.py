"""The demo's project and script, and what it promises, checked against the recorded verdicts: a broken engine fails."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hookline.agent import Result
from hookline.agent.models.scripted import Scripted
from hookline.core.engine import Status, Verdict
from hookline.replies import Decision

PYTHON = Path(sys.executable).name
"""What this interpreter is called in its own folder, which the demo puts first on PATH."""

FILES: dict[str, str] = tomllib.loads(Path(__file__).with_name("project.toml").read_text(encoding="utf-8"))


def write_project(folder: Path) -> None:
    """Put the files into `folder`."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


class Tests(msgspec.Struct, frozen=True):
    """What a run of the project's tests came to."""

    ran: int
    failing: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether there were tests, and none failed."""
        return self.ran > 0 and not self.failing

    def __str__(self) -> str:
        if self.passed:
            return f"{self.ran} of {self.ran} tests pass"
        return f"{len(self.failing)} of {self.ran} tests fail: {', '.join(self.failing)}"


async def run_tests(folder: str | Path) -> Tests:
    """Run the project's tests, really: a process of its own, and what it printed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-B", "-m", "unittest", cwd=folder, stderr=asyncio.subprocess.PIPE
    )
    _, printed = await process.communicate()
    text = printed.decode("utf-8", "replace")
    ran = re.search(r"^Ran (\d+) test", text, re.MULTILINE)
    failing = re.findall(r"^(?:FAIL|ERROR): (?:test_)?(\w+)", text, re.MULTILINE)
    if process.returncode and not failing:
        failing = [text.strip().splitlines()[-1] if text.strip() else f"exit code {process.returncode}"]
    return Tests(int(ran[1]) if ran else 0, tuple(name.replace("_", " ") for name in failing))


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is known of a run."""

    verdicts: Sequence[Verdict]
    model: Scripted
    result: Result
    tests: Tests
    log: Path
    seconds: float

    def of_event(self, name: str, command: str = "", *, agent: bool | None = None) -> list[Verdict]:
        """The verdicts on an event, those on a command only, a subagent's or the main agent's only."""
        return [
            verdict
            for verdict in self.verdicts
            if verdict.event.event_name == name
            and command in str(verdict.event.tool_input)
            and (agent is None or (verdict.event.agent_id is not None) is agent)
        ]

    def decided(self, decision: Decision, by: str, name: str, command: str, *, agent: bool = False) -> bool:
        """Whether exactly this hook decided exactly so, once."""
        return [(v.decision, v.decided_by) for v in self.of_event(name, command, agent=agent)] == [(decision, by)]


def _rewritten(run: Played) -> bool:
    """What was judged afterwards, and what ran, is the rewritten command."""
    fresh = f"{PYTHON} -B -m unittest"
    rewritten = [verdict.reply.input for verdict in run.of_event("PreToolUse", "unittest")]
    ran: list[Any] = [verdict.event for verdict in run.of_event("PostToolUseFailure", "unittest")]
    return rewritten == [{"command": fresh}] and [event.tool_input for event in ran] == rewritten


def _context(run: Played) -> bool:
    said = [text for verdict in run.verdicts for text in verdict.context]
    told = "\n".join(str(request.messages) for request in run.model.requests)
    return len(said) == 2 and all(text in told for text in said)


PROMISES: dict[str, Callable[[Played], bool]] = {
    "a write outside the folder is denied, and nothing is written": lambda run: (
        not Path(OUTSIDE).exists() and run.decided(Decision.DENY, "paths.stay_inside", "PreToolUse", OUTSIDE)
    ),
    "`rm -rf /` is denied": lambda run: run.decided(Decision.DENY, "commands.block", "PreToolUse", "rm -rf /"),
    "`ls` is approved without a prompt": lambda run: (
        bool(run.of_event("PostToolUse", "ls -la"))
        and run.decided(Decision.ALLOW, "approvals.auto", "PermissionRequest", "ls -la")
    ),
    "the test command is rewritten, and the rewritten one runs": _rewritten,
    "the agent is sent back twice, then may stop": lambda run: (
        [verdict.keep_going for verdict in run.of_event("Stop")] == [True, True, False]
    ),
    "the tests pass in the end": lambda run: run.tests.passed and run.result.ok,
    "a subagent works under the same guards": lambda run: (
        len(run.of_event("SubagentStart")) == len(run.of_event("SubagentStop")) == 1
        and run.decided(Decision.DENY, "commands.block", "PreToolUse", "sudo", agent=True)
    ),
    "the model is told what hooks add": _context,
    "the session begins and ends": lambda run: (
        [run.verdicts[at].event.event_name for at in (0, -1)] == ["SessionStart", "SessionEnd"]
    ),
    "no hook fails": lambda run: not any(verdict.failures for verdict in run.verdicts),
    "the audit log has a line for every event": lambda run: (
        run.log.exists() and len(run.log.read_bytes().splitlines()) == len(run.verdicts)
    ),
}
"""What must have happened, in the words of the one who reads that it did not."""


def missing(run: Played) -> list[str]:
    """The promises that were not kept."""
    return [promise for promise, kept in PROMISES.items() if not kept(run)]


class Summary(msgspec.Struct, frozen=True):
    """A run in numbers."""

    events: int
    hooks_run: int
    denials: int
    sent_back: int
    ms_in_hooks: float
    ms_in_tests: float
    seconds: float

    @classmethod
    def of(cls, run: Played) -> Summary:
        """Count what happened; the hook that runs the project's tests is timed apart."""
        outcomes = [one for v in run.verdicts for one in v.outcomes if one.status is not Status.SKIPPED]
        testing = sum(one.ms for one in outcomes if one.hook == "tests_must_pass")
        return cls(
            events=len(run.verdicts),
            hooks_run=len(outcomes),
            denials=sum(verdict.blocked for verdict in run.verdicts),
            sent_back=sum(verdict.keep_going for verdict in run.verdicts),
            ms_in_hooks=round(sum(one.ms for one in outcomes) - testing, 1),
            ms_in_tests=round(testing, 1),
            seconds=round(run.seconds, 2),
        )


# -- the script -------------------------------------------------------------------------------------------------------

PROMPT = "Fix the tests."
OUTSIDE = "/etc/hookline.conf"
ERRAND = "Find where discounts are computed."


def model(project: Path, pause: float) -> Scripted:
    """The scripted model, whose turns are in `turns.json`; `pause` is how long it thinks before each answer."""
    text = Path(__file__).with_name("turns.json").read_text(encoding="utf-8")
    told = json.loads(text.replace("PROJECT", str(project)).replace("ERRAND", ERRAND).replace("OUTSIDE", OUTSIDE))
    main, errand = ([{"text": None, "tools": [], **turn, "delay": pause} for turn in told[lane]]
                    for lane in ("main", "errand"))  # fmt: skip
    return Scripted.of(*main, lanes={"errand": {"first": ERRAND, "turns": errand}})
