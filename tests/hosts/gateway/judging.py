"""Hooks for the tests of the gateway: what they do depends on a word in a call's arguments."""

import asyncio

from hookline import Hooks, ask, deny
from hookline.events import Elicitation, ElicitationResult, PostToolUse, PreToolUse, SessionEnd, SessionStart
from hookline.replies import Reply, context, replace_output, rewrite

hooks = Hooks()
print("a hook file that prints")


@hooks.on(PreToolUse, match="mcp__.*")
async def before(event: PreToolUse) -> Reply | None:
    print("a hook that prints")
    text = str(event.tool_input)
    if "DENY" in text:
        return deny("not this one")
    if "ASK" in text:
        return ask("a person must say yes")
    if "REWRITE" in text:
        return rewrite({**event.tool_input, "message": "rewritten"})
    if "UNFIT" in text:
        return rewrite({**event.tool_input, "message": 7})
    if "NOTE" in text:
        return context("a note of the house")
    if "HANG" in text:
        await asyncio.sleep(3600)
    if "RAISE" in text:
        raise RuntimeError("broken hook")
    return None


@hooks.on(PostToolUse, match="mcp__.*")
def after(event: PostToolUse) -> Reply | None:
    text = str(event.tool_input)
    if "REDACT" in text:
        return replace_output("[redacted]")
    if "STRUCT" in text:
        return replace_output({"length": 0})
    return None


@hooks.on(Elicitation)
def never_a_password(event: Elicitation) -> Reply | None:
    return deny("no passwords") if "password" in event.message else None


@hooks.on(ElicitationResult)
def never_a_secret(event: ElicitationResult) -> Reply | None:
    return deny("no secrets") if "SECRET" in str(event.content) else None


@hooks.on(SessionStart, SessionEnd)
def tell(event: SessionStart | SessionEnd) -> None:
    print(f"a session: {event.event_name}")
