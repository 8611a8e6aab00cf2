"""What the resident service runs: its workers import this module, and with it what command hooks need."""

from __future__ import annotations

from hookline.cli.main import main

__all__ = ["PRELOAD", "main"]

PRELOAD = (
    "argparse", "asyncio", "json", "msgspec", "hookline.api", "hookline.core.engine", "hookline.core.wire.claude",
    "hookline.core.wire.dialects", "hookline.guards", "hookline.settings", "hookline.settings.trust.store",
    "hookline.runners.command", "hookline.runners.function", "hookline.cli.commands.guard",
    "hookline.cli.commands.answer", "hookline.cli.commands.pipe", "hookline.cli.commands.fire", "hookline.cli.runtime",
    "hookline.hosts.user_rules", "hookline.fleet.enforce",
)  # fmt: skip
"""What commands import when they run, imported ahead."""
