"""A hook's `ask`, put to a person: the page, the answer, and every way in which it is not a yes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from hookline import Hooks, Verdict, ask, rewrite
from hookline.events import PreToolUse
from hookline.records.approvals import Inbox
from hookline.records.approvals.inbox import ask_once, request
from hookline.records.audit.log import AuditLog
from tests.records.approvals.conftest import Desk, fetch, question_behind, until


def hooks(hold: float = 30.0) -> Hooks:
    made = Hooks(on_ask=Inbox(hold=hold, host="Test CLI", before=lambda event: ["Read: notes.md", "Bash: git status"]))
    made.add(PreToolUse, lambda event: ask("pushing is for people"), name="push")
    return made


def event(command: str = "git push", session: str = "s") -> PreToolUse:
    return PreToolUse(session_id=session, cwd="/p", tool_name="Bash", tool_input={"command": command})


def fire(made: Hooks, command: str = "git push", session: str = "s") -> asyncio.Task[Verdict]:
    return asyncio.create_task(made.fire(event(command, session)))


async def test_yes_lets_it_run_and_the_record_says_who(desk: Desk, tmp_path: Path) -> None:
    """Who, how, which question, which call: in the verdict and in the audit log."""
    made = hooks()
    made.observe(AuditLog(tmp_path / "audit.jsonl"))
    waiting = fire(made)
    link = await desk.link()
    status, _ = await fetch(link, "yes")
    verdict = await waiting
    await made.aclose()

    assert (status, verdict.blocked) == (200, False)
    approval = verdict.approval
    assert approval is not None
    assert (approval.by, approval.how, approval.granted) == ("ada", "page", True)
    assert approval.question in link
    [record] = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert record["approval"] == {"by": "ada", "how": "page", "question": approval.question, "call": approval.call,
                                  "reason": approval.reason}  # fmt: skip


async def test_opening_the_link_shows_the_call_and_decides_nothing(desk: Desk) -> None:
    """A scanner or a preview opens it, as often as it likes."""
    waiting = fire(hooks(), "git push \u202eevil")
    link = await desk.link()
    assert [(await fetch(link))[0] for _ in range(3)] == [200] * 3
    found = await question_behind(link)
    assert found["parts"] == [{"title": "Command", "kind": "command", "text": "git push \u202eevil"}]
    expected = {"why": "pushing is for people", "hooks": "push", "host": "Test CLI", "cwd": "/p", "person": "ada",
                "before": ["Read: notes.md", "Bash: git status"], "waiting": 1, "state": "open"}  # fmt: skip
    assert expected.items() <= found.items()

    assert not waiting.done()
    await fetch(link, "no")
    assert (await waiting).reason.startswith("not approved: ada said no (page, question A-")


async def test_only_the_page_itself_can_answer(desk: Desk) -> None:
    """Another origin, another person, a forged token, another answer, another method: nothing is decided."""
    desk.configure(people={"ada": [desk.deliver], "bob": []})
    waiting = fire(hooks())
    link = await desk.link()
    foreign = [
        (link, {"Origin": "http://evil.example"}), (link, {"Sec-Fetch-Site": "cross-site"}),
        (link.replace("p=ada", "p=bob"), {}), (link.replace("p=ada", "p=eve"), {}), (link[:-1] + "x", {}),
        (link.replace("/a/", "/b/"), {}), (link.partition("?")[0], {}),
    ]  # fmt: skip
    assert [(await fetch(where, "yes", **headers))[0] for where, headers in foreign] == [
        403,
        403,
        404,
        404,
        404,
        404,
        404,
    ]
    assert (await fetch(link, "maybe"))[0] == 400
    assert not waiting.done()
    assert (await fetch(link, "yes", Origin=desk.server.people.site.url))[0] == 200
    assert not (await waiting).blocked
    assert (await fetch(link, "yes"))[0] == 410
    assert (await question_behind(link))["told"] == "yes, and it ran, by ada (page)"


async def test_without_an_answer_it_is_denied_and_a_late_yes_counts_once(desk: Desk) -> None:
    """The model is told to make the same call again; a changed call does not fit."""
    made = hooks(hold=0.2)
    verdict = await fire(made)
    assert "make exactly the same call again later" in verdict.reason
    assert "stays open for 60 min" in verdict.reason
    assert (await question_behind(await desk.link()))["waiting"] == 0
    await fetch(await desk.link(), "yes")

    assert (await fire(made, "git push --force")).blocked
    assert (await fire(made, session="another")).blocked
    assert not (await fire(made)).blocked
    assert (await fire(made)).blocked


async def test_a_hook_that_changes_makes_an_old_yes_void(desk: Desk) -> None:
    """The policy that asked is part of what was approved; so is the input after rewrites."""
    await fire(hooks(hold=0.1))
    await fetch(await desk.link(), "yes")
    other = hooks(hold=0.1)
    other.add(PreToolUse, lambda event: None, name="another")
    assert (await fire(other)).blocked

    changed = hooks(hold=30)
    changed.add(PreToolUse, lambda event: rewrite({"command": "git push --dry-run"}), name="dry", priority=5)
    waiting = fire(changed)
    found = await question_behind(await desk.link(3))
    waiting.cancel()
    assert found["parts"][0]["text"] == "git push --dry-run"


async def test_equal_calls_at_once_share_a_question(desk: Desk) -> None:
    """One message, and one yes runs one of them."""
    made = hooks()
    calls = [fire(made), fire(made)]
    link = await desk.link()
    await until(lambda: desk.server.questions.recent()[0].waiting == 2)
    await fetch(link, "yes")
    verdicts = await asyncio.gather(*calls)

    assert sorted(one.blocked for one in verdicts) == [False, True]
    assert "ada approved one such call, and that one runs" in next(one.reason for one in verdicts if one.blocked)
    assert len(desk.messages()) == 1


async def test_an_answer_is_not_used_up_by_a_caller_that_left(desk: Desk) -> None:
    """Its session is gone; the yes waits for the call to be made again."""
    made = hooks()
    gone = fire(made)
    link = await desk.link()
    gone.cancel()
    await until(lambda: desk.server.questions.recent()[0].waiting == 0)
    await fetch(link, "yes")

    assert not (await fire(made)).blocked


async def test_a_restart_in_the_middle_of_a_question(desk: Desk) -> None:
    """The caller goes on waiting, the old link is void, a new one is sent, and its answer counts."""
    waiting = fire(hooks())
    old = await desk.link()
    await desk.stop()
    await desk.start()
    new = await desk.link(2)

    assert (await fetch(new[: new.index("/a/")] + old[old.index("/a/") :], "yes"))[0] == 404
    assert not waiting.done()
    assert (await fetch(new, "yes"))[0] == 200
    assert not (await waiting).blocked


async def test_a_transport_that_is_down_delays_and_never_decides(desk: Desk) -> None:
    """The others are told, and the question says who was not."""
    dead = [{"type": "mail", "to": "ada@example.com", "server": "127.0.0.1:1"}, {"type": "ntfy", "url": "http://127.0.0.1:1/x"},
            {"type": "command", "command": ["/nonexistent"]}, desk.deliver]  # fmt: skip
    desk.configure(people={"ada": dead})
    waiting = fire(hooks())
    await desk.link()
    [one] = desk.server.questions.recent()
    await until(lambda: len(one.sent) == 4)

    assert not waiting.done()
    assert one.sent.pop("ada 4") == "sent"
    assert all("refused" in text or "No such file" in text for text in one.sent.values()), one.sent
    waiting.cancel()


async def test_settings_that_are_wrong_deny_and_say_why(desk: Desk) -> None:
    """Nothing is asked of anybody; the reason names the key."""
    (desk.home / ".claude" / "settings.json").write_text('{"approvals": {"peple": {}}}')

    assert "Object contains unknown field `peple`" in (await fire(hooks())).reason


async def test_no_inbox_is_a_deny(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the service is turned off, or does not come."""
    monkeypatch.setenv("HOOKLINE_SERVICE", "0")
    assert "the resident service, which is turned off" in (await fire(hooks())).reason
    monkeypatch.setattr("hookline.records.approvals.inbox.START_LIMIT", 0.1)
    monkeypatch.setenv("HOOKLINE_SERVICE", "nothing-here")
    verdict = await fire(hooks(hold=0.1))
    assert verdict.blocked
    assert "the inbox cannot be reached" in verdict.reason


async def test_the_deadline_of_the_hooks_ends_the_wait_before_it(desk: Desk) -> None:
    """The deny reaches the host in time, with what the model is to do."""
    verdict = await hooks().fire(event(), deadline=1.3)

    assert "make exactly the same call again later" in verdict.reason


async def test_the_terminal_lists_and_answers_but_not_for_an_agent(desk: Desk) -> None:
    """Who an agent is seen above is refused by the inbox itself, whatever program asks."""
    waiting = fire(hooks())
    await desk.link()
    [one] = (await ask_once({"do": "list"}))["questions"]
    desk.agent = "process 7 is `claude`"
    body = {"do": "decide", "id": one["id"], "yes": True, "how": "terminal"}
    refused = await ask_once(body)
    desk.agent = ""

    assert refused == {"problem": "this is for a person, not for an agent: process 7 is `claude`"}
    assert await ask_once({**body, "yes": 1, "id": "A-none"}) == {"problem": "there is no such question"}
    assert await ask_once(body) == {"problem": ""}
    approval = (await waiting).approval
    assert approval is not None
    assert (approval.how, approval.granted) == ("terminal", True)


async def test_following_shows_each_change(desk: Desk) -> None:
    """As the console and `hookline inbox follow` do."""
    states = []
    waiting = None
    async for found in request({"do": "list", "follow": True}):
        states.append([one["state"] for one in found["questions"]])
        if waiting is None:
            waiting = fire(hooks())
        elif states[-1] == ["open"]:
            asyncio.create_task(fetch(await desk.link(), "no")).add_done_callback(lambda done: done.result())
        elif states[-1] == ["no"]:
            break

    assert states[0] == []
    assert (await waiting).blocked if waiting else False
