"""Ways to people. Each only carries a link: what is asked is on the page, and only there it is answered."""

import asyncio
import json
import logging
import smtplib
import subprocess
import urllib.request
from collections.abc import Callable, Mapping
from email.message import EmailMessage
from typing import Any

import msgspec

from hookline.core.wire.json_text import read_object
from hookline.errors import HooklineError, MissingExtra, extra
from hookline.records.approvals import inbox
from hookline.records.approvals.inbox import SlackChannel, reveal

SECONDS = 10.0  # how long a server or a program may take


class LinkMessage(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent to one person; without a `link` there is nothing to answer."""

    title: str
    text: str
    link: str = ""
    question: str = ""
    person: str = ""


class NotSent(HooklineError):
    """A message that a person did not get."""


def send(channel: Any, message: LinkMessage) -> None:
    """Send a message over a channel; `NotSent` says why it did not go."""
    try:
        _SEND[type(channel)](channel, message)
    except (OSError, ValueError, smtplib.SMTPException, subprocess.SubprocessError, HooklineError) as problem:
        raise NotSent(str(problem) or type(problem).__name__) from problem


def _mail(channel: inbox.MailChannel, message: LinkMessage) -> None:
    made = EmailMessage()
    made["Subject"], made["From"], made["To"] = " ".join(message.title.split()), channel.sender, channel.to
    made.set_content("\n\n".join(filter(None, (message.text, message.link))) + "\n")
    host, _, port = channel.server.partition(":")
    kind = smtplib.SMTP_SSL if channel.tls and port == "465" else smtplib.SMTP
    with kind(host, int(port or 25), timeout=SECONDS) as server:
        if channel.tls and kind is smtplib.SMTP:
            server.starttls()
        if channel.user:
            server.login(channel.user, reveal(channel.password))
        server.send_message(made)


def _ntfy(channel: inbox.NtfyChannel, message: LinkMessage) -> None:
    base, _, topic = reveal(channel.url).rpartition("/")
    body: dict[str, Any] = {"topic": topic, "title": message.title, "message": message.text, "priority": 4}
    if message.link:  # `view`, not `http`: a tap on a locked screen must not decide
        body["actions"] = [{"action": "view", "label": "Look", "url": message.link}]
    token = reveal(channel.token)
    post(base, body, {"Authorization": f"Bearer {token}"} if token else {})


def _slack(channel: SlackChannel, message: LinkMessage) -> None:
    """A message to the channel, with a button; `slack` gives the link to whom it is for."""
    section = {"type": "section", "text": {"type": "plain_text", "text": f"{message.title}\n{message.text}"[:2900]}}
    button = {"type": "button", "text": {"type": "plain_text", "text": "Look"}, "action_id": "hookline",
              "value": message.question}  # fmt: skip
    blocks = [section, *([{"type": "actions", "elements": [button]}] if message.link else [])]
    call_slack(channel, "chat.postMessage", {"channel": channel.channel, "text": message.title, "blocks": blocks})


def call_slack(channel: SlackChannel, method: str, body: Mapping[str, Any], *, app: bool = False) -> dict[str, Any]:
    """Call a method of Slack's Web API."""
    token = reveal(channel.app_token if app else channel.bot_token)
    found = post(f"{channel.api}/{method}", body, {"Authorization": f"Bearer {token}"})
    if not found.get("ok"):
        raise NotSent(f"Slack says `{found.get('error')}` to {method}")
    return found


def _apprise(channel: inbox.AppriseChannel, message: LinkMessage) -> None:
    with extra("a channel of type `apprise`", "notify"):
        import apprise
    made = apprise.Apprise()
    text = "\n\n".join(filter(None, (message.text, message.link)))
    if not made.add(reveal(channel.url)) or not made.notify(title=message.title, body=text):
        raise NotSent("apprise could not send it; is the URL right?")


def _program(channel: inbox.ProgramChannel, message: LinkMessage) -> None:
    body = msgspec.json.encode(message)
    done = subprocess.run(channel.command, input=body, capture_output=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise NotSent(f"`{channel.command[0]}` ended with exit code {done.returncode}")


def post(url: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
    """POST JSON; what comes back, if that is JSON."""
    if not url.startswith(("https://", "http://")):
        raise NotSent("a URL begins with https://")
    made = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json", **headers})  # noqa: S310
    with urllib.request.urlopen(made, timeout=SECONDS) as answer:  # noqa: S310 - checked above
        return read_object(answer.read(1 << 20)) or {}


_SEND: Mapping[type, Callable[[Any, LinkMessage], None]] = {
    inbox.MailChannel: _mail, inbox.NtfyChannel: _ntfy, SlackChannel: _slack, inbox.AppriseChannel: _apprise,
    inbox.ProgramChannel: _program,
}  # fmt: skip


log: logging.Logger = logging.getLogger("hookline.approvals")
RETRY_SECONDS = 2.0


class SocketMode:
    """A connection out to Slack for each app; `link_for` gives a question's link for a user of Slack, or nothing."""

    def __init__(self, link_for: Callable[[str, str], str]) -> None:
        self._link_for = link_for
        self._kept: dict[Any, asyncio.Task[None]] = {}

    def keep(self, settings: inbox.ApprovalSettings) -> None:
        for channels in settings.people.values():
            for channel in channels:
                if isinstance(channel, SlackChannel) and channel.app_token not in self._kept:
                    self._kept[channel.app_token] = asyncio.ensure_future(self._stay(channel))

    async def aclose(self) -> None:
        for task in self._kept.values():
            task.cancel()
        await asyncio.gather(*self._kept.values(), return_exceptions=True)

    async def _stay(self, channel: SlackChannel) -> None:
        try:
            from websockets.asyncio.client import connect
            from websockets.exceptions import WebSocketException
        except ImportError:
            log.warning("%s", MissingExtra("a channel of type `slack`", "notify"))
            return
        while True:
            try:
                found = await asyncio.to_thread(call_slack, channel, "apps.connections.open", {}, app=True)
                async with connect(found["url"]) as connection:
                    async for text in connection:
                        envelope = json.loads(text)
                        if "envelope_id" in envelope:  # within three seconds, or Slack shows a failure
                            await connection.send(json.dumps({"envelope_id": envelope["envelope_id"]}))
                            await asyncio.to_thread(self._pressed, envelope.get("payload") or {})
            except (OSError, WebSocketException, NotSent, ValueError, KeyError) as problem:
                log.warning("Slack cannot be reached: %s", problem)
            await asyncio.sleep(RETRY_SECONDS)

    def _pressed(self, payload: dict[str, Any]) -> None:
        """Give the link to who pressed the button; Slack says who that is."""
        for action in payload.get("actions") or ():
            if action.get("action_id") == "hookline":
                link = self._link_for(str(action.get("value")), str(payload.get("user", {}).get("id")))
                text = f"<{link}|Open the question>" if link else "This question is not for you, or it is over."
                answer = {"response_type": "ephemeral", "replace_original": False, "text": text}
                try:
                    post(payload["response_url"], answer, {})
                except (OSError, NotSent) as problem:
                    log.warning("Slack cannot be answered: %s", problem)
