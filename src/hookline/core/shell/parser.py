"""From a shell line to the commands in it: lists, compound commands, here-documents, what a command runs in turn."""

import re
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from hookline.core.shell.lexer import UNKNOWN, Word, WordReader, is_pattern, unmask
from hookline.core.shell.shell_line import NestedCommand, ParseState, Redirect, SimpleCommand, Undecidable, base_name
from hookline.core.shell.wrappers import find_nested_commands

_MOST_COMMANDS = 1_000
_OPERATOR = re.compile(r"&&|\|\||\|&|;;&|;;|;&|;|\||&(?!>)")
_REDIRECT = re.compile(r"(\d+|\{[A-Za-z_]\w*\})?(<<<|<<-|<<|<>|<&|>>|>&|>\||&>>|&>|<|>)(?!\()")
_SPACE = re.compile(r"(?:[ \t]|\\\n)*(?:(?<![^\s;&|()<>`])#[^\n]*)?")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\[[^\]]*\])?\+?=")
_ESAC = re.compile(r"esac(?![^\s;&|()<>])")
_FUNCTION = re.compile(r"[ \t]*\([ \t]*\)")
_BASH_ONLY = re.compile(r"\(\(|\[\[|<\(|>\(|<<<|\$'|&>|\{[^\s}]*,|\bfunction\b|\bselect\b|\bcoproc\b|\btime\b")
_PLAIN_WORD = re.compile(r"""([^ '"]+)|('[^']*'|"[^"]*")""")
_JOINING = frozenset({"&&", "||", "|", "|&"})
_SAFE_CONSTANT = re.compile(r"[\w./@%+=:, -]*[\w./@%+=:-]")
_SUBSCRIPT = re.compile(r"\w\[[^\]]*(?:\$\(|`)", re.DOTALL)
BASH_LIKE = frozenset({"bash", "zsh", "ksh", "rbash"})
_LITERAL = r"-\w !#%&()*+,./:;<=>?@^{|}~"
"""What is itself in either kind of quotes, and is not a piece of arithmetic that runs a command later."""
_PLAIN_LINE = re.compile(rf"""[\w./:@%+,-]+(?: +(?:[\w./:=@%+,-]+|'[{_LITERAL}"]*'|"[{_LITERAL}']*"))*""", re.ASCII)
_IN = re.compile(r"in(?![^\s;&|()<>])")
_COMPOUND = re.compile(r"(?:[ \t]|\\\n)*(?:-p[ \t]+)?(?=\(|(?:\{|!|if|while|until|for|case|\[\[)\s)")
_FOR_PARTS = re.compile(r"\(\(P;P;P\)\)".replace("P", r"([\w\s+\-*/%<>=!?:,.]*)"))
_CLOSING = re.compile(r"\)")
_OPENERS = frozenset({"if", "then", "elif", "else", "while", "until", "do", "{", "!"})
_CLOSERS = frozenset({"fi", "done", "}"})
_EVALUATING_TESTS = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"})


class HereDocument(NamedTuple):
    """A here-document that has been announced and whose text is still to come."""

    delimiter: str
    quoted: bool
    strip_tabs: bool


class Draft(msgspec.Struct, eq=False):
    """A simple command while its words are being read."""

    start: int
    end: int = 0
    words: list[tuple[str, bool]] = []
    globs: list[int] = []
    assignments: list[tuple[str, str]] = []
    constants: dict[str, str] = {}
    redirects: list[Redirect] = []
    input: str | None = None
    literal: bool = True
    after: str = ""
    scope: tuple[int, ...] = ()

    @property
    def empty(self) -> bool:
        return not (self.words or self.assignments or self.redirects)


class Parser(WordReader):
    """Reads one line, and lists its commands and those in the lines handed to other shells."""

    def __init__(
        self, source: str, found: ParseState, via: tuple[str, ...] = (), *, depth: int = 0, inside: bool = False
    ) -> None:
        super().__init__(source, found, depth)
        self.via = via
        self.inside: bool = inside
        self.straight: bool = not inside
        self.scope: tuple[int, ...] = ()
        self.loops: bool = False
        self.documents: list[tuple[HereDocument, Draft]] = []
        self.waiting: list[Draft] = []

    def read(self) -> None:
        if _PLAIN_LINE.fullmatch(self.source) and self.source.partition(" ")[0] not in KEYWORDS:
            self._add_plain()
            return
        self.list_until("")
        if self.at < len(self.source):
            raise Undecidable(f"`{self.peek()}` stands where a command should")
        if self.documents:
            raise Undecidable("a here-document never ends")

    def _add_plain(self) -> None:
        """A line of plain and of quoted words only, which most lines are: there is nothing else in it to tell apart."""
        words = tuple(plain or quoted[1:-1] for plain, quoted in _PLAIN_WORD.findall(self.source))
        command = SimpleCommand(
            name=base_name(words[0]), words=words, raw=self.source, via=self.via, substitution=self.inside,
            scope=self.scope, loops=self.loops,
        )  # fmt: skip
        self.add(command, None)

    def new_scope(self) -> tuple[int, ...]:
        self.found.scopes.append(len(self.found.scopes))
        return (*self.scope, len(self.found.scopes))

    def _finish(self, draft: Draft, *, constant: bool) -> None:
        if draft.empty:
            return
        if constant and not draft.words and len(self.constants) < 32:
            self.constants |= {name: value for name, value in draft.constants.items() if self.only_read(name, 1)}
        if any(draft is waiting for _, waiting in self.documents):
            self.waiting.append(draft)
        else:
            self._emit(draft)

    def _emit(self, draft: Draft) -> None:
        words = tuple(text for text, _ in draft.words)
        raw = self.source[draft.start : draft.end].strip()
        command = SimpleCommand(
            name=base_name(words[0]) if words and draft.words[0][1] else "", words=words,
            assignments=tuple(draft.assignments), redirects=tuple(draft.redirects), raw=raw,
            unknown=tuple(index for index, (_, known) in enumerate(draft.words) if not known), via=self.via,
            substitution=self.inside, after=draft.after, scope=draft.scope, loops=self.loops, globs=tuple(draft.globs),
            stdin=draft.input if draft.literal and draft.input != UNKNOWN else None,
        )  # fmt: skip
        texts = (*(value for _, value in draft.assignments), *(r.target for r in draft.redirects if r.op == "<<<"))
        self._arithmetic_later(texts)
        if words[:1] == ("set",) or words[:1] == ("let",):
            self._arithmetic_later(words[1:])
        self.add(command, draft.input)

    def _arithmetic_later(self, texts: Iterable[str]) -> None:
        """A text such as `a[$(rm x)]` is run wherever arithmetic or `[[ -v` meets it."""
        if any(_SUBSCRIPT.search(text) for text in texts):
            self.found.undecidable["a subscript in a text may run a command when it is read as a number"] = None

    def add(self, command: SimpleCommand, stdin: str | None) -> None:
        if len(self.found.commands) >= _MOST_COMMANDS:
            raise Undecidable("the line holds too many commands")
        place = len(self.found.commands)
        self.found.commands.append(command)
        inside = find_nested_commands(command, stdin)
        for kind in ("undecidable", "notes", "code"):
            if told := getattr(inside, kind):
                getattr(self.found, kind).update(dict.fromkeys(told))
        for inner in inside.runs:
            self._enter(command, inner)
        if inside.runs:
            self.found.commands[place] = msgspec.structs.replace(command, wraps=True)

    def _enter(self, outer: SimpleCommand, inner: NestedCommand) -> None:
        via = (*self.via, inner.via)
        if len(via) > 8:
            raise Undecidable("commands are wrapped too often")
        if inner.script is not None:
            if inner.shell not in BASH_LIKE and _BASH_ONLY.search(inner.script):
                self.found.undecidable[f"`{inner.shell}` is given syntax that only bash reads"] = None
            self._inner(inner.script, via, self.inside, outer).read()
            return
        command = msgspec.structs.replace(
            outer,
            name=base_name(inner.words[0][0]) if inner.words[0][1] else "",
            words=tuple(text for text, _ in inner.words),
            assignments=(),
            unknown=tuple(index for index, (_, known) in enumerate(inner.words) if not known),
            globs=tuple(index for index, (text, _) in enumerate(inner.words) if is_pattern(text)),
            via=via,
        )
        self._inner("", via, self.inside, outer).add(command, inner.stdin)

    def _inner(self, source: str, via: tuple[str, ...], inside: bool, outer: SimpleCommand | None = None) -> "Parser":  # noqa: FBT001
        """A reader for a text that this line hands over; all but `eval` and its like run it in a process of its own."""
        parser = Parser(source, self.found, via, depth=self.depth + 1, inside=inside)
        parser.scope = outer.scope if outer else self.scope
        parser.loops = self.loops or (via[-1:] == ("trap",))
        if via[-1:] != ("eval",):
            parser.scope = parser.new_scope()
        return parser

    def nested(self, source: str) -> None:
        self._inner(source, self.via, inside=True).read()

    def newline(self) -> None:
        """Go to the next line, behind the here-documents that this one announced."""
        self.at += 1
        for document, draft in self.documents:
            self._body(document, draft)
        self.documents.clear()
        for draft in self.waiting:
            self._emit(draft)
        self.waiting.clear()

    def _document(self, operator: str, word: Word, draft: Draft, fd: str) -> None:
        source = self.source[word.start : word.end]
        if "$" in source or "`" in source or "\n" in source:
            raise Undecidable("the end of a here-document is written with an expansion")
        document = HereDocument(unmask(word.text), word.bare_until >= 0, operator == "<<-")
        self.documents.append((document, draft))
        draft.redirects.append(Redirect("<<", document.delimiter, fd))

    def _body(self, document: HereDocument, draft: Draft) -> None:
        lines: list[str] = []
        while True:
            if self.at >= len(self.source):
                raise Undecidable(f"the here-document `{document.delimiter}` never ends")
            end = self.source.find("\n", self.at)
            end = len(self.source) if end < 0 else end
            line = self.source[self.at : end]
            self.at = min(end + 1, len(self.source))
            if document.strip_tabs:
                line = line.lstrip("\t")
            if line == document.delimiter:
                break
            if line.endswith("\\") and not document.quoted:
                raise Undecidable("a line of a here-document goes on after a backslash")
            lines.append(line)
        body = draft.input = "\n".join(lines)
        if not document.quoted and re.search(r"[$`\\]", body):  # it is expanded first, which may run commands
            out: list[str] = []
            self._inner(body, self.via, inside=True).quoted(out, "", "$`\\")
            text = "".join(out)
            draft.input = UNKNOWN if UNKNOWN in text else unmask(text)
        draft.literal = draft.input == body

    def list_until(self, closing: str) -> None:
        """Read commands and the operators between them, up to a closing `)`, `;;` or `esac`, or the end."""
        before = ""
        while True:
            self.space()
            if self.peek() == "\n":
                self.newline()
                before = before if before in _JOINING else ""
                continue
            if not self.peek() or self.peek() == ")" or (closing == ";;" and _ESAC.match(self.source, self.at)):
                return
            draft = self.command()
            self.space()
            operator = _OPERATOR.match(self.source, self.at)
            sign = operator[0] if operator else ""
            if draft is not None:
                draft.after, draft.scope = before, self.scope
                self._finish(draft, constant=self.straight and before not in _JOINING and sign in ("", ";", "&&"))
            if sign.startswith((";;", ";&")) and closing != ";;":
                raise Undecidable(f"`{sign}` stands outside `case`")
            if sign.startswith((";;", ";&")):
                return
            if not sign and self.peek() not in ("", "\n", ")") and draft is not None:
                raise Undecidable(f"`{self.peek()}` is not where the shell allows it")
            self.at += len(sign)
            before = sign if draft is not None or sign else before

    def space(self) -> None:
        self.skip(_SPACE)

    def command(self) -> Draft | None:
        """Read one simple command, or step over one piece of a compound command (then None)."""
        if self.peek() == "(":
            self._parentheses()
            return None
        draft = Draft(self.at)
        while True:
            self.space()
            if self._redirect(draft):
                continue
            draft.end = self.at
            word = self.word()
            if word is None:
                return draft
            if draft.empty:
                if self._keyword(word):
                    return None
                if _FUNCTION.match(self.source, self.at) and word.bare:
                    self._function()
                    return None
            self._take(draft, word)

    def _parentheses(self) -> None:
        self.straight = False
        if self.peek(2) == "((":
            self.at += 2
            self.arithmetic()
        else:
            self.at += 1
            self.parenthesized()
        self._after_compound()

    def parenthesized(self) -> None:
        self.deeper()
        scope, self.scope = self.scope, self.new_scope()
        self.list_until(")")
        self.need(_CLOSING, "`(` is never closed")
        if self.documents:
            raise Undecidable("a here-document starts inside `(…)` and does not end there")
        self.depth -= 1
        self.scope = scope

    def _take(self, draft: Draft, word: Word) -> None:
        assignment = _ASSIGNMENT.match(word.text)
        plain = assignment and (word.bare_until < 0 or word.bare_until >= assignment.end())
        if assignment and plain and self.peek() == "(" and word.text == assignment[0]:
            self._array()
            draft.assignments.append((assignment[1], "(…)"))
        elif assignment and plain and not draft.words:
            value = unmask(word.text[assignment.end() :])
            draft.assignments.append((assignment[1], value))
            if assignment[0] == assignment[1] + "=" and _SAFE_CONSTANT.fullmatch(word.text[assignment.end() :]):
                draft.constants[assignment[1]] = value
        else:
            if self.peek() == "(":
                raise Undecidable("a pattern such as `!(…)` depends on the files there are")
            words = word.expanded()
            if is_pattern(word.text):
                draft.globs.extend(range(len(draft.words), len(draft.words) + len(words)))
            draft.words.extend(words)

    def _array(self) -> None:
        self.at += 1
        while True:
            self.space()
            if self.peek() == "\n":
                self.newline()
            elif self.peek() == ")":
                break
            elif (word := self.word()) is None:
                raise Undecidable("an array is never closed")
            else:
                self._arithmetic_later([unmask(word.text)])
        self.at += 1
        if self.peek() not in ("", " ", "\t", "\n", ";", "&", "|", ")"):
            raise Undecidable("something stands right behind an array")

    def _redirect(self, draft: Draft) -> bool:
        found = self.skip(_REDIRECT)
        if not found:
            return False
        self.skip()
        if found[1] and found[1].startswith("{"):
            self.sets(found[1].strip("{}"))
        word = self.word()
        if word is None:
            raise Undecidable(f"`{found[2]}` has no target")
        if found[2].startswith("<<") and found[2] != "<<<":
            self._document(found[2], word, draft, found[1] or "")
            return True
        for target, known in word.expanded():
            draft.redirects.append(Redirect(found[2], target, found[1] or "", known))
            if found[2] == "<<<":
                draft.input = target if known else UNKNOWN
        return True

    def substitution(self) -> None:
        documents, waiting, inside, straight = self.documents, self.waiting, self.inside, self.straight
        self.documents, self.waiting, self.inside, self.straight = [], [], True, False
        self.parenthesized()
        self.documents, self.waiting, self.inside, self.straight = documents, waiting, inside, straight

    def _after_compound(self) -> bool:
        """Read the redirections that may follow `done`, `fi` or `}`."""
        self.skip()
        draft = Draft(self.at)
        while self._redirect(draft):
            self.skip()
        self._finish(draft, constant=False)
        return True

    def _function(self) -> None:
        self.skip(_FUNCTION)
        self.straight, self.loops = False, True

    def _keyword(self, word: Word) -> bool:
        """Step over a reserved word, and what belongs to it; False when the word is an ordinary one."""
        bare = word.bare
        if bare in _OPENERS or bare in _CLOSERS:
            self.straight = False
            self.loops = self.loops or bare in ("while", "until")
            return bare in _OPENERS or self._after_compound()
        handler = _KEYWORDS.get(bare)
        return handler is not None and handler(self)

    def read_function(self) -> bool:
        self.skip()
        if self.word() is None:
            raise Undecidable("`function` has no name")
        self._function()
        return True

    def read_for(self) -> bool:
        self.straight, self.loops = False, True
        self.skip()
        if self.peek(2) == "((":
            for part in self.need(_FOR_PARTS, "`for ((` holds more than plain arithmetic").groups():
                self.calculates(part)
            return True
        name = self.word()
        self.sets(name.text if name else "")
        self._lines()
        if self.skip(_IN):
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
        self.skip()
        self.word()
        self._lines()
        self.need(_IN, "`case` is not followed by `in`")
        while True:
            self._lines()
            if self.skip(_ESAC):
                return self._after_compound()
            self._case_item()

    def _case_item(self) -> None:
        if self.peek() == "(":
            self.at += 1
        while self.peek() != ")":
            self.skip()
            if self.word() is None:
                raise Undecidable("a `case` pattern is never closed")
            self.skip()
            if self.peek() == "|":
                self.at += 1
        self.at += 1
        self.list_until(";;")
        if not self.skip(_OPERATOR) and not _ESAC.match(self.source, self.at):
            raise Undecidable("`case` is never closed")

    def read_test(self) -> bool:
        while True:
            self.skip()
            word = self.word()
            if word is None:
                if not self.peek() or self.peek() in ";\n" or (self.peek() == "&" and self.peek(2) != "&&"):
                    raise Undecidable("`[[` is never closed")
                self.at += 2 if self.peek(2) in ("&&", "||") else 1
                continue
            if word.bare == "]]":
                return self._after_compound()
            if self.source.startswith("#", word.start):
                raise Undecidable("`[[` holds a comment")
            if word.bare_until >= 0:
                self._arithmetic_later([unmask(word.text)])
            if word.bare in _EVALUATING_TESTS:  # it compares numbers, or asks for a variable by its name
                self.evaluates(f"`[[ … {word.bare} …` takes a text for an expression")

    def read_time(self) -> bool:
        """`time` before a compound command is a keyword; before a program it is read as a wrapper."""
        return self.skip(_COMPOUND) is not None

    def read_coproc(self) -> bool:
        raise Undecidable("`coproc` runs commands in the background")


_KEYWORDS = {
    "function": Parser.read_function, "for": Parser.read_for, "select": Parser.read_for, "case": Parser.read_case,
    "[[": Parser.read_test, "time": Parser.read_time, "coproc": Parser.read_coproc,
}  # fmt: skip
KEYWORDS = frozenset({*_KEYWORDS, *_OPENERS, *_CLOSERS, "in", "esac", "]]"})
"""Words that mean something to the shell where a command starts."""
