"""Finding credentials in text: for the guard that stops them and for the log that must not keep them.

The patterns are detect-secrets' own (only those that know a format: no entropy, no keywords, so that ordinary code
raises few alarms), and a short table of formats it does not know. Pure: text in, places out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib import import_module

import msgspec

from hookline.errors import MissingExtra

_PLUGINS = {
    "artifactory": "ArtifactoryDetector",
    "aws": "AWSKeyDetector",
    "azure_storage_key": "AzureStorageKeyDetector",
    "basic_auth": "BasicAuthDetector",
    "cloudant": "CloudantDetector",
    "discord": "DiscordBotTokenDetector",
    "github_token": "GitHubTokenDetector",
    "gitlab_token": "GitLabTokenDetector",
    "ibm_cloud_iam": "IbmCloudIamDetector",
    "ibm_cos_hmac": "IbmCosHmacDetector",
    "jwt": "JwtTokenDetector",
    "mailchimp": "MailchimpDetector",
    "npm": "NpmDetector",
    "openai": "OpenAIDetector",
    "pypi_token": "PypiTokenDetector",
    "sendgrid": "SendGridDetector",
    "slack": "SlackDetector",
    "softlayer": "SoftlayerDetector",
    "square_oauth": "SquareOAuthDetector",
    "stripe": "StripeDetector",
    "telegram_token": "TelegramBotTokenDetector",
    "twilio": "TwilioKeyDetector",
}
_OWN = {
    "Private Key": r"-----BEGIN (?:[A-Z0-9 ]+ )?PRIVATE KEY-----"
    r"(?:[\s\S]*?-----END (?:[A-Z0-9 ]+ )?PRIVATE KEY-----|[A-Za-z0-9+/=\s\\]*)",
    "Anthropic API Key": r"\bsk-ant-[A-Za-z0-9_-]{20,}",
    "OpenAI API Key": r"\bsk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,}",
    "GitHub Token": r"\bgithub_pat_[A-Za-z0-9_]{22,}",
    "Google API Key": r"\bAIza[A-Za-z0-9_-]{35}",
    "Google OAuth Token": r"\bya29\.[A-Za-z0-9_-]{20,}",
    "Hugging Face Token": r"\bhf_[A-Za-z0-9]{30,}",
    "DigitalOcean Token": r"\bdo[por]_v1_[a-f0-9]{64}",
    "Bearer Token": r"(?i)\bauthorization:\s*bearer\s+([A-Za-z0-9._~+/-]{16,}=*)",
    "Password": r"""(?i)\b(?:password|passwd|secret|api[_-]?key|access[_-]?token|auth[_-]?token)\b["']?\s*[:=]\s*"""
    r"""["']?((?=[^\s"']*\d)(?=[^\s"']*[A-Za-z])(?![^\s"']*[(){}\[\]$<>])[^\s"',;]{12,})""",
}


class Found(msgspec.Struct, frozen=True, order=True):
    """A credential in a text: where, and of what kind."""

    start: int
    end: int
    kind: str


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str], int], ...]:
    """Kind, pattern, and which group of it is the credential."""
    try:
        modules = {name: import_module(f"detect_secrets.plugins.{name}") for name in _PLUGINS}
    except ImportError:
        raise MissingExtra("finding secrets", "guards") from None
    known = []
    for name, cls in _PLUGINS.items():
        plugin = getattr(modules[name], cls)()
        known += [(plugin.secret_type, pattern, 0) for pattern in plugin.denylist]
    own = [(kind, re.compile(text)) for kind, text in _OWN.items()]
    return (*((kind, pattern, min(pattern.groups, 1)) for kind, pattern in own), *known)


def ready() -> None:
    """Raise `MissingExtra` now rather than at the first text."""
    _patterns()


def find(text: str) -> list[Found]:
    """The credentials in `text`, in order, overlapping ones joined."""
    return list(_find(text))


@lru_cache(maxsize=512)
def _find(text: str) -> tuple[Found, ...]:
    return tuple(_joined(sorted(_all(text))))


def _all(text: str) -> Iterator[Found]:
    for kind, pattern, group in _patterns():
        for match in pattern.finditer(text):
            yield Found(*match.span(group), kind)


def _joined(places: list[Found]) -> Iterator[Found]:
    current: Found | None = None
    for place in places:
        if current is not None and place.start < current.end:
            current = Found(current.start, max(current.end, place.end), current.kind)
            continue
        if current is not None:
            yield current
        current = place
    if current is not None:
        yield current


def redact(text: str) -> str:
    """The text with every credential replaced by `[redacted: its kind]`."""
    places = _find(text)
    if not places:
        return text
    parts, at = [], 0
    for place in places:
        parts += [text[at : place.start], f"[redacted: {place.kind}]"]
        at = place.end
    return "".join([*parts, text[at:]])
