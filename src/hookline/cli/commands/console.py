"""`hookline console`: what agents did and what was decided, in the browser."""

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Any

import msgspec

from hookline.cli.options import key_in, load, parser_for, run
from hookline.core.files import default_log
from hookline.errors import HooklineError
from hookline.hook_file import load_hooks
from hookline.records.approvals.inbox import Unreachable, ask_once
from hookline.records.console.report import ReplaySubprocess
from hookline.records.console.store import ConfiguredHook

_SOURCES = ("project", "settings", "setting_sources", "hooks")


def main(argv: list[str]) -> int:
    """Serve until Ctrl-C."""
    args = parser_for("console").parse_args(argv)

    from hookline.records.console.server import serve

    shown = serve(
        logs(args.files), port=args.port, index=Path(args.index) if args.index else None, key=key_in(args.key_file),
        configured=configured(args), replay=replay_job(args), acts={"inbox": _decide},
        more={"inbox": lambda: _asked({"do": "list"}) | {"problem": ""}},  # none if no inbox is kept now
        on_ready=lambda address: ready(address, open_it=not args.no_open),
    )  # fmt: skip
    try:
        run(shown)
    except KeyboardInterrupt:
        print(file=sys.stderr)
    return 0


def _decide(body: bytes) -> dict[str, Any]:
    found = msgspec.json.decode(body, type=dict[str, Any])
    return _asked({"do": "decide", "id": found.get("id"), "yes": found.get("yes"), "how": "console"})


def _asked(body: dict[str, Any]) -> dict[str, Any]:
    try:
        return asyncio.run(ask_once(body, limit=0))
    except Unreachable as problem:
        return {"questions": [], "problem": str(problem)}


def logs(files: list[str]) -> list[str]:
    """The logs that are meant: those named, else those that lie in this folder and what `install --audit` writes."""
    usual = [default_log()] if default_log().exists() else []
    here = (*Path().glob("*.jsonl"), *Path(".hookline").glob("*.jsonl"), *usual)
    if found := files or [str(path) for path in here]:
        return found
    raise HooklineError("no audit log in this folder; name one, or have one written: `hookline install claude --audit`")


def configured(args: argparse.Namespace) -> list[ConfiguredHook]:
    """The hooks that are configured today; they are only read, not run."""
    hooks = load_hooks(args.hooks).hooks if args.hooks else load(args).hooks
    return [
        ConfiguredHook(hook.name, [event.event_name for event in hook.events], hook.matcher.pattern, hook.source)
        for hook in hooks
    ]


def replay_job(args: argparse.Namespace) -> ReplaySubprocess | None:
    """The replay that the page may start, if it was allowed."""
    if not args.replay:
        return None
    flags = [f"--{name.replace('_', '-')}={value}" for name in _SOURCES if (value := getattr(args, name))]
    flags += [f"--plugin-dir={folder}" for folder in args.plugin_dir] + (["--trust"] if args.trust else [])
    return ReplaySubprocess(logs(args.files), flags, args.hooks or f"settings of {Path(args.project).resolve()}")


def ready(address: str, *, open_it: bool) -> None:
    """Say where it is, and open it."""
    print(f"console: {address}\nThe address works once. Ctrl-C ends the console.", flush=True)
    if open_it:
        import webbrowser

        webbrowser.open(address)
