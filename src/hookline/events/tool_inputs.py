"""The inputs of the common tools, for type checkers: `given: BashInput = event.input_as(BashInput)`.

A model may leave a field out or send one of another type, so what matters is looked at before it is trusted:
`event.input_as` refuses an input that does not have the shape.
"""

from typing import NotRequired, TypedDict


class BashInput(TypedDict):
    """Bash: run a command line."""

    command: str
    description: NotRequired[str]
    timeout: NotRequired[float]
    run_in_background: NotRequired[bool]


class ReadInput(TypedDict):
    """Read: look at a file."""

    file_path: str
    offset: NotRequired[int]
    limit: NotRequired[int]


class WriteInput(TypedDict):
    """Write: make or replace a file."""

    file_path: str
    content: str


class EditInput(TypedDict):
    """Edit: replace a text in a file."""

    file_path: str
    old_string: str
    new_string: str
    replace_all: NotRequired[bool]


class GlobInput(TypedDict):
    """Glob: find files by name."""

    pattern: str
    path: NotRequired[str]


class GrepInput(TypedDict):
    """Grep: find lines by content."""

    pattern: str
    path: NotRequired[str]
    glob: NotRequired[str]
    output_mode: NotRequired[str]


class WebFetchInput(TypedDict):
    """WebFetch: read a page."""

    url: str
    prompt: NotRequired[str]
