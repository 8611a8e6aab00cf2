"""The pages of the Python API: public names with their signatures and what their docstrings say."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import msgspec

from hookline.core.hooks.declare import Options
from tools.reference.markdown import block, code, default, doc, kind, parameters_of, shown, table, types_of
from tools.reference.words import OPTIONS

INTRO = """# Python

The public names, with their signatures. What is not listed here may change without notice. Events have a page of their
own ([Events](events.md)), so have the functions that make replies ([Replies](replies.md)), the errors
([Errors](errors.md)) and what helps with tests ([Testing](testing.md)).

"""
PARTS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("hookline", "The core: a set of hooks, and what goes in and comes out.",
     ("Hooks", "hook", "Hook", "Inbox", "Verdict", "Outcome", "Context", "Decision", "Reply", "Command", "Http",
      "Prompt", "AgentCheck", "McpTool", "Cedar", "Rego")),
    ("hookline.guards.paths", "Keep an agent inside a folder.", ("stay_inside",)),
    ("hookline.guards.network", "Hosts that may be reached, by name.", ("only", "hosts_in_use")),
    ("hookline.guards.commands", "Commands that may not be run, or the only ones that may.",
     ("block", "only", "containing")),
    ("hookline.guards.secrets", "Credentials: stopped, or taken out.", ("block", "redact")),
    ("hookline.guards.approvals", "Approve safe calls without a prompt.", ("auto",)),
    ("hookline.guards.budget", "A limit on what a session may spend, and how fast.", ("limit", "rate")),
    ("hookline.guards.branches", "Branches that may not be pushed to.", ("protect",)),
    ("hookline.records.audit.log", "The audit log.", ("AuditLog", "AuditFile", "read")),
    ("hookline.records.telemetry", "Counts and latencies, and OpenTelemetry.",
     ("Metrics", "Row", "Latency", "OpenTelemetry")),
    ("hookline.records.replay.compare", "Today's hooks against what was recorded.", ("replay", "Report", "Flip")),
    ("hookline.hosts.claude_code", "The Claude CLI's control protocol, and the official SDK.",
     ("for_sdk", "query", "ClaudeClient", "Options", "find_cli", "tool", "ToolServer")),
    ("hookline.agent", "An agent whose every step passes the engine.", ("Agent", "Result")),
    ("hookline.settings", "Reading settings files.", ("load", "LoadedSettings", "Problem", "Trust")),
    ("hookline.core.wire.dialects", "The formats on the wire.", ("dialect", "detect", "Dialect")),
    ("hookline.core.wire.schema", "JSON Schema of events and answers.", ("event_schema", "reply_schema", "schema")),
)  # fmt: skip

PLAIN = ("hookline", "hookline.testing")
"""Where a name is used without its module's."""

INTERNAL = frozenset({"told", "claim", "go_on_later", "tell", "place", "cancel"})
"""What the package's own modules need of each other."""

TESTING = """# Testing

Everything is in `hookline.testing`. How to use it: [Test your hooks](../how-to/test-your-hooks.md).

The pytest plugin comes with the package and needs no set-up. Its fixtures are `hookline_hooks` (a fresh set,
closed after the test), `hookline_fire` (`hookline_fire(hook, event)` in a test that is not `async`) and
`hookline_recorder` (remembers everything the `hookline_hooks` of this test do). With
`pytest_plugins = ["hookline.testing.fixtures"]` they are also called `hooks`, `fire` and `recorder`.

"""
_GROUPS: tuple[tuple[str, str], ...] = (
    ("## Fire one event", "fire fire_sync"),
    ("## Assert what came of it", ("assert_allowed assert_asked assert_context assert_denied assert_kept_going "
                                   "assert_passed assert_rewrote")),
    ("## Events in one word", ("announced asking bash edit failed mcp prompt read session_end session_start stop "
                               "subagent_start subagent_stop succeeded tool write")),
    ("## Fakes", "FakeClock FakeRunner Recorder make_outcome"),
)  # fmt: skip


def page() -> str:
    """Every part of the package, one section each."""
    return INTRO + "\n".join(_part(*part) for part in PARTS)


def testing_page() -> str:
    """`hookline.testing`, grouped by what the names are for."""
    sections = [
        f"{heading}\n\n" + "\n".join(_thing("hookline.testing", name) for name in names.split())
        for heading, names in _GROUPS
    ]
    return TESTING + "\n".join(sections)


def _part(module: str, about: str, names: tuple[str, ...]) -> str:
    return f"## {code(module)}\n\n{about}\n\n" + "\n".join(_thing(module, name) for name in names)


def _thing(module: str, name: str) -> str:
    thing = getattr(import_module(module), name)
    where = module.rpartition(".")[2]
    heading = f"### {code(name if module in PLAIN else f'{where}.{name}')}\n\n"
    if not inspect.isclass(thing):
        return f"{heading}{block(signature(name, thing))}\n{doc(thing)}"
    return f"{heading}{block(_constructor(name, thing))}\n{doc(thing)}{_members(thing)}{_more(thing)}"


def _more(cls: type[Any]) -> str:
    """The options that `on`, `add` and `hook` take."""
    if cls.__name__ != "Hooks":
        return ""
    types = types_of(Options)
    rows = [(code(name), kind(types[name]), OPTIONS[name]) for name in types]
    return f"\nThe options of `on`, of `add` and of `@hook`:\n\n{table(('option', 'type', 'means'), rows)}"


# -- signatures ----------------------------------------------------------------------------------------------------


def signature(name: str, call: Any, *, method: bool = False) -> str:
    """A signature as it would be written, one parameter a line when it is long."""
    found, written = inspect.signature(call), parameters_of(call)
    parameters = [one.replace(annotation=written.get(one.name, one.annotation))
                  for index, one in enumerate(found.parameters.values()) if not (method and index == 0)]  # fmt: skip
    result = written.get("return", found.return_annotation)
    words = list(_parameters(parameters))
    returns = "" if result is inspect.Signature.empty else f" -> {_annotation(result)}"
    start = "async def " if inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call) else "def "
    return _laid_out(f"{start}{name}", words, returns)


def _laid_out(start: str, words: list[str], end: str = "") -> str:
    line = f"{start}({', '.join(words)}){end}"
    if len(line) <= 100:
        return line
    inner = "".join(f"    {word},\n" for word in words)
    return f"{start}(\n{inner}){end}"


def _parameters(parameters: list[inspect.Parameter]) -> Iterator[str]:
    starred = False
    for one in parameters:
        if one.kind is one.KEYWORD_ONLY and not starred:
            yield "*"
        starred = starred or one.kind in (one.KEYWORD_ONLY, one.VAR_POSITIONAL)
        mark = "*" if one.kind is one.VAR_POSITIONAL else "**" if one.kind is one.VAR_KEYWORD else ""
        said = "" if one.annotation is one.empty else f": {_annotation(one.annotation)}"
        value = "" if one.default is one.empty else f" = {shown(one.default)}"
        yield f"{mark}{one.name}{said}{value if said else value.replace(' ', '')}"


def _annotation(said: Any) -> str:
    """A type by its name, also where it was evaluated: without the modules that it comes from."""
    text = said if isinstance(said, str) else re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])", "", inspect.formatannotation(said))
    return text.strip("\"'")


def _constructor(name: str, cls: type[Any]) -> str:
    if issubclass(cls, msgspec.Struct):
        types = types_of(cls)
        words = [
            f"{field}: {types[field]}" + (f" = {value}" if (value := default(cls, field)) else "")
            for field in cls.__struct_fields__
        ]
        return _laid_out(f"class {name}", words)
    if cls.__init__ is object.__init__ or getattr(cls, "_is_protocol", False) or "__members__" in dir(cls):
        return f"class {name}"
    return signature(name, cls.__init__, method=True).replace("def ", "class ", 1).removesuffix(" -> None")


# -- members -------------------------------------------------------------------------------------------------------


def _members(cls: type[Any]) -> str:
    fields = set(getattr(cls, "__struct_fields__", ()))
    methods, values = [], []
    for name, member in _public(cls):
        if isinstance(member, property):
            values.append((code(name), doc(member)))
        elif callable(getattr(cls, name)) and not inspect.isclass(member) and name not in fields:
            call = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
            bound = not isinstance(member, staticmethod)
            mark = "@classmethod\n" if isinstance(member, classmethod) else ""
            methods.append(f"{block(mark + signature(name, call, method=bound))}\n{doc(call)}")
    attributes = f"\n{table(('attribute', 'is'), values)}" if values else ""
    return attributes + "".join(f"\n{one}" for one in methods)


def _public(cls: type[Any]) -> Iterator[tuple[str, Any]]:
    """Public members that have a docstring, in the order they are written; those of bases of ours too."""
    seen: set[str] = set()
    for base in cls.__mro__:
        if not base.__module__.startswith("hookline"):
            continue
        for name, member in vars(base).items():
            if name.startswith("_") or name in seen or name in INTERNAL or not getattr(member, "__doc__", None):
                continue
            seen.add(name)
            if isinstance(member, (property, classmethod, staticmethod)) or inspect.isfunction(member):
                yield name, member
