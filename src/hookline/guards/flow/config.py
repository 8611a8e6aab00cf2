"""What may be said about tools, and what is taken for granted of one about which nothing was said."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from hookline.errors import ConfigError
from hookline.guards.flow.values import fold, key_of, kind_of
from hookline.guards.flow.words import MONEY_TO, is_effect, row, tokens, verbs_of

Role = Literal["to", "target", "content"]
Label = Literal["field", "third", "text"]
_LONGEST_FIELD, _MOST_FIELD_WORDS = 80, 10
_ADDRESS_ARGUMENT = re.compile(r"(?:^|_)(?:ur[li]s?|link|href|endpoint|website|page)$")
_DOCUMENT_ARGUMENT = re.compile(r"(?:^|_)(?:ur[li]s?|link|href|(?:file|notebook)?_?path|file|filename)$")


class FlowToolRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a user says about the tools of one name or pattern; all of it is optional."""

    to: list[str] | None = None  # the arguments that are destinations, instead of those whose names say so
    reads: Literal["trusted", "fields", "text"] | None = None
    """`trusted`: all that it returns is the user's own; `fields`: its fields vouch, strict or not; `text`: none."""
    third: list[str] | None = None  # the fields that other people fill in
    parse: Literal["json", "yaml"] | None = None  # the text that it returns is a dump of records, never a document
    links: Literal["open"] | None = None  # what its texts link to may be fetched without a question
    effect: bool | None = None
    means: list[str] | None = None
    """What it does, where its name does not say: `send`, `pay`, `post`, `share`, `delete`, …"""


class FlowConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of the flow guard."""

    strict: bool = False  # addresses vouch only from directories, and for people whom the user named
    me: list[str] = []
    known: list[str] = []
    tools: dict[str, FlowToolRule] = {}
    intent: bool = True

    def rule(self, tool: str) -> FlowToolRule:
        """The rule of the first pattern that fits, by the full name or by an MCP tool's own."""
        bare = tool.rpartition("__")[2] if tool.startswith("mcp__") else tool
        rules = self.tools.items()
        return next((rule for name, rule in rules if fnmatchcase(tool, name) or fnmatchcase(bare, name)), _NO_RULE)

    def is_effect(self, tool: str) -> bool:
        """Whether the tool changes or sends something. What its server says of it (`readOnlyHint`) exempts nothing."""
        effect = self.rule(tool).effect
        return is_effect(tool) if effect is None else effect

    def verbs(self, tool: str) -> frozenset[str]:
        """What the tool does, by class."""
        means = self.rule(tool).means
        return verbs_of(tool) if means is None else frozenset(means)

    def fetches(self, tool: str, arguments: Iterable[str]) -> bool:
        """Whether the tool only reads from an address that it is given."""
        return not self.is_effect(tool) and any(map(is_address_argument, arguments))

    def role(self, tool: str, argument: str) -> Role:
        """What an argument is: a destination (or a credential), a thing of the user's, or content."""
        named = self.rule(tool).to
        if named is not None and argument in named:
            return "to"
        role = _role(argument)
        return role if role != "to" or named is None else "content"

    def label(self, tool: str, path: str, leaf: Any, *, document: bool) -> Label:
        """What a leaf of a result is worth: a record's field, one that third parties fill in, or just text."""
        rule, text = self.rule(tool), str(leaf)
        last = re.sub(r"\[\]|\.<key>|\.\*", "", path).rpartition(".")[2]  # the field, whatever lists are around it
        words = frozenset((*tokens(last), "".join(tokens(last))))
        if rule.reads == "text" or (document and rule.reads is None and rule.parse is None):
            return "text"
        if "\n" in text or len(text) > _LONGEST_FIELD or len(text.split()) > _MOST_FIELD_WORDS or words & row("prose"):
            return "text"
        names_value = set(tokens(tool)) & (row("to") | row("ids"))  # `get_iban`, `find_user_id`
        if not path and (re.search(r"\s", text.strip()) or not names_value):
            return "text"
        is_third = words & row("third") if rule.third is None else last in rule.third
        if is_third or (self.strict and rule.reads != "fields" and not set(tokens(tool)) & row("directory")):
            return "third"
        is_place = kind_of(text) == "name" or (words | (set() if last else set(tokens(tool)))) & row("holds_address")
        return "field" if is_place or rule.reads == "fields" else "third"

    def is_known(self, key: str) -> bool:
        """Whether a destination is always allowed: the user's own, or one of the known patterns; a list is not one."""
        if any(key == key_of(own) for own in self.me):
            return True
        return not re.search(r"[\s,;<>\"]|@.*@", key) and any(fnmatchcase(key, fold(one)) for one in self.known)

    def explain(self, tool: str, arguments: Iterable[str]) -> str:
        """What the guard takes for granted of a tool, in one line."""
        names = sorted(set(arguments))
        if self.fetches(tool, names):
            return f"`{tool}` fetches from an address"
        if not self.is_effect(tool):
            return f"`{tool}` only reads"
        verbs = "/".join(sorted(self.verbs(tool))) or "does something that its name does not say"
        to = ", ".join(f"`{name}`" for name in names if self.role(tool, name) == "to") or "no argument"
        return f"`{tool}` has an effect ({verbs}); a destination: {to}"


_NO_RULE = FlowToolRule()


@lru_cache(maxsize=2048)
def _role(argument: str) -> Role:
    words = tokens(argument)
    known, last = set(words), words[-1] if words else ""
    if known & row("secret_argument") or MONEY_TO.search(argument):
        return "to"
    if last in ("id", "ids") or last.isdigit():
        return "to" if known & (row("people") if last != "1" else row("to")) else "target"
    if known & row("to") and last not in row("not_to"):
        return "to"
    return "target" if last in row("target") else "content"


def is_postal(argument: str) -> bool:
    """Whether an argument is a part of a postal address."""
    words = {re.sub(r"\d+$", "", word) for word in tokens(argument)}
    return bool(words & row("postal")) and not words & {"email", "mail", "ip", "url", "web", "wallet"}


def is_address_argument(argument: str) -> bool:
    """Whether an argument is an address that is fetched."""
    return _ADDRESS_ARGUMENT.search("_".join(tokens(argument))) is not None


def is_document(tool: str, arguments: Mapping[str, Any], *, text: bool = False) -> bool:
    """Whether a tool returns a document, whose author may write `iban: …` into it; a `text`, if its name says so."""
    if text and set(tokens(tool)) & row("document"):
        return True
    named = any(_DOCUMENT_ARGUMENT.search("_".join(tokens(name))) for name in arguments)
    return named or (not tool.startswith("mcp__") and tool in row("document_tools"))


def make_config(given: Mapping[str, Any], file: str | Path | None = None) -> FlowConfig:
    """The settings that are given, and those of a TOML file: its `[flow]` table, or the whole file."""
    try:
        table = {} if file is None else tomllib.loads(Path(file).read_text())
        return msgspec.convert({**table.get("flow", table), **given}, FlowConfig)
    except (OSError, tomllib.TOMLDecodeError) as problem:
        raise ConfigError(str(file), f"cannot be read: {problem}") from None
    except msgspec.ValidationError as problem:
        raise ConfigError(str(file or "flow"), f"{problem}; see the keys in docs/explanation/flow.md") from None
