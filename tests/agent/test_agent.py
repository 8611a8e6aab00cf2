"""The loop: each event at its place, each verdict with its consequence."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hookline import (
    Context,
    Hooks,
    Verdict,
    ask,
    background,
    context,
    defer,
    deny,
    keep_going,
    message,
    replace_output,
    rewrite,
    stop,
)
from hookline.agent import PermissionQuestion
from hookline.agent.context.definitions import AgentDefinition
from hookline.agent.messages import User
from hookline.core.hooks.hook import Command
from hookline.errors import AgentError
from hookline.events import (
    Event,
    InstructionsLoaded,
    MessageDisplay,
    Notification,
    PermissionRequest,
    PostToolBatch,
    PostToolUse,
    PreCompact,
    PreToolUse,
    SessionStart,
    Stop,
    SubagentStop,
    TaskCompleted,
    UserPromptSubmit,
    WorktreeCreate,
)
from hookline.guards.permissions import read_rules
from hookline.replies import Reply, allow, specific
from tests.agent.driving import agent_on, bash, heard, recorded, reminders, requests_of, results
from tests.environ import clean_environ

# seeds/003 §7, from SessionStart to SessionEnd, with what today's wire adds between
LIFECYCLE = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolBatch",
    "PreToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "PreToolUse",
    "SubagentStart",
    "SubagentStop",
    "PostToolUse",
    "PostToolBatch",
    "MessageDisplay",
    "Stop",
    "SessionEnd",
]
SUBAGENT = {"tools": [["Agent", {"description": "d", "prompt": "SUB", "run_in_background": False}]]}
SUB_LANE = {"sub": {"first": "^SUB", "turns": [{"text": "sub answer"}]}}


async def test_events_come_in_the_order_of_the_lifecycle(tmp_path: Path) -> None:
    """seeds/003 §7: start, prompt, each call between its two events, a subagent between its own, stop, end."""
    hooks = Hooks()
    seen = recorded(hooks)
    async with agent_on(tmp_path, bash("true"), bash("exit 3"), SUBAGENT, "done", hooks=hooks, lanes=SUB_LANE) as agent:
        await agent.run("go")

    assert seen == LIFECYCLE


async def test_compaction_comes_between_its_own_events(tmp_path: Path) -> None:
    """seeds/003 §7: PreCompact, the summary, SessionStart(compact); the wire adds PostCompact."""
    hooks = Hooks()
    seen = recorded(hooks)
    lanes = {"compact": {"last": "create a detailed summary", "turns": [{"text": "<summary>SO FAR</summary>"}]}}
    async with agent_on(tmp_path, "one", "two", hooks=hooks, lanes=lanes) as agent:
        await agent.run("hello")
        del seen[:]
        await agent.run("/compact keep names")
        assert seen == ["PreCompact", "SubagentStop", "SessionStart", "PostCompact"]
        assert "Additional Instructions:\nkeep names" in requests_of(agent)[1].messages[-1].text
        await agent.run("more")

    first = requests_of(agent)[2].messages[0]
    assert isinstance(first, User)
    assert "SO FAR" in first.text


async def test_what_hooks_say_about_a_compaction_is_in_its_instructions_and_told_afterwards(tmp_path: Path) -> None:
    """FACTS §1: printed text joins the instructions; `continue: false` blocks nothing; the next prompt tells of it."""
    hooks = Hooks()
    hooks.add(PreCompact, _always(context("KEEP NAMES")), name="names")
    hooks.add(PreCompact, _always(stop("ENOUGH")), name="stopper")
    lanes = {"compact": {"last": "create a detailed summary", "turns": [{"text": "<summary>SO FAR</summary>"}]}}
    async with agent_on(tmp_path, "one", "two", hooks=hooks, lanes=lanes) as agent:
        await agent.run("hello")
        result = await agent.run("/compact")
        await agent.run("more")

    _, compacting, later = requests_of(agent)
    assert "Additional Instructions:\nKEEP NAMES" in compacting.messages[-1].text
    assert "PreCompact [names] completed successfully: KEEP NAMES" in result.text
    assert any(result.text in message.text for message in later.messages if isinstance(message, User))


async def test_a_full_context_is_compacted_unless_a_hook_says_no(tmp_path: Path) -> None:
    """Past the threshold the conversation is summarised before the next request; PreCompact may block that."""
    hooks = Hooks()
    triggers: list[str] = []

    @hooks.on(PreCompact)
    async def no(event: PreCompact) -> Reply:
        triggers.append(event.trigger)
        return deny("not now")

    turns = ({**bash("true"), "usage": {"input_tokens": 500}}, "done")
    async with agent_on(tmp_path, *turns, hooks=hooks, compact_at=400) as agent:
        result = await agent.run("go")

    assert (result.text, triggers, len(requests_of(agent))) == ("done", ["auto"], 2)


async def test_a_denied_call_is_not_made_and_the_model_hears_why(tmp_path: Path) -> None:
    """Deny skips the tool; the reason stands where its result would."""
    hooks = Hooks()
    seen = recorded(hooks)
    hooks.add(PreToolUse, _always(deny("WHY")), name="no")
    async with agent_on(tmp_path, bash("echo ran > out.txt"), "done", hooks=hooks) as agent:
        result = await agent.run("go")

    (told,) = results(requests_of(agent)[1])
    assert told.is_error
    assert "WHY" in str(told.content)
    assert not (tmp_path / "out.txt").exists()
    assert "PostToolUse" not in seen
    assert result.denials[0]["tool_name"] == "Bash"


async def test_a_rewritten_input_is_judged_again_and_then_runs(tmp_path: Path) -> None:
    """Law 4 holds in the agent: what runs is what was judged."""
    hooks = Hooks()
    judged: list[str] = []

    @hooks.on(PreToolUse, name="watch")
    async def watch(event: PreToolUse) -> None:
        judged.append(event.tool_input["command"])

    hooks.add(PreToolUse, _always(rewrite({"command": "echo changed > out.txt"})), name="change", rejudge=False)
    async with agent_on(tmp_path, bash("echo ran > out.txt"), "done", hooks=hooks) as agent:
        await agent.run("go")

    assert (tmp_path / "out.txt").read_text() == "changed\n"
    assert judged == ["echo ran > out.txt", "echo changed > out.txt"]


async def test_what_a_tool_does_not_know_of_a_rewritten_input_is_left_out(tmp_path: Path) -> None:
    """A hook may say more than the tool takes; what the tool takes is what runs."""
    hooks = Hooks()
    hooks.add(PreToolUse, _always(rewrite({"command": "echo changed > out.txt", "zzz": 1})), name="more", rejudge=False)
    async with agent_on(tmp_path, bash("echo ran > out.txt"), "done", hooks=hooks) as agent:
        await agent.run("go")

    assert (tmp_path / "out.txt").read_text() == "changed\n"


async def test_an_input_rewritten_into_nonsense_is_refused(tmp_path: Path) -> None:
    """A hook cannot make a tool run on what it does not understand; the model is told."""
    hooks = Hooks()
    hooks.add(PreToolUse, _always(rewrite({"cmd": 1})), name="change", rejudge=False)
    async with agent_on(tmp_path, bash("echo ran > out.txt"), "done", hooks=hooks) as agent:
        await agent.run("go")

    (told,) = results(requests_of(agent)[1])
    assert told.is_error
    assert "`command` is missing" in str(told.content)


async def test_context_reaches_the_next_request_once(tmp_path: Path) -> None:
    """Additional context is said after the result it belongs to, and not again."""
    hooks = Hooks()
    hooks.add(PreToolUse, _once(context("CTX")), name="ctx")
    async with agent_on(tmp_path, bash("true"), bash("true"), "done", hooks=hooks) as agent:
        await agent.run("go")

    assert [len([text for text in reminders(request) if "CTX" in text]) for request in requests_of(agent)] == [0, 1, 1]


async def test_a_message_is_for_the_user_alone(tmp_path: Path) -> None:
    """systemMessage is shown and never reaches the model."""
    hooks = Hooks()
    hooks.add(PreToolUse, _always(message("LOOK")), name="say")
    async with agent_on(tmp_path, bash("true"), "done", hooks=hooks) as agent:
        notes = heard(agent)
        await agent.run("go")

    assert [note["content"] for note in notes if note.get("subtype") == "informational"] == [
        "PreToolUse:Bash says: LOOK"
    ]
    assert not reminders(requests_of(agent)[1])


async def test_a_replaced_output_is_what_the_model_reads(tmp_path: Path) -> None:
    """PostToolUse may put anything in place of a result; a plain string fits every tool."""
    hooks = Hooks()
    hooks.add(PostToolUse, _always(replace_output("REWRITTEN")), name="hide")
    async with agent_on(tmp_path, bash("echo secret"), "done", hooks=hooks) as agent:
        await agent.run("go")

    assert [told.content for told in results(requests_of(agent)[1])] == ["REWRITTEN"]


@pytest.mark.parametrize("event", [PreToolUse, PostToolUse, PostToolBatch])
async def test_a_stop_ends_the_turn_before_the_next_request(tmp_path: Path, event: type[Event]) -> None:
    """`continue: false` around a tool ends the turn; its reason is told in the next one."""
    hooks = Hooks()
    hooks.add(event, _once(stop("ENOUGH")), name="halt")
    async with agent_on(tmp_path, bash("true"), "done", hooks=hooks) as agent:
        result = await agent.run("go")
        assert (result.reason, result.is_error, len(requests_of(agent))) == ("hook_stopped", False, 1)
        await agent.run("go on")

    assert any("ENOUGH" in text for text in reminders(requests_of(agent)[1]))


async def test_a_stop_before_a_tool_stops_the_tool_too(tmp_path: Path) -> None:
    """Where we differ from Claude Code on purpose: any false blocks."""
    hooks = Hooks()
    hooks.add(PreToolUse, _always(stop("ENOUGH")), name="halt")
    async with agent_on(tmp_path, bash("echo ran > out.txt"), "done", hooks=hooks) as agent:
        await agent.run("go")

    assert not (tmp_path / "out.txt").exists()


async def test_a_stop_hook_sends_the_agent_back_until_its_cap(tmp_path: Path) -> None:
    """A Stop hook that never lets go is overruled after eight times in a row."""
    hooks = Hooks()
    active: list[bool] = []

    @hooks.on(Stop)
    async def again(event: Stop) -> Reply:
        active.append(event.stop_hook_active)
        return keep_going("TESTS FAIL")

    async with agent_on(tmp_path, "done", hooks=hooks) as agent:
        result = await agent.run("go")

    assert result.ok
    assert active == [False] + [True] * 8
    last = requests_of(agent)[1].messages[-1]
    assert isinstance(last, User)
    assert "TESTS FAIL" in last.text


async def test_an_agent_that_works_between_is_sent_back_as_often_as_it_takes(tmp_path: Path) -> None:
    """The cap counts blocks without a tool call between them, also one that fails (`stop_always_block_tools`)."""
    hooks = Hooks()
    active: list[bool] = []

    @hooks.on(Stop)
    async def again(event: Stop) -> Reply:
        active.append(event.stop_hook_active)
        return keep_going("TESTS FAIL")

    turns = ["one", bash("true"), "two", bash("exit 3"), "three", "four", "five", "six"]
    environ = clean_environ(tmp_path, CLAUDE_CODE_STOP_HOOK_BLOCK_CAP="2")
    async with agent_on(tmp_path, *turns, hooks=hooks, environ=environ) as agent:
        result = await agent.run("go")

    assert result.text == "five"
    assert active == [False, True, True, True, True]


async def test_a_blocked_prompt_is_erased_and_a_stopped_one_stays(tmp_path: Path) -> None:
    """UserPromptSubmit: a block leaves nothing behind; a stop leaves the prompt for the next turn."""
    hooks = Hooks()
    answers = iter([deny("NO"), stop("LATER"), None])

    @hooks.on(UserPromptSubmit)
    async def judge(event: UserPromptSubmit) -> Reply | None:
        return next(answers)

    async with agent_on(tmp_path, "done", hooks=hooks) as agent:
        blocked = await agent.run("first")
        stopped = await agent.run("second")
        await agent.run("third")

    assert "NO" in blocked.text
    assert "LATER" in stopped.text
    (request,) = requests_of(agent)
    said = "".join(message.text for message in request.messages if isinstance(message, User))
    assert "first" not in said
    assert "second" in said


async def test_a_background_answer_arrives_with_a_later_request(tmp_path: Path) -> None:
    """A hook that answers later never holds the agent up; what it says waits for the next request."""
    hooks = Hooks()
    release = asyncio.Event()

    async def late() -> Reply:
        await release.wait()
        return context("LATE")

    arrived = asyncio.Event()
    hooks.engine.on_late = lambda outcome: arrived.set()
    hooks.add(PreToolUse, _always(background(late())), name="slow", match="Bash")
    async with agent_on(tmp_path, bash("true"), "one", "two", hooks=hooks) as agent:
        await agent.run("go")
        release.set()
        await arrived.wait()
        await agent.run("go on")

    assert ["LATE" in reminders(request) for request in requests_of(agent)] == [False, False, True]


async def test_ask_goes_to_whoever_can_be_asked(tmp_path: Path) -> None:
    """A hook's ask overrules an allow rule; the host is told who wants to know and why."""
    hooks = Hooks()
    hooks.add(PreToolUse, _always(ask("SURE")), name="unsure")
    asked: list[PermissionQuestion] = []

    async def can_use_tool(question: PermissionQuestion) -> bool:
        asked.append(question)
        return True

    async with agent_on(tmp_path, bash("echo ran > out.txt"), "done", hooks=hooks, can_use_tool=can_use_tool) as agent:
        await agent.run("go")

    assert (tmp_path / "out.txt").exists()
    assert [(one.reason, one.reason_type) for one in asked] == [("SURE", "hook")]


async def test_nobody_to_ask_means_no(tmp_path: Path) -> None:
    """Without a host, a call that no rule allows is denied, and PermissionRequest hooks are asked before."""
    hooks = Hooks()
    seen = recorded(hooks)
    async with agent_on(tmp_path, bash("echo ran > out.txt"), "done", hooks=hooks, rules=read_rules({})) as agent:
        await agent.run("go")

    assert not (tmp_path / "out.txt").exists()
    assert "PermissionRequest" in seen


async def test_a_permission_request_hook_can_change_the_rules(tmp_path: Path) -> None:
    """What a hook permits for the session is not asked about again."""
    hooks = Hooks()
    asked: list[str] = []
    update = {"type": "addRules", "rules": [{"toolName": "Bash"}], "behavior": "allow", "destination": "session"}

    @hooks.on(PermissionRequest)
    async def permit(event: PermissionRequest) -> Reply:
        asked.append(event.tool_name)
        return allow() | specific(updated_permissions=(update,))

    turns = (bash("echo 1 >> out.txt"), bash("echo 2 >> out.txt"), "done")
    async with agent_on(tmp_path, *turns, hooks=hooks, rules=read_rules({})) as agent:
        await agent.run("go")

    assert (tmp_path / "out.txt").read_text() == "1\n2\n"
    assert asked == ["Bash"]


@pytest.mark.parametrize("behaviour", ["deny", "ask"])
async def test_rules_hold_for_an_input_that_a_permission_request_hook_gives(tmp_path: Path, behaviour: str) -> None:
    """A hook that permits another input than it was asked about does not get around deny and ask rules."""
    hooks = Hooks()
    hooks.add(PermissionRequest, _always(allow() | rewrite({"command": "touch bad.txt"})), name="swap")
    rules = read_rules({behaviour: ["Bash(touch *)"]})
    async with agent_on(tmp_path, bash("echo ran > out.txt"), "done", hooks=hooks, rules=rules) as agent:
        await agent.run("go")
        assert results(requests_of(agent)[-1])[0].is_error

    assert not (tmp_path / "bad.txt").exists()


async def test_a_subagent_needs_no_permission_but_its_calls_do(tmp_path: Path) -> None:
    """Giving work away changes nothing by itself; what the subagent does is asked about there."""
    hooks = Hooks()
    asked: list[str] = []

    @hooks.on(PermissionRequest)
    async def note(event: PermissionRequest) -> None:
        asked.append(event.tool_name)

    lanes = {"sub": {"first": "^SUB", "turns": [bash("echo ran > out.txt"), {"text": "done"}]}}
    async with agent_on(tmp_path, SUBAGENT, "done", lanes=lanes, hooks=hooks, rules=read_rules({})) as agent:
        await agent.run("go")

    assert asked == ["Bash"]
    assert not (tmp_path / "out.txt").exists()


async def test_the_task_list_needs_no_permission(tmp_path: Path) -> None:
    """What only the session knows of is not asked about."""
    hooks = Hooks()
    seen = recorded(hooks)
    turn = {"tools": [["TaskCreate", {"subject": "s", "description": "d"}]]}
    async with agent_on(tmp_path, turn, "done", hooks=hooks, rules=read_rules({})) as agent:
        await agent.run("go")

    assert "TaskCreated" in seen
    assert "PermissionRequest" not in seen


async def test_an_interrupted_subagent_is_told_of_without_the_reason(tmp_path: Path) -> None:
    """A PermissionRequest hook that interrupts ends the subagent as the user would; the main agent goes on."""
    hooks = Hooks()
    hooks.add(PermissionRequest, _always(deny("SECRET") | specific(interrupt=True)), name="halt")
    lanes = {"sub": {"first": "^SUB", "turns": [bash("echo ran > out.txt"), {"text": "never"}]}}
    async with agent_on(tmp_path, SUBAGENT, "done", lanes=lanes, hooks=hooks, rules=read_rules({})) as agent:
        result = await agent.run("go")
        answer = results(requests_of(agent)[-1])[0]

    assert result.text == "done"
    assert answer.is_error
    assert "SECRET" not in str(answer.content)


async def test_the_words_shown_may_differ_from_the_words_kept(tmp_path: Path) -> None:
    """MessageDisplay changes what the user reads, not what the model remembers."""
    hooks = Hooks()
    hooks.add(MessageDisplay, _always(specific(display_content="SHOWN")), name="mask")
    async with agent_on(tmp_path, "said", "next", hooks=hooks) as agent:
        result = await agent.run("go")
        await agent.run("more")

    assert result.text == "SHOWN"
    assert "said" in [getattr(message, "text", "") for message in requests_of(agent)[1].messages]


async def test_a_subagent_is_sent_back_to_work(tmp_path: Path) -> None:
    """SubagentStop keeps a subagent going, in its own conversation."""
    hooks = Hooks()
    hooks.add(SubagentStop, _once(keep_going("MORE")), name="more")
    lanes = {"sub": {"first": "^SUB", "turns": [{"text": "first"}, {"text": "second"}]}}
    async with agent_on(tmp_path, SUBAGENT, "done", hooks=hooks, lanes=lanes) as agent:
        await agent.run("go")

    (told,) = results(requests_of(agent)[-1])
    assert told.content == [{"type": "text", "text": "second"}]


async def test_a_background_agent_reports_as_a_prompt_nobody_typed(tmp_path: Path) -> None:
    """The run goes on when a background agent is done: it hears of it, and its hooks do too."""
    hooks = Hooks()
    prompts: list[str] = []

    @hooks.on(UserPromptSubmit)
    async def note(event: UserPromptSubmit) -> None:
        prompts.append(event.prompt)

    alone = {"tools": [["Agent", {"description": "d", "prompt": "SUB"}]]}
    async with agent_on(tmp_path, alone, "waiting", "heard", hooks=hooks, lanes=SUB_LANE) as agent:
        await agent.run("go")
        later = await agent.background()
        assert await agent.background() is None

    assert later is not None
    assert later.text == "heard"
    assert "sub answer" in prompts[1]


async def test_a_teammate_works_through_the_task_list_and_is_asked_before_it_rests(tmp_path: Path) -> None:
    """A teammate claims open tasks by itself; TeammateIdle may send it back."""
    hooks = Hooks()
    idle: list[str] = []

    @hooks.on("TeammateIdle")
    async def rest(event: Any) -> Reply | None:
        idle.append(event.teammate_name)
        return keep_going("LOOK AGAIN") if len(idle) == 1 else None

    create = {"tools": [["TaskCreate", {"subject": "S", "description": "D"}]]}
    mate = {"tools": [["Agent", {"description": "d", "prompt": "SUB", "name": "ann"}]]}
    lanes = {"sub": {"first": "^SUB", "turns": [{"text": "did it"}]}}
    async with agent_on(tmp_path, create, mate, "waiting", "heard", hooks=hooks, lanes=lanes) as agent:
        await agent.run("go")
        await agent.background()
        owners = [task.owner for task in agent.conversation.state.tasks.all()]

    assert (idle, owners) == (["ann", "ann"], ["ann"])


async def test_a_task_is_not_completed_when_a_hook_objects(tmp_path: Path) -> None:
    """TaskCompleted: a block refuses the step and is told to the model."""
    hooks = Hooks()
    hooks.add(TaskCompleted, _always(deny("NOT YET")), name="tests")
    create = {"tools": [["TaskCreate", {"subject": "S", "description": "D"}]]}
    finish = {"tools": [["TaskUpdate", {"taskId": "1", "status": "completed"}]]}
    async with agent_on(tmp_path, create, finish, "done", hooks=hooks) as agent:
        await agent.run("go")
        (task,) = agent.conversation.state.tasks.all()

    assert task.status == "pending"
    assert "NOT YET" in str(results(requests_of(agent)[2])[1].content)


async def test_a_session_that_a_hook_refuses_does_not_begin(tmp_path: Path) -> None:
    """SessionStart can block (seeds/002): no request is made, and SessionEnd still fires."""
    hooks = Hooks()
    seen = recorded(hooks)
    hooks.add(SessionStart, _always(deny("NOT HERE")), name="no")
    agent = agent_on(tmp_path, "done", hooks=hooks)
    with pytest.raises(AgentError, match="NOT HERE"):
        await agent.run("go")
    await agent.aclose()

    assert not requests_of(agent)
    assert seen == ["SessionStart", "SessionEnd"]


async def test_an_interrupted_turn_can_be_followed_by_another(tmp_path: Path) -> None:
    """Interrupting kills the tool under way; the conversation stays whole, and SessionEnd fires at the end."""
    hooks = Hooks()
    seen = recorded(hooks)
    begun = asyncio.Event()

    @hooks.on(PreToolUse, rejudge=False)
    async def tell(event: PreToolUse) -> None:
        begun.set()

    async with agent_on(tmp_path, bash("sleep 60"), "done", hooks=hooks) as agent:
        turn = asyncio.create_task(agent.run("go"))
        await begun.wait()
        assert agent.interrupt()
        cut = await turn
        after = await agent.run("go on")

    assert (cut.subtype, cut.is_error, after.text) == ("error_during_execution", True, "done")
    assert seen[-1] == "SessionEnd"
    assert results(requests_of(agent)[1])[0].is_error


async def test_a_deferred_call_is_made_by_whoever_resumes(tmp_path: Path) -> None:
    """Defer ends the run; the next one asks the hooks again, makes the call, and goes on."""
    hooks = Hooks()
    hooks.add(PreToolUse, _once(defer("LATER")), name="later")
    async with agent_on(tmp_path, bash("echo ran > out.txt"), hooks=hooks) as agent:
        first = await agent.run("go")
        assert agent.conversation.transcript is not None
        path = agent.conversation.transcript.path
    assert first.deferred is not None
    assert not (tmp_path / "out.txt").exists()

    async with agent_on(tmp_path, "carried on", "done", hooks=hooks, resume=path) as again:
        result = await again.run("more")

    assert (tmp_path / "out.txt").exists()
    assert result.text == "done"


async def test_hooks_are_given_the_whole_path_of_a_file(tmp_path: Path) -> None:
    """A relative path, or one with `..`, reaches hooks as the file it names."""
    (tmp_path / "a.txt").write_text("a")
    hooks = Hooks()
    paths: list[Any] = []

    @hooks.on(PreToolUse)
    async def note(event: PreToolUse) -> None:
        paths.append(event.tool_input["file_path"])

    turns = ({"tools": [["Read", {"file_path": path}]]} for path in ("a.txt", "b/../a.txt"))
    async with agent_on(tmp_path, *turns, "done", hooks=hooks) as agent:
        await agent.run("go")

    assert paths == [str(tmp_path / "a.txt")] * 2


async def test_why_a_turn_was_stopped_is_told_to_whoever_goes_on(tmp_path: Path) -> None:
    """A stop asks the model nothing more; the run that resumes the session tells it."""
    hooks = Hooks()
    hooks.add(PostToolUse, _once(stop("ENOUGH")), name="enough")
    async with agent_on(tmp_path, bash("true"), hooks=hooks) as agent:
        await agent.run("go")
        assert agent.conversation.transcript is not None
        path = agent.conversation.transcript.path

    async with agent_on(tmp_path, "done", hooks=hooks, resume=path) as again:
        await again.run("more")
        told = reminders(requests_of(again)[0])

    assert any("ENOUGH" in text for text in told)


async def test_a_call_deferred_for_good_is_answered_before_the_next_prompt(tmp_path: Path) -> None:
    """Who prompts again instead of resuming gives the call up; the model never reads a call without an answer."""
    hooks = Hooks()
    hooks.add(PreToolUse, _always(defer("LATER")), name="later")
    async with agent_on(tmp_path, bash("echo ran > out.txt"), "done", hooks=hooks) as agent:
        await agent.run("go")
        result = await agent.run("more")
        answers = results(requests_of(agent)[-1])

    assert result.text == "done"
    assert [answer.is_error for answer in answers] == [True]
    assert not (tmp_path / "out.txt").exists()


async def test_a_session_resumes_with_what_was_said(tmp_path: Path) -> None:
    """A second run goes on where the first ended; SessionStart says so."""
    sources: list[str] = []
    hooks = Hooks()

    @hooks.on(SessionStart)
    async def note(event: SessionStart) -> None:
        sources.append(event.source)

    async with agent_on(tmp_path, "one", hooks=hooks) as first:
        await first.run("hello")
        assert first.conversation.transcript is not None
        path = first.conversation.transcript.path
    async with agent_on(tmp_path, "two", hooks=hooks, resume=path) as second:
        await second.run("again")
    async with agent_on(tmp_path, "three", hooks=hooks, resume=path, fork=True) as third:
        await third.run("elsewhere")

    assert sources == ["startup", "resume", "fork"]
    assert len(requests_of(second)[0].messages) == 3
    assert first.session.id == second.session.id != third.session.id


@pytest.mark.parametrize(
    "status, kind",
    [(429, "rate_limit"), (500, "server_error"), (529, "overloaded"), (401, "authentication_failed")],
)
async def test_a_model_that_cannot_answer_ends_the_turn_and_is_told(tmp_path: Path, status: int, kind: str) -> None:
    """StopFailure carries why; the run ends in an error, and the session can go on."""
    hooks = Hooks()
    kinds: list[str] = []

    @hooks.on("StopFailure")
    async def note(event: Any) -> None:
        kinds.append(event.error)

    async with agent_on(tmp_path, {"status": status}, "better", hooks=hooks) as agent:
        failed = await agent.run("go")
        after = await agent.run("again")

    assert (failed.is_error, kinds, after.text) == (True, [kind], "better")


async def test_what_the_model_gets_wrong_is_told_to_it(tmp_path: Path) -> None:
    """Unknown tools and invalid arguments reach no hook on calls; the model reads what to mend."""
    hooks = Hooks()
    seen = recorded(hooks)
    wrong = {"tools": [["Nope", {"a": 1}], ["Bash", {"cmd": "x"}], ["Bash", "not an object"]]}
    async with agent_on(tmp_path, wrong, "done", hooks=hooks) as agent:
        await agent.run("go")

    told = results(requests_of(agent)[1])
    assert [output.is_error for output in told] == [True, True, True]
    assert "PreToolUse" not in seen
    assert "PostToolBatch" in seen


async def test_a_thousand_calls_at_once_are_all_answered(tmp_path: Path) -> None:
    """However many calls an answer has, each gets its result, in order."""
    (tmp_path / "f").write_text("x")
    calls = {"tools": [["Read", {"file_path": str(tmp_path / "f")}]] * 1000}
    async with agent_on(tmp_path, calls, "done") as agent:
        result = await agent.run("go")

    told = results(requests_of(agent)[1])
    assert result.text == "done"
    assert [output.tool_use_id for output in told] == [f"toolu_1_{number}" for number in range(1000)]


async def test_a_model_that_says_nothing_ends_its_turn(tmp_path: Path) -> None:
    """An answer without content is an answer."""
    async with agent_on(tmp_path, {}, "done") as agent:
        result = await agent.run("go")

    assert (result.ok, result.text) == (True, "")


async def test_the_turn_limit_ends_the_run(tmp_path: Path) -> None:
    """`max_turns` bounds the requests; Stop does not fire, because the agent did not want to stop."""
    hooks = Hooks()
    seen = recorded(hooks)
    async with agent_on(tmp_path, bash("true"), "done", hooks=hooks, max_turns=1) as agent:
        result = await agent.run("go")

    assert (result.subtype, len(requests_of(agent))) == ("error_max_turns", 1)
    assert "Stop" not in seen


async def test_the_stream_ends_with_the_result(tmp_path: Path) -> None:
    """`stream` yields what happens as it happens."""
    async with agent_on(tmp_path, bash("true"), "done") as agent:
        kinds = [note["type"] async for note in agent.stream("go")]

    assert kinds == ["assistant", "user", "assistant", "result"]


async def test_a_hook_that_fires_the_event_it_handles_is_stopped() -> None:
    """`ctx.fire` refuses to go round in circles, and says which hook it was."""
    hooks = Hooks()

    @hooks.on(PostToolUse, name="ping")
    async def ping(event: Event, ctx: Context) -> None:
        await ctx.fire(PostToolUse(tool_name="Bash"))

    verdict = await hooks.fire(PostToolUse(tool_name="Bash"))

    assert "hook `ping` fires `PostToolUse`, which it handles itself" in str(verdict.failures[0].error)


async def test_two_hooks_that_fire_at_each_other_are_stopped() -> None:
    """The circle is noticed where it would close."""
    hooks = Hooks()
    inner: list[Verdict] = []

    @hooks.on("Notification")
    async def pong(event: Event, ctx: Context) -> None:
        await ctx.fire(PostToolUse(tool_name="Bash"))

    @hooks.on(PostToolUse)
    async def ping(event: Event, ctx: Context) -> None:
        inner.append(await ctx.fire(Notification(message="m")))

    verdict = await hooks.fire(PostToolUse(tool_name="Bash"))

    assert not verdict.failures
    assert "hook `ping` fires `PostToolUse`" in str(inner[0].failures[0].error)


def _always(reply: Reply) -> Any:
    async def answer(event: Event) -> Reply:
        return reply

    return answer


def _once(reply: Reply) -> Any:
    left = [reply]

    async def answer(event: Event) -> Reply | None:
        return left.pop() if left else None

    return answer


async def test_a_stop_hook_that_ends_the_turn_is_told_in_the_next(tmp_path: Path) -> None:
    """`continue: false` on Stop: the model hears of it with the next prompt."""
    hooks = Hooks()
    hooks.add(Stop, _always(stop("ENOUGH")), name="enough")
    async with agent_on(tmp_path, "one", "two", hooks=hooks) as agent:
        first = await agent.run("go")
        await agent.run("again")

    assert first.reason == "stop_hook_prevented"
    assert "Stop hook stopped continuation: ENOUGH" in reminders(requests_of(agent)[1])


async def test_a_subagent_has_its_own_limit_of_turns(tmp_path: Path) -> None:
    """`maxTurns` of its header ends it; what it did until then is its result, not an error."""
    kind = AgentDefinition(name="general-purpose", prompt="p", max_turns=1)
    lanes = {"sub": {"first": "^SUB", "turns": [bash("echo ran >> out.txt")]}}
    async with agent_on(tmp_path, SUBAGENT, "done", lanes=lanes, agents={kind.name: kind}) as agent:
        result = await agent.run("go")

    (told,) = results(requests_of(agent)[-1])
    assert (result.text, told.is_error, (tmp_path / "out.txt").read_text()) == ("done", False, "ran\n")
    assert "maximum number of turns (1)" in str(told.content)


async def test_instructions_outlast_a_resume_a_compaction_and_a_clear(tmp_path: Path) -> None:
    """They are announced anew each time, with the reason, and every request holds them exactly once."""
    (tmp_path / "CLAUDE.md").write_text("BE BRIEF")
    hooks = Hooks()
    reasons: list[str] = []

    @hooks.on(InstructionsLoaded)
    async def note(event: InstructionsLoaded) -> None:
        reasons.append(event.load_reason)

    lanes = {"compact": {"last": "create a detailed summary", "turns": [{"text": "<summary>SO FAR</summary>"}]}}
    async with agent_on(tmp_path, "one", hooks=hooks) as agent:
        await agent.run("hello")
    path = agent.conversation.transcript.path if agent.conversation.transcript else None
    async with agent_on(tmp_path, "two", "three", "four", hooks=hooks, lanes=lanes, resume=path) as agent:
        for prompt in ("again", "/compact", "more", "/clear", "anew"):
            await agent.run(prompt)

    assert reasons == ["session_start", "session_start", "compact", "session_start"]
    asked = [request for request in requests_of(agent) if request.tools]
    assert [sum("BE BRIEF" in text for text in reminders(request)) for request in asked] == [1, 1, 1]


async def test_context_for_a_compacted_session_waits_for_a_later_run(tmp_path: Path) -> None:
    """A run that only compacts leaves what SessionStart hooks had to say to the run that goes on."""
    hooks = Hooks()
    hooks.add(SessionStart, _always(context("REMEMBER")), match="compact", name="memory")
    lanes = {"compact": {"last": "create a detailed summary", "turns": [{"text": "<summary>SO FAR</summary>"}]}}
    async with agent_on(tmp_path, "one", hooks=hooks, lanes=lanes) as agent:
        await agent.run("hello")
        await agent.run("/compact")
    path = agent.conversation.transcript.path if agent.conversation.transcript else None
    async with agent_on(tmp_path, "two", hooks=hooks, resume=path) as agent:
        await agent.run("more")

    assert any("REMEMBER" in text for text in reminders(requests_of(agent)[0]))


async def test_a_worktree_hook_that_fails_is_told_in_its_own_words(tmp_path: Path) -> None:
    """What the command wrote to stderr is why there is no worktree."""
    hooks = Hooks()
    hooks.add(WorktreeCreate, Command(command="echo NO ROOM >&2; exit 1"), name="no room")
    turn = {"tools": [["EnterWorktree", {"name": "w1"}]]}
    rules = read_rules({}, allowed=["EnterWorktree"])
    async with agent_on(tmp_path, turn, "done", hooks=hooks, rules=rules) as agent:
        await agent.run("go")

    (told,) = results(requests_of(agent)[1])
    assert told.is_error
    assert "NO ROOM" in str(told.content)
