"""Agents inside agents: where no hook is asked in them, none is started."""

from pathlib import Path

import pytest

from hookline import Hooks, deny
from hookline.events import PreToolUse
from hookline.hosts.host import unasked_subagents
from hookline.hosts.install.commands import install
from hookline.hosts.install.entries import HookSource
from hookline.hosts.table import AGENTS, HOSTS, find


def test_every_host_that_was_measured_says_so() -> None:
    """One that offers the tool holds inside, or does not; no other host is said to."""
    for name, host in HOSTS.items():
        tried = name in AGENTS and AGENTS[name].spawn is not None
        assert (host.subagents is not None) is tried, name
        assert bool(unasked_subagents(host)) is not bool(host.subagents), name


def test_the_installation_says_what_becomes_of_subagents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Denied, with the switch; with the switch, what that means; and nothing where hooks hold."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    hooks = Hooks()
    hooks.add(PreToolUse, lambda event: deny("no"))
    host, source = find("openhands"), HookSource(hooks="/hooks.py")

    refused = install(host, hooks.hooks, source)
    assert "starting one is denied; --allow-subagents allows it" in refused.notes[0]
    assert "--subagents" not in refused.path.read_text()
    allowed = install(host, hooks.hooks, source, allow_subagents=True)
    assert "nothing is judged there" in allowed.notes[0]
    assert "--subagents allow" in allowed.path.read_text()
    assert not any("subagents" in note for note in install(find("claude"), hooks.hooks, source).notes)
