"""The table of hosts."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from hookline.errors import HooklineError, did_you_mean
from hookline.hosts.claude import CLAUDE
from hookline.hosts.cline import CLINE
from hookline.hosts.codex import CODEX
from hookline.hosts.copilot import COPILOT
from hookline.hosts.gemini import GEMINI
from hookline.hosts.host import Host, ProofRecipe, read_row
from hookline.hosts.kimi import KIMI
from hookline.hosts.opencode import OPENCODE
from hookline.hosts.openhands import OPENHANDS
from hookline.hosts.windsurf import WINDSURF

_ROWS = (
    CLAUDE, CODEX, GEMINI, read_row("qwen"), COPILOT, KIMI, read_row("grok"), read_row("vibe"), OPENHANDS, CLINE,
    OPENCODE, read_row("cursor"), WINDSURF, *map(read_row, ("crush", "goose", "kiro", "augment", "droid")),
)  # fmt: skip

HOSTS: Mapping[str, Host] = MappingProxyType({host.name: host for host in _ROWS})
"""Every host by its name: first those that were measured, then those known from documentation only."""


AGENTS: Mapping[str, ProofRecipe] = MappingProxyType({host.name: host.proof for host in _ROWS if host.proof})
"""How to run each agent that a proof can be run on."""


def find(name: str) -> Host:
    """The host of that name; an unknown name is refused with the near ones."""
    try:
        return HOSTS[name]
    except KeyError:
        hint = did_you_mean(name, HOSTS) or f"; write one of {', '.join(HOSTS)}"
        raise HooklineError(f"no host `{name}`{hint}") from None
