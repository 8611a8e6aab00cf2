"""`hookline demo`: a real agent on a scripted model, in a folder of its own; no key, no network."""

import asyncio
import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from textwrap import wrap
from typing import Any

import msgspec

from hookline.agent import Agent
from hookline.agent.models.scripted import Scripted
from hookline.cli.commands import audit as audit_command
from hookline.cli.commands.demo.hooks import PYTHON, hooks
from hookline.cli.options import parser_for
from hookline.cli.style import colour_of, counted, json_text, paint, width
from hookline.core.engine import Notice, Observer, Status, Verdict
from hookline.core.interpreter import hookline_argv
from hookline.display import one_line
from hookline.guards.permissions import read_rules
from hookline.guards.sandboxing import launcher, unavailable
from hookline.records.audit.log import AuditLog
from hookline.sandbox.policy import Policy

RULES: dict[str, list[str]] = {  # every command needs a permission; no one is at this keyboard, so a hook gives it
    "allow": ["Agent"],
    "ask": ["Bash"],
    # A second lock on what the story lets the model try: should the hooks ever fail to deny it, it still does not run.
    "deny": ["Bash(rm *)", "Bash(sudo *)", "Write(//etc/hookline.conf)"],
}
LINE, SCRIPT = "sh setup.sh", "echo 'hello' > ../outside.txt\n"  # gets out, but for the kernel
LEAST_ROOM = 20
WANT, WORD = 30, 12


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the timeline: what the agent wanted, what came of it, which hook said so and why."""

    want: str
    word: str
    hook: str = ""
    why: str = ""
    subagent: bool = False


def main(argv: list[str]) -> int:
    """Play the story; exit code 0 only if every verdict came as told."""
    args = parser_for("demo").parse_args(argv)
    pause = 0.25 if sys.stdout.isatty() and not (args.fast or args.json) else 0.0
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="hookline-demo-")))
    project, log = folder / "shop", folder / "audit.jsonl"
    for name, text in tomllib.loads(_beside("project.toml")).items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text, "utf-8")
    story = json.loads(_beside("story.json").replace("PROJECT", str(project)).replace("PYTHON", PYTHON))
    verdicts: list[Verdict] = []
    steps: list[Step] = []

    def show(notice: Notice) -> None:
        if isinstance(notice, Verdict):
            verdicts.append(notice)
            if step := step_of(notice):
                steps.append(step)
                if not args.json:
                    with contextlib.suppress(BrokenPipeError):  # a reader that has left is not a reason to stop
                        print(_timeline(step, folder), flush=True)

    if not args.json:
        print(paint("hookline demo", "bold") + ": a real agent, a scripted model, hooks at every step")
        print(paint(f"It repairs a small project in {project}.\n", "dim"))
        print(paint(f"{'THE AGENT WANTS':<{WANT}}{'VERDICT':<{WORD}}BY WHICH HOOK, AND WHY", "dim"), flush=True)
    began, audit = time.perf_counter(), AuditLog(log, sync="line")
    try:
        asyncio.run(_work(project, story, (show, audit), pause))
        audit.close()
        seconds = time.perf_counter() - began
        tried = _try_to_escape(project)
    finally:
        if not args.keep:
            shutil.rmtree(project)
    came = [[step.want, step.word, step.hook] for step in steps]
    missing = [promise for promise, told in story["promises"].items() if any(step not in came for step in told)]
    if tried["escaped"] or not (tried["refused"] or tried["skipped"]):
        missing.append("a script that writes outside is stopped by the kernel")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        whole = audit_command.main(["verify", str(log)]) == 0
    told = {
        "steps": steps, "hooks": [hook.name for hook in hooks.hooks], "escape": tried, "missing": missing,
        "summary": summary_of(verdicts, seconds), "audit": str(log), "project": str(project) if args.keep else None,
        "verified": printed.getvalue().strip(),
    }  # fmt: skip
    print(json_text(told) if args.json else "\n".join(_ending(told, folder)))
    return 0 if whole and not missing else 1


def _beside(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


async def _work(project: Path, story: dict[str, Any], observers: tuple[Observer, ...], pause: float) -> None:
    """Let the agent work; `pause` is how long the model thinks before each answer."""
    for observer in observers:
        hooks.observe(observer, inline=True)
    main, errand = ([{"text": None, "tools": [], **turn, "delay": pause} for turn in story[lane]]
                    for lane in ("main", "errand"))  # fmt: skip
    first = next(given["prompt"] for turn in main for tool, given in turn["tools"] if tool == "Agent")
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))  # our own interpreter first
    agent = Agent(
        model=Scripted.of(*main, lanes={"errand": {"first": first, "turns": errand}}),
        hooks=hooks,
        cwd=project,
        permission_mode="acceptEdits",
        rules=read_rules(RULES),
        environ={**os.environ, "PATH": path, "CLAUDE_CONFIG_DIR": str(project.parent)},  # none of the user's settings
        instructions=frozenset(),
        persist=False,
    )
    async with agent:
        await agent.run(story["prompt"])


def _try_to_escape(project: Path) -> dict[str, Any]:
    """Run a line confined to the project; a real process, a real refusal. Or why it was not tried."""
    refused, skipped = "", unavailable()
    if not skipped:
        (project / "setup.sh").write_text(SCRIPT)
        policy = Policy((str(project),), write_guard="paths.stay_inside")
        argv = [*launcher(), *policy.arguments(), "--", "bash", "-c", LINE]
        done = subprocess.run(argv, cwd=project, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        refused = "\n".join(line for line in done.stderr.splitlines() if line.startswith("hookline: "))
    escaped = (project.parent / "outside.txt").exists()
    return {"line": LINE, "refused": refused, "escaped": escaped, "skipped": skipped}


def step_of(verdict: Verdict) -> Step | None:
    """The step that a verdict is, if it is worth a line: a hook said something, or a file is changed."""
    event: Any = verdict.event
    hook, why = verdict.decided_by or "", verdict.reason
    said = (one.hook for one in verdict.outcomes if one.reply.input or one.reply.context or one.reply.messages)
    if verdict.word == "ALLOW":  # on a permission request, which would have been a prompt on the user's screen
        why = f"no prompt, {why}"
    elif verdict.word == "REWRITE":
        hook, why = ", ".join(dict.fromkeys(said)), f"`{_about(verdict.reply.input or {})}`"
    elif verdict.word == "PASS" and (verdict.context or verdict.messages):
        told = f"tells the model “{'; '.join(verdict.context)}”" if verdict.context else "; ".join(verdict.messages)
        hook, why = ", ".join(dict.fromkeys(said)), told
    elif verdict.word == "PASS" and event.tool_name == "Edit" and event.event_name == "PreToolUse":
        hook, why = ", ".join(one.hook for one in verdict.outcomes), "no objection"
    elif verdict.word == "PASS":
        return None
    wants = WANTS.get(event.event_name)
    want = wants(event) if wants else f"{event.tool_name} {_about(event.tool_input)}"
    return Step(want, verdict.word, hook, why, event.agent_id is not None)


WANTS: dict[str, Callable[[Any], str]] = {
    "UserPromptSubmit": lambda event: f"prompt “{event.prompt}”",
    "Stop": lambda event: f"stop “{event.last_assistant_message}”",
    "SubagentStart": lambda event: f"subagent {event.agent_type}",
}


def _about(given: dict[str, Any]) -> str:
    return str(given.get("command") or given.get("file_path") or given.get("description") or "")


def summary_of(verdicts: list[Verdict], seconds: float) -> dict[str, Any]:
    """A run in numbers; the hook that runs the project's tests is timed apart."""
    outcomes = [one for verdict in verdicts for one in verdict.outcomes if one.status is not Status.SKIPPED]
    testing = sum(one.ms for one in outcomes if one.hook == "tests_must_pass")
    return {
        "events": len(verdicts),
        "hooks_run": len(outcomes),
        "denials": sum(verdict.blocked for verdict in verdicts),
        "sent_back": sum(verdict.keep_going for verdict in verdicts),
        "ms_in_hooks": round(sum(one.ms for one in outcomes) - testing, 1),
        "ms_in_tests": round(testing, 1),
        "seconds": round(seconds, 2),
    }


def _short(text: str, folder: Path) -> str:
    """The demo's own folder is long, and beside the point."""
    return text.replace(f"{folder}/shop/", "").replace(str(folder), "…")


def _timeline(step: Step, folder: Path) -> str:
    """A step in two columns; what does not fit beside the first goes on below."""
    said = _short(one_line(f"{step.hook}: {step.why}" if step.hook else step.why), folder)
    first, *more = wrap(said, max(width() - WANT - WORD, LEAST_ROOM), break_on_hyphens=False) or [""]
    want = ("  └ " if step.subagent else "") + _short(one_line(step.want), folder)
    want = want if len(want) <= WANT - 2 else want[: WANT - 3] + "…"
    word = paint(f"{step.word:<{WORD}}", colour_of(step.word))
    if step.hook:
        first = first.replace(step.hook, paint(step.hook, "bold"), 1)
    return "\n".join([f"{want:<{WANT}}{word}{first}", *(" " * (WANT + WORD) + line for line in more)])


def _ending(told: dict[str, Any], folder: Path) -> Iterator[str]:
    """What the kernel did, the numbers, and what can be typed here to look at the run."""
    tried, numbers, log = told["escape"], told["summary"], told["audit"]
    if tried["skipped"]:
        yield paint(f"\nConfinement was not tried: {tried['skipped']}", "dim")
    else:
        yield f"\nOne more line, `{tried['line']}`, run confined; its text tells nothing:"
        refused = _short(one_line(tried["refused"]), folder)
        yield from (f"  {line}" for line in wrap(refused, width() - 2, break_on_hyphens=False))
        yield paint("It got out.", "red") if tried["escaped"] else "Stopped by the kernel; nothing was written."
    counts = [counted(numbers[name], thing) for name, thing in
              (("events", "event"), ("hooks_run", "hook run"), ("denials", "denial"))]  # fmt: skip
    yield f"\n{' · '.join(counts)} · sent back {numbers['sent_back']} times"
    testing = f"{numbers['ms_in_tests']:.0f} ms in the one that runs the tests"
    yield f"{numbers['ms_in_hooks']:.0f} ms in hooks, and {testing} · {numbers['seconds']:.1f} s in all"
    yield from (paint(f"✗ this did not happen: {promise}", "red") for promise in told["missing"])
    yield f"\nThese hooks:  {Path(__file__).with_name('hooks.py')}"
    if told["project"]:
        yield f"The project:  {told['project']}"
    yield f"Audit log:    {log}\n\n{paint(f'$ hookline audit verify {log}', 'dim')}"
    own = Path(hookline_argv()[-1])
    here = str(own.relative_to(Path.cwd())) if own.is_relative_to(Path.cwd()) else str(own)
    name = "hookline" if shutil.which("hookline") == str(own) or own.name != "hookline" else here
    shows = "console" if find_spec("starlette") and find_spec("uvicorn") else "audit report"
    verified = _short(told["verified"], folder).removeprefix("…/")
    yield f"{verified}\n\nSee this run in the browser:\n{name} {shows} {log}"
