"""The Claude CLI's control protocol, both ends."""

from hookline.claude.argv import Options
from hookline.claude.client import ClaudeClient, query
from hookline.claude.find import Cli, find_cli
from hookline.claude.mcp import Tool, ToolServer, tool
from hookline.claude.messages import (
    AssistantMessage,
    CanUseTool,
    Message,
    OtherMessage,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    UserMessage,
)
from hookline.claude.sdk import for_sdk
from hookline.claude.transport import Exit, Receiver, Subprocess, Transport

__all__ = [
    "AssistantMessage",
    "CanUseTool",
    "ClaudeClient",
    "Cli",
    "Exit",
    "Message",
    "Options",
    "OtherMessage",
    "Receiver",
    "ResultMessage",
    "StreamEvent",
    "Subprocess",
    "SystemMessage",
    "Tool",
    "ToolServer",
    "Transport",
    "UserMessage",
    "find_cli",
    "for_sdk",
    "query",
    "tool",
]
