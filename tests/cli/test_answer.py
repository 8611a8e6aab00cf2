"""`hookline answer HOST`: in time and in the host's words, whatever happens."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hookline.cli.commands.answer import parsed
from hookline.hosts.table import HOSTS, find
from tests import forked
from tests.environ import clean_environ
from tests.hosts.battery import recorded

HOOKS = """
import ctypes, os, sys, time
from hookline import Hooks, deny, rewrite, stop
from hookline.events import PostToolUse, PreToolUse, UserPromptSubmit

hooks = Hooks()

@hooks.on(PreToolUse, match="Bash")
def judge(event):
    word = event.tool_input["command"].split()[-1]
    print("noise on stdout", flush=True)
    if word == "deny": return deny("because")
    if word == "stop": return stop("enough")
    if word == "raise": raise ValueError("boom")
    if word == "exit": sys.exit(0)
    if word == "end": os._exit(0)
    if word == "hang": time.sleep(600)
    if word == "lock": ctypes.PyDLL(None).sleep(600)
    if word == "nonsense": return {"decision": 3}
    if word == "close": os.closerange(0, 256)
    if word == "exec": os.execv("/bin/echo", ["echo", "{}"])
    if word == "fork" and os.fork(): os._exit(0)  # and the child goes on, with nothing to say
    if word == "flood":
        os.write(1, b"x" * 5_000_000)
        return deny("after the flood")
    if word == "rewrite": return rewrite({**event.tool_input, "command": "echo changed"})

@hooks.on(PostToolUse)
def after(event):
    raise ValueError("boom")
"""


def answer(
    host: str, payload: Any, *flags: str, cwd: Path, deadline: float = 60, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run the command as a host would: from anywhere, with next to no environment."""
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    words = ["answer", host, *flags, "--deadline", str(deadline)]
    return hookline(*words, cwd=cwd, env=clean_environ(cwd, **(env or {})), stdin=data)


def hookline(
    *words: str, cwd: Path, env: Mapping[str, str] = os.environ, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """The command to its end."""
    return forked.run(words, cwd=cwd, env=env, stdin=stdin, module="hookline.__main__")


@pytest.fixture
def hooks(tmp_path: Path) -> tuple[str, str]:
    file = tmp_path / "my hooks.py"
    file.write_text(HOOKS)
    return "--hooks", str(file)


def bash(command: str, **more: Any) -> dict[str, Any]:
    return {
        "hook_event_name": "PreToolUse",
        "cwd": "/p",
        "tool_name": "Bash",
        "tool_input": {"command": command},
        **more,
    }


def denial(run: subprocess.CompletedProcess[bytes]) -> str:
    """The reason of a deny in Codex's words."""
    said = json.loads(run.stdout)["hookSpecificOutput"]
    assert said["permissionDecision"] == "deny"
    assert run.returncode == 0
    return str(said["permissionDecisionReason"])


def test_what_the_hooks_allow_is_answered_with_silence(hooks: tuple[str, str], tmp_path: Path) -> None:
    """And what a hook prints does not end up in the answer."""
    run = answer("codex", bash("echo hi"), *hooks, cwd=tmp_path)

    assert (run.returncode, run.stdout, run.stderr) == (0, b"", b"")


def test_a_deny_has_its_reason(hooks: tuple[str, str], tmp_path: Path) -> None:
    """The hook's own words."""
    assert denial(answer("codex", bash("deny"), *hooks, cwd=tmp_path)) == "because"


@pytest.mark.parametrize("word, told", [
    ("stop", "enough"), ("raise", "boom"), ("exit", "fails closed"), ("end", "without an answer (exit code 0)"),
    ("nonsense", "fails closed"), ("close", "without an answer"), ("exec", "without an answer"),
    ("fork", "without an answer"), ("flood", "after the flood"),
])  # fmt: skip
def test_whatever_a_hook_does_is_a_deny(word: str, told: str, hooks: tuple[str, str], tmp_path: Path) -> None:
    """Raising, exiting, ending or replacing the process, closing its files, leaving a fork: the call does not run."""
    assert told in denial(answer("codex", bash(word), *hooks, cwd=tmp_path))


@pytest.mark.parametrize("word", ["hang", "lock"])
def test_hooks_that_hang_are_denied_in_time(word: str, hooks: tuple[str, str], tmp_path: Path) -> None:
    """Also when a call holds the interpreter, as a regular expression without an end does."""
    started = time.monotonic()

    reason = denial(answer("codex", bash(word), *hooks, cwd=tmp_path, deadline=4))

    assert "gave no" in reason
    assert time.monotonic() - started < 60


FILES = {
    "missing": (None, "no such file"),
    "broken": ("def (:\n", "cannot be imported"),
    "raising": ("raise RuntimeError('no')\n", "cannot be imported"),
    "exiting": ("import sys; sys.exit(0)\n", "cannot be imported: SystemExit"),
    "ending": ("import os; os._exit(0)\n", "without an answer"),
    "hanging": ("import time; time.sleep(600)\n", "in time"),
    "empty": ("", "defines no `hooks`"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_hook_file_that_cannot_be_had_is_a_deny(name: str, tmp_path: Path) -> None:
    """Missing, broken, hanging: it says which file."""
    text, told = FILES[name]
    file = tmp_path / "hooks.py"
    if text is not None:
        file.write_text(text)

    deadline = 5 if name == "hanging" else 60
    assert told in denial(answer("codex", bash("echo hi"), "--hooks", str(file), cwd=tmp_path, deadline=deadline))


UNREADABLE = [
    b"",
    b"garbage",
    b"[]",
    b"{}",
    b"\xff\xfe",
    b'{"hook_event_name": 3}',
    b'{"hook_event_name": "PreToolUse"}',
    b'{"hook_event_name": "Nonsense"}',
    b'{"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": "x"}',
]


@pytest.mark.parametrize("payload", UNREADABLE)
@pytest.mark.parametrize("host", ["codex", "gemini", "vibe", "cline"])
def test_a_payload_that_cannot_be_read_is_a_deny(
    host: str, payload: bytes, hooks: tuple[str, str], tmp_path: Path
) -> None:
    """On a gate, whoever cannot be judged is not let through."""
    event = next(theirs for theirs, ours in HOSTS[host].events.items() if ours == "PreToolUse")

    run = answer(host, payload, *hooks, "--event", event, cwd=tmp_path)

    said = json.loads(run.stdout)
    assert "deny" in json.dumps(said) or said.get("cancel") is True or "denied: " in json.dumps(said)
    assert b"could not be asked" in run.stdout


@pytest.mark.parametrize("flags", [["--nonsense", "x"], ["stray"], ["--deadline", "soon"]])
def test_a_command_line_that_somebody_broke_is_a_deny(flags: list[str], hooks: tuple[str, str], tmp_path: Path) -> None:
    """The host would run the tool otherwise."""
    run = hookline("answer", "codex", *hooks, *flags, cwd=tmp_path, stdin=json.dumps(bash("echo hi")).encode())

    assert denial(run)


def test_a_failure_after_the_fact_denies_nothing(hooks: tuple[str, str], tmp_path: Path) -> None:
    """There is nothing left to prevent."""
    payload = {**bash("echo hi"), "hook_event_name": "PostToolUse", "tool_response": "hi"}

    run = answer("codex", payload, *hooks, cwd=tmp_path)

    assert (run.returncode, run.stdout) == (0, b"")


def test_an_input_that_never_ends_is_a_deny(hooks: tuple[str, str], tmp_path: Path) -> None:
    """A host that keeps its end open is answered all the same."""
    read, write = os.pipe()
    words = [sys.executable, "-m", "hookline", "answer", "codex", *hooks, "--event", "PreToolUse", "--deadline", "2"]
    with subprocess.Popen(words, stdin=read, stdout=subprocess.PIPE, cwd=tmp_path) as process:
        out, _ = process.communicate(timeout=60)
    os.close(read)
    os.close(write)

    assert b'"permissionDecision":"deny"' in out


def test_grok_is_answered_once_and_as_grok(hooks: tuple[str, str], tmp_path: Path) -> None:
    """It runs Claude Code's hooks, too: they judge its tools by our names, unless those are asked by its own file."""
    sample = next(s["payload"] for s in recorded("grok") if s["event"] == "PreToolUse")
    payload = {**sample, "tool_input": {"command": "deny"}, "toolInput": {"command": "deny"}}
    command = ("claude", payload, *hooks, "--event", "PreToolUse")

    alone = answer(*command, cwd=tmp_path)
    hookline("install", "grok", *hooks, cwd=tmp_path, env={**os.environ, "HOME": str(tmp_path)}).check_returncode()
    own = answer("grok", payload, *hooks, "--event", "PreToolUse", cwd=tmp_path)
    date_notes(tmp_path, time.time() + 60)
    beside = answer(*command, cwd=tmp_path)

    assert denial(alone) == "because"
    assert (beside.returncode, beside.stdout) == (0, b"")
    assert denial(own) == "because"


def test_settings_files_work_as_well(tmp_path: Path) -> None:
    """Claude Code's hooks for another host."""
    out = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
                                  "permissionDecisionReason": "from a file"}}  # fmt: skip
    script = tmp_path / "hook.sh"
    script.write_text(f"cat >/dev/null; printf '%s' '{json.dumps(out)}'\n")
    settings = tmp_path / "settings.json"
    hook = {"type": "command", "command": f"sh {script}"}
    settings.write_text(json.dumps({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}}))
    payload = next(s["payload"] for s in recorded("gemini") if s["event"] == "BeforeTool")

    run = answer(
        "gemini", {**payload, "cwd": str(tmp_path)}, "--settings", str(settings), "--event", "BeforeTool", cwd=tmp_path
    )

    assert json.loads(run.stdout) == {"decision": "deny", "reason": "from a file"}


def test_help_says_what_it_is_for(tmp_path: Path) -> None:
    """For people who find it in a file."""
    run = hookline("answer", "--help", cwd=tmp_path)

    assert run.returncode == 0
    assert b"hookline install" in run.stdout


class TwoScopes:
    """The same hooks in the user's file and in the project's, and each entry's answer to a call that they deny."""

    def __init__(self, home: Path, hooks: tuple[str, str], host: str = "claude") -> None:
        self.home, self.hooks, self.host = home, hooks, host
        words = ["install", host, *hooks]
        env = clean_environ(home)
        self.project = home / "project"
        self.project.mkdir()
        for scope in ("user", "project"):
            hookline(*words, "--scope", scope, cwd=self.project, env=env).check_returncode()

    def denies(self, scope: str, host: str = "", **more: Any) -> bool:
        payload = {**bash("x deny", session_id="s1"), **more}
        flags = (*self.hooks, "--event", "PreToolUse", "--scope", scope)
        done = answer(host or self.host, payload, *flags, cwd=self.project, env={"HOME": str(self.home)})
        return b"because" in done.stdout


def date_notes(home: Path, moment: float) -> None:
    """Have the user's entry seem to have been asked at that moment: how long ago it was is up to a busy machine."""
    notes = list(home.rglob("asked/*"))
    assert notes
    for note in notes:
        os.utime(note, (moment, moment))


def test_an_event_is_judged_once_where_both_scopes_are_asked(tmp_path: Path, hooks: tuple[str, str]) -> None:
    """The project's entry is silent, as the user's is being asked."""
    both = TwoScopes(tmp_path, hooks)
    user = both.denies("user")
    date_notes(tmp_path, time.time() + 60)

    assert [user, both.denies("project")] == [True, False]


@pytest.mark.parametrize("host", ["claude", "codex"])
def test_an_entry_that_the_agent_does_not_run_leaves_no_gap(tmp_path: Path, hooks: tuple[str, str], host: str) -> None:
    """`claude --setting-sources project`, an untrusted file of Codex: the user's entry is there and never asked."""
    both = TwoScopes(tmp_path, hooks, host)

    assert [both.denies("project"), both.denies("project")] == [True, True]


@pytest.mark.parametrize("more", [{"session_id": "s2"}, {"session_id": ""}, {"session_id": None}])
def test_a_note_is_good_for_its_own_session_only(tmp_path: Path, hooks: tuple[str, str], more: dict[str, Any]) -> None:
    """Another session may read other files; without a session nobody can tell."""
    both = TwoScopes(tmp_path, hooks)

    assert [both.denies("user"), both.denies("project", **more)] == [True, True]


def test_an_old_note_is_good_for_nothing(tmp_path: Path, hooks: tuple[str, str]) -> None:
    """The session was resumed with other flags: the user's entry is no longer asked."""
    both = TwoScopes(tmp_path, hooks)
    assert both.denies("user")
    date_notes(tmp_path, 1)

    assert both.denies("project")


@pytest.mark.parametrize("order", [("user", "project"), ("project", "user")])
def test_a_projects_file_that_is_read_instead_of_the_users_asks_both(order: list[str], tmp_path: Path) -> None:
    """OpenHands reads only one of them; both files' hooks hold, whatever was installed first."""
    project = tmp_path / "project"
    project.mkdir()
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "HOOKLINE_SERVICE": "0"}
    for scope in order:
        file = tmp_path / f"{scope}.py"
        file.write_text(HOOKS.replace('word == "deny"', f'word == "{scope}"').replace("because", f"because of {scope}"))
        words = ["install", "openhands", "--hooks", str(file), "--scope", scope]
        hookline(*words, cwd=project, env=env).check_returncode()
    command = json.loads((project / ".openhands/hooks.json").read_text())["hooks"]["PreToolUse"][0]["hooks"][0][
        "command"
    ]

    for scope in order:
        call = {"event_type": "PreToolUse", "tool_name": "terminal", "tool_input": {"command": scope}}
        run = subprocess.run(["sh", "-c", command], input=json.dumps(call).encode(), cwd=project, env=env, check=True,
                             capture_output=True)  # fmt: skip
        assert json.loads(run.stdout) == {"decision": "deny", "reason": f"because of {scope}"}


def test_no_flag_makes_us_answer_after_the_host_has_given_up() -> None:
    """An entry can be edited; what the host was measured to wait stays."""
    for name, given, seconds in [("qwen", "590", 45), ("cline", "1e9", 100), ("qwen", "inf", 45), ("qwen", "3", 3)]:
        options, problem = parsed(find(name), ["--deadline", given])
        assert (options.deadline, problem) == (seconds, ""), (name, given)
    for given in ("nan", "-1", "0", "soon"):
        assert "expected seconds" in parsed(find("qwen"), ["--deadline", given])[1], given


def test_a_flag_that_stands_twice_is_refused() -> None:
    """One of two hook files would not be asked."""
    assert "`--hooks` stands twice" in parsed(find("codex"), ["--hooks", "a.py", "--hooks=b.py"])[1]


def test_a_subagent_that_no_hook_would_see_is_not_started(tmp_path: Path) -> None:
    """Where that was measured, or was not measured at all; the command that was installed may allow it."""
    (tmp_path / "hooks.py").write_text(HOOKS)
    spawn = {"event_type": "PreToolUse", "tool_name": "task", "tool_input": {"prompt": "x"}, "session_id": "s"}
    other = {"hook_event_name": "PreToolUse", "tool_name": "Task", "tool_input": {"prompt": "x"}, "session_id": "s"}
    hooks = ("--hooks", str(tmp_path / "hooks.py"), "--event", "PreToolUse")

    for host, payload in (("openhands", spawn), ("droid", other)):
        refused = answer(host, payload, *hooks, cwd=tmp_path).stdout.decode()
        assert f"hookline install {host} --allow-subagents" in refused
        assert "deny" in refused
        assert answer(host, payload, *hooks, "--subagents", "allow", cwd=tmp_path).stdout == b""
    assert answer("claude", {**other, "tool_name": "Agent"}, *hooks, cwd=tmp_path).stdout == b""
