"""Read every place hooks can come from, and settle what they say together."""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hookline.core.hooks.hook import Hook
from hookline.errors import MissingExtra
from hookline.settings import policy, sources
from hookline.settings.files import (
    Problem,
    expanded,
    is_file,
    parse_json,
    parse_markdown,
    plain,
    read_bytes,
    read_text,
    shown,
)
from hookline.settings.hook_names import with_free_names, without_duplicates
from hookline.settings.parse import parse_hooks
from hookline.settings.policy import File, Permissions, Switches
from hookline.settings.sources import HEADERS, Kind, SettingsFolders, SettingsSource


class Skill(msgspec.Struct, frozen=True, kw_only=True):
    """Hooks in the header of a skill or a command: they count from the moment that it is used, when they are added."""

    name: str
    source: SettingsSource
    hooks: tuple[Hook, ...]


class LoadedSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the files say, settled.

    `hooks` are in configured order, each under a name of its own; hooks in agents' headers are among them and apply
    while that agent runs. `raw` is all other settings merged; `permissions` has one row per file, the weakest first.
    `refused` has the paths of files that are not trusted: they have no say.
    """

    places: SettingsFolders
    files: tuple[File, ...] = ()
    hooks: tuple[Hook, ...] = ()
    skills: tuple[Skill, ...] = ()
    problems: tuple[Problem, ...] = ()
    switches: Switches = Switches()
    permissions: tuple[Permissions, ...] = ()
    env: Mapping[str, str] = msgspec.field(default_factory=dict)
    raw: Mapping[str, Any] = msgspec.field(default_factory=dict)
    watched: tuple[str, ...] = ()
    source_problems: tuple[Problem, ...] = ()
    refused: frozenset[str] = frozenset()

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems that cost something its effect."""
        return tuple(problem for problem in self.problems if problem.severity == "error")

    @property
    def broken(self) -> tuple[File, ...]:
        """The files that could not be read at all."""
        return tuple(file for file in self.files if file.broken)

    @property
    def plugins(self) -> dict[str, str]:
        """The plugins in use: `NAME@WHERE` and the folder of each."""
        return {file.source.plugin: file.source.root for file in self.files if file.source.plugin}

    @property
    def model(self) -> str | None:
        """The `model` setting, if there is one."""
        model = self.raw.get("model")
        return model if isinstance(model, str) else None


def load(
    project_dir: str | Path = ".",
    *,
    setting_sources: str | Iterable[str] | None = None,
    settings: str | Path | Mapping[str, Any] | Sequence[Any] | None = None,
    plugin_dirs: Iterable[str | Path] = (),
    bare: bool = False,
    headers: bool = True,
    home: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    managed: str | Path | None = None,
) -> LoadedSettings:
    """Read all settings of a project; whatever is wrong with the files is in `problems`, and nothing is raised.

    `setting_sources` is `"user,project,local"` or less; `settings` is what `--settings` takes: a file or JSON text.
    Trust is not looked at here: see `trust.py`.
    """
    where = sources.places(project_dir, home=home, env=env, managed=managed)
    stated, problems = sources.settings_sources(where, setting_sources, settings, bare=bare)
    files = [read_settings(source) for source in stated]
    if bare:
        return merge_files(where, files, problems)
    brought, more = _plugin_files(files, plugin_dirs, where, headers=headers)
    files += brought
    kinds = {source.kind for source in stated}
    if headers:
        files += [read_header(one) for one in _headers(where, kinds)]
    if "project" in kinds:
        if is_file(servers := where.project_dir / ".mcp.json"):  # programs that the project wants started
            files.append(read_settings(where.file("mcp", servers, root=str(where.project_dir), foreign=True)))
        for source in memory_sources(where):
            imports = list(dict.fromkeys(_outside(Path(source.path), Path(source.root), set())))
            files.append(File(source=source, raw={"imports": imports} if imports else {}, found=True))
    return merge_files(where, files, (*problems, *more))


def _plugin_files(
    files: Sequence[File], plugin_dirs: Iterable[str | Path], where: SettingsFolders, *, headers: bool
) -> tuple[list[File], list[Problem]]:
    enabled, absent = sources.enabled_plugins(policy.merged(files), where)
    problems, brought = list(absent), []
    for folder, name in (*((folder, "") for folder in plugin_dirs), *((one, name) for name, one in enabled.items())):
        found, more = sources.plugin_sources(folder, where, name)
        problems += more
        brought += [read_settings(source) for source in found]
        for one, kind in ((one, kind) for one in found[:1] for kind in HEADERS if headers):
            headed = sources.header_sources(Path(one.root), kind, where, root=one.root, foreign=True, plugin=one.plugin)
            brought += map(read_header, headed)
    return brought, problems


def _headers(where: SettingsFolders, kinds: set[Kind]) -> Iterable[SettingsSource]:
    folder = where.project_dir / ".claude"
    at_home = where.config_dir == folder
    own = "user" in kinds or (at_home and "project" in kinds)
    for kind in HEADERS:
        if own:
            yield from sources.header_sources(where.config_dir, kind, where, root=str(where.home), foreign=False)
        if "project" in kinds and not at_home:
            yield from sources.header_sources(folder, kind, where, root=str(where.project_dir), foreign=True)


def read_settings(source: SettingsSource) -> File:
    """Read one settings file; a file that is not there says nothing, unless it was asked for by name."""
    value, text = source.value, source.text
    problems: tuple[Problem, ...] = ()
    if value is None and text is None:
        text, problems = read_text(source.path, source.label)
        if text is None and not problems and source.kind == "flag":
            problems = (Problem(source.label, "no such file; name a settings file or write JSON"),)
        if text is None:
            return File(source=source, problems=problems, broken=bool(problems), found=bool(problems))
    try:
        value, problems = (plain(value), ()) if text is None else parse_json(text, source.label)
    except RecursionError:
        value, problems = None, (Problem(source.label, "is nested too deeply"),)
    if isinstance(value, dict):
        return File(source=source, raw=value, problems=(*problems, *policy.misspelt(source, value)), found=True)
    wrong = Problem(source.label, f'expected an object, got {shown(value)}; write `{{"hooks": {{}}}}`')
    return File(source=source, problems=problems or (wrong,), broken=True, found=True)


_HEADER_KEYS = ("hooks", "model", "permissionMode", "mcpServers", "allowed-tools")
_TELLING = re.compile(r"hooks|permissionMode|mcpServers|^model:[^\n]*:", re.MULTILINE)
_GRANTING = re.compile(r"^allowed-tools:", re.MULTILINE)


def read_header(source: SettingsSource) -> File:
    """Read the header of an agent's, skill's or command's markdown file; YAML is parsed only where it may matter."""
    text, problems = read_text(source.path, source.label)
    if text is None:
        return File(source=source, problems=problems, broken=bool(problems), found=bool(problems))
    header = text.partition("\n---")[0]
    telling = _TELLING.search(header) is not None
    if not telling and not _GRANTING.search(header):
        return File(source=source, found=True)
    try:
        markdown = parse_markdown(text, source.label)
    except MissingExtra as error:
        if not telling:  # permissions alone: only the agent reads them, and it has the extra
            return File(source=source, found=True)
        return File(source=source, problems=(Problem(source.label, str(error)),), broken=True, found=True)
    fallback = Path(source.path).parent.name if source.kind == "skill" else Path(source.path).stem
    name = markdown.header.get("name")
    owner = name if isinstance(name, str) and name else fallback
    if source.plugin:  # what a plugin brings is called after it
        owner = f"{source.plugin.partition('@')[0]}:{owner}"
    raw = {key: markdown.header[key] for key in _HEADER_KEYS if markdown.header.get(key) is not None}
    if ":" not in str(raw.get("model", "")):  # the name of a model can do nothing; where to find one can
        raw.pop("model", None)
    if source.kind == "agent":  # what an agent may do without asking, its header cannot say
        raw.pop("allowed-tools", None)
    return File(
        source=msgspec.structs.replace(source, owner=owner), raw=raw, markdown=markdown, problems=markdown.problems,
        broken=any(problem.severity == "error" for problem in markdown.problems), found=True,
    )  # fmt: skip


def trusted_imports(loaded: LoadedSettings) -> frozenset[str]:
    """The files outside the project that its instructions may take in."""
    memory = [file for file in loaded.files if file.source.kind == "memory" and file.source.path not in loaded.refused]
    return frozenset(str(path) for file in memory for path in file.raw.get("imports", ()))


def merge_files(
    where: SettingsFolders, files: Iterable[File], problems: Iterable[Problem] = (), refused: Collection[str] = ()
) -> LoadedSettings:
    """What the files say together; those whose paths are `refused` (not trusted) have no say in hooks and `env`."""
    files, problems = tuple(files), tuple(problems)
    heard = [
        file if file.source.path not in refused else msgspec.structs.replace(file, raw=policy.harmless(file.raw))
        for file in files
    ]
    said = [*problems, *(problem for file in files for problem in file.problems)]
    switches, env = policy.read_switches(heard, said), policy.read_env(heard, said)
    permissions = policy.read_permissions(heard, said)
    hooks, skills = _hooks(heard, switches, said)
    return LoadedSettings(
        places=where, files=files, hooks=tuple(hooks), skills=tuple(skills), problems=tuple(said), switches=switches,
        permissions=permissions, env=env, raw=policy.merged(heard), watched=_watched(where, files),
        source_problems=problems, refused=frozenset(refused),
    )  # fmt: skip


def _hooks(files: Sequence[File], switches: Switches, problems: list[Problem]) -> tuple[list[Hook], list[Skill]]:
    hooks: list[Hook] = []
    skills: list[Skill] = []
    for file in files:
        if "hooks" not in file.raw:
            continue
        parsed = parse_hooks(file.raw["hooks"], file.source, switches.http)
        problems += parsed.problems
        if not switches.allows(file.source):
            continue
        if file.source.kind in ("skill", "command"):
            skills.append(Skill(name=file.source.owner or "", source=file.source, hooks=parsed.hooks))
        else:
            hooks += parsed.hooks
    unique, notes = without_duplicates(hooks)
    free = with_free_names(unique)
    taken = {hook.name for hook in free}
    for at, skill in enumerate(skills):
        named = with_free_names(without_duplicates(skill.hooks)[0], taken)
        taken |= {hook.name for hook in named}
        skills[at] = msgspec.structs.replace(skill, hooks=tuple(named))
    problems += notes
    return free, skills


def _watched(where: SettingsFolders, files: Iterable[File]) -> tuple[str, ...]:
    """Every path whose change may change the result: the files, and the folders new ones may appear in."""
    folder = where.project_dir / ".claude"
    plugins = dict.fromkeys(Path(file.source.root) for file in files if file.source.plugin)
    manifests = [root / ".claude-plugin" / "plugin.json" for root in plugins]
    parents = [Path(file.source.path).parent for file in files if file.source.kind in HEADERS]
    folders = [root / f"{kind}s" for root in (where.config_dir, folder, *plugins) for kind in HEADERS]
    paths = [*(Path(f.source.path) for f in files if f.source.path), *manifests, *folders, *parents]
    return tuple(dict.fromkeys(map(str, paths)))


# A project may put anything into its own files, and a model that is told to read them reads them. What it may not do
# before it is trusted is to take in files of its user: `@~/notes.md`, `@/etc/hosts`, or a link that leads there.

INCLUDE = re.compile(r"(?:^|\s)@((?:[^\s\\`]|\\ )+)")
FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
MOST_HOPS = 5
_MOST_RULES = 500
_LARGEST = 1 << 20


def includes(content: str, folder: Path) -> list[Path]:
    """The files a text names with `@path`, outside code; a name that is not a file is just a word."""
    prose = CODE.sub("", FENCE.sub("", content))
    names = (name.replace("\\ ", " ") for name in INCLUDE.findall(prose))
    return [Path(folder, expanded(name)) for name in names]


def is_outside(path: Path, root: Path) -> bool:
    """Whether a file lies outside a folder, links followed."""
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def memory_sources(where: SettingsFolders) -> tuple[SettingsSource, ...]:
    """The files of instructions in the project's folder."""
    root = where.project_dir
    rules = sorted((root / ".claude" / "rules").rglob("*.md"))[:_MOST_RULES]
    files = [*(root / name for name in ("CLAUDE.md", "AGENTS.md", ".claude/CLAUDE.md", "CLAUDE.local.md")), *rules]
    return tuple(where.file("memory", path, root=str(root), foreign=True) for path in files if is_file(path))


def _outside(path: Path, root: Path, seen: set[str], hops: int = 0) -> Iterator[str]:
    """What a file takes in from outside `root`, also by way of others inside it; itself, if it is a link to there."""
    if not is_file(path) or (real := os.path.realpath(path)) in seen:
        return
    seen.add(real)
    if is_outside(path, root):
        yield real
        return
    data = read_bytes(str(path), _LARGEST)
    if isinstance(data, bytes) and hops < MOST_HOPS:
        for target in includes(data.decode("utf-8", "replace"), path.parent):
            yield from _outside(target, root, seen, hops + 1)
