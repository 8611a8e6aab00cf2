"""`Inbox`: what hooks ask where no one can be asked directly. It puts a question and waits as long as it may.

`approvals` in the user's or the administrator's settings says who is asked, and how they are reached. A project's
settings have no say there: it must not choose who approves what it does. Secrets may stand in files.
"""

import asyncio
import contextlib
import logging
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from hookline.core.engine import Approval, Status, Verdict
from hookline.core.engine.composition import answer_seconds
from hookline.core.engine.policy import policy_digest
from hookline.errors import ConfigError, HooklineError
from hookline.events import Event
from hookline.processes.service import address, control
from hookline.records.approvals.questions import AskedCall, AskedQuestion
from hookline.settings.files import Problem, read_json
from hookline.settings.policy import File
from hookline.settings.sources import places

ENTRY = "hookline.cli.main"  # what the service's workers import
LONGEST_HOLD = 600.0
MARGIN = 1.0  # seconds that are left for the answer to reach the host
START_LIMIT = 10.0
AGAIN = "Go on with something else, and make exactly the same call again later"
MOST_BYTES = 32 << 20
_LOOK = 0.05
_SECONDS = 2.0
log: logging.Logger = logging.getLogger("hookline.approvals")


class Unreachable(HooklineError):
    """The inbox cannot be asked."""


class Inbox:
    """Puts an `ask` to the people in `approvals` of the user's settings: `Hooks(on_ask=Inbox())`.

    It waits `hold` seconds at most, and not longer than the hooks' deadline. After that the call is denied and the
    question stays open: a late yes lets the same call run once. `host` and `before` tell the people who asks, and what
    happened before.
    """

    def __init__(
        self, *, hold: float = LONGEST_HOLD, host: str = "", before: Callable[[Event], Sequence[str]] | None = None
    ) -> None:
        self.hold: float = hold
        self._host, self._before = host, before

    @classmethod
    def configured(
        cls, *, host: str = "", able: bool = False, before: Callable[[Event], Sequence[str]] | None = None
    ) -> "Inbox | None":
        """The inbox of this user, if the settings have `approvals`; for a host that is `able` to ask, if `always`."""
        if (found := load_approvals()) is None or (able and not found.always):
            return None
        return cls(hold=found.hold or LONGEST_HOLD, host=host, before=before)

    async def __call__(self, verdict: Verdict) -> Approval:
        """A person's answer; a deny that says how to go on if there is none in time."""
        left = answer_seconds.get()
        hold = max(0.0, self.hold if left is None else min(self.hold, left - MARGIN))
        question = AskedQuestion(
            id="", call=call_of(verdict), why=verdict.reason, hooks=verdict.decided_by or "", host=self._host,
            before=tuple(self._before(verdict.event)) if self._before else (),
        )  # fmt: skip
        identity = question.call.identity
        try:
            async with asyncio.timeout(hold + MARGIN / 2):
                found = await _put(question, time.monotonic() + hold)
        except (TimeoutError, Unreachable) as problem:
            told = str(problem) or f"the inbox did not answer in time. {AGAIN}"
            return Approval(by="", call=identity, granted=False, reason=f"{told}: {verdict.reason}")
        return Approval(
            by=found.get("by", ""), how=found.get("how", ""), question=found.get("id", ""), call=identity,
            granted=found.get("state") == "used", reason=found.get("reason", "the inbox gave no answer"),
        )  # fmt: skip


def call_of(verdict: Verdict) -> AskedCall:
    """What is asked about: the call as it would run, and the hooks that judged it."""
    event = verdict.event
    content = verdict.input if event.tool_name else getattr(event, "prompt", "")
    plain = msgspec.to_builtins(content, str_keys=True, enc_hook=repr)
    return AskedCall(
        event=event.event_name, session=event.session_id, agent=event.agent_id or "", cwd=event.cwd,
        tool=event.tool_name or "", input=msgspec.json.encode(plain, order="sorted").decode(),
        policy=policy_digest(verdict.chosen),
    )  # fmt: skip


async def _put(question: AskedQuestion, until: float) -> dict[str, Any]:
    """The answer to a question; if the service ends meanwhile, the next one is asked the same."""
    path()  # where there is no service, there is nothing to wait for
    while True:
        try:  # the clock is the machine's: a service that takes its time to start does not hold the call for longer
            return await ask_once({"do": "ask", "question": question, "until": until}, START_LIMIT)
        except Unreachable:
            if time.monotonic() >= until:
                raise
        await asyncio.sleep(_LOOK)


async def request(body: Mapping[str, Any], limit: float = START_LIMIT) -> AsyncIterator[dict[str, Any]]:
    """What the inbox answers, one object after another; the service that keeps it is started if it does not run."""
    with contextlib.closing(await _connected(limit)) as connection:
        reader, writer = await asyncio.open_unix_connection(sock=connection, limit=MOST_BYTES)
        try:
            writer.write(msgspec.json.encode(body) + b"\n")
            await writer.drain()
            while line := await reader.readline():
                yield msgspec.json.decode(line, type=dict[str, Any])
        except (OSError, ValueError) as problem:
            raise Unreachable(f"the inbox cannot be reached: {problem}") from None
        finally:
            writer.close()


async def ask_once(body: Mapping[str, Any], limit: float = START_LIMIT) -> dict[str, Any]:
    """The first thing that the inbox answers."""
    async for found in request(body, limit):
        return found
    raise Unreachable("the inbox gave no answer")


def path() -> str:
    """The inbox's socket."""
    if not address.instance():
        raise Unreachable("the inbox is kept by the resident service, which is turned off; see `hookline service`")
    return f"{address.folder()}/{address.instance()}.inbox.sock"


async def _connected(limit: float) -> socket.socket:
    where, end = path(), time.monotonic() + limit
    while True:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(where)
        except OSError as problem:
            connection.close()
            if not isinstance(problem, FileNotFoundError | ConnectionRefusedError) or time.monotonic() >= end:
                raise Unreachable(f"the inbox cannot be reached: {problem}") from None
        else:
            if address.is_trusted(connection):
                return connection
            connection.close()
            raise Unreachable("the inbox belongs to a process that is confined differently")
        with contextlib.suppress(OSError):  # a full disk, a read-only folder
            control.start(ENTRY)
        await asyncio.sleep(_LOOK)


async def alert(kind: str, title: str, text: str) -> None:
    """Tell the people of `approvals`, if its `alerts` are on; the same `kind` is not told again for a while."""
    try:
        if (settings := load_approvals()) is not None and settings.alerts is not None:
            async with asyncio.timeout(_SECONDS):
                await ask_once({"do": "alert", "kind": kind, "title": title, "text": text}, _SECONDS)
    except (ConfigError, TimeoutError, Unreachable) as problem:
        log.warning("no one could be told `%s`: %s", title, str(problem) or "it took too long")


async def report(verdict: Verdict) -> None:
    """Tell what went wrong in a verdict; a deny is counted, unless a person gave it."""
    for outcome in verdict.failures:
        how = "timed out" if outcome.status is Status.TIMEOUT else "failed"
        title = f"hook `{outcome.hook}` {how} on {verdict.event.event_name}"
        await alert(f"{outcome.status} {outcome.hook}", title, outcome.error or "")
    if verdict.blocked and verdict.approval is None:
        what = verdict.event.tool_name or verdict.event.event_name
        await alert("denied", "", f"the last one: {what}: {verdict.reason}")


class SecretFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A secret that stands in a file of its own."""

    file: str


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
    expires: float = 3600.0
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
        if "approvals" in file.raw and file.source.kind not in ("user", "managed"):
            told = "has no effect here: who approves is not a project's to say; write it into your own settings"
            found.append(Problem(where, told, severity="warning"))
        elif "approvals" in file.raw:
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
    if isinstance(secret, str):
        return secret
    try:
        return Path(secret.file).expanduser().read_text().strip()
    except OSError as problem:
        raise ConfigError(secret.file, f"{problem.strerror}; it is named in `approvals`") from None
