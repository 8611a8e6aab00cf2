"""Which agent CLIs are on this machine, and which version of each."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hookline.hosts.host import Host

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
            return Binary(path, _asked(path) if host.reports_version else _version(host, path))
    return None


def _places(host: Host) -> Iterator[Path]:
    for name in host.commands:
        found = shutil.which(name)
        if found:
            yield Path(found)
    base = lab()
    for pattern in host.binaries:
        yield from base.glob(pattern)
    if host.bundled:
        yield from (Path(folder) / host.bundled for folder in sys.path)
    for name in host.commands:
        yield base / "cli" / host.name / "node_modules" / ".bin" / name
        yield base / "venv" / host.name / "bin" / name


def _version(host: Host, path: Path) -> str:
    """The version that lies beside the binary, if one does; asking a Node program for it takes a second."""
    return _from_package(path) or _from_wheel(host, path) or _asked(path)


def _from_package(path: Path) -> str:
    for folder in list(Path(os.path.realpath(path)).parents)[:6]:
        file = folder / "package.json"
        if file.is_file():
            try:
                found = json.loads(file.read_text())
            except (OSError, ValueError):
                return ""
            return str(found.get("version") or "")
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
