"""Permission rules as values: from settings and flags, changed by updates, suggested for a call."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from hookline.core.hooks.condition import ARGUMENTS, EDITING, Rule, alternatives, domain_of, read_rule
from hookline.core.shell import parse_line
from hookline.guards.permissions.file_access import Mode

_BEHAVIOURS = ("allow", "ask", "deny")


class Rules(msgspec.Struct, frozen=True):
    """What is allowed, asked about and denied; a rule that cannot be read is kept with its `problem`."""

    allow: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()

    def __or__(self, other: "Rules") -> "Rules":
        return Rules(self.allow + other.allow, self.ask + other.ask, self.deny + other.deny)


class AppliedUpdates(msgspec.Struct, frozen=True):
    """Rules, mode and working folders after some updates; `problems` names the updates that made no sense."""

    rules: Rules
    mode: Mode
    dirs: tuple[str, ...]
    problems: tuple[str, ...] = ()


def read_rules(
    permissions: Mapping[str, Any] = {}, *, allowed: Iterable[str] = (), disallowed: Iterable[str] = ()
) -> Rules:
    """The rules of a settings file's `permissions`, with those of `--allowedTools` and `--disallowedTools`."""
    listed = {key: _texts(permissions.get(key)) for key in _BEHAVIOURS}
    listed["allow"] += [rule for text in allowed for rule in split_rules(text)]
    listed["deny"] += [rule for text in disallowed for rule in split_rules(text)]
    return Rules(**{key: tuple(map(read_rule, texts)) for key, texts in listed.items()})


def _texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list | tuple) else []


def split_rules(text: str) -> list[str]:
    """The rules in one flag, separated by commas or spaces that stand outside parentheses."""
    return [rule for rule in alternatives(text, ", \t\n") if rule]


def removed_tools(rules: Rules, names: Iterable[str]) -> frozenset[str]:
    """Those of these tools that a bare deny rule, of a tool or an MCP server, takes away from the model altogether."""
    bare = [rule for rule in rules.deny if rule.bare]
    return frozenset(name for name in names if any(rule.names(name) for rule in bare))


def apply(updates: Sequence[Mapping[str, Any]], rules: Rules, mode: Mode, dirs: Sequence[str]) -> AppliedUpdates:
    """Rules, mode and folders after the updates of a hook or a host, in the wire's form, in order."""
    problems: list[str] = []
    for update in updates:
        kind, behaviour, named = str(update.get("type")), update.get("behavior"), update.get("mode")
        folders = _texts(update.get("directories"))
        if kind in _RULE_UPDATES and behaviour in _BEHAVIOURS:
            changed = _changed(getattr(rules, behaviour), kind, tuple(map(_rule_from, update.get("rules") or ())))
            rules = msgspec.structs.replace(rules, **{behaviour: changed})
        elif kind in _RULE_UPDATES:
            problems.append(f"permission update `{kind}` has behavior `{behaviour}`; write allow, ask or deny")
        elif kind == "setMode" and named in list(Mode):
            mode = Mode(str(named))
        elif kind == "setMode":
            problems.append(f"unknown permission mode `{named}`; write one of {', '.join(Mode)}")
        elif kind == "addDirectories":
            dirs = [*dict.fromkeys((*dirs, *folders))]
        elif kind == "removeDirectories":
            dirs = [folder for folder in dirs if folder not in folders]
        else:
            problems.append(f"unknown permission update `{kind}`; write one of {', '.join(_UPDATES)}")
    return AppliedUpdates(rules, mode, tuple(dirs), tuple(problems))


_RULE_UPDATES = ("addRules", "replaceRules", "removeRules")
_UPDATES = (*_RULE_UPDATES, "setMode", "addDirectories", "removeDirectories")


def _changed(old: tuple[Rule, ...], kind: str, given: tuple[Rule, ...]) -> tuple[Rule, ...]:
    if kind == "addRules":
        return (*old, *(rule for rule in given if rule not in old))
    gone = {(rule.tool, rule.pattern) for rule in given}
    return given if kind == "replaceRules" else tuple(rule for rule in old if (rule.tool, rule.pattern) not in gone)


def _rule_from(value: object) -> Rule:
    """A rule from the wire's `{"toolName": …, "ruleContent": …}` or its text."""
    if not isinstance(value, Mapping):
        return read_rule(str(value))
    name, content = value.get("toolName", ""), value.get("ruleContent")
    return read_rule(f"{name}({content})" if content else str(name))


def suggestions(tool_name: str, tool_input: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The updates that would let calls like this one pass, in the wire's form, for `permission_suggestions`."""
    if tool_name in EDITING:
        return [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]
    argument = ARGUMENTS.get(tool_name)
    if argument is not None and argument.kind == "domain":
        host = domain_of(str(tool_input.get(argument.name, "")))
        return [_add({"toolName": tool_name, "ruleContent": f"domain:{host}"})] if host else []
    if tool_name != "Bash":
        return [_add({"toolName": tool_name})]
    line = parse_line(str(tool_input.get("command", "")))
    if line.undecidable or not line.commands:
        return []
    prefixes = dict.fromkeys(_prefix(part.words) for part in line.commands if part.words and not part.via)
    return [_add(*({"toolName": "Bash", "ruleContent": prefix} for prefix in prefixes))]


def _add(*rules: dict[str, str]) -> dict[str, Any]:
    return {"type": "addRules", "rules": [*rules], "behavior": "allow", "destination": "localSettings"}


def _prefix(words: Sequence[str]) -> str:
    """`git push origin` suggests `git push *`; a second word that is an option or a path is left out."""
    plain = len(words) > 2 and words[1][:1] != "-" and words[1].replace("-", "").isalnum()
    return f"{words[0]} {words[1]} *" if plain else f"{words[0]} *"
