"""What a PostToolUse hook puts in place of a tool's output, in the form the model is told."""

from __future__ import annotations

from typing import Any

import msgspec

from hookline.agent.tools import Tool, ToolResult
from hookline.core.engine import Verdict

__all__ = ["replaced"]


def replaced(tool: Tool, result: ToolResult, verdict: Verdict) -> ToolResult:
    """The result as hooks left it: their output if it fits the tool, else the tool's own.

    Text fits every tool. Blocks fit MCP tools, and any object does, as JSON; another tool takes objects of the shape it
    answers itself (FACTS.md §3).
    """
    mcp = tool.name.startswith("mcp__")
    output = verdict.reply.output
    if output is msgspec.UNSET and mcp and verdict.reply.specific is not None:
        output = verdict.reply.specific.mcp_output
    if output is msgspec.UNSET:
        return result
    content = _mcp_content(output) if mcp else _content(output)
    return result if content is None else ToolResult(content, output, result.is_error)


def _mcp_content(output: Any) -> str | list[dict[str, Any]] | None:
    if isinstance(output, str):
        return output
    if isinstance(output, list) and all(isinstance(block, dict) and "type" in block for block in output):
        return output
    return msgspec.json.encode(output).decode()


def _content(output: Any) -> str | None:
    if isinstance(output, str):
        return output
    if not isinstance(output, dict):
        return None
    return next((words for shape in SHAPES if (words := shape(output)) is not None), None)


def _command_output(output: dict[str, Any]) -> str | None:
    """Bash's own shape."""
    if not isinstance(output.get("stdout"), str):
        return None
    return "\n".join(part for part in (output["stdout"], str(output.get("stderr") or "")) if part)


def _file(output: dict[str, Any]) -> str | None:
    """Read's own shape."""
    file = output.get("file")
    return str(file["content"]) if isinstance(file, dict) and "content" in file else None


def _file_written(output: dict[str, Any]) -> str | None:
    """Write's and Edit's own shape."""
    return f"The file {output['filePath']} has been updated." if isinstance(output.get("filePath"), str) else None


def _list(output: dict[str, Any]) -> str | None:
    """Glob's and Grep's own shape."""
    names = output.get("filenames")
    return "\n".join(map(str, names)) if isinstance(names, list) else None


SHAPES = (_command_output, _file, _file_written, _list)
