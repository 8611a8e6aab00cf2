"""Patches in the `*** Begin Patch` format: every file that an agent may take one to change. Pure.

Agents read this format by different rules: Codex trims lines, opencode wants no space after the colon and steps over
what it does not know, Cline needs no frame, OpenHands keeps the blanks behind a path. So a header is looked for in any
of these ways, a path that can be read in two ways is reported in both, and a patch with a line that is neither a header
nor a hunk nor the body of one is refused: some agent may take it for something else.
"""

import re
from typing import Any, NamedTuple

from hookline.errors import EventError

_UNSEEN = r"\s\x00-\x1f\x7f-\xa0\xad\u061c\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff"
"""Blanks, control characters, and characters that show nothing: what some agent trims, or splits lines at."""
_LEADING = re.compile(f"[{_UNSEEN}]+")
_HEADER = re.compile(r"\*{3}\s*(?:(add|update|delete)\s+file|(move)\s+to)\s*:(.*)", re.IGNORECASE | re.DOTALL)
_FRAME = re.compile(rf"\*{{3}} (?:Begin Patch|End Patch|End of File)[{_UNSEEN}]*")
_BREAK = re.compile(r"[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_STRANGE = re.compile(f"(?! )[{_UNSEEN}]")
_WRAPPER = re.compile(r"(?:(?:cat|apply_?patch)[ \t]+)?<<-?[ \t]*(['\"]?)(\w+)\1[ \t\r]*")
_TOOL = {"add": "Write", "update": "Edit", "delete": "Edit", "move": "Write"}


class PatchedFile(NamedTuple):
    """One file that a patch creates, changes, moves or deletes, as the tool call it amounts to."""

    tool: str
    path: str
    added: str
    removed: str

    @property
    def tool_input(self) -> dict[str, Any]:
        if self.tool == "Write":
            return {"file_path": self.path, "content": self.added}
        return {"file_path": self.path, "old_string": self.removed, "new_string": self.added}


def holds_patch(text: str) -> bool:
    """Whether a text has a line that some agent would take for a part of a patch."""
    lines = (piece for line in text.split("\n") for piece in _BREAK.split(line))
    return "***" in text and any(_header(line) or _FRAME.fullmatch(_plain(line)) for line in lines)


def read_patch(patch: Any) -> list[PatchedFile]:
    """Every file of a patch; raises an `EventError` for what cannot be read, or could be read differently."""
    if not isinstance(patch, str):
        raise EventError("patch: expected a text, so what it touches cannot be told")
    found: list[PatchedFile] = []
    for kind, paths, body in _sections(patch):
        added = "\n".join(line[1:] for line in body if line.startswith("+"))
        removed = "\n".join(line[1:] for line in body if line.startswith("-"))
        found += [PatchedFile(_TOOL[kind], path, added, removed) for path in paths]
    if not found:
        raise EventError("patch: it names no file, so what it touches cannot be told")
    return found


def _sections(patch: str) -> list[tuple[str, list[str], list[str]]]:
    """The headers of a patch: what is done, the paths it may be done to, and the body."""
    sections: list[tuple[str, list[str], list[str]]] = []
    for line in _without_wrapper(patch.split("\n")):
        header = _header(line)
        if header:
            sections.append((header[0], _readings(header[1]), []))
        elif not _plain(line) or _FRAME.fullmatch(_plain(line)):
            continue
        elif sections and line.startswith(("+", "-", " ", "@@")):
            sections[-1][2].append(line)
            if any(_header(piece) for piece in _BREAK.split(line)[1:]):
                raise EventError(f"patch: `{line[:80]}` holds a header behind a sign that ends a line for some agents")
        else:
            raise EventError(f"patch: `{line[:80]}` is neither a header nor a hunk nor a line of one")
    return sections


def _without_wrapper(lines: list[str]) -> list[str]:
    """The lines without the here-document that some models put around a patch."""
    while lines and not _plain(lines[0]):
        lines = lines[1:]
    while lines and not _plain(lines[-1]):
        lines = lines[:-1]
    wrapper = _WRAPPER.fullmatch(lines[0]) if lines else None
    return lines[1:-1] if wrapper and lines[-1].strip() == wrapper[2] else lines


def _plain(line: str) -> str:
    return _LEADING.sub("", line, count=1) if _LEADING.match(line) else line


def _header(line: str) -> tuple[str, str] | None:
    found = _HEADER.match(_plain(line))
    return ((found[1] or found[2]).lower(), found[3]) if found else None


def _readings(rest: str) -> list[str]:
    """What stands after the colon, trimmed on both sides, on one or on none; not with a sign that may end a part of it.

    Codex trims the line and then takes the header off, so that blanks before the path stay; it drops tabs and carriage
    returns inside a path. Agents take `~` for a folder's name, hooks for the home.
    """
    written = rest.removeprefix(" ")
    line = written.removesuffix("\r")
    path = line.strip(" ")
    if not path or _STRANGE.search(path):
        raise EventError(f"patch: the path `{path[:80]}` is empty, or holds a sign that is not shown")
    home = [f"./{path}"] if path.startswith("~") else []
    return list(dict.fromkeys([path, line.rstrip(" "), line.lstrip(" "), line, written, *home]))
