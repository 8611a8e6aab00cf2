"""What hooks need of an agent: a model that judges, a small agent that looks for itself, MCP servers to call."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import Any

from hookline.agent.hook_messages import TEXTS
from hookline.agent.messages import Assistant, Message, ToolOutput, ToolUse, User
from hookline.agent.models import Model, ModelRequest, OnEvent, ToolSpec, choose
from hookline.agent.session.session import Conversation
from hookline.agent.tools import SessionState, Tool, ToolEnv, default_tools, failure
from hookline.agent.tools.mcp import McpServers, read_config
from hookline.errors import HookFailed, ToolInputInvalid
from hookline.runners import ANSWER_SCHEMA, McpResult, Question, Services
from hookline.runners.prompt import understand

ANSWER = ToolSpec("StructuredOutput", TEXTS["answer"], dict(ANSWER_SCHEMA))
MOST_TURNS = 50


def judge(model: Model, conversation: Conversation | None = None) -> Any:
    """One question to the model, in one request; on Stop the conversation of the resting agent comes first."""

    async def ask(question: Question) -> str:
        before: list[Message] = []
        if question.with_conversation and conversation:
            before = conversation.session.talks.get(question.event.agent_id or "", conversation).messages
        request = ModelRequest(
            messages=(*before, User.of(question.text, synthetic=True)),
            system=(TEXTS["judges"],),
            model=question.model or "",
            output_schema=dict(question.schema),
        )
        return (await model.respond(request)).text

    return ask


def inspector(model: Model, tools: Any, env: Any) -> Any:
    """A small agent: it may use the session's tools, and answers with StructuredOutput; it is asked twice at most."""
    alone, resting = (f"{TEXTS[name]} {TEXTS['look']}" for name in ("judges", "rests"))

    async def look(question: Question) -> Mapping[str, Any] | None:
        messages: list[Message] = [User.of(question.text, synthetic=True)]
        nudged = False
        for _ in range(MOST_TURNS):
            request = ModelRequest(
                messages=tuple(messages),
                system=(resting if question.with_conversation else alone,),
                tools=(*(tool.spec for tool in tools().values()), ANSWER),
                model=question.model or "",
            )
            answer = await model.respond(request)
            messages.append(answer)
            given = next((use.input for use in answer.tool_uses if not _wrong(use)), None)
            if given is not None:
                return given
            if answer.tool_uses:
                messages.append(await _looked(answer, tools(), env()))
            elif nudged:
                return None
            else:
                nudged = True
                messages.append(User.of(TEXTS["answer_now"], synthetic=True))
        return None

    return look


def _wrong(use: ToolUse) -> str:
    """Why this call is not an answer; empty if it is one."""
    if use.name != ANSWER.name:
        return f"{use.name} is not available to a hook's check"
    try:
        understand(use.input)
    except HookFailed as problem:
        return f"{ANSWER.name} {problem}; call it again"
    return ""


async def _looked(answer: Assistant, tools: Mapping[str, Tool], env: ToolEnv) -> User:
    """Only tools that change nothing are run: no hook judged these calls."""
    outputs = []
    for use in answer.tool_uses:
        tool, result = tools.get(use.name), failure(_wrong(use))
        try:
            if tool is not None and tool.read_only:
                result = await tool.run(tool.validate(use.input), env)
        except ToolInputInvalid as problem:
            result = failure(str(problem))
        outputs.append(ToolOutput(use.id, result.content, result.is_error))
    return User(tuple(outputs))


def mcp_caller(servers: Callable[[], McpServers], env: Any) -> Any:
    """Calls tools of the session's MCP servers."""

    async def call(server: str, tool: str, arguments: Mapping[str, Any]) -> McpResult:
        found = servers().servers.get(server)
        if found is None:
            raise HookFailed(f"no MCP server `{server}` is connected; name it in `--mcp-config`")
        result = await found.call(tool, dict(arguments), env())
        content = result.content
        text = content if isinstance(content, str) else "\n".join(str(block.get("text", "")) for block in content)
        return McpResult(text, result.is_error)

    return call


def agent_services(conversation: Conversation) -> Services:
    """What an agent can do for hooks: its model judges, its tools look, its servers are called, as they are by then."""
    session, env = conversation.session, partial(conversation.tool_env, "")
    model = _Found(lambda: session.model)
    look = inspector(model, lambda: session.tools, env)
    return Services(judge(model, conversation), look, mcp_caller(lambda: session.servers, env))


def replace_services(hooks: object, old: Services, new: Services) -> None:
    """Let prompt, agent and MCP hooks of a set use `new` in place of `old`, where they have not been given others."""
    own = getattr(hooks, "services", None)
    for name in Services.__struct_fields__:
        if own is not None and getattr(own, name) is getattr(old, name):
            setattr(own, name, getattr(new, name))


class _Found:
    """A model that is looked for when it is asked: a session's may change, and hooks of other kinds need no key."""

    name = ""

    def __init__(self, find: Callable[[], Model]) -> None:
        self._find = find

    async def respond(self, request: ModelRequest, on_event: OnEvent | None = None) -> Assistant:
        return await self._find().respond(request, on_event)


@asynccontextmanager
async def services(*, model: str | None, mcp_config: str | None, cwd: str) -> AsyncIterator[Services]:
    """What hooks need when no agent runs (`hookline fire`): connected on the way in, ended on the way out."""
    chosen = _Found(cache(lambda: choose(model or "")))
    servers = McpServers(read_config(mcp_config) if mcp_config else {})
    await servers.connect()
    state = SessionState(cwd)
    env = partial(ToolEnv, state)
    reading = {name: tool for name, tool in default_tools().items() if tool.read_only}
    try:
        yield Services(judge(chosen), inspector(chosen, lambda: reading, env), mcp_caller(lambda: servers, env))
    finally:
        await state.jobs.aclose()
        await servers.aclose()
