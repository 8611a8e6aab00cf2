"""`hookline pipe`: event lines in, in any dialect; one answer line each, in the same dialect."""

import argparse
import os
import sys
from typing import BinaryIO

from hookline.api import Hooks
from hookline.cli.options import TimeKeeper, hooks_of, hosted, parser_for, record_refusal, run
from hookline.core.wire.dialects import DIALECTS
from hookline.hosts.answer import MOST_BYTES, LineCodec, answer, refused_line
from hookline.processes.loop import read_lines
from hookline.processes.stdout import claim_stdout
from hookline.processes.supervised import ChildExit, Lines
from hookline.processes.watch import SharedDeadline


def main(argv: list[str]) -> int:
    """Answer until stdin ends. A line that cannot be read is answered with an error, and the next one is read."""
    args = parser_for("pipe", dialects=sorted(DIALECTS)).parse_args(argv)

    due = SharedDeadline()

    def work(source: int, sink: int) -> int:
        """The child's part: it has lines to answer, and nothing of the host's stdin or stdout."""
        time = TimeKeeper(due)
        time.loading()
        if not sys.stdin.isatty():  # hooks that read stdin must not take the host's lines; a terminal is asked
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        claim_stdout().close()
        with os.fdopen(sink, "wb", closefd=False) as answers:
            return 0 if run(_serve(time.watch(hooks_of(args)), args, source, answers)) else 1

    if not hasattr(os, "fork"):
        return work(os.dup(0), os.dup(1))

    def refuse(line: bytes, death: ChildExit) -> bytes:
        record_refusal(lambda: [LineCodec(args.dialect).decode(line)], death.reason)
        return refused_line(line, death.reason)

    lines = Lines(work, refuse, "hookline pipe", source=sys.stdin.fileno(), longest=MOST_BYTES, due=due)
    return lines.answer_all(sys.stdout.buffer)


async def _serve(hooks: Hooks, args: argparse.Namespace, source: int, sink: BinaryIO) -> bool:
    """Answer every line of a descriptor; whether all of them could be read."""
    codec = LineCodec(args.dialect)
    async with hooks, hosted(hooks, model=args.model, mcp_config=args.mcp_config, cwd=args.project):
        async for line in read_lines(source, MOST_BYTES):
            sink.write(await answer(hooks, line, codec) + b"\n")
            sink.flush()
    return codec.unreadable == 0
