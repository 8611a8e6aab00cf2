"""The starter's guards in the real Claude CLI: a scripted model tries twenty ways out, and reads why none works."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from hookline.cli.commands.init import starter
from hookline.guards.sandboxing import unavailable, unwrapped
from hookline.hosts.claude_code import ClaudeClient, query
from hookline.hosts.claude_code.process import bundled_cli
from tests.hosts.claude_code.hosts import stage_for
from tests.sandbox import escapes

pytestmark = pytest.mark.skipif(bool(unavailable()), reason=unavailable() or "lines can be held")


async def test_twenty_escapes_have_no_effect_and_the_model_reads_why(tmp_path: Path, api: Any) -> None:
    """Ordinary work goes on in between, and what the kernel refused reaches the model."""
    cli = bundled_cli()
    if cli is None:
        pytest.skip("no Claude CLI: run `pip install claude-agent-sdk`")
    stage = stage_for(str(cli), tmp_path, api)
    project = Path(stage.cwd)
    (project / ".claude").mkdir()
    (project / ".claude" / "settings.json").write_text(json.dumps({"hooks": starter()}))
    (project / "README.md").write_text("# Project\n")
    options: dict[str, Any] = {"env": stage.env, "allowed_tools": ["Bash"], "setting_sources": ["project"]}
    with escapes.not_temporary() as outside:
        before = escapes.prepare(outside)
        lines = [*escapes.lines(outside), "echo fine > made && mkdir -p sub && cd sub", "pwd > ../where"]
        api.main["turns"] = [
            *({"tools": [["Bash", {"command": line, "description": "d"}]]} for line in lines),
            {"text": "end"},
        ]
        async for _ in query("go", cli=stage.cli, cwd=stage.cwd, **options):
            pass

        assert escapes.state(outside) == before
    assert ((project / "made").read_text(), (project / "where").read_text()) == ("fine\n", f"{project}/sub\n")
    read = json.dumps([one["request"]["messages"] for one in api.requests if one["lane"] == "main"][-1])
    assert read.count("tool_use_id") >= len(lines)
    assert "is outside" in read
    assert "(paths.stay_inside)" in read


RULES = {"deny": ["Bash(git push:*)"], "ask": ["Bash(npm publish:*)"], "allow": ["Bash(touch:*)"]}


async def test_the_users_permission_rules_hold_for_the_line_that_was_asked_for(
    tmp_path: Path, api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claude Code applies its rules to the rewritten command, where none of them would match."""
    cli = bundled_cli()
    if cli is None:
        pytest.skip("no Claude CLI: run `pip install claude-agent-sdk`")
    stage = stage_for(str(cli), tmp_path, api)
    project = Path(stage.cwd)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))  # an entry keeps the home that it was written in
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("git", "npm"):  # what runs leaves a trace (the CLI itself calls git, too), and nothing is published
        (programs / name).write_text(f'#!/bin/sh\necho "$@" >> "{project}/{name}.ran"\n')
        (programs / name).chmod(0o755)
    (project / ".claude").mkdir()
    (project / ".claude" / "settings.json").write_text(json.dumps({"hooks": starter()}))
    (tmp_path / "home" / ".claude").mkdir()
    (tmp_path / "home" / ".claude" / "settings.json").write_text(json.dumps({"permissions": RULES}))
    lines = ["git push origin main", "true && git push -f", "npm publish", "touch allowed", "cp allowed copied"]
    api.main["turns"] = [
        *({"tools": [["Bash", {"command": line, "description": "d"}]]} for line in lines),
        {"text": "end"},
    ]
    path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
    asked: list[str] = []

    async def permit(ask: Any) -> bool:
        asked.append(unwrapped(ask.input["command"])[1])  # type: ignore[index]
        return "npm" in asked[-1]

    options: dict[str, Any] = {"env": {**stage.env, "PATH": path}, "setting_sources": ["user", "project"]}
    async with ClaudeClient(cli=stage.cli, cwd=stage.cwd, can_use_tool=permit, **options) as client:
        await client.send("go")
        async for _ in client.receive():
            pass

    assert asked == ["npm publish", "cp allowed copied"]
    assert "push" not in ((project / "git.ran").read_text() if (project / "git.ran").exists() else "")
    assert (project / "npm.ran").read_text() == "publish\n"
    assert (project / "allowed").exists()
    assert not (project / "copied").exists()
    read = json.dumps([one["request"]["messages"] for one in api.requests if one["lane"] == "main"][-1])
    assert read.count("rule `Bash(git push:*)` denies it") == 2
