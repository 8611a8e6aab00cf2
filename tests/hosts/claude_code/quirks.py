"""What is peculiar about the Claude CLI, with the recorded cases (`FACTS.md`) that show it."""

from __future__ import annotations

from msgspec import Struct


class Quirk(Struct, frozen=True):
    """One peculiarity: what the CLI does, what we do about it, and the recorded cases (`FACTS.md`) that show it."""

    does: str
    so: str
    cases: tuple[str, ...]
    events: tuple[str, ...] = ()


STOP_RUNS_THE_TOOL = Quirk(
    does="`continue: false` before a tool runs the tool and stops after it",
    so="a stop on a gate is sent as a deny, too",
    cases=("pre_continue_false_allow", "pre_continue_false_noreason", "sdk_continue_false"),
)
CALLBACK_ERROR_IS_SILENCE = Quirk(
    does="an error, `null` or nonsense from a callback counts as no answer",
    so="a gate that cannot be asked is answered with a deny, never with an error",
    cases=("sdk_error", "sdk_null", "sdk_invalid_failblock"),
)
EXIT_ONE_PASSES = Quirk(
    does="a command that fails with another code than 2 lets the call pass",
    so="`hookline guard` leaves with 2 whatever goes wrong",
    cases=("exit_PreToolUse_exit1",),
)
HTTP_NEVER_ASKED = Quirk(
    does="http hooks are not asked on these events",
    so="`hookline install` writes commands",
    cases=("http_sessionstart", "http_setup"),
    events=("SessionStart", "Setup"),
)
CALLBACK_NEVER_CALLED = Quirk(
    does="callbacks on these events are registered and never called",
    so="`ClaudeClient` fires them itself, unless the CLI promises `session_hooks_supported`; `for_sdk` warns",
    cases=("sdk_sessionstart", "sdk_sessionend"),
    events=("SessionStart", "SessionEnd"),
)
HOST_RACES_HOOKS = Quirk(
    does="the host is asked about a call at the same time as PermissionRequest callbacks, and the first answer counts",
    so="`ClaudeClient` holds the host's answer until the hooks have given theirs",
    cases=("sdk_permreq_allow_host", "sdk_permreq_race_host"),
    events=("PermissionRequest",),
)

QUIRKS = (
    STOP_RUNS_THE_TOOL,
    CALLBACK_ERROR_IS_SILENCE,
    EXIT_ONE_PASSES,
    HTTP_NEVER_ASKED,
    CALLBACK_NEVER_CALLED,
    HOST_RACES_HOOKS,
)
"""All of them."""
