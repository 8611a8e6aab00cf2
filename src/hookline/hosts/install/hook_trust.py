"""A host may run a hook only once its hash is in a file of its own. Writing it there replaces the host's own question.

So it is written on the user's explicit yes only, and for our own entries only.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from hookline.errors import HooklineError
from hookline.hosts.host import HookTrust, Host
from hookline.hosts.install import apply as files
from hookline.hosts.install import jsonc, toml_edit
from hookline.hosts.install.entries import config_path, is_ours
from hookline.hosts.install.formats import keep_form, without_mark


class HookHashes(NamedTuple):
    """The hashes of our entries, and how the host notes them."""

    host: Host
    trust: HookTrust

    @property
    def file(self) -> Path:
        """The host's file that they are in."""
        return config_path(self.host, "user").with_name(self.trust.file)

    def of(self, hooks_file: Path, text: str) -> dict[str, str]:
        """The host's key and hash for each of our entries in its hook file."""
        content = jsonc.parse(without_mark(text)).value
        return self.trust.hashes(str(hooks_file), content, lambda command: is_ours(command, self.host))

    def by_both_names(self, path: Path, text: str) -> dict[str, str]:
        """The hashes of a hook file as it was named, and as the host names it if it follows links there."""
        names = (path, Path(os.path.realpath(path.parent)) / path.name)
        return {key: value for name in names for key, value in self.of(name, text).items()}

    def noted(self, text: str, hashes: dict[str, str], old: dict[str, str]) -> str:
        """The host's file with our hashes, and without older ones of ours; everything else stays as it is."""
        return keep_form(text, lambda body: self._noted(body, hashes, old))

    def _noted(self, text: str, hashes: dict[str, str], old: dict[str, str]) -> str:
        for key in old.keys() - hashes.keys():
            if toml_edit.lookup(toml_edit.checked(text), self.trust.key(key)) == old[key]:
                text = toml_edit.remove_value(text, self.trust.key(key))
        for key, value in hashes.items():
            text = toml_edit.set_value(text, self.trust.key(key), value)
        return text

    def are_in(self, text: str, hashes: dict[str, str]) -> bool:
        """Whether the host will run all of our entries."""
        known = toml_edit.checked(without_mark(text))
        return all(value and toml_edit.lookup(known, self.trust.key(key)) == value for key, value in hashes.items())

    def known(self, path: Path, old: files.InstallRecord | None) -> dict[str, str]:
        """The hashes that we have noted for the entries in a hook file, also for those that are in it no more."""
        found: dict[str, str] = {}
        with suppress(OSError, UnicodeDecodeError, HooklineError):
            found = self.by_both_names(path, path.read_text())
        return {**found, **(old.trust if old else {})}


def hashes_for(host: Host) -> HookHashes | None:
    """The hashes of a host's hooks; nothing for one that runs every hook in its file."""
    return HookHashes(host, host.hook_trust) if host.hook_trust else None


def plan_trust(
    ours: HookHashes, change: files.FileChange, old: files.InstallRecord | None, *, agreed: bool
) -> tuple[list[files.FileChange], dict[str, str], str]:
    """The change of the host's own file that notes the hashes of our entries, if the user said yes; and what to say."""
    if not agreed:
        title = ours.host.title
        told = f"{title} skips these hooks until you trust them: run again with `--yes`, or use `/hooks` in {title}"
        return [], old.trust if old else {}, told
    text, path = change.after.decode(), ours.file
    hashes, before = ours.by_both_names(change.path, text), ours.known(change.path, old)
    edit = files.plan_edit(path, old, lambda text: ours.noted(text, {}, before),
                           lambda text: ours.noted(text, hashes, {}))  # fmt: skip
    count = len(ours.of(change.path, text))
    return [edit], hashes, f"trusted on your yes: {count} hash{'' if count == 1 else 'es'} in {path}"
