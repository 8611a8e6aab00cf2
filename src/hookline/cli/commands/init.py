"""`hookline init`: a first settings file, with guards, trusted because you just wrote it."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from hookline.cli.options import add_json, parser
from hookline.cli.style import paint
from hookline.cli.trust_review import keep_trust
from hookline.core.interpreter import entry_argv, shell_command
from hookline.display import one_line
from hookline.errors import ConfigError
from hookline.hosts.install.entries import deny_by_exit

_CONFINED = "guard paths --confine auto --temporary --protect --block 'rm -rf /' --block 'rm -rf ~' --block 'sudo *'"
_INSIDE = "guard paths --temporary --protect"
NAMES = ("confined-shell", "stay-inside", "own-files")


def _entry(name: str, words: str) -> dict[str, Any]:
    command = f"{shell_command(entry_argv())} {words} || {deny_by_exit()}"
    return {"type": "command", "command": command, "timeout": 10, "onFailure": "block", "name": name}


def starter() -> dict[str, Any]:
    """What a new settings file says: shell lines run confined where the kernel can hold them, edits stay inside.

    Before the files that set up the guards themselves are written, the user is asked.

    One process for each call: what the kernel refuses is on the line's own standard error, which the model reads.
    """
    return {
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [_entry(NAMES[0], _CONFINED)]},
            {"matcher": "Write|Edit|MultiEdit|NotebookEdit", "hooks": [_entry(NAMES[1], _INSIDE)]},
            {"matcher": "mcp__.*", "hooks": [_entry(NAMES[2], "guard protect")]},
        ]
    }


def main(argv: list[str]) -> int:
    """Write `.claude/settings.json`; hooks that are already there stay as they are."""
    args = _parser().parse_args(argv)
    path = Path(args.project) / ".claude" / ("settings.local.json" if args.local else "settings.json")
    settings = _existing(path)
    if settings.get("hooks") and not args.force:
        print(
            f"{one_line(str(path))} has hooks already; nothing was changed (`--force` adds the guards to them)",
            file=sys.stderr,
        )
        return 1
    merged = _merged(settings)
    with keep_trust(Path(args.project)) as unseen:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(merged, indent=2) + "\n")
    print(json.dumps({"wrote": str(path), "hooks": NAMES}) if args.json else _next_steps(path))
    if unseen:
        labels = ", ".join(map(one_line, unseen))
        print(f"not trusted, because it was there before: {labels}; run `hookline trust` to look", file=sys.stderr)
    return 0


def _parser() -> argparse.ArgumentParser:
    flags = parser("init", "Write a starter settings file with guards, for Claude Code and for Hookline alike.")
    flags.add_argument("--local", action="store_true", help="write settings.local.json, which is not shared")
    flags.add_argument("--force", action="store_true", help="add the guards to a file that has hooks")
    add_json(flags)
    flags.add_argument("--project", default=".", metavar="DIR", help="the project's folder (default: this one)")
    return flags


def _existing(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text() or "{}")
    except (OSError, ValueError) as error:
        raise ConfigError(str(path), f"cannot be read: {error}; fix or remove it first") from None
    if not isinstance(found, dict):
        raise ConfigError(str(path), "is not a JSON object; fix or remove it first")
    return found


def _merged(settings: dict[str, Any]) -> dict[str, Any]:
    hooks = settings.get("hooks") or {}
    if not isinstance(hooks, dict):
        raise ConfigError("hooks", "is not an object; fix it first")
    merged = {
        event: [*hooks.get(event, []), *(group for group in groups if group not in hooks.get(event, []))]
        for event, groups in starter().items()
    }
    return {**settings, "hooks": {**hooks, **merged}}


def _next_steps(path: Path) -> str:
    steps = (
        "hookline check",
        "hookline list",
        """hookline fire PreToolUse --tool Bash --input '{"command": "rm -rf /"}'""",
    )
    lines = "\n".join(f"  {paint(step, 'cyan')}" for step in steps)
    wrote = one_line(f"wrote {path}")
    return f"{wrote}\nno writes outside this folder and the temporary one, no `sudo`\n\ntry next:\n{lines}"
