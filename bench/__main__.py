"""Measure every row and print the table: `python -m bench [--only PREFIX] [--json FILE] [--page FILE]`."""

import argparse
import compileall
import importlib
import json
import multiprocessing
import os
import pkgutil
import platform
import sys
from collections.abc import Iterator
from datetime import datetime
from itertools import groupby
from pathlib import Path

import hookline
from bench import rows as row_modules
from bench.harness import Result, Row, markdown, measure, table, with_figures


def rows() -> Iterator[Row]:
    """The rows of every module in `bench/rows/`, by module name."""
    for module in sorted(pkgutil.iter_modules(row_modules.__path__), key=lambda module: module.name):
        yield from importlib.import_module(f"{row_modules.__name__}.{module.name}").rows()


def measured(chosen: list[Row]) -> Iterator[Result]:
    """Each row's result, with its progress on stderr.

    A module's rows, which may share a run, are measured in a process of their own: no other's modules, threads or heap
    are in it, so that they show the same figures alone.
    """
    numbered = enumerate(chosen, 1)
    for _, rows_of_module in groupby(numbered, key=lambda numbered: numbered[1].name.partition(".")[0]):
        yield from _in_own_process(list(rows_of_module), len(chosen))


def _in_own_process(chosen: list[tuple[int, Row]], count: int) -> Iterator[Result]:
    def work() -> None:
        for index, row in chosen:
            print(f"[{index}/{count}] {row.name}", file=sys.stderr, flush=True)
            result = measure(row)
            told.send((result.measured, result.problem, result.broken))

    context = multiprocessing.get_context("fork")
    answers, told = context.Pipe(duplex=False)
    process = context.Process(target=work)
    process.start()
    told.close()
    for done, (_, row) in enumerate(chosen, 1):
        try:
            answer = answers.recv()
        except EOFError:
            process.join()
            yield Result(row, problem=f"failed: its process ended with {process.exitcode}", broken=True)
            yield from _in_own_process(chosen[done:], count)
            return
        yield Result(row, *answer)
    process.join()


def main(argv: list[str] | None = None) -> int:
    """0 if every row that could be measured met its target, 1 if one did not or failed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Hookline's numbers, beside its peers'.")
    parser.add_argument(
        "--only", default="", metavar="PREFIX", help="rows whose name begins so, as in core or core.none"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results there")
    parser.add_argument("--page", type=Path, metavar="FILE", help="also write the table into this page, dated")
    options = parser.parse_args(argv)
    chosen = [row for row in rows() if row.name.startswith(options.only)]
    if not chosen:
        print(f"no row's name begins with `{options.only}`" if options.only else "there are no rows yet")
        return 1 if options.only else 0
    _as_installed()
    results = list(measured(chosen))
    print(table(results))
    if options.json:
        options.json.write_text(json.dumps([result.as_json() for result in results], indent=1) + "\n")
    if options.page:
        options.page.write_text(with_figures(options.page.read_text(), markdown(results, _heading(options.only))))
    return int(any(result.broken or result.met is False for result in results))


def _as_installed() -> None:
    """Leave byte code beside the sources, as pip does, and let processes find and keep theirs."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    compileall.compile_dir(Path(hookline.__file__).parent, quiet=1)


def _heading(only: str) -> str:
    """When, with which command, and on what this was measured."""
    command = f"make bench ARGS='--only {only}'" if only else "make bench"
    python, cores = platform.python_version(), os.cpu_count()
    today = f"{datetime.now().astimezone():%d %B %Y}"
    return f"Measured on {today} by `{command}`: Python {python}, {platform.system()}, {cores} cores."


if __name__ == "__main__":
    sys.exit(main())
