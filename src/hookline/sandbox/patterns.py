"""Command patterns such as `rm -rf *`, held against the words of one command: flags in any order and any spelling.

Shared by the text guards and the supervisor. The latter starts in every confined line, so this module loads nothing.
"""

from __future__ import annotations

from _collections_abc import Collection, Sequence

_SPELLINGS = {
    "rm": "recursive>r force>f dir>d R>r",
    "chmod": "recursive>R", "chown": "recursive>R", "chgrp": "recursive>R",
    "cp": "recursive>r force>f R>r a>ar archive>ar link>l",
    "mv": "force>f", "ln": "force>f symbolic>s", "mkdir": "parents>p", "tee": "append>a", "shred": "remove>u force>f",
    "sed": "in-place>i expression>e quiet>n silent>n file>f",
    "rsync": "recursive>r archive>ar a>ar rsh>e del>--delete delete-before>--delete delete-during>--delete "
    "delete-after>--delete delete-delay>--delete delete-excluded>--delete",
    "tar": "extract>x get>x create>c list>t file>f directory>C absolute-names>P",
    "git": "force>f delete>d",
    "git push": "force-with-lease>f force-if-includes>f mirror>fd prune>d branches>--all set-upstream>u",
    "git send-pack": "mirror>fd",
    "git commit": "no-verify>n all>a", "git merge": "no-verify>n", "git am": "no-verify>n",
    "git branch": "D>df M>mf C>cf move>m copy>c", "git switch": "discard-changes>f force-create>C create>c",
    "git add": "all>A no-ignore-removal>A", "git stash": "include-untracked>u all>a", "git rebase": "interactive>i",
    "docker": "force>f all>a volume>v volumes>v publish>p env>e user>u workdir>w detach>d net>--network pid>--pid",
    "podman": "force>f all>a volume>v volumes>v publish>p env>e user>u workdir>w detach>d net>--network",
    "kubectl": "filename>f all-namespaces>A recursive>R namespace>n", "docker-compose": "file>f volumes>v",
    "curl": "output>o insecure>k request>X data>d data-raw>d data-binary>d json>d form>F upload-file>T location>L "
    "config>K header>H user>u remote-name>O proxy>x",
    "wget": "output-document>O recursive>r mirror>mr m>mr quiet>q",
    "npm": "global>g force>f location=global>g", "pnpm": "global>g force>f recursive>r", "yarn": "force>f",
    "pip": "upgrade>U editable>e requirement>r target>t", "pip3": "upgrade>U editable>e requirement>r target>t",
    "sudo": "user>u group>g shell>s login>i edit>e preserve-env>E",
    "kill": "KILL>9 SIGKILL>9 s=KILL>9 s=SIGKILL>9 s=9>9 n=9>9 signal=KILL>9 signal=SIGKILL>9 signal=9>9",
    "apt": "yes>y assume-yes>y", "apt-get": "yes>y assume-yes>y", "dnf": "assumeyes>y",
    "yum": "assumeyes>y", "systemctl": "force>f", "make": "file>f makefile>f directory>C", "psql": "command>c file>f",
    "mysql": "execute>e", "node": "eval>e print>p", "php": "run>r", "grep": "recursive>r R>r", "ssh": "", "find": "",
    "gh": "force>f field>f raw-field>f method>X",
}  # fmt: skip
"""Options that are the same under another name, as `other>letters`: long ones, other letters, options with a value.

An abbreviation such as `--recurs` counts as everything it may stand for.
"""
_SPELLINGS["pkill"] = _SPELLINGS["killall"] = _SPELLINGS["kill"]
_COMMON = {"force": "f", "recursive": "r"}
"""What options are in short where a program has no row: most likely this, and a block must not depend on it."""
_WHOLE_WORDS = frozenset({"find", "terraform", "tofu", "java", "go", "openssl", "ffmpeg"})
"""Programs whose options are words behind a single `-`, so that `-exec` is not four letters."""
_GNU = {
    name: f"g{name}" for name in ("rm", "dd", "cp", "mv", "ln", "chmod", "chown", "chgrp", "rmdir", "shred", "kill")
}
_MOST_LETTERS = 4
STAR = "*"


Operand = tuple[str, bool, bool]
"""A word that is no flag, whether it is known, and whether it may be the value of the option before it."""
Sorted = tuple[frozenset[str], list[Operand], bool]
"""A command's flags, its other words in order, and whether a word that is known only later may still be a flag."""


class CommandPattern:
    """One pattern: a program's name, the flags it must have, and its other words in order.

    One that ends in a flag says nothing about the other words: `git push --force` matches wherever that flag stands.
    """

    def __init__(self, text: str) -> None:
        words = text.removesuffix(":*").split() + [STAR] * text.endswith(":*")
        table = _table(words[0], words[1:])
        flags, operands = [], []
        for at, word in enumerate(words[1:], 1):
            if word == "--":
                operands += words[at + 1 :]
                break
            if word.startswith("-") and len(word) > 1:
                flags += _wanted(words[0], word, table)
            else:
                operands.append(word)
        ends_in_flag = len(words) > 1 and len(words[-1]) > 1 and words[-1].startswith("-") and words[-1] != "--"
        self.text: str = text
        self.name: str = words[0]
        self.flags: tuple[tuple[frozenset[str], ...], ...] = tuple(flags)
        """Every flag as its spellings, each of which may be several flags together."""
        self.operands: tuple[str, ...] = (*operands, STAR) if ends_in_flag else tuple(operands)
        self._literal = next((each for each in operands if each.replace("-", "").isalnum()), "")

    def names(self, name: str) -> bool:
        """Whether a program of this name is meant: `rm`, `rm.exe`, and GNU's `grm` where it has that name."""
        name = name.removesuffix(".exe")
        return name == self.name or name == _GNU.get(self.name) or (STAR in self.name and matches_glob(self.name, name))

    def takes(self, name: str, words: Sequence[str]) -> bool:
        """Whether the pattern matches a program called `name` with these arguments, all of them known."""
        if self.names(name) and self.may_take(words):
            flags, operands, _ = self.sort(name, words)
            if self.has_flags(flags) and operands_fit(self.operands, operands, unsure=False):
                return True
        return _whole(self.text, " ".join([name, *words]))

    def may_take(self, words: Sequence[str]) -> bool:
        """Whether the words, all of them known, hold what the pattern spells out: a first look, before any sorting."""
        return not self._literal or any(self._literal in word for word in words)

    def sort(self, name: str, words: Sequence[str], unknown: Collection[int] = ()) -> Sorted:
        """The words of a program that the pattern names, flags apart."""
        return sort_words(name if STAR in self.name else self.name, words, unknown)

    def has_flags(self, flags: frozenset[str]) -> bool:
        """Whether all the pattern's flags are given, in whatever spelling; `--forc` may be `--force`."""
        return all(any(all(_has(flags, one) for one in group) for group in groups) for groups in self.flags)


def _whole(pattern: str, line: str) -> bool:
    """Whether a pattern matches a whole line; a closing ` *` also takes nothing."""
    pattern = pattern.removesuffix(":*") + " *" if pattern.endswith(":*") else pattern
    return matches_glob(pattern, line) or (pattern.endswith(" *") and matches_glob(pattern[:-2], line))


def _has(flags: frozenset[str], wanted: str) -> bool:
    if wanted in flags:
        return True
    if STAR in wanted and any(matches_glob(wanted, flag) for flag in flags):
        return True
    if not wanted.startswith("--"):
        return False
    name, sign, value = wanted.partition("=")
    stem = name.rstrip(STAR)
    for flag in flags:
        given, _, its_value = flag.partition("=")
        if len(given) > 2 and stem.startswith(given) and (not sign or matches_glob(value, its_value)):
            return True
    return False


def operands_fit(wanted: Sequence[str], given: Sequence[Operand], *, unsure: bool) -> bool:
    """Whether the words fit the pattern's in order; `*` takes one or more, a closing `*` any rest, none included."""
    end = len(wanted)
    states = {0}
    for text, known, may_be_value in given:
        after = set(states) if may_be_value else set()
        for state in states:
            if unsure and not known:
                after.update(range(state, end + 1))
            if state < end and wanted[state] == STAR:
                after.update((state, state + 1))
            elif state < end and known and _same(text, wanted[state]):
                after.add(state + 1)
        states = after
        if not states:
            return False
    return end in states or (end - 1 in states and wanted[-1] == STAR)


def _same(word: str, wanted: str) -> bool:
    if word == wanted or matches_glob(wanted, word):
        return True
    return "/" in word and matches_glob(wanted, shortest(word))


def shortest(path: str) -> str:
    """A path without what changes nothing: `//`, `/./`, a closing `/`."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return ("/" if path.startswith("/") else "") + "/".join(parts) or "."


def matches_glob(pattern: str, text: str) -> bool:
    """Whether a pattern with `*`, `?` and `[…]` matches a whole text; linear for `*`, whatever the text."""
    if "[" in pattern:
        from fnmatch import fnmatchcase

        return fnmatchcase(text, pattern)
    at = position = back = 0
    star = -1
    while at < len(text):
        if position < len(pattern) and pattern[position] == STAR:
            star, back = position, at
            position += 1
        elif position < len(pattern) and pattern[position] in ("?", text[at]):
            at, position = at + 1, position + 1
        elif star >= 0:
            back += 1
            at, position = back, star + 1
        else:
            return False
    return pattern[position:].strip(STAR) == ""


def sort_words(name: str, words: Sequence[str], unknown: Collection[int] = ()) -> Sorted:
    """A command's flags as a set, `-rf` and `--recursive --force` alike, and its other words."""
    flags: set[str] = set()
    operands: list[Operand] = []
    option, may_be_flag = "", False
    unknown = frozenset(unknown)
    for index, word in enumerate(words):
        known = index not in unknown
        if word == "--" and known:
            rest = range(index + 1, len(words))
            operands += [(words[at], at not in unknown, False) for at in rest]
            break
        if known and word.startswith("-") and len(word) > 1:
            flags |= _spellings(name, word)
            option, value = _valued(word)
            if value:
                flags.add(f"{option}={value}")
                operands.append((value, True, True))
            option = "" if "=" in word else word if word.startswith("--") else word[-1]
            continue
        if option and known:
            flags.add(f"{option}={word}")
        operands.append((word, known, bool(option)))
        option, may_be_flag = "", may_be_flag or not known
    if name == "git":
        flags |= _refspec_flags([text for text, _, _ in operands])
    return _meant(flags, _table(name, words)), operands, may_be_flag


def _refspec_flags(operands: list[str]) -> set[str]:
    """What a refspec does without a flag: `+main` forces, `:main` deletes."""
    forces = any(text.startswith("+") for text in operands[1:])
    deletes = "push" in operands and any(text.startswith(":") for text in operands[1:])
    return {*("f" * forces), *("d" * deletes)}


def _spellings(name: str, word: str) -> set[str]:
    """A flag as it is written, without its value and, behind a single `-`, as letters."""
    found = {word, word.partition("=")[0]}
    return found if word.startswith("--") or name in _WHOLE_WORDS else {*found, *word[1:]}


def _valued(word: str) -> tuple[str, str]:
    """An option and the value in the same word: `--user=root`, `-uroot`."""
    if word.startswith("--"):
        name, _, value = word.partition("=")
        return name, value
    return word[1], word[2:].removeprefix("=") if len(word) > 3 else ""


def _wanted(name: str, word: str, table: dict[str, str]) -> list[tuple[frozenset[str], ...]]:
    """The flags that a word of a pattern asks for, each with its spellings; `-wipe` is `--wipe` to some programs."""
    stem = word.rstrip(STAR)
    if word.startswith("--"):
        option, sign, value = word.partition("=")
        same = (letters for other, letters in table.items() if matches_glob(option, f"--{other}"))
        return [(frozenset({word}), frozenset({word[1:]}), *(_group(letters, sign + value) for letters in same))]
    if name in _WHOLE_WORDS or not 1 < len(stem) <= _MOST_LETTERS + 1:
        same = (letters for other, letters in table.items() if matches_glob(word, f"-{other}"))
        return [(frozenset({word}), frozenset({f"-{word}"}), *map(_group, same))]
    return [(frozenset({letter}), *([_group(table[letter])] if letter in table else [])) for letter in stem[1:]]


def _group(same: str, value: str = "") -> frozenset[str]:
    return frozenset({same + value}) if value or same.startswith("-") else frozenset(same)


def _meant(flags: set[str], table: dict[str, str]) -> frozenset[str]:
    """The flags with everything that they stand for; an abbreviation may stand for several."""
    found = set(flags)
    for flag in flags:
        bare = flag.lstrip("-")
        name, sign, value = bare.partition("=")
        for other, same in table.items():
            if other == bare or (flag.startswith("--") and bare and other.startswith(bare)):
                found |= _group(same)
            elif sign and other == name:
                found |= _group(same, sign + value)
    return frozenset(found)


_tables: dict[str, dict[str, str]] = {}


def _table(name: str, words: Sequence[str]) -> dict[str, str]:
    """The other names of a program's options, and of its subcommand's."""
    found = _row(name) if name in _SPELLINGS else _COMMON
    for word in words:
        if f"{name} {word}" in _SPELLINGS:
            found = found | _row(f"{name} {word}")
    return found


def _row(name: str) -> dict[str, str]:
    if name not in _tables:
        pairs = (word.rpartition(">") for word in _SPELLINGS[name].split())
        _tables[name] = {other: same for other, _, same in pairs}
    return _tables[name]
