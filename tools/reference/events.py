"""The page of events, from the catalogue and the classes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from inspect import get_annotations

from hookline.core.wire.output_types import fields_of, no
from hookline.core.wire.schema import schema
from hookline.events import CATALOG, OWN_EVENTS, Event, EventSpec
from tools.reference.markdown import code, codes, default, kind, table, types_of
from tools.reference.words import COMMON, FIELDS, ON_EVENT

INTRO = """# Events

An event is something an agent is about to do, or has just done. Each is a frozen class in `hookline.events`, and each
has a name on the wire (`HookEvent` is an enum of the names). A **gate** comes before something that can still be
prevented: there a hook that fails counts as a deny
([why](../explanation/order-and-failure.md#when-a-hook-fails)). The **subject** is what a matcher looks at; on an event
without one a matcher is ignored.

Every hook may pass, allow, tell the user something (`message`) and stop the agent (`stop`). The table says what else it
may decide; the sections say what else it may answer. An answer that does not fit its event is a failure of the hook,
never ignored.

The same as JSON Schema, events and answers: [schema.json](schema.json).

"""


OWN = """## Events of Hookline's own

No CLI sends these, and settings files do not take them. Hookline's agent fires them if a hook in Python listens, and
[AGENT-HOOKS](../how-to/agent-hooks.md) hosts have interception points for them. All are gates.

"""


def page() -> str:
    """All events: a table, what they share, then one section each."""
    rows = [
        (f"[{name}](#{name.lower()})", "gate" if spec.gate else "", _subject(spec), _decisions(spec), spec.about)
        for name, spec in CATALOG.items()
    ]
    overview = table(("event", "", "matcher looks at", "may also decide", "what happened"), rows)
    shared = _fields(Event, Event.__struct_fields__, COMMON.__getitem__)
    sections = "\n".join(_section(spec) for spec in CATALOG.values())
    own = "\n".join(_section(spec) for spec in OWN_EVENTS.values())
    return f"{INTRO}{overview}\n## What every event has\n\n{shared}\n{sections}\n{OWN}{own}"


def schema_page() -> str:
    """The JSON Schema of every event and every answer."""
    return json.dumps(schema(), indent=1) + "\n"


def _subject(spec: EventSpec) -> str:
    return code(spec.subject) if spec.subject else ""


def _decisions(spec: EventSpec) -> str:
    words = [word for word in ("ask", "defer", "deny") if word in spec.decisions]
    return codes([*words, *(["keep_going"] if "keep_going" in spec.fields else [])])


def _default(cls: type[Event], name: str) -> str:
    text = default(cls, name)
    return code(text) if text not in ("", "…") else "now" if name == "timestamp" else ""


def _fields(cls: type[Event], names: Iterable[str], words: Callable[[str], str]) -> str:
    types = types_of(cls)
    rows = [(code(name), kind(types[name]), _default(cls, name), words(name)) for name in names]
    return table(("field", "type", "default", "means"), rows)


def own_fields(spec: EventSpec) -> list[str]:
    """The fields that not every event has, and those that mean something of their own here."""
    own = [base for base in spec.cls.__mro__ if base not in Event.__mro__]
    declared = {name for base in own for name in get_annotations(base)}
    return [name for name in spec.cls.__struct_fields__ if name in declared]


def _section(spec: EventSpec) -> str:
    fields = _fields(spec.cls, own_fields(spec), lambda name: ON_EVENT.get((spec.name, name)) or FIELDS[name])
    return f"## {spec.name}\n\n{spec.about}\n\n{fields}\n{_answers(spec)}"


def _answers(spec: EventSpec) -> str:
    subject = f"a matcher looks at {code(spec.subject)}" if spec.subject else "a matcher is ignored"
    decisions = codes(word for word in ("pass", "allow", "ask", "defer", "deny") if word in spec.decisions)
    lines = [
        f"- {'A gate' if spec.gate else 'No gate'}; {subject}.",
        f"- A hook may decide {decisions}.",
        f"- It may also answer {codes(sorted(spec.fields))}.",
        f"- On the wire, in `hookSpecificOutput`: {codes(fields_of(spec.name), 'nothing')}.",
        f"- A command that ends with exit code 2 {_two(spec)}.",
    ]
    if spec.stdout == "context":
        lines.append("- Plain text that a command prints is told to the model.")
    return "\n".join(lines) + "\n"


def _two(spec: EventSpec) -> str:
    reply = no(spec.name, "")
    if reply is None:
        return "has failed: nothing can be said no to here"
    return "sends the agent back to work" if reply.keep_going else "denies"
