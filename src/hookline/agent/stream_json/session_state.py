"""`session_state_changed`: whether the agent works or rests, for hosts that wait for the end of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hookline.agent.agent import Agent

__all__ = ["SessionStates"]

#: a host asks for the messages with one of these; with the second it does not pass them on to its own user
WANTED, HOST_ONLY = "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "CLAUDE_CODE_SDK_READS_SESSION_STATE"
OFF = ("", "0", "false")


class SessionStates:
    """Tells when the session begins to work, and when nothing is left: no turn, no subagent, no word of one."""

    def __init__(self, agent: Agent) -> None:
        environ = agent.session.environ
        self._agent = agent
        self._wanted = environ.get(WANTED, "") not in OFF
        self._host_only = environ.get(HOST_ONLY, "") not in OFF
        self._told = ""

    def running(self) -> None:
        """A turn begins."""
        self._tell("running")

    def rests(self) -> None:
        """A turn is over; the session is idle unless something in the background will wake it."""
        session = self._agent.session
        if session.inbox.empty() and not session.working:
            self._tell("idle")

    def _tell(self, state: str) -> None:
        if state == self._told or not (self._wanted or self._host_only):
            return
        self._told = state
        quiet = {} if self._wanted else {"sdk_host_only": True}
        self._agent.output.system("session_state_changed", state=state, **quiet)
