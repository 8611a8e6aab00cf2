"""The demo from its folder to its exit code: set the stage, let the agent work, show it, look at what happened."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from textwrap import wrap
from typing import Any

import msgspec

from hookline.agent import Agent
from hookline.cli.commands import audit as audit_command
from hookline.cli.commands.demo.hooks import hooks
from hookline.cli.commands.demo.story import OUTSIDE, PROMPT, Played, Summary, missing, model, run_tests, write_project
from hookline.cli.style import colour_of, counted, paint, say
from hookline.core.engine import Notice, Verdict
from hookline.core.interpreter import hookline_argv
from hookline.display import one_line
from hookline.guards.permissions import read_rules
from hookline.guards.sandboxing import launcher, unavailable
from hookline.records.audit.log import AuditLog
from hookline.sandbox.policy import Policy
from hookline.testing import Recorder

RULES: dict[str, list[str]] = {
    "allow": ["Agent"],
    "ask": ["Bash"],
    # A second lock on what the story lets the model try: should the hooks ever fail to deny it, it still does not run.
    "deny": ["Bash(rm *)", "Bash(sudo *)", f"Write(/{OUTSIDE})"],
}
"""Every command needs a permission; there is no one at this keyboard, so a hook gives it."""
MOST_COLUMNS = 110
LEAST_ROOM = 20
WANT, WORD = 30, 12


def play(*, as_json: bool, pause: float, keep: bool) -> int:
    """Play the story in a folder of its own; 0 only if it went as told."""
    show = _JsonOutput() if as_json else _TimelineScreen()
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="hookline-demo-")))
    project, log = folder / "shop", folder / "audit.jsonl"
    write_project(project)
    show.begin(project)
    try:
        played = asyncio.run(_work(project, log, show, pause))
        problems = missing(played)
        tried = _try_to_escape(project)
        if tried.escaped or not (tried.refused or tried.skipped):
            problems.append("a script that writes outside is stopped by the kernel")
        show.escape(tried)
    finally:
        if not keep:
            shutil.rmtree(project)
    show.end(Summary.of(played), problems, log, project if keep else None)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        whole = audit_command.main(["verify", str(log)]) == 0
    show.verified(printed.getvalue().strip())
    return 0 if whole and not problems else 1


async def _work(project: Path, log: Path, show: Callable[[Notice], None], pause: float) -> Played:
    """Let the agent work; every verdict is recorded, logged and shown when it is made."""
    recorder, audit, scripted = Recorder(), AuditLog(log, sync="line"), model(project, pause)
    for observer in (recorder, audit, show):
        hooks.observe(observer, inline=True)
    began = time.perf_counter()
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))  # our own interpreter first
    agent = Agent(
        model=scripted,
        hooks=hooks,
        cwd=project,
        permission_mode="acceptEdits",
        rules=read_rules(RULES),
        environ={**os.environ, "PATH": path, "CLAUDE_CONFIG_DIR": str(project.parent)},  # none of the user's settings
        instructions=frozenset(),
        persist=False,
    )
    async with agent:
        result = await agent.run(PROMPT)
    seconds = time.perf_counter() - began
    audit.close()
    tests = await run_tests(project)
    return Played(verdicts=recorder.verdicts, model=scripted, result=result, tests=tests, log=log, seconds=seconds)


# -- a line that gets out, but for the kernel -----------------------------------------------------------------------

LINE = "sh setup.sh"
SCRIPT = "echo 'hello' > ../outside.txt\n"


class Escape(msgspec.Struct, frozen=True):
    """What the line was, what the kernel said to it, and whether anything got out; or why it was not tried."""

    line: str = LINE
    refused: str = ""
    escaped: bool = False
    skipped: str = ""


def _try_to_escape(project: Path) -> Escape:
    """Run the line confined to the project; a real process, a real refusal."""
    if reason := unavailable():
        return Escape(skipped=reason)
    (project / "setup.sh").write_text(SCRIPT)
    policy = Policy((str(project),), write_guard="paths.stay_inside")
    command = [*launcher(), *policy.arguments(), "--", "bash", "-c", LINE]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    said = [line for line in done.stderr.splitlines() if line.startswith("hookline: ")]
    return Escape(refused="\n".join(said), escaped=(project.parent / "outside.txt").exists())


# -- from a verdict to a step ---------------------------------------------------------------------------------------


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the timeline: what the agent wanted, what came of it, which hook said so and why."""

    want: str
    word: str
    hook: str = ""
    why: str = ""
    subagent: bool = False


def step_of(notice: Notice) -> Step | None:
    """The step that a notice is, if it is worth a line: a hook said something, or a file is changed."""
    if not isinstance(notice, Verdict):
        return None
    event: Any = notice.event
    hook, why = notice.decided_by or "", notice.reason
    said = (one.hook for one in notice.outcomes if one.reply.input or one.reply.context or one.reply.messages)
    if notice.word == "ALLOW":  # on a permission request, which would have been a prompt on the user's screen
        why = f"no prompt, {why}"
    elif notice.word == "REWRITE":
        hook, why = ", ".join(dict.fromkeys(said)), f"`{_about(notice.reply.input or {})}`"
    elif notice.word == "PASS" and (notice.context or notice.messages):
        told = f"tells the model “{'; '.join(notice.context)}”" if notice.context else "; ".join(notice.messages)
        hook, why = ", ".join(dict.fromkeys(said)), told
    elif notice.word == "PASS" and event.tool_name == "Edit" and event.event_name == "PreToolUse":
        hook, why = ", ".join(one.hook for one in notice.outcomes), "no objection"
    elif notice.word == "PASS":
        return None
    wants = WANTS.get(event.event_name)
    want = wants(event) if wants else f"{event.tool_name} {_about(event.tool_input)}"
    return Step(want, notice.word, hook, why, event.agent_id is not None)


WANTS: dict[str, Callable[[Any], str]] = {
    "UserPromptSubmit": lambda event: f"prompt “{event.prompt}”",
    "Stop": lambda event: f"stop “{event.last_assistant_message}”",
    "SubagentStart": lambda event: f"subagent {event.agent_type}",
}


def _about(given: dict[str, Any]) -> str:
    return str(given.get("command") or given.get("file_path") or given.get("description") or "")


# -- how it looks ---------------------------------------------------------------------------------------------------


class _TimelineScreen:
    """For people: a line per step on a screen of any width, live, coloured on a terminal, plain in a pipe."""

    def __init__(self) -> None:
        self._width = min(shutil.get_terminal_size().columns, MOST_COLUMNS)
        self._folder = ""
        self._log = Path()

    def begin(self, project: Path) -> None:
        self._folder = str(project.parent)
        print(paint("hookline demo", "bold") + ": a real agent, a scripted model, hooks at every step")
        print(paint(f"It repairs a small project in {project}.\n", "dim"))
        print(paint(f"{'THE AGENT WANTS':<{WANT}}{'VERDICT':<{WORD}}BY WHICH HOOK, AND WHY", "dim"), flush=True)

    def __call__(self, notice: Notice) -> None:
        """A step in two columns; what does not fit beside the first goes on below."""
        step = step_of(notice)
        if step is None:
            return
        said = self._short(one_line(f"{step.hook}: {step.why}" if step.hook else step.why))
        first, *more = wrap(said, max(self._width - WANT - WORD, LEAST_ROOM), break_on_hyphens=False) or [""]
        want = ("  └ " if step.subagent else "") + self._short(one_line(step.want))
        want = want if len(want) <= WANT - 2 else want[: WANT - 3] + "…"
        word = paint(f"{step.word:<{WORD}}", colour_of(step.word))
        if step.hook:
            first = first.replace(step.hook, paint(step.hook, "bold"), 1)
        say("\n".join([f"{want:<{WANT}}{word}{first}", *(" " * (WANT + WORD) + line for line in more)]))

    def _short(self, text: str) -> str:
        """The demo's own folder is long, and beside the point."""
        return text.replace(f"{self._folder}/shop/", "").replace(self._folder, "…")

    def escape(self, attempt: Escape) -> None:
        """What the text of a line does not show, the kernel does."""
        if attempt.skipped:
            print(paint(f"\nConfinement was not tried: {attempt.skipped}", "dim"))
            return
        print(f"\nOne more line, `{attempt.line}`, run confined; its text tells nothing:")
        for line in wrap(self._short(one_line(attempt.refused)), self._width - 2, break_on_hyphens=False):
            print(f"  {line}")
        word = paint("It got out.", "red") if attempt.escaped else "Stopped by the kernel; nothing was written."
        print(word, flush=True)

    def end(self, summary: Summary, problems: Sequence[str], log: Path, kept: Path | None) -> None:
        told = ((summary.events, "event"), (summary.hooks_run, "hook run"), (summary.denials, "denial"))
        counts = " · ".join(counted(number, thing) for number, thing in told)
        print(f"\n{counts} · sent back {summary.sent_back} times")
        testing = f"{summary.ms_in_tests:.0f} ms in the one that runs the tests"
        print(f"{summary.ms_in_hooks:.0f} ms in hooks, and {testing} · {summary.seconds:.1f} s in all")
        for problem in problems:
            print(paint(f"✗ this did not happen: {problem}", "red"))
        print(f"\nThese hooks:  {Path(__file__).with_name('hooks.py')}")
        if kept is not None:
            print(f"The project:  {kept}")
        print(f"Audit log:    {log}\n\n{paint(f'$ hookline audit verify {log}', 'dim')}", flush=True)
        self._log = log

    def verified(self, said: str) -> None:
        """The last lines: that the log is whole, and what can be typed here to look at it."""
        own = Path(hookline_argv()[-1])
        here = str(own.relative_to(Path.cwd())) if own.is_relative_to(Path.cwd()) else str(own)
        name = "hookline" if shutil.which("hookline") == str(own) or own.name != "hookline" else here
        shows = "console" if find_spec("starlette") and find_spec("uvicorn") else "audit report"
        print(f"{self._short(said).removeprefix('…/')}\n\nSee this run in the browser:\n{name} {shows} {self._log}")


class _JsonOutput:
    """For programs: one object when all is over."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._rest: dict[str, Any] = {}

    def begin(self, project: Path) -> None:
        self._rest = {"hooks": [hook.name for hook in hooks.hooks]}

    def __call__(self, notice: Notice) -> None:
        self._steps += [step] if (step := step_of(notice)) else []

    def escape(self, attempt: Escape) -> None:
        self._rest["escape"] = attempt

    def end(self, summary: Summary, problems: Sequence[str], log: Path, kept: Path | None) -> None:
        self._rest |= {"summary": summary, "missing": problems, "audit": str(log), "project": kept and str(kept)}

    def verified(self, said: str) -> None:
        print(msgspec.json.encode({"steps": self._steps, **self._rest, "verified": said}).decode())
