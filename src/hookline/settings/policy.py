"""What several settings files say together: switches, environment, permissions, and the rest. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from hookline.errors import did_you_mean
from hookline.settings.files import Markdown, Problem, Severity, shown
from hookline.settings.parse import HttpRules
from hookline.settings.sources import STRENGTH, SettingsSource

OWN_KEYS = ("hooks", "env", "flow", "disableAllHooks", "allowedHttpHookUrls", "httpHookAllowedEnvVars")
"""The keys that are ours to read; `permissions`, `model` and the rest are the agent's."""

HARMLESS = frozenset(
    {
        "$schema", "description", "name", "version", "author", "theme", "language", "cleanupPeriodDays",
        "spinnerTipsEnabled", "outputStyle", "includeCoAuthoredBy", "autoUpdatesChannel", "verbose",
    }
)  # fmt: skip
"""What of another person's file takes effect before it is trusted, besides rules that only restrict."""
_RESTRICTING = ("deny", "ask")


def sensitive(raw: Mapping[str, Any]) -> dict[str, Any]:
    """What of another person's file takes no effect before it is trusted: all but what can do no harm."""
    kept = {key: value for key, value in raw.items() if key not in HARMLESS}
    if isinstance(rules := kept.get("permissions"), dict):
        kept["permissions"] = {key: value for key, value in rules.items() if key not in _RESTRICTING}
    return {key: value for key, value in kept.items() if key != "permissions" or value}


def harmless(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The rest of it: rules that deny or ask hold at once, since they only restrict."""
    kept = {key: value for key, value in raw.items() if key in HARMLESS}
    rules = raw.get("permissions")
    restricting = {key: rules[key] for key in _RESTRICTING if key in rules} if isinstance(rules, dict) else {}
    return {**kept, "permissions": restricting} if restricting else kept


class Permissions(msgspec.Struct, frozen=True, kw_only=True):
    """The permission rules of one file, as they are written."""

    source: SettingsSource
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    default_mode: str | None = None
    additional_directories: tuple[str, ...] = ()


class Switches(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the administrator's hooks and all others may run at all, and what http hooks may reach."""

    managed: bool = True
    others: bool = True
    http: HttpRules = HttpRules()

    def allows(self, source: SettingsSource) -> bool:
        """Whether hooks of `source` run. An administrator's hooks are switched off by administrators alone."""
        return self.managed if source.kind == "managed" else self.others


class File(msgspec.Struct, frozen=True, kw_only=True):
    """One file as it was read: `raw` is what it says, `broken` that it could not be read as settings at all."""

    source: SettingsSource
    raw: dict[str, Any] = msgspec.field(default_factory=dict)
    markdown: Markdown | None = None
    problems: tuple[Problem, ...] = ()
    found: bool = False
    broken: bool = False

    def problem(self, key: str, message: str, severity: Severity = "error") -> Problem:
        return Problem(f"{self.source.label}: {key}", message, severity)


def by_strength(files: Iterable[File]) -> list[File]:
    """Settings files from the weakest to the strongest; what else there is (plugins) settles nothing."""
    ranked = [one for one in files if one.source.kind in STRENGTH]
    return sorted(ranked, key=lambda one: STRENGTH.index(one.source.kind))


def read_switches(files: Sequence[File], problems: list[Problem]) -> Switches:
    """The switches of all files together; the strongest file that sets `disableAllHooks` decides (FACTS.md §9)."""
    managed, others, managed_only = True, True, False
    for one in by_strength(files):
        said = {key: one.raw.get(key) for key in ("disableAllHooks", "allowManagedHooksOnly")}
        for key, value in said.items():
            if value is not None and not isinstance(value, bool):
                message = f"expected true or false, got {shown(value)}; write `true`; it is ignored"
                problems.append(one.problem(key, message))
        off, alone = said["disableAllHooks"], said["allowManagedHooksOnly"] is True
        by_administrator = one.source.kind == "managed"
        if isinstance(off, bool):
            managed, others = not off if by_administrator else managed, not off
        managed_only = managed_only or (alone and by_administrator)
        if alone and not by_administrator:
            message = "counts in managed settings alone; it is ignored here"
            problems.append(one.problem("allowManagedHooksOnly", message, "warning"))
    http = HttpRules(_list(files, "allowedHttpHookUrls", problems), _list(files, "httpHookAllowedEnvVars", problems))
    return Switches(managed=managed, others=others and not managed_only, http=http)


def _list(files: Iterable[File], key: str, problems: list[Problem]) -> tuple[str, ...] | None:
    """All files' entries of a list that restricts; one that is not a list allows nothing, to be on the safe side."""
    said = [(one, one.raw[key]) for one in by_strength(files) if key in one.raw]
    found: dict[str, None] = {}
    for one, entries in said:
        if isinstance(entries, list) and all(isinstance(entry, str) for entry in entries):
            found.update(dict.fromkeys(entries))
        else:
            message = f"expected a list of texts, got {shown(entries)}; write `[]`, which is how it is read"
            problems.append(one.problem(key, message))
    return tuple(found) if said else None


def read_env(files: Iterable[File], problems: list[Problem]) -> dict[str, str]:
    """`env` of all files; the strongest file's value stands."""
    env: dict[str, str] = {}
    for one in by_strength(files):
        table = one.raw.get("env", {})
        if not isinstance(table, dict):
            message = f'expected an object of texts, got {shown(table)}; write `{{"A": "b"}}`'
            problems.append(one.problem("env", message))
            continue
        for name, value in table.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if not isinstance(value, str | int | float) or "\0" in text or not name or set(name) & {"=", "\0"}:
                problems.append(one.problem(f"env.{name}", f'expected a text, got {shown(value)}; write `"b"`'))
            else:
                env[name] = text
    return env


def read_permissions(files: Iterable[File], problems: list[Problem]) -> tuple[Permissions, ...]:
    """The permission rules of every file that has some, from the weakest to the strongest."""
    found = []
    for one in by_strength(files):
        table = one.raw.get("permissions")
        if isinstance(table, dict):
            found.append(_permissions(one, table, problems))
        elif table is not None:
            message = f'expected an object, got {shown(table)}; write `{{"deny": []}}`'
            problems.append(one.problem("permissions", message))
    return tuple(found)


def _permissions(one: File, table: dict[str, Any], problems: list[Problem]) -> Permissions:
    def texts(key: str) -> tuple[str, ...]:
        entries = table.get(key, [])
        listed = entries if isinstance(entries, list) else [entries]
        for number, entry in enumerate(listed):
            if not isinstance(entry, str):
                message = f'expected a rule, got {shown(entry)}; write `"Bash(git *)"`'
                problems.append(one.problem(f"permissions.{key}[{number}]", message))
        return tuple(entry for entry in listed if isinstance(entry, str))

    mode = table.get("defaultMode")
    if mode is not None and not isinstance(mode, str):
        problems.append(one.problem("permissions.defaultMode", f"expected a mode, got {shown(mode)}"))
        mode = None
    return Permissions(
        source=one.source, allow=texts("allow"), ask=texts("ask"), deny=texts("deny"), default_mode=mode,
        additional_directories=texts("additionalDirectories"),
    )  # fmt: skip


def merged(files: Iterable[File]) -> dict[str, Any]:
    """All settings but `hooks` as one object: objects merge, lists add up, of single values the strongest stands."""
    whole: dict[str, Any] = {}
    for one in by_strength(files):
        whole = _over(whole, {key: value for key, value in one.raw.items() if key != "hooks"})
    return whole


def _over(weak: Any, strong: Any) -> Any:
    if isinstance(weak, dict) and isinstance(strong, dict):
        return {**weak, **{key: _over(weak[key], value) if key in weak else value for key, value in strong.items()}}
    if isinstance(weak, list) and isinstance(strong, list):
        return weak + [one for one in strong if one not in weak]
    return strong


def misspelt(source: SettingsSource, raw: Mapping[str, Any]) -> list[Problem]:
    """What is said of keys that are nearly a key of ours: `hook` for `hooks`."""
    known = {*OWN_KEYS, "allowManagedHooksOnly"}
    close = {"hook", "hooks", "disableallhook", "disableallhooks", "disablehooks", "allowmanagedhookonly"}
    near = [key for key in raw if key not in known and key.lower() in close]
    return [Problem(f"{source.label}: {key}", f"unknown key `{key}`{did_you_mean(key, known)}") for key in near]
