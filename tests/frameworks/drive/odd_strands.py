"""Strands: tool uses that are not what they should be."""

from typing import Any

from mcp import StdioServerParameters, stdio_client
from strands import Agent, tool
from strands.tools.mcp import MCPClient

from hookline.frameworks.strands import HooklineProvider
from tests.frameworks.drive.odd import LS, RM, Seen, Watched, deny_rm, mcp_server, played, usual
from tests.frameworks.drive.strands_agent import Scripted


class SameId(Scripted):
    """Gives all its calls one id."""

    async def stream(self, *args: Any, **options: Any) -> Any:
        async for event in super().stream(*args, **options):
            use = event.get("contentBlockStart", {}).get("start", {}).get("toolUse")
            if use is not None:
                use["toolUseId"] = "same"
            yield event


def answer(seen: Seen, turns: Any, *hooks: Watched, model: Any = Scripted) -> str:
    @tool
    def shell(command: str) -> str:
        """Run a command."""
        return seen.shell(command)

    providers = [HooklineProvider(one) for one in hooks]
    agent = Agent(name="main", model=model(seen, turns, "m"), tools=[shell], hooks=providers, callback_handler=None)
    return str(agent("go")).strip()


def input_that_is_no_object() -> Any:
    seen, hooks = Seen(), Watched(deny_rm)
    return played(seen, lambda: answer(seen, [("shell", ["rm"])], hooks), hooks)


def ids_repeated() -> Any:
    seen, hooks = Seen(), Watched(deny_rm)
    return played(seen, lambda: answer(seen, [[LS, RM, ("shell", {"command": "pwd"})]], hooks, model=SameId), hooks)


def mcp_tools() -> Any:
    seen, hooks = Seen(), Watched(deny_rm)

    def work(program: str, arguments: list[str]) -> str:
        server = MCPClient(lambda: stdio_client(StdioServerParameters(command=program, args=arguments)))
        with server:
            agent = Agent(
                name="main", model=Scripted(seen, [[LS, RM]], "m"), tools=server.list_tools_sync(),
                hooks=[HooklineProvider(hooks)], callback_handler=None,
            )  # fmt: skip
            return str(agent("go")).strip()

    with mcp_server(seen) as server:
        return played(seen, lambda: work(*server), hooks)


CASES = usual(answer) | {case.__name__: case for case in (input_that_is_no_object, ids_repeated, mcp_tools)}
