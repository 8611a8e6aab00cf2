"""What tools may ask of the agent while they run: subagents to start, events to fire, skills to load.

A subagent is a task with a conversation of its own, in the foreground, the background, or as a teammate:

    SubagentStart (may block) → its own turns, with every hook → SubagentStop (may send it back)

A teammate has a name, works through the shared task list, and is asked by TeammateIdle whether it is really done.
"""

import asyncio
from collections.abc import Awaitable, Mapping
from contextlib import closing
from pathlib import Path
from secrets import token_hex
from typing import Any

from msgspec import structs

from hookline import events
from hookline.agent import hook_messages
from hookline.agent.context.definitions import BUILT_IN_AGENTS, AgentDefinition
from hookline.agent.context.prompts import use_skill
from hookline.agent.messages import Assistant, TurnEnd, User
from hookline.agent.models import ModelRequest, resolve
from hookline.agent.session.lifecycle import instructions_told
from hookline.agent.session.session import Conversation
from hookline.agent.session.transcript import Transcript
from hookline.agent.tools import Task, Tool, ToolHost, ToolResult, failure
from hookline.agent.turn import run_turn, subagent_stops
from hookline.core.engine import Verdict
from hookline.errors import HooklineError
from hookline.replies import Decision

DEEPEST = 5
STOP_WAS_ASKED = frozenset({"completed", "stop_hook_prevented"})  # endings before which SubagentStop hooks were asked


async def spawn_agent(parent: Conversation, given: dict[str, Any], tool_use_id: str) -> ToolResult:
    """Give a task to a subagent; its last words are the result, unless it goes on in the background."""
    kind = given.get("subagent_type") or "general-purpose"
    known = {**BUILT_IN_AGENTS, **parent.session.agents}
    definition = known.get(kind)
    if definition is None:
        return failure(f"Agent type '{kind}' not found. Available agents: {', '.join(sorted(known))}")
    if parent.depth >= DEEPEST:
        return failure(f"subagents cannot be nested deeper than {DEEPEST}")
    if given.get("name") in parent.session.teammates:
        return failure(f"a teammate named `{given['name']}` is at work already; choose another name")
    conversation = _conversation(parent, definition, given, tool_use_id)
    # said in the call, else in the definition, else it runs in the background, as in Claude Code
    alone = given.get("name") or given.get("run_in_background", definition.background is not False)
    if alone:
        return _in_background(conversation, definition, given)
    with closing(conversation):
        ending = await _work(conversation, given["prompt"])
    problems = "The agent was interrupted." if ending.reason == "aborted_tools" else "\n".join(ending.errors)
    failed = ending.is_error and ending.reason != "max_turns"  # what it did until then stands
    content = [{"type": "text", "text": ending.text or problems or "(the agent said nothing)"}]
    about = {"status": "failed" if failed else "completed", "prompt": given["prompt"]}
    who = {"agentId": conversation.agent_id, "agentType": conversation.agent_type}
    return ToolResult(content, {**about, **who, "content": content}, failed)


def _conversation(
    parent: Conversation, definition: AgentDefinition, given: dict[str, Any], tool_use_id: str
) -> Conversation:
    agent_id = "a" + token_hex(8)
    session, about = parent.session, given.get("description")
    main = parent.main_transcript or (parent.transcript.path if parent.transcript else None)
    transcript = None
    if main:
        mirror = parent.transcript.mirror if parent.transcript else None
        path = main.with_suffix("") / "subagents" / f"agent-{agent_id}.jsonl"
        transcript = Transcript(path, session.id, cwd=session.project_dir, sidechain=agent_id, mirror=mirror)
        described = {"agentType": definition.name, "description": about, "toolUseId": tool_use_id}
        nested = {"parentAgentId": parent.agent_id} if parent.agent_id else {}
        transcript.describe({**described, "spawnDepth": parent.depth + 1, **nested})
    model = str(given.get("model") or definition.model)
    return Conversation(
        session=session,
        state=parent.state.fork(),
        transcript=transcript,
        agent_id=agent_id,
        agent_type=definition.name,
        parent_tool_use_id=tool_use_id,
        description=about,
        prompt_id=parent.prompt_id,
        model=resolve(model, session.environ) if model not in ("", "inherit") else "",
        system=(definition.prompt,) if definition.prompt else session.system,
        tools=definition.allowed(session.tools),
        main_transcript=main,
        depth=parent.depth + 1,
        waiting=instructions_told(parent) if definition.instructed else [],
        instructions_seen=set(parent.instructions_seen),
        max_turns=definition.max_turns,
    )


async def _work(conversation: Conversation, prompt: str) -> TurnEnd:
    """Begin, and take turns until it may rest."""
    verdict = await conversation.fire(events.SubagentStart, description=conversation.description)
    if verdict.blocked:
        why = f"SubagentStart hook: {hook_messages.reason_of(verdict)}"
        return TurnEnd(reason="hook_stopped", is_error=True, text=why)
    conversation.add(User.of(prompt))
    conversation.remind_of_context(verdict)
    # hooks hear, by SubagentStop, of one that did not come to its end by itself, and cannot send it back
    try:
        ending = await run_turn(conversation)
    except Exception as problem:
        await subagent_stops(conversation, success=False, error=f"{type(problem).__name__}: {problem}")
        raise
    if ending.reason not in STOP_WAS_ASKED:
        why = "\n".join(ending.errors) or ending.reason
        await subagent_stops(conversation, success=False, error=why)
    return ending


def _in_background(conversation: Conversation, definition: AgentDefinition, given: dict[str, Any]) -> ToolResult:
    conversation.in_background = True
    name = str(given.get("name") or "")
    conversation.session.teammates |= {name} if name else set()
    prompt = given["prompt"]
    work = _Teammate(conversation, name).work(prompt) if name else _work(conversation, prompt)
    task = asyncio.create_task(_alone(conversation, given, work), name=f"agent {conversation.agent_id}")
    conversation.session.working.add(task)
    task.add_done_callback(conversation.session.working.discard)
    about = {"task_type": "local_agent", "subagent_type": definition.name, "description": given["description"]}
    _tell_host(conversation, "task_started", **about)
    response = {"status": "async_launched", "agentId": conversation.agent_id, "description": given["description"]}
    told = f"The agent works in the background (id {conversation.agent_id}); you are told when it is done."
    return ToolResult([{"type": "text", "text": told}], response)


async def _alone(conversation: Conversation, given: dict[str, Any], work: Awaitable[TurnEnd]) -> None:
    """Work in the background: what breaks it is its ending, and the main agent is told."""
    with closing(conversation):
        try:
            ending = await work
        except Exception as problem:  # noqa: BLE001 - told to the main agent, as any other ending
            ending = TurnEnd(reason="error", is_error=True, text=f"{type(problem).__name__}: {problem}")
        status = "failed" if ending.is_error else "completed"
        text = ending.text or "\n".join(ending.errors)
        output = str(conversation.transcript.path) if conversation.transcript else ""
        _tell_host(conversation, "task_notification", status=status, summary=text, output_file=output)
        summary = f'Agent "{given["description"]}" {status}'
        conversation.session.inbox.put(hook_messages.notification(str(conversation.agent_id), status, summary, text))


def _tell_host(conversation: Conversation, subtype: str, **about: Any) -> None:
    task = {"task_id": conversation.agent_id, "tool_use_id": conversation.parent_tool_use_id}
    conversation.session.output.system(subtype, **task, **about)


MOST_SENT_BACK = 8  # how often in a row hooks may send a teammate back with nothing new to do


class _Teammate:
    """What one teammate is told between its turns.

    Its prompt → tasks not taken yet, one after another → TeammateIdle (may send it back) → rest. A task left in
    progress counts as done once the turn is over, unless a TaskCompleted hook objects: then it stays open, the teammate
    is told why, and goes on with it.
    """

    def __init__(self, conversation: Conversation, name: str) -> None:
        self.conversation, self.name = conversation, name
        self.sent_back = 0
        self.given_up: set[str] = set()

    async def work(self, prompt: str) -> TurnEnd:
        """Work on the prompt, then through the shared task list, until nothing is left to do and no hook objects."""
        try:
            ending = await _work(self.conversation, prompt)
            while not ending.is_error and (told := await self.next()) is not None:
                self.conversation.add_user(told)
                ending = await run_turn(self.conversation)
        finally:
            self.conversation.session.teammates.discard(self.name)
        return ending

    async def next(self) -> str | None:
        """What to do next: fix what a hook objects to, a new task, or a hook's reason not to rest; None to rest."""
        objection = await self._objection()
        if objection is not None:
            return objection
        task, team = self.conversation.state.tasks.claim(self.name), self.conversation.session.id
        if task is not None:
            self.sent_back = 0
            return f"Task #{task.id} is yours now: {task.subject}\n{task.description}"
        verdict = await self.conversation.fire(events.TeammateIdle, teammate_name=self.name, team_name=team)
        if not verdict.keep_going or verdict.stop or not self._goes_back():
            return None
        return hook_messages.feedback(verdict.reply.keep_going_reasons, "TeammateIdle")

    async def _objection(self) -> str | None:
        for task in self.conversation.state.tasks.all():
            if task.owner != self.name or task.status != "in_progress" or task.id in self.given_up:
                continue
            why = await AgentToolHost(self.conversation).task_block_reason(events.TaskCompleted, task)
            if why is None:
                self.conversation.state.tasks.put(structs.replace(task, status="completed"))
            elif self._goes_back():
                return f"Task #{task.id} is not done. TaskCompleted hook feedback:\n{why}"
            else:
                self.given_up.add(task.id)
        return None

    def _goes_back(self) -> bool:
        """Whether it may be sent back once more; a hook that never lets go is overruled."""
        self.sent_back += 1
        if self.sent_back <= MOST_SENT_BACK:
            return True
        told = f"hooks sent teammate `{self.name}` back {MOST_SENT_BACK} times in a row; it rests"
        self.conversation.session.output.inform(told, level="warning")
        return False


class AgentToolHost(ToolHost):
    """The agent, as the tools of one conversation see it."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    def tools(self) -> Mapping[str, Tool]:
        return self._conversation.tool_set

    async def ask_model(self, request: ModelRequest, *, small: bool) -> Assistant:
        """An answer outside the conversation, which counts as the session's own; raises `ModelError`."""
        session = self._conversation.session
        if small and session.model.name.startswith("claude-"):
            request = structs.replace(request, model=resolve("haiku", session.environ))
        response = await session.model.respond(request)
        session.count(response)
        return response

    async def worktree_create(self, name: str) -> str | None:
        """WorktreeCreate: a hook may make the worktree and say where; one that fails makes it impossible."""
        verdict = await self._conversation.fire(events.WorktreeCreate, name=name)
        if not verdict.outcomes:
            return None
        path = verdict.reply.specific.worktree_path if verdict.reply.specific else None
        if verdict.blocked or path is None:
            failed = (one.stderr.strip() or str(one.error) for one in verdict.failures)
            why = verdict.reason or next(failed, "no hook said where it is")
            raise HooklineError(f"the worktree was not created: {why}")
        if not Path(path).is_dir():  # noqa: ASYNC240 - one look at the disk
            raise HooklineError(f"the worktree was not created: a hook names `{path}`, which is not a folder")
        return path

    async def tell(self, kind: type[events.CwdChanged | events.WorktreeRemove], **about: Any) -> None:
        await self._conversation.fire(kind, **about)

    async def task_block_reason(self, kind: type[events.TaskCreated | events.TaskCompleted], task: Task) -> str | None:
        """TaskCreated, TaskCompleted: a block refuses the step and says why."""
        session = self._conversation.session
        about = {"task_id": task.id, "task_subject": task.subject, "task_description": task.description}
        team = session.id if task.owner in session.teammates else None
        verdict = await self._conversation.fire(kind, **about, teammate_name=task.owner, team_name=team)
        return hook_messages.reason_of(verdict) if verdict.decision is Decision.DENY else None

    async def spawn_agent(self, given: dict[str, Any], tool_use_id: str) -> ToolResult:
        return await spawn_agent(self._conversation, given, tool_use_id)

    async def run_skill(self, name: str, arguments: str) -> ToolResult:
        return await use_skill(self._conversation, name, arguments)

    async def elicit(self, server: str, request: dict[str, Any]) -> dict[str, Any]:
        """An MCP server asks the user: Elicitation (may answer, may decline) → the host → ElicitationResult.

        Hooks on the latter have the last word. Without a host the answer is cancel.
        """
        conversation, mode = self._conversation, str(request.get("mode") or "form")
        asked = {"url": request.get("url"), "requested_schema": request.get("requestedSchema")}
        text = str(request.get("message") or "")
        verdict = await conversation.fire(events.Elicitation, mcp_server_name=server, message=text, mode=mode, **asked)
        answer = _said(verdict)
        if answer is not None:
            return answer
        ask = conversation.session.elicit
        answer = {"action": "cancel"} if ask is None else await ask(server, request)
        about = {"action": str(answer.get("action") or "cancel"), "content": answer.get("content")}
        verdict = await conversation.fire(events.ElicitationResult, mcp_server_name=server, mode=mode, **about)
        final = _said(verdict) or answer
        told = f'Elicitation response for server "{server}": {final["action"]}'
        await conversation.notify(told, "elicitation_response")
        return final


def _said(verdict: Verdict) -> dict[str, Any] | None:
    """What hooks answer in the user's place."""
    if verdict.blocked:
        return {"action": "decline"}
    more = verdict.reply.specific
    if more is None or more.action is None:
        return None
    return {"action": more.action, "content": more.content} if more.content is not None else {"action": more.action}
