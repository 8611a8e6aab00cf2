"""The page of settings: every key of a hook entry and of a settings file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from hookline.core.hooks.hook import DEFAULT_TIMEOUTS
from hookline.events import CATALOG
from hookline.settings.parse import COMMON, DEFAULT_TIMEOUT, DIALECTS, KINDS, REQUIRED, KeySpec
from hookline.settings.sources import MANAGED, STRENGTH
from tools.reference.markdown import code, codes, table
from tools.reference.schema import settings_schema
from tools.reference.words import ENTRY, SWITCHES

INTRO = """# Settings

Hooks in files: `.claude/settings.json` and its relatives, as Claude Code reads them. An entry looks like this:

```json
{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./check.sh", "timeout": 10}]}]}}
```

`matcher` says for which subjects (see [Events](events.md)) the entries run; leave it out to mean all. What is wrong
with a file is told by `hookline check`, with the place and what to write instead; one bad entry never disables the
others.

## Keys of every entry

"""
_OTHERWISE = {
    "default": "its default is used",
    "drop": "the hook does not run",
    "block": "read as `block`",
}
_ABOUT = {
    "command": "A program of any language. Exit code 0: what it printed is its answer. Exit code 2: no, and standard "
    "error says why. Anything else: it failed.",
    "http": "A POST of the event; the response's JSON body is the answer.",
    "prompt": "A question to a model, which answers ok or not ok.",
    "agent": "A small agent with tools that looks for itself before it answers ok or not ok.",
    "mcp_tool": "A tool of an MCP server; its text is read as a command's output is.",
    "cedar": "[Cedar policies](../how-to/policies.md#cedar); where they fail, a gate is closed.",
    "rego": "[Rego policies](../how-to/policies.md#rego); where they fail, a gate is closed.",
}


def page() -> str:
    """The whole page."""
    kinds = "\n".join(_kind(name) for name in KINDS)
    return f"{INTRO}{_keys(COMMON, ())}\n{kinds}\n{_timeouts()}\n{_files()}\n{_sources()}\n{SHORT}\n{ENVIRONMENT}"


def _kind(name: str) -> str:
    return f'## `"type": "{name}"`\n\n{_ABOUT[name]}\n\n{_keys(KINDS[name], REQUIRED[name])}'


def _keys(fields: Mapping[str, KeySpec], required: tuple[str, ...]) -> str:
    rows = [
        (code(key), "required" if key in required else "", ENTRY[key], code(field.write), _OTHERWISE[field.otherwise])
        for key, field in fields.items()
    ]
    return table(("key", "", "means", "for example", "a wrong value"), rows)


def _timeouts() -> str:
    by_kind = [(code(kind), f"{seconds:g}") for kind, seconds in DEFAULT_TIMEOUT.items()]
    by_event = [
        (code(event), f"{seconds:g}") for event, spec in CATALOG.items() if math.isfinite(seconds := spec.timeout)
    ]
    in_code = ", ".join(f"{code(action.__name__)} {seconds:g}" for action, seconds in DEFAULT_TIMEOUTS.items())
    return (
        "## Timeouts when none is given\n\nOf entries in files; on some events less, because people wait.\n\n"
        + table(("kind, or event", "seconds"), [*by_kind, *by_event])
        + f"\nOf hooks in Python: {in_code} seconds, unless the hook or its `Hooks(timeout=…)` says otherwise.\n"
    )


def _files() -> str:
    rows = [(code(key), where, about) for key, (where, about) in SWITCHES.items()]
    return "## Keys of a settings file\n\n" + table(("key", "in", "means"), rows)


SOURCES = (
    ("managed", f"`/etc/claude-code/managed-settings.json` (macOS: `{MANAGED['darwin']}`)", "no"),
    ("user", "`~/.claude/settings.json` (`CLAUDE_CONFIG_DIR` moves the folder)", "no"),
    ("project", "`.claude/settings.json`", "yes"),
    ("local", "`.claude/settings.local.json`", "yes"),
    ("flag", "`--settings FILE` or `--settings JSON`", "no"),
    ("plugins", "`hooks/hooks.json` of `--plugin-dir` and of enabled plugins", "yes"),
    ("headers", "`hooks:` of `.claude/agents/*.md` and `.claude/skills/*/SKILL.md`", "the project's"),
)  # fmt: skip


def _sources() -> str:
    return (
        "## Where settings come from\n\nIn the order their hooks are configured:\n\n"
        + table(("source", "file", "needs trust"), SOURCES)
        + f"\nWhere only one value can stand, the strongest source decides; from the weakest: {codes(STRENGTH)}.\n"
        + "\nThe hooks of one event run at once, and their answers are merged in this order.\n"
    )


SHORT = f"""## Short forms

An event may also be written in small letters (`preToolUse`, `pre_tool_use`) with a command, a list of commands, or
named entries. Such entries speak the `snake` dialect, and `timeout_secs` is another word for `timeout`; see
[Other formats](../how-to/migrate-other-formats.md).

The dialects are {codes(DIALECTS)}.
"""

ENVIRONMENT = """## Environment variables

| variable | means |
| --- | --- |
| `HOOKLINE_ENABLED` | `0` switches every hook of a program off, with a warning; not in `answer`, `guard` and `pipe` |
| `HOOKLINE_CLAUDE` | the Claude CLI that `hookline.hosts.claude_code` starts |
| `HOOKLINE_MANAGED_SETTINGS` | the file of managed settings, where there is none in its usual place |
| `CLAUDE_CONFIG_DIR` | another folder than `~/.claude` |
| `XDG_CONFIG_HOME` | where trust is recorded: `hookline/trust.json` in it, else in `~/.config` |
| `NO_COLOR` | print without colours |

A command hook sees `CLAUDE_PROJECT_DIR`, the project's folder, besides the environment of whoever fired.
"""


def schema_page() -> str:
    """The JSON Schema that editors read."""
    return json.dumps(settings_schema(), indent=1) + "\n"
