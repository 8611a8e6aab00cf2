"""Claude Code: the words that the others borrowed, and more events than any of them."""

from __future__ import annotations

from typing import Any

from hookline.core.hooks.tools import CLAUDE_TOOLS
from hookline.core.wire.claude import reply_object
from hookline.events import CATALOG, Event
from hookline.hosts.answer_shapes import (
    BLOCK,
    END_TURN,
    REQUEST_ALLOWED,
    REQUEST_DENIED,
    SYSTEM_MESSAGE,
    context,
    permission,
    rewritten,
    same,
    specific,
)
from hookline.hosts.host import VALUE, Config, Host
from hookline.replies import Reply

_PRE = "PreToolUse"


def _body(reply: Reply, event: Event) -> dict[str, Any]:
    return reply_object(reply, event)


CLAUDE = Host(
    name="claude",
    title="Claude Code",
    verified="2.1.325",
    commands=("claude",),
    events=same(*CATALOG),
    says={
        _PRE: {"deny": permission(_PRE, "deny"), "ask": permission(_PRE, "ask"), "allow": permission(_PRE, "allow"),
               "defer": permission(_PRE, "defer"), "rewrite": rewritten(_PRE), "context": context(_PRE),
               "stop": END_TURN},
        "PermissionRequest": {"deny": REQUEST_DENIED, "allow": REQUEST_ALLOWED, "rewrite": {}},
        "PostToolUse": {"deny": BLOCK, "context": context("PostToolUse"), "stop": END_TURN,
                        "replace": specific("PostToolUse", updatedToolOutput=VALUE)},
        "PostToolUseFailure": {"deny": BLOCK, "context": context("PostToolUseFailure"), "stop": END_TURN},
        "UserPromptSubmit": {"deny": BLOCK, "context": context("UserPromptSubmit"), "stop": END_TURN},
        "UserPromptExpansion": {"deny": BLOCK, "context": context("UserPromptExpansion")},
        "Stop": {"keep_going": BLOCK, "stop": END_TURN},
        "SubagentStop": {"keep_going": BLOCK, "stop": END_TURN},
        "SessionStart": {"context": context("SessionStart")},
        "SubagentStart": {"context": context("SubagentStart")},
        "PreCompact": {"deny": BLOCK},
        "ConfigChange": {"deny": BLOCK},
        "TaskCreated": {"deny": BLOCK},
        "TaskCompleted": {"deny": BLOCK},
    },
    message=SYSTEM_MESSAGE,
    other_tools=frozenset(CLAUDE_TOOLS),
    body=_body,
    config=Config(
        user=".claude/settings.json", project=".claude/settings.json", local=".claude/settings.local.json",
        home_env="CLAUDE_CONFIG_DIR", longest=590,
    ),
    subagents=True,
    notes=(
        "`onFailure: block` is written as a second line of defence",
        "after 8 times in a row it stops although a hook sends it back to work",
    ),
)  # fmt: skip
