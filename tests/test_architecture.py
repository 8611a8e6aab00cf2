"""The import rule: imports point down, pure packages touch no world, the core needs msgspec alone."""

import ast
import functools
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import hookline
from hookline.events import CATALOG
from tests.tables import each

SRC = Path(hookline.__file__).parent

MOST_LINES, MOST_MODULES, MOST_FOLDERS = 65_000, 320, 14
MOST_LARGE_CLASSES, MOST_METHODS = 12, 15

# Rows from the bottom up: a module imports from rows below its own, never from its own row's neighbours or from above.
# A row names a room or a part of one; the longest name that fits a module is its own.
ROWS: tuple[tuple[str, ...], ...] = (
    (
        "core.git_settings",
        "core.globs",
        "core.interpreter",
        "core.origin",
        "core.paths",
        "core.placeholders",
        "core.template",
    ),
    ("sandbox", "display"),
    ("errors",),
    ("core.patches",),
    ("events", "core.files", "replies", "core.shell"),
    ("guards.detect", "core.calls", "core.hooks", "core.wire"),
    ("core.engine",),
    ("guards.permissions", "processes"),
    ("processes.service",),
    ("guards", "records.audit", "records.replay", "records.telemetry", "runners", "settings"),
    ("frameworks", "hosts", "records.approvals"),
    ("api", "records"),  # `Hooks`: the engine with its runners, files and SDK door; the door to records
    ("agent", "hook_file", "mcp"),
    ("records.console", "hosts.install"),
    ("hosts.prove",),
    ("fleet",),
    ("cli",),
    ("__main__",),
)
RANK = {package: rank for rank, row in enumerate(ROWS) for package in row}
ROOMS: tuple[tuple[str, ...], ...] = (
    ("display",),
    ("errors",),
    ("events", "replies"),
    ("core",),
    ("frameworks", "processes", "sandbox"),
    ("guards", "runners", "settings"),
    ("hosts", "records"),
    ("api",),
    ("agent", "hook_file", "mcp", "testing"),
    ("fleet",),
    ("cli",),
    ("__main__",),
)
"""What `ls src/hookline` shows, from the bottom up: whole rooms, too, import downwards only."""
CORE = (
    "",
    "display",
    "core",
    "errors",
    "events",
    "replies",
    "guards.detect",
)  # "" is hookline/__init__.py itself
PURE = (
    "display",
    "core.globs",
    "core.paths",
    "core.patches",
    "core.placeholders",
    "events",
    "replies",
    "core.shell",
    "guards.detect",
    "core.hooks",
    "core.wire",
    "core.engine.select",
    "core.engine.merge",
    "guards.permissions.rules",
    "hosts.claude_code.protocol",
    "hosts.host",
    "hosts.decode",
    "hosts.encode",
    "hosts.table",
)
WORLD = {"asyncio", "os", "time", "subprocess", "socket", "logging"}
CORE_MAY_IMPORT = sys.stdlib_module_names | {"msgspec"}
CORE_MAY_IMPORT_LAZILY = {"guards.detect": {"detect_secrets"}, "core.engine.verdict": {"rich"}}
MAY_IMPORT_TESTING = ("testing", "cli.commands.demo")
MAY_IMPORT_THE_DOOR = ("testing", "cli")


@dataclass(frozen=True)
class Import:
    """One imported module, as `hookline.x.y` or `os.path`, and where."""

    module: str
    line: int
    lazy: bool

    @property
    def top(self) -> str:
        return self.module.partition(".")[0]

    @property
    def own(self) -> str | None:
        """The path inside hookline, `core.engine.merge`; "" is the package itself; None for somebody else's module."""
        return self.module.removeprefix("hookline").removeprefix(".") if self.top == "hookline" else None


def package_of(module: str) -> str:
    """The entry of the rows that a module belongs to: `core.engine` for `core.engine.merge`."""
    while module and module not in RANK and module != "testing":
        module = module.rpartition(".")[0]
    return module


def belongs(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or (package and module.startswith(package + ".")) for package in packages)


def module_name(path: Path, root: Path = SRC) -> str:
    """`core.engine.merge` for core/engine/merge.py, `core` for core/__init__.py, "" for the package itself."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(source: str, module: str, *, is_package: bool) -> Iterator[Import]:
    """Every import of a source text, the ones inside functions and under TYPE_CHECKING included."""
    for node, lazy in Read.of(source).imports:
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno, lazy) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, module, is_package=is_package)
            if base.partition(".")[0] == "hookline":
                # `from hookline.core import engine` names a submodule, `from hookline import deny` the door
                names = [f"{base}.{alias.name}" for alias in node.names]
                rows = {name for name in names if name.removeprefix("hookline.") in TOP} or {base}
                yield from (Import(row, node.lineno, lazy) for row in sorted(rows))
            else:
                yield Import(base, node.lineno, lazy)


TOP = {*RANK, "testing"}


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COLLECTIONS = (ast.Set, ast.Tuple, ast.List)
LOOKED_AT = (
    *COLLECTIONS, ast.BoolOp, ast.ClassDef, ast.Constant, ast.Dict, ast.If, ast.Import, ast.ImportFrom, ast.Match,
)  # fmt: skip


@dataclass(frozen=True)
class Read:
    """What the rules look at in a source text, which is parsed once for all of them."""

    imports: list[tuple[ast.Import | ast.ImportFrom, bool]]
    event_tables: list[tuple[int, set[str]]]
    spelled_out: list[tuple[int, str]]
    classes: list[str]

    @staticmethod
    @functools.cache
    def of(source: str) -> "Read":
        found = [(node, lazy) for node, lazy in nodes(source) if isinstance(node, LOOKED_AT)]
        return Read(
            [(node, lazy) for node, lazy in found if isinstance(node, ast.Import | ast.ImportFrom)],
            [table for node, _ in found for table in event_tables(node)],
            [idea for node, _ in found for idea in spelled_out(node)],
            [node.name for node, _ in found if isinstance(node, ast.ClassDef)],
        )


def nodes(source: str) -> list[tuple[ast.AST, bool]]:
    """Every node of a source text, and whether it is a function's."""
    found: list[tuple[ast.AST, bool]] = [(ast.parse(source), False)]
    for node, lazy in found:  # which grows meanwhile
        inside = lazy or isinstance(node, FUNCTIONS)
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                found += [(one, inside) for one in value if isinstance(one, ast.AST)]
            elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                found.append((value, inside))
    return found


def test_the_house_does_not_grow() -> None:
    """A new capability replaces something: lines of all rooms (`make size`), modules, and folders that `ls` shows."""
    lines = sum(text.count("\n") for text in sources().values())
    folders = {path.relative_to(SRC).parts[0] for path in sources() if path.parent != SRC}

    assert lines <= MOST_LINES
    assert len(sources()) <= MOST_MODULES
    assert len(folders) <= MOST_FOLDERS


def test_few_classes_have_many_methods() -> None:
    """A class that does two jobs is two; properties and magic methods count."""
    methods = {
        node.name: sum(isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) for one in node.body)
        for text in sources().values()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
    }
    large = sorted(name for name, count in methods.items() if count > MOST_METHODS)

    assert len(large) <= MOST_LARGE_CLASSES, large


@functools.cache
def sources() -> dict[Path, str]:
    """Every module of the package, with its text."""
    return {path: path.read_text() for path in sorted(SRC.rglob("*.py"))}


def _absolute(node: ast.ImportFrom, module: str, *, is_package: bool) -> str:
    if node.level == 0:
        return node.module or ""
    here = ["hookline", *filter(None, module.split("."))]
    climb = node.level - (1 if is_package else 0)
    return ".".join([*here[: len(here) - climb], *filter(None, [node.module])])


def violations(source: str, module: str, where: str, *, is_package: bool = False) -> list[str]:
    """What a source text breaks, each as `file:line: what; the rule`."""
    found = imports(source, module, is_package=is_package)
    return [f"{where}:{imp.line}: {problem}" for imp in found for problem in _problems(imp, module)]


def _problems(imp: Import, module: str) -> Iterator[str]:
    for rule in (_direction, _purity, _core):
        if problem := rule(imp, module):
            yield problem


def _direction(imp: Import, module: str) -> str | None:
    mine, theirs = package_of(module), package_of(imp.own or "")
    if imp.own is None or module == "" or mine == theirs:
        return None
    if imp.own == "":
        ok = belongs(module, MAY_IMPORT_THE_DOOR)
        return (
            None if ok else f"`{module}` imports from `hookline` itself; import from the module that defines the name"
        )
    if theirs == "testing":
        ok = belongs(module, MAY_IMPORT_TESTING)
        return (
            None
            if ok
            else f"`{module}` imports `{imp.module}`; only tests and `cli.commands.demo` may import `testing`"
        )
    if mine == "testing":
        return None
    if theirs not in RANK:
        return f"`{module}` imports `{imp.module}`, which has no row in the import rule"
    if RANK[theirs] == RANK[mine]:
        return f"`{module}` imports `{imp.module}`; packages of one row do not import each other"
    if RANK[theirs] > RANK[mine]:
        return f"`{module}` imports `{imp.module}`; imports point down"
    return None


def _purity(imp: Import, module: str) -> str | None:
    if belongs(module, PURE) and imp.top in WORLD:
        return f"`{module}` imports `{imp.module}`; pure packages import none of {', '.join(sorted(WORLD))}"
    return None


def _core(imp: Import, module: str) -> str | None:
    if not belongs(module, CORE) or imp.own is not None or imp.top in CORE_MAY_IMPORT:
        return None
    if imp.lazy and imp.top in CORE_MAY_IMPORT_LAZILY.get(module, ()):
        return None
    return f"`{module or 'hookline'}` imports `{imp.module}`; the core needs the standard library and msgspec"


@each("path", sources())
def test_imports_keep_the_rule(path: Path) -> None:
    """Every import of every module points down, and pure and core modules import only what they may."""
    where = f"src/hookline/{path.relative_to(SRC)}"

    assert violations(sources()[path], module_name(path), where, is_package=path.name == "__init__.py") == []


def test_rooms_import_downwards_only() -> None:
    """Somebody who reads from the bottom up never meets a room that was not explained yet."""
    rank = {room: number for number, row in enumerate(ROOMS) for room in row}
    names = {path.stem for path in SRC.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    found = set()
    for path, source in sources().items():
        module = module_name(path)
        mine = module.partition(".")[0]
        for imp in imports(source, module, is_package=path.name == "__init__.py"):
            theirs = (imp.own or "").partition(".")[0]
            if mine and theirs and theirs != mine and rank[theirs] >= rank[mine]:
                found.add(f"{module}:{imp.line} imports {imp.module}")

    assert names - {"__init__"} == set(rank)
    assert sorted(found) == []


def test_every_package_has_a_row() -> None:
    """A new package must be given its place in the import rule."""
    names = {path.stem for path in SRC.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}

    assert names - {"__init__", "testing"} - {row.partition(".")[0] for row in RANK} == set()


def test_importing_hookline_loads_nothing_but_msgspec() -> None:
    """`import hookline` and the whole core work where no extra is installed."""
    modules = sorted(
        ".".join(["hookline", *filter(None, [module_name(path)])])
        for path in SRC.rglob("*.py")
        if belongs(module_name(path), CORE) and path.stem != "__main__"
    )
    script = f"""
import importlib, sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in {{*sys.stdlib_module_names, "hookline", "msgspec"}}:
            raise ImportError(f"the core imported {{name}}")
before = set(sys.modules)
sys.meta_path.insert(0, Refuse())
for module in {modules!r}:
    importlib.import_module(module)
print(sorted({{name.partition(".")[0] for name in set(sys.modules) - before}} - set(sys.stdlib_module_names)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)

    assert (done.stderr, done.returncode) == ("", 0)
    assert set(ast.literal_eval(done.stdout)) <= {"hookline", "msgspec"}


BROKEN = [
    ("events.base", "from hookline.core.engine import Hooks", "imports point down"),
    ("events.base", "from hookline.replies import Reply", "packages of one row do not import each other"),
    ("errors", "import hookline.events", "imports point down"),
    ("hosts.answer", "from hookline.agent.agent import Agent", "imports point down"),
    ("runners.command", "from ..settings import load", "packages of one row do not import each other"),
    ("core.engine.engine", "def f():\n    from hookline.runners import RUNNERS", "imports point down"),
    ("core.hooks.hook", "from hookline import deny", "import from the module that defines the name"),
    ("core.hooks.hook", "from hookline.core import engine", "imports point down"),
    ("agent.agent", "import hookline.testing", "only tests and `cli.commands.demo` may import `testing`"),
    ("core.wire.claude", "import os.path", "pure packages import none of"),
    ("core.engine.merge", "import asyncio", "pure packages import none of"),
    ("hosts.claude_code.protocol", "def f():\n    import time", "pure packages import none of"),
    ("core.engine.execute", "import aiohttp", "the core needs the standard library and msgspec"),
    ("guards.detect", "import detect_secrets", "the core needs the standard library and msgspec"),
    ("events.base", "def f():\n    import detect_secrets", "the core needs the standard library and msgspec"),
    ("", "import rich", "the core needs the standard library and msgspec"),
    ("core.engine.engine", "import hookline.plugins", "no row in the import rule"),
    ("events.base", "if TYPE_CHECKING:\n    from hookline.core.hooks import Hook", "imports point down"),
]


@pytest.mark.parametrize("module, source, rule", BROKEN)
def test_a_broken_rule_is_named_with_its_place(module: str, source: str, rule: str) -> None:
    """The check can fail: each rule, broken, gives one message with file and line."""
    [message] = violations(source, module, "src/x.py")

    assert message.startswith(f"src/x.py:{source.count(chr(10)) + 1}: ")
    assert rule in message


KEPT = [
    ("core.engine.engine", "import asyncio\nfrom hookline.core.hooks import Hook\nfrom .merge import merge"),
    ("guards.detect", "def f():\n    import detect_secrets"),
    ("core.engine.merge", "import msgspec\nfrom hookline import errors"),
    ("cli.commands.demo", "from hookline import Hooks\nfrom hookline.testing import fakes\nimport rich"),
    ("testing.plugin", "from hookline.cli import main\nfrom hookline import Hooks"),
    ("", "from hookline.core.engine import Hooks"),
]


@pytest.mark.parametrize("module, source", KEPT)
def test_a_kept_rule_is_no_violation(module: str, source: str) -> None:
    """What the rule allows passes."""
    assert violations(source, module, "src/x.py") == []


# -- one fact, one place -------------------------------------------------------------------------------------------

MAY_LIST_EVENTS = {
    "frameworks.agent_hooks": "the interception points of AGENT-HOOKS, each with the event it is here",
    "hosts": "a host's own names for events, and what it does on each, are facts of that host",
    "agent.stream_json.host_session": "where the Claude CLI takes a host's silence for a no: a quirk of that protocol",
    "cli.commands.demo.play": "the demo's words for the three events of its own story",
    "records.telemetry": "the events before and after one tool call, and the kind of error that each end of one means",
    "records.replay.reader": "the events that a replay fires again: a log keeps all that is judged of these",
}
"""Who may keep a table of event names outside `events`, and why."""


def event_tables(node: ast.AST) -> Iterator[tuple[int, set[str]]]:
    """A literal with three or more events in it, or a chain of conditions over as many: line, names."""
    named = {name for part in _parts_of(node) if (name := _event_in(part))}
    if len(named) >= 3:
        yield getattr(node, "lineno", 0), named


def _parts_of(node: ast.AST) -> list[ast.AST]:
    if isinstance(node, ast.Dict):
        return [key for key in node.keys if key is not None]
    if isinstance(node, COLLECTIONS):
        return list(node.elts)
    if isinstance(node, ast.Match):
        return [part for case in node.cases for part in ast.walk(case.pattern)]
    return _conditions(node) if isinstance(node, ast.If) else []


def _conditions(node: ast.If) -> list[ast.AST]:
    parts = list(ast.walk(node.test))
    if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        parts += _conditions(node.orelse[0])
    return parts


def _event_in(node: ast.AST) -> str | None:
    named = {ast.Constant: "value", ast.Name: "id", ast.Attribute: "attr"}.get(type(node))
    value = getattr(node, named) if named else None
    return value if isinstance(value, str) and value in CATALOG else None


def test_only_the_catalogue_lists_events() -> None:
    """What depends on an event's name is a column of `events/catalog.py`, or has its reason above."""
    found = [
        f"{path.relative_to(SRC)}:{line}: {', '.join(sorted(names))}"
        for path, source in sources().items()
        for line, names in Read.of(source).event_tables
        if not belongs(module_name(path), ("events", "", *MAY_LIST_EVENTS))
    ]

    assert found == []


@pytest.mark.parametrize("source, lines", [
    ('A = frozenset({"Stop", "PreToolUse", "Setup"})', [1]),
    ('A = {"Stop": 1, "PreToolUse": 2, "Setup": 3}', [1]),
    ("A = (\n    Stop, events.PreToolUse, Setup)", [1]),
    ('if n == "Stop":\n    pass\nelif n in ("Setup", "PreToolUse"):\n    pass', [1]),
    ('A = ("Stop", "SubagentStop")', []),
    ('A = {"a": "Stop", "b": "Setup", "c": "PreToolUse"}', []),
])  # fmt: skip
def test_a_table_of_events_is_found(source: str, lines: list[int]) -> None:
    """The check can fail."""
    assert [line for line, _ in Read.of(source).event_tables] == lines


# -- one home for each shared idea ---------------------------------------------------------------------------------

SHELL_READERS = ("runners.warm", "settings.trust.scripts")
HOMES = {
    "`${NAME}` is filled in by `placeholders`": ("core.placeholders", "core.shell", "guards.detect", *SHELL_READERS),
    "`paths.inside` says what lies in a folder": ("core.paths",),
    "`hooks.condition` lists the tools that edit": ("core.hooks.condition", "settings.check"),  # the latter lists all
}
"""Each idea, and who may spell it out: its home, and those who only read a shell's or another one's words."""


def spelled_out(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Whether a node does by itself what one of the homes does: line, idea."""
    placeholder, folder, tools = HOMES
    line = getattr(node, "lineno", 0)
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and r"\{(" in node.value.replace("?:", ""):
        if r"\$" in node.value:
            yield line, placeholder
    elif isinstance(node, ast.BoolOp) and _is_or_below(node):
        yield line, folder
    elif len({"Edit", "Write", "MultiEdit", "NotebookEdit"} & {getattr(p, "value", "") for p in _parts_of(node)}) > 2:
        yield line, tools


def _is_or_below(node: ast.BoolOp) -> bool:
    """`path == folder or path.startswith(folder + "/")`, however the folder is spelled."""
    compared = any(isinstance(value, ast.Compare) and isinstance(value.ops[0], ast.Eq) for value in node.values)
    starts = [value for value in node.values if isinstance(value, ast.Call) and _called(value) == "startswith"]
    ends = [value.args[0].right for value in starts if value.args and isinstance(value.args[0], ast.BinOp)]
    return isinstance(node.op, ast.Or) and compared and any(getattr(end, "value", "") == "/" for end in ends)


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def test_a_shared_idea_has_one_home() -> None:
    """Whoever needs one of these calls its home; a second copy would go its own way one day."""
    found = [
        f"{path.relative_to(SRC)}:{line}: {idea}"
        for path, source in sources().items()
        for line, idea in Read.of(source).spelled_out
        if not belongs(module_name(path), HOMES[idea])
    ]

    assert found == []


@pytest.mark.parametrize("source, found", [
    (r'A = re.compile(r"\$\{(\w+)\}")', 1),
    (r'A = re.compile(r"\$(?:\{(\w+)\}|(\w+))")', 1),
    ('A = path == root or path.startswith(root.rstrip("/") + "/")', 1),
    ('EDITING = frozenset({"Write", "Edit", "NotebookEdit"})', 1),
    ('A = path.startswith("/") or path == home', 0),
    ('A = {"Edit": 1, "Write": 2, "Bash": 3}', 0),
])  # fmt: skip
def test_a_second_home_is_found(source: str, found: int) -> None:
    """The check can fail."""
    assert len(Read.of(source).spelled_out) == found


# -- a small door, and no knots ------------------------------------------------------------------------------------


def test_a_set_of_hooks_has_few_public_names() -> None:
    """`Hooks` is a facade; what is behind it is `hooks.engine`."""
    made = hookline.Hooks()
    public = {name for name in (*dir(made), *vars(made)) if not name.startswith("_")}

    assert len(public) <= 16, sorted(public)


def test_a_subclass_of_hooks_stays_its_class(tmp_path: Path) -> None:
    """Also one that follows its settings files."""

    class Mine(hookline.Hooks):
        pass

    made = Mine.from_settings(tmp_path, bare=True, home=tmp_path)

    assert type(made) is Mine


EVERYWHERE = (*TOP,)
"""Modules import each other in one direction only, in the whole package, lazy imports and those for types included."""


def cycles(graph: dict[str, set[str]]) -> list[tuple[str, ...]]:
    """The groups of modules that lead back to each other."""
    reach = {start: _reached(start, graph) for start in graph}
    knots = {frozenset({a, *(b for b in reach[a] if a in reach.get(b, ()))}) for a in graph if a in reach[a]}
    return sorted(tuple(sorted(knot)) for knot in knots)


def _reached(start: str, graph: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = [*graph[start]]
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            waiting += graph.get(module, ())
    return seen


def import_graph(packages: tuple[str, ...]) -> dict[str, set[str]]:
    """Who imports whom, by module; a package's own `__init__` counts only for those who are not in the package."""
    paths = {module_name(path): path for path in sources() if belongs(module_name(path), packages)}
    graph: dict[str, set[str]] = {}
    for module, path in paths.items():
        is_package = path.name == "__init__.py"
        found = {imp.own for imp in imports(sources()[path], module, is_package=is_package) if imp.own}
        below = {name for name in _submodules(sources()[path]) if name in paths}
        graph[module] = {own for own in found if own in paths and not any(name.startswith(f"{own}.") for name in below)}
        graph[module] |= below
    return graph


def _submodules(source: str) -> Iterator[str]:
    """`events.agents` for `from hookline.events import agents`, which says more than `events`."""
    for node, _ in Read.of(source).imports:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hookline."):
            yield from (f"{(node.module or '').removeprefix('hookline.')}.{alias.name}" for alias in node.names)


def test_no_module_leads_back_to_itself() -> None:
    """What leads back to itself cannot be read, tested or moved on its own."""
    assert cycles(import_graph(EVERYWHERE)) == []


def test_a_knot_is_found() -> None:
    """The check can fail: a direct cycle and a longer one."""
    assert cycles({"a": {"b"}, "b": {"a"}, "c": {"d"}, "d": {"e"}, "e": {"c"}, "f": {"a"}}) == [
        ("a", "b"),
        ("c", "d", "e"),
    ]


# -- one word per thing --------------------------------------------------------------------------------------------

TWICE = {
    "Agent": "the agent, the tool of that name, and an agent CLI under proof",
    "HooklineMiddleware": "users look for this name in either framework",
    "Inbox": "what users pass as `on_ask`, and the messages that wait for an agent",
    "McpTool": "a kind of hook, which users write, and a tool of an MCP server",
    "Skill": "what a skill is, the tool of that name, and its hooks",
    "Options": "each is the options of its own module, and users write the SDK-like one",
    "Tool": "each is the row or base class of its own table of tools",
    "Status": "each is the status of its own package, and two are public",
}
"""Names of more than one class, and why."""


def class_names() -> dict[str, set[str]]:
    """The modules that define a class, by its name; names that begin with `_` are their module's own business."""
    found: dict[str, set[str]] = {}
    for path, source in sources().items():
        for name in Read.of(source).classes:
            if not name.startswith("_"):
                found.setdefault(name, set()).add(module_name(path))
    return found


def test_a_class_name_is_used_once() -> None:
    """Whoever searches for a name finds one thing."""
    twice = {name for name, modules in class_names().items() if len(modules) > 1}

    assert sorted(twice - set(TWICE)) == []
    assert sorted(set(TWICE) - twice) == [], "used once now: take it off the list"


# -- how Hookline starts itself ------------------------------------------------------------------------------------

NAMES_THE_INTERPRETER = {
    "core.interpreter": "where every start of Hookline is made",
    "cli.commands.demo.play": "puts the interpreter's folder on the PATH of its own project",
    "cli.commands.demo.hooks": "runs the tests of the demo's own project",
    "fleet.connection": "looks for `nats-server` beside it",
    "processes.service.client": "tells the service which interpreter asks",
    "processes.service.server": "says in its status which interpreter it is",
    "processes.service.control": "asks whether there is one",
    "processes.service.worker": "watches the file for changes",
    "runners.warm._boot.hookline_boot": "watches the file for changes",
}
"""Who may name `sys.executable`, and why: an internal start is made by `core.interpreter` alone, isolated."""


def own_starts(source: str) -> list[int]:
    """The lines that name this interpreter, or a module of ours to be run by `-m`."""
    found = []
    for node, _ in nodes(source):
        if isinstance(node, ast.Attribute) and node.attr in ("executable", "_base_executable"):
            if isinstance(node.value, ast.Name) and node.value.id == "sys":
                found.append(node.lineno)
        elif isinstance(node, ast.ImportFrom) and node.module == "sys":
            found += [node.lineno for alias in node.names if alias.name == "executable"]
        elif isinstance(node, ast.List | ast.Tuple):
            words = [part.value for part in node.elts if isinstance(part, ast.Constant)]
            if "-m" in words and any(isinstance(word, str) and word.startswith("hookline") for word in words):
                found.append(node.lineno)
    return found


def test_hookline_is_started_in_one_place() -> None:
    """Isolated and by whole paths: what lies in the working folder or the environment is never imported."""
    found = {
        module_name(path): lines
        for path, source in sources().items()
        if (lines := own_starts(source)) and module_name(path) not in NAMES_THE_INTERPRETER
    }

    assert found == {}


def test_another_start_is_found() -> None:
    """The check can fail."""
    spellings = ("import sys\nrun([sys.executable, 'x'])", "from sys import executable", "run(('p', '-m', 'hookline'))")

    assert [own_starts(source) for source in spellings] == [[2], [1], [1]]
