"""The flow of a coding agent: a secret or a text from outside on one side, what leaves, runs or stays on the other."""

import base64
import codecs
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from hookline.core.hooks.condition import EDITING
from hookline.core.shell import SimpleCommand, parse_line, writes
from hookline.display import one_line
from hookline.guards.detect import names_a_secret
from hookline.guards.flow.store import FlowRow, FlowStore, Origin
from hookline.guards.flow.values import addresses, contains, flat, fold, hosts_in, key_of, sentence_at
from hookline.guards.flow.words import CODE, asks_for, is_effect, tokens
from hookline.guards.permissions.line_reads import reads_of
from hookline.guards.tool_inputs import lines_of, paths_in

Level = Literal["ask", "deny"]
_WRITERS = EDITING | {"apply_patch"}
_SHELLS = re.compile(r"(?i)bash|shell|terminal|exec|run_command|monitor")
_WEB = re.compile(r"(?i)web_?(?:fetch|search)|browser?|fetch|navigate")
_VENDORED = re.compile(r"(?:^|/)(?:node_modules|site-packages|vendor|\.cargo/registry|third_party)/")
_KNOWN_HOSTS, _COMMON = (frozenset(CODE[name].split()) for name in ("known_hosts", "common"))
_ASKS_SECRET, _ASKS_INSTALL, _MANIFEST = (
    re.compile(CODE[name], re.IGNORECASE) for name in ("asks_secret", "asks_install", "manifest")
)
_SECRET_VALUE = re.compile(r"(?P<name>[\w.-]+)[\"']?\s*[=:]\s*[\"']?(?P<value>[^\s\"'=#]{8,})")
_LEAST_TOLD, _LEAST_SECRET, _LEAST_NAME = 10, 6, 4
_LONGEST_SENTENCE = 240
_QUOTES = str.maketrans("`'\"\\", "    ")


class FlowFinding(NamedTuple):
    """A doubt about a call; `keys` are what an approval of it covers."""

    level: Level
    rule: str
    why: str
    keys: tuple[str, ...] = ()
    source: str = ""
    sentence: str = ""

    @property
    def reason(self) -> str:
        """What the user reads: the doubt, and the sentence that told the agent so, with its source."""
        told = f'; {self.source} says: "{one_line(self.sentence, _LONGEST_SENTENCE)}"' if self.sentence else ""
        return f"{self.why}{told}"


def origin_of(tool: str, arguments: Mapping[str, Any]) -> Origin:
    """Who wrote what a call returns: the project, others, or a record that was kept."""
    lines, paths = _lines(tool, arguments), [path for _, path in paths_in(dict(arguments))]
    if lines:
        flows = [flow_of(line) for line in lines]
        return "secret" if any(f.secret for f in flows) else "outside" if any(f.outside for f in flows) else "inside"
    if any(map(is_secret, paths)):
        return "secret"
    if _WEB.search(tool) or any(map(_VENDORED.search, paths)):
        return "outside"
    return "inside" if paths else "outside" if tool.startswith("mcp__") else "record"


def secrets_in(text: str) -> list[str]:
    """The values of a secret file; a short plain word is not one."""
    found = {
        match["value"] for match in _SECRET_VALUE.finditer(text)
        if len(match["value"]) >= 16 or names_a_secret(match["name"]) or re.search(r"\d", match["value"])
    }  # fmt: skip
    found.update(re.findall(r"://[^\s:/]+:([^\s@]{6,})@", text))
    if "PRIVATE KEY" in text:
        found.update(line for line in text.split() if len(line) >= 16 and "-----" not in line)
    return sorted(found)[:200]


def _lines(tool: str, arguments: Mapping[str, Any]) -> list[str]:
    runs = _SHELLS.search(tool) is not None
    return [line.text for line in lines_of(arguments, runs=runs) if line.certain]


class CodeFlow:
    """Judges shell lines, edits and whatever carries a secret."""

    def __init__(self, store: FlowStore) -> None:
        self._store = store
        self._secret = f"a secret that was read ({store.secret_read})"

    def is_about(self, tool: str, arguments: Mapping[str, Any]) -> bool:
        """Whether a tool is for running lines or writing files of the project: the user need not ask for each call."""
        return tool in _WRITERS or (_SHELLS.search(tool) is not None and bool(_lines(tool, arguments)))

    def findings(self, tool: str, arguments: Mapping[str, Any]) -> Iterator[FlowFinding]:
        lines, everything = _lines(tool, arguments), "\n".join(flat(arguments))
        paths = [path for _, path in paths_in(dict(arguments))]
        for line in lines:
            yield from self._line(line, flow_of(line))
        if lines or (not self._store.texts and not self._store.secret_read):
            return
        if tool in _WRITERS:
            yield from self._write(paths, everything)
        elif _has_secret(self._store, everything) and (is_effect(tool) or _WEB.search(tool)):
            yield _found("deny", "secret", f"{self._secret} would leave through `{tool}`")
        if _WEB.search(tool):
            yield from self._fetch(everything)
        elif tool.startswith("mcp__") and is_effect(tool):
            kinds = (kind for kind, names in CODE["publishes"].items() if set(tokens(tool)) & set(names.split()))
            yield from self._publish(next(kinds, ""))

    def _line(self, line: str, flow: "LineFlow") -> Iterator[FlowFinding]:
        store, told = self._store, _told(self._store, line)
        strange = [host for host in flow.hosts if not _is_known(self._store, host)]
        where = ", ".join(strange or flow.hosts) or "an address that is made when it runs"
        sends_away = flow.carries and bool(strange or not flow.hosts)
        if _has_secret(self._store, line) and (flow.hosts or flow.carries or flow.publish):
            yield _found("deny", "secret", f"{self._secret} is in this command")
        if flow.secret and flow.carries and not (flow.hosts and not strange and _ASKS_SECRET.search(store.prompt)):
            level: Level = "ask" if flow.hosts and not strange else "deny"
            yield _found(level, "secret", f"reads a secret and sends to {where} in one line")
        yield from self._obeyed(line, flow, told, sends_away=sends_away)
        if sends_away:
            yield from self._egress(strange, where)
        yield from self._publish(flow.publish)
        if flow.adds_secret:
            yield _found("ask", "secret", "a file of secrets would be committed")
        if flow.secret and store.has_outside() and not told and not _ASKS_SECRET.search(store.prompt):
            yield _found("ask", "secret", "a secret would be read after a text from outside; you did not speak of one")
        if flow.persists:
            yield from self._persist(flow.persists, told)

    def _obeyed(self, line: str, flow: "LineFlow", told: FlowRow | None, *, sends_away: bool) -> Iterator[FlowFinding]:
        """A line that a text tells the agent to run, and code that comes from the network."""
        also_risky = flow.secret or sends_away or flow.persists
        prompt = self._store.prompt
        wanted = flow.remote_code and not also_risky and _ASKS_INSTALL.search(prompt) and _spoke_of(self._store, line)
        if told and wanted:
            if not flow.only_installs:
                yield _found("ask", "remote code", "a text wants this to be run, and you spoke of it", told, line)
        elif told and (also_risky or flow.remote_code):
            yield _found("deny", "echo", "a text tells the agent to run this", told, line)
        elif told and (flow.opaque or told.origin != "inside") and not _spoke_of(self._store, line):
            yield _found("ask", "echo", "a text tells the agent to run this", told, line)
        yield from (found for path in flow.removes for found in self._removed(path))
        if flow.remote_code and not wanted and (self._store.has_outside() or told):
            yield _found("ask", "remote code", "code from the network would run after a text from outside", told, line)

    def _removed(self, path: str) -> Iterator[FlowFinding]:
        """What a text speaks of removing, and the user does not."""
        name = fold(path.rstrip("/").rpartition("/")[2])
        if len(name) < _LEAST_NAME or self._store.says(name):
            return
        for text in self._store.texts:
            if contains(text.folded, name) >= 0:
                found = _found("ask", "echo", f"a text speaks of removing `{path}`, and you did not", text, name)
                by_line = text.origin != "inside" and re.search(r"\brm\b", found.sentence)
                if by_line or asks_for(found.sentence, frozenset({"delete"})):
                    yield found
                    return

    def _egress(self, strange: list[str], where: str) -> Iterator[FlowFinding]:
        store = self._store
        source = next(filter(None, map(store.text_with, strange)), None)
        if store.secret_read:
            yield _found("deny", "egress", f"{store.secret_read} was read, and data would go to {where}", source)
        elif source or store.has_outside():
            doubt = "you did not name" if store.has_outside() else "comes from a file"
            yield _found("deny", "egress", f"data would go to {where}, which {doubt}", source, *strange[:1])

    def _write(self, paths: list[str], everything: str) -> Iterator[FlowFinding]:
        for path in paths:
            if _has_secret(self._store, everything) and not is_secret(path):
                yield _found("ask", "secret", f"{self._secret} would be written to {path}")
            if (match := PERSISTS.search(path)) is not None:
                yield from self._persist(match.group(), _told(self._store, everything))
            for host in hosts_in(everything) if TALKS.search(everything) else ():
                if (source := self._store.text_with(host, outside=True)) and not _is_known(self._store, host):
                    yield _found("ask", "egress", f"{path} would send to `{host}`; you did not name it", source, host)
            if _MANIFEST.search(path):
                yield from self._dependency(everything.replace(path, ""))

    def _dependency(self, added: str) -> Iterator[FlowFinding]:
        """A package that only a text from outside named: its name says nothing of who publishes it."""
        for name in sorted(set(re.findall(r"[A-Za-z][\w.-]{3,}(?=\s*[=<>~^!@:\"'\]]|\s*$)", added, re.MULTILINE))):
            source = self._store.text_with(name, outside=True)
            if source and re.search(r"[-_.\d]", name) and not self._store.says(name):
                yield _found("ask", "dependency", f"you did not name the dependency `{name}`", source, name)

    def _persist(self, what: str, told: FlowRow | None) -> Iterator[FlowFinding]:
        stem = what.strip("/. ").split("/")[-1].lower()
        words = [stem, *(word for word in re.split(r"[._ -]+|config", stem) if len(word) >= 5)]
        prompt, stems = self._store.folded_prompt, CODE["stems"].get(stem, re.escape(stem))
        spoken = any(word in prompt for word in words) or re.search(rf"\b(?:{stems})", prompt)
        if not spoken and (told or self._store.has_outside()):
            why = f"`{what}` would be changed; you did not speak of it"
            yield _found("deny" if told else "ask", "persistence", why, told, what)

    def _publish(self, what: str) -> Iterator[FlowFinding]:
        if self._store.secret_read and what in ("gist", "comment", "issue"):
            yield _found("ask", "publish", f"{self._store.secret_read} was read, and this publishes text")
        asked = re.search(rf"\b(?:{CODE['asks'].get(what, what)})", self._store.prompt, re.IGNORECASE)
        if what not in ("", "push") and self._store.has_outside() and not asked:  # a push to its own remote is work
            yield _found("ask", "publish", f"you did not ask for a {what}, and a text from outside was read")

    def _fetch(self, everything: str) -> Iterator[FlowFinding]:
        if _has_secret(self._store, everything):
            yield _found("deny", "secret", f"{self._secret} is in the address")
        read = {key for text in self._store.texts for key in text.found}
        for one in addresses(everything):
            host = next(hosts_in(one.text), "")
            if not host or _is_known(self._store, host) or key_of(one.text) in read:
                continue
            source = self._store.text_with(host)
            if self._store.secret_read or source:
                why = f"`{host}` was not named by you, and the address is made up of more than was read"
                yield _found("deny", "egress", why, source, host)


def _is_known(store: FlowStore, host: str) -> bool:
    return host in _KNOWN_HOSTS or host in set(hosts_in(store.prompt)) or store.says(host)


def _has_secret(store: FlowStore, text: str) -> bool:
    return any(form in text for secret in store.secrets for form in _spellings(secret))


def _told(store: FlowStore, line: str) -> FlowRow | None:
    """The text that has this command, or a part of it, word by word."""
    for part in dict.fromkeys([line, *re.split(r"&&|;|\|\||\n", line)]):
        wanted = _squeezed(part)
        words = sorted(set(re.findall(r"\w+", wanted)), key=len, reverse=True)
        for text in store.texts if len(wanted) >= _LEAST_TOLD else ():
            if all(word in text.text for word in words) and wanted in _squeezed(text.text):
                return text
    return None


def _squeezed(text: str) -> str:
    return " ".join(text.translate(_QUOTES).split())


def _spoke_of(store: FlowStore, line: str) -> bool:
    """Whether the prompt and the line share a word that says what it is about: `rust` and `sh.rustup.rs`."""
    words = {word for word in re.findall(r"[a-z][\w.-]{3,}", fold(line)) if word not in _COMMON}
    spoken = {word for word in re.findall(r"[^\W\d_]{4,}", store.folded_prompt) if word not in _COMMON}
    return any(word in one for word in spoken for one in words)


def _spellings(secret: str) -> set[str]:
    """How a secret may be spelt; in base64 it may begin at any byte of a longer text."""
    data = secret.encode()
    found = {secret, secret[::-1], quote(secret, safe=""), data.hex(), codecs.encode(secret, "rot13")}
    found.add(base64.b32encode(data).decode().rstrip("=")[:-1])
    for skipped, lost in ((0, 0), (1, 2), (2, 3)):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            found.add(encode(bytes(skipped) + data).decode().rstrip("=")[lost:-1])
    return {one for one in found if len(one) >= _LEAST_SECRET}


def _found(level: Level, rule: str, why: str, told: FlowRow | None = None, about: str = "") -> FlowFinding:
    """A finding with the sentence that told the agent so, if one did: where it speaks of this."""
    found, words = FlowFinding(level, rule, why, (f"{rule}:{why}",)), fold(about)
    if told is None:
        return found
    at = max(told.folded.find(words), told.folded.find(words[:_LEAST_TOLD]), 0)
    return found._replace(source=told.source, sentence=sentence_at(told.text, at))


# What a shell line means for the flow of data.

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


_End = tuple[list[str], bool, str]


class LineFlow(NamedTuple):
    """What a line does."""

    hosts: tuple[str, ...] = ()
    carries: bool = False  # whether data leaves with it
    publish: str = ""  # what it publishes: `comment`, `pr`, `issue`, `gist`, `merge`, `review`, `release`, `push`
    remote_code: bool = False
    secret: bool = False  # whether it looks at a secret
    persists: str = ""  # what it leaves behind that runs later, or that later sessions obey
    outside: bool = False  # whether what it prints was written by others
    opaque: bool = False
    adds_secret: bool = False
    only_installs: bool = False
    removes: tuple[str, ...] = ()  # the words of commands that remove or overwrite for good


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
    if any(map(is_secret, (*(one.path for one in read.files), *read.mentioned, *pieces))):
        return True
    calls = any(_SECRET_CALLS.match(part.text) for part in parse_line(line).commands)
    return calls or _SECRET_WORDS.search(line) is not None


def _end(part: SimpleCommand) -> _End:
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
        far = [word for word in words if _BUCKET.match(word) or (_HOST.match(word) and (":" in word or "@" in word))]
        if kind == "ssh":
            far = far or [word for word in words if _HOST.fullmatch(word)][:1]
        hosts = [match[1] if (match := _HOST.match(word)) and "://" not in word else word for word in far]
        sends = later or fed if kind == "ssh" else bool(set(far) & set(_operands(words)[-1:])) or part.name == "rclone"
        return hosts, sends, ""
    if kind == "mail":
        return [one.text.partition("@")[2] for word in words for one in addresses(word)], True, ""
    if kind == "git":
        return _git(words, urls)
    return (urls, later, "") if kind == "lookup" else ([], False, _published(kind, words))


def _operands(words: Sequence[str]) -> list[str]:
    return [word for word in words if not word.startswith("-")]


def _git(words: Sequence[str], urls: list[str]) -> _End:
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
