"""`hookline list`: which hooks there are, and which would run."""

from __future__ import annotations

import json

from tests.cli.place import Place, command

SETTINGS = {
    "hooks": {
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [command("./a", name="a", timeout=5, onFailure="block")]},
            {"matcher": "Write|Edit", "hooks": [{"type": "http", "url": "http://127.0.0.1:9/x"}]},
            {"hooks": [command("./c", name="c", **{"if": "Bash(git *)"})]},
        ],
        "SessionStart": [{"matcher": "startup", "hooks": [{"type": "prompt", "prompt": "ready?"}]}],
    }
}


def test_all_of_them_by_event(place: Place) -> None:
    """What each runs, its limits, and where it is written."""
    place.write(".claude/settings.json", SETTINGS)
    done = place.run("list")

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        "PreToolUse\n    a on Bash\n      ./a\n      5 s, on failure block\n"
        "      .claude/settings.json: hooks.PreToolUse[0].hooks[0]\n"
    )
    assert "\nSessionStart\n    ready? on startup\n" in done.stdout


def test_which_would_run_and_why_the_others_would_not(place: Place) -> None:
    """With an event, its subject and its input."""
    place.write(".claude/settings.json", SETTINGS)
    done = place.run("list", "--event", "PreToolUse", "--tool", "Bash", "--input", '{"command": "ls"}')

    assert "  ► a on Bash\n" in done.stdout
    assert "would not run: its matcher `Write|Edit` does not match `Bash`\n" in done.stdout
    assert "would not run: its condition `Bash(git *)` does not hold\n" in done.stdout
    assert "ready?" not in done.stdout

    git = place.run("list", "--event", "PreToolUse", "--tool", "Bash", "--input", '{"command": "git st"}')
    assert "► c if Bash(git *)" in git.stdout
    other = place.run("list", "--event", "SessionStart", "--subject", "resume")
    assert "would not run: its matcher `startup` does not match `resume`" in other.stdout


def test_json_rows(place: Place) -> None:
    """One object per hook."""
    place.write(".claude/settings.json", SETTINGS)
    rows = json.loads(place.run("list", "--json", "--event", "PreToolUse", "--tool", "Bash").stdout)

    assert [row["would_run"] for row in rows] == [True, False, False]
    assert rows[0] == {
        "hook": "a", "events": ["PreToolUse"], "matcher": "Bash", "if": None, "kind": "command", "runs": "./a",
        "timeout": 5.0, "on_failure": "block", "source": ".claude/settings.json: hooks.PreToolUse[0].hooks[0]",
        "scope": None, "why_not": None, "would_run": True,
    }  # fmt: skip


def test_none_and_nonsense(place: Place) -> None:
    """What to do next is said."""
    assert place.run("list").stdout == "no hooks; `hookline init` writes a first one\n"
    assert place.run("list", "--event", "Stop").stdout == "no hooks on Stop; `hookline init` writes a first one\n"
    wrong = place.run("list", "--event", "Stopp")
    assert (wrong.returncode, wrong.stderr) == (
        1,
        "hookline list: unknown event `Stopp`; did you mean `Stop` or `Setup`?\n",
    )


def test_a_python_file_s_hooks_are_shown_with_file_and_line(place: Place) -> None:
    """So that one finds them again."""
    place.write("hooks.py", "from hookline import Hooks\nfrom hookline.events import Stop\n\nhooks = Hooks()\n\n\n"
                "@hooks.on(Stop)\nasync def done(event): ...\n\n\n"
                "hooks.add(Stop, lambda event: None, name='short')\n")  # fmt: skip
    lines = [line.strip() for line in place.run("list", "--hooks", "hooks.py").stdout.splitlines()]

    assert lines[1:5] == ["done", "function done", "30 s, on failure continue", "hooks.py:7"]
    assert lines[5:9] == ["short", "function <lambda>", "30 s, on failure continue", "hooks.py:11"]


def test_hooks_of_skills_and_agents_are_listed_with_their_scope(place: Place) -> None:
    """They hold only from the moment that a skill is used, or while an agent works."""
    header = (
        "hooks:\n  PreToolUse:\n    - matcher: Write\n      hooks:\n        - type: command\n          command: {}\n"
    )
    place.write(".claude/skills/tidy/SKILL.md", f"---\nname: tidy\n{header.format('./of-skill')}---\nTidy.\n")
    place.write(".claude/agents/critic.md", f"---\nname: critic\n{header.format('./of-agent')}---\nCriticise.\n")
    rows = json.loads(place.run("list", "--json").stdout)

    assert {row["runs"]: row["scope"] for row in rows} == {
        "./of-skill": "once skill `tidy` is used",
        "./of-agent": "while agent `critic` works",
    }
    assert "once skill `tidy` is used" in place.run("list").stdout
