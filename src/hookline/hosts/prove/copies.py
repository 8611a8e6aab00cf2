"""A copy of what an agent reads of the user's home and project, to run it in; the originals are only read."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from hookline.hosts.host import Host
from hookline.hosts.install import toml_edit
from hookline.hosts.install.entries import config_path
from hookline.hosts.prove.agents import Agent
from hookline.hosts.prove.folder_trust import STORES, carry_trust


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
