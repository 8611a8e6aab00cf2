"""OpenHands CLI: Claude Code's nesting, `decision: deny` in answers; a project's file replaces the user's."""

from hookline.hosts.host import Config, Host, Tool
from hookline.hosts.shapes import BASH, DENY, same

_EDIT = {"path": "file_path", "old_str": "old_string", "new_str": "new_string"}
_VIEW = Tool("Read", {"path": "file_path"})

OPENHANDS = Host(
    name="openhands",
    title="OpenHands",
    verified="1.16.0",
    commands=("openhands",),
    events=same("PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart", "SessionEnd", "Stop"),
    says={
        "PreToolUse": {"deny": DENY, "allow": {"decision": "allow"}},
        "UserPromptSubmit": {"deny": DENY},
        "Stop": {"keep_going": DENY},
    },
    event_field="event_type",
    names={"working_dir": "cwd", "message": "prompt"},
    tools={"terminal": BASH, "execute_bash": BASH,
           "file_editor": Tool("Edit", _EDIT, by="command", variants={
               "view": _VIEW, "create": Tool("Write", {"path": "file_path", "file_text": "content"})}),
           "str_replace_editor": Tool("Edit", _EDIT, by="command", variants={"view": _VIEW})},
    config=Config(user=".openhands/hooks.json", project=".openhands/hooks.json"),
    notes=(
        "a project's `.openhands/hooks.json` replaces the user's; it is not added to it",
        "what a hook says after a tool call reaches nobody",
    ),
)  # fmt: skip
