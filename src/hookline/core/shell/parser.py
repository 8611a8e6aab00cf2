"""From a shell line to the commands in it: the compound commands, and the line as a whole."""

from __future__ import annotations

import re

from hookline.core.shell.command_parser import CommandParser
from hookline.core.shell.lexer import Word, unmask
from hookline.core.shell.shell_line import Undecidable

_LITERAL = r"-\w !#%&()*+,./:;<=>?@^{|}~"
"""What is itself in either kind of quotes, and is not a piece of arithmetic that runs a command later."""
_PLAIN_LINE = re.compile(rf"""[\w./:@%+,-]+(?: +(?:[\w./:=@%+,-]+|'[{_LITERAL}"]*'|"[{_LITERAL}']*"))*""", re.ASCII)
_OPERATOR = re.compile(r"&&|\|\||\|&|;;&|;;|;&|;|\||&(?!>)")
_IN = re.compile(r"in(?![^\s;&|()<>])")
_COMPOUND = re.compile(r"(?:-p[ \t]+)?(?=\(|(?:\{|!|if|while|until|for|case|\[\[)\s)")
_FOR_PART = re.compile(r"[\w\s+\-*/%<>=!?:,.]*")
_OPENERS = frozenset({"if", "then", "elif", "else", "while", "until", "do", "{", "!"})
_CLOSERS = frozenset({"fi", "done", "}"})
_EVALUATING_TESTS = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"})


class Parser(CommandParser):
    """Reads one line."""

    def read(self) -> None:
        """Read the whole line."""
        if _PLAIN_LINE.fullmatch(self.source) and self.source.partition(" ")[0] not in KEYWORDS:
            self._add_plain()
            return
        self.list_until("")
        if self.at < len(self.source):
            raise Undecidable(f"`{self.peek()}` stands where a command should")
        if self.documents:
            raise Undecidable("a here-document never ends")

    def _keyword(self, word: Word) -> bool:
        """Step over a reserved word, and what belongs to it; False when the word is an ordinary one."""
        bare = word.bare
        if bare in _OPENERS or bare in _CLOSERS:
            self.straight = False
            self.loops = self.loops or bare in ("while", "until")
            return bare in _OPENERS or self._after_compound()
        handler = _KEYWORDS.get(bare)
        if handler is None:
            return False
        return handler(self)

    def read_function(self) -> bool:
        self.skip_blank()
        if self.word() is None:
            raise Undecidable("`function` has no name")
        self._function()
        return True

    def read_for(self) -> bool:
        self.straight, self.loops = False, True
        self.skip_blank()
        if self.peek(2) == "((":
            self.at += 2
            for closing in (";", ";", "))"):
                found = _FOR_PART.match(self.source, self.at)
                self.at = found.end() if found else self.at
                if self.peek(len(closing)) != closing:
                    raise Undecidable("`for ((` holds more than plain arithmetic")
                self.calculates(found[0] if found else "")
                self.at += len(closing)
            return True
        name = self.word()
        self.sets(name.text if name else "")
        self._lines()
        if _IN.match(self.source, self.at):
            self.at += 2
            self.space()
            while (word := self.word()) is not None:
                self._arithmetic_later([unmask(word.text)])
                self.space()
        return True

    def _lines(self) -> None:
        self.space()
        while self.peek() == "\n":
            self.newline()
            self.space()

    def read_case(self) -> bool:
        self.straight = False
        self.skip_blank()
        self.word()
        self._lines()
        if not _IN.match(self.source, self.at):
            raise Undecidable("`case` is not followed by `in`")
        self.at += 2
        while True:
            self._lines()
            if self._ends_case():
                self.at += 4
                return self._after_compound()
            self._case_item()

    def _case_item(self) -> None:
        if self.peek() == "(":
            self.at += 1
        while self.peek() != ")":
            self.skip_blank()
            if self.word() is None:
                raise Undecidable("a `case` pattern is never closed")
            self.skip_blank()
            if self.peek() == "|":
                self.at += 1
        self.at += 1
        self.list_until(";;")
        operator = _OPERATOR.match(self.source, self.at)
        if operator:
            self.at = operator.end()
        elif not self._ends_case():
            raise Undecidable("`case` is never closed")

    def read_test(self) -> bool:
        while True:
            self.skip_blank()
            word = self.word()
            if word is not None and word.bare == "]]":
                return self._after_compound()
            if word is not None and self.source.startswith("#", word.start):
                raise Undecidable("`[[` holds a comment")
            if word is not None:
                self._tests(word)
            if word is None:
                if not self.peek() or self.peek() in ";\n" or (self.peek() == "&" and self.peek(2) != "&&"):
                    raise Undecidable("`[[` is never closed")
                self.at += 2 if self.peek(2) in ("&&", "||") else 1

    def _tests(self, word: Word) -> None:
        """Comparing numbers, and asking for a variable by its name, take a text for an expression."""
        if word.bare_until >= 0:
            self._arithmetic_later([unmask(word.text)])
        if word.bare in _EVALUATING_TESTS:
            self.evaluates(f"`[[ … {word.bare} …` takes a text for an expression")

    def read_time(self) -> bool:
        """`time` before a compound command is a keyword; before a program it is read as a wrapper."""
        here = self.at
        self.skip_blank()
        following = _COMPOUND.match(self.source, self.at)
        self.at = following.end() if following else here
        return following is not None

    def read_coproc(self) -> bool:
        raise Undecidable("`coproc` runs commands in the background")


_KEYWORDS = {
    "function": Parser.read_function, "for": Parser.read_for, "select": Parser.read_for, "case": Parser.read_case,
    "[[": Parser.read_test, "time": Parser.read_time, "coproc": Parser.read_coproc,
}  # fmt: skip
KEYWORDS = frozenset({*_KEYWORDS, *_OPENERS, *_CLOSERS, "in", "esac", "]]"})
"""Words that mean something to the shell where a command starts."""
