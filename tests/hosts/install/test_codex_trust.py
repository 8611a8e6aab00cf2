"""The hashes that are written for Codex are the ones Codex computes."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hookline import Hooks
from hookline.events import PostToolUse, PreToolUse, SessionEnd, SessionStart, Stop, UserPromptSubmit
from hookline.hosts.install.commands import install
from hookline.hosts.install.entries import HookSource
from hookline.hosts.install.survey import find_binary, lab
from hookline.hosts.table import find
from tests.environ import clean_environ
from tests.hosts.battery import CODEX_HASHES


def listed(binary: Path, home: Path) -> list[dict[str, Any]]:
    """What `codex app-server` says of the hooks it has found."""
    env = clean_environ(home, PATH=os.environ["PATH"], CODEX_HOME=str(home / ".codex"))
    with subprocess.Popen([binary, "app-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, env=env, cwd=home) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None

        def call(number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps({"id": number, "method": method, "params": params}) + "\n")
            process.stdin.flush()
            for line in process.stdout:
                answer: dict[str, Any] = json.loads(line)
                if answer.get("id") == number:
                    return answer
            raise AssertionError("codex app-server ended")

        call(1, "initialize", {"clientInfo": {"name": "test", "version": "0", "title": "test"}})
        process.stdin.write('{"method": "initialized"}\n')
        found: list[dict[str, Any]] = call(2, "hooks/list", {"cwds": [str(home)]})["result"]["data"][0]["hooks"]
        process.terminate()
    return found


@pytest.mark.real_hosts
def test_the_hash_of_every_event_is_codexs_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trusted, says Codex, of every one of them."""
    monkeypatch.setenv("HOSTLAB", str(lab()))
    binary = find_binary(find("codex"))
    if binary is None:
        pytest.skip("codex is not on this machine; run tools/hosts/install codex")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    hooks = Hooks()
    for event in (PreToolUse, PostToolUse, UserPromptSubmit, SessionStart, SessionEnd, Stop):
        hooks.add(event, lambda event: None)
    theirs = tmp_path / ".codex" / "hooks.json"
    theirs.parent.mkdir()
    theirs.write_text('{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}')

    made = install(find("codex"), hooks.hooks, HookSource(hooks="/ünï code/hooks.py"), trust=True)

    said = {hook["key"]: hook for hook in listed(binary.path, tmp_path) if "hookline" in hook["command"]}
    ours = CODEX_HASHES.of(made.path, made.path.read_text())
    assert len(ours) == 6
    assert {key: hook["currentHash"] for key, hook in said.items()} == ours
    assert {hook["trustStatus"] for hook in said.values()} == {"trusted"}
