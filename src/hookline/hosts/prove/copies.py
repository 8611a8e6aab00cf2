"""A copy of what an agent reads of the user's home and project, to run it in; the originals are only read.

A project's hooks run only in a folder that the user trusts, and each agent has its own list of those. What holds for a
folder is carried over to its copy, so that a proof finds what the user's agent would do there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from hookline.hosts.host import Host
from hookline.hosts.install import jsonc, toml_edit
from hookline.hosts.install.entries import config_path
from hookline.hosts.prove.agents import Agent

Values = dict[str, Any]
Reader = Callable[[str], Values]
Writer = Callable[[str, Path, Any], str]


class TrustStore(NamedTuple):
    """One agent's list of folders."""

    path: str
    """The file, relative to the home."""
    read: Reader
    """What the text says of each folder."""
    write: Writer
    """The text that says something of a folder."""
    trusted: Any
    """What it says of a folder that is trusted."""
    inherits: bool = True
    """Whether a folder is trusted that lies in one that is; measured."""
    unlisted: bool = False
    """Whether it runs a project's hooks in a folder that the list does not have."""
    settings: str = ""
    """The file with the switch of all this, for an agent that does no work in a folder that is not trusted."""
    on: bool = True
    """Whether it is on where the switch is not set."""

    def governs(self, home: Path, project: Path) -> Any:
        """What is said of a folder, itself or one above it; `None` if nothing is."""
        known = self.read(_text(home / self.path))
        folders = [project, *project.parents] if self.inherits else [project]
        return next((known[str(folder)] for folder in folders if str(folder) in known), None)

    def trusts(self, home: Path, project: Path) -> bool:
        """Whether the agent runs a project's hooks."""
        said = self.governs(home, project)
        return self.unlisted or self._off(home) if said is None else said not in _NOT_TRUSTED

    def _off(self, home: Path) -> bool:
        if not self.settings:
            return False
        switch = jsonc.lookup(jsonc.parse(_text(home / self.settings)), ("security", "folderTrust", "enabled"))
        return not (self.on if switch is None else switch.value)


_NOT_TRUSTED = ("untrusted", "DO_NOT_TRUST", False)


def _toml_table(name: str, key: str) -> tuple[Reader, Writer]:
    def read(text: str) -> Values:
        rows = toml_edit.lookup(toml_edit.checked(text), (name,))
        return {folder: toml_edit.lookup(row, (key,)) for folder, row in _table(rows).items()}

    return read, lambda text, folder, value: toml_edit.set_value(text, (name, str(folder), key), value)


def _lists(parse: Reader, write: Callable[[str, tuple[str], list[str]], str], *names: str) -> tuple[Reader, Writer]:
    """Lists of folders; the name of the list says what holds for them, and the last one wins."""

    def read(text: str) -> Values:
        values = parse(text)
        return {folder: name for name in names for folder in values.get(name) or ()}

    return read, lambda text, folder, name: write(text, (name,), [*(parse(text).get(name) or ()), str(folder)])


def _json(text: str) -> Values:
    return _table(jsonc.parse(text).value)


def _read_json(text: str) -> Values:
    return {str(Path(name).parent) if value == "TRUST_PARENT" else name: value for name, value in _json(text).items()}


def _write_json(text: str, folder: Path, value: Any) -> str:
    return jsonc.put(text, (str(folder),), "TRUST_FOLDER" if value == "TRUST_PARENT" else value)


def _table(value: Any) -> Values:
    return value if isinstance(value, dict) else {}


STORES: Mapping[str, TrustStore] = MappingProxyType({
    "codex": TrustStore(".codex/config.toml", *_toml_table("projects", "trust_level"), "trusted", inherits=False,
                        unlisted=True),
    "gemini": TrustStore(".gemini/trustedFolders.json", _read_json, _write_json, "TRUST_FOLDER",
                         settings=".gemini/settings.json"),
    "qwen": TrustStore(".qwen/trustedFolders.json", _read_json, _write_json, "TRUST_FOLDER",
                       settings=".qwen/settings.json", on=False),
    "copilot": TrustStore(".copilot/config.json", *_lists(_json, jsonc.put, "trusted_folders", "trustedFolders"),
                          "trusted_folders"),
    "grok": TrustStore(".grok/trusted_folders.toml", *_toml_table("folders", "trusted"), trusted=True, inherits=False),
    "vibe": TrustStore(".vibe/trusted_folders.toml", *_lists(toml_edit.checked, toml_edit.set_value, "trusted",
                                                              "untrusted"), "trusted"),
})  # fmt: skip
"""The agents that have such a list; the others run a project's hooks wherever they are started."""


def trust_folder(host: str, home: Path, folder: Path) -> None:
    """Trust a folder in a home that is no one else's, as the user would."""
    store = STORES.get(host)
    if store is not None:
        _edit(home / store.path, lambda text: store.write(text, folder, store.trusted))


def carry_trust(host: str, home: Path, project: Path, copy: Path) -> bool:
    """Trust a project's copy as the project itself, in a copy of the home; whether the project's own files count there.

    An agent that works in trusted folders only is given one, without the project's files.
    """
    store = STORES.get(host)
    if store is None:
        return True
    counts, said = store.trusts(home, project), store.governs(home, project)
    if said is not None and (counts or not store.settings):
        _edit(home / store.path, lambda text: store.write(text, copy, said))
    if not counts and store.settings:
        trust_folder(host, home, copy)
        return False
    return True


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _edit(path: Path, edit: Callable[[str], str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(edit(_text(path)))


def copy_configuration(host: Host, agent: Agent, home: Path, project: Path, place: Path) -> None:
    """Copy the files, and trust the copy of the project as the project is trusted."""
    base = config_path(host, "user")
    depth = len(Path(host.config.user).parts)
    real = Path(*base.parts[: len(base.parts) - depth]) if not os.environ.get(host.config.home_env or "-") else None
    store = [STORES[host.name].path] if host.name in STORES else []
    for relative in dict.fromkeys([*agent.copies, *store]):
        first, _, rest = relative.partition("/")
        moved = os.environ.get(host.config.home_env) if host.config.home_env else None
        own = moved is not None and first == Path(host.config.user).parts[0]
        source = Path(moved) / rest if own and moved else (real or Path.home()) / relative
        _copy_one(source, home / relative)
    if host.name == "codex":
        _follow_hashes(home / ".codex/config.toml", {f"{base}:": f"{home / '.codex/hooks.json'}:",
                                                    f"{project}/": f"{place}/"})  # fmt: skip
    if carry_trust(host.name, home, project, place):
        for relative in agent.project_copies:
            _copy_one(project / relative, place / relative)


def _copy_one(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    elif source.is_file():
        shutil.copy(source, target)
        target.chmod(0o600)


def _follow_hashes(path: Path, moved: dict[str, str]) -> None:
    """Codex's trust is bound to where the hooks lie: in the copy they lie elsewhere. The hashes stay as they are."""
    text = path.read_text() if path.exists() else ""
    known = toml_edit.lookup(toml_edit.checked(text), ("hooks", "state"))
    for key, value in known.items() if isinstance(known, dict) else ():
        for before, after in moved.items():
            if key.startswith(before):
                text = toml_edit.set_value(text, ("hooks", "state", after + key.removeprefix(before)), value)
    if text:
        path.write_text(text)
