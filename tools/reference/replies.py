"""The page of replies: decisions, constructors, every field, and how two become one."""

from __future__ import annotations

import inspect
import re

import hookline.replies as module
from hookline.events import CATALOG
from hookline.replies import MERGES, Decision, EventFields, Reply
from tools.reference.markdown import code, default, first_line, kind, table, types_of

CONSTRUCTORS = (
    "allow", "ask", "defer", "deny", "rewrite", "replace_output", "context", "message", "stop", "keep_going",
    "background", "specific",
)  # fmt: skip

INTRO = """# Replies

A hook answers `None` (nothing to say), a `Reply`, or a mapping in the wire format, which is checked: its type is
`HookAnswer`. Replies are made
by the functions below and joined with `|`: `deny("no") | message("asked the on-call person")`.

## Decisions

The strictest of several wins, whatever the order. From the mildest to the strictest:

"""
_MEANING = {
    Decision.PASS: "nothing to say",
    Decision.ALLOW: "go ahead without asking anybody",
    Decision.ASK: "a person has to say yes",
    Decision.DEFER: "end the run, leave the call to whoever resumes it",
    Decision.DENY: "no",
}


def page() -> str:
    """The whole page."""
    decisions = table(("decision", "means"), [(code(one), _MEANING[one]) for one in Decision])
    rows = [(code(_call(name)), first_line(getattr(module, name)), _where(name)) for name in CONSTRUCTORS]
    constructors = table(("write", "to say", "on"), rows)
    return (
        f"{INTRO}{decisions}\n## Constructors\n\nAll are names of `hookline`.\n\n{constructors}\n"
        f"## Fields of a reply\n\n{_fields(Reply)}\n## Fields that only single events understand\n\n"
        'Written as `specific(session_title="…")`, found in `reply.specific`.\n\n' + _specific()
    )


def _call(name: str) -> str:
    signature = inspect.signature(getattr(module, name))
    parameters = [str(one.replace(annotation=inspect.Parameter.empty)) for one in signature.parameters.values()]
    return f"{name}({', '.join(parameters)})"


_FIELD_OF = {"rewrite": "input", "replace_output": "output", "context": "context", "keep_going": "keep_going"}


def _where(name: str) -> str:
    if name in ("ask", "defer", "deny"):
        return _events([event for event, spec in CATALOG.items() if name in spec.decisions])
    if name in _FIELD_OF:
        return _events([event for event, spec in CATALOG.items() if _FIELD_OF[name] in spec.fields])
    return "see below" if name == "specific" else "every event"


def _events(names: list[str]) -> str:
    return ", ".join(f"[{name}](events.md#{name.lower()})" for name in names)


def joined(name: str) -> str:
    """How a field of two replies becomes one."""
    return MERGES[name].about


def _means(cls: type[Reply | EventFields]) -> dict[str, str]:
    """What each field means: the comment behind it."""
    return dict(re.findall(r"^    (\w+): .*?  # (.*)$", inspect.getsource(cls), re.MULTILINE))


def _fields(cls: type[Reply | EventFields]) -> str:
    types, means = types_of(cls), _means(cls)
    rows = [
        (code(name), kind(types[name]), code(default(cls, name)), means[name], joined(name))
        for name in cls.__struct_fields__
    ]
    return table(("field", "type", "default", "means", "of two"), rows)


def _specific() -> str:
    types, means = types_of(EventFields), _means(EventFields)
    rows = []
    for name in EventFields.__struct_fields__:
        events = [event for event, spec in CATALOG.items() if name in spec.fields]
        where = "every event" if len(events) == len(CATALOG) else _events(events)
        rows.append((code(name), kind(types[name]), means[name], where, joined(name)))
    return table(("field", "type", "means", "on", "of two"), rows)
