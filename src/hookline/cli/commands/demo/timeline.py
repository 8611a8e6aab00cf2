"""How the demo looks: a line per step on a screen of any width, or one JSON object."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from textwrap import wrap
from typing import Any

import msgspec

from hookline.cli.commands.demo.story import Summary
from hookline.cli.style import colour_of, counted, paint, say
from hookline.core.engine import Notice, Verdict
from hookline.core.hooks import Hook
from hookline.core.interpreter import hookline_argv
from hookline.display import one_line
from hookline.guards.sandboxing import launcher, unavailable
from hookline.sandbox.policy import Policy

MOST_COLUMNS = 110
LEAST_ROOM = 20
WANT, WORD = 30, 12


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the timeline: what the agent wanted, what came of it, which hook said so and why."""

    want: str
    word: str
    hook: str = ""
    why: str = ""
    subagent: bool = False


# -- from a verdict to a step --------------------------------------------------------------------------------------


def step_of(verdict: Verdict) -> Step | None:
    """The step that a verdict is, if it is worth a line: a hook said something, or a file is changed."""
    answer = ANSWERS.get(verdict.word, _decided)(verdict)
    if answer is None:
        return None
    hook, why = answer
    return Step(_want(verdict.event), verdict.word, hook, why, verdict.event.agent_id is not None)


def _decided(verdict: Verdict) -> tuple[str, str]:
    return verdict.decided_by or "", verdict.reason


def _approved(verdict: Verdict) -> tuple[str, str]:
    """On a permission request, which would otherwise have been a prompt on the user's screen."""
    return verdict.decided_by or "", f"no prompt, {verdict.reason}"


def _rewritten(verdict: Verdict) -> tuple[str, str]:
    return _who(verdict), f"`{_about(verdict.reply.input or {})}`"


def _passed(verdict: Verdict) -> tuple[str, str] | None:
    if verdict.context:
        return _who(verdict), f"tells the model “{'; '.join(verdict.context)}”"
    if verdict.messages:
        return _who(verdict), "; ".join(verdict.messages)
    if verdict.event.tool_name == "Edit" and verdict.event.event_name == "PreToolUse":
        return ", ".join(one.hook for one in verdict.outcomes), "no objection"
    return None


ANSWERS: dict[str, Callable[[Verdict], tuple[str, str] | None]] = {
    "ALLOW": _approved,
    "REWRITE": _rewritten,
    "PASS": _passed,
}
"""What is told of a verdict besides who decided and why, by what it comes to."""


def _who(verdict: Verdict) -> str:
    """The hooks that said anything at all."""
    said = (one.hook for one in verdict.outcomes if one.reply.input or one.reply.context or one.reply.messages)
    return ", ".join(dict.fromkeys(said))


WANTS: dict[str, Callable[[Any], str]] = {
    "UserPromptSubmit": lambda event: f"prompt “{event.prompt}”",
    "Stop": lambda event: f"stop “{event.last_assistant_message}”",
    "SubagentStart": lambda event: f"subagent {event.agent_type}",
}


def _want(event: Any) -> str:
    says = WANTS.get(event.event_name)
    return says(event) if says else f"{event.tool_name} {_about(event.tool_input)}"


def _about(given: dict[str, Any]) -> str:
    return str(given.get("command") or given.get("file_path") or given.get("description") or "")


# -- on a screen ---------------------------------------------------------------------------------------------------


class TimelineScreen:
    """For people: live, coloured on a terminal, plain in a pipe."""

    def __init__(self) -> None:
        self._width = min(shutil.get_terminal_size().columns, MOST_COLUMNS)
        self._folder = ""
        self._log = Path()

    def begin(self, project: Path, hooks: Sequence[Hook]) -> None:
        """Say what is about to be seen."""
        self._folder = str(project.parent)
        print(paint("hookline demo", "bold") + ": a real agent, a scripted model, hooks at every step")
        print(paint(f"It repairs a small project in {project}.\n", "dim"))
        print(paint(f"{'THE AGENT WANTS':<{WANT}}{'VERDICT':<{WORD}}BY WHICH HOOK, AND WHY", "dim"), flush=True)

    def __call__(self, notice: Notice) -> None:
        """Print the step, if the notice is one."""
        step = step_of(notice) if isinstance(notice, Verdict) else None
        if step is not None:
            say("\n".join(self.lines(step)))

    def lines(self, step: Step) -> list[str]:
        """A step in two columns; what does not fit beside the first goes on below."""
        room = max(self._width - WANT - WORD, LEAST_ROOM)
        said = self._short(one_line(f"{step.hook}: {step.why}" if step.hook else step.why))
        first, *more = wrap(said, room, break_on_hyphens=False) or [""]
        want = _cut(("  └ " if step.subagent else "") + self._short(one_line(step.want)), WANT - 2)
        word = paint(f"{step.word:<{WORD}}", colour_of(step.word))
        if step.hook:
            first = first.replace(step.hook, paint(step.hook, "bold"), 1)
        return [f"{want:<{WANT}}{word}{first}", *(" " * (WANT + WORD) + line for line in more)]

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
        """The numbers, what did not go as told, and where the log lies."""
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
        """The last lines: that the log is whole, and how to look at it."""
        print(f"{self._short(said).removeprefix('…/')}\n\nSee this run in the browser:\n{_next_command()} {self._log}")


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - 1] + "…"


# -- as JSON -------------------------------------------------------------------------------------------------------


class Told:
    """For programs: one object when all is over."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._rest: dict[str, Any] = {}

    def begin(self, project: Path, hooks: Sequence[Hook]) -> None:
        """Remember which hooks there are."""
        self._rest = {"hooks": [hook.name for hook in hooks]}

    def __call__(self, notice: Notice) -> None:
        """Remember the step."""
        step = step_of(notice) if isinstance(notice, Verdict) else None
        if step is not None:
            self._steps.append(step)

    def escape(self, attempt: Escape) -> None:
        """Remember the attempt."""
        self._rest["escape"] = attempt

    def end(self, summary: Summary, problems: Sequence[str], log: Path, kept: Path | None) -> None:
        """Remember how it ended."""
        self._rest |= {"summary": summary, "missing": problems, "audit": str(log), "project": kept and str(kept)}

    def verified(self, said: str) -> None:
        """Print the object."""
        print(msgspec.json.encode({"steps": self._steps, **self._rest, "verified": said}).decode())


Show = TimelineScreen | Told
"""An observer of the demo while it plays."""


# -- the escape -------------------------------------------------------------------------------------------------------

LINE = "sh setup.sh"
SCRIPT = "echo 'hello' > ../outside.txt\n"


class Escape(msgspec.Struct, frozen=True):
    """What the line was, what the kernel said to it, and whether anything got out; or why it was not tried."""

    line: str = LINE
    refused: str = ""
    escaped: bool = False
    skipped: str = ""


def attempt(project: Path) -> Escape:
    """Run the line confined to the project; a real process, a real refusal."""
    if reason := unavailable():
        return Escape(skipped=reason)
    (project / "setup.sh").write_text(SCRIPT)
    policy = Policy((str(project),), write_guard="paths.stay_inside")
    command = [*launcher(), *policy.arguments(), "--", "bash", "-c", LINE]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    said = [line for line in done.stderr.splitlines() if line.startswith("hookline: ")]
    return Escape(refused="\n".join(said), escaped=(project.parent / "outside.txt").exists())


def _next_command() -> str:
    """What can be typed here: `hookline`, or its path in a clone; the console, or a report if that is not installed."""
    own = Path(hookline_argv()[-1])
    here = str(own.relative_to(Path.cwd())) if own.is_relative_to(Path.cwd()) else str(own)
    name = "hookline" if shutil.which("hookline") == str(own) or own.name != "hookline" else here
    return f"{name} console" if find_spec("starlette") and find_spec("uvicorn") else f"{name} audit report"
