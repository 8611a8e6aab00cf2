"""Commands that decide for a person are out of an agent's reach, and within a person's."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from hookline.cli.person import find_agent
from hookline.hosts.table import HOSTS
from tests.terminal import on_terminal

ASKS = [sys.executable, "-c", "from hookline.cli.person import require_person; require_person('x'); print('a person')"]
CLEAN = {name: value for name, value in os.environ.items() if name not in ("CLAUDECODE", "AI_AGENT", "AGENT")}
AGENT = find_agent()
outside = pytest.mark.skipif(bool(AGENT), reason=f"these tests run inside an agent's session: {AGENT}")


@outside
def test_a_person_at_a_terminal_passes_and_a_pipe_does_not() -> None:
    """The same command; without a terminal it says where to run it."""
    piped = subprocess.run(ASKS, env=CLEAN, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)

    assert on_terminal(ASKS, env=CLEAN) == (0, "a person\n")
    assert "run it in a terminal" in piped.stderr


@outside
def test_what_an_agent_starts_does_not_pass(tmp_path: Path) -> None:
    """By its mark, by its name above, with a cleared environment, in a session or on a terminal of its own."""
    line = shlex.join(ASKS)
    agents = {host.executable for host in HOSTS.values()}
    for name in (*agents, "gemini.js"):
        (tmp_path / name).write_text(f"env -i {line}\ntrue\n")
    own = tmp_path / "hookline"
    own.write_text(f"env -i {line}\ntrue\n")
    marked = {**CLEAN, "CLAUDECODE": "1"}
    ways = {
        **{name: (["bash", str(tmp_path / name)], CLEAN) for name in (*agents, "gemini.js")},
        "our own agent": (["bash", str(own), "run"], CLEAN),
        "a mark": (ASKS, marked),
        "a mark above": (["bash", "-c", f"env -i {line}; true"], marked),
        "a terminal in a terminal": (["script", "-qec", f"env -i setsid -w {line}", "/dev/null"], marked),
        "another mark": (ASKS, {**CLEAN, "CODEX_THREAD_ID": "x"}),
    }
    passed = [way for way, (command, env) in ways.items() if "a person\n" in on_terminal(command, env=env)[1]]

    assert passed == []


@outside
def test_a_users_own_setting_is_not_a_mark() -> None:
    """`CODEX_HOME` says where an agent's files are, not that there is one."""
    settings = {"CODEX_HOME": "/x", "CODEX_API_KEY": "k", "COPILOT_HOME": "/y", "COPILOT_MODEL": "m"}

    assert on_terminal(ASKS, env={**CLEAN, **settings})[0] == 0
