"""From a tool's result to the row that is kept of it: which values it vouches for, and which text was read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from hookline.errors import extra
from hookline.guards.flow.coding import origin_of, secrets_in
from hookline.guards.flow.config import FlowConfig, is_document
from hookline.guards.flow.store import MOST_VOUCHERS, FlowRow, FlowStore, Voucher, bounded
from hookline.guards.flow.values import addresses, flat, fold, key_of, kind_of, leaves, names
from hookline.guards.flow.words import row, tokens
from hookline.guards.tool_inputs import json_inside

_LONGEST_VALUE = 200
_PERSON = re.compile(r"name|sender|author|from", re.IGNORECASE)
_QUOTES = "'\"`\u2018\u2019\u201c\u201d"


def call_hash(tool: str, arguments: Mapping[str, Any]) -> str:
    """What a call is recognized by when its result comes."""
    return sha256(json.dumps([tool, arguments], sort_keys=True, default=str).encode()).hexdigest()[:24]


def result_row(
    config: FlowConfig, store: FlowStore, tool: str, arguments: Mapping[str, Any], result: Any, *, approved: bool
) -> FlowRow:
    """The row of one result."""
    source = f"{tool}#{store.results + 1}"
    made = FlowRow("result", source=source, tool=tool, arguments=sorted(arguments), call=call_hash(tool, arguments),
               approved=approved)  # fmt: skip
    made.origin = origin_of(tool, arguments)
    value, guessed = _structure(result, config.rule(tool).parse), False
    if isinstance(value, str) and made.origin in ("record", "outside") and not is_document(tool, arguments, text=True):
        found = json_inside(value)
        value, guessed = (value, False) if found is None else (found, True)
    if made.origin == "secret":
        made.source, made.secrets = _described(tool, arguments), secrets_in("\n".join(flat(value)))
        made.letters = sum(map(_letters, flat(value)))
        return made
    texts: list[str] = []
    own = {key_of(one) for one in flat(arguments)}  # what the model has put in is not vouched for by coming back
    for path, leaf, people in _parts(value):
        if config.rule(tool).reads == "trusted":
            given = [str(leaf), *(one.text for one in addresses(str(leaf)))]
            made.vouchers += (Voucher(key_of(one), "field", path) for one in given if len(one) <= _LONGEST_VALUE)
            continue
        label = config.label(tool, path, leaf, document=is_document(tool, arguments))
        label = "third" if label == "field" and guessed else label  # a text that looks like records, from anyone
        made.letters += _letters(leaf)
        if label == "text":
            texts.append(str(leaf))
        elif key_of(str(leaf)) not in own:
            made.vouchers.append(Voucher(key_of(str(leaf)), label, path, people))
    del made.vouchers[MOST_VOUCHERS:]
    made.text = bounded("\n\n".join(texts))
    made.found = sorted({key_of(one.text) for one in addresses(made.text)})
    made.direct = _is_direct(store, tool, arguments)
    made.delegated = made.direct or _follows(store, arguments)
    return made


def _parts(value: Any) -> Iterator[tuple[str, Any, str]]:
    """The leaves of each record, with the names of people in it."""
    for record in value if isinstance(value, (list, tuple)) else [value]:
        found = list(leaves(record, "[]" if record is not value else ""))
        people = " ".join(str(leaf) for path, leaf in found if _PERSON.search(path) and len(str(leaf)) <= 80)
        yield from ((path, leaf, people) for path, leaf in found)


def _letters(leaf: Any) -> int:
    return sum(map(str.isalpha, leaf)) if isinstance(leaf, str) else 0


def _structure(result: Any, parse: str | None) -> Any:
    """What a result says: an MCP result's structured content where it has one, else the text of its blocks."""
    if isinstance(result, Mapping) and result.get("structuredContent") is not None:
        return result["structuredContent"]
    blocks = result.get("content") if isinstance(result, Mapping) else result
    if isinstance(blocks, (list, tuple)) and blocks and all(_is_block(block) for block in blocks):
        result = "\n\n".join(str(block.get("text") or block.get("resource") or "") for block in blocks)
    return _parsed(result, parse) if isinstance(result, str) and parse else result


def _is_block(value: Any) -> bool:
    return isinstance(value, Mapping) and value.get("type") in ("text", "image", "audio", "resource", "resource_link")


def _parsed(text: str, how: str) -> Any:
    """A dump of records as records; a text that is not one stays text."""
    if how == "json":
        try:
            return json.loads(text)
        except ValueError:
            return text
    with extra('`parse = "yaml"`', "yaml"):
        import yaml
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def _is_direct(store: FlowStore, tool: str, arguments: Mapping[str, Any]) -> bool:
    """Whether the user named what was read: a file, an address, a title in quotes; a word that is searched does not."""
    searches = set(tokens(tool)) & row("searches")
    for value in flat(arguments):
        if len(value) >= 4 and names(store.prompt, store.folded_prompt, value):
            if not searches or kind_of(value) != "name" or re.search(r"[\w-]\.[a-z]{2,5}$", value):
                return True
            if re.search(f"[{_QUOTES}]{re.escape(fold(value))}[{_QUOTES}.]", store.folded_prompt):
                return True
    return False


def _follows(store: FlowStore, arguments: Mapping[str, Any]) -> bool:
    """Whether a text that the user named leads to what was read."""
    given = [value for value in flat(arguments) if len(value) >= 4 and kind_of(value) != "name"]
    return any(text.delegated for value in given for text in store.seen(value))


def _described(tool: str, arguments: Mapping[str, Any]) -> str:
    first = next(iter(flat(arguments)), "")
    return f"{tool} {first}"[:80]
