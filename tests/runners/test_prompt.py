"""A model judges: what it is asked, and what its answers mean (FACTS §8)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from hookline import Hooks, Prompt, Reply, Verdict, deny, keep_going, stop
from hookline.agent.hook_services import judge
from hookline.agent.models.scripted import Scripted
from hookline.core.engine import Status
from hookline.core.wire import claude
from hookline.errors import ModelError
from hookline.events import (
    PermissionRequest,
    PostToolUse,
    PreToolUse,
    Stop,
    SubagentStop,
    TaskCreated,
    UserPromptSubmit,
)
from hookline.events.base import Event
from hookline.runners import ANSWER_SCHEMA, Question, Services

BASH = PreToolUse(session_id="s1", cwd="/p", tool_name="Bash", tool_input={"command": "ls"})
NOT_OK = '{"ok": false, "reason": "no"}'


class Judge:
    """Answers with a text, or raises; remembers what it was asked."""

    def __init__(self, answer: str | Exception) -> None:
        self.answer, self.asked = answer, list[Question]()

    async def __call__(self, question: Question) -> str:
        self.asked.append(question)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def ask(who: Any, event: Event = BASH, action: Prompt | None = None, **options: Any) -> Verdict:
    async with Hooks() as hooks:
        hooks.services = Services(judge=who)
        hooks.add(type(event), action or Prompt(prompt="fine?"), name="it", **options)
        return await hooks.fire(event)


@pytest.mark.parametrize(
    "answer, event, action, reply",
    [
        ('{"ok": true}', BASH, None, Reply()),
        ('{"ok": true, "reason": "yes"}', BASH, None, Reply()),
        (f" {NOT_OK}\n", BASH, None, stop("no")),
        (f"```json\n{NOT_OK}\n```", BASH, None, stop("no")),
        (f"```\n{NOT_OK}\n```\n", BASH, None, stop("no")),
        (NOT_OK, BASH, Prompt(prompt="p", continue_on_block=True), deny("[p]: no")),
        (NOT_OK, PostToolUse(tool_name="Bash"), None, stop("no")),
        (NOT_OK, PostToolUse(tool_name="Bash"), Prompt(prompt="p", continue_on_block=True), deny("[p]: no")),
        (NOT_OK, UserPromptSubmit(prompt="x"), None, stop("no")),
        (NOT_OK, Stop(), None, keep_going("[fine?]: no")),
        (NOT_OK, SubagentStop(), None, keep_going("[fine?]: no")),
        ('{"ok": false, "reason": "no", "impossible": true}', Stop(), None, Reply()),
        (NOT_OK, PermissionRequest(tool_name="Bash"), None, Reply()),
        (NOT_OK, TaskCreated(task_id="1", task_subject="s"), None, deny("[fine?]: no")),
    ],
)
async def test_what_an_answer_means(answer: str, event: Event, action: Prompt | None, reply: Reply) -> None:
    """One table for all of it; not ok before a tool keeps the tool from running."""
    verdict = await ask(Judge(answer), event, action)

    assert verdict.outcomes[0].status is Status.OK
    assert verdict.outcomes[0].reply == reply
    if isinstance(event, PreToolUse):
        assert verdict.blocked is ("false" in answer)


@pytest.mark.parametrize(
    "answer, said",
    [
        ("I think so.", "got an answer from its model that is not `{ok, reason}`"),
        ('{"fine": true}', "got an answer from its model that is not `{ok, reason}`"),
        ('{"ok": "yes"}', "got an answer from its model that is not `{ok, reason}`"),
        ("", "got an answer from its model that is not `{ok, reason}`"),
        (ModelError("HTTP 529: overloaded", "overloaded"), "HTTP 529: overloaded"),
        (OSError("no network"), "no network"),
    ],
)
@pytest.mark.parametrize("policy", ["block", "continue"])
async def test_everything_else_is_a_failure(answer: str | Exception, said: str, policy: Any) -> None:
    """`on_failure` decides what follows, as for every kind of hook."""
    verdict = await ask(Judge(answer), on_failure=policy)

    assert verdict.outcomes[0].status is Status.FAILED
    assert said in (verdict.outcomes[0].error or "")
    assert verdict.blocked is (policy == "block")


@pytest.mark.parametrize("policy", ["block", "continue"])
async def test_a_slow_model_is_given_up_on(policy: Any) -> None:
    """The hook's timeout cancels the question."""
    given_up = asyncio.Event()

    async def slow(_: Question) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()
        return ""

    verdict = await ask(slow, timeout=0.05, on_failure=policy)

    assert given_up.is_set()
    assert verdict.outcomes[0].status is Status.TIMEOUT
    assert verdict.blocked is (policy == "block")


async def test_the_event_is_filled_in() -> None:
    """For `$ARGUMENTS`, wherever it stands; else it follows the prompt."""
    who, body = Judge('{"ok": true}'), claude.encode_event(BASH).decode()
    await ask(who, action=Prompt(prompt="A $ARGUMENTS B $ARGUMENTS"))
    await ask(who, action=Prompt(prompt="fine?", model="small"))

    assert who.asked[0].text == f"A {body} B {body}"
    assert who.asked[1].text == f"fine?\n\nARGUMENTS: {body}"
    assert [one.model for one in who.asked] == [None, "small"]
    assert [one.with_conversation for one in who.asked] == [False, False]
    assert who.asked[0].schema == ANSWER_SCHEMA


async def test_on_stop_it_is_a_condition_on_the_conversation() -> None:
    """The whole conversation comes first."""
    who = Judge('{"ok": true}')
    await ask(who, Stop(), Prompt(prompt="all tests pass"))

    assert who.asked[0].with_conversation
    assert "\n\nCondition: all tests pass" in who.asked[0].text


async def test_nobody_to_ask() -> None:
    """The failure says what to set."""
    verdict = await ask(None, on_failure="block")

    assert verdict.blocked
    assert "needs a model, and this set of hooks has none; set `hooks.services.judge`" in verdict.reason


async def test_with_the_agents_own_judge() -> None:
    """One request, no tools, the schema of an answer, the model that the hook names."""
    model = Scripted.of("unused", lanes={"judge": {"last": "fine", "turns": [{"text": NOT_OK}]}})
    verdict = await ask(judge(model), action=Prompt(prompt="fine?", model="small", continue_on_block=True))

    assert verdict.reason == "[fine?]: no"
    (request,) = model.requests
    assert request.tools == ()
    assert request.model == "small"
    assert request.output_schema == dict(ANSWER_SCHEMA)
    assert json.loads(request.messages[-1].text.partition("ARGUMENTS: ")[2])["tool_name"] == "Bash"
