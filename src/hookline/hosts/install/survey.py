"""Every host at a glance: is it here, is it hooked, was it proven."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from hookline.core.files import private_folder, state_folder, write_atomically
from hookline.core.wire.json_text import read_as, read_object
from hookline.errors import HooklineError
from hookline.hosts.host import ABILITIES, Host, able
from hookline.hosts.install.apply import all_commands
from hookline.hosts.install.entries import HookSource, Scope, config_path, is_ours, source_of
from hookline.hosts.table import HOSTS

_NUMBER = re.compile(r"\d+\.\d+(?:\.\d+)?(?:[-+.\w]*)?")


class Binary(NamedTuple):
    """An agent CLI on this machine."""

    path: Path
    version: str


def older_than_measured(host: Host, version: str) -> str:
    """What to say of a version that is older than the one a host was measured on; nothing of any other."""
    if not (host.verified and version) or _order(version) >= _order(host.verified):
        return ""
    return f"{host.title} {version} is older than {host.verified}, the version that was measured; update it"


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def lab() -> Path:
    """Where `tools/hosts/install` puts the CLIs it fetches for tests and proofs."""
    return Path(os.environ.get("HOSTLAB") or Path.home() / ".cache" / "hookline-hosts")


def find_binary(host: Host) -> Binary | None:
    """The host's executable: on PATH, else where the tests keep theirs."""
    for path in _places(host):
        if path.is_file() and os.access(path, os.X_OK):
            # beside most binaries lies their version: asking a Node program for it takes a second
            known = "" if host.reports_version else _from_package(path) or _from_wheel(host, path)
            return Binary(path, known or _asked(path))
    return None


def _places(host: Host) -> Iterator[Path]:
    name = host.executable
    if found := shutil.which(name):
        yield Path(found)
    base = lab()
    for pattern in host.binaries:
        yield from base.glob(pattern)
    if host.bundled:
        yield from (Path(folder) / host.bundled for folder in sys.path)
    yield base / "cli" / host.name / "node_modules" / ".bin" / name
    yield base / "venv" / host.name / "bin" / name


def _from_package(path: Path) -> str:
    for folder in list(Path(os.path.realpath(path)).parents)[:6]:
        with suppress(OSError):
            return str((read_object((folder / "package.json").read_bytes()) or {}).get("version") or "")
    return ""


def _from_wheel(host: Host, path: Path) -> str:
    """For a script that pip has made: its shebang's interpreter knows the packages beside it."""
    site = path.parent.parent / "lib"
    for found in site.glob(f"python*/site-packages/{host.distribution or path.name}-*.dist-info"):
        return found.name.removesuffix(".dist-info").rpartition("-")[2]
    return ""


def _asked(path: Path) -> str:
    try:
        told = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    number = _NUMBER.search(told.stdout)
    return number[0] if number else ""


class Proof(msgspec.Struct):
    """What the last `hookline prove` said of a host."""

    version: str
    date: str
    holds: bool


class HostRow(NamedTuple):
    """One host."""

    host: Host
    version: str  # of the binary on this machine; empty if there is none
    path: str
    hooked: tuple[Scope, ...]
    proof: Proof | None

    @property
    def proven(self) -> bool:
        return self.proof is not None and self.proof.holds and self.proof.version == self.version

    def to_dict(self) -> dict[str, Any]:
        return {
            "host": self.host.name,
            "title": self.host.title,
            "measured": self.host.verified or None,
            "installed": self.version or None,
            "path": self.path or None,
            "hooked": list(self.hooked),
            "proven": self.proven,
            "proof": None if self.proof is None else msgspec.to_builtins(self.proof),
            "abilities": {name: able(self.host, name) for name in ABILITIES},
            "notes": list(self.host.notes),
        }


def survey(project: Path | None = None) -> list[HostRow]:
    """All hosts, in the order of the table; versions are asked for at the same time."""
    proofs = load_proofs()
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(find_binary, HOSTS.values())
    rows = []
    for host, binary in zip(HOSTS.values(), found, strict=True):
        version, path = (binary.version, str(binary.path)) if binary else ("", "")
        rows.append(HostRow(host, version, path, hooked(host, project), proofs.get(host.name)))
    return rows


def hooked(host: Host, project: Path | None = None) -> tuple[Scope, ...]:
    """The scopes whose files ask Hookline."""
    return tuple(scope for scope in scopes(host, project) if configured(host, scope, project))


def scopes(host: Host, project: Path | None = None) -> tuple[Scope, ...]:
    """Whose files a host reads here; in the home folder itself the user's and the project's may be the same."""
    if not host.config.project or config_path(host, "project", project=project) == config_path(host, "user"):
        return ("user",)
    return ("user", "project")


def configured(host: Host, scope: Scope, project: Path | None = None) -> list[tuple[str, str]]:
    """Our entries in a host's files: its event and the command; a file that cannot be read has none."""
    path = config_path(host, scope, project=project)
    return [(event, command) for event, command in commands_in(host, path) if is_ours(command, host)]


def commands_in(host: Host, path: Path) -> list[tuple[str, str]]:
    """Every command in a host's hook file, ours or not; of a folder of scripts, those of ours."""
    try:
        if host.config.kind == "scripts":  # another one's script is its own affair
            texts = {event: (path / event).read_text() for event in host.events if (path / event).is_file()}
            return [(event, line) for event, text in texts.items() if "# hookline: " in text
                    for line in text.splitlines() if " answer " in line and not line.startswith("#")]  # fmt: skip
        return all_commands(host, path.read_text())
    except (OSError, UnicodeDecodeError, HooklineError, json.JSONDecodeError):
        return []


def silenced_user_hooks(host: Host, event: str, own: HookSource) -> list[HookSource]:
    """The user's other hooks on an event that are not asked because of a project's file; its entry must ask them."""
    if not host.config.replaces:
        return []
    found = (source_of(command) for theirs, command in configured(host, "user") if theirs == event)
    return [source for source in dict.fromkeys(found) if source != own]


def load_proofs() -> dict[str, Proof]:
    """What the last proofs said, by host."""
    with suppress(OSError):
        return read_as((state_folder() / "proofs.json").read_bytes(), dict[str, Proof]) or {}
    return {}


def note_proof(host: Host, proof: Proof) -> None:
    """Keep what a proof said."""
    path = private_folder(state_folder()) / "proofs.json"
    write_atomically(path, msgspec.json.format(msgspec.json.encode({**load_proofs(), host.name: proof})))
