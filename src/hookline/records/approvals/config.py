"""`approvals` in the user's or the administrator's settings: who is asked, and how they are reached.

A project's settings have no say here: it must not choose who approves what it does. Secrets may stand in files.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import msgspec

from hookline.errors import ConfigError
from hookline.settings.files import Problem, read_json
from hookline.settings.policy import File
from hookline.settings.sources import places

DEFAULT_EXPIRES = 3600.0


class SecretFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A secret that stands in a file of its own."""

    file: str

    def read(self) -> str:
        """What the file has, without the line's end."""
        try:
            return Path(self.file).expanduser().read_text().strip()
        except OSError as problem:
            raise ConfigError(self.file, f"{problem.strerror}; it is named in `approvals`") from None


Secret = str | SecretFile


class _Channel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", kw_only=True):
    """One way to a person."""


class MailChannel(_Channel, tag="mail", frozen=True):
    """A message over SMTP."""

    to: str
    server: str = "localhost:25"
    sender: str = msgspec.field(name="from", default="hookline")
    user: str = ""
    password: Secret = ""
    tls: bool = False


class NtfyChannel(_Channel, tag="ntfy", frozen=True):
    """A topic of an ntfy server: `https://ntfy.example.com/TOPIC`. Who knows the topic can read what is sent there."""

    url: Secret
    token: Secret = ""


class SlackChannel(_Channel, tag="slack", frozen=True):
    """A channel in Slack. The link goes to the `user` alone, when they press the button there (Socket Mode)."""

    channel: str
    user: str
    bot_token: Secret
    app_token: Secret
    api: str = "https://slack.com/api"


class AppriseChannel(_Channel, tag="apprise", frozen=True):
    """Any of the services that apprise knows, by its URL."""

    url: Secret


class ProgramChannel(_Channel, tag="command", frozen=True):
    """A program of one's own, which gets the message as JSON on stdin: what it is given as words, others could read."""

    command: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]


Channel = MailChannel | NtfyChannel | SlackChannel | AppriseChannel | ProgramChannel


class Alerts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """When people are told unasked: at so many denials in so many seconds, and of the same not again in a `pause`."""

    denials: int = 10
    seconds: float = 300.0
    pause: float = 900.0


class ApprovalSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The settings: `listen` is where the page is, `url` how people reach it, `always` also where a host could ask."""

    people: dict[str, tuple[Channel, ...]] = {}
    listen: str = "127.0.0.1:0"
    url: str = ""
    expires: float = DEFAULT_EXPIRES
    hold: float | None = None
    always: bool = False
    alerts: Alerts | None = None


def load_approvals(home: str | Path | None = None) -> ApprovalSettings | None:
    """What the administrator's settings say about approvals, else those in the user's home; `None` if neither does.

    No other variable moves them: the process that keeps the inbox has none of a project's.
    """
    where = places(home=home or os.environ.get("HOME") or "~")
    for path in (where.managed, where.config_dir / "settings.json"):
        found, _ = read_json(str(path), where.label(path))
        if isinstance(found, dict) and "approvals" in found:
            return parse_approvals(found["approvals"], f"{where.label(path)}: approvals")
    return None


def approval_problems(files: Iterable[File]) -> list[Problem]:
    """What is wrong with `approvals` in settings files; in a project's it has no effect."""
    found = []
    for file in files:
        where = f"{file.source.label}: approvals"
        if "approvals" not in file.raw:
            continue
        if file.source.kind not in ("user", "managed"):
            told = "has no effect here: who approves is not a project's to say; write it into your own settings"
            found.append(Problem(where, told, severity="warning"))
            continue
        try:
            parse_approvals(file.raw["approvals"], where)
        except ConfigError as problem:
            found.append(Problem(problem.where, problem.problem))
    return found


def parse_approvals(value: Any, where: str = "approvals") -> ApprovalSettings:
    """The settings, or a `ConfigError` that says what is wrong with them."""
    try:
        made = msgspec.convert(value, ApprovalSettings)
    except msgspec.ValidationError as problem:
        raise ConfigError(where, str(problem)) from None
    host, _, port = made.listen.rpartition(":")
    if not host or not port.isdecimal():
        raise ConfigError(f"{where}.listen", f"expected `ADDRESS:PORT`, got `{made.listen}`")
    if host.strip("[]") not in ("127.0.0.1", "::1", "localhost") and not made.url:
        raise ConfigError(f"{where}.url", f"expected the address that people open, as `listen` is `{made.listen}`")
    for name, seconds in (("expires", made.expires), ("hold", made.hold)):
        if seconds is not None and not 0 < seconds < 1e9:
            raise ConfigError(f"{where}.{name}", f"expected seconds, got `{seconds}`")
    return made


def reveal(secret: Secret) -> str:
    """A secret's text."""
    return secret if isinstance(secret, str) else secret.read()
