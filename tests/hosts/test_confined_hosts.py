"""The starter's guards in real agent CLIs: a scripted model tries twenty ways out, and reads why none works.

The service answers, as it does for people; the Claude CLI, in claude_code/test_confined.py, is tried without it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from hookline.cli.commands.init import starter
from hookline.guards.sandboxing import unavailable
from hookline.hosts.install.survey import find_binary
from hookline.hosts.prove.model import ModelTurn
from hookline.hosts.prove.run import Workspace, folders, run, trust_folder
from hookline.hosts.table import AGENTS, find
from tests import forked
from tests.environ import clean_environ
from tests.processes.service.conftest import Desk, desk
from tests.sandbox import escapes

__all__ = ["desk"]

pytestmark = [
    pytest.mark.real_hosts,
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(unavailable()), reason=unavailable() or "lines can be held"),
]


@pytest.mark.parametrize("name", ["codex", "gemini"])
def test_twenty_escapes_have_no_effect_and_the_model_reads_why(
    name: str, desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ordinary work goes on in between."""
    binary = find_binary(find(name))
    if binary is None:
        pytest.skip(f"{name} is not on this machine; run tools/hosts/install {name}")
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"hooks": starter()}))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    monkeypatch.setenv("PATH", path)
    with folders() as (home, project), escapes.not_temporary() as outside:
        before = escapes.prepare(outside)
        (project / "README.md").write_text("# Project\n")
        words = ["install", name, "--settings", str(settings), "--scope", "user", "--yes"]
        done = forked.as_text(forked.run(words, cwd=project, env=clean_environ(home, PATH=path)))
        assert done.returncode == 0, done.stderr
        trust_folder(name, home, project)  # Gemini works nowhere else
        agent = AGENTS[name]
        lines = [*escapes.lines(outside), "echo fine > made"]
        turns = [ModelTurn(tools=(agent.bash(line),)) for line in lines]
        env = {"HOOKLINE_SERVICE": desk.name}
        done_run = run(agent, Workspace(binary, home, project), "please run them", turns, env=env, limit=400)

        assert escapes.state(outside) == before
        assert (project / "made").read_text() == "fine\n", done_run.stderr[-2000:]
    assert desk.events() > 0
    assert done_run.model.turns_asked >= len(lines)
    assert done_run.model.read("is outside")
    assert done_run.model.read("(paths.stay_inside)")
