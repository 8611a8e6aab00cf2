"""An MCP server on stdio with one tool, `shell`, that notes each command in a file: `python mcp_server.py FILE`.

Written out by hand, because the frameworks bring different versions of the protocol's SDK, or none.
"""

import json
import sys
from pathlib import Path
from typing import Any

TOOL = {
    "name": "shell",
    "description": "Run a command.",
    "inputSchema": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
}


def result(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        about = {"name": "files", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        command = params["arguments"]["command"]
        with Path(sys.argv[1]).open("a") as log:
            log.write(f"{command}\n")
        if command == "fail":
            return {"content": [{"type": "text", "text": "the disk is full"}], "isError": True}
        return {"content": [{"type": "text", "text": f"out:{command}"}]}
    return None


for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        found = result(asked["method"], asked.get("params", {}))
        answer = {"error": {"code": -32601, "message": "no such method"}} if found is None else {"result": found}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
