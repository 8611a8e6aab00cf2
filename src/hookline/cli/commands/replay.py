"""`hookline replay`: which recorded calls today's hooks would decide differently."""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from hookline.cli.commands.audit import RANGE
from hookline.cli.commands.console import logs
from hookline.cli.options import hooks_of, parser_for
from hookline.cli.style import counted, json_text, paint
from hookline.display import one_line
from hookline.errors import HooklineError, extra
from hookline.records.replay.compare import CHUNK, Flip, Report, record_files, replay, watchers


def main(argv: list[str]) -> int:
    """Replay and report, the loosened ones first."""
    args = parser_for("replay", **RANGE).parse_args(argv)
    args.files = logs(args.files)
    if missing := [file for file in args.files if not Path(file).exists()]:
        raise HooklineError(f"{missing[0]}: no such file or folder")
    if args.jobs is not None and args.jobs < 1:
        raise HooklineError(f"--jobs: expected a number from 1 on, got `{args.jobs}`")
    hooks = hooks_of(args)
    if not hooks.hooks:  # what is wrong with the files is said once, here, not by every worker
        name = "name them with --hooks FILE.py, or their project with --project DIR"
        raise HooklineError(f"{args.project}: no hooks, so every denied call would be let through; {name}")
    with _progress(sum(path.stat().st_size for path in record_files(args.files))) as advance:
        size = sys.maxsize if watchers(hooks) else CHUNK  # a session is heard from its beginning
        report = replay(args.files, partial(_quietly, args), jobs=args.jobs, size=size, on_progress=advance,
                        since=args.since, until=args.until)  # fmt: skip
    counts = [{"was": was, "now": now, "calls": number} for (was, now), number in sorted(report.counts.items())]
    said = {"calls": report.calls, "flipped": report.flip_count, "failures": report.failures,
            "vanished": report.vanished, "counts": counts, "flips": report.flips}  # fmt: skip
    print(json_text(said) if args.json else report_text(report, args.most))
    return 1 if args.fail_on_flip and report.flip_count else 0


def _quietly(args: argparse.Namespace) -> Any:
    args.trust = True  # it was asked about already
    return hooks_of(args)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int, Report], None] | None]:
    """On a terminal a bar over bytes, from the first piece on: workers must not be copies of one that draws."""
    if not sys.stderr.isatty():
        yield None
        return
    with extra("a progress bar", "cli"):
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
    columns = (BarColumn(), DownloadColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    task = progress.add_task("", total=total)

    def advance(done: int, report: Report) -> None:
        progress.start()
        progress.update(task, advance=done, description=f"{report.calls:,} calls, {report.flip_count:,} differently")

    try:
        yield advance
    finally:
        progress.stop()


def report_text(report: Report, most: int) -> str:
    """The flips, alike ones as one, and how many there are."""
    groups: dict[tuple[str, ...], list[Flip]] = {}
    for flip in report.flips:
        groups.setdefault((flip.was, flip.now, flip.by, flip.tool, *flip.what.split()[:1]), []).append(flip)
    lines = [_line(group[0], len(group)) for group in groups.values()][:most]
    shown = sum(len(group) for group in list(groups.values())[:most])
    if report.flip_count > shown:
        lines.append(paint(f"… and {report.flip_count - shown:,} more; `--most` shows more", "dim"))
    counts = sorted(report.counts.items(), reverse=True)
    kinds = [f"{was.upper()} → {now.upper()} {number:,}" for (was, now), number in counts if was != now]
    failed = f", a hook failed on {report.failures:,}" if report.failures else ""
    failed += f", {report.vanished:,} not compared: their folder is gone" if report.vanished else ""
    summary = f"{counted(report.calls, 'call')}, {report.flip_count:,} would be decided differently"
    return "\n".join([*lines, f"{summary}{': ' + ', '.join(kinds) if kinds else ''}{failed}"])


def _line(flip: Flip, alike: int = 1) -> str:
    """The first of a group: calls of one program that the same hook now decides differently."""
    change = paint(f"{flip.was.upper()} → {flip.now.upper()}", "red" if flip.is_looser else "green")
    why = f"  {one_line(flip.by)}: {one_line(flip.reason)}" if flip.reason else ""
    partial_ = (" (recorded in part)" if flip.partial else "") + (f" and {alike - 1:,} like it" if alike > 1 else "")
    what = f"{one_line(flip.tool or flip.event)} {one_line(flip.what, 60)}"
    return f"{change}  {what}{partial_}{why}  {paint(f'{one_line(flip.file)}:{flip.line}', 'dim')}"
