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
from typing import Any

from hookline.hosts.host import Host
from hookline.hosts.install import jsonc, toml_edit
from hookline.hosts.install.entries import config_path
from hookline.hosts.proof_recipe import ProofRecipe, TrustedFolders
from hookline.hosts.table import AGENTS

Values = dict[str, Any]
_NOT_TRUSTED = ("untrusted", "DO_NOT_TRUST", False)
STORES: Mapping[str, TrustedFolders] = MappingProxyType({
    name: agent.trust for name, agent in AGENTS.items() if agent.trust
})  # fmt: skip


def governs(store: TrustedFolders, home: Path, project: Path) -> Any:
    """What is said of a folder, itself or one above it; `None` if nothing is."""
    known = _read(store, _text(home / store.path))
    folders = [project, *project.parents] if store.inherits else [project]
    return next((known[str(folder)] for folder in folders if str(folder) in known), None)


def trusts(store: TrustedFolders, home: Path, project: Path) -> bool:
    """Whether the agent runs a project's hooks."""
    said = governs(store, home, project)
    return store.unlisted or _is_off(store, home) if said is None else said not in _NOT_TRUSTED


def _is_off(store: TrustedFolders, home: Path) -> bool:
    if not store.settings:
        return False
    switch = jsonc.lookup(jsonc.parse(_text(home / store.settings)), ("security", "folderTrust", "enabled"))
    return not (store.on if switch is None else switch.value)


def _parse(store: TrustedFolders, text: str) -> Values:
    return toml_edit.checked(text) if store.path.endswith(".toml") else _table(jsonc.parse(text).value)


def _put(store: TrustedFolders, text: str, key: tuple[str, ...], value: Any) -> str:
    return (toml_edit.set_value if store.path.endswith(".toml") else jsonc.put)(text, key, value)


def _read(store: TrustedFolders, text: str) -> Values:
    """What the text says of each folder."""
    values = _parse(store, text)
    if store.form == "table":
        name, key = store.names
        return {folder: toml_edit.lookup(row, (key,)) for folder, row in _table(values.get(name)).items()}
    if store.form == "lists":
        return {folder: name for name in store.names for folder in values.get(name) or ()}
    return {str(Path(name).parent) if value == "TRUST_PARENT" else name: value for name, value in values.items()}


def _write(store: TrustedFolders, text: str, folder: Path, value: Any) -> str:
    """The text that says something of a folder."""
    if store.form == "table":
        name, key = store.names
        return _put(store, text, (name, str(folder), key), value)
    if store.form == "lists":
        return _put(store, text, (value,), [*(_parse(store, text).get(value) or ()), str(folder)])
    return _put(store, text, (str(folder),), "TRUST_FOLDER" if value == "TRUST_PARENT" else value)


def _table(value: Any) -> Values:
    return value if isinstance(value, dict) else {}


def trust_folder(host: str, home: Path, folder: Path) -> None:
    """Trust a folder in a home that is no one else's, as the user would."""
    store = STORES.get(host)
    if store is not None:
        _edit(home / store.path, lambda text: _write(store, text, folder, store.trusted))


def carry_trust(host: str, home: Path, project: Path, copy: Path) -> bool:
    """Trust a project's copy as the project itself, in a copy of the home; whether the project's own files count there.

    An agent that works in trusted folders only is given one, without the project's files.
    """
    store = STORES.get(host)
    if store is None:
        return True
    counts, said = trusts(store, home, project), governs(store, home, project)
    if said is not None and (counts or not store.settings):
        _edit(home / store.path, lambda text: _write(store, text, copy, said))
    if not counts and store.settings:
        trust_folder(host, home, copy)
        return False
    return True


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _edit(path: Path, edit: Callable[[str], str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(edit(_text(path)))


def copy_configuration(host: Host, agent: ProofRecipe, home: Path, project: Path, place: Path) -> None:
    """Copy the files, and trust the copy of the project as the project is trusted."""
    base = config_path(host, "user")
    depth = len(Path(host.config.user).parts)
    real = Path(*base.parts[: len(base.parts) - depth]) if not os.environ.get(host.config.home_env or "-") else None
    store = [agent.trust.path] if agent.trust else []
    for relative in dict.fromkeys([*agent.copies, *store]):
        first, _, rest = relative.partition("/")
        moved = os.environ.get(host.config.home_env) if host.config.home_env else None
        own = moved is not None and first == Path(host.config.user).parts[0]
        source = Path(moved) / rest if own and moved else (real or Path.home()) / relative
        _copy_one(source, home / relative)
    if host.hook_trust:
        copy = home / host.config.user
        _follow_hashes(copy.with_name(host.hook_trust.file), {f"{base}:": f"{copy}:", f"{project}/": f"{place}/"})
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
    """The trust in hooks is bound to where they lie: in the copy they lie elsewhere. The hashes stay as they are."""
    text = path.read_text() if path.exists() else ""
    known = toml_edit.lookup(toml_edit.checked(text), ("hooks", "state"))
    for key, value in known.items() if isinstance(known, dict) else ():
        for before, after in moved.items():
            if key.startswith(before):
                text = toml_edit.set_value(text, ("hooks", "state", after + key.removeprefix(before)), value)
    if text:
        path.write_text(text)
