"""Agents that a host starts inside itself: where it asks no hook in them, the tool that starts them is denied.

Whether it asks is measured (`Host.subagents`). The switch that allows them all the same is in the command that
`hookline install --allow-subagents` writes, out of the agent's reach.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookline.events import PreToolUse
from hookline.hosts.host import Host
from hookline.replies import deny

if TYPE_CHECKING:
    from hookline.core.engine import HookSet

ALLOW = "allow"
"""The value of `--subagents` in a command that lets them be started."""


def problem(host: Host) -> str:
    """Why hooks do not hold in the agents that a host starts; nothing if they do."""
    if host.subagents is None:
        return f"it was not measured whether {host.title} asks hooks inside the agents that it starts"
    return "" if host.subagents else f"{host.title} asks no hook inside the agents that it starts"


def refuse_unasked(hooks: HookSet, host: Host, allowed: str) -> None:
    """Have a set of hooks deny the tool that starts agents, where hooks do not hold in them."""
    why = problem(host)
    if why and allowed != ALLOW:
        told = f"{why}: what they do would not be judged. `hookline install {host.name} --allow-subagents` allows them"
        hooks.add(PreToolUse, lambda event: deny(told), match="Agent|Task", name="subagents", inline=True)


def note(host: Host, *, allowed: bool) -> str:
    """What to say at an installation; nothing if hooks hold in them, or the host has no tool that starts one."""
    if not problem(host) or not any(tool.name == "Agent" for tool in host.tools.values()):
        return ""
    so = "nothing is judged there, as you allowed" if allowed else "starting one is denied; --allow-subagents allows it"
    return f"{problem(host)}: {so}"
