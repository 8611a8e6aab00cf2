"""Tools the agent can use; `default_tools()` has one of each."""

from hookline.agent.tools.base import SessionState, Task, TaskList, Tool, ToolEnv, ToolHost, ToolResult, failure
from hookline.agent.tools.bash import Bash, EnterWorktree, ExitWorktree, TaskStop
from hookline.agent.tools.delegate import Agent, Skill, TaskCreate, TaskGet, TaskListTool, TaskUpdate, ToolSearch
from hookline.agent.tools.files import Edit, NotebookEdit, Read, Write
from hookline.agent.tools.search import Glob, Grep
from hookline.agent.tools.web import WebFetch, WebSearch

__all__ = ["BUILT_IN", "SessionState", "Task", "TaskList", "Tool", "ToolEnv", "ToolHost", "ToolResult",
           "default_tools", "failure"]  # fmt: skip

BUILT_IN: tuple[type[Tool], ...] = (
    Agent, Bash, Edit, EnterWorktree, ExitWorktree, Glob, Grep, NotebookEdit, Read, Skill, TaskCreate, TaskGet,
    TaskListTool, TaskStop, TaskUpdate, ToolSearch, WebFetch, WebSearch, Write,
)  # fmt: skip


def default_tools() -> dict[str, Tool]:
    """One of each built-in tool, by name."""
    return {kind.name: kind() for kind in BUILT_IN}
