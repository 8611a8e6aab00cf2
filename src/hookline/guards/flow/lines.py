"""What a shell line means for the flow of data: where it sends, what it installs, publishes, leaves behind. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from hookline.core.shell import SimpleCommand, parse_line, writes
from hookline.guards.flow.values import addresses, hosts_in
from hookline.guards.flow.words import CODE
from hookline.guards.line_reads import reads_of

_NETWORK = {name: kind for kind, names in CODE["network"].items() for name in names.split()}
_SECRET_PATH, _SECRET_WORDS, _SECRET_CALLS, PERSISTS, _UPLOADS, TALKS, _OUTSIDE = (
    re.compile(CODE[name], re.IGNORECASE)
    for name in ("secret_path", "secret_words", "secret_calls", "persists", "uploads", "talks", "prints_outside")
)
_INSTALLERS, _INSTALLS, _RUNNERS, _INTERPRETERS, _FORGE = (
    frozenset(CODE[name].split()) for name in ("installers", "installs", "runners", "interpreters", "forge")
)
_ADDS = re.compile("git (?:add|commit)")
_REMOVERS = frozenset({"rm", "rmdir", "unlink", "shred", "truncate", "dd", "mkfs"})
_PLACERS = frozenset({"chmod", "ln", "cp", "mv", "install", "tee", "sed"})
_HOST = re.compile(r"(?:[\w.-]+@)?([\w-]+(?:\.[\w-]+)+):?")
_BUCKET = re.compile(r"(?:s3|gs|az)://")
_STAYS = re.compile(
    r"systemctl (?:--user )?enable|git config (?:--(?:global|system)|.*(?:hooksPath|alias\.|insteadOf))"
)
_WRITES_API = re.compile(r"api .*(?:-X\s*(?:POST|PUT|PATCH|DELETE)|-[fF]\b|--field|--input)")
_AT_HOST = re.compile(r"(?:[\w.-]+@)([\w.-]+):|(?:ssh|git)://(?:[\w.-]+@)?([\w.-]+)")


class LineFlow(NamedTuple):
    """What a line does."""

    hosts: tuple[str, ...] = ()
    carries: bool = False
    """Whether data leaves with it."""
    publish: str = ""
    """What it publishes: `comment`, `pr`, `issue`, `gist`, `merge`, `review`, `release`, `push`."""
    remote_code: bool = False
    secret: bool = False
    """Whether it looks at a secret."""
    persists: str = ""
    """What it leaves behind that runs later, or that later sessions obey."""
    outside: bool = False
    """Whether what it prints was written by others."""
    opaque: bool = False
    adds_secret: bool = False
    only_installs: bool = False
    removes: tuple[str, ...] = ()
    """The words of commands that remove or overwrite for good."""


@lru_cache(maxsize=512)
def flow_of(line: str) -> LineFlow:
    """What a line does, read and never run."""
    parsed = parse_line(line)
    commands = [part for part in parsed.commands if part.words]
    ends = [_end(part) for part in commands]
    talks = bool(parsed.code or parsed.undecidable) and TALKS.search(line) is not None
    hosts = [host for end in ends for host in end[0]] + (list(hosts_in(line)) if talks else [])
    hosts += re.findall(r"/dev/(?:tcp|udp)/([\w.-]+)", line)
    carries = any(end[1] for end in ends) or talks or "/dev/tcp/" in line or "/dev/udp/" in line
    downloads = any(_NETWORK.get(part.name) == "http" for part in commands)
    installs = [part for part in commands if _installs(part)]
    return LineFlow(
        hosts=tuple(dict.fromkeys(hosts)),
        carries=carries,
        publish=next((end[2] for end in ends if end[2]), ""),
        remote_code=bool(installs) or (downloads and _runs_download(commands)),
        secret=_reads_secret(line),
        persists=_persists(line, commands),
        outside=any(_OUTSIDE.fullmatch(part.text) for part in commands),
        opaque=bool(parsed.code or parsed.evaluates),
        adds_secret=any(_ADDS.match(part.text) and any(map(is_secret, part.words)) for part in commands),
        removes=tuple(word for part in commands if part.name in _REMOVERS for word in _operands(part.words[1:])),
        only_installs=len(commands) == len(installs) == 1 and "index" not in line and "://" not in line,
    )


def is_secret(path: str) -> bool:
    """Whether a path holds secrets, by its name."""
    return _SECRET_PATH.search(path.replace("$HOME", "~").replace("${HOME}", "~")) is not None


def _reads_secret(line: str) -> bool:
    """Whether a line looks at a secret: a file, a variable, a store of secrets."""
    read = reads_of(line)
    pieces = (piece for word in re.split(r"\s+", line) for piece in re.split(r"[=@:(),'\"<>;|&`]", word))
    return (
        any(is_secret(path) for path in (*(one.path for one in read.files), *read.mentioned, *pieces))
        or _SECRET_WORDS.search(line) is not None
        or any(_SECRET_CALLS.match(part.text) for part in parse_line(line).commands)
    )


def _end(part: SimpleCommand) -> tuple[list[str], bool, str]:
    """Where one command sends to, whether data goes there, and what it publishes."""
    kind, words = _NETWORK.get(part.name, ""), part.words[1:]
    urls = [host for word in words for host in hosts_in(word)]
    fed = part.after == "|" or any(redirect.op in ("<", "<<", "<<<") for redirect in part.redirects)
    later = bool(part.unknown)
    if kind == "http":
        method = any(re.fullmatch(r"(?i)-X\s*(?:POST|PUT|PATCH|DELETE)|POST|PUT|PATCH", word) for word in words)
        return urls, later or method or any(_UPLOADS.fullmatch(word) for word in words), ""
    if kind == "raw" and (part.name != "openssl" or "s_client" in words):
        return [*urls, *(word for word in words if re.fullmatch(r"[\w-]+(?:\.[\w-]+)+", word))], True, ""
    if kind in ("copy", "ssh"):
        return _copy(part.name, words, later=later, fed=fed)
    if kind == "mail":
        return [one.text.partition("@")[2] for word in words for one in addresses(word)], True, ""
    if kind == "git":
        return _git(words, urls)
    return (urls, later, "") if kind == "lookup" else ([], False, _published(kind, words))


def _operands(words: Sequence[str]) -> list[str]:
    return [word for word in words if not word.startswith("-")]


def _copy(name: str, words: Sequence[str], *, later: bool, fed: bool) -> tuple[list[str], bool, str]:
    far = [word for word in words if _BUCKET.match(word) or (_HOST.match(word) and (":" in word or "@" in word))]
    if name == "ssh":
        far = far or [word for word in words if _HOST.fullmatch(word)][:1]
    hosts = [match[1] if (match := _HOST.match(word)) and "://" not in word else word for word in far]
    sends = later or fed if name == "ssh" else bool(set(far) & set(_operands(words)[-1:])) or name == "rclone"
    return hosts, sends, ""


def _git(words: Sequence[str], urls: list[str]) -> tuple[list[str], bool, str]:
    rest = _operands(words)
    far = urls + [match[1] or match[2] for word in words if (match := _AT_HOST.match(word))]
    if rest[:1] == ["push"]:
        return far, bool(far), "push"
    renames = rest[:1] == ["remote"] and rest[1:2] in (["add"], ["set-url"])
    return (far, True, "") if renames or (rest[:1] == ["config"] and far) else ([], False, "")


def _published(kind: str, words: Sequence[str]) -> str:
    if kind == "registry":
        return "release" if words[:1] and words[0] in ("publish", "upload", "push") else ""
    action = words[1] if kind == "forge" and len(words) > 1 else ""
    if action in _FORGE:
        return action if action in ("comment", "review", "merge") else words[0]
    return "comment" if kind == "forge" and _WRITES_API.match(" ".join(words)) else ""


def _installs(part: SimpleCommand) -> bool:
    """Whether a command brings in packages that no file of the project names."""
    words = part.words[1:]
    if part.name not in _INSTALLERS or not (part.name in _RUNNERS or set(words[:3]) & _INSTALLS):
        return False
    own = _INSTALLS | {"pip", ".", "tool", "run"}
    packages = [word for word in _operands(words) if word not in own]
    listed = any(word.endswith((".txt", ".toml", ".lock")) for word in packages) or not packages
    return not listed or any("index" in word or "registry" in word for word in words)


def _runs_download(commands: Sequence[SimpleCommand]) -> bool:
    """Whether something runs what was downloaded: through a pipe, a substitution, or a file."""
    files: set[str] = set()
    fetched = False
    for part in commands:
        names = {word.rpartition("/")[2] for word in part.words}
        if _NETWORK.get(part.name) == "http":
            fetched = True
            files |= {word.partition("?")[0].rpartition("/")[2] for word in part.words[1:]}
            files |= {redirect.target for redirect in part.redirects}
        elif part.name in _INTERPRETERS:
            piped = part.after == "|" and part.words[1:3] != ("-m", "json.tool")
            if (fetched and (piped or part.unknown)) or names & files - {""}:
                return True
        elif part.name in files - {""}:
            return True
    return False


def _persists(line: str, commands: Sequence[SimpleCommand]) -> str:
    places = [match.group() for target in writes(line).targets if (match := PERSISTS.search(target))]
    for part in commands:
        if part.name in ("crontab", "at", "launchctl") and part.words[1:] != ("-l",):
            places.append(part.name)
        elif _STAYS.match(part.text):
            places.append(part.text[:40])
        elif part.name in _PLACERS and (match := PERSISTS.search(part.text)):
            places.append(match.group())
    return places[0] if places else ""
