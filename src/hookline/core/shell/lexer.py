r"""Reading shell words one after another: quoting, expansions, substitutions.

Written for this job: a highlighter's grammar is built to be lenient, and reads `[ a | rm -rf / ]` as one test and
`r\\⏎m` as two words. Here every character is accounted for, and what is not plainly understood stops the reading.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import NamedTuple

from hookline.core.shell.programs.table import CODE_VARIABLES
from hookline.core.shell.shell_line import MAX_DEPTH, MAX_LENGTH, MAX_WORDS, ParseState, Undecidable

UNKNOWN = "\ue001"
_MAX_BRACES = 32
_SPECIAL = "*?[]{},~."
_MASK = {ord(char): chr(0xE000 + ord(char)) for char in _SPECIAL}
_UNMASK = {0xE000 + ord(char): char for char in _SPECIAL} | {ord(UNKNOWN): None}
_PRIVATE = re.compile("[\ue000-\ue0ff\x00\ud800-\udfff]")
_PATTERN = re.compile(r"[*?]|\[.*\]", re.DOTALL)
_SEQUENCE = re.compile(r"(?:-?\d+|[A-Za-z])\.\.(?:-?\d+|[A-Za-z])(?:\.\.-?\d+)?")
_SIMPLE_ESCAPES = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_ANSI = re.compile(r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|(.))", re.DOTALL)


def mask(text: str) -> str:
    """The text as it stands inside quotes."""
    return text.translate(_MASK)


def unmask(text: str) -> str:
    """What the command receives."""
    return text.translate(_UNMASK)


def is_pattern(text: str) -> bool:
    """Whether the shell replaces a word by the names of files; `[` alone is a command."""
    return _PATTERN.search(text) is not None


def _ansi_escape(match: re.Match[str]) -> str:
    octal, byte, short, long, char = match.groups()
    if char is not None:
        if char not in _SIMPLE_ESCAPES:
            raise Undecidable(f"`$'…'` has the escape `\\{char}`")
        return _SIMPLE_ESCAPES[char]
    code = int(octal, 8) & 0xFF if octal else int(byte or short or long, 16)
    if not 0 < code < 0x80:
        raise Undecidable("`$'…'` holds a character outside ASCII")
    return chr(code)


def expand_braces(word: str) -> list[str]:
    """The words that `{a,b}` stands for; a sequence such as `{1..9}` is left as one unknown word."""
    if word.count("{") > _MAX_BRACES:
        raise Undecidable("a word holds too many braces")
    done: list[str] = []
    todo = [word]
    while todo:
        current = todo.pop()
        found = _first_brace(current)
        if found is None:
            done.append(current)
        else:
            todo.extend(reversed(found))
        if len(todo) + len(done) > MAX_WORDS:
            raise Undecidable("braces expand to too many words")
    return done


def _first_brace(word: str) -> list[str] | None:
    start = word.find("{")
    while start >= 0:
        parts, end = _brace_parts(word, start)
        if len(parts) > 1:
            return [word[:start] + part + word[end:] for part in parts]
        if parts and _SEQUENCE.fullmatch(unmask(parts[0])):
            return [UNKNOWN + word[:start] + mask(word[start:end]) + word[end:]]
        start = word.find("{", start + 1)
    return None


def _brace_parts(word: str, start: int) -> tuple[list[str], int]:
    """What stands between the commas of the brace at `start`, and where it ends; nothing when it is not closed."""
    depth, begin, parts = 0, start + 1, []
    for index in range(start, len(word)):
        char = word[index]
        if char == "{":
            depth += 1
        elif char == "," and depth == 1:
            parts.append(word[begin:index])
            begin = index + 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                return [*parts, word[begin:index]], index + 1
    return [], start


_PLAIN = re.compile(r"[^\s;&|<>()\\'\"$`]+")
_IN_QUOTES = re.compile(r'[^"\\$`]+')
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
_BRACED_NAME = re.compile(r"\$\{[A-Za-z_]\w*\}")
_CLOSING_BRACE = re.compile(r"\}")
_SINGLE_QUOTES = re.compile(r"'([^']*)'")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_ANSI_STRING = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_BACKTICKS = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL)
_ARITHMETIC = re.compile(r"[\w\s+\-*/%<>=!&|^~?:,.#\[\]]+")
_ARITHMETIC_NAME = re.compile(r"(?<![\w$#{])[A-Za-z_]\w*")
_DEFAULT_VALUE = re.compile(r"\$\{(\w+)(?:\[[^]}]*\])?:?=")
_COUNTED = re.compile(r"\$\{[!#]?\w+(?:\[(?![@*]\]|\d+\])|(?:\[[^]}]*\])?:(?![-=?+])(?! *-?\d+(?::-?\d+)?\}))")
_BLANK = re.compile(r"(?:[ \t]|\\\n)+")


# Builtins that may set a variable without its name standing in the line, and braces, which may spell such a builtin.
_HIDES_NAMES = re.compile(
    r"\b(?:eval|source|read|printf|declare|typeset|local|export|mapfile|readarray|getopts|let|trap|alias)\b"
    r"|(?:^|[\s;&|(])\.\s|(?<!\$)\{"
)
_KNOWN = {"HOME": "~", "PWD": "."}  # variables that have another spelling, as long as the line does not set them
_NO_QUOTES = {ord(char): None for char in "'\"\\"}


class Word(NamedTuple):
    """One word as it was read: masked text, and where its first quoting or expansion starts (-1: nowhere)."""

    text: str
    bare_until: int
    start: int
    end: int
    split: tuple[str, ...] = ()  # the words that an unquoted `$x` with a constant value stands for

    @property
    def bare(self) -> str:
        """The word if it has no quoting at all, else nothing: only such a word can be a keyword."""
        return self.text if self.bare_until < 0 else ""

    def expanded(self) -> list[tuple[str, bool]]:
        """What the command receives, and whether it is known."""
        if self.split:
            return [(part, True) for part in self.split]
        if "{" not in self.text:
            return [(unmask(self.text), UNKNOWN not in self.text)]
        expanded = expand_braces(self.text)
        texts = [text for text in expanded if text]  # bash drops an empty word, unless a part of it was quoted
        if len(texts) < len(expanded) and (not texts or self.bare_until >= 0):
            raise Undecidable("braces leave an empty word")
        # a `$` that was followed by nothing to replace may be now: `{,$}HOME`
        return [(unmask(text), UNKNOWN not in text and (text == self.text or "$" not in text)) for text in texts]


class WordReader(ABC):
    """Reads words, with what is quoted and what the shell replaces: `'…'`, `"…"`, `$x`, `${…}`, `$(…)`, `$((…))`."""

    def __init__(self, source: str, found: ParseState, depth: int) -> None:
        if len(source) > MAX_LENGTH:
            raise Undecidable(f"the line is longer than {MAX_LENGTH} characters")
        if _PRIVATE.search(source):
            raise Undecidable("the line holds characters that are not text")
        self.source = source
        self.found = found
        self.at: int = 0
        self.depth: int = depth - 1
        self.constants: dict[str, str] = {}
        self._mentions: dict[str, int] = {}
        self.deeper()

    def deeper(self) -> None:
        """Enter one more level of nesting, if that is still sane."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Undecidable("commands are nested too deeply")

    def peek(self, length: int = 1) -> str:
        return self.source[self.at : self.at + length]

    def skip(self, what: re.Pattern[str] = _BLANK) -> re.Match[str] | None:
        """Step over what matches here, if anything does."""
        found = what.match(self.source, self.at)
        self.at = found.end() if found else self.at
        return found

    def need(self, what: re.Pattern[str], problem: str) -> re.Match[str]:
        """Step over what has to be here."""
        found = self.skip(what)
        if not found:
            raise Undecidable(problem)
        return found

    @abstractmethod
    def substitution(self) -> None:
        """Read the commands of `$(…)` or `<(…)` from here up to its end."""

    def sets(self, name: str) -> None:
        """Note that the line gives a variable a value."""
        if CODE_VARIABLES.fullmatch(name):
            self.found.undecidable[f"`{name}=…` changes what later commands run"] = None

    def evaluates(self, reason: str) -> None:
        self.found.evaluates[reason] = None

    @abstractmethod
    def nested(self, source: str) -> None:
        """Read the commands of a substitution that was unquoted already."""

    def _backslash(self, out: list[str]) -> None:
        if self.at + 1 >= len(self.source):
            raise Undecidable("the line ends in a backslash")
        char = self.source[self.at + 1]
        out.append(mask(char))
        self.at += 2

    def _single(self) -> str:
        return self.need(_SINGLE_QUOTES, "a single quote is never closed")[1]

    def _double(self, out: list[str]) -> None:
        self.at += 1
        self.quoted(out, '"', '$`"\\')

    def quoted(self, out: list[str], closing: str, escapes: str) -> None:
        """Read up to the closing quote (a here-document has none: up to the end)."""
        while self.peek() != closing:
            char = self.peek()
            if plain := self.skip(_IN_QUOTES):
                out.append(mask(plain[0]))
            elif not char:
                raise Undecidable("a double quote is never closed")
            elif char == "\\":
                after = self.source[self.at + 1 : self.at + 2]
                if after != "\n":
                    out.append(mask(after if after in escapes else "\\" + after))
                self.at += 2
            elif char == '"':
                out.append(char)
                self.at += 1
            else:
                self._expansion(out, quoted=True)
        self.at += len(closing)

    def _expansion(self, out: list[str], *, quoted: bool) -> None:
        """Read what starts with `$` or a backtick, and note that its value is not known (or is, for a constant)."""
        start = self.at
        self.deeper()
        if self.peek() == "`":
            text = self.need(_BACKTICKS, "a backtick is never closed")[1]
            self.nested(re.sub(r'\\([\\`$"])' if quoted else r"\\([\\`$])", r"\1", text))
        elif self.peek(3) == "$((":
            self.at += 3
            self.arithmetic()
        elif self.peek(2) == "$(":
            self.at += 2
            self.substitution()
        elif self.peek(2) == "${":
            self._parameter(quoted=quoted)
        elif self.peek(2) == "$[":
            raise Undecidable("`$[…]` is arithmetic in an old form")
        else:
            name = _NAME.match(self.source, self.at + 1)
            self.at = name.end() if name else self.at + 1
            if self.peek(2) == "\\\n":
                raise Undecidable("a line is continued inside an expansion")
        self.depth -= 1
        read = self.source[start : self.at]
        out.append(read if len(read) == 1 else self._value(read, at_start=not any(out), quoted=quoted))

    def _value(self, source: str, *, at_start: bool, quoted: bool) -> str:
        name = source.strip("${}")
        constant = self.constants.get(name)
        if constant and (quoted or " " not in constant):
            return mask(constant)
        if name in _KNOWN and at_start and self.only_read(name):
            return _KNOWN[name]
        return UNKNOWN + mask(source)

    def only_read(self, name: str, writes: int = 0) -> bool:
        """Whether the line mentions the variable as `$name` only, but for `writes` assignments."""
        if name not in self._mentions:
            plain = self.source.translate(_NO_QUOTES)
            hidden = MAX_DEPTH if _HIDES_NAMES.search(plain) or "$'" in self.source else 0
            self._mentions[name] = hidden + len(re.findall(rf"(?<![$\w])(?<!\$\{{){name}(?!\w)", plain))
        return self._mentions[name] == writes

    def _parameter(self, *, quoted: bool) -> None:
        if self.skip(_BRACED_NAME):
            return
        self._sets_or_evaluates()
        self.at += 2
        if self.peek() in (" ", "\t", "\n", "|", ""):
            raise Undecidable("`${ …}` runs commands")
        ignored: list[str] = []
        while self.peek() not in ("}", ""):
            char = self.peek()
            if char == "\\":
                self._backslash(ignored)
            elif char == '"':
                self._double(ignored)
            elif char == "'" and not quoted:
                self._single()
            elif char in "$`":
                self._expansion(ignored, quoted=quoted)
            elif char == "'" or self.peek(2) in ("@P", "<(", ">("):
                raise Undecidable("`${…}` holds something that may run a command")
            else:
                self.at += 1
        self.need(_CLOSING_BRACE, "`${` is never closed")

    def _sets_or_evaluates(self) -> None:
        """Note what `${x:=…}` sets, and that `${x:y}`, `${x[y]}` and `${!x}` take a text for an expression."""
        assigned = _DEFAULT_VALUE.match(self.source, self.at)
        if assigned:
            self.sets(assigned[1])
        if _COUNTED.match(self.source, self.at) or self.peek(3) == "${!":
            self.evaluates("`${…}` takes a text for a number or a name")

    def arithmetic(self) -> None:
        """Read `((…))` up to its end; only what can be nothing but arithmetic is accepted."""
        depth, start = 0, self.at
        while depth or self.peek(2) != "))":
            char = self.peek()
            if self.skip(_ARITHMETIC):
                continue
            if char and char in "$`":
                self._expansion([], quoted=True)
            elif char == "(":
                depth, self.at = depth + 1, self.at + 1
            elif char == ")" and depth:
                depth, self.at = depth - 1, self.at + 1
            else:
                raise Undecidable("`((` does not hold plain arithmetic")
        self.calculates(self.source[start : self.at])
        self.at += 2

    def calculates(self, text: str) -> None:
        """Note what arithmetic sets, and that it takes the value of a variable or an expansion for an expression."""
        for name in _ARITHMETIC_NAME.findall(text):
            self.sets(name)
        if _ARITHMETIC_NAME.search(text) or "$" in text or "`" in text:
            self.evaluates(f"arithmetic takes what stands in `{text.strip()[:60]}` for an expression")

    def word(self) -> Word | None:
        """The word that starts here, or None when an operator, a newline or the end does."""
        start, out, bare_until = self.at, list[str](), -1
        while self.at < len(self.source):
            if plain := self.skip(_PLAIN):
                out.append(plain[0])
                continue
            if self.peek(2) == "\\\n":
                self.at += 2
                continue
            length = sum(map(len, out)) if bare_until < 0 else bare_until
            if not self._special(out):
                break
            bare_until = length
        if self.at == start:
            return None
        found = _VARIABLE.fullmatch(self.source, start, self.at) if self.constants else None
        split = tuple(self.constants.get(found[1] or found[2], "").split()) if found else ()
        return Word("".join(out), bare_until, start, self.at, split)

    def _special(self, out: list[str]) -> bool:
        """Read one quoted or expanded piece; False when an operator or a blank ends the word."""
        char, two = self.peek(), self.peek(2)
        if two in ("<(", ">("):
            self.at += 2
            self.substitution()
            out.append(UNKNOWN + mask(two + "…)"))
        elif char == "\\":
            self._backslash(out)
        elif char == "'":
            out.append(mask(self._single()))
        elif char == '"':
            self._double(out)
        elif two == "$'":
            out.append(mask(_ANSI.sub(_ansi_escape, self.need(_ANSI_STRING, "`$'` is never closed")[1])))
        elif two == '$"':
            self.at += 1
            self._double(out)
        elif char in "$`":
            self._expansion(out, quoted=False)
        elif char.isspace() and char not in " \t\n":
            raise Undecidable("the line holds an unusual white-space character")
        else:
            return False
        return True
