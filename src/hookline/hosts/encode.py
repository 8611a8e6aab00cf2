"""A reply becomes the host's own words; what a host cannot say is refused in the words it has. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from shlex import quote
from typing import Any

import msgspec

from hookline.core.placeholders import in_every_text
from hookline.events import Event, spec_of
from hookline.hosts.decode import native_input, original
from hookline.hosts.host import EXIT, NO_WORDS, PLAIN, TEXT, Host, Response, Template, Words, fill
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


def shortened(reply: Reply) -> Reply:
    """The reply with every text cut; a new input stays as it is, for a part of a call is another call."""
    names = ("reasons", "context", "messages", "keep_going_reasons")
    texts = {name: (cut("\n".join(said)),) for name in names if (said := getattr(reply, name))}
    output = in_every_text(reply.output, cut)
    if output is not msgspec.UNSET and len(msgspec.json.encode(output)) > MOST_BYTES // 2:  # it has very many parts
        output = cut(msgspec.json.encode(reply.output).decode())
    why = None if reply.stop_reason is None else cut(reply.stop_reason)
    return msgspec.structs.replace(reply, **texts, output=output, stop_reason=why)


_ASKS = "a person has to approve this"
_STOPPED = "a hook stopped the agent"
_UNSAID = "a hook denied this"  # several hosts let a call pass whose refusal has no reason
_TOO_LONG = "a hook changed this into something too long for {} to take; it fails closed"


def encode(host: Host, reply: Reply, event: Event) -> Response:
    """The reply in the host's words.

    On a gate, whatever the host has no words for is a deny: a question that no one can be asked, a rewritten input that
    would not be used, a stop. What runs is what was judged. An answer that is too long for a host is cut, as some
    hosts drop it otherwise.
    """
    texts = {name: tuple(map(readable, getattr(reply, name))) for name in ("reasons", "context", "messages")}
    for said in (msgspec.structs.replace(reply, **texts), shortened(reply)):
        response = _encode(host, said, event)
        if len(response.stdout) + len(response.stderr) <= MOST_BYTES:
            return response
    return refuse(host, _TOO_LONG.format(host.title), event.event_name, event)


def _encode(host: Host, reply: Reply, event: Event) -> Response:
    words = host.says.get(event.event_name, NO_WORDS)
    reason = refusal(host, reply, event)
    if reply.output is not msgspec.UNSET:
        reply = msgspec.structs.replace(reply, output=native_output(event, reply.output, words.get("replace")))
    if reason is not None:  # with a stop beside it, where the host knows how to end the turn as well
        ends = reply.stop and isinstance(words.get("stop"), Mapping)
        stop = [(words["stop"], reply.stop_reason or _STOPPED)] if ends else []
        return _respond(host, reply, event, [*stop, _denied(words, reason, event)])
    if host.body is not None:
        return _written(host.body(reply, event))
    said = _said(host, reply, event)
    parts = [(words[kind], value) for kind, value in said.items() if kind in words]
    missing = [kind for kind in said if kind in _HEARD and kind not in words]
    return _respond(host, reply, event, parts, missing)


def refuse(host: Host, reason: str, event_name: str = "", event: Event | None = None) -> Response:
    """The host's own deny, for when something went wrong on our side; an unknown event is denied like a tool call."""
    words, reason = host.says.get(event_name, NO_WORDS), cut(reason)
    if "deny" not in words and event_name in host.events.values():
        return Response(stderr=reason.encode())  # nothing to prevent there
    denying = words if "deny" in words else host.says["PreToolUse"]
    return _respond(host, Reply(), event, [_denied(denying, reason or _UNSAID, event)])


def _denied(words: Words, reason: str, event: Event | None) -> Part:
    """A deny; where that of a command is another command, its text is a word of a shell."""
    if event is not None and event.subject == "Bash" and "deny command" in words:
        return words["deny command"], quote(f"denied: {reason}")
    return words["deny"], reason


def refusal(host: Host, reply: Reply, event: Event) -> str | None:
    """Why the event is denied, if it is; `None` also where the host offers no way to deny it."""
    words = host.says.get(event.event_name, NO_WORDS)
    if "deny" not in words:
        return None
    if reply.decision is Decision.DENY:
        return reply.reason or _UNSAID
    if not spec_of(event).gate:
        return None
    if reply.stop:
        return reply.stop_reason or reply.reason or _STOPPED
    if reply.decision is Decision.DEFER and "defer" not in words:
        return f"{reply.reason or 'a hook wants to leave this for later'} ({host.title} cannot defer a call)"
    if reply.decision is Decision.ASK and "ask" not in words:
        return f"{reply.reason or _ASKS} ({host.title} has no way to ask)"
    if reply.input is not None and "rewrite" not in words:
        tool = original(event).get("tool_name") or event.tool_name or "the tool"
        given = msgspec.json.encode(native_input(host, event, reply.input)).decode()
        return f"a hook changed this call and {host.title} cannot: call `{tool}` with `{given}` instead"
    return None


Part = tuple[Template, Any]
_HEARD = ("deny", "context", "replace", "stop", "keep_going")  # what must not get lost without a word


def _said(host: Host, reply: Reply, event: Event) -> dict[str, Any]:
    """Everything the reply says, by its kind; a stop on a gate was a deny, if the host has one."""
    stops = reply.stop and ("stop" in host.says.get(event.event_name, NO_WORDS) or not spec_of(event).gate)
    said: dict[str, Any] = {
        "deny": reply.reason if reply.decision is Decision.DENY else None,
        "allow": reply.reason if reply.decision is Decision.ALLOW else None,
        "ask": reply.reason or _ASKS if reply.decision is Decision.ASK else None,
        "defer": reply.reason if reply.decision is Decision.DEFER else None,
        "rewrite": None if reply.input is None else native_input(host, event, reply.input),
        "context": "\n".join(reply.context) or None,
        "replace": None if reply.output is msgspec.UNSET else reply.output,
        "stop": (reply.stop_reason or _STOPPED) if stops else None,
    }
    if reply.keep_going and not reply.stop:
        said["keep_going"] = "\n".join(reply.keep_going_reasons) or "a hook sent the agent back to work"
    return {kind: value for kind, value in said.items() if value is not None}


_TEXTS = ("stdout", "content", "output", "result", "text", "llmContent")


def native_output(event: Event, output: Any, template: Template | None) -> Any:
    """A replaced output as the host's tool would have given it."""
    if _wants_text(template):
        return output if isinstance(output, str) else msgspec.json.encode(output).decode()
    response = getattr(event, "tool_response", None)
    if not isinstance(output, str) or not isinstance(response, Mapping):
        return output
    field = next((name for name in _TEXTS if isinstance(response.get(name), str)), None)
    if field is None:
        return output
    # the text in the place of the old one, and nothing else of the old result that could repeat it
    kept = {name: value for name, value in response.items() if not isinstance(value, str | list | dict)}
    return {**{name: "" for name, value in response.items() if isinstance(value, str)}, **kept, field: output}


def _wants_text(template: Any) -> bool:
    if isinstance(template, Mapping):
        return any(_wants_text(value) for value in template.values())
    return template in (TEXT, EXIT, PLAIN)


def _respond(host: Host, reply: Reply, event: Event | None, parts: list[Part], missing: Iterable[str] = ()) -> Response:
    body: dict[str, Any] = {}
    for template, value in parts:
        if template == EXIT:
            return Response(stderr=str(value).encode(), exit_code=2)
        if template == PLAIN:
            return Response(stdout=str(value).encode())
        _merge(body, fill(template, text=value, value=value, prompt=getattr(event, "prompt", "")))
    if reply.messages and host.message:
        _merge(body, fill(host.message, text="\n".join(reply.messages)))
    note = "".join(f"hookline: {host.title} has no way to do `{kind}` here\n" for kind in missing)
    return _written(body, note)


def _written(body: Mapping[str, Any], note: str = "") -> Response:
    return Response(stdout=msgspec.json.encode(body) if body else b"", stderr=note.encode())


def _merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value
