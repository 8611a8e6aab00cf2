"""`hookline run`: flags, forms of output, exit codes, and an end that always comes."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hookline.agent.factory import RunOptions
from hookline.cli.commands.run import parse, parser
from hookline.guards.permissions import Mode
from hookline.guards.sandboxing import unavailable
from tests import forked
from tests.environ import clean_environ

RECORD = "import sys,json; e=json.load(sys.stdin); open('events.log','a').write(e['hook_event_name']+'\\n')"


def test_flags_are_read_as_the_claude_cli_reads_them() -> None:
    """Switches, values, lists up to the next flag, `--flag=value`, short names, and the prompt wherever it stands."""
    options = parse(
        ["-p", "do it", "--allowedTools", "Bash(git *)", "Read", "--output-format=json", "-r", "--plugin-dir", "a",
         "--plugin-dir", "b", "--strict-mcp-config", "--max-turns", "3", "--permission-mode", "plan", "--tools", "",
         "--append-system-prompt", "--not a flag", "--autocompact", "1.5k", "--setting-sources", ""]
    ).options  # fmt: skip

    assert options == RunOptions(
        print=True, prompt="do it", allowed_tools=("Bash(git *)", "Read"), output_format="json", resume="",
        plugin_dir=("a", "b"), strict_mcp_config=True, max_turns=3, permission_mode=Mode.PLAN, tools=("",),
        append_system_prompt="--not a flag", autocompact=1500, setting_sources="",
    )  # fmt: skip


@pytest.mark.parametrize("argv, prompt", [
    (["--model", "x", "go"], "go"), (["go", "--model", "x"], "go"), (["--verbose", "--", "-p", "x"], "-p"),
    (["--prompt", "go"], "go"), (["-c", "go"], "go"), (["-w", "--", "go"], "go"), ([], None),
])  # fmt: skip
def test_the_prompt_may_stand_anywhere(argv: list[str], prompt: str | None) -> None:
    """Before flags, after them, or after `--`."""
    assert parse(argv).options.prompt == prompt


STREAM = ["--input-format", "stream-json"]


@pytest.mark.parametrize("argv, said", [
    (["--modle", "x"], "unknown flag `--modle`; did you mean `--model`?"),
    (["--from-the-future"], "unknown flag `--from-the-future`"),
    (["--mod", "x"], "unknown flag `--mod`"),
    (["--permission-mode", "pln"], "unknown mode `pln`; did you mean `plan`?"),
    (["--permission-mode", ""], "unknown mode ``; write one of default"),
    (["--max-turns", "many"], "expected a number of turns, got `many`; write `10`"),
    (["--max-turns", "0"], "expected a number of turns, got `0`"),
    (["--max-turns", "-1"], "expected a number of turns, got `-1`"),
    (["--cwd", "nowhere"], "`nowhere` is not a folder"),
    (["--system-prompt-file", "nowhere"], "`nowhere` cannot be read: No such file"),
    (["--system-prompt-file", "."], "`.` cannot be read: Is a directory"),
    (["--append-system-prompt-file", "nowhere"], "`nowhere` cannot be read"),
    (["--autocompact", "much"], "expected a number of tokens, got `much`"),
    (["--output-format", "xml"], "invalid choice: 'xml'"),
    (["--input-format", "xml"], "invalid choice: 'xml'"),
    (["--model"], "expected one argument"),
    (["--max-budget-usd", "much"], "expected an amount in US dollars, got `much`; write `0.50`"),
    (["--max-budget-usd", "0"], "expected an amount in US dollars, got `0`"),
    ([*STREAM, "--max-budget-usd=nan"], "expected an amount in US dollars, got `nan`"),
    (["--max-thinking-tokens", "-1"], "expected a number of tokens, got `-1`; write `8000`"),
    (["--permission-prompts", "some"], "invalid choice: 'some'"),
    ([*STREAM, "--max-turns", "many"], "expected a number of turns"),
])  # fmt: skip
def test_a_command_line_that_cannot_be_understood_is_refused(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 64, one line that says what to write, no traceback, and no run."""
    with pytest.raises(SystemExit) as left:
        parse(argv)

    assert left.value.code == 64
    assert said in capsys.readouterr().err


def test_a_host_newer_than_we_are_is_told_and_goes_on() -> None:
    """Only a host that drives us over stream-json: a person is told what to write."""
    parsed = parse([*STREAM, "--from-the-future", "value", "--thinking", "on", "--debug", "--trust"])

    assert parsed.options == RunOptions(input_format="stream-json", trust=True)
    assert parsed.passed_over == (
        "flag `--from-the-future` is unknown here and passed over", "flag `--thinking` has no effect here",
    )  # fmt: skip


def test_every_flag_has_a_line_of_help() -> None:
    """`hookline run --help` says what each is for."""
    made = parser()
    shown = made.format_help()

    told = {name: flag for name, flag in made.flags.items() if flag.help != argparse.SUPPRESS}
    assert [name for name, flag in told.items() if not flag.help or name not in shown] == []


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a script for the model and a hook on every end."""
    folder = tmp_path / "project"
    (folder / ".claude").mkdir(parents=True)
    command = f'{sys.executable} -c "{RECORD}"'
    entry = [{"hooks": [{"type": "command", "command": command, "timeout": 20}]}]
    hooks = dict.fromkeys(["SessionStart", "PreToolUse", "Stop", "SessionEnd"], entry)
    (folder / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))
    return folder


RUN = ("run", "--trust", "--model", "scripted:turns.json")


def _run(folder: Path, turns: list[Any], *flags: str) -> subprocess.CompletedProcess[str]:
    """To its end."""
    (folder / "turns.json").write_text(json.dumps(turns))
    env = clean_environ(folder.parent, PATH=os.environ["PATH"])
    return forked.as_text(forked.run([*RUN, *flags], cwd=folder, env=env))


def _start(folder: Path, turns: list[Any], *flags: str) -> subprocess.Popen[str]:
    (folder / "turns.json").write_text(json.dumps(turns))
    argv = [sys.executable, "-m", "hookline.cli.main", *RUN, *flags]
    env = clean_environ(folder.parent, PATH=os.environ["PATH"])
    pipe = subprocess.PIPE
    return subprocess.Popen(argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True)


def _events(folder: Path) -> list[str]:
    log = folder / "events.log"
    return log.read_text().split() if log.exists() else []


def _bash(command: str) -> dict[str, Any]:
    return {"tools": [["Bash", {"command": command}]]}


def test_text_output_is_the_words_of_the_agent(project: Path) -> None:
    """What the agent says is stdout; what it does is stderr; a run that went well is exit code 0."""
    run = _run(project, [{"text": "looking", **_bash("ls")}, {"text": "done"}], "-p", "go")
    out, err = run.stdout, run.stderr

    assert (run.returncode, out) == (0, "looking\ndone\n")
    assert '→ Bash {"command":"ls"}' in err
    assert _events(project) == ["SessionStart", "PreToolUse", "Stop", "SessionEnd"]


def test_verbose_text_explains_each_verdict(project: Path) -> None:
    """`-v` shows every hook, what it said and how long it took."""
    run = _run(project, [{"text": "done"}], "-p", "go", "-v")
    err = run.stderr

    assert "SessionStart" in err
    assert "nothing to say" in err


def test_json_output_is_the_result_alone(project: Path) -> None:
    """Scripts that want the end get one object."""
    run = _run(project, [{"text": "done"}], "-p", "go", "--output-format", "json")
    out = run.stdout
    result = json.loads(out)

    assert (result["type"], result["result"], result["is_error"]) == ("result", "done", False)


def test_a_model_that_cannot_answer_is_exit_code_1(project: Path) -> None:
    """The run ended in an error, and the session still ended in order."""
    run = _run(project, [{"status": 500}], "-p", "go", "--output-format", "stream-json", "--verbose")
    out = run.stdout

    assert run.returncode == 1
    assert json.loads(out.splitlines()[-1])["is_error"] is True
    assert _events(project)[-1] == "SessionEnd"


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_work_and_session_end_fires(project: Path, number: int, code: int) -> None:
    """Ctrl-C and SIGTERM kill the tool under way, not the ending."""
    run = _start(
        project, [_bash("echo $$ > begun; exec sleep 120"), {"text": "done"}], "-p", "go", "--allowedTools", "Bash"
    )
    _until(lambda: (project / "begun").exists() and (project / "begun").read_text().endswith("\n"), run)
    run.send_signal(number)
    run.communicate(timeout=60)

    assert run.returncode == code
    assert _events(project) == ["SessionStart", "PreToolUse", "SessionEnd"]
    assert not Path("/proc", (project / "begun").read_text().strip()).exists() or sys.platform != "linux"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_on_a_terminal_somebody_is_asked(tmp_path: Path) -> None:
    """What no rule allows is asked about; yes runs it."""
    import pty

    (tmp_path / "turns.json").write_text(json.dumps([_bash("touch made.txt"), {"text": "done"}]))
    argv = [sys.executable, "-m", "hookline.cli.main", "run", "--model", "scripted:turns.json", "make it"]
    ours, theirs = pty.openpty()
    env = clean_environ(tmp_path, PATH=os.environ["PATH"])
    run = subprocess.Popen(argv, cwd=tmp_path, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    while b"Allow?" not in shown:
        shown += os.read(ours, 4096)
    os.write(ours, b"y\n")
    while b"done" not in shown:
        shown += os.read(ours, 4096)
    os.close(ours)

    assert run.wait(60) == 0
    assert (tmp_path / "made.txt").exists()


def test_pieces_of_an_answer_are_told_when_asked_for(project: Path) -> None:
    """`--include-partial-messages` adds stream events before the whole message."""
    flags = ("-p", "go", "--output-format", "stream-json", "--include-partial-messages")
    out = _run(project, [{"text": "done"}], *flags).stdout
    kinds = [json.loads(line)["type"] for line in out.splitlines()]

    assert kinds[-8:] == [*["stream_event"] * 6, "assistant", "result"]


def test_untrusted_hooks_are_a_loud_error(project: Path) -> None:
    """Without `--trust` and without a terminal, a project's own hooks do not run, and neither does the agent."""
    (project / "turns.json").write_text("[]")
    words = ["run", "--model", "scripted:turns.json", "-p", "go"]
    env = clean_environ(project.parent, PATH=os.environ["PATH"])
    run = forked.as_text(forked.run(words, cwd=project, env=env))

    assert run.returncode == 1
    assert "trust" in run.stderr
    assert not _events(project)


def _until(condition: Any, run: subprocess.Popen[str], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


def test_a_hook_in_the_background_has_begun_before_the_end_cuts_it_off(project: Path) -> None:
    """`async_at_exit`: what was started last is given a moment, and is ended if that was not enough."""
    entry = {"type": "command", "command": "echo yes > begun; sleep 60; echo no > done", "async": True}
    settings = {"hooks": {"Stop": [{"hooks": [entry]}]}}
    (project / ".claude" / "settings.json").write_text(json.dumps(settings))
    run = _run(project, [{"text": "done"}], "-p", "go")

    assert run.returncode == 0
    assert (project / "begun").exists()
    assert not (project / "done").exists()


def test_a_command_that_says_no_is_reported_as_the_claude_cli_reports_it(project: Path) -> None:
    """`--include-hook-events`: any exit code but 0 is the outcome `error`, the one that blocks included."""
    entries = [{"type": "command", "command": "echo no >&2; exit 2"}, {"type": "command", "command": "true"}]
    settings = {"hooks": {"PreToolUse": [{"hooks": entries}]}}
    (project / ".claude" / "settings.json").write_text(json.dumps(settings))
    flags = ("--output-format", "stream-json", "--verbose", "--include-hook-events")
    out = _run(project, [_bash("ls"), {"text": "done"}], "-p", "go", *flags).stdout
    said = [json.loads(line) for line in out.splitlines()]
    ends = [(one["exit_code"], one["outcome"]) for one in said if one.get("subtype") == "hook_response"]

    assert sorted(ends) == [(0, "success"), (2, "error")]


@pytest.mark.parametrize(
    "flags, words",
    [
        (("--settings", "{ not json"), "--settings: is not JSON"),
        (("--settings", "nowhere.json"), "no such file"),
        (("--setting-sources", "user,nope"), "unknown source `nope`"),
    ],
)
def test_settings_that_were_asked_for_and_are_not_there_end_the_run(
    project: Path, flags: tuple[str, ...], words: str
) -> None:
    """As the Claude CLI does: guards given on the command line are not silently missing."""
    run = _run(project, [{"text": "done"}], "-p", "go", *flags)
    out, err = run.stdout, run.stderr

    assert (run.returncode, out) == (1, "")
    assert words in err.splitlines()[-1]
    assert _events(project) == []


def test_continuing_where_nothing_was_said_yet_begins(project: Path) -> None:
    """`--continue` in a new folder is no error, as with the Claude CLI."""
    run = _run(project, [{"text": "done"}], "-p", "go", "--continue")
    out = run.stdout

    assert (run.returncode, out) == (0, "done\n")


def test_what_session_end_starts_in_the_background_comes_to_its_end(project: Path) -> None:
    """`async` on SessionEnd: nobody waits for it, and nobody ends it."""
    os.mkfifo(project / "done")
    entry = {"type": "command", "command": "sleep 0.6; echo yes > done", "async": True}
    settings = {"hooks": {"SessionEnd": [{"hooks": [entry]}]}}
    (project / ".claude" / "settings.json").write_text(json.dumps(settings))
    _run(project, [{"text": "done"}], "-p", "go")

    assert (project / "done").read_text() == "yes\n"


@pytest.mark.parametrize("prompt", [("-p", ""), ("-p",)])
def test_no_prompt_is_an_error_of_a_session_that_began_and_ended(project: Path, prompt: tuple[str, ...]) -> None:
    """As with the Claude CLI: nothing reaches the model, and the exit code says so."""
    run = _run(project, [{"text": "done"}], *prompt)
    out, err = run.stdout, run.stderr

    assert (run.returncode, out) == (1, "")
    assert "there is no prompt" in err
    assert _events(project) == ["SessionStart", "SessionEnd"]


STOPPING = '{"continue": false, "stopReason": "enough for today"}'


@pytest.mark.parametrize("event", ["Stop", "PreToolUse"])
def test_a_stop_is_shown_with_its_reason_and_the_answer_once(event: str, project: Path) -> None:
    """The user reads why the agent stopped; what it said is not said twice."""
    entry = [{"hooks": [{"type": "command", "command": f"echo '{STOPPING}'"}]}]
    (project / ".claude" / "settings.json").write_text(json.dumps({"hooks": {event: entry}}))
    run = _run(project, [{"text": "looking", **_bash("ls")}, {"text": "my answer"}], "-p", "go")
    out, err = run.stdout, run.stderr

    assert "enough for today" in err
    assert out.count("my answer") == (1 if event == "Stop" else 0)
    assert out.count("looking") == 1


@pytest.mark.parametrize("form", ["json", "stream-json"])
def test_what_a_hook_prints_does_not_get_between_the_lines(form: str, project: Path) -> None:
    """Programs read stdout: every line of it is a message of ours."""
    (project / "hooks.py").write_text(
        "import os, subprocess, sys\n"
        "from hookline import Hooks, deny\n"
        "hooks = Hooks()\n"
        "print('at import')\n"
        "@hooks.on('PreToolUse', 'Stop', 'SessionStart', 'SessionEnd')\n"
        "async def noisy(event):\n"
        "    print('noise', end=''); os.write(1, b'noise'); subprocess.run('echo noise', shell=True)\n"
        "    return deny('never') if event.event_name == 'PreToolUse' else None\n"
    )
    turns = [_bash("echo ran > out.txt"), {"text": "done"}]
    run = _run(project, turns, "-p", "go", "--hooks", "hooks.py", "--output-format", form)
    out, err = run.stdout, run.stderr
    said = [json.loads(line) for line in out.splitlines()]

    assert said[-1]["result"] == "done"
    assert not (project / "out.txt").exists()
    assert "noise" in err


def test_what_hooks_tell_the_user_is_in_the_transcript(project: Path) -> None:
    """A `systemMessage` is part of what happened; the model is not told of it."""
    entry = [{"hooks": [{"type": "command", "command": 'echo \'{"systemMessage": "mind the gap"}\''}]}]
    (project / ".claude" / "settings.json").write_text(json.dumps({"hooks": {"UserPromptSubmit": entry}}))
    _run(project, [{"text": "done"}], "-p", "go")
    [transcript] = (project.parent / ".claude" / "projects").glob("*/*.jsonl")
    entries = [json.loads(line) for line in transcript.read_text().splitlines()]

    assert [one["content"] for one in entries if one.get("subtype") == "informational"] == [
        "UserPromptSubmit says: mind the gap"
    ]


def test_output_that_a_hook_suppresses_is_not_shown(project: Path) -> None:
    """`suppressOutput`: its stdout is left out of the hook's response, and its decision holds."""
    said = '{"suppressOutput": true, "reason": "SECRET", "decision": "block"}'
    entry = [{"hooks": [{"type": "command", "command": f"echo '{said}'"}]}]
    (project / ".claude" / "settings.json").write_text(json.dumps({"hooks": {"UserPromptSubmit": entry}}))
    run = _run(project, [{"text": "done"}], "-p", "go", "--output-format", "stream-json", "--include-hook-events")
    out = run.stdout
    [response] = [one for line in out.splitlines() if (one := json.loads(line)).get("subtype") == "hook_response"]

    assert (response["stdout"], response["output"]) == ("", "")


@pytest.mark.parametrize("path", [".", "nowhere/a/log", "/proc/log"])
def test_an_audit_log_that_cannot_be_written_is_refused(path: str, project: Path) -> None:
    """No traceback, and no run without the log that was asked for."""
    run = _run(project, [{"text": "done"}], "-p", "go", "--audit", path)
    out, err = run.stdout, run.stderr

    assert (run.returncode, out) == (64, "")
    assert f"argument --audit: `{path}` cannot be written: " in err
    assert "Traceback" not in err


def test_a_denial_is_the_loudest_line(project: Path) -> None:
    """One line that names the call, the reason and the hook; red where there is colour. A rule's is as loud."""
    settings = {
        "hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "echo not here >&2; exit 2"}]}]},
        "permissions": {"deny": ["Read(secret)"]},
    }
    (project / ".claude" / "settings.json").write_text(json.dumps(settings))
    turns = [_bash("rm -rf build"), {"text": "I was not allowed to."}]
    err = _run(project, turns, "-p", "go").stderr
    (loud,) = [line for line in err.splitlines() if "DENY" in line]

    assert loud.startswith("✗ DENY Bash")
    assert "rm -rf build" in loud
    assert "not here" in loud

    (project / ".claude" / "settings.json").write_text(json.dumps({"permissions": {"deny": ["Bash(rm *)"]}}))
    err = _run(project, turns, "-p", "go").stderr
    assert [line[:11] for line in err.splitlines() if "DENY" in line] == ["✗ DENY Bash"]


@pytest.mark.skipif(bool(unavailable()), reason=unavailable() or "lines can be held")
def test_the_whole_agent_runs_in_a_sandbox(project: Path) -> None:
    """Its tools write in the project and nowhere else, reach no address, and its hooks still run."""
    outside = project.parent / "outside"
    line = f"echo hi > made; echo x > {outside}; (exec 3<>/dev/tcp/11.0.0.1/80) 2>&1; echo ended"
    turns = [{"tools": [["Bash", {"command": line}]]}, {"text": "all done"}]
    (project / "turns.json").write_text(json.dumps(turns))
    env = clean_environ(project.parent, PATH=os.environ["PATH"])
    words = [sys.executable, "-m", "hookline", *RUN, "--sandbox", "--dangerously-skip-permissions", "go"]
    done = subprocess.run(words, cwd=project, env=env, capture_output=True, text=True, check=False, timeout=60)

    assert (done.returncode, "all done" in done.stdout) == (0, True), done
    assert ((project / "made").read_text(), outside.exists()) == ("hi\n", False)
    assert "refused to connect to 11.0.0.1:80" in done.stderr
