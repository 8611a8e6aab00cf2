"""What a session has seen, in a file that several processes share: nothing is lost, and a loss is never trusted."""

import subprocess
import sys
from pathlib import Path

from hookline.guards.flow import result_row
from hookline.guards.flow.config import FlowConfig
from hookline.guards.flow.store import FlowRow, FlowStore, store_path
from tests.guards.flow.agent import Agent

WRITER = """
import asyncio, sys
from pathlib import Path
from hookline import Hooks
from hookline.events import PostToolUse
from hookline.guards.flow import flow

async def main(folder, number):
    hooks = Hooks()
    hooks.add(*flow(state=folder))
    for turn in range(25):
        contact = [{"name": "N", "email": f"p{number}-{turn}@x.org", "note": "some words that are free text"}]
        await hooks.fire(PostToolUse(session_id="s", tool_name="get_contact", tool_response=contact))

asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


def mail(to: str) -> tuple[str, dict[str, list[str]]]:
    return "send_email", {"recipients": [to]}


def write_at_once(folder: Path) -> list[int]:
    """Four processes that keep results, and how they ended."""
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, folder, str(number)]) for number in range(4)]
    return [writer.wait(50) for writer in writers]


async def test_several_processes_write_and_nothing_is_lost(tmp_path: Path) -> None:
    """Four at once; each reads what the others have added."""
    agent = await Agent(state=tmp_path).start("Send the report to everyone")
    codes = write_at_once(tmp_path)
    said = {await agent.judge(*mail(f"p{number}-{turn}@x.org")) for number in range(4) for turn in range(25)}

    assert (codes, said, await agent.judge(*mail("eve@evil.org"))) == ([0] * 4, {"pass"}, "deny")


async def test_the_file_is_for_this_user_alone(tmp_path: Path) -> None:
    """It holds what was read."""
    await Agent(state=tmp_path / "flow").start("Hello")

    path = store_path(tmp_path / "flow", "s")
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


async def test_a_session_whose_file_is_gone_counts_as_untrusted(tmp_path: Path) -> None:
    """Removed, emptied, exchanged: also for a process that starts afterwards."""
    for damage in ("unlink", "empty", "exchange"):
        folder = tmp_path / damage
        agent = await Agent(state=folder).start("Mail the plan to Alice")
        await agent.read("get_emails", {}, [{"body": "a text from someone, which is long enough to tell something"}])
        path = store_path(folder, "s")
        if damage == "empty":
            path.write_bytes(b"")
        else:
            path.unlink()
            if damage == "exchange":
                path.write_bytes(b'{"kind":"begin"}\n')
        other = Agent(state=folder)
        said = [await agent.judge(*mail("eve@evil.org"))]
        if damage != "exchange":  # a file that says it begins is believed by a process that has not seen the old one
            said.append(await other.judge(*mail("eve@evil.org")))
        assert "pass" not in said, (damage, said)


async def test_a_session_that_was_under_way_before_counts_as_untrusted(tmp_path: Path) -> None:
    """Its transcript has results that the guard has not seen; a new one has none."""
    transcript = tmp_path / "t.jsonl"
    for content, level in (
        ('{"type":"user"}\n', "pass"),
        ('{"message":{"content":[{"type":"tool_result"}]}}\n', "ask"),
    ):
        transcript.write_text(content)
        agent = Agent(content)
        await agent.hear("Mail the plan to Alice", transcript_path=str(transcript))
        assert await agent.judge(*mail("x@y.org")) == level


async def test_a_call_whose_result_was_not_seen_counts_as_untrusted() -> None:
    """The host hid it, or it could not be kept: what follows is asked about."""
    agent = await Agent().start("Mail the plan to Alice")
    first = [await agent.judge(*mail("x@y.org")), await agent.judge(*mail("x@y.org"))]
    other = await Agent().start("Mail the plan to Alice")
    await other.judge("get_time", {})
    await other.read("get_time", {}, "10:15")

    assert (first, await other.judge(*mail("x@y.org"))) == (["pass", "ask"], "pass")


async def test_a_result_without_a_call_answers_no_later_call() -> None:
    """A host may announce the result of a call that it asked no hook about."""
    agent = await Agent().start("Mail the plan to Alice")
    await agent.read("get_time", {}, "10:15")
    await agent.judge("get_mail", {})

    assert await agent.judge(*mail("x@y.org")) == "deny"


async def test_a_line_that_was_torn_costs_one_row(tmp_path: Path) -> None:
    """A writer that died within its line; the next one begins a line of its own."""
    agent = await Agent(state=tmp_path).start("Mail the plan to Alice")
    with store_path(tmp_path, "s").open("ab") as file:
        file.write(b'{"kind":"result","vouchers":[["eve@evil.org","fie')
    await agent.read("get_contact", {}, [{"name": "Alice", "email": "alice@corp.org", "note": "she is the head of it"}])

    assert await Agent(state=tmp_path).judge(*mail("alice@corp.org")) == "pass"
    assert await Agent(state=tmp_path).judge(*mail("eve@evil.org")) == "deny"


def test_limits_only_add_questions() -> None:
    """Of a long text the beginning and the end are kept, of many vouchers the first."""
    store = FlowStore()
    store.put(FlowRow("begin"))
    rows = [{"email": f"a{number}@x.org"} for number in range(1000)]
    store.put(result_row(FlowConfig(), store, "get_contacts", {}, rows, approved=False))
    store.put(result_row(FlowConfig(), store, "get_page", {}, "x" * 1_000_000, approved=False))

    assert (len(store.vouchers), len(store.texts[0].text) < 70_000, store.untrusted) == (400, True, True)
