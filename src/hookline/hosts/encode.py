"""A reply becomes the host's own words; what a host cannot say is refused in the words it has. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from hookline.events import Event, spec_of
from hookline.hosts.decode import native_input, original
from hookline.hosts.host import NO_WORDS, Exit, Host, Plain, Response, Template, Words
from hookline.hosts.shapes import TEXT, VALUE
from hookline.replies import Decision, Reply

MOST_BYTES = 500_000
"""What an answer may have at most: every host that was measured reads one of that length whole.

Grok and Qwen Code drop one of more than a MiB without a word and run the tool.
"""

_LONGEST = 20_000
"""Characters that are left of a text in an answer that is too long; escaped, they may be six times as many bytes."""


def readable(text: str) -> str:
    """A text that every host can be told: halves of characters, as in file names that are not UTF-8, are marked."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def cut(text: str) -> str:
    """The beginning of a text, and how much of it is missing."""
    text = readable(text)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text) - _LONGEST:,} more characters)"


def legible(reply: Reply) -> Reply:
    """The reply with texts that can be written."""
    return _mapped(reply, reasons=tuple(map(readable, reply.reasons)), context=tuple(map(readable, reply.context)),
                   messages=tuple(map(readable, reply.messages)))  # fmt: skip


def shortened(reply: Reply) -> Reply:
    """The reply with every text cut; a new input stays as it is, for a part of a call is another call."""
    return _mapped(
        reply, reasons=_one(reply.reasons), context=_one(reply.context), messages=_one(reply.messages),
        keep_going_reasons=_one(reply.keep_going_reasons), output=_shorter(reply.output),
        stop_reason=None if reply.stop_reason is None else cut(reply.stop_reason),
    )  # fmt: skip


def _one(texts: tuple[str, ...]) -> tuple[str, ...]:
    return (cut("\n".join(texts)),) if texts else ()


def _shorter(output: Any) -> Any:
    """An output whose texts are cut; one with very many parts becomes a text."""
    made = _cut_inside(output)
    if made is msgspec.UNSET or len(msgspec.json.encode(made)) <= MOST_BYTES // 2:
        return made
    return cut(msgspec.json.encode(output).decode())


def _cut_inside(value: Any) -> Any:
    if isinstance(value, str):
        return cut(value)
    if isinstance(value, Mapping):
        return {name: _cut_inside(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_cut_inside(inner) for inner in value]
    return value


def _mapped(reply: Reply, **fields: Any) -> Reply:
    return msgspec.structs.replace(reply, **fields)


_UNSAID = "a hook denied this"  # several hosts let a call pass whose refusal has no reason
_TOO_LONG = "a hook changed this into something too long for {} to take; it fails closed"


def encode(host: Host, reply: Reply, event: Event) -> Response:
    """The reply in the host's words.

    On a gate, whatever the host has no words for is a deny: a question that no one can be asked, a rewritten input that
    would not be used, a stop. What runs is what was judged. An answer that is too long for a host is cut, as some
    hosts drop it otherwise.
    """
    response = _encode(host, legible(reply), event)
    if _fits(response):
        return response
    response = _encode(host, shortened(reply), event)
    return response if _fits(response) else refuse(host, _TOO_LONG.format(host.title), event.event_name, event)


def _fits(response: Response) -> bool:
    return len(response.stdout) + len(response.stderr) <= MOST_BYTES


def _encode(host: Host, reply: Reply, event: Event) -> Response:
    words = host.says.get(event.event_name, NO_WORDS)
    reason = refusal(host, reply, event)
    if reason is not None:
        return _respond(host, reply, event, [*_stopping(reply, words), (words["deny"], reason)])
    if host.body is not None:
        return _written(host.body(_native_reply(host, reply, event, words), event))
    return _respond(host, reply, event, list(_parts(host, reply, event, words)), lost(host, reply, event))


def _native_reply(host: Host, reply: Reply, event: Event, words: Words) -> Reply:
    if reply.output is msgspec.UNSET:
        return reply
    return msgspec.structs.replace(reply, output=native_output(event, reply.output, words.get("replace")))


def refuse(host: Host, reason: str, event_name: str = "", event: Event | None = None) -> Response:
    """The host's own deny, for when something went wrong on our side; an unknown event is denied like a tool call."""
    words, reason = host.says.get(event_name, NO_WORDS), cut(reason)
    if "deny" not in words and event_name in host.events.values():
        return Response(stderr=reason.encode())  # nothing to prevent there
    deny = words.get("deny") or host.says["PreToolUse"]["deny"]
    return _respond(host, Reply(), event, [(deny, reason or _UNSAID)])


def refusal(host: Host, reply: Reply, event: Event) -> str | None:
    """Why the event is denied, if it is; `None` also where the host offers no way to deny it."""
    words = host.says.get(event.event_name, NO_WORDS)
    if "deny" not in words:
        return None
    if reply.decision is Decision.DENY:
        return reply.reason or _UNSAID
    if not spec_of(event).gate:
        return None
    return _on_a_gate(host, reply, event, words)


def _on_a_gate(host: Host, reply: Reply, event: Event, words: Words) -> str | None:
    if reply.stop:
        return reply.stop_reason or reply.reason or "a hook stopped the agent"
    if reply.decision is Decision.DEFER and "defer" not in words:
        return f"{reply.reason or 'a hook wants to leave this for later'} ({host.title} cannot defer a call)"
    if reply.decision is Decision.ASK and "ask" not in words:
        return f"{reply.reason or 'a person has to approve this'} ({host.title} has no way to ask)"
    if reply.input is not None and "rewrite" not in words:
        return f"a hook changed this call and {host.title} cannot: call {_shown(host, reply.input, event)} instead"
    return None


def _shown(host: Host, changed: Mapping[str, Any], event: Event) -> str:
    tool = original(event).get("tool_name") or event.tool_name or "the tool"
    return f"`{tool}` with `{msgspec.json.encode(native_input(host, event, changed)).decode()}`"


Part = tuple[Template, Any]


def _parts(host: Host, reply: Reply, event: Event, words: Words) -> Iterable[Part]:
    """Everything the reply says that the host has words for."""
    said: dict[str, Any] = {
        "allow": reply.reason if reply.decision is Decision.ALLOW else None,
        "ask": reply.reason or "a person has to approve this" if reply.decision is Decision.ASK else None,
        "defer": reply.reason if reply.decision is Decision.DEFER else None,
        "rewrite": None if reply.input is None else native_input(host, event, reply.input),
        "context": "\n".join(reply.context) or None,
        "replace": None if reply.output is msgspec.UNSET else native_output(event, reply.output, words.get("replace")),
        "stop": _stop_reason(reply),
        "keep_going": _sent_back(reply),
    }
    return [(words[kind], value) for kind, value in said.items() if value is not None and kind in words]


def _stop_reason(reply: Reply) -> str | None:
    return (reply.stop_reason or "a hook stopped the agent") if reply.stop else None


def _sent_back(reply: Reply) -> str | None:
    if not reply.keep_going or reply.stop:
        return None
    return "\n".join(reply.keep_going_reasons) or "a hook sent the agent back to work"


def _stopping(reply: Reply, words: Words) -> list[Part]:
    """A stop beside a deny, where the host knows how to end the turn as well."""
    reason = _stop_reason(reply)
    return [(words["stop"], reason)] if reason and isinstance(words.get("stop"), Mapping) else []


def lost(host: Host, reply: Reply, event: Event) -> list[str]:
    """What the reply says and the host has no words for."""
    words = host.says.get(event.event_name, NO_WORDS)
    wanted = {
        "deny": reply.decision is Decision.DENY,
        "context": bool(reply.context),
        "replace": reply.output is not msgspec.UNSET,
        "stop": reply.stop and not spec_of(event).gate,
        "keep_going": reply.keep_going and not reply.stop,
    }
    return [kind for kind, said in wanted.items() if said and kind not in words]


def native_output(event: Event, output: Any, template: Template | None) -> Any:
    """A replaced output as the host's tool would have given it."""
    if _wants_text(template):
        return output if isinstance(output, str) else msgspec.json.encode(output).decode()
    response = getattr(event, "tool_response", None)
    if isinstance(output, str) and isinstance(response, Mapping):
        return _in_shape(response, output)
    return output


def _wants_text(template: Any) -> bool:
    if isinstance(template, Mapping):
        return any(_wants_text(value) for value in template.values())
    return template == TEXT or isinstance(template, Exit | Plain)


_TEXTS = ("stdout", "content", "output", "result", "text", "llmContent")


def _in_shape(response: Mapping[str, Any], text: str) -> Any:
    """The text in the place of the old one, and nothing else of the old result that could repeat it."""
    field = next((name for name in _TEXTS if isinstance(response.get(name), str)), None)
    if field is None:
        return text
    kept = {name: value for name, value in response.items() if not isinstance(value, str | list | dict)}
    return {**{name: "" for name, value in response.items() if isinstance(value, str)}, **kept, field: text}


# -- bytes --------------------------------------------------------------------------------------------------------


def _respond(host: Host, reply: Reply, event: Event | None, parts: list[Part], missing: Iterable[str] = ()) -> Response:
    body: dict[str, Any] = {}
    for template, value in parts:
        if isinstance(template, Exit):
            return Response(stderr=str(value).encode(), exit_code=template.code)
        if isinstance(template, Plain):
            return Response(stdout=str(value).encode())
        _merge(body, template(value, event) if callable(template) else _filled(template, value))
    if reply.messages and host.message:
        _merge(body, _filled(host.message, "\n".join(reply.messages)))
    note = "".join(f"hookline: {host.title} has no way to do `{kind}` here\n" for kind in missing)
    return _written(body, note)


def _written(body: Mapping[str, Any], note: str = "") -> Response:
    return Response(stdout=msgspec.json.encode(body) if body else b"", stderr=note.encode())


def _filled(template: Any, value: Any) -> Any:
    if isinstance(template, Mapping):
        return {key: _filled(inner, value) for key, inner in template.items()}
    return value if template in (TEXT, VALUE) else template


def _merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value
