"""`hookline console`: what agents did and what was decided, in the browser."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hookline.cli.options import add_sources, from_python, key_in, load, parser, port
from hookline.core.files import default_log
from hookline.errors import HooklineError

if TYPE_CHECKING:
    from hookline.records.console.jobs import ReplaySubprocess
    from hookline.records.console.store import ConfiguredHook

_SOURCES = ("project", "settings", "setting_sources", "hooks")


def main(argv: list[str]) -> int:
    """Serve until Ctrl-C."""
    args = _parser().parse_args(argv)

    from hookline.cli.runtime import run
    from hookline.records.console.server import serve

    shown = serve(
        logs(args.files), port=args.port, index=Path(args.index) if args.index else None, key=key_in(args.key_file),
        configured=configured(args), replay=replay_job(args), more={"inbox": _questions}, acts={"inbox": _decide},
        on_ready=lambda address: ready(address, open_it=not args.no_open),
    )  # fmt: skip
    try:
        run(shown)
    except KeyboardInterrupt:
        print(file=sys.stderr)
    return 0


def _questions() -> dict[str, Any]:
    """The questions that people are asked; none if no inbox is kept now."""
    return _asked({"do": "list"}) | {"problem": ""}


def _decide(body: bytes) -> dict[str, Any]:
    found = msgspec.json.decode(body, type=dict[str, Any])
    return _asked({"do": "decide", "id": found.get("id"), "yes": found.get("yes"), "how": "console"})


def _asked(body: dict[str, Any]) -> dict[str, Any]:
    import asyncio

    from hookline.records.approvals.inbox import Unreachable, ask_once

    try:
        return asyncio.run(ask_once(body, limit=0))
    except Unreachable as problem:
        return {"questions": [], "problem": str(problem)}


def _parser() -> argparse.ArgumentParser:
    flags = parser(
        "console",
        "Look at audit logs in the browser, live: events, sessions, decisions, hooks, replay, coverage, health. Only"
        " this machine can open it.",
    )
    add_logs(flags)
    flags.add_argument("--port", type=port, default=0, metavar="N", help="the port (default: a free one)")
    flags.add_argument("--no-open", action="store_true", help="do not open the browser, only print the address")
    flags.add_argument("--index", metavar="FILE", help="where the index lies (default: in your cache)")
    return flags


def add_logs(flags: argparse.ArgumentParser) -> None:
    """Which logs, whose hooks, and whether hooks may run."""
    flags.add_argument(
        "files",
        nargs="*",
        metavar="AUDIT.jsonl|FOLDER",
        help="logs (default: those in this folder, and that of `install --audit`)",
    )
    flags.add_argument("--key-file", metavar="FILE", help="the key, if the logs were written with one")
    flags.add_argument("--replay", action="store_true", help="allow today's hooks to be run over the records")
    add_sources(flags)


def logs(files: list[str]) -> list[str]:
    """The logs that are meant: those named, else those that lie in this folder and what `install --audit` writes."""
    usual = [default_log()] if default_log().exists() else []
    here = (*Path().glob("*.jsonl"), *Path(".hookline").glob("*.jsonl"), *usual)
    found = files or [str(path) for path in here]
    if not found:
        raise HooklineError(
            "no audit log in this folder; name one, or have one written: `hookline install claude --audit`"
        )
    return found


def configured(args: argparse.Namespace) -> list[ConfiguredHook]:
    """The hooks that are configured today; they are only read, not run."""
    from hookline.records.console.store import ConfiguredHook

    hooks = from_python(args.hooks).hooks if args.hooks else load(args).hooks
    return [
        ConfiguredHook(hook.name, [event.event_name for event in hook.events], hook.matcher.pattern, hook.source)
        for hook in hooks
    ]


def replay_job(args: argparse.Namespace) -> ReplaySubprocess | None:
    """The replay that the page may start, if it was allowed."""
    if not args.replay:
        return None
    from hookline.records.console.jobs import ReplaySubprocess

    flags = [f"--{name.replace('_', '-')}={value}" for name in _SOURCES if (value := getattr(args, name))]
    flags += [f"--plugin-dir={folder}" for folder in args.plugin_dir] + (["--trust"] if args.trust else [])
    return ReplaySubprocess(logs(args.files), flags, args.hooks or f"settings of {Path(args.project).resolve()}")


def ready(address: str, *, open_it: bool) -> None:
    """Say where it is, and open it."""
    print(f"console: {address}\nThe address works once. Ctrl-C ends the console.", flush=True)
    if open_it:
        import webbrowser

        webbrowser.open(address)
