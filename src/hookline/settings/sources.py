"""Where settings come from, in the order their hooks are configured.

managed · user · project · local · flag (`--settings`) · plugins · headers of agent and skill markdown files. For
switches and single values the strongest source decides: managed, then flag, local, project, user.
"""

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from types import UnionType
from typing import Any, Literal

import msgspec

from hookline.errors import did_you_mean
from hookline.settings.files import Problem, expanded, is_dir, is_file, read_json, shown

Kind = Literal["managed", "user", "project", "local", "flag", "plugin", "agent", "skill", "command", "mcp", "memory"]
HeaderKind = Literal["agent", "skill", "command"]
HEADERS: tuple[HeaderKind, ...] = ("agent", "skill", "command")
SETTING_SOURCES = ("user", "project", "local")
STRENGTH: tuple[Kind, ...] = ("user", "project", "local", "flag", "managed")  # of single values, the later wins

MANAGED = {  # where administrators put settings, by platform
    "darwin": "/Library/Application Support/ClaudeCode/managed-settings.json",
    "win32": r"C:\Program Files\ClaudeCode\managed-settings.json",
}


class SettingsSource(msgspec.Struct, frozen=True, kw_only=True):
    """One place that settings come from: a file, or a text in its place.

    `label` is how messages name it; `root` is the folder whose code its hooks may run (a project's, a plugin's), and
    with `foreign` that code is another person's: it needs trust. `owner` names the agent or skill of a header.
    """

    kind: Kind
    label: str
    path: str = ""
    text: str | None = None
    value: Any = None
    root: str = ""
    foreign: bool = False
    plugin: str | None = None
    plugin_data: str | None = None
    owner: str | None = None

    @property
    def plugin_root(self) -> str | None:
        return self.root if self.plugin else None


Sources = tuple[SettingsSource, ...]


class SettingsFolders(msgspec.Struct, frozen=True, kw_only=True):
    """The folders that settings are looked for in."""

    project_dir: Path
    home: Path
    config_dir: Path
    managed: Path

    def label(self, path: str | Path) -> str:
        """A path as people write it: relative to the project, or to `~`."""
        full = absolute_path(path)
        for root, prefix in ((self.project_dir, ""), (self.home, "~/")):
            if full != root and full.is_relative_to(root):
                return f"{prefix}{full.relative_to(root).as_posix()}"
        return str(full)

    def file(self, kind: Kind, path: Path, **more: Any) -> SettingsSource:
        """A file as a source, under the name that people know it by."""
        return SettingsSource(kind=kind, label=self.label(path), path=str(path), **more)


def absolute_path(path: str | Path) -> Path:
    """An absolute path without `..`, links left as they are."""
    return Path(os.path.abspath(expanded(path)))  # noqa: PTH100 - `Path.resolve` would follow links


def find_project(start: str | Path = ".", home: str | Path | None = None) -> Path:
    """The project that a folder belongs to: the nearest one above with a `.claude` folder, else the folder itself.

    The search ends at the root of a repository and below the home folder, whose `.claude` is the user's own.
    """
    begin, at_home = absolute_path(start), absolute_path(home or os.environ.get("HOME") or "~")
    for folder in (begin, *begin.parents):
        if folder == at_home:
            break
        if is_dir(folder / ".claude"):
            return folder
        if (folder / ".git").exists():
            break
    return begin


def places(
    project_dir: str | Path = ".",
    *,
    home: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    managed: str | Path | None = None,
) -> SettingsFolders:
    """Find the folders.

    `CLAUDE_CONFIG_DIR` moves the user's own. `HOOKLINE_MANAGED_SETTINGS` names the administrator's file only where none
    is in its usual place: a program's caller can set a variable, and must not drop what stands there.
    """
    moved = env is not None or home is None  # a home folder given by hand is meant, unless the environment is, too
    env = os.environ if env is None else env
    at_home = absolute_path(home or env.get("HOME") or "~")
    config_dir = env.get("CLAUDE_CONFIG_DIR") if moved else None
    usual = MANAGED.get(sys.platform, "/etc/claude-code/managed-settings.json")
    stated = "" if os.path.lexists(usual) else env.get("HOOKLINE_MANAGED_SETTINGS")
    return SettingsFolders(
        project_dir=absolute_path(project_dir),
        home=at_home,
        config_dir=absolute_path(config_dir or at_home / ".claude"),
        managed=absolute_path(managed or stated or usual),
    )


def settings_sources(
    where: SettingsFolders, wanted: str | Iterable[str] | None = None, settings: Any = None, *, bare: bool = False
) -> tuple[Sources, tuple[Problem, ...]]:
    """The settings files to read, existing or not, in configured order.

    `wanted` is a list or `"user,project"` (all three unless said; `""` is none). `settings` (`--settings`: a file, JSON
    text, an object, or several of these) counts in any case. With `bare` only the administrator's are left.
    """
    managed = SettingsSource(kind="managed", label=str(where.managed), path=str(where.managed))
    if bare:
        return (managed,), ()
    words = wanted.split(",") if isinstance(wanted, str) else wanted
    names = SETTING_SOURCES if words is None else [word.strip() for word in words if word.strip()]
    problems = tuple(
        Problem("--setting-sources", f"unknown source `{name}`{did_you_mean(name, SETTING_SOURCES)}; "
                "write any of `user,project,local`")
        for name in names
        if name not in SETTING_SOURCES
    )  # fmt: skip
    several = isinstance(settings, Sequence) and not isinstance(settings, str)
    given = settings if several else () if settings is None else (settings,)
    return (managed, *_standard(where, names), *(_flag(one, where) for one in given)), problems


def _standard(where: SettingsFolders, wanted: Sequence[str]) -> Iterable[SettingsSource]:
    folder = where.project_dir / ".claude"
    at_home = where.config_dir == folder  # then the project's settings are the user's own
    if "user" in wanted:
        yield where.file("user", where.config_dir / "settings.json")
    if "project" in wanted and not (at_home and "user" in wanted):
        yield where.file("project", folder / "settings.json", root=str(where.project_dir), foreign=not at_home)
    if "local" in wanted:
        yield where.file("local", folder / "settings.local.json", root=str(where.project_dir), foreign=not at_home)


def resolve_paths(settings: Any) -> Any:
    """What `--settings` was given, its file names made absolute, so that it means the same wherever one is later."""
    if isinstance(settings, list | tuple):
        return [resolve_paths(one) for one in settings]
    if isinstance(settings, Path) or (isinstance(settings, str) and not _is_inline(settings)):
        return absolute_path(settings)
    return settings


def _is_inline(text: str) -> bool:
    return text.lstrip().startswith(("{", "["))


def _flag(given: str | Path | Mapping[str, Any], where: SettingsFolders) -> SettingsSource:
    if isinstance(given, Mapping):
        return SettingsSource(kind="flag", label="--settings", value=dict(given))
    if isinstance(given, str) and _is_inline(given):
        return SettingsSource(kind="flag", label="--settings", text=given)
    return where.file("flag", absolute_path(given))


def plugin_sources(folder: str | Path, where: SettingsFolders, name: str = "") -> tuple[Sources, tuple[Problem, ...]]:
    """What a plugin's folder declares: `hooks/hooks.json`, `.mcp.json`, `hooks` and `mcpServers` of its `plugin.json`.

    `name` is how hooks name the plugin (`plug@market`); a folder given by hand is called `NAME@inline`.
    """
    root = absolute_path(folder)
    if not is_dir(root):
        return (), (Problem(where.label(root), "no such plugin folder; name one with `.claude-plugin/plugin.json`"),)
    path = root / ".claude-plugin" / "plugin.json"
    table, problems = _manifest(path, where.label(path))
    if table is None:
        return (), problems
    plugin = name or f"{table.get('name') or root.name}@inline"
    data = where.config_dir / "plugins" / "data" / re.sub(r"[^\w-]", "-", plugin)
    standard = root / "hooks" / "hooks.json"
    at = partial(where.file, root=str(root), foreign=True, plugin=plugin, plugin_data=str(data))
    declared = (table.get(key, []) for key in ("hooks", "mcpServers"))
    hooks, servers = (value if isinstance(value, list) else [value] for value in declared)
    found, said = [at("plugin", standard)], []
    for one in hooks:  # the name of a file, or hooks themselves
        if isinstance(one, str):
            found += [at("plugin", file)] if (file := absolute_path(root / one)) != standard else []
        elif isinstance(one, dict):
            found.append(at("plugin", path, value=one if isinstance(one.get("hooks"), dict) else {"hooks": one}))
        else:
            message = f'expected the name of a file, got {shown(one)}; write `"./hooks/hooks.json"`'
            said.append(Problem(f"{where.label(path)}: hooks", message))
    named = [absolute_path(root / one) for one in servers if isinstance(one, str)]
    found += [at("mcp", file) for file in dict.fromkeys([root / ".mcp.json", *named]) if is_file(file)]
    found += [at("mcp", path, value={"mcpServers": one}) for one in servers if isinstance(one, dict)]
    return tuple(found), tuple(said)


_MANIFEST: Mapping[str, type | UnionType] = {
    "name": str, "version": str, "description": str, "hooks": str | list | dict, "commands": str | list | dict,
    "agents": str | list, "skills": str | list, "mcpServers": str | list | dict,
}  # fmt: skip
"""What the entries of a plugin.json may be; Claude Code uses no plugin of which one is something else."""


def _manifest(path: Path, label: str) -> tuple[dict[str, Any] | None, tuple[Problem, ...]]:
    """A plugin's own description, empty if it has none; None if it is not valid: then the plugin is not used."""
    table, problems = read_json(str(path), label)
    if table is None and not problems:
        return {}, ()
    misfits = [problem.message for problem in problems]
    if not misfits and not isinstance(table, dict):
        misfits = [f'expected an object such as `{{"name": "my-plugin"}}`, got {shown(table)}']
    elif not misfits:
        name = table.get("name")
        if not isinstance(name, str) or not name or any(character.isspace() for character in name):
            misfits = [f'expected a `name` without spaces, got {shown(name)}; write `"name": "my-plugin"`']
        wrong = [key for key, kinds in _MANIFEST.items() if key in table and not isinstance(table[key], kinds)]
        misfits += [f"`{key}` cannot be {shown(table[key])}" for key in wrong]
    return (None, (Problem(label, f"{misfits[0]}; the plugin is not used"),)) if misfits else (table, ())


def enabled_plugins(raw: Mapping[str, Any], where: SettingsFolders) -> tuple[dict[str, str], tuple[Problem, ...]]:
    """Every installed plugin that `enabledPlugins` switches on, with its folder."""
    table = raw.get("enabledPlugins")
    names = [name for name, on in table.items() if on is True] if isinstance(table, dict) else []
    if not names:
        return {}, ()
    listed = where.config_dir / "plugins" / "installed_plugins.json"
    installed, problems = read_json(str(listed), where.label(listed))
    known: Any = installed.get("plugins") if isinstance(installed, dict) else None
    folders = {}
    for name in names:
        entry = known.get(name) if isinstance(known, dict) else None
        entry = entry[0] if isinstance(entry, list) and entry else entry
        path = entry.get("installPath") if isinstance(entry, dict) else None
        if isinstance(path, str) and path:
            folders[name] = path
        else:
            absent = Problem(f"enabledPlugins.{name}", "is not installed, so its hooks do not run", "warning")
            problems = (*problems, absent)
    return folders, problems


def header_sources(
    folder: Path, kind: HeaderKind, where: SettingsFolders, *, root: str, foreign: bool, plugin: str | None = None
) -> Sources:
    """The agents', skills' or commands' markdown files of a `.claude` (or plugin) folder, sorted by name."""
    paths = sorted(_markdown(folder / f"{kind}s", *((2, "SKILL.md") if kind == "skill" else (4, ""))))
    return tuple(where.file(kind, path, root=root, foreign=foreign, plugin=plugin) for path in paths[:_MOST_HEADERS])


_MOST_HEADERS, _MOST_ENTRIES = 500, 5000


def _markdown(folder: Path, levels: int, name: str) -> Iterable[Path]:
    """Markdown files in a folder, a few levels deep; it may be a link to anywhere, so only so many entries are seen."""
    waiting, seen = [(folder, 1)], 0
    while waiting and seen < _MOST_ENTRIES:
        at, level = waiting.pop(0)
        try:
            with os.scandir(at) as found:
                entries = sorted(islice(found, _MOST_ENTRIES), key=lambda entry: entry.name)
        except (OSError, ValueError):
            continue
        seen += len(entries)
        folders = dict.fromkeys(Path(entry.path) for entry in entries if is_dir(entry.path))
        files = (Path(one.path) for one in entries if one.name == name or (not name and one.name.endswith(".md")))
        if level < levels:
            waiting += [(one, level + 1) for one in folders]
        if not name or level == levels:
            yield from (one for one in files if one not in folders)
