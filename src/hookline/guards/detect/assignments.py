"""Secrets by the name they are given (`dbPassword = "…"`, `CLIENT_SECRET=…`, `--token …`) and private keys. Pure.

A value in quotes is taken as it is written. One without is not when it looks like code or a placeholder: `$TOKEN`,
`os.environ[…]`, `getpass(…)`, `<your key>`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

LAST_WORDS = frozenset(
    {
        "password", "passwd", "passphrase", "passcode", "pwd", "secret", "token", "apikey", "authorization",
        "credential", "cookie", "bearer", "privatekey", "accesskey", "secretkey", "authtoken", "accesstoken",
    }
)  # fmt: skip
"""A name that ends in one of these holds a secret."""
_KEYS = "api access private secret signing encryption auth account master ssh host"
LAST_PAIRS = frozenset({("connection", "string"), ("pass", "phrase"), *((first, "key") for first in _KEYS.split())})
_PIECES = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_MOST_NAME = 128


def names_a_secret(name: str) -> bool:
    """Whether a field of this name holds a secret: `password`, `dbPassword`, `AWS_SECRET_ACCESS_KEY`, `x-api-key`."""
    words = [word.lower() for word in _PIECES.findall(name[-_MOST_NAME:])]
    if not words:
        return False
    last = words[-1] if words[-1] in LAST_WORDS else words[-1].removesuffix("s")
    return last in LAST_WORDS or (*words[-2:-1], last) in LAST_PAIRS


_NAME = re.compile(
    r"""(?i)(?:pass(?:word|wd|phrase|code)|pwd|secret|token|credential|(?:api|access|private|secret|signing|encryption|auth"""
    r"""|account|master)[_\- ]?key)s?["'`]?[ \t]{0,8}(?P<sep>=>|:=|[:=])[ \t]{0,8}(?P<list>\[\s{0,200})?"""
)
_FLAG = re.compile(
    r"""(?i)(?<![\w-])(?P<name>--?[a-z0-9-]{0,40}(?:password|passwd|passphrase|secret|token|api-?key|private-?key))"""
    r"""[= ][ \t]{0,8}(?=[^\s-])"""
)
_QUOTED = re.compile(r'"((?:[^"\\\n]|\\.){1,4096})"|\'((?:[^\'\\\n]|\\.){1,4096})\'|`([^`\n]{1,4096})`')
_OPEN_QUOTE = re.compile(r"[\"'`]([^\s\"'`,;]{1,4096})")
_BARE = re.compile(r"[^\s\"'`,;&|]{1,512}")
_BETWEEN = re.compile(r"\s{0,200},\s{0,200}")
_PLACEHOLDER = re.compile(
    r"\$[A-Za-z_(]\w*\Z|\$\{[^}]*\}\Z|\$\(.*|<.*|\{\{.*|%[({].*|\*+\Z|[xX]{3,}\Z|\.{3,}\Z|…|\[redacted|"
    r"(?i:change.?me|example|your|dummy|redacted|none\Z|null\Z|true\Z|false\Z|undefined\Z)"
)
_CODE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\Z|[A-Za-z_][\w.]*(?:\([^()]*\)?|\[[^\[\]]*\]?)[\w.()\[\]:,;]*\Z")
_SHOUTED = re.compile(r"[A-Z][A-Z0-9_]*=\Z")
_BEFORE = 64


def assigned_secrets(text: str, *, least: int, mixed: bool) -> Iterator[tuple[int, int]]:
    """Where the values of secrets' names are: of `least` characters; with `mixed`, of letters and digits."""
    for named in (_NAME, _FLAG):
        reached = 0
        for found in named.finditer(text):
            if found.start() < reached:  # it is part of a value
                continue
            shouted = _SHOUTED.search(text, max(found.start() - _BEFORE, 0), found.end()) is not None
            for start, end, quoted in _values(text, found.end(), several=bool(found.groupdict().get("list"))):
                value = text[start:end]
                if len(value) >= least and (not mixed or _is_mixed(value)) and _is_literal(value, quoted or shouted):
                    reached = end
                    yield start, end


def _values(text: str, at: int, *, several: bool) -> Iterator[tuple[int, int, bool]]:
    """The value there, or all quoted ones of a list."""
    while True:
        quoted = _QUOTED.match(text, at)
        if quoted is None:
            found = None if several else _OPEN_QUOTE.match(text, at) or _BARE.match(text, at)
            if found is not None:
                start, end = found.span(found.re.groups)
                yield start, end, found.re is _OPEN_QUOTE
            return
        start, end = quoted.span(quoted.lastindex or 0)
        yield start, end, True
        more = _BETWEEN.match(text, quoted.end()) if several else None
        if more is None:
            return
        at = more.end()


def _is_mixed(value: str) -> bool:
    """Whether it has digits and letters, as what a machine made has, and no blank."""
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value) and not any(c.isspace() for c in value)


def _is_literal(value: str, stated: bool) -> bool:  # noqa: FBT001 - quoted, or in a file of variables
    if _PLACEHOLDER.match(value):
        return False
    return stated or not _CODE.match(value)


# -- private keys: PEM with or without headers, OpenSSH, SSH2, PGP, PuTTY; one whose end is missing (the text was cut)
# -- goes on for as long as its lines look like lines of a key --------------------------------------------------------

_BEGIN = re.compile(r"-{4,5} ?BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_END = re.compile(r"-{4,5} ?END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_PUTTY = re.compile(r"PuTTY-User-Key-File-\d{1,4}:[^\n\\]{0,200}")
_PUTTY_END = re.compile(r"Private-(?:MAC|Hash): *[0-9a-fA-F]*")
_LINE = re.compile(
    r"[ \t>|│]{0,16}(?:\d{1,6}[ \t→:|]{1,4})?"  # what quotes and numbers lines
    r"(?:[A-Za-z][A-Za-z-]{1,40}: ?[^\n\\]{0,400}|[A-Za-z0-9+/=]{0,4096})[ \t,\"']{0,8}(?:\r?\n|\\r\\n|\\n|\Z)"
)
"""A line of a key: a header, a piece of base64, or nothing; its end may be written as an escape, as in JSON."""
_PIECE = re.compile(r"[ \t>|│]{0,16}(?:\d{1,6}[ \t→:|]{1,4})?[A-Za-z0-9+/=]{16,4096}")
"""The beginning of a line of a key, where other text goes on behind it."""


def key_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Where each private key begins and ends."""
    for begin, end in ((_BEGIN, _END), (_PUTTY, _PUTTY_END)):
        reached, last_end = 0, _last(end, text)
        for found in begin.finditer(text):
            if found.start() < reached:
                continue
            closed = end.search(text, found.end()) if found.end() <= last_end else None
            reached = closed.end() if closed is not None else _open_end(text, found.end())
            yield found.start(), reached


def _last(end: re.Pattern[str], text: str) -> int:
    """Where the last end of a block begins, so that none is looked for where there is none."""
    found = -1
    for match in end.finditer(text):
        found = match.start()
    return found


def _open_end(text: str, start: int) -> int:
    at = start
    while at < len(text):
        line = _LINE.match(text, at) or _PIECE.match(text, at)
        if line is None or line.end() == at:
            return at
        at = line.end()
    return at
