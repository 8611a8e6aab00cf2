"""`hookline fire`: what is printed, and with which exit code it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests import forked
from tests.cli.place import HOOKLINE, Place, command, denies

BASH = ("PreToolUse", "--tool", "Bash", "--input", '{"command": "rm -rf /"}', "--trust")


def test_a_block_is_explained_and_exits_2(place: Place) -> None:
    """The headline says who and why; each hook has a line."""
    place.hooks("PreToolUse", denies("never"), command("true", name="fine"))
    done = place.run("fire", *BASH)

    assert done.returncode == 2, done.stderr
    assert done.stdout.splitlines()[0] == "PreToolUse(Bash) → DENY by no: [echo 'never' >&2; exit 2]: never"
    assert "► no" in done.stdout
    assert "✓ fine" in done.stdout
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stderr == ""


def test_what_is_allowed_exits_0(place: Place) -> None:
    """Hooks that were not asked are named, with the reason."""
    place.write(
        ".claude/settings.json",
        {
            "hooks": {
                "PreToolUse": [
                    {"matcher": "Write", "hooks": [command("a", name="writes")]},
                    {"hooks": [command("true", name="gits", **{"if": "Bash(git *)"}), command("true", name="all")]},
                ],
                "Stop": [{"hooks": [command("b", name="stops")]}],
            }
        },
    )
    done = place.run("fire", *BASH)

    assert done.returncode == 0, done.stderr
    assert "✓ all" in done.stdout
    assert "  · writes was not asked: its matcher `Write` does not match `Bash`" in done.stdout
    assert "  · gits was not asked: its condition `Bash(git *)` does not hold" in done.stdout
    assert "stops" not in done.stdout


def test_json_is_one_object(place: Place) -> None:
    """The keys of DESIGN, and nothing else on stdout."""
    place.hooks("PreToolUse", denies("never"))
    done = place.run("fire", *BASH, "--json")
    said = json.loads(done.stdout)

    assert done.returncode == 2
    assert list(said) == [
        "event", "decision", "blocked", "reason", "decided_by", "input", "output", "stop", "stop_reason", "keep_going",
        "context", "messages", "suppress_output", "outcomes",
    ]  # fmt: skip
    assert (said["event"], said["decision"], said["decided_by"]) == ("PreToolUse", "deny", "no")
    assert said["input"] == {"command": "rm -rf /"}
    assert said["outcomes"][0]["status"] == "ok"
    assert said["outcomes"][0]["exit_code"] == 2


def test_the_event_may_come_on_stdin(place: Place) -> None:
    """With flags on top, and `cwd` from the project."""
    place.hooks("UserPromptSubmit", command("cat > seen.json"))
    event = {"hook_event_name": "UserPromptSubmit", "prompt": "hello", "session_id": "s9", "novel": 1}
    done = place.run("fire", "--trust", "--field", "prompt=bye", "--field", "n=[1]", stdin=json.dumps(event))

    assert done.returncode == 0, done.stderr
    seen = json.loads((place.project / "seen.json").read_text())
    assert (seen["prompt"], seen["session_id"], seen["cwd"]) == ("bye", "s9", str(place.project))
    assert (seen["novel"], seen["n"]) == (1, [1])


def test_late_answers_are_waited_for(place: Place) -> None:
    """A hook in the background is shown with what it said in the end."""
    said = '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": "by the way"}}'
    place.hooks("PreToolUse", command(f"echo '{said}'", name="late", **{"async": True}))
    done = place.run("fire", *BASH)

    assert "… late, later: by the way" in done.stdout


@pytest.mark.parametrize(
    "argv, stdin, code, said",
    [
        (["PreToolUs"], "", 1, "hookline fire: unknown event `PreToolUs`; did you mean `PreToolUse`"),
        (["-"], "{", 1, "hookline fire: event: not JSON"),
        (["-"], "[1]", 1, "hookline fire: event: expected a JSON object, got an array"),
        (["-"], "", 1, "hookline fire: event: "),
        (["-"], "{}", 1, "hookline fire: "),
        (["PreToolUse", "--input", "{a"], "", 1, "hookline fire: --input: not JSON"),
        (["PreToolUse", "--field", "x"], "", 1, "hookline fire: --field: expected NAME=VALUE, got `x`"),
        (["PreToolUse", "--field", "tool_input=7"], "", 1, "tool_input"),
        (["Stop", "--project", "nowhere"], "", 1, "nowhere: no such folder; name the project's folder with"),
        (["Stop", "--hooks", "nowhere.py"], "", 1, "nowhere.py: no such file; name a Python file"),
        (["PreToolUse", "--wat"], "", 64, "hookline fire: unrecognized arguments: --wat"),
        (["PreToolUse", "--tool"], "", 64, "hookline fire: argument --tool: expected one argument"),
    ],
)
def test_bad_input_is_one_line_and_never_exit_code_2(
    argv: list[str], stdin: str, code: int, said: str, place: Place
) -> None:
    """Two would mean blocked."""
    done = place.run("fire", *argv, stdin=stdin)

    assert done.returncode == code
    assert said in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_what_is_wrong_with_the_files_is_said_and_the_rest_counts(place: Place) -> None:
    """On stderr, one line each; stdout stays clean."""
    place.hooks("PreToolUse", {"type": "comand", "command": "x"}, denies("still"))
    done = place.run("fire", *BASH, "--json")

    assert json.loads(done.stdout)["blocked"] is True
    assert done.stderr.startswith(
        "hookline: .claude/settings.json: hooks.PreToolUse[0].hooks[0].type: unknown kind of hook"
    )
    assert len(done.stderr.splitlines()) == 1


def test_without_a_terminal_untrusted_hooks_are_an_error(place: Place) -> None:
    """It names the command to run; nothing ran."""
    place.hooks("PreToolUse", command("touch ran"))
    done = place.run("fire", *BASH[:-1])

    assert done.returncode == 1
    assert "hook that is not trusted yet" in done.stderr
    assert "run `hookline trust`" in done.stderr
    assert not (place.project / "ran").exists()


def test_hooks_of_a_python_file(place: Place) -> None:
    """In place of settings files."""
    place.write(
        "mine.py",
        """
from hookline import Hooks, deny
hooks = Hooks()

@hooks.on("PreToolUse", when=lambda event: event.tool_name == "Bash")
def never(event):
    return deny("not today")

@hooks.on("PreToolUse", when=lambda event: False)
def silent(event):
    return None
""",
    )
    done = place.run("fire", "PreToolUse", "--tool", "Bash", "--hooks", "mine.py")

    assert done.returncode == 2, done.stderr
    assert done.stdout.startswith("PreToolUse(Bash) → DENY by never: not today\n")
    assert "· silent was not asked: its predicate said no" in done.stdout


@pytest.mark.parametrize(
    "text, said",
    [("import nothing_there", "cannot be imported: ModuleNotFoundError"), ("x = 1", "defines no `hooks`")],
)
def test_a_python_file_that_has_none(text: str, said: str, place: Place) -> None:
    """The error says what to write."""
    place.write("mine.py", text)
    done = place.run("fire", "Stop", "--hooks", "mine.py")

    assert done.returncode == 1
    assert f"hookline fire: mine.py: {said}" in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="signals and process groups")
@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_hooks_too(number: signal.Signals, code: int, place: Place) -> None:
    """Ctrl-C and TERM leave no process behind."""
    place.hooks("PreToolUse", command("echo $$ > pid; sleep 300 & wait"))
    running = subprocess.Popen(
        [*HOOKLINE, "fire", *BASH], cwd=place.project, env=place.env, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    file = place.project / "pid"
    _until(lambda: file.exists() and file.read_text().strip() != "")
    running.send_signal(number)
    _, errors = running.communicate(timeout=60)

    assert running.returncode == code, errors
    assert b"Traceback" not in errors
    group = int(file.read_text())
    _until(lambda: not _alive(group))


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_prompt_hooks_ask_the_model_that_is_named(place: Place) -> None:
    """Without an agent too: `--model` names who judges."""
    answer = {"text": '{"ok": false, "reason": "not like this"}'}
    place.write("turns.json", {"lanes": {"judge": {"last": "is this fine", "turns": [answer]}}})
    place.hooks("PreToolUse", {"type": "prompt", "prompt": "is this fine?", "continueOnBlock": True})
    done = place.run("fire", *BASH, "--model", "scripted:turns.json", "--json")

    assert done.returncode == 2, done.stderr
    assert json.loads(done.stdout)["reason"] == "[is this fine?]: not like this"


def test_a_model_that_is_missing_is_a_failure_of_the_hook(place: Place) -> None:
    """What to set is said; the other hooks are asked all the same."""
    place.hooks("PreToolUse", {"type": "prompt", "prompt": "fine?"}, denies("anyway"))
    done = place.run("fire", *BASH, "--json", ANTHROPIC_API_KEY="", ANTHROPIC_AUTH_TOKEN="")

    assert done.returncode == 2, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    assert [outcome["status"] for outcome in said["outcomes"]] == ["failed", "ok"]
    assert "ANTHROPIC_API_KEY" in said["outcomes"][0]["error"]


def test_mcp_tools_of_the_servers_that_are_named(place: Place, contract: Any) -> None:
    """`--mcp-config` takes the servers, which are started and ended."""
    servers = {"mcpServers": {"srv": {"command": sys.executable, "args": [str(contract / "mcp_server.py")]}}}
    deny = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
                                   "permissionDecisionReason": "${tool_input.command} is bad"}}  # fmt: skip
    place.hooks(
        "PreToolUse", {"type": "mcp_tool", "server": "srv", "tool": "echo", "input": {"text": json.dumps(deny)}}
    )
    done = place.run("fire", *BASH, "--mcp-config", json.dumps(servers), "--json")

    assert done.returncode == 2, done.stderr
    assert json.loads(done.stdout)["reason"] == "rm -rf / is bad"


PASSES = ("PreToolUse", "--tool", "Bash", "--trust")


@pytest.mark.parametrize(
    "settings, argv, said",
    [
        ('{"hooks": ', (), "not JSON"),
        ("[1]", (), "expected an object"),
        ("", (), ".claude/settings.json"),
        ({}, ("--settings", "nowhere.json"), "nowhere.json: no such file"),
        ({}, ("--settings", '{"hooks": '), "not JSON"),
        ({}, ("--setting-sources", "projct"), "unknown source `projct`; did you mean `project`?"),
        ({}, ("--plugin-dir", "nowhere"), "nowhere"),
        ({"hooks": {"PreTolUse": [{"hooks": [command("exit 2")]}]}}, (), "unknown event `PreTolUse`"),
        ({"hooks": {"PreToolUse": [{"hooks": [command("exit 2", timout=5)]}]}, "x": 1}, (), ""),
        ({"hook": {"PreToolUse": [{"hooks": [command("exit 2")]}]}}, (), "unknown key `hook`"),
        ({"hooks": {"PreToolUse": [{"hooks": [{"type": "comand", "command": "exit 2"}]}]}}, (), "unknown kind of hook"),
        ({"hooks": {"PreToolUse": [{"matcher": "(", "hooks": [command("exit 2")]}]}}, (), "matches nothing"),
    ],
)
def test_a_gate_that_cannot_run_is_an_error_and_not_a_pass(
    settings: Any, argv: tuple[str, ...], said: str, place: Place
) -> None:
    """Whatever a hook in there would have said: nobody was asked, so nothing was allowed."""
    place.write(".claude/settings.json", settings)
    done = place.run("fire", *PASSES, *argv)

    assert done.returncode == (2 if "timout" in str(settings) else 1), done.stdout
    assert said in done.stderr


@pytest.mark.parametrize("argv", [("fire", *PASSES), ("list",), ("check",), ("pipe", "--trust")])
def test_a_command_started_in_a_folder_of_the_project_finds_it(argv: tuple[str, ...], place: Place) -> None:
    """As git does; a repository of its own is a project of its own."""
    place.hooks("PreToolUse", denies("never"))
    inner, apart = place.project / "src" / "deep", place.project / "vendor" / "lib"
    inner.mkdir(parents=True)
    (apart / ".git").mkdir(parents=True)
    event = json.dumps({"hook_event_name": "PreToolUse", "tool_name": "Bash"})

    def run(folder: Any) -> str:
        return forked.as_text(forked.run(argv, cwd=folder, env=place.env, stdin=event.encode())).stdout

    def steady(text: str) -> str:
        return "".join(char for char in text if not char.isdigit())

    assert run(place.project)
    assert steady(run(inner)).split() == steady(run(place.project)).split()
    assert steady(run(apart)) != steady(run(place.project))


@pytest.mark.parametrize("flags", [(), ("--json",)], ids=["text", "json"])
def test_a_reason_that_is_not_valid_unicode_is_still_a_deny(flags: tuple[str, ...], place: Place) -> None:
    """Exit code 2, as for any other reason."""
    place.write("hooks.py", "from hookline import *\nfrom hookline.events import PreToolUse\nhooks = Hooks()\n"
                "hooks.add(PreToolUse, lambda event: deny('no \\ud800'))\n")  # fmt: skip
    fired = place.run("fire", "PreToolUse", "--tool", "Bash", "--hooks", "hooks.py", *flags)

    assert (fired.returncode, fired.stderr) == (2, "")
    assert "\\ud800" in fired.stdout


def test_the_input_may_come_from_stdin_or_a_file(place: Place) -> None:
    """`--input -` and `--input @FILE`, as curl has it."""
    place.hooks("PreToolUse", command("grep -q secret && exit 2; exit 0"))
    place.write("call.json", {"command": "secret"})
    flags = ("fire", "PreToolUse", "--tool", "Bash", "--trust", "--input")
    piped, filed = place.run(*flags, "-", stdin='{"command": "secret"}'), place.run(*flags, "@call.json")
    gone = place.run(*flags, "@gone.json")

    assert (piped.returncode, filed.returncode, gone.returncode) == (2, 2, 1)
    assert gone.stderr == "hookline fire: --input: cannot read `gone.json`: no such file or directory\n"
