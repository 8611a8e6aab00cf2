"""Agents, skills and slash commands that a project, its user or a plugin describes in markdown files.

| file | is |
|---|---|
| `agents/NAME.md` | a kind of subagent: the header says what it is for and which tools it has, the text instructs it |
| `skills/NAME/SKILL.md` | instructions the model loads when it needs them, or the user with `/NAME` |
| `commands/NAME.md` | a prompt the user can call with `/NAME`; `$ARGUMENTS` stands for what follows |
"""

import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct, structs

from hookline.agent.hook_messages import TEXTS
from hookline.core.hooks.condition import EDITING
from hookline.guards.permissions.rules import split_rules
from hookline.settings.files import read_markdown

T = TypeVar("T")
PLACEHOLDER = re.compile(r"\$(ARGUMENTS(?:\[(\d+)\])?|(\d+))")


class AgentDefinition(Struct, frozen=True, kw_only=True):
    """A kind of subagent."""

    name: str
    description: str = ""
    prompt: str = ""
    tools: tuple[str, ...] | None = None
    disallowed: tuple[str, ...] = ()
    model: str = ""
    max_turns: int | None = None
    background: bool | None = None
    hooks: Mapping[str, Any] = {}
    path: str = ""
    instructed: bool = True  # whether it is told what CLAUDE.md says

    @classmethod
    def read(cls, name: str, entry: Mapping[str, Any], path: str = "") -> "AgentDefinition":
        """The agent that a file's header, a flag or a host describes, as far as it makes sense."""
        hooks, turns = entry.get("hooks"), entry.get("maxTurns")
        return cls(
            name=name,
            description=str(entry.get("description") or ""),
            prompt=str(entry.get("prompt") or ""),
            tools=_names(entry.get("tools")),
            disallowed=_names(entry.get("disallowedTools") or entry.get("disallowed-tools")) or (),
            model=str(entry.get("model") or ""),
            max_turns=turns if isinstance(turns, int) else None,
            background=entry["background"] if isinstance(entry.get("background"), bool) else None,
            hooks=hooks if isinstance(hooks, dict) else {},
            path=path,
        )

    def allowed(self, tools: Mapping[str, T]) -> dict[str, T]:
        """Those of some tools that this kind of agent may use."""
        wanted = tools if self.tools is None else self.tools
        return {name: tool for name, tool in tools.items() if name in wanted and name not in self.disallowed}


class Skill(Struct, frozen=True, kw_only=True):
    """Instructions with a name; `kind` is `skill` or `command`, `source` whose they are."""

    name: str
    description: str = ""
    body: str = ""
    path: str = ""
    kind: str = "skill"
    source: str = "project"
    for_model: bool = True
    hooks: Mapping[str, Any] = {}
    disallowed: tuple[str, ...] = ()  # rules that deny from the moment it is used
    allowed: tuple[str, ...] = ()  # rules that allow from then on, until the user says something else

    def text(self, arguments: str) -> str:
        """The instructions with the arguments filled in; without a place for them they come last."""
        body = filled(self.body, arguments)
        if arguments and body == self.body:
            body = f"{body}\n\nARGUMENTS: {arguments}"
        return f"Base directory for this skill: {Path(self.path).parent}\n\n{body}" if self.kind == "skill" else body


def _built_in(name: str, description: str, prompt: str, *, changes: bool = False) -> AgentDefinition:
    no = () if changes else (*sorted(EDITING), "Agent")
    return AgentDefinition(name=name, description=description, prompt=prompt, disallowed=no, instructed=changes)


BUILT_IN_AGENTS = {
    agent.name: agent
    for agent in (
        _built_in("general-purpose", "works on any task with all tools", TEXTS["general_purpose"], changes=True),
        _built_in("Explore", "searches the project without changing it", TEXTS["explore"]),
        _built_in("Plan", "plans work without doing it", TEXTS["plan"]),
    )
}


def filled(body: str, arguments: str) -> str:
    """`$ARGUMENTS`, `$ARGUMENTS[0]` and `$0` replaced."""
    try:
        words = shlex.split(arguments)
    except ValueError:
        words = arguments.split()

    def value(found: re.Match[str]) -> str:
        number = found[2] or found[3]
        if number is None:
            return arguments
        return words[int(number)] if int(number) < len(words) else ""

    return PLACEHOLDER.sub(value, body)


def find_agents(folders: Iterable[Path], prefix: str = "") -> dict[str, AgentDefinition]:
    """The agents of some `.claude` folders, the later ones winning; a plugin's are called `PLUGIN:NAME`."""
    found: dict[str, AgentDefinition] = {}
    for folder in folders:
        for path in sorted((folder / "agents").rglob("*.md")):
            text = read_markdown(path)
            name = prefix + str(text.header.get("name") or path.stem)
            agent = AgentDefinition.read(name, {**text.header, "prompt": text.body.strip()}, str(path))
            unread = any(problem.severity == "error" for problem in text.problems) and "tools" not in text.header
            found[name] = structs.replace(agent, tools=()) if unread else agent  # its limits may be what was unreadable
    return found


def find_skills(folders: Iterable[tuple[Path, str]], prefix: str = "") -> dict[str, Skill]:
    """Skills and commands of some `.claude` folders, each with whose it is; the later ones win."""
    found: dict[str, Skill] = {}
    for folder, source in folders:
        for path in sorted((folder / "commands").rglob("*.md")):
            name = prefix + ":".join(path.relative_to(folder / "commands").with_suffix("").parts)
            found[name] = _skill(path, name, "command", source)
        for path in sorted((folder / "skills").glob("*/SKILL.md")):
            name = prefix + path.parent.name
            found[name] = _skill(path, name, "skill", source)
    return found


def _skill(path: Path, name: str, kind: str, source: str) -> Skill:
    text = read_markdown(path)
    hooks = text.header.get("hooks")
    return Skill(
        name=name,
        description=str(text.header.get("description") or ""),
        body=text.body.strip(),
        path=str(path),
        kind=kind,
        source=source,
        for_model=not text.header.get("disable-model-invocation"),
        hooks=hooks if isinstance(hooks, dict) else {},
        disallowed=_rules(text.header.get("disallowed-tools") or text.header.get("disallowedTools")),
        allowed=_rules(text.header.get("allowed-tools")),
    )


def _rules(given: Any) -> tuple[str, ...]:
    """Rules such as `Bash(rm *), WebFetch`, as a list or as one text."""
    texts = [given] if isinstance(given, str) else given if isinstance(given, list) else []
    return tuple(rule for text in texts if isinstance(text, str) for rule in split_rules(text))


def _names(given: Any) -> tuple[str, ...] | None:
    """Tool names, as a list or with commas; None and `*` mean all."""
    words = given.split(",") if isinstance(given, str) else given
    if not isinstance(words, list):
        return None
    names = tuple(str(word).strip() for word in words if str(word).strip())
    return None if "*" in names else names
