"""The rules: who vouches for where a call goes, and who asked for it. A finding asks or denies, and says why.

Nothing is judged until a text that the user did not write was read: before that no such text can have talked the agent
into anything.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from hookline.display import one_line
from hookline.guards.flow import values, words
from hookline.guards.flow.coding import CodeFlow, FlowFinding, Level
from hookline.guards.flow.config import FlowConfig, Role, is_address_argument, is_postal
from hookline.guards.flow.store import FlowRow, FlowStore, call_hash
from hookline.guards.flow.values import addresses, fold, key_of, kind_of

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

    @property
    def shown(self) -> str:
        return f"`{one_line(self.value, 100)}` ({self.name})"


class FlowJudge:
    """Judges the calls of one session."""

    def __init__(self, config: FlowConfig, store: FlowStore) -> None:
        self._config, self._store = config, store

    def judge(self, tool: str, arguments: Mapping[str, Any]) -> FlowFinding | None:
        """What speaks against a call, the worst; a question is kept, so that its answer can be recognized."""
        if not self._store.untrusted:
            self._store.put(FlowRow("called"))
            return None
        given = self._arguments(tool, arguments)
        places = [one for one in given if one.role == "to" and one.value.strip()]
        findings = list(self._findings(tool, arguments, given, places))
        worst = self._worst(findings)
        if worst is not None or (self._config.is_effect(tool) and places):
            row = FlowRow("judged", tool=tool, arguments=sorted(arguments), call=call_hash(tool, arguments))
            row.values = [(one.name, one.value[:200], *self._origin(one)) for one in places]
            if worst is not None:
                row.level, row.rule, row.source, row.text = worst.level, worst.rule, worst.source, worst.reason
                row.keys = [key for one in findings for key in one.keys]
            self._store.put(row)
        return worst

    def _arguments(self, tool: str, arguments: Mapping[str, Any]) -> list[CallArgument]:
        found = []
        for name, value in arguments.items():
            role = self._config.role(tool, name)
            for path, leaf in values.leaves(value):
                last = path.rpartition(".")[2].replace("[]", "")
                inner = role if role == "to" or not last else self._config.role(tool, last)
                several = values.several(str(leaf)) if inner == "to" else [str(leaf)]
                found += [CallArgument(last or name, one, inner) for one in several]
        return found[:_MOST_VALUES]

    def _worst(self, findings: list[FlowFinding]) -> FlowFinding | None:
        if not findings:
            return None
        denied = next((one for one in findings if one.level == "deny"), None)
        worst = denied or findings[0]
        told = next((one for one in findings if one.sentence), worst)  # whichever rule decides, the sentence is shown
        worst = worst if worst.sentence else worst._replace(source=told.source, sentence=told.sentence)
        doubts = {one.rule for one in findings}
        if denied is None and {"destination", "intent"} <= doubts and not self._hands_over():
            return worst._replace(level="deny", why=f"{worst.why}; nor did you ask for such an action")
        keys = {key for one in findings for key in one.keys}
        return None if denied is None and keys and keys <= self._store.approved else worst

    def _origin(self, place: CallArgument) -> tuple[str, str]:
        """Where a destination comes from, for people to see."""
        if doubt := self._doubt(place):
            return doubt, next((text.source for text in self._store.seen(place.value)), "")
        voucher = self._store.vouchers.get(key_of(place.value))
        if voucher is None or self._store.names(place.value):
            return "user", "the prompt"
        return "field", f"{voucher[1]}{voucher[0].path}"

    def _findings(
        self, tool: str, arguments: Mapping[str, Any], given: list[CallArgument], places: list[CallArgument]
    ) -> Iterator[FlowFinding]:
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
        doubts = [found for one in places for found in self._destination(one)]
        yield from doubts
        if not code.is_about(tool, arguments):
            yield from self._unasked(tool, given, doubted=bool(doubts))

    def _unasked(self, tool: str, given: list[CallArgument], *, doubted: bool) -> Iterator[FlowFinding]:
        """What the user did not ask for, and what goes out with it."""
        verbs = self._config.verbs(tool)
        yield from (found for one in given if verbs & _TOUCHES for found in self._touched(one))
        # a text that the user named may say what to do, but nothing about money, removal or a secret
        gentle = bool(verbs) and verbs <= _GENTLE and not set(words.tokens(tool)) & words.row("money")
        handed_over = not doubted and gentle and self._hands_over() and any(text.direct for text in self._store.texts)
        echo = self._echo(tool, verbs, given)
        if self._config.intent and self._store.prompts and words.languages(self._store.prompt):
            yield from self._intent(tool, verbs, given, echo, handed_over=handed_over)
        if echo and not (handed_over and echo.level == "ask"):
            yield echo
        if verbs & _SENDS or any(one.role == "to" for one in given):
            yield from (found for one in given if one.role == "content" for found in self._content(one))

    def _doubt(self, place: CallArgument) -> Doubt:
        """Empty when the user or a record vouches for a value, else what is known about it."""
        store, value, key = self._store, place.value, key_of(place.value)
        if store.names(value) or key in store.approved or self._config.is_known(key):
            return ""
        if is_postal(place.name):
            wanted = values.postal(value)
            if f" {wanted} " in f" {values.postal(store.prompt)} " or wanted in map(values.postal, store.vouchers):
                return ""
        if (found := store.vouchers.get(key)) is not None:
            # a plain name is looked up in a closed directory; an address reaches anyone
            vouched = found[0].label == "field" or kind_of(value) == "name"
            return "" if vouched or self._names_person(value, found[0].people) else "third"
        seen = store.seen(value)
        if not seen:
            return "unknown"
        delegated = [text for text in seen if text.delegated]
        if any(self._is_meant(text, place) for text in delegated):
            return ""
        return "delegated" if delegated else "text"

    def _is_meant(self, text: FlowRow, place: CallArgument) -> bool:
        """Whether the user left this detail to a text: a word or a street, or the only address of its kind there."""
        kind, left = kind_of(place.value), words.leaves_to_document("details_in", self._store.prompt)
        is_word = kind == "name" and (is_postal(place.name) or not re.search(r"\d", place.value))
        if is_word and left and text.direct:
            return True
        # `her e-mail is on her page`: the user named the place and the kind, and it holds one such value
        pattern = words.KINDS.get(kind)
        if pattern is None or not (left or text.direct):
            return False
        if not (pattern.search(self._store.prompt) or self._names_person(place.value, "")):
            return False
        return {key_of(one.text) for one in addresses(text.text) if one.kind == kind} == {key_of(place.value)}

    def _names_person(self, value: str, people: str) -> bool:
        """Whether an address bears a name that the user said."""
        local = f"{fold(value).partition('@')[0]} {fold(people).replace(fold(value), ' ').partition('@')[0]}"
        common = words.row("holds_address") | words.row("prose") | words.row("generic")
        return any(map(self._store.says, set(re.findall(r"[^\W\d_]{3,}", local)) - common))

    def _hands_over(self) -> bool:
        return words.leaves_to_document("hands_over", self._store.prompt)

    def _destination(self, place: CallArgument) -> Iterator[FlowFinding]:
        doubt = self._doubt(place)
        if not doubt:
            return
        source, sentence = self._told(place.value)
        # a plain name is looked up in a closed directory; a street or the number of an account in a text reaches anyone
        is_number = doubt == "text" and re.search(r"\d{6}", place.value)
        is_name = kind_of(place.value) == "name" and not is_postal(place.name) and not is_number
        is_open = doubt == "text" if not self._store.prompts else doubt in ("text", "unknown")
        level: Level = "deny" if is_open and not is_name and self._store.texts else "ask"
        why = f"{place.shown} comes from the text of {source}, not from you"
        if values.mixes_alphabets(place.value):
            level, why = "deny", f"{place.shown} mixes alphabets, and you did not name it"
        elif doubt == "third":
            why = f"{place.shown} is known only from a field that others fill in"
        elif doubt == "unknown":
            why = f"{place.shown} was named neither by you nor by a record that was read"
        yield FlowFinding(level, "destination", why, (key_of(place.value),), source, sentence)

    def _touched(self, one: CallArgument) -> Iterator[FlowFinding]:
        """What is changed or removed must not be known from a text alone."""
        is_id = one.role == "target" and words.tokens(one.name)[-1:] in (("id",), ("ids",), ("number",))
        if is_id and self._doubt(one) == "text":
            told = self._told(one.value)
            why = f"{one.shown} comes from the text of {told[0]}, not from you"
            yield FlowFinding("ask", "target", why, (key_of(one.value),), *told)

    def _intent(
        self, tool: str, verbs: Verbs, given: list[CallArgument], echo: FlowFinding | None, *, handed_over: bool
    ) -> Iterator[FlowFinding]:
        prompt, why = self._store.prompt, ""
        level: Level = "deny" if echo else "ask"
        if (word := words.unspoken_secret(tool, self._store.folded_prompt)) is not None:
            why = f"you did not speak of a {word}"
        elif verbs and not handed_over and not words.asks_for(prompt, verbs):
            level = "ask" if self._hands_over() else level
            why = f"you did not ask to {'/'.join(sorted(verbs))} anything ({tool})"
        elif not handed_over and words.thing_missing(tool, verbs, prompt):
            why = f"you did not speak of what `{tool}` is about"
        if why:
            told = (echo.source, echo.sentence) if echo else ("", "")
            yield FlowFinding(level, "intent", why, (f"intent:{tool}",), *told)
        for one in given if "reserve" in verbs else ():
            known = key_of(one.value) in self._store.vouchers  # a birthday on file, a flight that was found
            if one.role != "to" and not known and not values.day_named(self._store.folded_prompt, one.value):
                why = f"you did not name the day {one.value} ({one.name})"
                yield FlowFinding("ask", "intent", why, (f"day:{one.value}",))

    def _echo(self, tool: str, verbs: Verbs, given: list[CallArgument]) -> FlowFinding | None:
        """Whether a text that was read tells the agent to make exactly this call. A paraphrase gets past it."""
        found: FlowFinding | None = None
        for _, value, role in given:
            named = self._store.names(value)
            wanted = 20 <= len(value) <= 300 if role == "content" else not (kind_of(value) == "name" and named)
            for text in self._store.seen(value) if wanted and not self._config.is_known(key_of(value)) else ():
                sentence = _quoted(text, value)[1]
                told = words.asks_for(sentence, verbs) if verbs else words.names_tool(sentence, tool)
                if told and _speaks_of(sentence, value):
                    level: Level = "ask" if text.delegated or named else "deny"
                    why = f"the text of {text.source} tells the agent to do this"
                    found = FlowFinding(level, "echo", why, (f"echo:{fold(value)}",), text.source, sentence)
                    if level == "deny":
                        return found
        return found

    def _content(self, one: CallArgument) -> Iterator[FlowFinding]:
        for address in addresses(one.value):
            doubt = self._doubt(CallArgument(one.name, address.text, "content"))
            if doubt:
                told = self._told(address.text)
                asked = words.LINKS.search(self._store.prompt) or not self._store.prompts
                origin = f"comes from {told[0]}" if told[0] else "was not named by you or by a record"
                why = f"`{one_line(address.text, 100)}` in {one.name} {origin}"
                level: Level = "ask" if asked or doubt in ("delegated", "unknown") else "deny"
                yield FlowFinding(level, "content", why, (key_of(address.text),), *told)

    def _fetch(self, arguments: Mapping[str, Any]) -> Iterator[FlowFinding]:
        """What is fetched as it stands in a text carries nothing out; what was put together may."""
        given = [value for name, one in arguments.items() if is_address_argument(name) for value in values.flat(one)]
        for address in given:
            doubt = self._doubt(CallArgument("url", address, "to"))
            parts, shown = values.url_parts(address), f"`{one_line(address, 100)}`"
            if not doubt or (parts is not None and parts[0] in values.hosts_in(self._store.prompt)):
                continue
            if doubt == "unknown":
                why = f"{shown} was put together after an untrusted text: it may carry data out"
                yield FlowFinding("deny" if self._store.prompts else "ask", "fetch", why, (key_of(address),))
            elif (told := self._told_to_go(address)) is not None:
                yield FlowFinding("ask", "fetch", f"a text tells the agent to go to {shown}", (key_of(address),), *told)

    def _told_to_go(self, address: str) -> tuple[str, str] | None:
        prompt = self._store.prompt  # which asks for what a place links to, or for what the web has
        for text in self._store.seen(address):
            wanted = (text.direct and words.LINKS.search(prompt)) or words.BROWSES.search(prompt)
            opened = self._config.rule(text.source.partition("#")[0]).links == "open"
            quoted = _quoted(text, address)
            if not wanted and not opened and words.GO_TO.search(quoted[1]):
                return quoted
        return None

    def _told(self, value: str) -> tuple[str, str]:
        """The first text in which a value stands, and the sentence there."""
        return next((_quoted(text, value) for text in self._store.seen(value)), ("", ""))


def _quoted(text: FlowRow, value: str) -> tuple[str, str]:
    """A text's source and the sentence in which a value stands."""
    others = (fold(one.text) for one in addresses(text.text) if key_of(one.text) == key_of(value))
    for spelling in (fold(value), *others):
        at = values.contains(text.folded, spelling)
        if at >= 0:
            whole = text.text if len(text.text) == len(text.folded) else text.folded
            return text.source, values.sentence_at(whole, at, len(spelling))
    return text.source, ""


def _speaks_of(sentence: str, value: str) -> bool:
    """A short value (an id such as 13) counts only where it is spoken of as one, and not as a list's number."""
    if len(value) >= 4:
        return True
    before = re.search(r"(\w[\w-]*)?\W{0,3}([#'\"`]?)" + re.escape(fold(value)) + r"(?![\w-])", fold(sentence))
    return before is not None and (bool(before[2]) or before[1] in words.row("ids"))
