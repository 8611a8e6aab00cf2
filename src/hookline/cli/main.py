"""`hookline`: picks the command and imports no more than it needs (its start-up is every command hook's cost)."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper

GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "try it": {
        "demo": ("demo", "see it work, on a scripted model with guards; no key, no network"),
        "fire": ("fire", "send one event through the hooks and explain the verdict"),
        "list": ("listing", "which hooks there are, and which would run"),
        "check": ("check", "what is wrong with the hook files"),
    },
    "guard an agent": {
        "init": ("init", "write a starter settings file with guards and packs"),
        "packs": ("packs", "list the rules that `init --pack` switches on"),
        "trust": ("trust", "review and trust a project's hooks"),
        "install": ("install", "put hooks into agent CLIs; `--list`: which there are"),
        "uninstall": ("uninstall", "take them out again"),
        "prove": ("prove", "run your agent on a scripted model: do the hooks hold?"),
        "acs": ("acs", "a Guardian of OWASP's Agent Control Standard"),
        "mcp": ("mcp", "put hooks and pins in front of any MCP server"),
        "confine": ("confine", "run a command that the kernel holds to folders and patterns"),
        "run": ("run", "run the agent; takes the Claude CLI's flags"),
    },
    "see what happened": {
        "inbox": ("inbox", "the questions that hooks ask people; approve or deny"),
        "audit": ("audit", "show, follow, verify, export or report audit logs"),
        "console": ("console", "look at audit logs in the browser, live"),
        "replay": ("replay", "run today's hooks against what was recorded"),
        "learn": ("learn", "propose rules for what you always allow"),
    },
    "a team": {"fleet": ("fleet", "one policy and one audit trail over many machines")},
    "called by hosts, settings and scripts": {
        "answer": ("answer", "answer an agent CLI's hook; what `install` writes"),
        "guard": ("guard", "a guard as a command hook, for settings files"),
        "pipe": ("pipe", "answer event lines on stdin, one line each"),
        "service": ("service", "the process that answers command hooks quickly"),
        "completion": ("completion", "print the completion script of a shell"),
    },
}
"""Every command by what it is for: its module in `commands`, and one line about it."""
COMMANDS: dict[str, tuple[str, str]] = {name: row for group in GROUPS.values() for name, row in group.items()}

USAGE = 64
"""The exit code of a command line that cannot be understood; 2 would say that something was blocked."""

EXIT_CODES = """exit codes: 0 done, or allowed; 1 something is wrong; 2 blocked;
64 the command line was not understood; 130 Ctrl-C; 141 the reader left"""


PRELOAD = (
    "argparse", "asyncio", "json", "msgspec", "hookline.api", "hookline.core.engine", "hookline.core.wire.claude",
    "hookline.core.wire.dialects", "hookline.guards", "hookline.settings", "hookline.settings.trust.store",
    "hookline.runners.command", "hookline.runners.function", "hookline.cli.commands.guard",
    "hookline.cli.commands.answer", "hookline.cli.commands.pipe", "hookline.cli.commands.fire", "hookline.cli.options",
    "hookline.hosts.user_rules", "hookline.fleet.enforce",
)  # fmt: skip
"""What command hooks import when they run: the workers of the resident service, which import this, do so ahead."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; what goes wrong on purpose is one line on stderr, and Ctrl-C is exit code 130.

    A reader that leaves (`hookline … | head -1`) is no error: what it did not want to read is not written.
    """
    if isinstance(sys.stdout, TextIOWrapper):  # no verdict fails for want of an arrow, as in `LC_ALL=C`
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = _main(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is flushed at the very end
        return 141
    return code


def _main(argv: Sequence[str] | None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["help"] and len(words) > 1:
        words = [words[1], "--help"]
    if not words or words[0] in ("-h", "--help", "help"):
        print(usage())
        return 0 if words else USAGE
    if words[0] in ("-V", "--version"):
        from hookline import __version__

        print(f"hookline {__version__}")
        return 0
    if words[0] not in COMMANDS:
        from hookline.display import one_line
        from hookline.errors import did_you_mean

        print(
            f"hookline: no command `{one_line(words[0])}`{did_you_mean(words[0], COMMANDS)}\n\n{usage()}",
            file=sys.stderr,
        )
        return USAGE
    if argv is None:
        gc.disable()  # nothing becomes garbage while modules are imported; looking for it takes a tenth of the time
    return _run(words[0], words[1:])


def _run(name: str, arguments: list[str]) -> int:
    from hookline.display import behind_bar
    from hookline.errors import HooklineError

    if name not in ("answer", "guard", "pipe"):  # these write for programs
        from hookline.cli.style import escape_controls

        escape_controls(sys.stdout)
        escape_controls(sys.stderr)
    try:
        module = import_module(f"hookline.cli.commands.{COMMANDS[name][0]}")
        if not gc.isenabled():
            gc.freeze()
            gc.enable()
        code: int = module.main(arguments)
    except HooklineError as error:
        print(f"hookline {name}: {behind_bar(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    return code


def usage() -> str:
    """The help text of `hookline` itself."""
    width = max(map(len, COMMANDS))
    *shown, (plumbing, quiet) = GROUPS.items()
    groups = [
        f"{title}:\n" + "\n".join(f"  {name:<{width}}  {about}" for name, (_, about) in rows.items())
        for title, rows in shown
    ]
    body = "\n\n".join([*groups, f"{plumbing}: {', '.join(quiet)}"])
    return (
        "hookline: the hook system for AI agents\n\nusage: hookline COMMAND …\n\n"
        f"{body}\n\n`hookline help COMMAND` says more.\n\n{EXIT_CODES}"
    )


if __name__ == "__main__":
    sys.exit(main())
