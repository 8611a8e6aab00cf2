"""Which files a shell line writes, as far as its text tells: by redirection, and by the programs people write with.

Which of a program's words are files that it writes, the tag `writes` of its row says.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise, takewhile

import msgspec

from hookline.core.patches import read_patch
from hookline.core.paths import inside
from hookline.core.shell.programs.table import SHARED, lists, names, sed_flags
from hookline.core.shell.shell_line import LATER, Arguments, ShellLine, SimpleCommand, arguments, base_name, value_of
from hookline.errors import EventError

CHANGES_FOLDER = frozenset({"cd", "pushd", "popd", "chdir"})


def join(folder: str, path: str) -> str:
    """A path seen from a folder."""
    return path if not folder or path.startswith(("/", "~")) else f"{folder.rstrip('/')}/{path}"


def placed(line: ShellLine) -> Iterator[tuple[SimpleCommand, list[str]]]:
    """Every command of a line with the folders it may run in, relative to where the line starts; none: unknown.

    Those are all that the line may have changed to, or the one that it surely has after `cd x &&`.
    """
    possible: dict[tuple[int, ...], list[str]] = {(): [""]}
    sure = possible.copy()
    for command in line.commands:
        scope = command.scope
        if scope not in possible:
            outer = next(scope[:end] for end in range(len(scope), -1, -1) if scope[:end] in possible)
            possible[scope], sure[scope] = possible[outer], sure[outer]
        elif command.after != "&&":
            sure[scope] = possible[scope]
        folders = sure[scope]
        yield command, folders
        if command.name in CHANGES_FOLDER:
            known, after = possible[scope], _entered(command, folders)
            sure[scope] = after
            possible[scope] = list(dict.fromkeys([*known, *after])) if after and known else []


def _entered(command: SimpleCommand, folders: list[str]) -> list[str]:
    """Where a `cd` leads from these folders; nowhere that is known, perhaps."""
    words = [word for word in command.words[1:] if not re.fullmatch(r"-[LPe@n]+|--", word)]
    target = words[0] if words else "~"
    lost = command.dynamic or command.loops or command.name == "popd" or target[:1] in ("-", "+")
    return [] if lost or len(folders) > 16 else [join(folder, target) for folder in folders]


NAMES = frozenset({"apply_patch", "applypatch"})
_OPTION = "--codex-run-as-apply-patch"
_OTHER_NAME = re.compile(r"-[a-z]*a|--argv0(?:=.*)?")


def patch_of(command: SimpleCommand) -> str:
    """The patch that `apply_patch` is given: its one argument, or a here-document."""
    inputs = [redirect for redirect in command.redirects if redirect.op.startswith("<")]
    given = command.words[1:]
    if command.name in NAMES and not command.dynamic and not command.globs:
        if len(given) == 1 and not inputs:
            return given[0]
        if not given and len(inputs) == 1 and inputs[0].fd in ("", "0") and command.stdin is not None:
            return command.stdin
    raise EventError(f"what `{command.text[:60]}` is given cannot be read; give the patch in a here-document")


def applies_patch(command: SimpleCommand) -> bool:
    """Whether a command is `apply_patch`, or starts it under another name."""
    if not command.assignments and not any("patch" in word for word in command.words):
        return False
    if command.name in NAMES or _OPTION in command.words:
        return True
    renames = any(_OTHER_NAME.fullmatch(word) for word in command.words[1:])
    return (renames and names_it(command)) or any(base_name(value) in NAMES for name, value in command.assignments
                                                  if name == "ARGV0")  # fmt: skip


def names_it(command: SimpleCommand) -> bool:
    """Whether `apply_patch` is among the words that a command is given."""
    return any(base_name(word.rpartition("=")[2]) in NAMES for word in command.words[1:])


def patched(command: SimpleCommand) -> list[str]:
    """The files that `apply_patch` writes."""
    try:
        return [change.path for change in read_patch(patch_of(command))]
    except EventError:
        return [LATER + "the files of a patch"]


_ELSEWHERE = ("-C", "-D", "--chdir", "--working-directory")
_DIRECTORY_STACK = re.compile(r"~[+-]?\d*(?=/|$)(?<!~)")


class Writes(msgspec.Struct, frozen=True):
    """The files a line writes, creates, changes or removes; relative ones are relative to where the line starts."""

    targets: tuple[str, ...] = ()
    undecidable: tuple[str, ...] = ()  # why there may be more targets, one sentence each
    notes: tuple[str, ...] = ()  # code in other languages and scripts, which may write as well


def _links(command: SimpleCommand, folders: list[str]) -> dict[str, str]:
    words = arguments(command) if command.name == "ln" else None
    if words is None or len(words.given) != 2 or not words.has(r"-[a-zA-Z]*s[a-zA-Z]*|--symbolic"):
        return {}
    source, name = words.given
    inside = f"{name.rstrip('/')}/{source.rstrip('/').rsplit('/', 1)[-1]}"
    links = [join(folder, one) for folder in folders for one in (name, inside)]
    return {_short(link): join(link.rpartition("/")[0], source) for link in links}


def _short(path: str) -> str:
    return re.sub(r"(?:^|(?<=/))(?:\./+|/+)", "", path) if not path.startswith("/") else path


def written(line: ShellLine) -> Writes:
    """The files that a parsed line writes."""
    links: dict[str, str] = {}  # that the line makes before it writes through them
    roots = ["."]
    targets: dict[str, None] = {}
    unsure: dict[str, None] = dict.fromkeys((*line.undecidable, *line.code))
    for command, bases in placed(line):
        if command.name == "find":
            roots = find_roots(command)
        for target in _targets(command, roots):
            if target.startswith(LATER):
                where = f"`{command.name or 'the line'}` writes to `{target[1:][:60]}`"
                unsure[f"{where}, which is known only when it runs"] = None
            elif _DIRECTORY_STACK.match(target) or (not bases and not target.startswith(("/", "~"))):
                unsure[f"where `{target[:60]}` lies depends on an earlier `cd`"] = None
            else:
                paths = dict.fromkeys(join(base, target) for base in bases or [""])
                targets.update(paths)
                for short in map(_short, paths):
                    through = (lead + short[len(link) :] for link, lead in links.items() if inside(short, link))
                    targets.update(dict.fromkeys(through))
        links |= _links(command, bases)
        if command.name in ("env", "sudo", "systemd-run") and (
            value_of(command, *_ELSEWHERE) or any("WorkingDirectory=" in word for word in command.words)
        ):
            unsure[f"`{command.name}` runs its command in another folder"] = None
    kept = tuple(target for target in targets if not HARMLESS.fullmatch(target))
    return Writes(kept, tuple(unsure), line.notes)


def _targets(command: SimpleCommand, roots: list[str]) -> Iterable[str]:
    for redirect in command.redirects:
        if redirect.writes:
            yield redirect.target if redirect.known else LATER + redirect.target
    writer = patched if applies_patch(command) else written_by
    for target in writer(command):
        if target.startswith(LATER) and "{}" in target and any(via.startswith("find ") for via in command.via):
            yield from (target[1:].replace("{}", root) for root in roots)
        elif target not in ("", "-"):
            yield target


_REWRITES = frozenset({"black", "isort", "rustfmt"})
_FORMATTERS = _REWRITES | {
    "autopep8", "clang-format", "eslint", "gofmt", "goimports", "prettier", "shfmt", "stylelint", "yapf",
}  # fmt: skip
_WRITES, _OTHER_O = lists("writes") | dict.fromkeys(_FORMATTERS, ("if-told",)), names("other-o")
_USUAL = SHARED["%USUAL-OUTPUT"]
HARMLESS = re.compile(r"/dev/(?:null|zero|full|tty|stdin|stdout|stderr|fd/\d+)")


def written_by(command: SimpleCommand) -> list[str]:
    """The files among a command's words that it writes; of a program without the tag, where its output options point.

    Such a program may write anything; that is for its own rule to judge.
    """
    kinds = _WRITES.get(command.name, () if command.name in _OTHER_O else _USUAL)
    targets = value_of(command, *(kind for kind in kinds if kind.startswith("-")))
    for kind in kinds:
        if kind in _KINDS:
            targets += _KINDS[kind](command, arguments(command))
    return targets


def _every(command: SimpleCommand, words: Arguments) -> list[str]:
    return [*words.given, *words.values]


def _but_first(command: SimpleCommand, words: Arguments) -> list[str]:
    given = words.given if words.has(r"--reference=.*") else words.given[1:]
    return [*given, *words.values]


def _last(command: SimpleCommand, words: Arguments) -> list[str]:
    if words.has(r"-\w*t.*|--target-directory.*|-d|--directory"):
        return [*words.given, *words.values]
    return [*words.given[-1:], *words.values]


def _local_last(command: SimpleCommand, words: Arguments) -> list[str]:
    return [word for word in _last(command, words) if not re.match(r"[^/]*:", word)]


def _link(command: SimpleCommand, words: Arguments) -> list[str]:
    """A symbolic link is one new file; a hard link is another name of its source, so that counts as well."""
    if not words.has(r"-[a-zA-Z]*s[a-zA-Z]*|--symbolic"):
        return _every(command, words) if len(words.given) > 1 else [*_every(command, words), "."]
    if len(words.given) == 1:
        return [words.given[0].rstrip("/").rsplit("/", 1)[-1], *words.values]
    return _last(command, words)


def _sed_writes(script: str) -> bool:
    if re.search(r"(?:^|[;{}\s\d$/,!|#])w\s+\S", script):
        return True
    return any(re.match(r"[gpiImMe0-9]*w\s*\S", flags) for flags in sed_flags(script))


def _in_place(command: SimpleCommand, words: Arguments) -> list[str]:
    inside = [LATER + "a file named in the script"] if any(map(_sed_writes, words.given)) else []
    if not words.has(r"-[a-hj-zA-Z]*i.*|--in-place.*"):
        return inside
    return [*inside, *(words.given if words.has(r"-\w*[ef].*|--expression.*|--file.*") else words.given[1:])]


def _tar(command: SimpleCommand, words: Arguments) -> list[str]:
    mode = "".join(word.lstrip("-") for word in command.words[1:2] if not word.startswith("--"))
    long = " ".join(command.words)
    archives = value_of(command, "--file")
    archives += [found[1] for word in command.words[1:] if (found := re.fullmatch(r"-[A-Za-z]*?f(.*\W.*)", word))]
    for index, word in enumerate(command.words[1:-1], 1):
        bundled = re.fullmatch(r"-?[A-Za-z]*f", word) and (index == 1 or word.startswith("-"))
        if bundled and command.words[index + 1] not in archives:
            archives.append(command.marked[index + 1])
    folders = value_of(command, "-C", "--directory", "--one-top-level")
    if "x" in mode or "--extract" in long or "--get" in long or re.search(r"\s-[a-zA-Z]*x", long):
        absolute = ["/"] if "P" in mode or re.search(r"\s-[a-zA-Z]*P|--absolute-names", long) else []
        return [*(folders or ["."]), *absolute]
    reads = "t" in mode or "--list" in long
    return [] if reads else archives


def _bundled(command: SimpleCommand, letters: str) -> list[str]:
    """The values of options that stand at the end of a bundle: `-sSo x`."""
    pairs = pairwise(command.words[1:])
    return [value for word, value in pairs if re.fullmatch(rf"-[a-zA-Z]+[{letters}]", word)]


def _curl(command: SimpleCommand, words: Arguments) -> list[str]:
    here = ["."] if words.has(r"-[a-zA-Z]*[OJ][a-zA-Z]*|--remote-name.*") else []
    config = [LATER + "a file named in a curl configuration"] if words.has(r"-K.*|--config.*") else []
    return [*_bundled(command, "oDc"), *here, *config]


def _wget(command: SimpleCommand, words: Arguments) -> list[str]:
    named = any("-O" in word or "document" in word for word in command.words)
    return [*_bundled(command, "OPoa"), *([] if named else ["."])]


def _formatter(command: SimpleCommand, words: Arguments) -> list[str]:
    """Some rewrite what they are given unless they only check it, others when they are told to."""
    checks, told = words.has(r"--(?:check|diff).*|-c"), words.has(r"-\w*[iw]\w*|--write|--fix.*|--in-?place")
    return words.given if told or (command.name in _REWRITES and not checks) else []


_LOOKS_UP = re.compile(r"\s*(?:select|explain|\.(?:dump|headers|indexes|mode|schema|tables))\b", re.IGNORECASE)


def _database(command: SimpleCommand, words: Arguments) -> list[str]:
    """`sqlite3 file` writes to the file, unless it is asked to look something up in it."""
    orders = [order for text in words.given[1:] for order in text.split(";") if order.strip()]
    looks = words.has("--?readonly") or (orders and all(map(_LOOKS_UP.match, orders)))
    return [] if looks or words.given[:1] == [":memory:"] else words.given[:1]


_GIT_READS = frozenset(SHARED["%GIT-READS"])


def _git(command: SimpleCommand, words: Arguments) -> list[str]:
    folders = value_of(command, "-C", "--git-dir", "--work-tree", "--separate-git-dir")
    files = value_of(command, "--output", "-o", "--output-directory", "--file", "-f")
    given = [word for word in words.given if word not in folders and word not in files]
    name, rest = (given[0], given[1:]) if given else ("", [])
    if name == "config":
        places = {"--global": "~/.gitconfig", "--system": "/etc/gitconfig"}
        return [*(place for option, place in places.items() if option in words.options), *files, *(folders or ["."])]
    if name in ("clone", "init"):
        return [*(rest[name == "clone" :] or ["."]), *folders]
    if name == "worktree":
        return [*rest[1:2], *folders]
    if not name or name in _GIT_READS:
        pairs = (option.partition("=") for option in words.options)
        return [value for option, sign, value in pairs if "output" in f"{option}{sign}{value}" and value]
    files += [word for word in rest if word.startswith(("/", "~", ".."))]
    if name in ("mv", "rm", "restore"):
        files += rest
    elif name == "checkout":  # of a branch, perhaps
        files += [word for word in rest if "/" in word or "." in word]
    return [*(folders or ["."]), *dict.fromkeys(files)]


def find_roots(command: SimpleCommand) -> list[str]:
    """The folders that `find` goes through."""
    words = (word for word in command.marked[1:] if word not in ("-H", "-L", "-P"))
    return [*takewhile(lambda word: not word.startswith("-") and word not in ("(", "!"), words)] or ["."]


_AWK_PRINTS = re.compile(r'\bprintf?\b[^;}\n>]*>>?\s*(?:"([^"\\]*)"\s*(?=[;}\n]|$))?')


def _awk(command: SimpleCommand, words: Arguments) -> list[str]:
    """`print > "file"`; a name that awk works out is known only when it runs."""
    inside: list[str] = []
    for word in command.words[1:]:
        names = (found[1] for found in _AWK_PRINTS.finditer(word))
        inside += [LATER + "a file that awk names" if each is None else each for each in names]
    return [target for target in inside if not HARMLESS.fullmatch(target)]


_MAKERS = frozenset({"venv", "virtualenv", "zipfile", "tarfile", "zipapp", "gzip", "cookiecutter"})


def _python(command: SimpleCommand, words: Arguments) -> list[str]:
    """`python -m venv x` and the like write where their last words say."""
    return words.given[1:] if "-m" in words.options and words.given[:1] and words.given[0] in _MAKERS else []


_KINDS: dict[str, Callable[[SimpleCommand, Arguments], list[str]]] = {
    ".": lambda command, words: ["."],  # beside what it reads, or under a name that it is given
    "awk": _awk,
    "but-first": _but_first,
    "container": lambda command, words: _local_last(command, words) if "cp" in command.words[1:] else [],
    # with `--link` a copy is the same file as its source
    "copy": lambda command, words: (_every if words.has(r"-[a-zA-Z]*l[a-zA-Z]*|--link") else _last)(command, words),
    "cpio": lambda command, words: [*_bundled(command, "DOF"), *words.given[-1:]],
    "curl": _curl,
    "database": _database,
    "dd": lambda command, words: [w.replace("of=", "", 1) for w in command.marked[1:] if w.startswith(("of=", LATER))],
    "delete": lambda command, words: find_roots(command) if "-delete" in command.words else [],
    "every": _every,
    "git": _git,
    "if-told": _formatter,
    "in-place": _in_place,
    "last": _last,
    "link": _link,
    "local-last": _local_last,
    "new": lambda command, words: words.given[1:] if {*command.words[1:2]} & {"new", "init", "venv"} else [],
    "python": _python,
    "second": lambda command, words: words.given[1:2],
    "tar": _tar,
    "unzip": lambda command, words: [] if words.has(r"-\w*[lptZ]\w*") else value_of(command, "-d") or ["."],
    "wget": _wget,
}
