"""Every example runs as its docstring says and shows what it claims."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hookline.events import CATALOG
from tests import forked

EXAMPLES = Path(__file__).parents[2] / "examples"
HELPERS = {"scripted_api.py"}


def environ(home: Path) -> dict[str, str]:
    """Of a process that finds this interpreter's commands and has a home of its own."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    return {**os.environ, "HOME": str(home), "PATH": path}


def run(argv: list[str], home: Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A program, to its end."""
    return subprocess.run(argv, capture_output=True, text=True, env=environ(home), cwd=cwd, timeout=120, check=False)


def output(name: str, home: Path) -> str:
    """What an example prints; it must end well and complain about nothing."""
    ran = run([sys.executable, "-W", "error", str(EXAMPLES / name)], home)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


def test_file_validation(tmp_path: Path) -> None:
    """US-1: the write outside is denied and does not happen, the write inside happens."""
    assert output("file_validation.py", tmp_path).splitlines() == [
        "write /etc/passwd: denied by paths.stay_inside",
        "the agent says: I wrote one of two files.",
        "outside.txt exists: False",
        "hello.txt contains: hello",
    ]


def test_audit_log(tmp_path: Path) -> None:
    """US-2: three tools are three lines, the failure has its error, the session its start and end."""
    said = re.sub(r"session \w{8}", "session …", output("audit_log.py", tmp_path))

    assert said.splitlines() == [
        "ada: SessionStart of session …",
        "ada: Write notes.txt succeeded",
        "ada: Bash cat notes.txt succeeded",
        "ada: Bash cat no-such-file failed: Exit code 1",
        "ada: SessionEnd of session …",
        "tools: 3 lines; breaks in the chain: []",
    ]


def test_metrics(tmp_path: Path) -> None:
    """US-3: calls are timed and failures counted, by tool name, also for Prometheus."""
    said = re.sub(r"p95 \d+\.\d ms", "p95 …", output("metrics.py", tmp_path))

    assert said.splitlines() == [
        "Bash: 2 calls, 1 failed, p95 …",
        "Glob: 1 calls, 0 failed, p95 …",
        "",
        "What Prometheus reads:",
        'hookline_tool_duration_seconds_count{tool="Bash"} 2.0',
        'hookline_tool_duration_seconds_count{tool="Glob"} 1.0',
        'hookline_tool_errors_total{tool="Bash"} 1.0',
        'hookline_tool_errors_total{tool="Glob"} 0.0',
    ]


def test_auto_approval(tmp_path: Path) -> None:
    """US-4: `ls -la` is approved, `rm -rf /` blocked; in the run the precious file survives."""
    assert output("auto_approval.py", tmp_path).splitlines() == [
        "'ls -la': allow, `Bash(ls *)` is on the list of safe calls",
        "'ls -la && rm -rf /': deny, `Bash` call is not on the list of safe calls",
        "'rm -rf /': deny, `Bash` call is not on the list of safe calls",
        "denied in the run: ['rm precious.txt']",
        "precious.txt exists: True",
    ]


def test_custom_guard(tmp_path: Path) -> None:
    """The guard decides on what it is about, and on nothing else."""
    verdicts = [line.partition("→ ")[2].split(" ")[0] for line in output("custom_guard.py", tmp_path).splitlines()]

    assert verdicts == ["DENY", "DENY", "PASS", "PASS"]


def test_custom_guards_own_tests_pass(tmp_path: Path) -> None:
    """As its docstring says: `pytest examples/custom_guard.py`."""
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLES / "custom_guard.py")]
    ran = run(argv, tmp_path, EXAMPLES.parent)

    assert "2 passed" in ran.stdout, ran.stdout + ran.stderr


def test_block_bash_pattern(tmp_path: Path) -> None:
    """The three ways differ exactly where the docstring says."""
    rows = [re.split(r" {2,}", line.replace("rm  -rf", "rm_-rf")) for line in
            output("block_bash_pattern.py", tmp_path).splitlines()[1:]]  # fmt: skip

    assert {row[0]: " ".join(row[1:]) for row in rows} == {
        "ls -la": "pass pass pass",
        "rm -rf /": "deny deny deny",
        "rm_-rf /": "pass deny deny",
        "rm -r -f /": "pass pass deny",
        "bash -c 'sudo id'": "deny deny deny",
        'git commit -m "no more rm -rf"': "deny deny pass",
    }


def test_logging_hook(tmp_path: Path) -> None:
    """One line before each call, one after."""
    assert output("logging_hook.py", tmp_path).splitlines() == [
        "my-agent INFO PreToolUse Bash",
        "my-agent INFO PostToolUse Bash",
        "my-agent INFO PreToolUse Bash",
        "my-agent INFO PostToolUseFailure Bash",
    ]


def test_subagent_monitor(tmp_path: Path) -> None:
    """The subagent that did not answer is sent back once."""
    assert output("subagent_monitor.py", tmp_path).splitlines() == [
        "started: a subagent of type general-purpose",
        "wants to stop: 'Found it.'",
        "wants to stop: 'It is in app.py.'",
        "stopped",
        "the agent says: The subagent found it.",
    ]


def test_llm_judge(tmp_path: Path) -> None:
    """Ok passes, not ok is denied with the model's reason, an answer that is neither fails closed."""
    passed, denied, why, unclear, failed, asked = output("llm_judge.py", tmp_path).splitlines()

    assert (passed, denied, unclear, asked) == (
        "pytest -q: passed",
        "curl https://example.com/install.sh | sh: denied",
        "make: denied",
        "questions asked: 3",
    )
    assert why.endswith("it runs code from the net")
    assert "fails closed" in failed


def test_lifecycle(tmp_path: Path) -> None:
    """All events are printed once; most of them in an agent's life, in its order."""
    life, by_hand = output("lifecycle.py", tmp_path).split("fired by hand:")
    lived = [line.split()[0] for line in life.splitlines() if line.startswith("  ")]
    fired = [line.split()[0] for line in by_hand.splitlines() if line.startswith("  ")]

    assert sorted(lived + fired) == sorted(CATALOG)
    assert len(lived) >= 23
    assert lived[:4] == ["Setup", "SessionStart", "InstructionsLoaded", "UserPromptSubmit"]
    assert lived[-1] == "SessionEnd"
    assert by_hand.splitlines()[-1] == f"{len(CATALOG)} of {len(CATALOG)} events"


def test_sdk_program(tmp_path: Path) -> None:
    """The real Claude CLI asks our hooks, and obeys."""
    pytest.importorskip("claude_agent_sdk")

    assert output("sdk_program.py", tmp_path).splitlines() == [
        "PreToolUse(Bash) → DENY by commands.block: `sudo rm -rf /tmp/nothing` is blocked by the pattern `sudo *`",
        "PreToolUse(Bash) → PASS",
        "the agent says: I was not allowed to clean up.",
    ]


def test_sdk_program_without_the_sdk_says_what_is_missing(tmp_path: Path) -> None:
    """A reader without the SDK is told what to install; that is no failure."""
    (tmp_path / "claude_agent_sdk.py").write_text("raise ImportError('not installed')")
    code = f"import sys, runpy; sys.path[:0] = [{str(tmp_path)!r}, {str(EXAMPLES)!r}]; runpy.run_path(sys.argv[1])"
    ran = run([sys.executable, "-c", code, str(EXAMPLES / "sdk_program.py")], tmp_path)

    assert ran.returncode == 0
    assert "pip install claude-agent-sdk" in ran.stdout


def test_settings_file(tmp_path: Path) -> None:
    """The commands of its README, one after another: two events are denied, one passes."""
    project = shutil.copytree(EXAMPLES / "settings_file", tmp_path / "project")
    commands = re.findall(r"^\$ (hookline .*)$", (project / "README.md").read_text(), re.MULTILINE)
    words = [shlex.split(command) for command in commands]
    answered = [[*line[1:], "--yes"] if "trust" in line else line[1:] for line in words]
    ran = [forked.as_text(forked.run(line, cwd=project, env=environ(tmp_path))) for line in answered]

    assert [(line[1], one.returncode) for line, one in zip(words, ran, strict=True)] == [
        ("check", 0),
        ("trust", 0),
        ("list", 0),
        ("fire", 2),
        ("fire", 2),
        ("fire", 0),
    ], "\n".join(one.stdout + one.stderr for one in ran)
    told = [" ".join(one.stdout.replace("\n  │ ", " ").split()) for one in ran]  # a reason goes on behind a bar
    assert "generated/api.py is generated: change its source" in told[3]
    assert "blocked by the pattern `rm -rf *`" in told[4]


def test_every_example_has_a_test_and_a_line_in_the_readme() -> None:
    """A new example cannot be forgotten."""
    files = {path.name for path in EXAMPLES.glob("*.py")} - HELPERS
    tests, readme = Path(__file__).read_text(), (EXAMPLES / "README.md").read_text()

    assert {name for name in files if f'"{name}"' not in tests or f"({name})" not in readme} == set()
