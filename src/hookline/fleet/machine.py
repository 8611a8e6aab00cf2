"""What an enrolled machine keeps: who it is, whom it believes, which policy is in force.

fleet/machine.json      name, hub, the team's public key, what happens when the policy is stale
fleet/machine.seed      the machine's private key
fleet/policies/7/       one folder per version, with its signed manifest
fleet/current.json      which of them is in force; replaced at once, so there is always a whole one
fleet/contact           touched whenever the hub was heard
fleet/trouble           why the hub cannot be reached, as long as it cannot
"""

import contextlib
import hashlib
import os
import shutil
import time
from pathlib import Path, PurePosixPath
from typing import Literal

import msgspec

from hookline.core.files import locked, private_folder, state_folder, try_lock, write_atomically
from hookline.errors import FleetError
from hookline.fleet.bundle import MANIFEST, SIGNATURE, Bundle, Manifest
from hookline.fleet.members import timestamp, verify

Stale = Literal["keep", "ask", "deny"]
_CLOCK_HOURS = 0.1  # how far a clock may be set back without a question how long ago the hub was heard
_AGAIN = "the hub will send the policy again"


class Enrolment(msgspec.Struct, frozen=True, kw_only=True):
    """What `hookline fleet join` wrote."""

    machine: str
    name: str
    hub: str
    team: str  # the team's public key: bundles signed by any other are refused
    audit: str = ""  # the audit log that is sent to the hub
    stale_hours: float = 0.0  # after how many hours without the hub the policy counts as stale; 0 is never
    when_stale: Stale = "keep"
    policy: int = 0  # the highest version that was ever in force here: a lower one, or none, is not accepted any more


class Current(msgspec.Struct, frozen=True, kw_only=True):
    """The policy in force."""

    version: int
    digest: str
    since: str


class Machine:
    """The fleet's folder of one user on one machine."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder: Path = folder or state_folder() / "fleet"
        self.seed_path: Path = self.folder / "machine.seed"

    @property
    def enrolled(self) -> bool:
        return (self.folder / "machine.json").exists()

    def enrol(self, enrolment: Enrolment, seed: str) -> None:
        private_folder(self.folder)
        write_atomically(self.seed_path, seed.encode(), durable=True)
        write_atomically(self.folder / "machine.json", msgspec.json.encode(enrolment), durable=True)

    def enrolment(self) -> Enrolment:
        path = self.folder / "machine.json"
        try:
            return msgspec.json.decode(path.read_bytes(), type=Enrolment)
        except FileNotFoundError:
            raise FleetError("this machine is in no fleet; run `hookline fleet join URL --token TOKEN`") from None
        except (OSError, msgspec.DecodeError) as problem:
            raise FleetError(f"{path}: {problem}; run `hookline fleet join` again") from None

    def current(self) -> Current | None:
        """The policy in force, if there ever was one; a `FleetError` if there was and it is gone."""
        path, floor = self.folder / "current.json", self.enrolment().policy
        try:
            _refuse_links(path)
            current = msgspec.json.decode(path.read_bytes(), type=Current)
        except FileNotFoundError:
            if floor:
                raise FleetError(f"{path} is gone, and version {floor} was in force; {_AGAIN}") from None
            return None
        except (OSError, msgspec.DecodeError) as problem:
            raise FleetError(f"{path}: {problem}; {_AGAIN}") from None
        if current.version < floor:
            raise FleetError(f"{path} names version {current.version}, and version {floor} was in force; {_AGAIN}")
        return current

    def version_in_force(self) -> int:
        """The version of the policy in force; 0 if there is none that can be used."""
        with contextlib.suppress(FleetError):
            if current := self.current():
                return current.version
        return 0

    def policy_state(self) -> tuple[object, ...]:
        """What changes with every edit of the files that say which policy is in force, and of those it has."""
        policies = self.folder / "policies"
        said = [self.folder / "machine.json", self.folder / "current.json", policies]
        return tuple(map(_stamp, (*said, *sorted(policies.rglob("*")))))

    def policy_folder(self, version: int) -> Path:
        return self.folder / "policies" / str(version)

    def stage(self, bundle: Bundle) -> Path:
        """Put a bundle's files where they can be tried; nothing is in force before `put_in_force`."""
        folder = self.policy_folder(bundle.version)
        with locked(self.folder / "lock"):
            self._refuse_older(bundle)
            try:
                if folder.exists():
                    shutil.rmtree(folder)
                bundle.write(folder)
                write_atomically(folder / MANIFEST, bundle.head)
                write_atomically(folder / SIGNATURE, bundle.signature)
            except OSError as problem:
                shutil.rmtree(folder, ignore_errors=True)
                raise CannotWrite(problem) from None
        return folder

    def put_in_force(self, bundle: Bundle) -> Current:
        """From the next event on, this bundle is the policy; the one before it stays on disk."""
        current = Current(version=bundle.version, digest=bundle.digest, since=timestamp())
        with locked(self.folder / "lock"):
            before = self._refuse_older(bundle)
            try:
                write_atomically(self.folder / "current.json", msgspec.json.encode(current), durable=True)
                said = self.enrolment()
                if bundle.version > said.policy:  # from now on nothing older is the policy, whatever other files say
                    changed = msgspec.structs.replace(said, policy=bundle.version)
                    write_atomically(self.folder / "machine.json", msgspec.json.encode(changed), durable=True)
            except OSError as problem:
                raise CannotWrite(problem) from None
            for folder in (self.folder / "policies").iterdir():
                if folder.name.isdecimal() and int(folder.name) not in {bundle.version, before}:
                    shutil.rmtree(folder, ignore_errors=True)
        return current

    def _refuse_older(self, bundle: Bundle) -> int:
        floor, digest = self.enrolment().policy, bundle.digest
        with contextlib.suppress(FleetError):  # whatever is wrong with the one in force, this one replaces it
            if current := self.current():
                floor, digest = current.version, current.digest
        if bundle.version < floor or (bundle.version == floor and bundle.digest != digest):
            raise FleetError(
                f"the bundle has version {bundle.version}, and version {floor} is in force; "
                "an older policy is never put back: run `hookline fleet rollback`, which signs it again"
            )
        return floor

    def verified_policy(self) -> tuple[Path, dict[str, bytes]] | None:
        """The folder of the policy in force, and its files, checked against what was signed: an edit is found here."""
        if (current := self.current()) is None:
            return None
        folder = self.policy_folder(current.version)
        try:
            head, signature = (folder / MANIFEST).read_bytes(), (folder / SIGNATURE).read_bytes()
        except OSError as problem:
            raise FleetError(f"the policy in force is not on this machine any more: {problem}") from None
        if not verify(self.enrolment().team, head, signature):
            raise FleetError(f"{folder}: the policy is not signed by the team's key; it was changed on this machine")
        manifest = msgspec.json.decode(head, type=Manifest)
        if manifest.version != current.version:
            raise FleetError(f"{folder}: holds version {manifest.version}, and version {current.version} is in force")
        return folder, _checked_files(folder, manifest)

    # -- the connection to the hub: who keeps it, when the hub was heard, what is in the way ---------------------------

    def heard(self) -> None:
        (self.folder / "contact").touch(0o600)
        (self.folder / "trouble").unlink(missing_ok=True)

    def note_trouble(self, text: str) -> None:
        """Keep why the hub cannot be reached, for `hookline fleet status`."""
        with contextlib.suppress(OSError):  # a full disk does not keep it from trying
            write_atomically(self.folder / "trouble", text.encode())

    def trouble(self) -> str:
        with contextlib.suppress(OSError):
            return (self.folder / "trouble").read_text("utf-8", "replace")
        return ""

    def hours_silent(self) -> float:
        """How long the hub has not been heard; if that was in the future, the clock went back, and nothing is known."""
        try:
            last = (self.folder / "contact").stat().st_mtime
        except OSError:
            return float("inf")
        hours = (time.time() - last) / 3600
        return hours if hours >= 0 else 0.0 if hours > -_CLOCK_HOURS else float("inf")

    def connecting(self) -> int | None:
        """Take the place of the one process that keeps the connection; `None` if another has it."""
        if (lock := try_lock(self.folder / "leaf.lock")) is not None:
            os.ftruncate(lock, 0)
            os.pwrite(lock, str(os.getpid()).encode(), 0)
        return lock

    def connected_by(self) -> int | None:
        path = self.folder / "leaf.lock"
        if (lock := try_lock(path)) is not None:
            os.close(lock)
            return None
        with contextlib.suppress(OSError, ValueError):
            return int(path.read_text())
        return 0


class CannotWrite(FleetError):
    """The disk does not take the policy now; it may later."""

    def __init__(self, problem: OSError) -> None:
        super().__init__(
            f"{problem.filename}: {problem.strerror}; the policy in force stays; "
            "make room on this machine's disk, and it is tried again"
        )


def _checked_files(folder: Path, manifest: Manifest) -> dict[str, bytes]:
    """The bytes of every file, which are those that were signed; there is nothing else: no file, no folder, no link."""
    _refuse_links(folder.parent, folder)
    names = {*manifest.files, MANIFEST, SIGNATURE}
    folders = {parent.as_posix() for name in names for parent in PurePosixPath(name).parents}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        _refuse_links(path)
        if name not in (folders if path.is_dir() else names):
            raise FleetError(f"{path}: not part of the signed policy; it was put there on this machine")
    files = {}
    for name, expected in manifest.files.items():
        path = folder / name
        try:
            files[name] = path.read_bytes()
        except OSError as problem:
            raise FleetError(f"{path}: {problem.strerror}; the policy was changed on this machine") from None
        if hashlib.sha256(files[name]).hexdigest() != expected:
            raise FleetError(f"{path}: not the file that was signed; the policy was changed on this machine")
    return files


def _refuse_links(*paths: Path) -> None:
    for path in paths:
        if path.is_symlink():
            raise FleetError(f"{path}: a link in place of the fleet's own file; it was put there on this machine")


def _stamp(path: Path) -> tuple[object, ...]:
    with contextlib.suppress(OSError):
        now = path.lstat()
        return str(path), now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns
    return (str(path),)
