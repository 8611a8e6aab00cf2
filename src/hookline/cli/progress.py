"""A progress bar, for work that takes minutes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hookline.errors import MissingExtra
from hookline.replay.compare import Report


@contextmanager
def bar(total: int) -> Iterator[Callable[[int, Report], None] | None]:
    """A bar over bytes, with what was found so far, on stderr; it begins with the first piece that is done.

    Until then other processes are started, and those must not be copies of one that draws.
    """
    try:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        raise MissingExtra("a progress bar", "cli") from None
    columns = (BarColumn(), DownloadColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    task = progress.add_task("", total=total)

    def advance(done: int, report: Report) -> None:
        progress.start()
        progress.update(task, advance=done, description=f"{report.calls:,} calls, {report.flipped:,} differently")

    try:
        yield advance
    finally:
        progress.stop()
