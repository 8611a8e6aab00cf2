"""Values: what counts as an address, the form in which two spellings are the same, and what a result is made of. Pure.

To allow, only what the receiving system folds too is folded: case, NFKC, a URL's scheme and `www.`. A look-alike is
never folded towards something that is allowed.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from hookline.guards.flow.words import STREET

Kind = Literal["email", "url", "iban", "phone", "name"]

_ENDINGS = "com|org|net|io|dev|ai|co|info|biz|xyz|ru|cn|me|app|site|online|top|link|ly|gg|sh|cloud|de|uk|fr|eu|ch|us|in|br|jp|es|it|nl|tech|store|page|zip|tk|example|test"  # noqa: E501
_DOMAIN = re.compile(rf"((?<![\w@./-])(?:[a-z0-9-]+\.)+(?:{_ENDINGS})(?![\w-])(?:[/?][^\s<>\"'`]*)?)", re.IGNORECASE)
_START = r"(?:(?<![a-z0-9+.-])[0-9+.-]*+|(?=www\.))"
_PATTERNS: tuple[tuple[Kind, re.Pattern[str]], ...] = (  # the group; a long word is read once, not from every character
    ("email", re.compile(r"[.+'-]*+(\w[\w.+'-]*+@[\w-]+(?:\.[\w-]+)+)|[\w.+'-]++")),
    ("url", re.compile(_START + r"((?:[a-z][a-z0-9+.-]*+://|www\.)[^\s<>\"'`\]\[(){}|\\]+)", re.IGNORECASE)),
    ("iban", re.compile(r"(\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{2,4}){3,8}\b)")),
    ("phone", re.compile(r"((?<![\w.])\+\d[\d ()-]{7,16}\d)")),
    ("url", _DOMAIN),
)
_UNSEEN = dict.fromkeys([0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, 0xAD, 0x180E, *range(0xE0000, 0xE0080)])
_ALPHABETS = {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"}
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()  # noqa: SIM905 - reads better than quotes
_END = ".,;:!?)'\""
_BEFORE, _AFTER = re.compile(r"[\w@][.+-]?\Z"), re.compile(r"[.+-]?[\w@]")


class FoundAddress(NamedTuple):
    """An address in a text."""

    kind: Kind
    text: str


def clean(text: str) -> str:
    """A text as it is kept and looked through: paragraphs on a line each, nothing that does not show."""
    return "\n".join(filter(None, (" ".join(part.split()) for part in re.split(r"\n\s*\n", _visible(text)))))


def _visible(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFKC", text).translate(_UNSEEN)


def fold(text: str) -> str:
    """The form in which two spellings are the same name for the system that gets it."""
    return " ".join(unicodedata.normalize("NFKC", text).split()).casefold()


def url_parts(text: str) -> tuple[str, str] | None:
    """Host and the rest; tricks with `user@host`, ports and dots are resolved, and what is doubtful has no host."""
    if re.search(r"[\\\x00-\x20]", text.strip()):
        return None  # browsers read a backslash as a slash and drop tabs
    rest = re.sub(r"^(?:[a-z][a-z0-9+.-]*:)?/+", "", fold(text).rstrip(_END))
    host, slash, path = rest.partition("/")
    host, mark, query = host.partition("?")
    host = host.partition("#")[0].rpartition("@")[2].partition(":")[0].rstrip(".")
    if not re.fullmatch(r"[\w.-]+", host):
        return None
    return host.removeprefix("www."), (mark + query + slash + path).rstrip("/")


@lru_cache(maxsize=4096)
def kind_of(value: str) -> Kind:
    """What a value is by its looks."""
    text = value.strip()
    for kind, pattern in _PATTERNS:
        if (hit := pattern.fullmatch(text)) and hit[1] == text and (kind != "iban" or sum(map(str.isdigit, text)) > 8):
            return kind
    return "url" if text.startswith("//") else "name"


@lru_cache(maxsize=4096)
def key_of(value: str) -> str:
    """What is compared: the canonical form, by kind."""
    kind = kind_of(value)
    if kind == "url" and (parts := url_parts(value)):
        return "".join(parts)
    text = fold(value)
    return re.sub(r"[\s()-]", "", text) if kind in ("iban", "phone") else text


@lru_cache(maxsize=1024)
def addresses(text: str) -> tuple[FoundAddress, ...]:
    """Every address in a free text."""
    text = re.sub(r"(?<=[a-z])\.(?=[A-Z][a-z]+ )", ". ", _visible(text))  # a space forgotten after a full stop
    found: list[FoundAddress] = []
    taken: list[tuple[int, int]] = []
    for kind, pattern in _PATTERNS:
        for match in pattern.finditer(text):
            if match[1] and (pattern is not _DOMAIN or not any(start <= match.start() < end for start, end in taken)):
                found.append(FoundAddress(kind, match[1].rstrip(_END)))
                taken.append(match.span(1))
    return tuple(found)


def contains(folded: str, needle: str) -> int:
    """Where a folded text has this value as a whole, or -1: `doe@x.com` is not in `john.doe@x.com`."""
    at = folded.find(needle) if needle else -1
    while at >= 0:
        joined = _BEFORE.search(folded, max(at - 2, 0), at) or _AFTER.match(folded, at + len(needle))
        wide = ord(needle[0]) > 0x2E7F or ord(needle[-1]) > 0x2E7F  # scripts that put no space between words
        if wide or not joined:
            return at
        at = folded.find(needle, at + 1)
    return -1


def names(text: str, folded: str, value: str) -> bool:
    """Whether a text (given with its folded form) names exactly this value."""
    kind = kind_of(value)
    if kind in ("url", "iban", "phone"):
        wanted = key_of(value)
        found = any(key_of(one.text) == wanted for one in addresses(text) if one.kind == kind)
        return found or (kind == "iban" and wanted in folded.replace(" ", ""))
    return contains(folded, fold(value)) >= 0


def hosts_in(text: str) -> Iterator[str]:
    """The hosts of the addresses in a text."""
    yield from (parts[0] for one in addresses(text) if one.kind == "url" and (parts := url_parts(one.text)))


def postal(text: str) -> str:
    """A street or a town as it is compared: without punctuation, the usual abbreviations written out."""
    return " ".join(STREET.get(word, word) for word in re.findall(r"\w+", fold(text)))


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of a structure with their paths; keys that are data and not identifiers are leaves, too."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if re.fullmatch(r"[A-Za-z_][\w-]*", str(key)):
                yield from leaves(item, f"{path}.{key}")
            else:
                yield f"{path}.<key>", key
                yield from leaves(item, f"{path}.*")
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from leaves(item, f"{path}[]")
    elif value is not None and not isinstance(value, bool):
        yield path, value


def several(value: str) -> list[str]:
    """The addresses of a list in one text (`a@x.org, Bob <b@x.org>`); what is not such a list is one value."""
    parts = [re.sub(r"^[^<>@]*<([^<>\s]+)>$", r"\1", part.strip()) for part in re.split(r"[,;]", value) if part.strip()]
    return parts if parts and all(kind_of(part) != "name" for part in parts) else [value]


def flat(value: Any) -> list[str]:
    """All the leaves as texts."""
    return [str(leaf) for _, leaf in leaves(value)]


_SENTENCE_END = re.compile(r"[.!?؟](?=\s+[^a-z\s])|[。！？।]|\n")
_LONGEST_SENTENCE = 600


def sentence_at(text: str, position: int, length: int = 0) -> str:
    """The sentence of a clean text around a position; of a very long one the part that is near."""
    first = max(position - _LONGEST_SENTENCE, 0)
    start = max((match.end() for match in _SENTENCE_END.finditer(text, first, position)), default=first)
    end = _SENTENCE_END.search(text, position + length, position + length + _LONGEST_SENTENCE)
    return text[start : end.end() if end else position + length + _LONGEST_SENTENCE].strip()


def day_named(folded: str, value: str) -> bool:
    """Whether the day of an ISO date is spoken of in a text, in some usual way; what is not a date is not looked at."""
    match = re.match(r"(\d{4})-(\d\d)-(\d\d)", value.strip())
    if not match or match.group() in folded:
        return True
    month, day = int(match[2]), int(match[3])
    named = not 1 <= month <= 12 or re.search(rf"\b{_MONTHS[month - 1]}|(?<!\d)0?{month}\s?[/.月]", folded)
    relative = re.search(r"\b(?:today|tomorrow|tonight|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b|今天|明天", folded)
    return bool(relative) or bool(named and re.search(rf"(?<!\d)0?{day}(?:st|nd|rd|th)?(?!\d)", folded))


def mixes_alphabets(text: str) -> bool:
    """Whether letters of look-alike alphabets stand side by side."""
    return len({unicodedata.name(char, "?").split()[0] for char in text if char.isalpha()} & _ALPHABETS) > 1
