"""Finding credentials in text: for the guard that stops them and for the log that must not keep them.

Only patterns that know a format, no entropy and no keywords, so that ordinary code raises few alarms. The table is our
own; where detect-secrets is installed, its patterns of this kind are looked for as well. Pure: text in, places out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib import import_module
from typing import NamedTuple

import msgspec

_PLUGINS = {
    "artifactory": "ArtifactoryDetector", "aws": "AWSKeyDetector", "azure_storage_key": "AzureStorageKeyDetector",
    "basic_auth": "BasicAuthDetector", "cloudant": "CloudantDetector", "discord": "DiscordBotTokenDetector",
    "github_token": "GitHubTokenDetector", "gitlab_token": "GitLabTokenDetector",
    "ibm_cloud_iam": "IbmCloudIamDetector", "ibm_cos_hmac": "IbmCosHmacDetector", "jwt": "JwtTokenDetector",
    "mailchimp": "MailchimpDetector", "npm": "NpmDetector", "openai": "OpenAIDetector",
    "pypi_token": "PypiTokenDetector", "sendgrid": "SendGridDetector", "slack": "SlackDetector",
    "softlayer": "SoftlayerDetector", "square_oauth": "SquareOAuthDetector", "stripe": "StripeDetector",
    "telegram_token": "TelegramBotTokenDetector", "twilio": "TwilioKeyDetector",
}  # fmt: skip
_OWN = {
    "AWS Access Key": r"\b(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[A-Z0-9]{16}\b",
    "Artifactory Credentials": r"(?<![A-Za-z0-9])(?:AKC[A-Za-z0-9]{10,}|AP[0-9A-F][A-Za-z0-9]{30,})(?![A-Za-z0-9])",
    "Azure Storage Account access key": r"AccountKey[=]([A-Za-z0-9+/]{80,88}={0,2})",
    "Basic Auth Credentials": r"://[^\s:/?#\[\]@]+:([^\s:/?#\[\]@]+)@",
    "Discord Bot Token": r"\b[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27,}",
    "GitLab Token": r"\b(?:gl(?:pat|dt|ft|soat|rt|cbt|imt|ptt|agent|oas)-|GR1348941)[\w-]{20,}",
    "IBM Cloud IAM Key": r"(?i)(?:ibm|cloud|iam)[\w-]{0,20}(?:key|token|pass\w*|pwd)[\"']?\s*[:=]+>?\s*[\"']?"
    r"([\w-]{44})(?![\w-])",
    "IBM COS HMAC Credentials": r"(?i)secret[_-]?(?:access)?[_-]?key[\"']?\s*[:=]+>?\s*[\"']?([a-f0-9]{48})"
    r"(?![a-f0-9])",
    "Cloudant Credentials": r"(?i)(?:cloudant[\w-]{0,20}[\"']?\s*[:=]+>?\s*[\"']?|://[\w-]+:)([0-9a-f]{64}|[a-z]{24})"
    r"(?![0-9a-z])",
    "Mailchimp Access Key": r"\b[0-9a-f]{32}-us[0-9]{1,2}\b",
    "NPM tokens": r":_authToken\s*=\s*([\w-]{20,})",
    "OpenAI Token": r"\bsk-[\w-]*T3BlbkFJ[A-Za-z0-9]{20}",
    "PyPI Token": r"\bpypi-Ag[\w-]{70,}",
    "SendGrid API Key": r"\bSG\.[\w-]{22}\.[\w-]{43}",
    "Slack Token": r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    "Slack Webhook": r"https://hooks\.slack\.com/services/T\w+/B\w+/(\w+)",
    "SoftLayer Credentials": r"(?i)(?:softlayer[\w-]{0,20}[\"']?\s*[:=]+>?\s*[\"']?|softlayer\.com/soap/v3(?:\.1)?/)"
    r"([a-z0-9]{64})(?![a-z0-9])",
    "Square OAuth Secret": r"\bsq0csp-[\w-]{43}",
    "Telegram Bot Token": r"\b\d{8,10}:[\w-]{35}(?![\w-])",
    "Twilio API Key": r"\b(?:AC|SK)[0-9a-f]{32}\b",
    "Anthropic API Key": r"\bsk-ant-[A-Za-z0-9_-]{20,}",
    "OpenAI API Key": r"\bsk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,}",
    "GitHub Token": r"\b(?:gh[opurs]_[A-Za-z0-9_]{36}|github_pat_[A-Za-z0-9_]{22,})",
    "Google API Key": r"\bAIza[A-Za-z0-9_-]{35}",
    "Google OAuth Token": r"\bya29\.[A-Za-z0-9_-]{20,}",
    "Hugging Face Token": r"\bhf_[A-Za-z0-9]{30,}",
    "DigitalOcean Token": r"\bdo[por]_v1_[a-f0-9]{64}",
    "npm Token": r"\bnpm_[A-Za-z0-9]{36}\b",
    "Stripe Key": r"\b(?:[sr]k_(?:live|test)|whsec)_[A-Za-z0-9]{20,}",
    "Shopify Token": r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}\b",
    "Vault Token": r"\bhv[sbr]\.[A-Za-z0-9_-]{24,}",
    "Databricks Token": r"\bdapi[a-f0-9]{32}\b",
    "Grafana Token": r"\bgl(?:c|sa)_[A-Za-z0-9_=]{32,}",
    "Groq API Key": r"\bgsk_[A-Za-z0-9]{40,}",
    "xAI API Key": r"\bxai-[A-Za-z0-9]{60,}",
    "Replicate Token": r"\br8_[A-Za-z0-9]{37}\b",
    "Perplexity API Key": r"\bpplx-[A-Za-z0-9]{40,}",
    "Linear API Key": r"\blin_api_[A-Za-z0-9]{32,}",
    "Notion Token": r"\bntn_[A-Za-z0-9]{40,}",
    "Figma Token": r"\bfigd_[A-Za-z0-9_-]{36,}",
    "Postman API Key": r"\bPMAK-[a-f0-9]{24}-[a-f0-9]{34}\b",
    "Atlassian Token": r"\bATATT3[A-Za-z0-9_=-]{50,}",
    "Sentry Token": r"\bsntrys_[A-Za-z0-9+/=_-]{40,}",
    "Supabase Token": r"\bsbp_[a-f0-9]{40}\b",
    "New Relic Key": r"\bNRAK-[A-Z0-9]{27}\b",
    "age Secret Key": r"\bAGE-SECRET-KEY-1[A-Z0-9]{58}\b",
    "Hookline Fleet Token": r"\bhl1\.[A-Za-z0-9_=.-]{20,}",
    "NATS NKey Seed": r"\bS[UAONCX][A-Z2-7]{56}\b",
    "Terraform Cloud Token": r"\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,}",
    "JSON Web Token": r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}(?:\.[\w-]*)?",
    "AWS Secret Key": r"""(?i)aws_?secret_?(?:access_?)?key["']?\s*[:=]\s*["']?"""
    r"([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])",
    "Authorization Header": r"""(?i)\bauthorization["']?\s{0,8}[:=]\s{0,8}["']?(?!\s)"""
    r"""((?:(?:basic|bearer|token|apikey|negotiate|ntlm|digest)\s{1,8})?(?![$<{%*(\[])"""
    r"""(?:(?<=basic )[\w.~+/-]{4,}={0,2}|(?=[^\s"',;]*\d)[\w.~+/-]{16,}={0,2}))""",
    "AWS Signature": r"(?i)\bAWS4-HMAC-SHA256\b[^\n]{0,400}?\bSignature=([0-9a-f]{16,})",
}


_NEEDLES = {
    "Anthropic API Key": "sk-ant-", "OpenAI API Key": "sk-", "Google API Key": "aiza",
    "Google OAuth Token": "ya29.", "Hugging Face Token": "hf_", "DigitalOcean Token": "_v1_", "npm Token": "npm_",
    "Stripe Key": "k_live_ k_test_ whsec_", "Shopify Token": "shp", "Vault Token": "hvs. hvb. hvr.",
    "Databricks Token": "dapi", "Grafana Token": "glc_ glsa_", "Groq API Key": "gsk_", "xAI API Key": "xai-",
    "Replicate Token": "r8_", "Perplexity API Key": "pplx-", "Linear API Key": "lin_api_", "Notion Token": "ntn_",
    "Figma Token": "figd_", "Postman API Key": "pmak-", "Atlassian Token": "atatt3", "Sentry Token": "sntrys_",
    "Supabase Token": "sbp_", "New Relic Key": "nrak-", "age Secret Key": "age-secret-key-",
    "Hookline Fleet Token": "hl1.", "NATS NKey Seed": "su sa so sn sc sx",
    "Terraform Cloud Token": ".atlasv1.", "Authorization Header": "authorization", "AWS Signature": "aws4-hmac",
    "GitHub Token": "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", "AWS Access Key": "a3t abia acca akia asia aws",
    "AWS Secret Key": "aws",
    "Azure Storage Account access key": "accountkey", "Basic Auth Credentials": "://", "JSON Web Token": "eyj",
    "Slack Webhook": "hooks.slack.com", "Artifactory Credentials": "akc ap",
    "Cloudant Credentials": "cloudant", "SoftLayer Credentials": "softlayer",
    "IBM Cloud IAM Key": "ibm cloud_iam cloud-iam",
    "IBM COS HMAC Credentials": "secret", "Mailchimp Access Key": "-us", "NPM tokens": "_authtoken",
    "OpenAI Token": "t3blbkfj", "PyPI Token": "pypi-", "SendGrid API Key": "sg.", "Slack Token": "xox hooks.slack.com",
    "Square OAuth Secret": "sq0csp", "Stripe Access Key": "k_live_",
    "GitLab Token": "glpat gldt glft glsoat glrt glcbt glimt glptt glagent gloas gr1348941",
}  # fmt: skip
"""What a text must contain, small letters, for a kind to be worth looking for: most texts contain none of it."""


_NAMED = ("pass", "pwd", "secret", "token", "key", "credential")
_LEAST, _LEAST_IN_LOGS = 12, 4
"""How long the value of a secret's name must be to raise an alarm, and to be taken out of a log, where it is cheap."""
_USER = re.compile(r"""(?<![\w-])(?:-u|--user|--proxy-user)[ =]["']?[^\s:"'$]{1,200}:([^\s"'$][^\s"']{0,200})""")


class Credential(msgspec.Struct, frozen=True, order=True):
    """A credential in a text: where, and of what kind."""

    start: int
    end: int
    kind: str


class SecretFormat(NamedTuple):
    """One format: its kind, its pattern, which group of it is the credential, and what a text must contain."""

    kind: str
    pattern: re.Pattern[str]
    group: int
    needles: tuple[str, ...]


@cache
def _patterns() -> tuple[SecretFormat, ...]:
    own = [(kind, re.compile(text)) for kind, text in _OWN.items()]
    known = [SecretFormat(kind, pattern, min(pattern.groups, 1), _needles(kind)) for kind, pattern in own]
    return (*known, *(SecretFormat(kind, pattern, 0, _needles(kind)) for kind, pattern in _plugins()))


def _plugins() -> list[tuple[str, re.Pattern[str]]]:
    """What `detect-secrets` knows besides, where it is installed; nothing depends on it."""
    try:
        modules = {name: import_module(f"detect_secrets.plugins.{name}") for name in _PLUGINS}
    except ImportError:
        return []
    plugins = [getattr(modules[name], cls)() for name, cls in _PLUGINS.items()]
    return [(plugin.secret_type, pattern) for plugin in plugins for pattern in plugin.denylist]


def _needles(kind: str) -> tuple[str, ...]:
    return tuple(_NEEDLES.get(kind, "").split())


def find(text: str) -> list[Credential]:
    """The credentials in `text`, in order, overlapping ones joined."""
    return list(_found(text))


def _found(text: str) -> tuple[Credential, ...]:
    return _find(text) if len(text) <= _MOST_KEPT else _find.__wrapped__(text)


_MOST_KEPT = 4_096  # longer texts are not kept in memory


@lru_cache(maxsize=512)
def _find(text: str) -> tuple[Credential, ...]:
    return tuple(_joined(sorted(_all(text))))


def _all(text: str) -> Iterator[Credential]:
    small = text.lower()
    for kind, pattern, group, needles in _patterns():
        if needles and not any(needle in small for needle in needles):
            continue
        for match in pattern.finditer(text):
            yield Credential(*match.span(group), kind)
    if "private" in small:
        yield from (Credential(*span, "Private Key") for span in key_blocks(text))
    if any(word in small for word in _NAMED):
        yield from (Credential(*span, "Password") for span in assigned_secrets(text, least=_LEAST, mixed=True))


def _joined(places: list[Credential]) -> Iterator[Credential]:
    current: Credential | None = None
    for place in places:
        if current is not None and place.start < current.end:
            current = Credential(current.start, max(current.end, place.end), current.kind)
            continue
        if current is not None:
            yield current
        current = place
    if current is not None:
        yield current


def redact(text: str) -> str:
    """The text with every credential replaced by `[redacted: its kind]`, also those that `find` is too careful for."""
    places = _redactable(text) if len(text) <= _MOST_KEPT else _redactable.__wrapped__(text)
    if not places:
        return text
    parts, at = [], 0
    for place in places:
        parts += [text[at : place.start], f"[redacted: {place.kind}]"]
        at = place.end
    return "".join([*parts, text[at:]])


@lru_cache(maxsize=512)
def _redactable(text: str) -> tuple[Credential, ...]:
    small = text.lower()
    places = list(_found(text))
    if any(word in small for word in _NAMED):
        spans = assigned_secrets(text, least=_LEAST_IN_LOGS, mixed=False)
        places += [Credential(*span, "Password") for span in spans]
    if "-u" in small:
        places += [Credential(*match.span(1), "Password") for match in _USER.finditer(text)]
    return tuple(_joined(sorted(places)))


# -- secrets by the name they are given: `dbPassword = "…"`, `CLIENT_SECRET=…`, `--token …`; a value in quotes is taken
# -- as it is written, one without is not when it looks like code or a placeholder: `$TOKEN`, `getpass(…)`, `<your key>`

LAST_WORDS = frozenset(
    {
        "password", "passwd", "passphrase", "passcode", "pwd", "secret", "token", "apikey", "authorization",
        "credential", "cookie", "bearer", "privatekey", "accesskey", "secretkey", "authtoken", "accesstoken",
    }
)  # fmt: skip
"""A name that ends in one of these holds a secret."""
_KEYS = "api access private secret signing encryption auth account master ssh host"
LAST_PAIRS = frozenset({("connection", "string"), ("pass", "phrase"), *((first, "key") for first in _KEYS.split())})
_PIECES = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_MOST_NAME = 128


def names_a_secret(name: str) -> bool:
    """Whether a field of this name holds a secret: `password`, `dbPassword`, `AWS_SECRET_ACCESS_KEY`, `x-api-key`."""
    words = [word.lower() for word in _PIECES.findall(name[-_MOST_NAME:])]
    if not words:
        return False
    last = words[-1] if words[-1] in LAST_WORDS else words[-1].removesuffix("s")
    return last in LAST_WORDS or (*words[-2:-1], last) in LAST_PAIRS


_NAME = re.compile(
    r"""(?i)(?:pass(?:word|wd|phrase|code)|pwd|secret|token|credential|(?:api|access|private|secret|signing|encryption|auth"""
    r"""|account|master)[_\- ]?key)s?["'`]?[ \t]{0,8}(?P<sep>=>|:=|[:=])[ \t]{0,8}(?P<list>\[\s{0,200})?"""
)
_FLAG = re.compile(
    r"""(?i)(?<![\w-])(?P<name>--?[a-z0-9-]{0,40}(?:password|passwd|passphrase|secret|token|api-?key|private-?key))"""
    r"""[= ][ \t]{0,8}(?=[^\s-])"""
)
_QUOTED = re.compile(r'"((?:[^"\\\n]|\\.){1,4096})"|\'((?:[^\'\\\n]|\\.){1,4096})\'|`([^`\n]{1,4096})`')
_OPEN_QUOTE = re.compile(r"[\"'`]([^\s\"'`,;]{1,4096})")
_BARE = re.compile(r"[^\s\"'`,;&|]{1,512}")
_BETWEEN = re.compile(r"\s{0,200},\s{0,200}")
_PLACEHOLDER = re.compile(
    r"\$[A-Za-z_(]\w*\Z|\$\{[^}]*\}\Z|\$\(.*|<.*|\{\{.*|%[({].*|\*+\Z|[xX]{3,}\Z|\.{3,}\Z|…|\[redacted|"
    r"(?i:change.?me|example|your|dummy|redacted|none\Z|null\Z|true\Z|false\Z|undefined\Z)"
)
_CODE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\Z|[A-Za-z_][\w.]*(?:\([^()]*\)?|\[[^\[\]]*\]?)[\w.()\[\]:,;]*\Z")
_SHOUTED = re.compile(r"[A-Z][A-Z0-9_]*=\Z")
_BEFORE = 64


def assigned_secrets(text: str, *, least: int, mixed: bool) -> Iterator[tuple[int, int]]:
    """Where the values of secrets' names are: of `least` characters; with `mixed`, of letters and digits."""
    for named in (_NAME, _FLAG):
        reached = 0
        for found in named.finditer(text):
            if found.start() < reached:  # it is part of a value
                continue
            shouted = _SHOUTED.search(text, max(found.start() - _BEFORE, 0), found.end()) is not None
            for start, end, quoted in _values(text, found.end(), several=bool(found.groupdict().get("list"))):
                value = text[start:end]
                if len(value) >= least and (not mixed or _is_mixed(value)) and _is_literal(value, quoted or shouted):
                    reached = end
                    yield start, end


def _values(text: str, at: int, *, several: bool) -> Iterator[tuple[int, int, bool]]:
    """The value there, or all quoted ones of a list."""
    while True:
        quoted = _QUOTED.match(text, at)
        if quoted is None:
            found = None if several else _OPEN_QUOTE.match(text, at) or _BARE.match(text, at)
            if found is not None:
                start, end = found.span(found.re.groups)
                yield start, end, found.re is _OPEN_QUOTE
            return
        start, end = quoted.span(quoted.lastindex or 0)
        yield start, end, True
        more = _BETWEEN.match(text, quoted.end()) if several else None
        if more is None:
            return
        at = more.end()


def _is_mixed(value: str) -> bool:
    """Whether it has digits and letters, as what a machine made has, and no blank."""
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value) and not any(c.isspace() for c in value)


def _is_literal(value: str, stated: bool) -> bool:  # noqa: FBT001 - quoted, or in a file of variables
    if _PLACEHOLDER.match(value):
        return False
    return stated or not _CODE.match(value)


# -- private keys: PEM with or without headers, OpenSSH, SSH2, PGP, PuTTY; one whose end is missing (the text was cut)
# -- goes on for as long as its lines look like lines of a key --------------------------------------------------------

_BEGIN = re.compile(r"-{4,5} ?BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_END = re.compile(r"-{4,5} ?END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_PUTTY = re.compile(r"PuTTY-User-Key-File-\d{1,4}:[^\n\\]{0,200}")
_PUTTY_END = re.compile(r"Private-(?:MAC|Hash): *[0-9a-fA-F]*")
_LINE = re.compile(
    r"[ \t>|│]{0,16}(?:\d{1,6}[ \t→:|]{1,4})?"  # what quotes and numbers lines
    r"(?:[A-Za-z][A-Za-z-]{1,40}: ?[^\n\\]{0,400}|[A-Za-z0-9+/=]{0,4096})[ \t,\"']{0,8}(?:\r?\n|\\r\\n|\\n|\Z)"
)
"""A line of a key: a header, a piece of base64, or nothing; its end may be written as an escape, as in JSON."""
_PIECE = re.compile(r"[ \t>|│]{0,16}(?:\d{1,6}[ \t→:|]{1,4})?[A-Za-z0-9+/=]{16,4096}")
"""The beginning of a line of a key, where other text goes on behind it."""


def key_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Where each private key begins and ends."""
    for begin, end in ((_BEGIN, _END), (_PUTTY, _PUTTY_END)):
        reached, last_end = 0, _last(end, text)
        for found in begin.finditer(text):
            if found.start() < reached:
                continue
            closed = end.search(text, found.end()) if found.end() <= last_end else None
            reached = closed.end() if closed is not None else _open_end(text, found.end())
            yield found.start(), reached


def _last(end: re.Pattern[str], text: str) -> int:
    """Where the last end of a block begins, so that none is looked for where there is none."""
    found = -1
    for match in end.finditer(text):
        found = match.start()
    return found


def _open_end(text: str, start: int) -> int:
    at = start
    while at < len(text):
        line = _LINE.match(text, at) or _PIECE.match(text, at)
        if line is None or line.end() == at:
            return at
        at = line.end()
    return at
