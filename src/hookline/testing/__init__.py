"""For your own tests: events in one word, hooks fired in one line, failures that explain themselves.

>>> from hookline import deny
>>> from hookline.testing import assert_denied, assert_passed, bash, fire_sync
>>> def no_rm(event):
...     return deny("never") if event.tool_input["command"].startswith("rm ") else None
>>> assert_denied(fire_sync(no_rm, bash("rm -rf /")), by="no_rm", reason="never")
>>> assert_passed(fire_sync(no_rm, bash("ls")))

In an `async def` test write `await fire(no_rm, bash("ls"))`. The pytest plugin, which comes with the package, has the
fixtures `hooks` (a fresh set, closed after the test), `fire` and `recorder`.
"""

from hookline.testing.checks import (
    assert_allowed,
    assert_asked,
    assert_context,
    assert_denied,
    assert_kept_going,
    assert_passed,
    assert_rewrote,
)
from hookline.testing.factories import (
    announced,
    asking,
    bash,
    edit,
    failed,
    mcp,
    prompt,
    read,
    session_end,
    session_start,
    stop,
    subagent_start,
    subagent_stop,
    succeeded,
    tool,
    write,
)
from hookline.testing.fakes import FakeClock, FakeRunner, Recorder, make_outcome
from hookline.testing.firing import fire, fire_sync

__all__ = [
    "FakeClock", "FakeRunner", "Recorder", "announced", "asking", "assert_allowed", "assert_asked", "assert_context",
    "assert_denied", "assert_kept_going", "assert_passed", "assert_rewrote", "bash", "edit", "failed", "fire",
    "fire_sync", "make_outcome", "mcp", "prompt", "read", "session_end", "session_start", "stop", "subagent_start",
    "subagent_stop", "succeeded", "tool", "write",
]  # fmt: skip
