"""Plays a recorded case without an agent: fires, through the case's own hooks, the events its script leads to.

Nothing here decides for a hook. The script of the case says which prompt, which tool calls and which answers there are;
the verdicts say what follows: a blocked call is an error, a stop ends the turn, feedback makes another request.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import re
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from hookline import Decision, Hooks, Verdict
from hookline.agent.hook_services import inspector, judge, mcp_caller
from hookline.agent.models import choose
from hookline.agent.tools import SessionState, ToolEnv, default_tools
from hookline.agent.tools.mcp import McpServers, read_config
from hookline.core.engine import Runner
from hookline.core.hooks import AgentCheck, Command, McpTool, Prompt
from hookline.events import (
    Event,
    PermissionRequest,
    PostCompact,
    PostToolBatch,
    PostToolUse,
    PostToolUseFailure,
    PreCompact,
    PreToolUse,
    SessionEnd,
    SessionStart,
    Setup,
    Stop,
    SubagentStart,
    SubagentStop,
    UserPromptSubmit,
)
from hookline.runners import Services, runner_for
from hookline.runners.command import CommandRunner

CONTRACT = Path(__file__).parents[1] / "contract"
sys.path.append(str(CONTRACT))  # the recorder's own modules import each other by bare names
run_case: Any = importlib.import_module("run_case")
project: Any = importlib.import_module("project")

BLOCK_CAP = 8
"""How often in a row an agent lets itself be sent back to work (FACTS §3)."""


class Ended(Exception):
    """The run ends: nothing more of the script is played."""


class Lane:
    """A scripted model: one turn per request, the last one again and again."""

    def __init__(self, turns: list[dict[str, Any]]) -> None:
        self.turns, self.requests = turns, 0

    def next(self) -> dict[str, Any]:
        self.requests += 1
        return self.turns[min(self.requests, len(self.turns)) - 1]


class Play:
    """One case: `observed` is what counts of it, in the shape of `expected/`."""

    def __init__(self, case: dict[str, Any], base: Path, commands: CommandRunner) -> None:
        self.base, self.project, self.home = base, base / "proj", base / "home"
        self.commands = commands
        self.api: Any = run_case.Api(case.get("model"), None, None)
        places = {"@PROJ@": self.project, "@HOME@": self.home, "@WORK@": base, "@ORACLE@": CONTRACT}
        table = {name: str(path) for name, path in places.items()} | {"@PORT@": str(self.api.port)}
        self.case: dict[str, Any] = run_case.subst(case, table)
        self.words: list[str] = project.markers(case)
        self.main = Lane(self.case["model"])
        self.mode = self.case.get("permission_mode", "default")
        self.said: list[str] = []
        self.tool_errors: list[bool] = []
        self.unsent: list[str] = []
        self.unsent_errors: list[bool] = []
        self.agent: dict[str, Any] = {}
        self.hooks: Hooks
        self.env = {
            "PATH": "/usr/bin:/bin", "HOME": str(base.parent), "ANTHROPIC_API_KEY": "dummy",
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{self.api.port}", **self.case.get("env", {}),
        }  # fmt: skip

    # ---- the case's world

    def write(self) -> None:
        """The case's files, and its recorder."""
        case = self.case
        for folder in (self.project / ".claude", self.home / ".claude", self.base / "rec"):
            folder.mkdir(parents=True)
        shutil.copy(CONTRACT / "rec.py", self.base / "rec.py")
        (self.base / "rec.py").chmod(0o755)
        for name, spec in case.get("rec", {}).items():
            (self.base / "rec" / f"{name}.json").write_text(json.dumps({"name": name, **spec}))
        named = {"settings": self.project / ".claude/settings.json", "flag_settings": self.base / "flag.json",
                 "user_settings": self.home / ".claude/settings.json",
                 "local_settings": self.project / ".claude/settings.local.json"}  # fmt: skip
        for key, path in named.items():
            if key in case:
                run_case.write(str(path), case[key])
        for name, body in case.get("files", {}).items():
            text, mode = (body["text"], body.get("mode")) if isinstance(body, dict) and "text" in body else (body, None)
            run_case.write(str(self.project / name), text, mode)
        self.api.routes = case.get("http", {})
        self.api.lanes = [{"name": name, "at": 0, **lane} for name, lane in case.get("lanes", {}).items()]

    async def prepare(self) -> None:
        for command in self.case.get("prepare", []):
            await self.shell(f"HOME={self.home}; {command}")

    def flag(self, name: str) -> Any:
        args = self.case.get("cli_args", [])
        return args[args.index(name) + 1] if name in args else None

    @asynccontextmanager
    async def hosted(self) -> AsyncIterator[None]:
        """The hooks of the case's files, with the services its kinds of hooks need."""
        plugin = self.flag("--plugin-dir")
        flags = self.base / "flag.json"
        async with AsyncExitStack() as stack:
            self.hooks = await stack.enter_async_context(Hooks.from_settings(
                self.project, home=self.home, managed=self.base / "none", env=self.env, trust="all", watch=False,
                settings=flags if flags.exists() else None, setting_sources=self.flag("--setting-sources"),
                plugin_dirs=[plugin] if plugin else [], runners=self.runner, on_problem=lambda _: None,
            ))  # fmt: skip
            if {type(hook.action) for hook in self.hooks.hooks} & {Prompt, AgentCheck, McpTool}:
                self.hooks.services = await stack.enter_async_context(self.services())
            yield

    @asynccontextmanager
    async def services(self) -> AsyncIterator[Services]:
        """The agent's own judge, inspector and MCP connections, on the case's model."""
        model, state = choose("claude-opus-5-5", self.env), SessionState(str(self.project))
        reading = {name: tool for name, tool in default_tools().items() if tool.read_only}
        config = self.flag("--mcp-config")
        servers = McpServers(read_config(config) if config else {})
        await servers.connect()

        def env() -> ToolEnv:
            return ToolEnv(state=state)

        try:
            yield Services(judge(model), inspector(model, lambda: reading, env), mcp_caller(lambda: servers, env))
        finally:
            close = getattr(model, "aclose", None)
            if close is not None:
                await close()
            await servers.aclose()

    def runner(self, kind: type[Any], services: Callable[[], Services]) -> Runner:
        """All cases share their warm interpreters."""
        return _Shared(self.commands) if kind is Command else runner_for(kind, services)

    # ---- its events

    async def run(self) -> dict[str, Any]:
        self.write()
        try:
            await self.prepare()
            async with self.hosted():
                for run in self.case.get("runs") or [{}]:
                    await self.session(run)
        finally:
            self.api.close()
        return self.observed()

    async def session(self, run: Mapping[str, Any]) -> None:
        args = run.get("cli_args", self.case.get("cli_args", []))
        for flag, trigger in (("--init", "init"), ("--maintenance", "maintenance")):
            if flag in args:
                await self.fire(Setup(trigger=trigger))
        source = "startup" if "--continue" not in args else "fork" if "--fork-session" in args else "resume"
        self.tell(await self.fire(SessionStart(source=source)))
        script = self.case.get("sdk", {}).get("script", [])
        for prompt in [step["user"] for step in script if "user" in step] or [run.get("prompt", self.prompted)]:
            with contextlib.suppress(Ended):
                await self.prompt(prompt)
        await self.fire(SessionEnd(reason="other"))

    @property
    def prompted(self) -> str:
        return str(self.case.get("prompt", "go"))

    async def prompt(self, text: str) -> None:
        if text.startswith("/compact"):
            await self.compact(text.removeprefix("/compact").strip())
        elif text == "/clear":
            await self.fire(SessionEnd(reason="clear"))
            self.tell(await self.fire(SessionStart(source="clear")))
        else:
            verdict = await self.fire(UserPromptSubmit(prompt=text))
            if not verdict.blocked:
                self.tell(verdict)
                await self.converse(self.main)

    async def compact(self, instructions: str) -> None:
        verdict = await self.fire(PreCompact(trigger="manual", custom_instructions=instructions or None))
        if verdict.decision is Decision.DENY:
            return
        self.said += verdict.context
        await self.fire(SubagentStop(agent_id="compact", agent_transcript_path="t", last_assistant_message="s"))
        self.tell(await self.fire(SessionStart(source="compact", model="m")))
        await self.fire(PostCompact(trigger="manual", compact_summary="s"))

    async def converse(self, lane: Lane) -> None:
        """Requests and tool calls until the model is done and nobody sends it back to work."""
        sent_back = 0
        cap = int(self.env.get("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", BLOCK_CAP))
        while sent_back <= cap:
            turn = self.request(lane)
            if turn.get("tools"):
                await self.batch(turn["tools"])
                continue
            said: dict[str, Any] = {"stop_hook_active": sent_back > 0, "last_assistant_message": turn.get("text")}
            ending = SubagentStop(agent_transcript_path="t", **self.agent, **said) if self.agent else Stop(**said)
            verdict = await self.fire(ending)
            if not verdict.keep_going and (verdict.stop or not verdict.context):
                return
            sent_back += 1
            if sent_back <= cap:
                self.tell(verdict, *verdict.reply.keep_going_reasons)

    def request(self, lane: Lane) -> dict[str, Any]:
        """The model's next turn; with the request it hears what has come up since the last one."""
        self.said += self.unsent
        self.tool_errors += self.unsent_errors
        self.unsent, self.unsent_errors = [], []
        return lane.next()

    async def batch(self, calls: list[Any]) -> None:
        stops, done = False, []
        for name, given in calls:
            stops |= await self.call(name, given)
            done.append({"tool_name": name, "tool_input": given, "tool_use_id": "t", "tool_response": "r"})
        verdict = await self.fire(PostToolBatch(tool_calls=done))
        if stops or verdict.blocked or verdict.stop:
            raise Ended
        self.tell(verdict)

    async def call(self, name: str, given: dict[str, Any]) -> bool:
        """One tool call; whether the turn ends after it."""
        pre = await self.fire(PreToolUse(tool_name=name, tool_input=given, tool_use_id="t"))
        if pre.decision is Decision.DEFER:
            raise Ended
        self.tell(pre)
        if pre.blocked or pre.decision is Decision.ASK:
            return self.refused(pre)
        given = pre.input or given
        if pre.decision is not Decision.ALLOW and name not in self.case.get("allowed_tools", ["Bash"]):
            asked = await self.permission(name, given)
            if asked is None or asked.decision is not Decision.ALLOW:
                return self.refused(asked)
            given = asked.input or given
        error, output = await self.perform(name, given)
        about: dict[str, Any] = {"tool_name": name, "tool_input": given, "tool_use_id": "t", "duration_ms": 1}
        after = (PostToolUseFailure(error=error, is_interrupt=False, **about) if error is not None
                 else PostToolUse(tool_response={"stdout": ""}, **about))  # fmt: skip
        verdict = await self.fire(after)
        self.unsent_errors.append(error is not None)
        self.tell(verdict, *verdict.reply.reasons, str(output if verdict.output is None else verdict.output))
        return verdict.stop and error is None

    async def permission(self, name: str, given: dict[str, Any]) -> Verdict | None:
        return None if self.mode == "dontAsk" else await self.fire(PermissionRequest(tool_name=name, tool_input=given))

    def refused(self, verdict: Verdict | None) -> bool:
        """The model is told why, unless the turn is over anyway."""
        stops = verdict is not None and verdict.stop
        if verdict is not None:
            self.unsent += verdict.reply.reasons
        self.unsent_errors.append(True)
        return stops

    async def perform(self, name: str, given: Mapping[str, Any]) -> tuple[str | None, str]:
        """Do what the tool does, as far as hooks can tell: its error, if it fails, and its output."""
        if name == "Bash":
            code, said = await self.shell(given["command"])
            return (None if code == 0 else f"Exit code {code}\n{said}"), said
        if name == "Write":
            run_case.write(given["file_path"], given["content"])
        if name == "Agent":
            await self.subagent(given["prompt"], given["subagent_type"])
        return ("the server said no" if name.endswith("__fail") else None), ""

    async def subagent(self, prompt: str, kind: str) -> None:
        lanes = self.case["lanes"].values()
        lane = next(lane for lane in lanes if re.search(lane.get("first", "$^"), prompt))
        before, self.agent = self.agent, {"agent_id": "a1", "agent_type": kind}
        try:
            self.tell(await self.fire(SubagentStart(**self.agent)))
            with contextlib.suppress(Ended):
                await self.converse(Lane(lane["turns"]))
        finally:
            self.agent = before

    async def shell(self, command: str) -> tuple[int, str]:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            "/bin/sh", "-c", command, cwd=self.project, env=self.env, stdout=pipe, stderr=asyncio.subprocess.STDOUT
        )
        said, _ = await process.communicate()
        return process.returncode or 0, said.decode("utf-8", "replace")

    async def fire(self, event: Event) -> Verdict:
        """The event, with what an agent knows in general."""
        prompted = not isinstance(event, (SessionStart, Setup))
        common: dict[str, Any] = {"session_id": "s1", "transcript_path": str(self.base / "t.jsonl"),
                                  "cwd": str(self.project), **({"prompt_id": "p1"} if prompted else {}),
                                  "permission_mode": self.mode, **self.agent}  # fmt: skip
        known = {name: value for name, value in common.items() if not getattr(event, name)}
        fields = {name: getattr(event, name) for name in event.__struct_fields__}
        return await self.hooks.fire(type(event)(**{**fields, **known}))

    def tell(self, verdict: Verdict, *more: str) -> None:
        """The model hears of this with its next request."""
        self.unsent += [*verdict.context, *more]

    # ---- what counts

    def observed(self) -> dict[str, Any]:
        log = self.base / "rec" / "log.jsonl"
        lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        ended = {(line["pid"], line["name"]) for line in lines if line["phase"] == "end"}
        starts = [line for line in lines if line["phase"] == "start"]
        heard = "\n".join(self.said)
        return {
            "hooks": sorted([s["name"], _event(s), (s["pid"], s["name"]) in ended] for s in starts),
            "model_requests": self.main.requests,
            "tool_errors": self.tool_errors,
            "reached_model": [word for word in self.words if _holds(word, heard)],
            "http_requests": len(self.api.http),
            "stdin_fields": sorted(
                {f"{_event(s)}.{key}" for s in starts if isinstance(s["stdin"], dict) for key in s["stdin"]}
            ),
        }


class _Shared:
    """A runner that several sets of hooks use; it outlives each of them."""

    def __init__(self, runner: CommandRunner) -> None:
        self.run = runner.run


def _event(start: Mapping[str, Any]) -> str:
    return str(start["stdin"].get("hook_event_name")) if isinstance(start["stdin"], dict) else ""


def _holds(word: str, text: str) -> bool:
    return re.search(rf"(?<![A-Z0-9_-]){re.escape(word)}(?![A-Z0-9_-])", text) is not None


def differences(expected: Mapping[str, Any], observed: Mapping[str, Any]) -> dict[str, Any]:
    """Where the two disagree; on stdin more is fine, and some fields belong to the real CLI's own world."""
    found: dict[str, Any] = {}
    for key, ours in observed.items():
        there = sorted(expected[key]) if key == "reached_model" else expected[key]
        if key == "stdin_fields":
            missing = [name for name in there if name not in ours and not project.OPTIONAL.search(name)]
            if missing:
                found[key] = missing
        elif there != ours:
            found[key] = {"there": there, "here": ours}
    return found
