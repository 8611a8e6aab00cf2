"""`hookline pipe`: event lines in, in any dialect; one answer line each, in the same dialect."""

from __future__ import annotations

import asyncio
import sys
from typing import Any, BinaryIO

import msgspec

from hookline.cli.options import add_sources, hooks_of, parser
from hookline.errors import HooklineError
from hookline.hookset import Hooks
from hookline.wire.dialects import DIALECTS, detect
from hookline.wire.text import parse_object

_EXAMPLES = """examples:
  echo '{"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}}' | hookline pipe
  my-agent | hookline pipe --hooks hooks.py      lines of type `hook_event` work too"""


def main(argv: list[str]) -> int:
    """Answer until stdin ends. A line that cannot be read is answered with an error, and the next one is read."""
    flags = parser("pipe", "Read event lines on stdin, in any dialect, and answer one line each.", _EXAMPLES)
    flags.add_argument(
        "--dialect", choices=sorted(DIALECTS), help="read every line as this (default: see line by line)"
    )
    add_sources(flags)
    args = flags.parse_args(argv)
    return asyncio.run(_serve(hooks_of(args), args.dialect, sys.stdin.buffer, sys.stdout.buffer))


async def _serve(hooks: Hooks, dialect: str | None, source: BinaryIO, sink: BinaryIO) -> int:
    failed = False
    async with hooks:
        while line := await asyncio.to_thread(source.readline):
            if not line.strip():
                continue
            answer = await answered(hooks, line, dialect)
            failed = failed or b'"error"' in answer[:10]
            sink.write(answer + b"\n")
            sink.flush()
    return 1 if failed else 0


async def answered(hooks: Hooks, line: bytes, dialect: str | None) -> bytes:
    """The answer to one line; a line that is no event is answered `{"error": …}`."""
    try:
        payload = parse_object(line)
        wire = DIALECTS[dialect or detect(payload)]
        event = wire.decode_event(payload)
        verdict = await hooks.fire(event)
        return wire.encode_reply(verdict.reply, event)
    except HooklineError as error:
        said: dict[str, Any] = {"error": str(error)}
        return msgspec.json.encode(said)
