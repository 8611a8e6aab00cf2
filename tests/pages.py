"""Markdown pages as tests see them: their code blocks, what the comments before a block ask for, and their links.

A page is run in a folder of its own, which is also its home folder; its Python blocks share one namespace.
"""

import ast
import asyncio
import contextlib
import inspect
import io
import os
import re
import shlex
import subprocess
import sys
import textwrap
import types
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests import forked

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^( *)(`{3,})([\w+-]*)[^\n]*\n(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!-- *(prints|run|file|skip)(?:: *(.*?))? *-->")
COMMENTS_BEFORE = re.compile(r"(?:<!--[^\n]*-->\s*)+\Z")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)|^\[[^\]]+\]: *(\S+)", re.MULTILINE)
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
COMMAND = re.compile(r"""hookline(?: (?:[\w./:=@,-]|'[^'\n]*'|"[^"$`\\\n]*")+)+\n?""")  # nothing that a shell expands
DURATION = re.compile(r" *\b\d+(?:\.\d+)? (?:ns|µs|us|ms)\b")


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its text, its line, and the comments right before it."""

    language: str
    text: str
    line: int
    comments: dict[str, str]

    @property
    def runs(self) -> bool:
        shell = self.language in ("sh", "bash") and "run" in self.comments
        return shell or self.language == "python" or "file" in self.comments


def blocks(markdown: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found = []
    for match in FENCE.finditer(markdown):
        before = COMMENTS_BEFORE.search(markdown[: match.start()])
        comments = {word: text or "" for word, text in COMMENT.findall(before.group())} if before else {}
        line = markdown.count("\n", 0, match.start()) + 2
        found.append(Block(match[3], textwrap.dedent(match[4]), line, comments))
    return found


def steady(text: str) -> str:
    """A printed text without what differs from run to run: how long things took, and space at the ends of lines."""
    return "\n".join(line.rstrip() for line in DURATION.sub(" <time>", text).strip().splitlines())


def alike(expected: str, printed: str) -> bool:
    """Whether a text was printed as expected, where `…` stands for anything (a folder, a time) and lines may wrap."""
    parts = [re.escape(part.strip()) for part in " ".join(expected.split()).split("…")]
    return re.fullmatch(".*?".join(parts), " ".join(printed.split())) is not None


@dataclass
class Page:
    """A page being run: each block once, in order, in one namespace and one folder."""

    path: Path
    folder: Path
    blocks: list[Block]
    module: types.ModuleType = field(default_factory=lambda: types.ModuleType("__main__"))
    printed: list[str] = field(default_factory=list)
    loop: asyncio.Runner = field(default_factory=asyncio.Runner)

    def run_to(self, index: int) -> None:
        """Run what has not run yet, up to and including a block, and compare what it printed."""
        for number in range(len(self.printed), index + 1):
            skipped = "skip" in self.blocks[number].comments
            self.printed.append("" if skipped else self._run(self.blocks[number]))
        expected = self.expected(index)
        if expected is not None:
            same = alike if expected.comments["prints"] == "…" else str.__eq__
            assert same(steady(expected.text), steady(self.printed[index])), (
                f"{self.path}:{expected.line}: prints otherwise\n{self.printed[index]}"
            )

    def expected(self, index: int) -> Block | None:
        """The block after this one, if it is said to be what this one prints."""
        following = self.blocks[index + 1] if index + 1 < len(self.blocks) else None
        return following if following and "prints" in following.comments else None

    def _run(self, block: Block) -> str:
        if "file" in block.comments:
            return self._write(block)
        if block.language == "python":
            return self._python(block)
        return self._shell(block) if block.runs else ""

    def _write(self, block: Block) -> str:
        target = self.folder / block.comments["file"]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(block.text)
        if block.text.startswith("#!"):
            target.chmod(0o755)
        return ""

    def _python(self, block: Block) -> str:
        source = "\n" * (block.line - 1) + block.text  # a traceback shows the page's own line
        code = compile(source, str(self.path), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        out = io.StringIO()
        with self._as_main(), contextlib.chdir(self.folder), contextlib.redirect_stdout(out):
            result = eval(code, self.module.__dict__)
            if inspect.iscoroutine(result):
                self.loop.run(result)
        return out.getvalue()

    @contextlib.contextmanager
    def _as_main(self) -> Iterator[None]:
        real = sys.modules["__main__"]
        sys.modules["__main__"] = self.module
        try:
            yield
        finally:
            sys.modules["__main__"] = real

    def _shell(self, block: Block) -> str:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        env = {**os.environ, "PATH": path, "HOME": str(self.folder), "NO_COLOR": "1", "COLUMNS": "120"}
        how, terminal = block.comments["run"], list[str]()
        if how == "on a terminal":  # of its own; the person there says yes
            how, terminal = "", ["python", str(ROOT / "tests" / "terminal.py")]
        done = run_shell(block.text, self.folder, env, terminal)
        wanted = int(how.removeprefix("exit ") or 0)
        assert done.returncode == wanted, (
            f"{self.path}:{block.line}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        )
        return done.stdout


def run_shell(
    text: str, folder: Path, env: Mapping[str, str], before: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """Run lines to their end; a single command of ours needs neither a shell nor a cold start."""
    if COMMAND.fullmatch(text) and not before:
        return forked.as_text(forked.run(shlex.split(text)[1:], cwd=folder, env=env, module="hookline.__main__"))
    argv = [*before, "bash", "-e", "-o", "pipefail", "-c", text]
    return subprocess.run(
        argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
    )


def slug(heading: str) -> str:
    """The anchor that a heading gets."""
    text = unicodedata.normalize("NFKD", re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading))
    return re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", text.encode("ascii", "ignore").decode()).strip().lower())


def anchors(markdown: str) -> set[str]:
    """Every anchor of a page, the written ones included."""
    prose = FENCE.sub("", markdown)
    written = set(re.findall(r"""(?:id|name)=["']([^"']+)["']|\{#([\w-]+)""", prose))
    return {slug(h) for h in HEADING.findall(prose)} | {name for pair in written for name in pair if name}


def broken_links(path: Path) -> list[str]:
    """The relative links of a page that lead nowhere, each as `file:line: what`."""
    text = path.read_text()
    prose = re.sub(r"`[^`\n]*`", "", FENCE.sub(lambda match: "\n" * match.group().count("\n"), text))
    problems = []
    for match in LINK.finditer(prose):
        target = match[1] or match[2]
        if re.match(r"[a-z][a-z+.-]*:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name) if name else path
        where = f"{path.name}:{prose.count(chr(10), 0, match.start()) + 1}"
        if not file.exists():
            problems.append(f"{where}: `{target}` leads to no file")
        elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text()):
            problems.append(f"{where}: `{target}` leads to no heading")
    return problems
