"""Credentials in text: every known format is found, ordinary code raises next to no alarm.

The tokens are put together at run time, so that none stands in a file.
"""

from __future__ import annotations

import sysconfig
import time
from itertools import pairwise
from pathlib import Path

import pytest

from hookline.guards import detect

HEX, MIXED, CAPITALS = "0123456789abcdef" * 8, "a1B2c3D4e5F6g7H8i9J0" * 8, "A1B2C3D4E5F6G7H8" * 8
TOKENS = {
    "Anthropic": "sk-" + "ant-api03-" + MIXED[:80],
    "OpenAI project": "sk-" + "proj-" + MIXED[:60],
    "OpenAI service": "sk-" + "svcacct-" + MIXED[:60],
    "OpenAI": "sk-" + MIXED[:20] + "T3Blbk" + "FJ" + MIXED[:20],
    "GitHub classic": "gh" + "p_" + MIXED[:36],
    "GitHub app": "gh" + "s_" + MIXED[:36],
    "GitHub fine": "github" + "_pat_" + MIXED[:60],
    "GitLab": "gl" + "pat-" + MIXED[:20],
    "AWS key": "AK" + "IA" + CAPITALS[:16],
    "AWS secret": "AWS_SECRET_ACCESS_KEY" + "=" + MIXED[:40],
    "Google": "AI" + "za" + MIXED[:35],
    "Google OAuth": "ya29" + "." + MIXED[:40],
    "Hugging Face": "hf" + "_" + MIXED[:34],
    "DigitalOcean": "dop" + "_v1_" + HEX[:64],
    "npm": "npm" + "_" + MIXED[:36],
    "PyPI": "pypi-" + "AgEIcHlwaS5vcmc" + MIXED[:70],
    "Slack bot": "xox" + "b-" + "123456789012-123456789012-" + MIXED[:24],
    "Slack hook": "https://hooks." + "slack.com/services/T" + CAPITALS[:8] + "/B" + CAPITALS[:8] + "/" + MIXED[:24],
    "Stripe live": "sk" + "_live_" + MIXED[:24],
    "Stripe restricted": "rk" + "_live_" + MIXED[:24],
    "Stripe hook": "whsec" + "_" + MIXED[:32],
    "SendGrid": "SG" + "." + MIXED[:22] + "." + MIXED[:43],
    "Twilio": "SK" + HEX[:32],
    "Telegram": "1234567890" + ":" + MIXED[:35],
    "Shopify": "shp" + "at_" + HEX[:32],
    "Vault": "hv" + "s." + MIXED[:90],
    "Databricks": "da" + "pi" + HEX[:32],
    "Grafana": "gl" + "sa_" + MIXED[:41],
    "Groq": "gs" + "k_" + MIXED[:52],
    "xAI": "xa" + "i-" + MIXED[:80],
    "Replicate": "r8" + "_" + MIXED[:37],
    "Perplexity": "pp" + "lx-" + MIXED[:48],
    "Linear": "lin" + "_api_" + MIXED[:40],
    "Notion": "nt" + "n_" + MIXED[:46],
    "Figma": "fi" + "gd_" + MIXED[:40],
    "Postman": "PM" + "AK-" + HEX[:24] + "-" + HEX[:34],
    "Atlassian": "ATA" + "TT3" + MIXED[:120],
    "Sentry": "sntr" + "ys_" + MIXED[:80],
    "Supabase": "sb" + "p_" + HEX[:40],
    "New Relic": "NR" + "AK-" + CAPITALS[:27],
    "age": "AGE-SECRET" + "-KEY-1" + CAPITALS[:58],
    "Terraform": MIXED[:14] + ".atlas" + "v1." + MIXED[:67],
    "JWT": "ey" + "JhbGciOiJIUzI1NiJ9" + ".ey" + "JzdWIiOiIxMjM0NTY3ODkwIn0" + "." + MIXED[:43],
    "Azure": "DefaultEndpoints;Account" + "Key=" + MIXED[:86] + "==",
    "basic auth": "https://user:" + "hunter2hunter2" + "@example.com/x",
    "database": "postgres://app:" + "s3cr3tpassw0rd" + "@db/app",
    "bearer": "Authorization: " + "Bearer " + MIXED[:40],
    "password": "pass" + "word = '" + MIXED[:16] + "'",
    "env password": "DB_PASS" + "WORD=" + MIXED[:16],
    "api key json": '"api' + '_key": "' + MIXED[:24] + '"',
    "PEM": "-----BEGIN RSA " + "PRIVATE KEY-----\n" + MIXED + "\n-----END RSA " + "PRIVATE KEY-----",
    "PEM, open end": "-----BEGIN " + "PRIVATE KEY-----\n" + MIXED,
    "PEM with headers": "-----BEGIN RSA "
    "PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\n"
    + MIXED
    + "\n-----END RSA "
    + "PRIVATE KEY-----",
    "PEM with headers, open end": "-----BEGIN RSA " + "PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"
    "DEK-Info: AES-128-CBC,00FF\n\n" + MIXED,
    "PEM in JSON": "-----BEGIN EC " + "PRIVATE KEY-----\\nProc-Type: 4,ENCRYPTED\\n\\n" + MIXED + "\\n",
    "PEM with line numbers": "-----BEGIN " + "PRIVATE KEY-----\n     2\t" + MIXED[:64] + "\n     3\t" + MIXED[64:],
    "PGP": "-----BEGIN PGP " + "PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\nComment: none\n\n" + MIXED + "\n=aB1c\n"
    "-----END PGP " + "PRIVATE KEY BLOCK-----",
    "PGP, open end": "-----BEGIN PGP " + "PRIVATE KEY BLOCK-----\n\n" + MIXED,
    "SSH2": "---- BEGIN SSH2 ENCRYPTED " + 'PRIVATE KEY ----\nComment: "me"\n' + MIXED,
    "PuTTY": "PuTTY-User-Key-File-2: ssh-rsa\nEncryption: none\nComment: me\nPublic-Lines: 1\nAAAA\n"
    "Private-" + "Lines: 2\n" + MIXED + "\nPrivate-MAC: " + HEX[:40],
    "PuTTY, open end": "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nPrivate-" + "Lines: 2\n" + MIXED,
    "basic header": "Authorization: " + "Basic " + MIXED[:24] + "==",
    "proxy header": "Proxy-Authorization: " + "Basic " + MIXED[:24],
    "header in JSON": '"Authorization": "' + "Basic " + MIXED[:24] + '"',
    "token header": "authorization: " + "token " + MIXED[:40],
    "bare header": "Authorization: " + MIXED[:40],
    "camelCase": "db" + 'Password: "' + MIXED[:16] + '"',
    "camelCase secret": "client" + "Secret=" + MIXED[:20],
    "camelCase key": "{api" + "Key: '" + MIXED[:20] + "'}",
    "camelCase token": "access" + "Token => " + MIXED[:20],
    "password with $": "PASS" + "WORD=$" + MIXED[:16] + "$",
    "password with [": "PASS" + "WORD=" + MIXED[:16] + "[x]",
    "password with (": "pass" + 'word: "' + MIXED[:16] + '(y)"',
    "password with {": "pass" + "word='{" + MIXED[:16] + "}'",
    "list of passwords": '"pass' + 'words": ["' + MIXED[:20] + '", "' + MIXED[1:21] + '"]',
    "fleet token": "hl1" + "." + MIXED[:32] + "." + MIXED[1:33],
    "NKey seed of a user": "SU" + "A2B3C4D5" * 7,
    "NKey seed of an account": "SA" + "QZ7XK3MW" * 7,
    "OpenSSH": "-----BEGIN OPENSSH " + "PRIVATE KEY-----\n" + MIXED + "\n-----END OPENSSH " + "PRIVATE KEY-----",
}


@pytest.mark.parametrize("name", TOKENS)
def test_a_credential_is_found_and_taken_out(name: str) -> None:
    """In the middle of other text, and nothing of it is left."""
    token = TOKENS[name]
    text = f"before\nexport X={token}\nafter"
    assert MIXED[:16] not in detect.redact(f"use {token} please")

    clean = detect.redact(text)

    assert detect.find(text)
    assert "[redacted: " in clean
    assert clean.startswith("before\n")
    assert MIXED[:16] not in clean
    assert HEX[:16] not in clean


@pytest.mark.parametrize(
    "text",
    [
        "password = os.environ['PASSWORD']",
        "password: str",
        'password = getpass("Password: ")',
        "api_key = settings.API_KEY_FOR_TESTS_2",
        "token = request.headers['Authorization']",
        "secret = secrets.token_hex(32)",
        "def f(password=None, api_key=None): ...",
        'curl -H "Authorization: Bearer $TOKEN" https://x',
        "https://user@example.com/x",
        "https://example.com:8080/a@b",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "550e8400-e29b-41d4-a716-446655440000",
        "-----BEGIN PUBLIC KEY-----",
        "-----BEGIN CERTIFICATE-----",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGx me@host",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        "sk-learn and skip-navigation-link-for-everyone",
        "password: ********",
        "PASSWORD=changeme",
        "$ANTHROPIC_API_KEY",
        "api_key=<your-api-key-here-123>",
        "integrity sha512-abcDEF123+/abcDEF123+/abcDEF123+/abcDEF123==",
    ],
)
def test_what_only_resembles_one_is_left_alone(text: str) -> None:
    """Names of variables, hashes, public keys and placeholders are no secrets."""
    assert not detect.find(text)


def test_ordinary_code_raises_next_to_no_alarm() -> None:
    """This package and a good part of the standard library: not one in a hundred thousand lines."""
    own = Path(__file__).parents[3] / "src"
    library = Path(sysconfig.get_paths()["stdlib"])
    files = [*own.rglob("*.py"), *sorted(library.glob("[a-m]*.py"))]
    texts = [file.read_text("utf-8", "replace") for file in files]

    alarms = [(file.name, place) for file, text in zip(files, texts, strict=True) for place in detect.find(text)]

    assert sum(text.count("\n") for text in texts) > 50_000
    assert alarms == []


def test_places_are_in_order_and_do_not_overlap() -> None:
    """A text with several is cut cleanly."""
    text = " ".join(TOKENS.values())
    places = detect.find(text)

    assert all(one.end <= other.start for one, other in pairwise(places))


def test_a_needle_never_hides_a_pattern() -> None:
    """Every kind that is looked for only in some texts is a kind there is."""
    kinds = {kind for kind, *_ in detect._patterns()}
    lines = Path(detect.__file__).with_name("credentials.txt").read_text().splitlines()
    named = {line.partition(" => ")[0] for line in lines if " => " in line and not line.startswith("#")}

    assert len(named) > 50
    assert named <= kinds


LOGGED = {
    "pass" + "word=hunter2": "hunter2",
    "my" + "Password: correct horse": "correct",
    "--pass" + "word hunter2": "hunter2",
    "--db-pass" + "word='a b(c'": "b(c",
    "curl -u me:" + "hunter2 https://x": "hunter2",
    "TOK" + "EN=p$ss[w(rd": "p$ss[w(rd",
    'client_secret: ["one-two", "three-four"]': "three-four",
    "SEC" + "RET=abc(def)": "abc(def)",
}


@pytest.mark.parametrize("text, secret", LOGGED.items())
def test_a_log_loses_more_than_an_alarm_is_raised_for(text: str, secret: str) -> None:
    """What a name calls a secret is taken out of a log however short it is: nobody misses it there."""
    assert secret not in detect.redact(f"ran {text} and so on")
    assert detect.redact(f"ran {text} and so on").startswith("ran ")


BEGINNINGS = (
    "-----BEGIN ", "-----BEGIN PRIVATE KEY-----\n", "password=", "password=$", "token: [", "Authorization: ",
    "PuTTY-User-Key-File-2:", "--token ", "-u a:", "secret='", "aPassword => x(", "token: [\"a\", ",
)  # fmt: skip


@pytest.mark.parametrize("text", BEGINNINGS)
def test_no_text_takes_long(text: str) -> None:
    """A quarter of a million characters of what only begins like a secret: read once, not once for each."""
    started = time.process_time()
    detect.redact(text * (250_000 // len(text)))

    assert time.process_time() - started < 10  # quadratic, it would be a minute
