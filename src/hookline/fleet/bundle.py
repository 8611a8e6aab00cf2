"""A policy bundle: a folder of hook files, settings and policies as one signed file.

It is a zip whose first two members are `manifest.json` and `manifest.sig`. The signature covers the manifest, the
manifest has the hash of every file, and nothing that is not in the manifest is ever unpacked.
"""

import hashlib
import io
import re
import struct
import zipfile
import zlib
from pathlib import Path, PurePosixPath

import msgspec

from hookline.core.files import private_folder, write_atomically
from hookline.errors import FleetError
from hookline.fleet.members import TeamKey, timestamp, verify

FORMAT = 1
MOST_BYTES = 32 << 20
MOST_FILES = 2_000
MANIFEST, SIGNATURE = "manifest.json", "manifest.sig"
TESTS = "tests.jsonl"  # the bundle's own tests: one object per line, `{"event": {…}, "decision": "deny"}`

_DAMAGED = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, OSError, ValueError)
"""Everything that reading a zip raises when its bytes are not what they were."""
_EPOCH = (1980, 1, 1, 0, 0, 0)
_SKIPPED = frozenset({"__pycache__", ".git", ".venv", ".mypy_cache", ".ruff_cache", ".pytest_cache"})
_PART = re.compile(r"[\w.@ +-]+")


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a bundle says about itself; this is what the team's key signs."""

    format: int
    version: int
    created: str
    message: str
    files: dict[str, str]
    restores: int | None = None  # the version whose files these are, if this bundle takes a change back


class Bundle(msgspec.Struct, frozen=True):
    """A bundle whose signature and hashes hold."""

    manifest: Manifest
    files: dict[str, bytes]
    digest: str
    head: bytes  # the manifest as it was signed
    signature: bytes

    @property
    def version(self) -> int:
        """Its number; a machine never goes back to a lower one."""
        return self.manifest.version

    def write(self, folder: Path) -> None:
        """Put the files below a folder, which must be new."""
        private_folder(folder.parent)
        folder.mkdir(0o700)
        for name, data in self.files.items():
            write_atomically(private_folder((folder / name).parent) / Path(name).name, data)


def read_folder(folder: Path) -> dict[str, bytes]:
    """The files of a policy folder; links and odd names are refused, because machines would refuse them, too."""
    if not folder.is_dir():
        raise FleetError(f"{folder}: no such folder; name the folder that holds the policy")
    files = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if _SKIPPED.intersection(PurePosixPath(name).parts):
            continue
        if path.is_symlink():
            raise FleetError(f"{path}: a bundle holds files only, and this is a link; copy what it leads to")
        if path.is_file():
            _check_name(name)
            files[name] = path.read_bytes()
    if not files:
        raise FleetError(f"{folder}: nothing to push: put a `settings.json` or a `hooks.py` there")
    return files


def pack(
    files: dict[str, bytes], *, version: int, key: TeamKey, message: str = "", restores: int | None = None
) -> bytes:
    """Pack and sign."""
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())}
    made = timestamp()
    manifest = Manifest(format=FORMAT, version=version, created=made, message=message, files=hashes, restores=restores)
    head = msgspec.json.encode(manifest)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {MANIFEST: head, SIGNATURE: key.sign(head), **dict(sorted(files.items()))}.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), data, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def unpack(data: bytes, *, public: str) -> Bundle:
    """Check everything about a bundle; a `FleetError` says what does not hold."""
    if len(data) > MOST_BYTES:
        raise FleetError(f"the bundle has {len(data)} bytes; at most {MOST_BYTES} are read")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _unpacked(archive, public, hashlib.sha256(data).hexdigest())
    except _DAMAGED as problem:
        raise FleetError(f"the bundle is damaged: {problem}") from None


def _unpacked(archive: zipfile.ZipFile, public: str, digest: str) -> Bundle:
    infos = {info.filename: info for info in archive.infolist()}
    if MANIFEST not in infos or SIGNATURE not in infos:
        raise FleetError("the bundle is not signed; push it with `hookline fleet push`, which signs it")
    head = _member(archive, infos[MANIFEST])
    signature = _member(archive, infos[SIGNATURE])
    if not verify(public, head, signature):
        raise FleetError("the bundle is not signed by this team's key")
    manifest = _manifest(head)
    files = {}
    for name, expected in manifest.files.items():
        _check_name(name)
        if name not in infos:
            raise FleetError(f"the bundle lacks `{name}`, which its manifest names")
        files[name] = _member(archive, infos[name])
        if hashlib.sha256(files[name]).hexdigest() != expected:
            raise FleetError(f"`{name}` in the bundle is not the file that was signed")
    return Bundle(manifest, files, digest, head, signature)


def _manifest(head: bytes) -> Manifest:
    try:
        manifest = msgspec.json.decode(head, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        why = f"the bundle's manifest cannot be read: {problem}"
        raise FleetError(f"{why}; is this machine's Hookline older?") from None
    if manifest.format != FORMAT:
        raise FleetError(f"the bundle has format {manifest.format}, this Hookline reads {FORMAT}; upgrade one of them")
    if len(manifest.files) > MOST_FILES:
        raise FleetError(f"the bundle has {len(manifest.files)} files; at most {MOST_FILES} are read")
    return manifest


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    if info.file_size > MOST_BYTES:
        raise FleetError(f"`{info.filename}` in the bundle is too large: {info.file_size} bytes")
    with archive.open(info) as member:
        return member.read(MOST_BYTES)


def _check_name(name: str) -> None:
    """Names that mean the same on every system, and nothing outside the folder."""
    parts = PurePosixPath(name).parts
    plain = all(_PART.fullmatch(part) and part not in {".", ".."} for part in parts)
    if not parts or not plain or name.startswith("/") or PurePosixPath(name).as_posix() != name:
        raise FleetError(f"`{name}`: not a name for a file in a bundle; use letters, digits and `. _ - + @`")
    if name in {MANIFEST, SIGNATURE}:
        raise FleetError(f"`{name}`: this name is taken by the bundle itself; rename the file")
