"""Which of a program's words are files that it writes, by the tag `writes` of its row."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise, takewhile

from hookline.core.shell.programs.table import SHARED, lists, names, sed_flags
from hookline.core.shell.shell_line import LATER, Arguments, SimpleCommand, arguments, value_of

_WRITES, _OTHER_O = lists("writes"), names("other-o")
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
    mode = "".join(word.lstrip("-") for word in command.words[1:2])
    long = " ".join(command.words)
    archives = value_of(command, "--file")
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
    return [*(folders or ["."]), *files, *(word for word in rest if word.startswith(("/", "~", "..")))]


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
    "curl": _curl,
    "dd": lambda command, words: [w.replace("of=", "", 1) for w in command.marked[1:] if w.startswith(("of=", LATER))],
    "delete": lambda command, words: find_roots(command) if "-delete" in command.words else [],
    "every": _every,
    "git": _git,
    "in-place": _in_place,
    "last": _last,
    "link": _link,
    "local-last": _local_last,
    "new": lambda command, words: words.given[1:] if command.words[1:2] in (("new",), ("init",)) else [],
    "python": _python,
    "second": lambda command, words: words.given[1:2],
    "tar": _tar,
    "unzip": lambda command, words: [] if words.has(r"-\w*[lptZ]\w*") else value_of(command, "-d") or ["."],
    "wget": _wget,
}
