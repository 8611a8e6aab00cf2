"""Run the suite on a busy machine until it was green many times in a row.

`python -m tools.repeat [--times 20] [--log FILE] [pytest arguments]`. One process per core computes without a pause
meanwhile, as `nice` starts it. Each run is a line of the log, with the time of day, the commit and the tests that
failed; what pytest printed of such a run is kept beside the log. A run that fails begins the count anew. Green runs of
the same commit that the log has already are not made again, so Ctrl-C loses only the run that it ends.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

BUSY = """
import contextlib, os
os.nice(10)
with contextlib.suppress(OSError), open("/proc/self/autogroup", "w") as group:
    group.write("10")
while os.getppid() == {parent}:
    sum(range(100_000))
"""
"""As nice as `nice` makes it, also where Linux shares the processors out by sessions first."""
LINE = re.compile(r"\S+ \S+ (?P<commit>\S+): exit (?P<code>-?\d+) ")
INTERRUPTED = 130
PATIENCE = 30.0
"""Seconds that pytest has to end by itself after Ctrl-C."""


@contextmanager
def competitors(count: int) -> Iterator[None]:
    """Processes that keep the cores busy; they end with this one, whatever happens to it."""
    code = BUSY.format(parent=os.getpid())
    busy = [subprocess.Popen([sys.executable, "-c", code], start_new_session=True) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def commit() -> str:
    """What is tested, `-dirty` if files differ from it."""
    command = ["git", "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def green_in_a_row(log: Iterable[str], tested: str) -> int:
    """How many runs of this commit were green since the last that was not; none if it is not a commit."""
    green = 0
    for line in log:
        found = LINE.match(line)
        if found:
            green = green + 1 if (found["commit"], found["code"]) == (tested, "0") else 0
    return 0 if tested.endswith("-dirty") else green


def run(arguments: Sequence[str]) -> tuple[int, str]:
    """One run: its exit code, and what pytest printed."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--dist", "loadfile", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        try:
            output, _ = process.communicate()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)  # to pytest alone, which ends its workers
            try:
                process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, output.strip() or "no output"


def main(argv: Sequence[str]) -> int:
    """Repeat the run and keep the log."""
    parser = argparse.ArgumentParser(prog="python -m tools.repeat", description=__doc__.partition("\n")[0])
    parser.add_argument("--times", type=int, default=20, help="how many green runs in a row (default: 20)")
    parser.add_argument("--most", type=int, default=60, help="give up after so many runs (default: 60)")
    parser.add_argument("--log", type=Path, default=Path("repeat.log"), help="where the log goes (default: repeat.log)")
    parser.add_argument("--idle", action="store_true", help="without the competing processes")
    args, rest = parser.parse_known_args(argv)
    for ending in (signal.SIGINT, signal.SIGTERM):  # in the background the first is ignored, or even held back
        signal.signal(ending, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
    tested = commit()
    green = green_in_a_row(args.log.read_text().splitlines() if args.log.exists() else (), tested)
    try:
        with competitors(0 if args.idle else os.cpu_count() or 1), args.log.open("a", encoding="utf-8") as log:
            for _ in range(args.most):
                if green >= args.times:
                    break
                began = time.monotonic()
                code, output = run(rest)
                closing = output.splitlines()[-1]
                failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
                green = green + 1 if code == 0 else 0
                now = datetime.now().astimezone()
                if code:
                    args.log.with_suffix(f".{now:%H%M%S}.log").write_text(output, encoding="utf-8")
                spent = f"after {time.monotonic() - began:.0f} s, {green} in a row: {closing}"
                line = f"{now:%Y-%m-%d %H:%M:%S} {tested}: exit {code} {spent}"
                for text in (line, *(f"    {name}" for name in failed)):
                    print(text, flush=True)
                    log.write(text + "\n")
                    log.flush()
    except KeyboardInterrupt:
        print(f"stopped after {green} green in a row; the same command goes on from there")
        return INTERRUPTED
    print(f"{green} of {args.times} runs green in a row")
    return 0 if green >= args.times else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
