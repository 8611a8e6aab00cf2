"""`hookline demo`: the story is told, and a story that did not happen is not told."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import forked
from tests.cli.place import HOOKLINE, Place

BLOCKER = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
from hookline.cli.main import main
code = main(["demo", "--json"])
print("anthropic" in sys.modules, file=sys.stderr)
sys.exit(code)
"""
EXTRAS = {
    "aiohttp", "anthropic", "claude_agent_sdk", "cyclopts", "detect_secrets", "mcp", "openai", "opentelemetry",
    "prometheus_client", "pytest", "rich", "tree_sitter", "tree_sitter_bash", "watchfiles", "yaml",
}  # fmt: skip


def demo(tmp_path: Path, *flags: str, code: str | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the demo in a process, with its folders under `tmp_path`."""
    environ = {**os.environ, "TMPDIR": str(tmp_path), "COLUMNS": "80", **env}
    if code is None:
        return forked.as_text(forked.run(["demo", *flags], cwd=tmp_path, env=environ))
    argv = [sys.executable, "-c", code]
    return subprocess.run(argv, capture_output=True, text=True, env=environ, timeout=120, check=False)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The demo as JSON, with its folder kept."""
    ran = demo(tmp_path_factory.mktemp("demo"), "--json", "--keep")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_a_line_whose_text_tells_nothing_is_stopped_by_the_kernel(told: dict[str, Any]) -> None:
    """Where the kernel can; elsewhere the demo says that it was not tried."""
    escape = told["escape"]

    assert escape["escaped"] is False
    assert bool(escape["skipped"]) != ("(paths.stay_inside)" in escape["refused"])


def test_each_step_names_what_was_wanted_and_who_decided(told: dict[str, Any]) -> None:
    """Two denials, an approval, a rewritten command, the Stop hook until the tests pass, a subagent, context."""
    steps = [(step["want"].replace(told["project"] + "/", ""), step["word"], step["hook"]) for step in told["steps"]]

    assert steps == [
        ("prompt “Fix the tests.”", "PASS", "house_rules"),
        ("Bash ls -la", "ALLOW", "approvals.auto"),
        ("Bash python -m unittest", "REWRITE", "fresh_tests"),
        (f"Bash {Path(sys.executable).name} -B -m unittest", "ALLOW", "approvals.auto"),
        ("Write /etc/hookline.conf", "DENY", "paths.stay_inside"),
        ("Bash rm -rf /", "DENY", "commands.block"),
        ("stop “All done.”", "KEEP GOING", "tests_must_pass"),
        ("Edit shop/cart.py", "PASS", "paths.stay_inside"),
        ("stop “Fixed it.”", "KEEP GOING", "tests_must_pass"),
        ("subagent Explore", "PASS", "only_look"),
        ("Bash sudo updatedb", "DENY", "commands.block"),
        ("Edit shop/discount.py", "PASS", "paths.stay_inside"),
        ("stop “The tests pass now.”", "PASS", "tests_must_pass"),
    ]
    assert told["missing"] == []


def test_the_numbers_are_those_of_the_audit_log(told: dict[str, Any]) -> None:
    """An independent count: the summary and the log tell the same."""
    lines = [json.loads(line) for line in Path(told["audit"]).read_text().splitlines()]

    assert told["summary"]["events"] == len(lines)
    assert told["summary"]["denials"] == sum(line["blocked"] for line in lines) == 3
    assert told["summary"]["hooks_run"] == sum(
        one["status"] != "skipped" for line in lines for one in line.get("hooks", ())
    )
    assert told["summary"]["sent_back"] == sum(line.get("keep_going", False) for line in lines) == 2


def test_the_project_is_really_repaired(told: dict[str, Any]) -> None:
    """With `--keep` its tests can be run once more."""
    ran = subprocess.run(
        [sys.executable, "-m", "unittest"], cwd=told["project"], capture_output=True, text=True, check=False
    )

    assert (ran.returncode, "Ran 3 tests" in ran.stderr) == (0, True)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    """The demo in a pipe, and the folder it leaves behind."""
    tmp_path = tmp_path_factory.mktemp("demo")
    ran = demo(tmp_path)
    [folder] = tmp_path.glob("hookline-demo-*")
    return ran, folder


def test_in_a_pipe_it_is_plain_and_fits_80_columns(shown: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    """No colour, no line too long but paths; it is verified, and the last line shows the run in the console."""
    ran, folder = shown

    *lines, last = ran.stdout.splitlines()
    assert ran.returncode == 0
    assert "\x1b" not in ran.stdout
    assert [line for line in lines if len(line) > 80 and str(folder) not in line and "hooks.py" not in line] == []
    assert "audit.jsonl is whole: nothing was changed, removed or re-ordered" in lines
    assert "it has no key: anyone who can write to its folder could have rewritten it" in lines
    assert re.fullmatch(rf"(\S*/)?hookline (console|audit report) {folder / 'audit.jsonl'}", last)
    typed = subprocess.run([*shlex.split(last), "--help"], capture_output=True, check=False)
    assert typed.returncode == 0, last  # it can be typed as it is
    assert re.search(r"Bash rm -rf / +DENY +commands.block: ", ran.stdout)


def test_only_the_audit_log_stays(shown: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    """The project was for throwing away; the log can be verified later."""
    ran, folder = shown

    assert {path.name for path in folder.iterdir()} == {"audit.jsonl", "audit.jsonl.head"}
    verify = ["audit", "verify", str(folder / "audit.jsonl")]
    assert forked.run(verify, cwd=folder, env=os.environ).returncode == 0
    assert f"hookline audit verify {folder / 'audit.jsonl'}" in ran.stdout


def test_a_story_that_did_not_happen_is_a_failure(tmp_path: Path) -> None:
    """With hooks switched off nothing is denied by them: exit code 1, and what is missing is said; nothing ran."""
    ran = demo(tmp_path, "--json", HOOKLINE_ENABLED="0")

    told = json.loads(ran.stdout)
    assert ran.returncode == 1
    assert "`rm -rf /` is denied" in told["missing"]
    assert "the agent is sent back twice, then may stop" in told["missing"]
    assert (told["steps"], told["summary"]["hooks_run"]) == ([], 0)
    log = [json.loads(line) for line in Path(told["audit"]).read_text().splitlines()]
    assert [line["tool"] for line in log if line["event"].startswith("PostToolUse")] == []


def test_it_needs_no_extra(tmp_path: Path) -> None:
    """What `pip install hookline` brings is enough, and no model's SDK is imported."""
    ran = demo(tmp_path, code=BLOCKER.format(blocked=EXTRAS))

    assert (ran.returncode, ran.stderr.strip()) == (0, "False")


def test_a_reader_that_leaves_is_no_error(place: Place) -> None:
    """`hookline demo | head -1`: the story goes on, and nobody reads tracebacks."""
    line = " ".join(map(shlex.quote, HOOKLINE))
    done = subprocess.run(
        ["/bin/sh", "-c", f"{line} demo | head -1"], cwd=place.project, env=place.env, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip

    assert done.stdout.startswith("hookline demo")
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
