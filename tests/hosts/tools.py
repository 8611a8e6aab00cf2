"""File tools and tools of MCP servers on the real agent CLIs: each names them in its own way, a hook needs one name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from hookline.hosts.host import FileEdit, ProofRecipe
from hookline.hosts.table import AGENTS

HOOKS = """
@hooks.on(PreToolUse, match="Write|Edit", timeout=5)
async def stay_outside(event):
    return deny("REASON_FILE") if event.tool_input["file_path"].startswith(event.cwd + "/private/") else None

@hooks.on(PreToolUse, match="mcp__demo__.*|mcp__unknown__.*")
def marks(event):
    return deny("REASON_MCP") if event.tool_input["path"].endswith("denied") else None
"""
SERVER = """
import json, sys
TOOL = {"name": "make_mark", "description": "makes a mark", "inputSchema": {
    "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    result = {}
    if asked["method"] == "initialize":
        result = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "demo", "version": "1"}}
    if asked["method"] == "tools/list":
        result = {"tools": [TOOL]}
    if asked["method"] == "tools/call":
        open(asked["params"]["arguments"]["path"], "w").close()
        result = {"content": [{"type": "text", "text": "made"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
Call = tuple[str, dict[str, Any]]
CHANGE = {"old_string": "old", "new_string": "new"}
RISK = {"security_risk": "LOW", "summary": "x"}


def typescript(code: str) -> Call:
    return "run_typescript", {"code": f"return await {code}"}


EDITS: Mapping[str, Callable[[str], list[Call]]] = {
    "claude": lambda path: [("Read", {"file_path": path}), ("Edit", {"file_path": path, **CHANGE})],
    "gemini": lambda path: [("replace", {"file_path": path, "instruction": "x", **CHANGE})],
    "qwen": lambda path: [("read_file", {"file_path": path}), ("edit", {"file_path": path, **CHANGE})],
    "copilot": lambda path: [("edit", {"path": path, "old_str": "old", "new_str": "new"})],
    "kimi": lambda path: [("Read", {"path": path}), ("Edit", {"path": path, **CHANGE})],
    "grok": lambda path: [("read_file", {"target_file": path}), ("search_replace", {"file_path": path, **CHANGE})],
    "vibe": lambda path: [("read_file", {"path": path}), ("edit", {"file_path": path, **CHANGE}),
                          typescript(f"tools.file_system.edit({json.dumps({'file_path': path, **CHANGE})})")],
    "openhands": lambda path: [("file_editor", {"command": "str_replace", "path": path, "old_str": "old",
                                                "new_str": "new", **RISK})],
    "opencode": lambda path: [("read", {"filePath": path}),
                              ("edit", {"filePath": path, "oldString": "old", "newString": "new"})],
}  # fmt: skip
"""How each agent's model changes a file, where that is another tool."""

MARKS: Mapping[str, Callable[[str], Call]] = {
    "claude": lambda path: ("mcp__demo__make_mark", {"path": path}),
    "gemini": lambda path: ("mcp_demo_make_mark", {"path": path}),
    "qwen": lambda path: ("mcp__demo__make_mark", {"path": path}),
    "copilot": lambda path: ("demo-make_mark", {"path": path}),
    "kimi": lambda path: ("mcp__demo__make_mark", {"path": path}),
    "grok": lambda path: ("use_tool", {"tool_name": "demo__make_mark", "tool_input": {"path": path}}),
    "vibe": lambda path: typescript(f"tools.mcp_demo.make_mark({{path: '{path}'}})"),
    "openhands": lambda path: ("make_mark", {"path": path, **RISK}),
    "cline": lambda path: ("demo__make_mark", {"path": path}),
    "codex": lambda path: ("mcp__demo::make_mark", {"path": path}),
    "opencode": lambda path: ("demo_make_mark", {"path": path}),
}
"""How each agent's model calls the tool `make_mark` of the server `demo`; in Codex a server is a namespace."""

REASONS_LOST = ("cline",)
"""A refused call that is not a command ends the run."""


def server_edit(name: str, server: list[str]) -> FileEdit:
    """Tells an agent of an MCP server called `demo`."""
    program, script = server
    plain = {"command": program, "args": [script]}
    full = {**plain, "trust": True, "tools": ["*"]}
    servers, tables = "mcpServers.demo", "mcp_servers.demo"
    return {
        "gemini": FileEdit(".gemini/settings.json", {servers: full}),
        "qwen": FileEdit(".qwen/settings.json", {servers: full}),
        "opencode": FileEdit(".config/opencode/opencode.json", {"mcp.demo": {"type": "local", "command": server}}),
        "claude": FileEdit("{project}/.mcp.json", {servers: full}),
        "copilot": FileEdit(".copilot/mcp-config.json", {servers: full}),
        "kimi": FileEdit(".kimi-code/mcp.json", {servers: plain}),
        "openhands": FileEdit(".openhands/mcp.json", {servers: plain}),
        "cline": FileEdit(".cline/data/settings/cline_mcp_settings.json", {servers: full}),
        "codex": FileEdit(".codex/config.toml", {tables: plain}),
        "grok": FileEdit(".grok/config.toml", {tables: plain}),
        "vibe": FileEdit(".vibe/config.toml", {}, {"mcp_servers": {"name": "demo", "transport": "stdio", **plain}}),
    }[name]


def agent_with_server(name: str, server: list[str]) -> ProofRecipe:
    agent = AGENTS[name]
    more = ["--mcp-config", "{project}/.mcp.json", "--allowedTools=mcp__demo__make_mark,Write,Edit,Read"]
    argv = [*agent.argv, *(more if name == "claude" else ())]
    return msgspec.structs.replace(agent, edits=[*agent.edits, server_edit(name, server)], argv=argv)


def tool_calls(name: str, project: Path) -> list[Call]:
    """A file and a mark that may be made, and what is refused: two changes in `private/`, and a mark."""
    private = project / "private"
    private.mkdir()
    (private / "old.txt").write_text("old text")
    edits = EDITS[name](str(private / "old.txt")) if name in EDITS else []
    write = AGENTS[name].write
    return [
        write(f"{project}/public.txt"), *_marks(name, project / "allowed"),
        write(f"{private}/new.txt"), *edits, *_marks(name, project / "denied"),
    ]  # fmt: skip


def _marks(name: str, path: Path) -> list[Call]:
    return [MARKS[name](str(path))] if name in MARKS else []
