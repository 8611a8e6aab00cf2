"""A report: the console's views over a bounded copy of the data, in one file that needs no server and no network."""

import base64
import hashlib
import re
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from string import Template
from typing import Any

import msgspec

from hookline.core.hooks import Hook
from hookline.core.interpreter import hookline_argv
from hookline.records.audit.reader import logs_in
from hookline.records.console.index import LogIndex
from hookline.records.console.store import Filter, LogStore

MOST_EVENTS = 2_000
_MOST_HOOKS = 100
_MOST_SESSIONS = 500
_MOST_TEXT = 2_000
_MOST_LINE = 8_000
_MOST_FLIPS = 500
_MOST_SAID = 4_000
_STATIC = Path(__file__).parent / "static"
_IMPORT = re.compile(r'^import \{ ([^}]+) \} from "\./([\w.]+)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function\*?|const|class) (\w+))", re.MULTILINE)
_TELLING = ("deny", "stop", "ask", "defer", "keep going", "rewrite", "replace", "gap")


def report(
    paths: Iterable[str | Path],
    *,
    key: bytes | None = None,
    configured: Iterable[Hook] = (),
    replay: dict[str, Any] | None = None,
    most: int = MOST_EVENTS,
    within: tuple[datetime | None, datetime | None] = (None, None),
) -> str:
    """The report on these logs, as HTML; beyond `most` events it holds the telling ones and the newest, and says so.

    Events and sessions are those of the time `within`; hooks, coverage and health are over the whole of the logs.
    """
    since, until = (int(moment.timestamp() * 1000) if moment else 0 for moment in within)
    logs = logs_in(paths)
    with tempfile.TemporaryDirectory() as folder, closing(LogIndex(Path(folder, "index.sqlite"), logs)) as index:
        index.refresh()
        store = LogStore(index, key=key, configured=configured)
        store.check()
        return page(collect(store, replay or {"state": "off"}, most, Filter(since=since, until=until)))


def collect(store: LogStore, replay: dict[str, Any], most: int, when: Filter) -> dict[str, Any]:
    """Everything a report shows."""
    facets, hooks = store.facets(when), store.hooks()[:_MOST_HOOKS]
    rows, total = _chosen(store, most, when), facets["total"]
    part = f"{len(rows):,} of {total:,} events: those that a hook decided, and the newest"
    held = f"all {len(rows):,} events" if len(rows) >= total else part
    sessions = store.sessions("", _MOST_SESSIONS)["rows"]
    return {
        "note": f"A report made by Hookline on {datetime.now(UTC):%d %B %Y, %H:%M} UTC. It holds {held}.",
        "total": total,
        "events": rows,
        "details": [_bounded(found) for row in rows if (found := store.event(row["id"])) is not None],
        "facets": facets,
        "timeline": store.timeline(when),
        "sessions": [
            one for one in sessions if one["last"] >= when.since and one["first"] <= (when.until or one["first"])
        ],
        "hooks": hooks,
        "series": [store.hook(hook["name"]) for hook in hooks],
        "coverage": store.coverage(),
        "health": store.health(),
        "replay": {**replay, "embedded": True},
    }


def _chosen(store: LogStore, most: int, when: Filter) -> list[dict[str, Any]]:
    """The events that a report holds, newest first: what was decided, what failed, then the newest."""
    only = partial(msgspec.structs.replace, when)
    wanted = (only(verdict=_TELLING), most // 2), (only(failed=True), most // 4), (when, most)
    chosen: dict[int, dict[str, Any]] = {}
    for which, limit in wanted:
        chosen |= {row["id"]: row for row in store.page(which, "", min(limit, most - len(chosen)) or 1)["rows"]}
    return sorted(list(chosen.values())[:most], key=lambda row: (-row["time"], -row["id"]))


def _bounded(found: dict[str, Any]) -> dict[str, Any]:
    line = found["line"]
    if len(line) <= _MOST_LINE:
        return found
    return {**found, "record": _shortened(found["record"]), "line": f"{line[:_MOST_LINE]}… ({len(line):,} characters)"}


def _shortened(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _MOST_TEXT else f"{value[:_MOST_TEXT]}… ({len(value):,} characters)"
    if isinstance(value, dict):
        return {name: _shortened(item) for name, item in value.items()}
    return [_shortened(item) for item in value[:200]] if isinstance(value, list) else value


def page(data: dict[str, Any]) -> str:
    """One HTML file: styles, scripts and data inside, and a policy that allows exactly those."""
    modules = {path.name: path.read_text() for path in _STATIC.glob("*.js")}
    styles = [(_STATIC / name).read_text() for name in ("vendor/uplot.min.css", "console.css")]
    scripts = [modules["theme.js"], (_STATIC / "vendor/uplot.min.js").read_text(), bundle(modules, "main.js")]
    policy = (
        f"default-src 'none'; script-src {' '.join(map(_hash, scripts))}; style-src {' '.join(map(_hash, styles))};"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )
    theme, uplot, main = scripts
    embedded = msgspec.json.encode(data).decode()
    for sign in "<>&\u2028\u2029":  # no HTML parser may mistake it for markup
        embedded = embedded.replace(sign, f"\\u{ord(sign):04x}")
    template = Template(Path(__file__).with_name("report.html").read_text())
    styled = "\n".join(f"<style>{style}</style>" for style in styles)
    return template.substitute(policy=policy, styles=styled, theme=theme, data=embedded, uplot=uplot, main=main)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def bundle(modules: Mapping[str, str], main: str) -> str:
    """`main` and what it imports, each in a scope of its own, what is imported first."""
    order: dict[str, str] = {}

    def visit(name: str) -> None:
        for _, other in _IMPORT.findall(modules[name]):
            if other not in order:
                visit(other)
        order.setdefault(name, _wrapped(name, modules[name]))

    visit(main)
    return "const modules = {};\n" + "\n".join(order.values())


def _wrapped(name: str, source: str) -> str:
    body = _IMPORT.sub(r'const { \1 } = modules["\2"];', source)
    names = [match[2] for match in _EXPORT.finditer(body)]
    body = _EXPORT.sub(r"\1", body)
    return f'modules["{name}"] = (() => {{\n{body}\nreturn {{ {", ".join(names)} }};\n}})();'


class ReplaySubprocess:
    """Today's hooks over the recorded past: `hookline replay --json`, as a process; the flags say whose hooks."""

    def __init__(self, files: Sequence[str], flags: Sequence[str], hooks: str) -> None:
        self._argv = hookline_argv("replay", "--json", *flags, "--", *files)
        self._hooks = hooks
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._found: dict[str, Any] = {"state": "ready"}

    def state(self) -> dict[str, Any]:
        """`ready`, `running`, `done` or `failed`, and what was found."""
        return {"hooks": self._hooks, **self._found}

    def start(self) -> None:
        with self._lock:
            if self._found["state"] == "running":
                return
            self._found = {"state": "running"}
        threading.Thread(target=self.run, name="hookline-replay", daemon=True).start()

    def run(self) -> None:
        self._process = subprocess.Popen(
            self._argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        said, problem = self._process.communicate()
        if self._process.returncode:
            self._found = {"state": "failed", "problem": problem.decode("utf-8", "replace")[-_MOST_SAID:]}
            return
        report = msgspec.json.decode(said)
        report["flips"] = report["flips"][:_MOST_FLIPS]
        self._found = {"state": "done", "report": report}

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait()
