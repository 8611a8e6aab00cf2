"""Words on a terminal: coloured and folded there, plain in a pipe."""

import os
import re
import sys
from io import TextIOWrapper
from typing import Any, TextIO

from hookline.display import block, unsteered_json

LEAST, MOST = 60, 160

_CODES = {"red": 31, "green": 32, "yellow": 33, "blue": 34, "magenta": 35, "cyan": 36, "dim": 2, "bold": 1}
_PAINTED = re.compile(r"(\x1b\[\d\d?m)")
_SIGNS = {"✗": "red", "error": "red", "warning": "yellow", "✓": "green", "►": "magenta"}


def colour_of(word: str) -> str:
    """The colour of a decision."""
    from hookline.core.engine.verdict import WORDS

    return WORDS[word].terminal if word in WORDS else "dim"


def width(stream: TextIO | None = None) -> int:
    """How many columns to fill: those of the terminal, within reason; 80 where there is none."""
    stream = stream or sys.stdout
    if not stream.isatty():
        return 80
    from shutil import get_terminal_size

    return min(max(get_terminal_size().columns, LEAST), MOST)


def colours(stream: TextIO | None = None) -> bool:
    """Whether to use colour: on a terminal, or everywhere with FORCE_COLOR; never with NO_COLOR."""
    stream = stream or sys.stdout
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0", "false"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def paint(text: str, colour: str, stream: TextIO | None = None) -> str:
    """The text in a colour, where colour is seen."""
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m" if colours(stream) else text


def escape_controls(stream: TextIO) -> None:
    """From now on nothing that is printed there steers a terminal, but for the colours that `paint` gives.

    The last resort: it cannot tell a line break of ours from one in a name, so names are shown by `one_line` as well.
    """
    if isinstance(stream, TextIOWrapper) and "write" not in vars(stream):
        write, coloured = stream.write, colours(stream)

        def write_escaped(text: str) -> int:
            parts = _PAINTED.split(text) if coloured else [text]
            return write("".join(part if at % 2 else block(part) for at, part in enumerate(parts)))

        stream.write = write_escaped  # type: ignore[method-assign]


def painted(line: str) -> str:
    """A line of an explanation with its telling words coloured, and what is beside the point dimmed."""
    if line.lstrip().startswith("·"):
        return paint(line, "dim")
    from hookline.core.engine.verdict import WORDS

    for word in (*WORDS, *_SIGNS):
        if f"{word} " in f"{line} ":
            return line.replace(word, paint(word, _SIGNS.get(word) or colour_of(word)), 1)
    return line


def folded(text: str, indent: int, hanging: int) -> str:
    """The text in lines as wide as the terminal, all but the first indented by `hanging`; words are never broken."""
    from textwrap import fill

    return fill(
        text, width(), initial_indent=" " * indent, subsequent_indent=" " * hanging, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def has_terminal() -> bool:
    """Whether there is a person to ask."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def agreed(question: str) -> bool:
    """Ask on the terminal; only a plain yes is a yes."""
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def counted(number: int, thing: str) -> str:
    """A number of things, in words: `1 record`, `2,000 records`."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def json_text(value: Any) -> str:
    """What `--json` prints."""
    from hookline.core.wire.json_text import write_lossy

    return unsteered_json(write_lossy(value))
