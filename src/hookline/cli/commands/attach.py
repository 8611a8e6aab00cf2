"""`hookline attach`: a Python file's hooks for any Claude Code session, interactive ones too."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from pathlib import Path

from hookline.api import Hooks
from hookline.cli.options import default_project, from_python, parser
from hookline.cli.style import counted, paint, say
from hookline.engine import Notice, Verdict
from hookline.hosts.claude_code.attach import put_in, serving, settings_for, take_out, unasked

_EXAMPLES = """examples:
  hookline attach hooks.py              serve the hooks here, put them into .claude/settings.local.json until Ctrl-C
  hookline attach hooks.py --print      only print the settings to use

Claude Code notices the new settings by itself. If this process dies, gates with a hook that fails closed are blocked
until it is started again or the entries are removed (`hookline attach --remove`)."""


def main(argv: list[str]) -> int:
    """Serve until stopped, then take the settings out again."""
    args = _parser().parse_args(argv)
    path = Path(args.project) / ".claude" / "settings.local.json" if args.into is None else Path(args.into)
    if args.remove:
        return _removed(path)
    if args.file is None:
        raise SystemExit(_parser().format_usage() + "hookline attach: name a Python file that defines `hooks`")
    return asyncio.run(_attached(from_python(args.file), path, args))


def _parser() -> argparse.ArgumentParser:
    flags = parser("attach", "Serve a Python file's hooks to any Claude Code session.", _EXAMPLES)
    flags.add_argument("file", nargs="?", metavar="FILE.py", help="a Python file that defines `hooks`")
    flags.add_argument(
        "--project", default=default_project(), metavar="DIR", help="the project whose settings are used"
    )
    flags.add_argument("--into", metavar="FILE", help="another settings file (default: .claude/settings.local.json)")
    flags.add_argument("--port", type=int, default=0, metavar="N", help="the port (default: any that is free)")
    flags.add_argument("--print", action="store_true", help="print the settings instead of writing them")
    flags.add_argument("--remove", action="store_true", help="take out what an attach that died has left")
    flags.add_argument("-q", "--quiet", action="store_true", help="do not show verdicts")
    return flags


def _removed(path: Path) -> int:
    from hookline.hosts.claude_code.attach import take_out_all

    gone = take_out_all(path)
    print(f"removed from {path}" if gone else f"nothing to remove in {path}")
    return 0


async def _attached(hooks: Hooks, path: Path, args: argparse.Namespace) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    if not args.quiet:
        hooks.observe(_show, inline=True)
    async with hooks, serving(hooks, port=args.port) as endpoint:
        table = settings_for(hooks, endpoint)
        for name in unasked(hooks):
            print(f"hookline: Claude Code asks no http hook on {name}; hooks on it will not run", file=sys.stderr)
        if args.print:
            print(json.dumps({"hooks": table}, indent=2), flush=True)
            await stop.wait()
            return 0
        put_in(path, table)
        try:
            print(f"attached: {counted(len(hooks.hooks), 'hook')} in {path}; Ctrl-C takes them out again", flush=True)
            await stop.wait()
        finally:
            take_out(path, endpoint.url)
            print(f"detached: {path} is as it was", flush=True)
    return 0


def _show(notice: Notice) -> None:
    if isinstance(notice, Verdict):
        word = paint(str(notice), "red") if notice.blocked else str(notice)
        say(word)
