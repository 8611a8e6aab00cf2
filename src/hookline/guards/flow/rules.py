"""The rules: who vouches for where a call goes, and who asked for it. A finding asks or denies, and says why.

Nothing is judged until a text that the user did not write was read: before that no such text can have talked the agent
into anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from hookline.display import one_line
from hookline.guards.flow import words
from hookline.guards.flow.coding import CodeFlow, FlowFinding, Level
from hookline.guards.flow.config import FlowConfig, Role, is_address_argument, is_postal
from hookline.guards.flow.store import FlowRow, FlowStore, ReadText, call_hash
from hookline.guards.flow.values import (
    addresses,
    contains,
    day_named,
    flat,
    fold,
    hosts_in,
    key_of,
    kind_of,
    leaves,
    mixes_alphabets,
    names,
    postal,
    sentence_at,
    several,
    url_parts,
)  # fmt: skip

Doubt = Literal["", "third", "delegated", "text", "unknown"]
_SENDS = frozenset({"send", "post", "share", "invite"})
_GENTLE = frozenset({"create", "update", "send", "post", "invite", "schedule", "move"})
_TOUCHES = frozenset({"update", "delete", "cancel", "move", "return", "merge"})
_MOST_VALUES = 200
Verbs = frozenset[str]


class CallArgument(NamedTuple):
    """One value of a call."""

    name: str
    value: str
    role: Role


class FlowJudge:
    """Judges the calls of one session."""

    def __init__(self, config: FlowConfig, store: FlowStore) -> None:
        self._config, self._store = config, store

    def judge(self, tool: str, arguments: Mapping[str, Any]) -> FlowFinding | None:
        """What speaks against a call, the worst; a question is kept, so that its answer can be recognized."""
        if not self._store.untrusted:
            self._store.put(FlowRow("called"))
            return None
        findings = list(self._findings(tool, arguments))
        worst = self._worst(findings)
        if worst is not None or (self._config.is_effect(tool) and _places(self._config, tool, arguments)):
            self._store.put(self._judged(tool, arguments, worst, findings))
        return worst

    def _worst(self, findings: list[FlowFinding]) -> FlowFinding | None:
        if not findings:
            return None
        denied = next((one for one in findings if one.level == "deny"), None)
        worst = denied or findings[0]
        told = next((one for one in findings if one.sentence), worst)  # whichever rule decides, the sentence is shown
        worst = worst if worst.sentence else worst._replace(source=told.source, sentence=told.sentence)
        doubts = {one.rule for one in findings}
        if denied is None and {"destination", "intent"} <= doubts and not _hands_over(self._store):
            return worst._replace(level="deny", why=f"{worst.why}; nor did you ask for such an action")
        keys = {key for one in findings for key in one.keys}
        return None if denied is None and keys and keys <= self._store.approved else worst

    def _judged(
        self, tool: str, arguments: Mapping[str, Any], worst: FlowFinding | None, findings: list[FlowFinding]
    ) -> FlowRow:
        made = FlowRow("judged", tool=tool, arguments=sorted(arguments), call=call_hash(tool, arguments))
        made.values = [
            (one.name, one.value[:200], *self._origin(one)) for one in _places(self._config, tool, arguments)
        ]
        if worst is not None:
            made.level, made.rule, made.source, made.text = worst.level, worst.rule, worst.source, worst.reason
            made.keys = [key for one in findings for key in one.keys]
        return made

    def _origin(self, place: CallArgument) -> tuple[str, str]:
        """Where a destination comes from, for people to see."""
        doubt = _doubt(self._config, self._store, place)
        if doubt:
            return doubt, next((text.source for text in self._store.seen(place.value)), "")
        voucher = self._store.vouchers.get(key_of(place.value))
        named = names(self._store.prompt, self._store.folded_prompt, place.value)
        return ("user", "the prompt") if named or voucher is None else ("field", f"{voucher[1]}{voucher[0].path}")

    def _findings(self, tool: str, arguments: Mapping[str, Any]) -> Iterator[FlowFinding]:
        code = CodeFlow(self._store)
        yield from code.findings(tool, arguments)
        if tool in words.row("own_tools"):  # planning and helpers of the agent itself reach no one
            return
        if self._config.fetches(tool, arguments):
            yield from self._fetch(arguments)
        if not self._config.is_effect(tool):
            if (word := words.unspoken_secret(tool, self._store.folded_prompt, reads=True)) and self._store.prompts:
                yield FlowFinding("ask", "intent", f"you did not speak of a {word}", (f"intent:{tool}",))
            return
        doubts = [found for one in _places(self._config, tool, arguments) for found in self._destination(one)]
        yield from doubts
        if not code.is_about(tool, arguments):
            yield from self._unasked(tool, _arguments(self._config, tool, arguments), doubted=bool(doubts))

    def _unasked(self, tool: str, given: list[CallArgument], *, doubted: bool) -> Iterator[FlowFinding]:
        """What the user did not ask for, and what goes out with it."""
        verbs = self._config.verbs(tool)
        yield from (found for one in given if verbs & _TOUCHES for found in self._touched(one))
        handed_over = not doubted and self._is_handed_over(tool, verbs)
        echo = self._echo(tool, verbs, given)
        if self._config.intent and self._store.prompts and words.languages(self._store.prompt):
            yield from self._intent(tool, verbs, given, echo, handed_over=handed_over)
        if echo and not (handed_over and echo.level == "ask"):
            yield echo
        if verbs & _SENDS or any(one.role == "to" for one in given):
            for one in given:
                if one.role == "content":
                    yield from self._content(one)

    # -- who vouches -------------------------------------------------------------------------------------------------

    def _destination(self, place: CallArgument) -> Iterator[FlowFinding]:
        doubt = _doubt(self._config, self._store, place)
        if not doubt:
            return
        shown, key = f"`{one_line(place.value, 100)}` ({place.name})", (key_of(place.value),)
        source, sentence = _told(self._store, place.value)
        # a plain name is looked up in a closed directory; a street or the number of an account in a text reaches anyone
        is_number = doubt == "text" and re.search(r"\d{6}", place.value)
        is_name = kind_of(place.value) == "name" and not is_postal(place.name) and not is_number
        is_open = doubt == "text" if not self._store.prompts else doubt in ("text", "unknown")
        level: Level = "deny" if is_open and not is_name and self._store.texts else "ask"
        if mixes_alphabets(place.value):
            level, why = "deny", f"{shown} mixes alphabets, and you did not name it"
        elif doubt == "third":
            why = f"{shown} is known only from a field that others fill in"
        elif doubt == "unknown":
            why = f"{shown} was named neither by you nor by a record that was read"
        else:
            why = f"{shown} comes from the text of {source}, not from you"
        yield FlowFinding(level, "destination", why, key, source, sentence)

    def _touched(self, one: CallArgument) -> Iterator[FlowFinding]:
        """What is changed or removed must not be known from a text alone."""
        is_id = one.role == "target" and words.tokens(one.name)[-1:] in (("id",), ("ids",), ("number",))
        if is_id and _doubt(self._config, self._store, one) == "text":
            told = _told(self._store, one.value)
            why = f"`{one_line(one.value, 100)}` ({one.name}) comes from the text of {told[0]}, not from you"
            yield FlowFinding("ask", "target", why, (key_of(one.value),), *told)

    # -- who asked ---------------------------------------------------------------------------------------------------

    def _intent(
        self, tool: str, verbs: Verbs, given: list[CallArgument], echo: FlowFinding | None, *, handed_over: bool
    ) -> Iterator[FlowFinding]:
        prompt, key = self._store.prompt, (f"intent:{tool}",)
        told = (echo.source, echo.sentence) if echo else ("", "")
        level: Level = "deny" if echo else "ask"
        if (word := words.unspoken_secret(tool, self._store.folded_prompt)) is not None:
            yield FlowFinding(level, "intent", f"you did not speak of a {word}", key, *told)
        elif verbs and not handed_over and not words.asks_for(prompt, verbs):
            wanted = "/".join(sorted(verbs))
            level = "ask" if _hands_over(self._store) else level
            yield FlowFinding(level, "intent", f"you did not ask to {wanted} anything ({tool})", key, *told)
        elif not handed_over and words.thing_missing(tool, verbs, prompt):
            yield FlowFinding(level, "intent", f"you did not speak of what `{tool}` is about", key, *told)
        for one in given if "reserve" in verbs else ():
            known = key_of(one.value) in self._store.vouchers  # a birthday on file, a flight that was found
            if one.role != "to" and not known and not day_named(self._store.folded_prompt, one.value):
                why = f"you did not name the day {one.value} ({one.name})"
                yield FlowFinding("ask", "intent", why, (f"day:{one.value}",))

    def _is_handed_over(self, tool: str, verbs: Verbs) -> bool:
        """Whether the user let a text that they named say what to do, and this is not money, removal or a secret."""
        gentle = bool(verbs) and verbs <= _GENTLE and not set(words.tokens(tool)) & words.row("money")
        return gentle and _hands_over(self._store) and any(text.direct for text in self._store.texts)

    def _echo(self, tool: str, verbs: Verbs, given: list[CallArgument]) -> FlowFinding | None:
        """Whether a text that was read tells the agent to make exactly this call. A paraphrase gets past it."""
        prompt, folded = self._store.prompt, self._store.folded_prompt
        found: FlowFinding | None = None
        for role, value, key in ((one.role, one.value, key_of(one.value)) for one in given):
            named = names(prompt, folded, value)
            wanted = 20 <= len(value) <= 300 if role == "content" else not (kind_of(value) == "name" and named)
            for text in self._store.seen(value) if wanted and not self._config.is_known(key) else ():
                sentence = _quoted(text, value)[1]
                told = words.asks_for(sentence, verbs) if verbs else words.names_tool(sentence, tool)
                if told and _speaks_of(sentence, value):
                    level: Level = "ask" if text.delegated or named else "deny"
                    why = f"the text of {text.source} tells the agent to do this"
                    found = FlowFinding(level, "echo", why, (f"echo:{fold(value)}",), text.source, sentence)
                    if level == "deny":
                        return found
        return found

    # -- what goes out -----------------------------------------------------------------------------------------------

    def _content(self, one: CallArgument) -> Iterator[FlowFinding]:
        for address in addresses(one.value):
            doubt = _doubt(self._config, self._store, CallArgument(one.name, address.text, "content"))
            if not doubt:
                continue
            told = _told(self._store, address.text)
            prompt = self._store.prompt
            wanted = doubt in ("delegated", "unknown") or words.LINKS.search(prompt) or not self._store.prompts
            origin = f"comes from {told[0]}" if told[0] else "was not named by you or by a record"
            why = f"`{one_line(address.text, 100)}` in {one.name} {origin}"
            yield FlowFinding("ask" if wanted else "deny", "content", why, (key_of(address.text),), *told)

    def _fetch(self, arguments: Mapping[str, Any]) -> Iterator[FlowFinding]:
        """What is fetched as it stands in a text carries nothing out; what was put together may."""
        given = [value for name, one in arguments.items() if is_address_argument(name) for value in flat(one)]
        for address in given:
            doubt = _doubt(self._config, self._store, CallArgument("url", address, "to"))
            parts = url_parts(address)
            if not doubt or (parts is not None and parts[0] in hosts_in(self._store.prompt)):
                continue
            if doubt == "unknown":
                why = f"`{one_line(address, 100)}` was put together after an untrusted text: it may carry data out"
                yield FlowFinding("deny" if self._store.prompts else "ask", "fetch", why, (key_of(address),))
            elif (told := self._told_to_go(address)) is not None:
                why = f"a text tells the agent to go to `{one_line(address, 100)}`"
                yield FlowFinding("ask", "fetch", why, (key_of(address),), *told)

    def _told_to_go(self, address: str) -> tuple[str, str] | None:
        for text in self._store.seen(address):
            prompt = self._store.prompt  # which asks for what a place links to, or for what the web has
            wanted = (text.direct and words.LINKS.search(prompt)) or words.BROWSES.search(prompt)
            if wanted or self._config.rule(text.source.partition("#")[0]).links == "open":
                continue
            source, sentence = _quoted(text, address)
            if words.GO_TO.search(sentence):
                return source, sentence
        return None


def _doubt(config: FlowConfig, store: FlowStore, place: CallArgument) -> Doubt:
    """Empty when the user or a record vouches for a value, else what is known about it."""
    value, key = place.value, key_of(place.value)
    if names(store.prompt, store.folded_prompt, value) or key in store.approved or config.is_known(key):
        return ""
    if is_postal(place.name) and _is_postal_known(store, value):
        return ""
    found = store.vouchers.get(key)
    if found is not None and found[0].label == "field":
        return ""
    if found is not None:  # a plain name is looked up in a closed directory; an address reaches anyone
        return "" if kind_of(value) == "name" or _is_named_person(store, value, found[0].people) else "third"
    seen = store.seen(value)
    if not seen:
        return "unknown"
    if any(text.delegated and _is_meant(store, text, place) for text in seen):
        return ""
    return "delegated" if any(text.delegated for text in seen) else "text"


def _is_postal_known(store: FlowStore, value: str) -> bool:
    wanted, said = postal(value), f" {postal(store.prompt)} "
    return f" {wanted} " in said or any(wanted == postal(key) for key in store.vouchers)


def _is_meant(store: FlowStore, text: ReadText, place: CallArgument) -> bool:
    """Whether the user left this detail to a text: a word or a street, or the only address of its kind there."""
    is_word = kind_of(place.value) == "name" and (is_postal(place.name) or not re.search(r"\d", place.value))
    left = words.leaves_to_document("details_in", store.prompt)
    only = (left or text.direct) and _is_the_only_one(store, text, place.value)
    return only or (is_word and left and text.direct)


def _is_the_only_one(store: FlowStore, text: ReadText, value: str) -> bool:
    """`her e-mail is on her page`: the user named the place and the kind, and it holds one such value."""
    kind = kind_of(value)
    pattern = words.KINDS.get(kind)
    if pattern is None or not (pattern.search(store.prompt) or _is_named_person(store, value, "")):
        return False
    return {key_of(one.text) for one in addresses(text.text) if one.kind == kind} == {key_of(value)}


def _is_named_person(store: FlowStore, value: str, people: str) -> bool:
    """Whether an address bears a name that the user said."""
    local = f"{fold(value).partition('@')[0]} {fold(people).replace(fold(value), ' ').partition('@')[0]}"
    common = words.row("holds_address") | words.row("prose") | words.row("generic")
    return any(contains(store.folded_prompt, word) >= 0 for word in set(re.findall(r"[^\W\d_]{3,}", local)) - common)


def _told(store: FlowStore, value: str) -> tuple[str, str]:
    """The first text in which a value stands, and the sentence there."""
    return next((_quoted(text, value) for text in store.seen(value)), ("", ""))


def _hands_over(store: FlowStore) -> bool:
    return words.leaves_to_document("hands_over", store.prompt)


def _arguments(config: FlowConfig, tool: str, arguments: Mapping[str, Any]) -> list[CallArgument]:
    found = []
    for name, value in arguments.items():
        role = config.role(tool, name)
        for path, leaf in leaves(value):
            last = path.rpartition(".")[2].replace("[]", "")
            inner = role if role == "to" or not last else config.role(tool, last)
            values = several(str(leaf)) if inner == "to" else [str(leaf)]
            found += [CallArgument(last or name, one, inner) for one in values]
    return found[:_MOST_VALUES]


def _places(config: FlowConfig, tool: str, arguments: Mapping[str, Any]) -> list[CallArgument]:
    return [one for one in _arguments(config, tool, arguments) if one.role == "to" and one.value.strip()]


def _quoted(text: ReadText, value: str) -> tuple[str, str]:
    """A text's source and the sentence in which a value stands."""
    others = (fold(one.text) for one in addresses(text.text) if key_of(one.text) == key_of(value))
    for spelling in (fold(value), *others):
        at = contains(text.folded, spelling)
        if at >= 0:
            whole = text.text if len(text.text) == len(text.folded) else text.folded
            return text.source, sentence_at(whole, at, len(spelling))
    return text.source, ""


def _speaks_of(sentence: str, value: str) -> bool:
    """A short value (an id such as 13) counts only where it is spoken of as one, and not as a list's number."""
    if len(value) >= 4:
        return True
    before = re.search(r"(\w[\w-]*)?\W{0,3}([#'\"`]?)" + re.escape(fold(value)) + r"(?![\w-])", fold(sentence))
    return before is not None and (bool(before[2]) or before[1] in words.row("ids"))
