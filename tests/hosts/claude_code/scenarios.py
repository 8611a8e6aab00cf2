"""What every pair of host and CLI must do: one row a scenario, told as data so that any host can play it.

A hook answers its n-th call with its n-th reply, the last one again and again; `"hang"` never answers. `expect` says
what must be so afterwards, whoever the host and whatever the CLI. Scenarios of one `session` are played in it one after
the other: the hooks, tools and permissions of all are registered, those of the one that is played answer.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

BASH: list[Any] = ["Bash", {"command": "echo ran >> out.txt; echo hello", "description": "d"}]
RAN = {"out.txt": "ran\n"}
HANG = "hang"


class HookSpec(Struct, frozen=True):
    """One hook of a scenario."""

    event: str
    replies: list[Any]
    matcher: str | None = None
    timeout: float | None = None


class Expect(Struct, frozen=True, kw_only=True):
    """What counts."""

    files: dict[str, str]
    results: list[str]
    hooks: list[str]
    reached_model: list[str] = []
    tool_errors: list[bool] = []
    model_requests: int | None = None
    asked: list[str] = []
    mcp_calls: list[str] = []
    cancelled: int = 0


class Scenario(Struct, frozen=True, kw_only=True):
    """A conversation, and what must come of it."""

    name: str
    session: str = "open"
    model: list[dict[str, Any]]
    expect: Expect
    hooks: list[HookSpec] = []
    prompts: tuple[str, ...] = ("go",)
    allowed_tools: tuple[str, ...] = ("Bash",)
    permission: dict[str, Any] | None = None
    mcp_tools: dict[str, str] = {}
    interrupt_on_hang: bool = False


def specific(event: str, **fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


NO = specific("PreToolUse", permissionDecision="deny", permissionDecisionReason="NOPE")
CALL_THEN_FINAL: list[dict[str, Any]] = [{"tools": [BASH]}, {"text": "final"}]

SCENARIOS = [
    Scenario(
        name="userpromptsubmit_block",
        hooks=[HookSpec("UserPromptSubmit", [{"decision": "block", "reason": "BADPROMPT"}])],
        model=[{"text": "final"}],
        expect=Expect(files={}, results=["success"], hooks=["UserPromptSubmit"], model_requests=0),
    ),
    Scenario(
        name="pretooluse_deny",
        hooks=[HookSpec("PreToolUse", [NO])],
        model=CALL_THEN_FINAL,
        expect=Expect(files={}, results=["success"], hooks=["PreToolUse"], reached_model=["NOPE"], tool_errors=[True]),
    ),
    Scenario(
        name="updated_input",
        session="asking",
        allowed_tools=(),
        hooks=[HookSpec("PreToolUse", [specific("PreToolUse", permissionDecision="allow",
                        updatedInput={"command": "echo changed >> out.txt", "description": "d"})], matcher="Bash")],
        model=CALL_THEN_FINAL,
        expect=Expect(files={"out.txt": "changed\n"}, results=["success"], hooks=["PreToolUse"], tool_errors=[False]),
    ),
    Scenario(
        name="posttooluse_context",
        hooks=[HookSpec("PostToolUse", [specific("PostToolUse", additionalContext="POSTCTX")])],
        model=CALL_THEN_FINAL,
        expect=Expect(
            files=RAN, results=["success"], hooks=["PostToolUse"], reached_model=["POSTCTX"], tool_errors=[False]
        ),
    ),
    Scenario(
        name="stop_keeps_going",
        hooks=[HookSpec("Stop", [{"decision": "block", "reason": "GOON"}, {}])],
        model=[{"text": "first"}, {"text": "second"}],
        expect=Expect(
            files={}, results=["success"], hooks=["Stop", "Stop"], reached_model=["GOON"], model_requests=2
        ),
    ),
    Scenario(
        name="hook_timeout",
        hooks=[HookSpec("PreToolUse", [HANG], timeout=1)],
        model=CALL_THEN_FINAL,
        expect=Expect(files={}, results=["success"], hooks=["PreToolUse"], tool_errors=[True], cancelled=1),
    ),
    Scenario(
        name="can_use_tool_denies",
        session="asking",
        allowed_tools=(),
        permission={"behavior": "deny", "message": "HOSTNO"},
        model=CALL_THEN_FINAL,
        expect=Expect(
            files={}, results=["success"], hooks=[], asked=["Bash"], reached_model=["HOSTNO"], tool_errors=[True]
        ),
    ),
    Scenario(
        name="can_use_tool_allows",
        session="asking",
        allowed_tools=(),
        permission={"behavior": "allow"},
        model=CALL_THEN_FINAL,
        expect=Expect(files=RAN, results=["success"], hooks=[], asked=["Bash"], tool_errors=[False]),
    ),
    Scenario(
        name="in_process_mcp_tool",
        session="asking",
        allowed_tools=("mcp__srv__shout",),
        mcp_tools={"shout": "LOUD:"},
        hooks=[HookSpec("PreToolUse", [{}], matcher="mcp__srv__.*")],
        model=[{"tools": [["mcp__srv__shout", {"text": "hey"}]]}, {"text": "final"}],
        expect=Expect(
            files={}, results=["success"], hooks=["PreToolUse"], mcp_calls=["hey"], reached_model=["LOUD:hey"],
            tool_errors=[False],
        ),
    ),
    Scenario(
        name="two_turns_in_one_session",
        hooks=[HookSpec("UserPromptSubmit", [specific("UserPromptSubmit", additionalContext="UPSCTX")])],
        prompts=("first", "second"),
        model=[{"text": "one"}, {"text": "two"}],
        expect=Expect(
            files={}, results=["success", "success"], hooks=["UserPromptSubmit"] * 2, reached_model=["UPSCTX"],
            model_requests=2,
        ),
    ),
    Scenario(
        name="interrupt_during_a_hook",  # the last of its session: the CLI ends with an error after it
        hooks=[HookSpec("PreToolUse", [HANG])],
        model=CALL_THEN_FINAL,
        interrupt_on_hang=True,
        expect=Expect(
            files={}, results=["error_during_execution"], hooks=["PreToolUse"], model_requests=1, cancelled=1
        ),
    ),
]  # fmt: skip
