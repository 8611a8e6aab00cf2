"""One settings object → hooks and problems. Pure: nothing is looked up but what is handed in.

Two ways of writing are understood. Claude Code's nested one, `{event: [{matcher, hooks: [entry]}]}`, and the short one
of seeds/002, where an event (`preToolUse`, too) has a command, a list of commands, or named entries. One bad entry
never disables the others: a wrong value is reported and its key takes the default; an entry that cannot run as meant is
left out.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from hookline.core.hooks import AgentCheck, Cedar, Command, Hook, Http, McpTool, Prompt, Rego
from hookline.core.hooks.condition import Condition, parse_rule
from hookline.core.hooks.hook import EVERYTHING, PLUGIN_FOLDERS, Action, Matcher, parse_matcher
from hookline.core.placeholders import fill
from hookline.errors import ConditionError, MatcherError, did_you_mean
from hookline.events import Stop, SubagentStop, spec_of
from hookline.events.catalog import CATALOG, EventSpec
from hookline.settings.files import Problem, Severity, shown
from hookline.settings.hook_names import short_name
from hookline.settings.sources import SettingsSource


class KeySpec(NamedTuple):
    """One key: the test, what to call the right value, an example, and what a wrong one means.

    A wrong value: take the key's default, drop the whole entry (it cannot run as meant), or fail closed.
    """

    ok: Callable[[Any], bool]
    want: str
    write: str
    otherwise: Literal["default", "drop", "block"] = "default"


_TESTS: dict[str, Callable[[Any], bool]] = {
    "string": lambda v: isinstance(v, str),
    "text": lambda v: isinstance(v, str) and bool(v.strip()),
    "command": lambda v: _TESTS["text"](v) and "\0" not in v,
    "name": lambda v: _TESTS["text"](v) and len(v) <= 200,
    "texts": lambda v: isinstance(v, list) and all(isinstance(one, str) and "\0" not in one for one in v),
    "rules": lambda v: isinstance(v, str) or _TESTS["texts"](v),
    "object": lambda v: isinstance(v, dict),
    "text map": lambda v: isinstance(v, dict) and _TESTS["texts"](list(v.values())),
    "env": lambda v: _TESTS["text map"](v) and all(name and "=" not in name and "\0" not in name for name in v),
    "switch": lambda v: isinstance(v, bool),
    "seconds": lambda v: isinstance(v, int | float) and not isinstance(v, bool) and 0 < v < 10**9,
    "integer": lambda v: type(v) is int,
}
_ROWS: dict[str, dict[str, list[Any]]] = msgspec.json.decode(Path(__file__).with_name("fields.json").read_bytes())


def _spec(test: Any, want: str, write: str, otherwise: Any = "default") -> KeySpec:
    ok = test.__contains__ if isinstance(test, list) else _TESTS[test]
    return KeySpec(ok, want, write, "drop" if otherwise == "required" else otherwise)


REQUIRED = {kind: tuple(key for key, row in rows.items() if "required" in row) for kind, rows in _ROWS.items()}
KINDS = {kind: {key: _spec(*row) for key, row in rows.items()} for kind, rows in _ROWS.items()}  # keys by kind of hook
COMMON = KINDS.pop("common")  # keys of every kind of hook; `mode`, `name` and `priority` are Hookline's own
DIALECTS: tuple[str, ...] = tuple(_ROWS["command"]["dialect"][0])
_RUN: dict[str, tuple[type[Any], float]] = {
    "command": (Command, 600.0),
    "http": (Http, 600.0),
    "mcp_tool": (McpTool, 600.0),
    "prompt": (Prompt, 30.0),
    "agent": (AgentCheck, 60.0),
    "cedar": (Cedar, 10.0),
    "rego": (Rego, 10.0),
}
ACTIONS = {kind: action for kind, (action, _) in _RUN.items()}  # what each kind of hook becomes
DEFAULT_TIMEOUT = {kind: seconds for kind, (_, seconds) in _RUN.items()}  # of one that does not say
FAIL_CLOSED = frozenset({"cedar", "rego"})  # not Claude Code's: an entry that does not say blocks when it fails
TELLTALE = {"command": "command", "url": "http", "prompt": "prompt", "server": "mcp_tool"}  # what tells a kind


def default_timeout(kind: str, event: str) -> float:
    """Seconds for an entry of Claude Code's settings that names none."""
    return min(DEFAULT_TIMEOUT[kind], spec_of(event).timeout)


class ParsedSettings(msgspec.Struct, frozen=True):
    """What one settings object says: its hooks, and what is wrong with it."""

    hooks: tuple[Hook, ...] = ()
    problems: tuple[Problem, ...] = ()


class HttpRules(msgspec.Struct, frozen=True):
    """`allowedHttpHookUrls` and `httpHookAllowedEnvVars`; `None` restricts nothing."""

    urls: tuple[str, ...] | None = None
    env: tuple[str, ...] | None = None


class InAgent(msgspec.Struct, frozen=True):
    """Holds while the named agent runs; the scope of hooks in an agent's header."""

    agent: str

    def __call__(self, event: Any) -> bool:
        return bool(event.agent_type == self.agent)


def never(_: Any) -> bool:
    """Never holds: the place of a condition that cannot be understood (FACTS.md §5)."""
    return False


def parse_hooks(table: object, source: SettingsSource, rules: HttpRules | None = None) -> ParsedSettings:
    """The hooks of a `hooks` object; whatever it is, no exception comes out."""
    reader = _Reader(source, rules or HttpRules())
    if not isinstance(table, dict):
        reader.say("hooks", f'expected an object of events, got {shown(table)}; write `{{"PreToolUse": […]}}`')
    for key, entries in table.items() if isinstance(table, dict) else ():
        reader.event(key, entries)
    return ParsedSettings(tuple(reader.hooks), tuple(reader.problems))


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


_SPELLINGS = {spelling: name for name in CATALOG for spelling in (name[0].lower() + name[1:], _snake(name))}
"""`preToolUse` and `pre_tool_use`: how seeds/002 spells events."""


class _Entry(msgspec.Struct, frozen=True):
    """An entry on its way to a hook: where it stands, and what its surroundings say."""

    event: EventSpec
    at: str
    raw: dict[str, Any]
    short: bool = False
    name: str = ""
    matcher: Any = None
    matcher_at: str = ""


class _Reader:
    def __init__(self, source: SettingsSource, rules: HttpRules) -> None:
        self.source = source
        self.rules = rules
        self.hooks: list[Hook] = []
        self.problems: list[Problem] = []

    def say(self, at: str, message: str, severity: Severity = "error") -> None:
        self.problems.append(Problem(f"{self.source.label}: {at}", message, severity))

    def event(self, key: str, entries: object) -> None:
        at = f"hooks.{key}"
        spec = CATALOG.get(_SPELLINGS.get(key, key))
        if spec is None:
            if not _is_comment(key):
                self._unknown_event(key, at)
        elif isinstance(entries, list):
            for number, one in enumerate(entries):
                self._listed(spec, f"{at}[{number}]", one, exact=key in CATALOG)
        elif isinstance(entries, str):
            self._short(spec, at, entries)
        elif isinstance(entries, dict):
            self._named(spec, at, entries)
        else:
            self.say(at, f'expected a list, got {shown(entries)}; write `[{{"hooks": […]}}]`')

    def _unknown_event(self, key: str, at: str) -> None:
        hint = did_you_mean(key, CATALOG) or f"; write one of {', '.join(CATALOG)}"
        self.say(at, f"unknown event `{key}`, so its hooks never run{hint}")

    def _listed(self, spec: EventSpec, at: str, one: object, *, exact: bool) -> None:
        if isinstance(one, str) or (isinstance(one, dict) and not exact and "hooks" not in one):
            self._short(spec, at, one)
        elif isinstance(one, dict) and "hooks" in one and not exact:  # Claude Code's groups, under no event of its own
            self._unknown_event(at.removeprefix("hooks.").partition("[")[0], at)
        elif isinstance(one, dict) and "hooks" in one:
            self._group(spec, at, one)
        elif isinstance(one, dict) and ("type" in one or "command" in one):
            self.say(at, 'this entry stands one level too high; write `{"hooks": [{"type": "command", …}]}`')
        else:
            self.say(at, f'expected an object with `hooks`, got {shown(one)}; write `{{"hooks": […]}}`')

    def _group(self, spec: EventSpec, at: str, group: dict[str, Any]) -> None:
        """Claude Code's nested way."""
        self._unknown(at, group, ("matcher", "hooks"))
        entries = group["hooks"]
        if not isinstance(entries, list):
            self.say(f"{at}.hooks", f'expected a list, got {shown(entries)}; write `[{{"type": "command", …}}]`')
            return
        for number, raw in enumerate(entries):
            here = f"{at}.hooks[{number}]"
            if isinstance(raw, dict):
                self._entry(_Entry(spec, here, raw, matcher=group.get("matcher"), matcher_at=f"{at}.matcher"))
            else:
                example = '{"type": "command", "command": "./check.sh"}'
                self.say(here, f"expected an object, got {shown(raw)}; write `{example}`")

    def _short(self, spec: EventSpec, at: str, one: object, name: str = "") -> None:
        """The short ways of seeds/002."""
        said = {"command": one} if isinstance(one, str) else one
        if not isinstance(said, dict):
            return self.say(at, f'expected a command, got {shown(one)}; write `"./check.sh"`')
        raw = {("timeout" if key == "timeout_secs" else key): value for key, value in said.items()}
        matcher = raw.pop("matcher", None)
        return self._entry(_Entry(spec, at, raw, short=True, name=name, matcher=matcher, matcher_at=f"{at}.matcher"))

    def _named(self, spec: EventSpec, at: str, entries: dict[str, Any]) -> None:
        if isinstance(entries.get("hooks"), list):
            self.say(at, 'expected a list of groups, got one group; write `[{"hooks": […]}]`')
            entries = {name: one for name, one in entries.items() if isinstance(one, dict)}
        if isinstance(entries.get("command"), str) and not any(isinstance(v, dict) for v in entries.values()):
            self._short(spec, at, entries)
        else:
            for name, one in entries.items():
                if not _is_comment(name):
                    self._short(spec, f"{at}.{name}", one, name=name)

    def _entry(self, entry: _Entry) -> None:
        if (kind := self._kind(entry)) is None or (values := self._values(entry, kind)) is None:
            return
        action = self._action(entry, kind, values)
        condition, when = self._condition(entry, values.get("if"))
        timeout = values.get("timeout") or (None if entry.short else default_timeout(kind, entry.event.name))
        # FACTS.md §9: in an agent's header, Stop is the end of that agent, be it a subagent or the session itself
        both = entry.event.cls is Stop and self.source.kind == "agent"
        hook = Hook(
            name=values.get("name") or entry.name or short_name(action, self.source.plugin),
            events=(SubagentStop, Stop) if both else (entry.event.cls,),
            action=action,
            matcher=self._matcher(entry),
            condition=condition,
            when=when,
            priority=values.get("priority", 0),
            timeout=timeout and float(timeout),
            on_failure=values.get("onFailure", None if kind in FAIL_CLOSED else "continue"),
            background=values.get("async", False) and not values.get("asyncRewake", False),
            once=values.get("once", False),
            source=f"{self.source.label}: {entry.at}",
            status_message=values.get("statusMessage"),
            mode=values.get("mode", "enforce"),
        )
        self.hooks.append(hook)

    def _kind(self, entry: _Entry) -> str | None:
        raw = entry.raw
        kind = raw.get("type")
        if isinstance(kind, str) and kind in KINDS:
            return kind
        if "type" in raw:
            hint = did_you_mean(str(kind), KINDS) or f"; write one of {', '.join(KINDS)}"
            self.say(f"{entry.at}.type", f"unknown kind of hook {shown(kind)}{hint}")
            return None
        guess = next((TELLTALE[key] for key in TELLTALE if key in raw), None)
        if guess is None:
            self.say(entry.at, 'says nothing to run; write `{"type": "command", "command": "./check.sh"}`')
        elif not entry.short:
            self.say(entry.at, f'`type` is missing, read as `{guess}`; write `"type": "{guess}"`', "warning")
        return guess

    def _values(self, entry: _Entry, kind: str) -> dict[str, Any] | None:
        """The entry's keys with the right values; `None` if it cannot run as meant."""
        fields = {**COMMON, **KINDS[kind]}
        self._unknown(entry.at, entry.raw, ("type", *fields))
        missing = [key for key in REQUIRED[kind] if key not in entry.raw]
        for key in missing:
            self.say(entry.at, f'`{key}` is missing; write `"{key}": {fields[key].write}`')
        values, runs = {}, not missing
        for key, field in ((key, field) for key, field in fields.items() if key in entry.raw):
            value = entry.raw[key]
            if not field.ok(value):
                said = f"expected {field.want}, got {shown(value)}; write `{field.write}`{_EFFECT[field.otherwise]}"
                self.say(f"{entry.at}.{key}", said)
                runs = runs and field.otherwise != "drop"
                value = "block" if field.otherwise == "block" else None
            values[key] = value
        return {key: value for key, value in values.items() if value is not None} if runs else None

    def _unknown(self, at: str, raw: Mapping[str, Any], known: tuple[str, ...]) -> None:
        for key in raw:
            if key not in known and key not in _REMARKS and not _is_comment(key):
                severity: Severity = "error" if did_you_mean(key, known, cutoff=_MISSPELT) else "warning"
                self.say(f"{at}.{key}", f"unknown key `{key}` is ignored{did_you_mean(key, known)}", severity)

    def _matcher(self, entry: _Entry) -> Matcher:
        if entry.matcher is None:
            return EVERYTHING
        problem = MatcherError(str(entry.matcher), f"expected text, got {shown(entry.matcher)}")
        if isinstance(entry.matcher, str):
            try:
                return parse_matcher(entry.matcher)
            except MatcherError as error:
                problem = error
        self.say(entry.matcher_at, f"{problem}; as it stands it matches nothing")
        return Matcher(str(entry.matcher), never)

    def _condition(self, entry: _Entry, text: str | list[str] | None) -> tuple[Condition | None, Any]:
        """The entry's `if`, and the scope it stands in; one that cannot be understood never holds."""
        scope = InAgent(self.source.owner) if self.source.kind == "agent" and self.source.owner else None
        if not text:
            return None, never if text is None and entry.raw.get("if") is not None else scope
        if entry.event.cls.subject_field != "tool_name":
            where = f"{entry.at}.if"
            self.say(where, f"{entry.event.name} has no tool, so a hook with `if` never runs there", "warning")
        try:
            return Condition(tuple(map(parse_rule, [text] if isinstance(text, str) else text))), scope
        except ConditionError as error:
            self.say(f"{entry.at}.if", f"{error}; as it stands it never holds")
            return None, never

    def _action(self, entry: _Entry, kind: str, values: dict[str, Any]) -> Action:
        """What the entry runs: its kind's keys under the names that actions have for them."""
        given = {_ACTION_FIELDS.get(key) or _snake(key): values[key] for key in KINDS[kind] if key in values}
        if kind in ("cedar", "rego"):
            given["policies"] = _filled(given["policies"], self.source)
        elif kind == "http":
            if not given["url"].lower().startswith(("http://", "https://")):
                problem = f"expected `http://…` or `https://…`, got {shown(given['url'])}"
                self.say(f"{entry.at}.url", problem, "warning")
            known = self.rules.env
            allowed = tuple(name for name in given.get("allowed_env", ()) if known is None or name in known)
            given |= {"allowed_env": allowed, "allowed_urls": self.rules.urls}
        elif kind == "command":
            env = {**({"EVENT": _snake(entry.event.name)} if entry.short else {}), **given.get("env", {})}
            command = _filled(given["command"], self.source)
            for name in (name for name in PLUGIN_FOLDERS if f"${{{name}}}" in command and name not in env):
                problem = f"no plugin brings this file, so `${{{name}}}` is nothing; write the path"
                self.say(f"{entry.at}.command", problem)
            if "args" in given:
                given["args"] = tuple(_filled(arg, self.source) for arg in given["args"])
            source, dialect = self.source, given.get("dialect") or ("snake" if entry.short else "claude")
            given |= {"command": command, "env": env, "dialect": dialect, "plugin": source.plugin}
            given |= {"plugin_root": source.plugin_root, "plugin_data": source.plugin_data}
        action: Action = ACTIONS[kind](**given)
        return action


def _filled(text: str, source: SettingsSource) -> str:
    """FACTS.md §9: a plugin's `${CLAUDE_PLUGIN_ROOT}` is replaced in the command itself, before a shell runs."""
    own = source.path.rpartition("/")[0] if source.kind == "skill" else None  # a skill's own folder
    return fill(text, {"CLAUDE_PLUGIN_ROOT": source.plugin_root or own, "CLAUDE_PLUGIN_DATA": source.plugin_data}.get)


_ACTION_FIELDS = {"async": "asynchronous", "allowedEnvVars": "allowed_env"}  # keys that actions call otherwise

_MISSPELT = 0.8  # so near a known key that it can hardly mean anything else: `timout`, `on_failure`
_REMARKS = frozenset({"description", "comment", "id", "note", "notes"})  # written for people: not noted as ignored

_EFFECT = {
    "default": "; its default is used",
    "drop": "; this hook does not run",
    "block": "; read as `block`, to be on the safe side",
}


def _is_comment(key: str) -> bool:
    return key.startswith(("_", "$", "//", "#"))
