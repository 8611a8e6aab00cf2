"""What people and tools call things: verbs, fields and arguments, from `words.json`. Pure tables, no model.

Prompts are read in seven languages; of one in another language no intent is claimed.
"""

import re
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal

import msgspec

_TABLE: dict[str, Any] = msgspec.json.decode(Path(__file__).with_name("words.json").read_bytes())
CODE: dict[str, Any] = _TABLE["code"]
STREET: dict[str, str] = _TABLE["street"]
GO_TO, BROWSES, LINKS, MONEY_TO = (
    re.compile(_TABLE[name], re.IGNORECASE) for name in ("go_to", "browses", "links", "money_to")
)
KINDS: dict[str, re.Pattern[str]] = {
    kind: re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.IGNORECASE) for kind, words in _TABLE["kinds"].items()
}
_SCRIPTS = {"zh": "[\u4e00-\u9fff]", "hi": "[\u0900-\u097f]", "ar": "[\u0600-\u06ff]"}
_FIRST_DECIDES = frozenset({"update", "move", "delete", "cancel", "return"})
_NEEDS_THING = frozenset({"create", "update", "delete", "cancel", "move", "reserve", "schedule"})
_WORDS_FOR_LANGUAGE = 0.08
_VERBS = {word: verb for verb, words in _TABLE["verbs"].items() for word in words.split()}
_COMMON = {name: frozenset(words.split()) for name, words in _TABLE["common"].items()}


@cache
def row(name: str) -> frozenset[str]:
    """A row of the table that is a list of words."""
    return frozenset(_TABLE[name].split())


@lru_cache(maxsize=2048)
def tokens(name: str) -> tuple[str, ...]:
    """The words of a tool's or an argument's name, in small letters: `mcp__x__sendMail` is send, mail."""
    bare = re.sub(r"^mcp__.+?__", "", name)
    return tuple(word.lower() for word in re.findall(r"[A-Z]?[a-z]+\d*|[A-Z]+(?![a-z])|\d+|[^\W\d_a-zA-Z]+", bare))


def _first_verbs(tool: str) -> list[str]:
    """The first word of each part of the name (`fetch_and_send` has two) that says what is done: a class, or `read`."""
    found, waiting = [], True
    for word in tokens(tool):
        verb = _VERBS.get(word) or ("read" if word in row("read") else None)
        if word in ("and", "then", "or"):
            waiting = True
        elif waiting and verb:
            found.append(verb)
            waiting = False
    return found


@lru_cache(maxsize=1024)
def is_effect(tool: str) -> bool:
    """Whether a tool changes or sends something, by its name; what is not known does."""
    return _first_verbs(tool) != ["read"]


@lru_cache(maxsize=1024)
def verbs_of(tool: str) -> frozenset[str]:
    """The classes of what a tool does, by its name."""
    words, found = set(tokens(tool)), set(_first_verbs(tool)) - {"read"}
    nouns = {verb for verb, names in _TABLE["nouns"].items() if words & set(names.split())}
    if found & _FIRST_DECIDES:  # to change an event may be to invite someone
        return frozenset(found | (nouns & {"schedule"} if found == {"update"} else set()))
    if "pay" in nouns:
        found = (found - {"send", "create", "run"}) | {"pay"}
    if "invite" in nouns and found & {"create", "invite"}:
        found = {"invite"}
    if "create" in found:  # to add a comment is to comment
        found |= nouns & {"send", "post", "schedule"}
    return frozenset(found | (nouns & {"share"}))


@lru_cache(maxsize=256)
def languages(text: str) -> tuple[str, ...]:
    """The languages of a text, as far as they are known."""
    found = [name for name, letters in _SCRIPTS.items() if len(re.findall(letters, text)) >= 2]
    words = re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)?", text.lower())
    latin = [word for word in words[:400] if word[0] < "\u0250"]
    for name, common in _COMMON.items():
        if latin and sum(word in common for word in latin) >= max(1, _WORDS_FOR_LANGUAGE * len(latin)):
            found.append(name)
    return tuple(found) or (("en",) if len(latin) < 6 and text.isascii() else ())


def _speaks(patterns: dict[str, str], text: str) -> bool:
    """Whether a text has one of these words, in one of its languages."""
    found = (name for name in languages(text) or patterns if patterns.get(name))
    return any(_compiled(patterns[name], bare=name in _SCRIPTS).search(text) for name in found)


@cache
def _compiled(pattern: str, *, bare: bool) -> re.Pattern[str]:
    return re.compile(pattern if bare else rf"(?<!\w)(?:{pattern})(?!\w)", re.IGNORECASE | re.DOTALL)


def asks_for(text: str, verbs: frozenset[str]) -> bool:
    """Whether a text speaks of doing one of these."""
    asks = _TABLE["asks"].items()
    return any(_speaks({name: table[verb] for name, table in asks}, text) for verb in verbs)


def names_tool(text: str, tool: str) -> bool:
    """Whether a text has a word of a tool's name, for tools whose name has no verb that is known."""
    words = {word[:6] for word in tokens(tool) if len(word) >= 4} - row("generic")
    return any(word in text.casefold() for word in words)


def thing_missing(tool: str, verbs: frozenset[str], prompt: str) -> bool:
    """Whether the verb was said, but of something else: to book a hotel is not to make a calendar event."""
    if not verbs:
        return not names_tool(prompt, tool)
    if not verbs <= _NEEDS_THING:
        return False
    named = set(tokens(tool))
    things = [patterns for names, patterns in _TABLE["things"] if named & set(names.split())]
    return bool(things) and not any(_speaks(patterns, prompt) for patterns in things)


def unspoken_secret(tool: str, prompt: str, *, reads: bool = False) -> str | None:
    """What a tool about passwords and the like needs to have been said, word by word."""
    name, harmless = "".join(tokens(tool)), ("token", "permission") if reads else ()
    for word, spellings in _TABLE["sensitive"].items():
        if word in name and word not in harmless and not any(spelling in prompt for spelling in spellings):
            return str(word)
    return None


def leaves_to_document(what: Literal["hands_over", "details_in"], prompt: str) -> bool:
    """Whether the user lets a document say what to do (`hands_over`), or says it and leaves the details to one."""
    patterns = _TABLE[what]
    return any(_compiled(patterns[name], bare=True).search(prompt) for name in languages(prompt) if name in patterns)
