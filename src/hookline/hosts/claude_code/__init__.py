"""The Claude CLI's control protocol, both ends."""

from hookline.hosts.claude_code.client import ClaudeClient, query
from hookline.hosts.claude_code.mcp import Tool, ToolServer, tool
from hookline.hosts.claude_code.messages import (
    AssistantMessage,
    CanUseTool,
    Message,
    OtherMessage,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    UserMessage,
)
from hookline.hosts.claude_code.process import Cli, Options, PeerExit, Receiver, Subprocess, Transport, find_cli
from hookline.hosts.claude_code.registration import for_sdk

__all__ = [
    "AssistantMessage", "CanUseTool", "ClaudeClient", "Cli", "Message", "Options", "OtherMessage", "PeerExit",
    "Receiver", "ResultMessage", "StreamEvent", "Subprocess", "SystemMessage", "Tool", "ToolServer", "Transport",
    "UserMessage", "find_cli", "for_sdk", "query", "tool",
]  # fmt: skip
