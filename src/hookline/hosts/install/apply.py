"""Writing a host's configuration: merged, backed up, the same after a second time, and put back by `uninstall`."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from hookline.core.files import state_folder, write_atomically
from hookline.errors import ConfigError, HooklineError
from hookline.hosts.host import Host
from hookline.hosts.install.entries import HookEntry, Scope, config_path
from hookline.hosts.install.formats import OTHERS, script, with_entries, without_entries

_OURS = "# hookline: "


class FileBackup(msgspec.Struct):
    """One file as it was before, and a fingerprint of what we made of it."""

    path: str
    backup: str | None
    written: str
    mode: int


class InstallRecord(msgspec.Struct):
    """What one `install` did; kept so that `uninstall` can put everything back."""

    host: str
    scope: str
    project: str = ""
    hooks: str = ""
    settings: str = ""
    files: list[FileBackup] = []


class FileChange(NamedTuple):
    """A file to write, and what it would be without us."""

    path: Path
    before: bytes | None
    after: bytes
    mode: int = 0o600


def place(scope: Scope, project: Path | None) -> str:
    """The project that an installation belongs to; none if it is the user's everywhere."""
    return "" if scope == "user" else str(project or Path.cwd())


# -- installing -----------------------------------------------------------------------------------------------------


def plan(host: Host, scope: Scope, entries: list[HookEntry], project: Path | None = None) -> list[FileChange]:
    """The files to write; nothing is written yet, and what is wrong with the old ones is said now."""
    path = config_path(host, scope, project=project)
    if host.config.shape == "scripts":
        return [_script(host, path / entry.event, entry) for entry in entries]
    before, mode = _contents(path)
    text = _decoded(path, before)
    cut = _base(path, before, lambda: without_entries(host, text))
    base = _original_contents(path, cut, load_record(host.name, scope, place(scope, project)))
    after = _edited(path, lambda: with_entries(host, _decoded(path, base), entries))
    return [FileChange(path, base, after.encode(), mode)]


def _script(host: Host, path: Path, entry: HookEntry) -> FileChange:
    """An executable in the place of another one's, which is kept beside it and asked after ours."""
    before, _ = _contents(path)
    kept, _ = _contents(path.with_name(path.name + OTHERS))
    if before is not None and _OURS.encode() in before:
        before = kept
    return FileChange(path, before, script(host, entry, chained=before is not None).encode(), 0o755)


def apply(record: InstallRecord, changes: list[FileChange]) -> list[Path]:
    """Write the files; returns where the old ones were kept. Nothing is touched that is as it should be already."""
    old = load_record(record.host, record.scope, record.project)
    saved, kept = [], []
    for proposed in changes:
        check_writable(proposed.path)
        change = proposed._replace(before=_original_contents(proposed.path, proposed.before, old))
        backup = _backup(record, change)
        if backup is not None:
            kept.append(Path(backup))
        saved.append(FileBackup(str(change.path), backup, _print(change.after), change.mode))
        _write(change)
    record.files = saved
    _store(record)
    return kept


def _write(change: FileChange) -> None:
    path = change.path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if change.before is not None and change.mode == 0o755 and _OURS.encode() in change.after:
            beside = path.with_name(path.name + OTHERS)
            write_atomically(beside, change.before, mode=0o755)
        write_atomically(path, change.after, mode=change.mode)
    except OSError as error:
        raise ConfigError(str(path), f"cannot be written: {error.strerror or error}") from None


def _original_contents(path: Path, without_us: bytes | None, old: InstallRecord | None) -> bytes | None:
    """What the file was without us: what the first install found, as long as nobody has changed the file since."""
    saved = next((one for one in old.files if one.path == str(path)), None) if old else None
    current, _ = _contents(path)
    if saved is None or current is None or not _is_as_written(saved, current):
        return without_us
    return Path(saved.backup).read_bytes() if saved.backup else None


def _is_as_written(saved: FileBackup, data: bytes) -> bool:
    """Whether nobody has changed a file since, and what it was before is still known."""
    return _print(data) == saved.written and (saved.backup is None or Path(saved.backup).is_file())


def _backup(record: InstallRecord, change: FileChange) -> str | None:
    """Keep what the file was without us, under a name that the same contents get again."""
    if change.before is None:
        return None
    folder = _folder() / "backups"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{record.host}-{record.scope}-{_print(change.before)[:12]}-{change.path.name}"
    if not path.exists():
        write_atomically(path, change.before)
    return str(path)


# -- taking out -----------------------------------------------------------------------------------------------------


def uninstall(host: Host, scope: Scope, project: Path | None = None) -> list[Path]:
    """Take our entries out; a file that nobody changed since is as it was before, to the byte."""
    record = load_record(host.name, scope, place(scope, project))
    touched = [Path(saved.path) for saved in (record.files if record else ()) if _restore_file(saved)]
    path = config_path(host, scope, project=project)
    for file in _candidates(host, path):
        if file not in touched and _cut(host, file):
            touched.append(file)
    if record is not None:
        _record_path(record.host, record.scope, record.project).unlink(missing_ok=True)
    return touched


def _restore_file(saved: FileBackup) -> bool:
    """Whether a file is still as we wrote it, and is as it was before now."""
    path = Path(saved.path)
    data, mode = _contents(path)
    if data is None or not _is_as_written(saved, data):
        return False
    check_writable(path)
    if saved.backup is None:
        path.unlink()
    else:
        write_atomically(path, Path(saved.backup).read_bytes(), mode=mode)
    path.with_name(path.name + OTHERS).unlink(missing_ok=True)
    return True


def _candidates(host: Host, path: Path) -> list[Path]:
    if host.config.shape != "scripts":
        return [path]
    return [path / event for event in host.events]


def _cut(host: Host, path: Path) -> bool:
    """Take our entries out of a file that was changed since, or that another machine's Hookline wrote."""
    data, mode = _contents(path)
    if data is None:
        return False
    text = _decoded(path, data)
    if host.config.shape == "scripts":
        return _restore_script(path) if _OURS in text else False
    if host.config.shape == "plugin" and "// hookline: " not in text:
        return False
    after = _edited(path, lambda: without_entries(host, text))
    if after == text:
        return False
    check_writable(path)
    if host.config.own_file or not after.strip():
        path.unlink()
    else:
        write_atomically(path, after.encode(), mode=mode)
    return True


def _restore_script(path: Path) -> bool:
    beside = path.with_name(path.name + OTHERS)
    if beside.exists():
        beside.replace(path)
    else:
        path.unlink()
    return True


# -- files ----------------------------------------------------------------------------------------------------------


def _contents(path: Path) -> tuple[bytes | None, int]:
    try:
        return path.read_bytes(), stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return None, 0o600
    except OSError as error:
        raise ConfigError(str(path), f"cannot be read: {error.strerror or error}") from None


def _decoded(path: Path, data: bytes | None) -> str:
    try:
        return (data or b"").decode()
    except UnicodeDecodeError:
        raise ConfigError(str(path), "is not UTF-8; fix or remove it first") from None


def _edited(path: Path, edit: Callable[[], str]) -> str:
    try:
        return edit()
    except ConfigError:
        raise
    except HooklineError as error:
        raise ConfigError(str(path), f"{error}; fix it first, nothing was changed") from None


def _base(path: Path, before: bytes | None, edit: Callable[[], str]) -> bytes | None:
    """What the file is without us: as it is if we are not in it, else without our entries."""
    if before is None:
        return None
    base = _edited(path, edit).encode()
    return base if base.strip() else None


def check_writable(path: Path) -> None:
    """Raise a `ConfigError` if a file, or what a link leads to, may not be written."""
    target = Path(os.path.realpath(path))
    if path.is_symlink() and not target.parent.exists():
        raise ConfigError(str(path), f"is a link to `{target}`, whose folder does not exist")
    if target.exists() and not (stat.S_IMODE(target.stat().st_mode) & 0o222 and os.access(target, os.W_OK)):
        raise ConfigError(str(path), f"is read-only; run `chmod u+w {target}` first, or choose another --scope")


def _print(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _folder() -> Path:
    return state_folder() / "installs"


def _record_path(host: str, scope: str, project: str) -> Path:
    where = f"-{_print(project.encode())[:12]}" if project else ""
    return _folder() / f"{host}-{scope}{where}.json"


def _store(record: InstallRecord) -> None:
    path = _record_path(record.host, record.scope, record.project)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, msgspec.json.format(msgspec.json.encode(record)))


def load_record(host: str, scope: str, project: str = "") -> InstallRecord | None:
    """What an earlier `install` has noted, if it was here."""
    try:
        return msgspec.json.decode(_record_path(host, scope, project).read_bytes(), type=InstallRecord)
    except (OSError, msgspec.DecodeError):
        return None
