"""Packs of small rules that many people want: `hooks.add(*packs.rules("git", "secrets"))`.

A pack is a TOML file in this folder. Each of its rules says what it refuses (`block` commands, `write` or `read` files,
push to `branches`, or a `guard`) and has the calls that its test tries. A project's own file switches rules on and off.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from hookline.core.engine import Context
from hookline.core.hooks import Hook, make_hook
from hookline.core.hooks.condition import parse_rule
from hookline.core.shell import writes
from hookline.errors import ConfigError, HookError, did_you_mean
from hookline.events import PreToolUse
from hookline.guards import branches, commands, sandboxing, secrets
from hookline.guards.off_loop import judge_lines, strictest
from hookline.guards.paths import READERS, line_folder, paths_of, seems_to_read
from hookline.guards.permissions import Rules, decide
from hookline.guards.permissions.line_reads import reads_of
from hookline.guards.sandboxing import Confine
from hookline.replies import Reply, ask, deny, rewrite

NAME = "packs"
Switches = Mapping[str, Mapping[str, bool | list[str]]]
"""For each pack its rules: on, off, or on with another list than the pack's own."""


class PackRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rule: what it is for, what it refuses, and calls that it denies and lets pass."""

    about: str
    deny: list[str]
    passes: list[str] = msgspec.field(name="pass")
    block: list[str] = []
    write: list[str] = []
    read: list[str] = []
    branches: list[str] = []
    guard: str = ""

    def with_list(self, given: list[str]) -> "PackRule":
        own = [name for name in ("branches", "block", "write", "read") if getattr(self, name)]
        if not own:
            raise HookError("has no list; write `true` or `false`")
        return msgspec.structs.replace(self, **{own[0]: given})


class Pack(msgspec.Struct, frozen=True):
    """A pack: what it is about, and its rules by name."""

    about: str
    rules: dict[str, PackRule]


@cache
def packs() -> dict[str, Pack]:
    """Every pack, by name."""
    found = {}
    for file in sorted(Path(__file__).parent.glob("*.toml")):
        told = tomllib.loads(file.read_text(encoding="utf-8"))
        found[file.stem] = Pack(told.pop("about"), msgspec.convert(told, dict[str, PackRule]))
    return found


def rules(*names: str, off: Iterable[str] = (), confine: Confine = None) -> list[Hook]:
    """The hooks of some packs, or of all; `off` has rules that do not count, such as `git.no-clean`."""
    on: dict[str, dict[str, bool | list[str]]] = {
        name: dict.fromkeys(_known(packs(), name, "pack").rules, True) for name in names or packs()
    }
    for pack, _, rule in (one.partition(".") for one in off):
        on.setdefault(pack, {})[rule] = False
    return made(on, confine=confine)


def from_file(path: str | Path, *, confine: Confine = None) -> list[Hook]:
    """The hooks that a file such as `.claude/hookline.toml` switches on; what is wrong with it is a `ConfigError`."""
    try:
        told = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        return made(msgspec.convert(told, dict[str, dict[str, bool | list[str]]]), confine=confine)
    except (OSError, ValueError, msgspec.ValidationError, HookError) as problem:
        raise ConfigError(str(path), f"{problem}; `hookline packs` lists what there is") from None


def made(switches: Switches, *, confine: Confine = None) -> list[Hook]:
    """The hooks for what is switched on: one for all commands, one for all files, and the guards."""
    on = dict(_switched_on(switches))
    blocked = {text: f" ({name})" for name, rule in on.items() for text in rule.block}
    hooks = [commands.block(blocked, confine=confine, name=NAME)] if blocked else []
    if any(rule.write or rule.read for rule in on.values()):
        judge = FileRules(on, confine).judge
        hooks.append(make_hook((PreToolUse,), judge, name=f"{NAME}.files", priority=commands.PRIORITY))
    for name, rule in on.items():
        hooks += [branches.protect(rule.branches, name=name)] if rule.branches else []
        hooks += [branches.no_force_push(name=name)] if rule.guard == "no_force_push" else []
        hooks += secrets.block(prompts=False, outputs=False) if rule.guard == "credentials" else []
    return hooks


def _switched_on(switches: Switches) -> Iterator[tuple[str, PackRule]]:
    for pack, chosen in switches.items():
        known = _known(packs(), pack, "pack").rules
        for name, value in chosen.items():
            rule = _known(known, name, f"rule of `{pack}`")
            if value is not False:
                yield f"{pack}.{name}", rule if value is True else rule.with_list(value)


def _known(table: Mapping[str, Any], name: str, what: str) -> Any:
    if name not in table:
        raise HookError(f"no {what} is called `{name}`{did_you_mean(name, table)}")
    return table[name]


class FileRules:
    """Judges what a call reads and writes: a file tool by its paths, a shell line by the files that it reaches.

    A line that hides what it does is asked about; where the kernel holds such lines, only if it names such a file.
    """

    def __init__(self, on: Mapping[str, PackRule], confine: Confine) -> None:
        self._confine = confine
        self._writing = {_rule("Edit", glob): name for name, rule in on.items() for glob in (*rule.write, *rule.read)}
        self._reading = {_rule("Read", glob): name for name, rule in on.items() for glob in rule.read}
        globs = [glob for rule in on.values() for glob in (*rule.write, *rule.read)]
        self._without = f"!{{{','.join(glob for rule in on.values() for glob in rule.read if glob.startswith('**'))}}}"
        self._words = {glob.strip("*/~").rpartition("/")[2].strip("*") for glob in globs} - {""}

    async def judge(self, event: PreToolUse, ctx: Context) -> Reply | None:
        """Deny a call that reaches a file of a rule; ask where that cannot be told."""
        place = {"cwd": event.cwd, "project_dir": ctx.project_dir or ctx.env.get("CLAUDE_PROJECT_DIR") or event.cwd}
        if event.tool_name == "Grep":
            return self._search(event, place)
        tool = "Read" if event.tool_name in READERS or seems_to_read(event.tool_name) else "Edit"
        paths = [] if event.tool_name == sandboxing.TOOL else [path for _, path in paths_of(event, read=True) if path]
        calls = [self._said(tool, {"file_path": path}, place) for path in paths if isinstance(path, str)]
        lines = commands.shell_lines(event)
        return strictest(*calls, await judge_lines(lines, lambda line: self._line(line.text, event, place), disk=True))

    def _search(self, event: PreToolUse, place: Mapping[str, Any]) -> Reply | None:
        """A search through a folder goes on without such files, if it does not say itself which ones it wants."""
        given, said = event.tool_input, self._said("Grep", event.tool_input, place)
        if said is None or not Path(event.cwd, str(given.get("path") or ".")).is_dir():
            return said
        if given.get("glob"):
            return None if given["glob"] == self._without else said
        return rewrite({**given, "glob": self._without})

    def _line(self, line: str, event: PreToolUse, place: Mapping[str, str]) -> Reply | None:
        said = self._said("Bash", {"command": line}, {**place, "cwd": line_folder(event)})
        hidden = [*writes(line).undecidable, *(reads_of(line).undecidable if self._reading else ())]
        named = next((word for word in self._words if word in line), "")
        if said is not None or not hidden or (sandboxing.applies_to(event, self._confine) and not named):
            return said
        return ask(f"the line names `{named}` and hides what it does: {hidden[0]}" if named else hidden[0])

    def _said(self, tool: str, given: Mapping[str, Any], place: Mapping[str, Any]) -> Reply | None:
        """What the rules say of one call of a tool that they know."""
        both = self._reading | self._writing
        known = {"Edit": self._writing, "Read": self._reading, "Grep": self._reading}.get(tool, both)
        found = decide(tool, given, rules=Rules(deny=tuple(map(parse_rule, known))), mode="bypassPermissions",
                       edits=tool == "Edit", home=str(Path.home()), **place)  # fmt: skip
        if found.rule is None:
            return None
        if found.behaviour != "deny":
            return ask(f"{found.reason} ({known[found.rule.text]})")
        does, glob = "read" if found.rule.tool == "Read" else "written", (found.rule.pattern or "").removeprefix("//")
        return deny(f"files like `{glob}` are not {does} here ({known[found.rule.text]})")


def _rule(tool: str, glob: str) -> str:
    """A path rule: a glob that begins with `**` is meant in every folder of the machine."""
    return f"{tool}({'//' if glob.startswith('**') else ''}{glob})"
