"""What settings of git say, and whether git runs something because of one. Read, never run: `git config` may run it."""

import re
from collections.abc import Iterator
from pathlib import Path

_ROWS = Path(__file__).with_suffix(".txt").read_text("utf-8").splitlines()
_HARMLESS = {section: keys.split() for section, _, keys in (row.partition(": ") for row in _ROWS)}
"""Settings for which git runs nothing, by section (`*`: any name in quotes). All others may have it run one."""
_SECTION = re.compile(r'\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
_KEY = re.compile(r"\s*([A-Za-z][\w-]*)\s*(?:=\s*(.*))?$")
_LFS = {"clean": "git-lfs clean -- %f", "smudge": "git-lfs smudge -- %f", "process": "git-lfs filter-process"}
_PLAIN_URL = re.compile(r"(?!-)(?:(?:https?|ssh|git|file)://|(?![\w.+-]*::)[^\s-])\S*")
"""An address that git reaches by itself: not `ext::sh -c …`, nor one that reads as an option."""


def is_harmless_setting(name: str, value: str) -> bool:
    """Whether git is known to run nothing because of a setting."""
    section, _, key = name.rpartition(".")
    first, dot, _ = section.partition(".")
    first, key = first.lower(), key.lower()
    if section == "filter.lfs" and key in _LFS:
        return value == _LFS[key]
    if (first, key) == ("core", "fsmonitor"):
        return value.lower() in ("true", "false")  # git's own, not a program
    row = section if section == "filter.lfs" else f"{first}.*" if dot else first
    plain = key not in ("url", "pushurl") or _PLAIN_URL.fullmatch(value) is not None
    return key in _HARMLESS.get(row, ()) and plain


def read_settings(text: str) -> Iterator[tuple[str, str]]:
    """Each setting of a file, names in small letters; an empty name for what git reads in a way that we do not."""
    if re.search(r"[#;][^\n]*\\\r?\n", text):
        yield "", "a comment that seems to go on in the next line, which git reads by itself"
    section = ""
    for line in re.sub(r"\\\r?\n", "", text.removeprefix("\ufeff")).split("\n"):
        rest = line.strip()
        header = _SECTION.match(rest)
        if header:
            own = None if header[2] is None else re.sub(r"\\(.)", r"\1", header[2])
            section = header[1].lower() if own is None else f"{header[1].lower()}.{own}"
            rest = rest[header.end() :].strip()
        found = _KEY.match(rest) if rest[:1] not in ("#", ";") else None
        if found:
            yield f"{section}.{found[1].lower()}", _value(found[2])
        elif rest and rest[:1] not in ("#", ";"):
            yield "", rest  # git reads it in a way that we do not


def _value(text: str | None) -> str:
    """A value without its comment and quotes; a key alone is true."""
    if text is None:
        return "true"
    said, quoted, at = "", False, 0
    while at < len(text):
        sign = text[at]
        if sign == "\\" and at + 1 < len(text):
            at += 1
            said += {"n": "\n", "t": "\t", "b": ""}.get(text[at], text[at])
        elif sign == '"':
            quoted = not quoted
        elif sign in "#;" and not quoted:
            break
        else:
            said += sign
        at += 1
    return said.strip()


def running_settings(before: str, after: str) -> list[str]:
    """The settings that a new text has, an old one had not, and git may run something for; `?` for what is unclear.

    A text is unclear where a line goes on in the next one: in a comment it does not, and a reader that is wrong about
    that sees other settings than git.
    """
    if re.search(r"\\\n|[\r\0]", after):
        return ["?"]
    known = [*read_settings(before)]
    found = [(name or "?", value) for name, value in read_settings(after) if (name, value) not in known]
    return [name for name, value in found if not is_harmless_setting(name, value)]
