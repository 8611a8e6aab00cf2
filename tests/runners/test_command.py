"""Commands as hooks: what they are given, and what their output and exit codes mean (FACTS §2, §6, §7)."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from hookline import Command, Hooks, Reply, Verdict, context, deny, keep_going, message, specific
from hookline.core.engine import HookProgress, Status
from hookline.events import PreCompact, PreToolUse, SessionEnd, SessionStart, Stop, UserPromptSubmit, WorktreeCreate
from hookline.events.base import Event

BASH = PreToolUse(session_id="s1", tool_name="Bash", tool_input={"command": "ls"})


def says(reply: dict[str, Any], code: int = 0) -> str:
    return f"echo '{json.dumps(reply)}'; exit {code}"


def decision(word: str, **more: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": word, **more}}


async def fire(command: str | Command, event: Event = BASH, **options: Any) -> Verdict:
    action = Command(command=command) if isinstance(command, str) else command
    async with Hooks() as hooks:
        hooks.add(type(event), action, name="it", **options)
        return await hooks.fire(event)


@pytest.mark.parametrize(
    "command, event, reply",
    [
        ("true", BASH, Reply()),
        ("echo hello", BASH, Reply()),
        ("echo no >&2; exit 2", BASH, deny("[echo no >&2; exit 2]: no")),
        ("exit 2", BASH, deny("[exit 2]: No stderr output")),
        ("echo out; exit 2", BASH, deny("[echo out; exit 2]: No stderr output")),
        ("echo '  on  '", UserPromptSubmit(prompt="p"), context("on")),
        ("echo on", SessionStart(source="startup"), context("on")),
        ("echo keep names", PreCompact(trigger="manual"), context("keep names")),
        ("echo /tmp/tree", WorktreeCreate(name="w"), specific(worktree_path="/tmp/tree")),
        ("echo more >&2; exit 2", Stop(), keep_going("[echo more >&2; exit 2]: more")),
        ("exit 2", UserPromptSubmit(prompt="p"), deny("[exit 2]: No stderr output")),
        (says(decision("deny", permissionDecisionReason="r")), BASH, deny("r")),
        (says(decision("deny", permissionDecisionReason="r"), 1), BASH, deny("r")),
        (says(decision("deny", permissionDecisionReason="r"), 2), BASH, deny("r")),
        (f"echo '{json.dumps({'decision': 'block', 'reason': 'r'})}'; kill -9 $$", BASH, deny("r")),
        ("printf '\\357\\273\\277'; " + says(decision("deny", permissionDecisionReason="r")), BASH, deny("r")),
        ("printf '\\377'", UserPromptSubmit(prompt="p"), context("\ufffd")),
        ("echo text; echo '{}'", UserPromptSubmit(prompt="p"), context("text\n{}")),
        ("echo '[1]'", UserPromptSubmit(prompt="p"), context("[1]")),
    ],
)
async def test_what_output_and_exit_code_mean(command: str, event: Event, reply: Reply) -> None:
    """One table for all of it."""
    verdict = await fire(command, event)

    assert verdict.reply == reply
    assert verdict.outcomes[0].status is Status.OK


async def test_exit_two_beats_json_that_allows() -> None:
    """`pre_json_exit2`: blocked, with stderr as the reason; what else the JSON says still counts."""
    command = f"echo '{json.dumps({**decision('allow'), 'systemMessage': 'm'})}'; echo no >&2; exit 2"

    verdict = await fire(command)

    assert verdict.reply == deny(f"[{command}]: no") | message("m")


@pytest.mark.parametrize(
    "said, event, reply",
    [
        (decision("deny", permissionDecisionReason="why"), BASH, deny("why")),
        ({"decision": "block", "reason": "why"}, BASH, deny("why")),
        ({"decision": "block", "reason": "why"}, UserPromptSubmit(prompt="p"), deny("why")),
        ({"decision": "block", "reason": "why"}, Stop(), keep_going("why")),
    ],
)
async def test_json_that_says_no_gives_the_reason_whatever_is_on_stderr(
    said: dict[str, Any], event: Event, reply: Reply
) -> None:
    """`both_PreToolUse_block_exit2`: exit 2 says the same once more, and stderr may be noise."""
    verdict = await fire(f"echo '{json.dumps(said)}'; echo noise >&2; exit 2", event)

    assert verdict.reply == reply


async def test_stderr_is_the_reason_of_json_that_says_no_without_one() -> None:
    """Better than none."""
    command = """echo '{"decision": "block"}'; echo because >&2; exit 2"""

    verdict = await fire(command)

    assert verdict.reply == deny(f"[{command}]: because")


@pytest.mark.parametrize(
    "command, code, words",
    [
        ("exit 1", 1, "exited with code 1"),
        ("kill -9 $$", 137, "was ended by SIGKILL"),
        ("no-such-command-anywhere", 127, "exited with code 127 (command not found)"),
        ("/etc/passwd", 126, "exited with code 126 (not executable)"),
        ("echo '{broken'", 0, "not JSON"),
        ("echo '{}'; echo text", 0, "not JSON"),
        ("echo '{}'; echo '{}'", 0, "not JSON"),
        (says({"hookSpecificOutput": {"hookEventName": "PostToolUse"}}), 0, "PostToolUse"),
        (says({"decision": 7}), 0, "decision"),
        (says(decision("allow"), 1), 1, "exited with code 1"),
    ],
)
async def test_a_failing_gate_is_closed(command: str, code: int, words: str) -> None:
    """A command hook declared in Python fails closed; `on_failure="continue"` lets the call go on. Both say why."""
    closed = await fire(command)
    lenient = await fire(command, on_failure="continue")

    outcome = closed.outcomes[0]
    assert (closed.blocked, outcome.status, outcome.exit_code) == (True, Status.FAILED, code)
    assert words in (outcome.error or "")
    assert not lenient.blocked


async def test_json_counts_at_any_exit_code_where_failures_are_forgiven() -> None:
    """`pre_json_exit1`, under the policy of settings files."""
    verdict = await fire(says({"systemMessage": "m"}, 1), on_failure="continue")

    assert (verdict.reply, verdict.outcomes[0].exit_code) == (message("m"), 1)


async def test_exit_two_where_nothing_can_be_blocked_is_a_failure() -> None:
    """SessionEnd goes on, and the failure is recorded."""
    verdict = await fire("echo why >&2; exit 2", SessionEnd(reason="other"))

    outcome = verdict.outcomes[0]
    assert (verdict.blocked, outcome.status, outcome.exit_code, outcome.stderr) == (False, Status.FAILED, 2, "why\n")


async def test_exec_form_starts_the_program_itself(tmp_path: Path) -> None:
    """No shell: only `${CLAUDE_PROJECT_DIR}` is filled in, in every element (`run_args`)."""
    action = Command(command="printf", args=("%s|", "${CLAUDE_PROJECT_DIR}/x", "$HOME", "a b", "${NOT_SET}"))
    async with Hooks(project_dir=str(tmp_path)) as hooks:
        hooks.add(UserPromptSubmit, action)
        verdict = await hooks.fire(UserPromptSubmit(prompt="p"))

    assert verdict.context == (f"{tmp_path}/x|$HOME|a b|${{NOT_SET}}|",)


async def test_a_program_that_cannot_be_started_fails() -> None:
    """The exit code is the one a shell would give."""
    missing = await fire(Command(command="/no/such/thing", args=()))
    folder = await fire(Command(command="/tmp", args=()))

    assert [v.outcomes[0].exit_code for v in (missing, folder)] == [127, 126]
    assert "could not be started: `/no/such/thing`: no such file or directory" in (missing.outcomes[0].error or "")


async def test_a_missing_folder_is_a_failure_that_names_it() -> None:
    """The agent's folder may have been deleted meanwhile."""
    verdict = await fire("true", PreToolUse(cwd="/no/such/folder", tool_name="Bash", tool_input={}))

    assert verdict.blocked
    assert "/no/such/folder" in (verdict.outcomes[0].error or "")


async def test_stdin_is_the_event_on_one_line(tmp_path: Path) -> None:
    """Compact JSON and a newline (`run_raw`)."""
    await fire(f"cat > {tmp_path}/in")

    raw = (tmp_path / "in").read_bytes()
    assert raw.endswith(b"}\n")
    assert raw.count(b"\n") == 1
    assert json.loads(raw)["tool_input"] == {"command": "ls"}


async def test_the_environment_is_claude_codes(tmp_path: Path) -> None:
    """FACTS §6: what hooks find in their environment."""
    names = (
        "CLAUDE_PROJECT_DIR CLAUDECODE CLAUDE_CODE_SESSION_ID CLAUDE_CODE_ENTRYPOINT OWN CLAUDE_PLUGIN_ROOT AI_AGENT"
    )
    show = "; ".join(f'echo "${name}"' for name in names.split())
    event = UserPromptSubmit(session_id="s1", cwd=str(tmp_path), prompt="p")

    verdict = await fire(Command(command=f"{show}; pwd", env={"OWN": "o"}, plugin_root="/plug"), event)

    said = verdict.context[0].splitlines()
    assert said == [
        str(tmp_path),
        "1",
        "s1",
        "sdk-cli",
        "o",
        "/plug",
        os.environ.get("AI_AGENT", "hookline"),
        str(tmp_path),
    ]


async def test_exports_have_a_file_to_go_to_on_four_events(tmp_path: Path) -> None:
    """`CLAUDE_ENV_FILE` is there for SessionStart and not for others; one of our own is gone afterwards."""
    started = await fire(
        'echo "export A=1" >> "$CLAUDE_ENV_FILE"; echo $CLAUDE_ENV_FILE', SessionStart(source="startup")
    )
    prompted = await fire("echo [$CLAUDE_ENV_FILE]", UserPromptSubmit(prompt="p"))

    assert not Path(started.context[0]).exists()
    assert prompted.context == ("[]",)


async def test_the_dialect_of_the_action_is_spoken(tmp_path: Path) -> None:
    """seeds/002: snake case in, snake case out."""
    command = Command(command=f"cat > {tmp_path}/in; echo '{{\"continue_execution\": false}}'", dialect="snake")

    verdict = await fire(command)

    assert json.loads((tmp_path / "in").read_bytes())["event"] == "pre_tool_use"
    assert verdict.blocked


async def test_a_timeout_discards_what_was_printed() -> None:
    """`run_timeout_partial`: not even a deny counts."""
    verdict = await fire(f"echo '{json.dumps(decision('allow'))}'; sleep 60", timeout=0.3)

    assert verdict.outcomes[0].status is Status.TIMEOUT
    assert verdict.blocked


async def test_powershell_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without PowerShell the failure says what is missing."""
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)

    verdict = await fire(Command(command="Get-Date", shell="powershell"))

    assert "pwsh" in (verdict.outcomes[0].error or "")


async def test_progress_is_told_in_whole_characters() -> None:
    """Observers hear what is printed while it is printed."""
    heard: list[HookProgress] = []
    async with Hooks() as hooks:
        hooks.add(PreToolUse, Command(command="printf '\\303'; sleep 0.05; printf '\\274'; echo err >&2"))
        hooks.observe(lambda notice: heard.append(notice) if isinstance(notice, HookProgress) else None)
        await hooks.fire(BASH)

    assert heard[-1].stdout == "ü"
    assert heard[-1].stderr == "err\n"


async def test_a_first_line_that_says_async_lets_the_agent_go_on(tmp_path: Path) -> None:
    """`async_firstline`: the rest of the output is collected later."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    command = f'echo \'{{"async": true}}\'; read line < {gate}; echo \'{{"systemMessage": "late"}}\''
    async with Hooks() as hooks:
        hooks.add(PreToolUse, Command(command=command))
        verdict = await hooks.fire(BASH)
        await asyncio.to_thread(gate.write_text, "go\n")
        late = await hooks.drain()

    assert verdict.outcomes[0].status is Status.BACKGROUND
    assert [outcome.reply for outcome in late] == [message("late")]


async def test_an_async_hook_never_holds_anything_up(tmp_path: Path) -> None:
    """`async: true`: decisions come too late to count, messages are collected; exit code and stderr are surfaced."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    async with Hooks() as hooks:
        command = f"read line < {gate}; echo late >&2; exit 2"
        hooks.add(PreToolUse, Command(command=command, asynchronous=True, async_rewake=True))
        verdict = await hooks.fire(BASH)
        await asyncio.to_thread(gate.write_text, "go\n")
        late = await hooks.drain()

    assert not verdict.blocked
    assert [(outcome.exit_code, outcome.stderr) for outcome in late] == [(2, "late\n")]


async def test_a_persistent_hook_answers_line_by_line(tmp_path: Path) -> None:
    """One process, many events; it sees each and answers in turn."""
    script = tmp_path / "stays.py"
    script.write_text(
        "import json, os, sys\n"
        "for line in sys.stdin:\n"
        "    print(json.dumps({'systemMessage': str(os.getpid())}), flush=True)\n"
    )
    async with Hooks() as hooks:
        hooks.add(PreToolUse, Command(command=f"{sys.executable} {script}", persistent=True))
        said = [(await hooks.fire(BASH)).messages for _ in range(3)]

    assert len({*said}) == 1


async def test_python_scripts_run_warm_from_the_second_time_on(tmp_path: Path) -> None:
    """A script is run in a fork; `HOOKLINE_WARM=0` would turn that off."""
    from hookline.runners.command import CommandRunner

    script = tmp_path / "hook.py"
    script.write_text("import os, sys, json\nprint(json.load(sys.stdin)['prompt'], os.getppid())\n")
    async with Hooks() as hooks:
        [hook] = hooks.add(UserPromptSubmit, Command(command=f"{sys.executable} {script}"))
        runner = hooks.engine.runners.of(hook)
        assert isinstance(runner, CommandRunner)
        assert runner.warm is not None
        await hooks.fire(UserPromptSubmit(prompt="one"))
        await runner.warm.warmed()
        parent = runner.warm.parents[0].process.pid
        verdict = await hooks.fire(UserPromptSubmit(prompt="two"))

    assert verdict.context == (f"two {parent}",)


async def test_a_late_answer_may_stand_among_other_lines() -> None:
    """In the background the first line that is a JSON object counts, as in Claude Code."""
    first, second = (json.dumps({"systemMessage": word}) for word in ("one", "two"))
    command = f"echo working; echo '{first}'; echo '{second}'"
    async with Hooks() as hooks:
        hooks.add(PreToolUse, Command(command=command, asynchronous=True), on_failure="continue")
        await hooks.fire(BASH)
        [late] = await hooks.drain()

    assert late.reply == message("one")


async def test_plain_text_that_comes_late_tells_nobody_anything() -> None:
    """FACTS §7, also where text is context otherwise."""
    async with Hooks() as hooks:
        hooks.add(UserPromptSubmit, Command(command="echo on", asynchronous=True))
        await hooks.fire(UserPromptSubmit(prompt="p"))
        [late] = await hooks.drain()

    assert (late.reply, late.stdout) == (Reply(), "on\n")


async def test_async_needs_no_newline() -> None:
    """`{"async": true}` alone says it, whatever the exit code is then."""
    async with Hooks() as hooks:
        hooks.add(PreToolUse, Command(command="""printf '{"async": true}'; exec 1>&-; exit 2"""), on_failure="continue")
        verdict = await hooks.fire(BASH)
        await hooks.drain()

    assert (verdict.blocked, verdict.outcomes[0].status) == (False, Status.BACKGROUND)


@pytest.mark.parametrize("code, blocked", [(0, False), (1, True), (2, True)])
async def test_a_hook_that_fails_closed_cannot_slip_into_the_background(code: int, blocked: bool) -> None:
    """With `onFailure: "block"`, whoever prints `{"async": true}` is waited for all the same."""
    verdict = await fire(f"""echo '{{"async": true}}'; echo why >&2; exit {code}""", on_failure="block")

    assert verdict.blocked is blocked


async def test_a_command_that_exits_with_a_no_has_not_had_its_once() -> None:
    """As in Claude Code: it is asked until it lets something through."""
    async with Hooks() as hooks:
        hooks.add(PreToolUse, Command(command="exit 2"), name="it", once=True)
        verdicts = [await hooks.fire(BASH) for _ in range(2)]

    assert [verdict.blocked for verdict in verdicts] == [True, True]
