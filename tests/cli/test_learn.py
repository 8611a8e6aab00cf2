"""`hookline learn`: what it reads, proposes and writes; what it never learns from."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hookline.agent.session.transcript import project_folder
from hookline.cli import person
from hookline.cli.main import main
from hookline.guards.learned import read_policy

TODAY = datetime.now(UTC)


def transcript(file: Path, rows: list[tuple[str, str]], cwd: str) -> None:
    """Shell lines as Claude Code records them, with what became of each: `ran`, `refused` or nothing."""
    lines: list[dict[str, Any]] = []
    for number, (command, fate) in enumerate(rows):
        call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": command}}
        about = {"cwd": cwd, "sessionId": "s", "timestamp": TODAY.isoformat()}
        lines.append({"type": "assistant", **about, "message": {"content": [call]}})
        text = {"ran": "ok", "refused": "The user doesn't want to proceed with this tool use."}.get(fate)
        if text:
            result = {
                "type": "tool_result",
                "tool_use_id": f"t{number}",
                "content": text,
                "is_error": fate == "refused",
            }
            lines.append({"type": "user", **about, "message": {"content": [result]}})
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "app"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def as_person(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hookline.cli.commands.learn.require_person", lambda _: None)


def learned(*argv: str) -> int:
    return main(["learn", *argv])


@pytest.mark.usefixtures("as_person")
def test_what_ran_often_is_learned_and_nothing_else(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [(f"pytest -q tests/test_{name}.py", "ran") for name in "abc"]
    rows += [("terraform apply", "refused")] * 5 + [("git push", "")] * 5 + [("make deploy", "ran")] * 2
    transcript(project / "log.jsonl", rows, str(project))
    assert learned("log.jsonl", "--yes") == 0
    policy = read_policy(project / ".claude/hookline.learned.toml")
    assert [(rule.run, rule.folders, rule.seen) for rule in policy.commands] == [("pytest", ("tests",), 3)]
    said = capsys.readouterr().out
    assert "5 calls that ran" in said
    assert "seen 3 times" in said
    assert "terraform" not in said


@pytest.mark.usefixtures("as_person")
def test_a_refused_line_is_not_allowed_by_what_was_learned_from_others(project: Path) -> None:
    rows = [(f"pytest tests/test_{name}.py", "ran") for name in "abc"] + [("pytest tests/test_live.py", "refused")]
    transcript(project / "log.jsonl", rows, str(project))
    assert learned("log.jsonl", "--yes") == 0
    assert read_policy(project / ".claude/hookline.learned.toml").commands == ()


@pytest.mark.usefixtures("as_person")
def test_an_attack_in_the_log_is_not_learned(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line of the shipped table that ran, however often, stays asked about; the user is told."""
    transcript(project / "log.jsonl", [("rm -rf /", "ran")] * 9 + [("npm run build", "ran")] * 3, str(project))
    assert learned("log.jsonl", "--yes") == 0
    assert [rule.run for rule in read_policy(project / ".claude/hookline.learned.toml").commands] == ["npm run build"]
    assert "not learned, for they would allow an attack" in capsys.readouterr().out


@pytest.mark.usefixtures("as_person")
def test_an_audit_log_is_evidence_where_it_says_that_a_call_has_run(project: Path) -> None:
    def record(event: str, command: str, number: int, decision: str = "pass") -> str:
        said = {"event": event, "decision": decision, "tool": "Bash", "input": {"command": command}}
        return json.dumps({**said, "cwd": str(project), "tool_use_id": f"t{number}", "time": TODAY.isoformat()}) + "\n"

    asked = "".join(
        record("PreToolUse", "npm run a", n, "ask") + record("PostToolUse", "npm run a", n) for n in range(3)
    )
    refused = "".join(record("PreToolUse", "npm run b", n, "ask") for n in range(10, 15))
    denied = "".join(record("PreToolUse", "npm run c", n, "deny") for n in range(20, 25))
    (project / "audit.jsonl").write_text(asked + refused + denied)
    assert learned("audit.jsonl", "--yes") == 0
    assert [rule.run for rule in read_policy(project / ".claude/hookline.learned.toml").commands] == ["npm run a"]


@pytest.mark.usefixtures("as_person")
def test_each_rule_is_accepted_or_not(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    transcript(project / "log.jsonl", [("npm run a", "ran"), ("npm run b", "ran")] * 3, str(project))
    answers = iter([False, True])
    ask: Callable[[str], bool] = lambda _: next(answers)  # noqa: E731
    monkeypatch.setattr("hookline.cli.commands.learn.agreed", ask)
    assert learned("log.jsonl") == 0
    assert [rule.run for rule in read_policy(project / ".claude/hookline.learned.toml").commands] == ["npm run b"]
    capsys.readouterr()
    answers = iter([False])  # what was accepted is not asked about a second time
    assert learned("log.jsonl") == 0
    assert "npm run b" not in capsys.readouterr().out.partition("written")[0].partition("\n")[2]


def test_a_dry_run_writes_nothing_and_asks_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    transcript(project / "log.jsonl", [("npm run a", "ran")] * 3, str(project))
    assert learned("log.jsonl", "--dry-run") == 0
    assert "npm run a" in capsys.readouterr().out
    assert not (project / ".claude").exists()
    assert learned("log.jsonl", "--json") == 0
    assert json.loads(capsys.readouterr().out)["policy"]["commands"][0]["run"] == "npm run a"


def test_an_agent_may_not_learn_for_its_user(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    transcript(project / "log.jsonl", [("npm run a", "ran")] * 3, str(project))
    monkeypatch.setattr(person, "find_agent", lambda: "process 1 is `claude`")
    assert learned("log.jsonl", "--yes") == 1
    assert not (project / ".claude").exists()


@pytest.mark.usefixtures("as_person")
def test_a_time_range_counts(project: Path) -> None:
    transcript(project / "log.jsonl", [("npm run a", "ran")] * 3, str(project))
    assert learned("log.jsonl", "--yes", "--since", "2999-01-01") == 0
    assert learned("log.jsonl", "--yes", "--until", "2001-01-01") == 0
    assert read_policy(project / ".claude/hookline.learned.toml").commands == ()


def test_bad_input_is_told(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for argv, words in ((["none.jsonl"], "none.jsonl: no such file"), ([], "no transcripts of this project")):
        assert learned(*argv, "--dry-run") == 1
        assert words in capsys.readouterr().err
    with pytest.raises(SystemExit):
        learned("--min", "1")
    (project / "garbage.jsonl").write_bytes(b"\xff\x00{\n" * 10)
    assert learned("garbage.jsonl", "--dry-run") == 0
    assert "0 calls that ran" in capsys.readouterr().out


def test_the_transcripts_of_a_long_folder_are_found(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A name that a file system would not take is cut, by the rule by which the agent writes it."""
    deep = project / ("a" * 120) / ("b" * 120)
    folder = project_folder(str(deep))
    for path in (deep, folder):
        path.mkdir(parents=True)
    transcript(folder / "s.jsonl", [("make", "ran")], str(deep))

    assert learned("--dry-run", "--project", str(deep)) == 0
    assert "1 call that ran" in capsys.readouterr().out
