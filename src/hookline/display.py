r"""Text that others wrote, shown so that it can neither steer a terminal nor pass for a line of ours. Pure.

Every place that prints a user's, a hook's, a model's or a file's words uses `one_line` or `block`. What a terminal
would obey or hide is shown as its escape (`\x1b`, `\u202e`): control characters, bidirectional controls, characters
without a width, private and unassigned ones, lone surrogates, and piles of combining marks.
"""

from __future__ import annotations

import re
import unicodedata

_MOST_MARKS = 4  # more combining marks than this on one letter are written over the neighbouring lines
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
"""Letters and marks by their category that show nothing."""
_SELECTORS = (0xFE00, 0xFE0F), (0xE0100, 0xE01EF)
_EMOJI_STYLE = "\ufe0e\ufe0f"
_JOINERS = "\u200c\u200d"
_JOINING = 0x0600
"""Scripts from here on (Arabic, Indic, emoji) need joiners; between Latin letters they only hide something."""
_EMOJI = range(0x1F000, 0x1FB00)
_PADDING = re.compile(" {17,}")
_SEQUENCE = r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]?"
_UNSEEN = re.compile(
    _SEQUENCE + "|[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)  # fmt: skip
"""What is obeyed or hidden: escape sequences, controls, and characters without a width."""


def one_line(text: str, most: int | None = None) -> str:
    """The text on one line, its line breaks as `⏎`; longer than `most` characters it is cut, which shows as `…`.

    A run of more than 16 spaces is counted rather than shown: it could push what follows out of sight, or to where the
    terminal begins a new line.
    """
    text = text if most is None else text[: most + 1]  # what is cut off need not be looked at
    if not (text.isascii() and text.isprintable()):
        text = _escaped(text.replace("\r\n", "\n").replace("\n", "⏎").replace("\t", " "))
    shown = _PADDING.sub(_counted, text)
    return shown if most is None or len(shown) <= most else shown[: max(most - 1, 0)] + "…"


def block(text: str) -> str:
    """The text with its own line breaks and tabs, and nothing else that a terminal obeys.

    For texts that stand by themselves, such as a model's answer. Where lines of ours follow, indent each of its lines
    (`lines` gives them) or use `one_line`.
    """
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    unix = text.replace("\r\n", "\n")
    return "\n".join("\t".join(map(_escaped, line.split("\t"))) for line in unix.split("\n"))


def strip_unseen(text: str) -> tuple[str, int]:
    """The text without escape sequences and characters that do not show, and how many of these there were.

    What ordinary writing needs stays: line breaks, joiners in Persian and in emoji, the style of a symbol.
    """
    removed = 0

    def without(found: re.Match[str]) -> str:
        nonlocal removed
        if _joins(text, found.start()) or (_is_selector(found.group()[0]) and _styles(text, found.start())):
            return found.group()
        removed += 1
        return ""

    return _UNSEEN.sub(without, text), removed


def lines(text: str) -> list[str]:
    """The lines of a text, each safe to show behind a prefix of ours; tabs are spaces."""
    return [_PADDING.sub(_counted, line.expandtabs()) for line in block(text).split("\n")]


def behind_bar(text: str) -> str:
    """The text, all of its lines but the first behind a bar: none passes for a line of ours."""
    return "\n  │ ".join(lines(text))


def unsteered_json(data: bytes) -> str:
    """JSON as text for a terminal: what it would obey or hide is escaped as JSON escapes it, and means the same."""
    text = data.decode("utf-8", "replace")
    shown = ""
    for char in text:
        units = "" if char.isprintable() else char.encode("utf-16-be", "surrogatepass").hex()
        shown += "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)) or char
    return shown


def _counted(spaces: re.Match[str]) -> str:
    return f" …{len(spaces.group())} spaces… "


def _escaped(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    parts: list[str] = []
    marks = 0
    for position, char in enumerate(text):
        category = unicodedata.category(char)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        parts.append(_shown(text, position, category) if marks <= _MOST_MARKS else _escape(char))
    return "".join(parts)


def _shown(text: str, position: int, category: str) -> str:
    char = text[position]
    if category == "Zs":
        return " "
    if category[0] in "CZ":
        young = category == "Cn" and ord(char) in _EMOJI  # an emoji that is younger than this Python's tables
        return char if young or _joins(text, position) else _escape(char)
    if char in _INVISIBLE or (_is_selector(char) and not _styles(text, position)):
        return _escape(char)
    return char


def _is_selector(char: str) -> bool:
    return any(first <= ord(char) <= last for first, last in _SELECTORS)


def _styles(text: str, position: int) -> bool:
    """Whether a selector says how the symbol before it looks, as in `❤️`."""
    return text[position] in _EMOJI_STYLE and position > 0 and unicodedata.category(text[position - 1])[0] in "SPN"


def _joins(text: str, position: int) -> bool:
    """Whether a joiner stands between two characters that ordinary writing joins, as in Persian or in `👩‍🚀`."""
    if text[position] not in _JOINERS or not 0 < position < len(text) - 1:
        return False
    return all(
        ord(char) >= _JOINING and char not in _INVISIBLE and unicodedata.category(char)[0] in "LMS"
        for char in (text[position - 1], text[position + 1])
    )


def _escape(char: str) -> str:
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
