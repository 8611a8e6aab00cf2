"""Finding credentials in text: for the guard that stops them and for the log that must not keep them.

Only patterns that know a format, no entropy and no keywords, so that ordinary code raises few alarms. The table,
`credentials.txt`, is our own; where detect-secrets is installed, its patterns of this kind are looked for as well.
Pure: text in, places out.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path

import msgspec

_NAMED = ("pass", "pwd", "secret", "token", "key", "credential")
_LEAST, _LEAST_IN_LOGS = 12, 4
"""How long the value of a secret's name must be to raise an alarm, and to be taken out of a log, where it is cheap."""
_USER = re.compile(r"""(?<![\w-])(?:-u|--user|--proxy-user)[ =]["']?[^\s:"'$]{1,200}:([^\s"'$][^\s"']{0,200})""")


class Credential(msgspec.Struct, frozen=True, order=True):
    """A credential in a text: where, and of what kind."""

    start: int
    end: int
    kind: str


_Format = tuple[str, re.Pattern[str], int, tuple[str, ...]]
"""Its kind, its pattern, which group of it is the credential, and what a text must contain."""


@cache
def _patterns() -> tuple[_Format, ...]:
    """The formats of `credentials.txt`, and what `detect-secrets` knows besides, where it is installed."""
    text = Path(__file__).with_name("credentials.txt").read_text("utf-8")
    own, _, others = text.partition("[detect-secrets]")
    rows = [line.split(" => ") for line in own.splitlines() if line and not line.startswith("#")]
    found = [(kind, re.compile(pattern), needles) for kind, needles, pattern in rows]
    known = [(kind, pattern, min(pattern.groups, 1), tuple(need.split())) for kind, pattern, need in found]
    needles = {row[0]: row[1] for row in (*rows, *(line.split(" => ") for line in others.splitlines() if "=>" in line))}
    names = [line.split(".") for line in others.split() if "." in line]
    try:
        plugins = [getattr(import_module(f"detect_secrets.plugins.{module}"), name)() for module, name in names]
    except ImportError:  # nothing depends on it
        plugins = []
    more = ((plugin.secret_type, pattern) for plugin in plugins for pattern in plugin.denylist)
    return (*known, *((kind, pattern, 0, tuple(needles.get(kind, "").split())) for kind, pattern in more))


_MOST_KEPT = 4_096  # longer texts are not kept in memory


def _kept(search: Callable[[str], tuple[Credential, ...]]) -> Callable[[str], tuple[Credential, ...]]:
    kept = lru_cache(512)(search)
    return lambda text: kept(text) if len(text) <= _MOST_KEPT else search(text)


@_kept
def find(text: str) -> tuple[Credential, ...]:
    """The credentials in `text`, in order, overlapping ones joined."""
    return _joined(_all(text))


def _all(text: str) -> Iterator[Credential]:
    small = text.lower()
    for kind, pattern, group, needles in _patterns():
        if needles and not any(needle in small for needle in needles):
            continue
        for match in pattern.finditer(text):
            yield Credential(*match.span(group), kind)
    if "private" in small:
        yield from (Credential(*span, "Private Key") for span in key_blocks(text))
    if any(word in small for word in _NAMED):
        yield from (Credential(*span, "Password") for span in assigned_secrets(text, least=_LEAST, mixed=True))


def _joined(places: Iterable[Credential]) -> tuple[Credential, ...]:
    found: list[Credential] = []
    for place in sorted(places):
        if found and place.start < found[-1].end:
            found[-1] = Credential(found[-1].start, max(found[-1].end, place.end), found[-1].kind)
        else:
            found.append(place)
    return tuple(found)


def redact(text: str) -> str:
    """The text with every credential replaced by `[redacted: its kind]`, also those that `find` is too careful for."""
    parts, at = [], 0
    for place in _redactable(text):
        parts += [text[at : place.start], f"[redacted: {place.kind}]"]
        at = place.end
    return "".join([*parts, text[at:]])


@_kept
def _redactable(text: str) -> tuple[Credential, ...]:
    small = text.lower()
    places = list(find(text))
    if any(word in small for word in _NAMED):
        spans = assigned_secrets(text, least=_LEAST_IN_LOGS, mixed=False)
        places += [Credential(*span, "Password") for span in spans]
    if "-u" in small:
        places += [Credential(*match.span(1), "Password") for match in _USER.finditer(text)]
    return _joined(places)


# Secrets by the name they are given: `dbPassword = "…"`, `CLIENT_SECRET=…`, `--token …`; a value in quotes is taken
# as it is written, one without is not when it looks like code or a placeholder: `$TOKEN`, `getpass(…)`, `<your key>`

_LAST = (
    "password passwd passphrase passcode pwd secret token apikey authorization credential cookie bearer privatekey"
    " accesskey secretkey authtoken accesstoken"
)
LAST_WORDS = frozenset(_LAST.split())  # a name that ends in one of these holds a secret
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
                value, stated = text[start:end], quoted or shouted  # in a file of variables nothing is code
                fits = len(value) >= least and (not mixed or _is_mixed(value))
                if fits and not _PLACEHOLDER.match(value) and (stated or not _CODE.match(value)):
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
    return all(any(map(test, value)) for test in (str.isdigit, str.isalpha)) and not any(map(str.isspace, value))


# Private keys: PEM with or without headers, OpenSSH, SSH2, PGP, PuTTY; one whose end is missing (the text was cut)
# goes on for as long as its lines look like lines of a key.

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
        reached = 0
        last_end = max((match.start() for match in end.finditer(text)), default=-1)  # none is looked for behind it
        for found in begin.finditer(text):
            if found.start() < reached:
                continue
            closed = end.search(text, found.end()) if found.end() <= last_end else None
            reached = closed.end() if closed is not None else _open_end(text, found.end())
            yield found.start(), reached


def _open_end(text: str, start: int) -> int:
    at = start
    while (line := _LINE.match(text, at) or _PIECE.match(text, at)) and line.end() > at:
        at = line.end()
    return at
