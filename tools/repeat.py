"""Run the suite many times on a busy machine: `python -m tools.repeat [--times 20] [--log FILE] [pytest arguments]`.

Two processes per core compute without a pause meanwhile, at a lower priority. One line per run goes to the log, with
the names of the tests that failed; the exit code is 1 if any run had a failure.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

BUSY = "import os\nos.nice(5)\nwhile os.getppid() == {parent}:\n    sum(range(100_000))\n"


@contextmanager
def competitors(count: int) -> Iterator[None]:
    """Processes that keep the cores busy; they end with this one, whatever happens to it."""
    code = BUSY.format(parent=os.getpid())
    busy = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def run(arguments: Sequence[str]) -> tuple[int, str, list[str]]:
    """One run: its exit code, pytest's closing line, and the tests that failed."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--dist", "loadfile", *arguments]
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", ran.stdout, re.MULTILINE)
    lines = ran.stdout.strip().splitlines()
    return ran.returncode, lines[-1] if lines else "no output", failed


def main(argv: Sequence[str]) -> int:
    """Repeat the run and keep the log."""
    parser = argparse.ArgumentParser(prog="python -m tools.repeat", description=__doc__.partition("\n")[0])
    parser.add_argument("--times", type=int, default=20, help="how many runs (default: 20)")
    parser.add_argument("--log", type=Path, default=Path("repeat.log"), help="where the log goes (default: repeat.log)")
    parser.add_argument("--idle", action="store_true", help="without the competing processes")
    args, rest = parser.parse_known_args(argv)
    bad = 0
    with competitors(0 if args.idle else 2 * (os.cpu_count() or 1)), args.log.open("a", encoding="utf-8") as log:
        for number in range(1, args.times + 1):
            began = time.monotonic()
            code, closing, failed = run(rest)
            bad += code != 0
            seconds = time.monotonic() - began
            line = f"run {number:2} of {args.times}: exit {code} after {seconds:.0f} s: {closing}"
            for text in (line, *(f"    {name}" for name in failed)):
                print(text, flush=True)
                log.write(text + "\n")
                log.flush()
    print(f"{args.times - bad} of {args.times} runs green")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
