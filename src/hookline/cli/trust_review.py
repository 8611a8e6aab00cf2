"""What a project's untrusted hooks would run, shown on the terminal, and the question whether they may."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hookline.cli.style import agreed, paint
from hookline.display import lines as lines_of
from hookline.display import one_line
from hookline.settings.load import load
from hookline.settings.trust.store import Item, Status, Trust, TrustChange


@contextmanager
def keep_trust(project: Path) -> Iterator[list[str]]:
    """What a command of ours writes to a project's settings inside is trusted; yields what was not before, and is not.

    A file that already held something that is not trusted stays so.
    """
    trust = Trust.load()
    unseen = {item.path: item.label for item in trust.status(load(project)).untrusted}
    yield list(unseen.values())
    trust.record([item for item in trust.status(load(project)).untrusted if item.path not in unseen])


def review(status: Status) -> bool:
    """Show a status on the terminal and ask; only a plain yes is a yes."""
    print(shown(status), file=sys.stderr)
    return agreed("Trust these hooks from now on?")


def shown(status: Status) -> str:
    """What would run, and each difference from what was trusted."""
    lines: list[str] = []
    for item in status.untrusted:
        lines += [paint(one_line(item.label), "bold"), *(f"  runs  {one_line(run)}" for run in item.runs)]
        lines += [f"  sets  {one_line(said)}" for said in item.sets]
        for script in item.scripts:
            is_folder = script.path.endswith("/")
            if script.text or not is_folder:
                names = " (the names that an import may find there)" if is_folder else ""
                lines.append(f"  file  {one_line(script.path)}{names}")
        lines += trusted_by_command(item)
        lines += [line for change in status.changes if change.item.path == item.path for line in _change(change)]
    return "\n".join(lines)


def trusted_by_command(item: Item) -> list[str]:
    """Where content cannot be vouched for: it is said aloud."""
    if not item.notes:
        return []
    head = paint("  trusted as a command, not by content:", "yellow")
    return [head, *(f"    {one_line(note)}" for note in item.notes)]


def _change(change: TrustChange) -> list[str]:
    if change.kind == "new" and change.path == change.item.path:
        return ["  it is new: not trusted yet"]
    colours = {"+": "green", "-": "red", "@": "cyan"}
    said = [line for line in lines_of(change.diff) if line]
    body = [f"    {paint(line, colours[line[0]]) if line[:1] in colours else line}" for line in said]
    return [f"  {change.kind}: {one_line(change.path)}", *body]
