"""`hookline install` and `uninstall` as a person meets them."""

import json
import subprocess
from pathlib import Path

import pytest

from tests import forked
from tests.environ import clean_environ

HOOKS = """
from hookline import Hooks, context, deny, replace_output
from hookline.events import PostToolUse, PreToolUse
hooks = Hooks()

@hooks.on(PreToolUse)
def gate(event):
    return deny("no")

@hooks.on(PostToolUse)
def redact(event):
    return replace_output("x")
"""


def hookline(*words: str, home: Path) -> subprocess.CompletedProcess[str]:
    env = clean_environ(home, HOSTLAB="/nowhere")
    return forked.as_text(forked.run(words, cwd=home, env=env, module="hookline.__main__"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "hooks.py").write_text(HOOKS)
    return tmp_path


def test_the_table_fits_a_terminal_and_marks_what_is_hooked(home: Path) -> None:
    """80 columns; the same as JSON."""
    hookline("install", "gemini", "--hooks", "hooks.py", home=home)

    shown = hookline("install", "--list", home=home)
    rows = {row["host"]: row for row in json.loads(hookline("install", "--list", "--json", home=home).stdout)}

    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert len(rows) == 18
    assert rows["gemini"]["hooked"] == ["user"]
    assert rows["codex"]["hooked"] == []
    assert rows["cursor"]["measured"] is None
    assert rows["kimi"]["abilities"] == {
        "deny": True, "ask": False, "rewrite": False, "context": False, "replace output": False, "gate prompt": True,
        "keep going": True, "session events": True, "inside subagents": True,
    }  # fmt: skip


def test_strict_refuses_what_would_not_be_enforced(home: Path) -> None:
    """Nothing is written, and the report says why."""
    run = hookline("install", "kimi", "--hooks", "hooks.py", "--strict", home=home)

    assert run.returncode == 1
    assert "observed only: redact" in run.stdout
    assert "--strict was given" in run.stderr
    assert not (home / ".kimi-code").exists()
    assert hookline("install", "copilot", "--hooks", "hooks.py", "--strict", home=home).returncode == 0


def test_two_files_of_hooks_are_refused_not_dropped(home: Path) -> None:
    """Neither the last of two flags nor a second installation takes the first one's place without a word."""
    (home / "other.py").write_text((home / "hooks.py").read_text())
    twice = hookline("install", "gemini", "--hooks", "hooks.py", "--hooks", "other.py", home=home)
    first = hookline("install", "gemini", "--hooks", "hooks.py", home=home)
    second = hookline("install", "gemini", "--hooks", "other.py", home=home)
    replaced = hookline("install", "gemini", "--hooks", "other.py", "--replace", home=home)

    assert [done.returncode for done in (twice, first, second, replaced)] == [64, 0, 1, 0]
    assert "--hooks was given twice" in twice.stderr
    assert "hooks.py` already, which this would replace" in second.stderr


def test_strict_has_nothing_against_hooks_that_only_look_on(home: Path) -> None:
    """Kimi hears nothing after a tool, and Vibe has no sessions: a log is a log all the same."""
    events = "PreToolUse, PostToolUse, SessionEnd"
    text = f"from hookline import Hooks\nfrom hookline.events import {events}\nhooks = Hooks()\n"
    text += f"@hooks.on({events})\ndef log(event):\n    print(event)\n"
    (home / "log.py").write_text(text)

    for host in ("kimi", "vibe", "openhands"):
        done = hookline("install", host, "--hooks", "log.py", "--strict", home=home)
        assert done.returncode == 0, done.stderr


def test_json_says_what_was_done(home: Path) -> None:
    """For scripts."""
    (done,) = json.loads(hookline("install", "vibe", "--hooks", "hooks.py", "--json", home=home).stdout)

    assert (done["host"], done["events"], done["verified"]) == ("vibe", ["pre_tool", "post_tool"], "3.0.2")
    assert Path(done["path"]) == home / ".vibe" / "hooks.toml"
    assert {loss["status"] for loss in done["losses"]} == {"enforced"}


def test_a_hook_file_that_fails_to_import_is_not_installed(home: Path) -> None:
    """The error is the file's own."""
    (home / "hooks.py").write_text("import no_such_module\n")

    run = hookline("install", "codex", "--hooks", "hooks.py", home=home)

    assert run.returncode == 1
    assert "hooks.py: cannot be imported: ModuleNotFoundError" in run.stderr
    assert not (home / ".codex").exists()


WRONG = {
    ("install", "codx"): "did you mean `codex`",
    ("install", "codex", "--hooks", "none.py"): "no such file",
    ("install", "codex", "--settings", "none.json"): "no such file",
    ("install", "codex"): "there are no hooks here",
    ("install", "codex", "--hooks", "hooks.py", "--until-exit"): "has no settings of your own in a project",
    ("uninstall", "nobody"): "no host `nobody`",
}


@pytest.mark.parametrize("words", WRONG)
def test_what_cannot_be_done_is_said_in_one_line(words: tuple[str, ...], home: Path) -> None:
    """Where, what, what to do."""
    run = hookline(*words, home=home)

    assert run.returncode == 1
    assert WRONG[words] in run.stderr
    assert len(run.stderr.splitlines()) == 1


def test_claude_needs_hooks_that_it_does_not_read_itself(home: Path) -> None:
    """Its settings files would be judged twice."""
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}')

    assert "reads these settings files itself" in hookline("install", "claude", home=home).stderr


def test_uninstall_says_what_it_did(home: Path) -> None:
    """And that there was nothing, the second time."""
    hookline("install", "gemini", "--hooks", "hooks.py", home=home)

    assert "removed" in hookline("uninstall", "gemini", home=home).stdout
    again = hookline("uninstall", "gemini", home=home)
    assert (again.returncode, again.stdout) == (1, "Gemini CLI: nothing of ours was there\n")


def test_without_a_name_it_shows_which_agents_are_here(home: Path) -> None:
    """Nothing is written."""
    run = hookline("install", home=home)

    assert run.stdout == hookline("install", "--list", home=home).stdout


def test_a_dry_run_says_what_would_hold_and_writes_nothing(home: Path) -> None:
    """The report of losses, for all agents at once, before anything is touched."""
    before = sorted(home.rglob("*"))

    run = hookline("install", "claude", "kimi", "cline", "--hooks", "hooks.py", "--dry-run", home=home)

    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [
        f"Claude Code: would be written: {home}/.claude/settings.json",
        "  enforced: gate, redact",
        f"Kimi Code: would be written: {home}/.kimi-code/config.toml",
        "  enforced: gate",
        "  observed only: redact: `replace` on PostToolUse",
        "    Kimi Code does not listen: the model reads the tool's own output",
        f"Cline: would be written: {home}/.cline/hooks",
        "  enforced differently: gate: `deny` on PreToolUse",
        "    Cline ends the run on a refused call that is not a command",
        "  observed only: redact: `replace` on PostToolUse",
        "    Cline does not listen: the model reads the tool's own output",
    ]
    assert [path for path in sorted(home.rglob("*")) if "__pycache__" not in str(path)] == before
