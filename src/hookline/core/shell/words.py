"""One shell word: from its source to what the command receives.

Quoted characters that would mean something unquoted are moved to a private-use block while a word is being read, so
that brace expansion sees only what the shell would see; `UNKNOWN` marks text that an expansion will replace.
"""

from __future__ import annotations

import re

from hookline.core.shell.shell_line import MAX_WORDS, Undecidable

UNKNOWN = "\ue001"
_MAX_BRACES = 32
_SPECIAL = "*?[]{},~."
_MASK = {ord(char): chr(0xE000 + ord(char)) for char in _SPECIAL}
_UNMASK = {0xE000 + ord(char): char for char in _SPECIAL} | {ord(UNKNOWN): None}
_PRIVATE = re.compile("[\ue000-\ue0ff\x00\ud800-\udfff]")
_PATTERN = re.compile(r"[*?]|\[.*\]", re.DOTALL)
_SEQUENCE = re.compile(r"(?:-?\d+|[A-Za-z])\.\.(?:-?\d+|[A-Za-z])(?:\.\.-?\d+)?")
_SIMPLE_ESCAPES = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_ANSI = re.compile(r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|(.))", re.DOTALL)


def readable(text: str) -> bool:
    """Whether the text leaves this module's private characters alone."""
    return _PRIVATE.search(text) is None


def mask(text: str) -> str:
    """The text as it stands inside quotes."""
    return text.translate(_MASK)


def unmask(text: str) -> str:
    """What the command receives."""
    return text.translate(_UNMASK)


def is_pattern(text: str) -> bool:
    """Whether the shell replaces a word by the names of files; `[` alone is a command."""
    return _PATTERN.search(text) is not None


def ansi_c(body: str) -> str:
    """What `$'…'` stands for."""
    return _ANSI.sub(_ansi_escape, body)


def _ansi_escape(match: re.Match[str]) -> str:
    octal, byte, short, long, char = match.groups()
    if char is not None:
        if char not in _SIMPLE_ESCAPES:
            raise Undecidable(f"`$'…'` has the escape `\\{char}`")
        return _SIMPLE_ESCAPES[char]
    code = int(octal, 8) & 0xFF if octal else int(byte or short or long, 16)
    if not 0 < code < 0x80:
        raise Undecidable("`$'…'` holds a character outside ASCII")
    return chr(code)


def expand_braces(word: str) -> list[str]:
    """The words that `{a,b}` stands for; a sequence such as `{1..9}` is left as one unknown word."""
    if word.count("{") > _MAX_BRACES:
        raise Undecidable("a word holds too many braces")
    done: list[str] = []
    todo = [word]
    while todo:
        current = todo.pop()
        found = _first_brace(current)
        if found is None:
            done.append(current)
        else:
            todo.extend(reversed(found))
        if len(todo) + len(done) > MAX_WORDS:
            raise Undecidable("braces expand to too many words")
    return done


def _first_brace(word: str) -> list[str] | None:
    start = word.find("{")
    while start >= 0:
        parts, end = _brace_parts(word, start)
        if len(parts) > 1:
            return [word[:start] + part + word[end:] for part in parts]
        if parts and _SEQUENCE.fullmatch(unmask(parts[0])):
            return [UNKNOWN + word[:start] + mask(word[start:end]) + word[end:]]
        start = word.find("{", start + 1)
    return None


def _brace_parts(word: str, start: int) -> tuple[list[str], int]:
    """What stands between the commas of the brace at `start`, and where it ends; nothing when it is not closed."""
    depth, begin, parts = 0, start + 1, []
    for index in range(start, len(word)):
        char = word[index]
        if char == "{":
            depth += 1
        elif char == "," and depth == 1:
            parts.append(word[begin:index])
            begin = index + 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                return [*parts, word[begin:index]], index + 1
    return [], start
