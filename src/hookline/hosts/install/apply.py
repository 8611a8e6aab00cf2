"""Writing a host's configuration: merged, backed up, the same after a second time, and put back by `uninstall`."""

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from zlib import crc32

import msgspec

from hookline.core.files import private_folder, state_folder, write_atomically
from hookline.core.wire.json_text import read_as
from hookline.errors import ConfigError, HooklineError
from hookline.hosts.host import MARGIN, ROWS, Config, HookEntry, Host, fill
from hookline.hosts.install import jsonc, toml_edit
from hookline.hosts.install.entries import Scope, config_path, is_ours

_OURS = "# hookline: "
_MARK = "\ufeff"
_OTHERS = ".before-hookline"  # what another one's executable for an event is called while ours is in its place
_SCRIPT = """#!/bin/sh
# hookline: `hookline uninstall {host}` takes this out
{command}
"""
_CHAIN = """#!/bin/sh
# hookline: `hookline uninstall {host}` takes this out
# ours is asked first; if it has nothing to say, the one that was here before answers
payload=$(cat)
answer=$(printf '%s' "$payload" | {{ {command}; }})
status=$?
if [ -n "$answer" ] || [ "$status" -ne 0 ]; then
    printf '%s' "$answer"
    exit "$status"
fi
printf '%s' "$payload" | "$0{others}"
"""
Edit = Callable[[str], str]
"""What is done to a text of plain lines, whose last one ends."""


class FileBackup(msgspec.Struct):
    """One file as it was before, and a fingerprint of what we made of it."""

    path: str
    backup: str | None
    written: str
    mode: int

    def fits(self, data: bytes) -> bool:
        """Whether a file was not changed since, and what it was before is still known."""
        return _print(data) == self.written and (self.backup is None or Path(self.backup).is_file())


class InstallRecord(msgspec.Struct):
    """What one `install` did; kept so that `uninstall` can put everything back."""

    host: str
    scope: str
    project: str = ""
    hooks: str = ""
    settings: str = ""
    files: list[FileBackup] = []
    trust: dict[str, str] = {}  # the hashes that were noted for the host, which runs no hook without them


class FileChange(NamedTuple):
    """A file to write, and what it would be without us."""

    path: Path
    before: bytes | None  # nothing, if the file would not be there
    after: bytes
    mode: int = 0o600


def place(scope: Scope, project: Path | None) -> str:
    """The project that an installation belongs to; none if it is the user's everywhere."""
    return "" if scope == "user" else str(project or Path.cwd())


def plan(host: Host, scope: Scope, entries: list[HookEntry], project: Path | None = None) -> list[FileChange]:
    """The files to write; nothing is written yet, and what is wrong with the old ones is said now."""
    path = config_path(host, scope, project=project)
    old = load_record(host.name, scope, place(scope, project))
    if host.config.kind == "scripts":
        return [_plan_script(host, path / entry.event, entry, old) for entry in entries]
    return [plan_edit(path, old, partial(_without, host), partial(_appended, host.config, entries=entries))]


def plan_edit(path: Path, old: InstallRecord | None, cut: Edit, add: Edit) -> FileChange:
    """A file of the host's, first without what is ours, then with it."""
    current, mode = _contents(path)
    with _about(path):
        rest = keep_form((current or b"").decode(), cut).encode()
        made_by_us = current is None or (rest != current and not rest.strip())
        base = _original_contents(path, None if made_by_us else rest, old)
        return FileChange(path, base, keep_form((base or b"").decode(), add).encode(), mode)


def _plan_script(host: Host, path: Path, entry: HookEntry, old: InstallRecord | None) -> FileChange:
    """An executable in the place of another one's, which is kept beside it and asked after ours."""
    before, _ = _contents(path)
    if before is not None and _OURS.encode() in before:
        before, _ = _contents(_beside(path))
    before = _original_contents(path, before, old)
    form = _SCRIPT if before is None else _CHAIN
    text = form.format(host=host.name, command=entry.command, others=_OTHERS)
    return FileChange(path, before, text.encode(), 0o755)


def apply(record: InstallRecord, changes: list[FileChange]) -> list[Path]:
    """Write the files; returns where the old ones were kept. All of them are written, or none is."""
    for change in changes:
        check_writable(change.path)
    backups = [_backup(record, change) for change in changes]
    record.files = [FileBackup(str(change.path), backup, _print(change.after), change.mode)
                    for change, backup in zip(changes, backups, strict=True)]  # fmt: skip
    current = [_contents(change.path) for change in changes]
    try:
        for change in changes:
            _write(change)
        noted = _record_path(record.host, record.scope, record.project)
        with _about(noted, "written"):
            private_folder(noted.parent)
            write_atomically(noted, msgspec.json.format(msgspec.json.encode(record)))
    except ConfigError:  # the first problem is the one to be told of
        for change, (data, mode) in zip(changes, current, strict=True):
            with suppress(OSError):
                if data is None:
                    change.path.unlink(missing_ok=True)
                elif change.path.read_bytes() != data:
                    write_atomically(change.path, data, mode=mode)
        raise
    return [Path(backup) for backup in backups if backup is not None]


def _write(change: FileChange) -> None:
    with _about(change.path, "written"):
        change.path.parent.mkdir(parents=True, exist_ok=True)
        if change.before is not None and change.mode == 0o755 and _OURS.encode() in change.after:
            write_atomically(_beside(change.path), change.before, mode=0o755)
        write_atomically(change.path, change.after, mode=change.mode)


def _original_contents(path: Path, without_us: bytes | None, old: InstallRecord | None) -> bytes | None:
    """What the file was without us: what the first install found, as long as the file was not changed since."""
    saved = next((one for one in old.files if one.path == str(path)), None) if old else None
    current, _ = _contents(path)
    if saved is None or current is None or not saved.fits(current):
        return without_us
    return Path(saved.backup).read_bytes() if saved.backup else None


def _backup(record: InstallRecord, change: FileChange) -> str | None:
    """Keep what the file was without us, under a name that the same contents get again."""
    if change.before is None:
        return None
    folder = private_folder(state_folder() / "installs" / "backups")
    path = folder / f"{record.host}-{record.scope}-{_print(change.before)[:12]}-{change.path.name}"
    if not path.exists():
        write_atomically(path, change.before)
    return str(path)


def uninstall(
    host: Host, scope: Scope, project: Path | None = None, more: Mapping[Path, Edit] = MappingProxyType({})
) -> list[Path]:
    """Take out what is ours, in `more` files as well; one that was not changed since is as it was, to the byte."""
    record = load_record(host.name, scope, place(scope, project))
    path = config_path(host, scope, project=project)
    if host.config.kind == "scripts":
        return take_out(record, more, [path / event for event in host.events])

    def cut(text: str) -> str:  # nothing is left of a file that is ours alone, if there is no other's entry in it
        rest = _without(host, text)
        return rest if not host.config.own_file or all_commands(host, rest) else ""

    return take_out(record, {**more, path: cut})


def take_out(record: InstallRecord | None, cuts: Mapping[Path, Edit], scripts: Sequence[Path] = ()) -> list[Path]:
    """Put back what was not changed since, cut our part out of the rest, and forget the record; what changed."""
    saved = {Path(one.path): one for one in (record.files if record else ())}
    changed = [file for file, one in saved.items() if _restore_file(file, one)]
    restored = set(changed)
    changed += [file for file in scripts if file not in restored and _restore_script(file)]
    changed += [file for file, edit in cuts.items() if file not in restored and _cut(file, edit, saved.get(file))]
    if record is not None:
        _record_path(record.host, record.scope, record.project).unlink(missing_ok=True)
    return changed


def _restore_file(path: Path, saved: FileBackup) -> bool:
    """Whether a file is still as we wrote it, and is as it was before now."""
    data, mode = _contents(path)
    if data is None or not saved.fits(data):
        return False
    check_writable(path)
    if saved.backup is None:
        path.unlink()
    else:
        write_atomically(path, Path(saved.backup).read_bytes(), mode=mode)
    _beside(path).unlink(missing_ok=True)
    return True


def _cut(path: Path, edit: Edit, saved: FileBackup | None) -> bool:
    """Take our part out of a file that was changed since, or that another machine's Hookline wrote."""
    data, mode = _contents(path)
    if data is None:
        return False
    with _about(path):
        text = data.decode()
        after = keep_form(text, edit)
    if after == text:
        return False
    check_writable(path)
    before, _ = _contents(Path(saved.backup)) if saved and saved.backup else (None, 0)
    was_empty = before is not None and not before.strip()  # it is empty again, then
    if without_mark(after).strip() or was_empty:
        write_atomically(path, after.encode(), mode=mode)
    else:
        path.unlink()
    return True


def _restore_script(path: Path) -> bool:
    """Put another one's executable back in the place of ours, if ours is there."""
    data, _ = _contents(path)
    if data is None or _OURS.encode() not in data:
        return False
    if _beside(path).exists():
        _beside(path).replace(path)
    else:
        path.unlink()
    return True


@contextmanager
def _about(path: Path, done: str = "read") -> Iterator[None]:
    """What is wrong with a file is an error that names it."""
    try:
        yield
    except ConfigError:
        raise
    except UnicodeDecodeError:
        raise ConfigError(str(path), "is not UTF-8; fix or remove it first") from None
    except UnicodeEncodeError:
        raise ConfigError(str(path), "cannot hold these commands: a name in them is not UTF-8") from None
    except HooklineError as error:
        raise ConfigError(str(path), f"{error}; fix it first, nothing was changed") from None
    except OSError as error:
        raise ConfigError(str(path), f"cannot be {done}: {error.strerror or error}") from None


def _contents(path: Path) -> tuple[bytes | None, int]:
    with _about(path):
        try:
            return path.read_bytes(), stat.S_IMODE(path.stat().st_mode)
        except FileNotFoundError:
            return None, 0o600


def _beside(path: Path) -> Path:
    """Where another one's executable for an event is while ours is in its place."""
    return path.with_name(path.name + _OTHERS)


def check_writable(path: Path) -> None:
    """Raise a `ConfigError` if a file, or what a link leads to, may not be written."""
    target = Path(os.path.realpath(path))
    if path.is_symlink() and not target.parent.exists():
        raise ConfigError(str(path), f"is a link to `{target}`, whose folder does not exist")
    if target.exists() and not (stat.S_IMODE(target.stat().st_mode) & 0o222 and os.access(target, os.W_OK)):
        raise ConfigError(str(path), f"is read-only; run `chmod u+w {target}` first, or choose another --scope")


def _print(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _record_path(host: str, scope: str, project: str) -> Path:
    where = f"-{_print(os.fsencode(project))[:12]}" if project else ""
    return state_folder() / "installs" / f"{host}-{scope}{where}.json"


def installation(host: str, scope: Scope, project: Path) -> tuple[int, int] | None:
    """What tells one installation from a later one in its place, be it of the same hooks; nothing if there is none."""
    try:
        noted = _record_path(host, scope, place(scope, project)).stat()
    except FileNotFoundError:
        return None
    return noted.st_ino, noted.st_mtime_ns


def load_record(host: str, scope: str, project: str = "") -> InstallRecord | None:
    """What an earlier `install` has noted, if it was here."""
    with suppress(OSError):
        return read_as(_record_path(host, scope, project).read_bytes(), InstallRecord)
    return None


# -- a host's configuration with our entries in it, and without them ---------------------------------------------------


def _without(host: Host, text: str) -> str:
    """A host's configuration file without our entries; those of others are not touched."""
    if host.config.kind == "toml":
        return toml_edit.remove_rows(text, "hooks", lambda row: is_ours(row.get("command"), host))
    if host.config.kind == "plugin":
        return "" if "// hookline: " in text else text
    while True:  # without our commands, groups they were alone in, and events that are empty then
        root = jsonc.parse(text)
        if not isinstance(root.value, dict):
            raise HooklineError("expected an object")
        found = _ours_in(host, root.members.get("hooks"))
        if found is None:
            return text
        text = jsonc.cut(text, *found)


def all_commands(host: Host, text: str) -> list[tuple[str, str]]:
    """Every command in a host's hook file, ours or not: the host's event, and the command."""
    found: list[tuple[Any, Any]]
    if host.config.kind == "toml":
        rows = toml_edit.checked(without_mark(text)).get("hooks", [])
        found = [(row.get("event") or row.get("type"), row.get("command")) for row in rows if isinstance(row, dict)]
    elif host.config.kind == "plugin":
        pairs = json.loads(text.partition("/*commands*/")[2].partition("/*end*/")[0] or "[]")
        found = [(event, command) for event, command in pairs]
    else:
        value = jsonc.parse(without_mark(text)).value
        found = _commands(value.get("hooks")) if isinstance(value, dict) else []
    return [(str(event), command) for event, command in found if isinstance(command, str)]


def _commands(value: Any, event: str = "") -> list[tuple[Any, Any]]:
    """Every command in a file, with the key or the trigger it stands under."""
    found: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        event = value.get("trigger", event) if isinstance(value.get("trigger"), str) else event
        found += [(event, value[key]) for key in ("command", "bash") if isinstance(value.get(key), str)]
        for key, inner in value.items():
            found += _commands(inner, key if key[:1].isalpha() and key not in ("hooks", "action") else event)
    elif isinstance(value, list):
        for inner in value:
            found += _commands(inner, event)
    return found


def keep_form(text: str, edit: Edit) -> str:
    """The edited text in the form it had: its mark, its line ends (ours are plain if they are mixed), its last one."""
    mark = _MARK if text.startswith(_MARK) else ""
    body = text.removeprefix(_MARK)
    windows = "\r\n" in body and body.count("\r\n") == body.count("\n")
    lacking = "" if body.endswith("\n") or not body else "\n"
    made = edit((body.replace("\r\n", "\n") if windows else body) + lacking).removesuffix(lacking)
    return mark + (made.replace("\n", "\r\n") if windows else made)


def without_mark(text: str) -> str:
    """The text as parsers want it."""
    return text.removeprefix(_MARK)


def _appended(form: Config, text: str, entries: list[HookEntry]) -> str:
    if form.plugin:
        return _plugin(form.plugin, entries)
    if form.version is not None and "version" not in jsonc.parse(text).members:
        text = jsonc.put(text, ("version",), form.version)
    for entry in entries:
        if form.kind == "toml":
            text = toml_edit.add_row(text, "hooks", _written(form, entry))
        else:
            text = jsonc.append(text, ("hooks",) if form.listed else ("hooks", entry.event), _written(form, entry))
    return text


def _written(form: Config, entry: HookEntry) -> dict[str, Any]:
    template = (entry.gate and form.gate_entry) or form.entry
    return fill(template, id=f"{crc32(entry.command.encode()):08x}", **entry._asdict())  # type: ignore[no-any-return]


def _plugin(name: str, entries: list[HookEntry]) -> str:
    """The JavaScript that asks Hookline, for the events that the hooks listen to."""
    text = (ROWS / name).read_text(encoding="utf-8").removesuffix("});\n")
    head, *parts = text.split("  // on ")
    texts = dict(part.split("\n", 1) for part in parts)
    longest = max((entry.timeout for entry in entries), default=0) + MARGIN
    commands = json.dumps([[entry.event, entry.command] for entry in entries])
    head = head.replace("patience = 0", f"patience = {longest * 1000:.0f}").replace("[]/*end*/", f"{commands}/*end*/")
    return head + "".join(texts.get(entry.event, "") for entry in entries) + "});\n"


def _ours_in(host: Host, node: jsonc.Node | None) -> tuple[jsonc.Node, jsonc.Node] | None:
    """One part that is only there for us, with its parent."""
    if node is None:
        return None
    for part in node.parts:
        found = (node, part) if _only_ours(host, part.value) else _ours_in(host, part)
        if found is not None:
            return found
    return None


def _only_ours(host: Host, value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(_only_ours(host, item) for item in value)
    if not isinstance(value, dict):
        return False
    if any(is_ours(value.get(key), host) for key in ("command", "bash")):
        return True
    return _only_ours(host, value["hooks"]) if "hooks" in value else _only_ours(host, value.get("action"))
