"""`python -m tools.hosts [--run]`: write docs/hosts.md and a page per host from the table of hosts.

With `--run` the battery is run on every agent CLI that is installed, and what was seen goes into `measured.json` beside
this file; without it the pages are written from what was seen last.
"""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hookline.hosts.host import ABILITIES, Exit, Host, Plain, able
from hookline.hosts.table import HOSTS
from tools.hosts.measure import CASES, measure
from tools.reference.markdown import table

ROOT = Path(__file__).resolve().parents[2]
SEEN = Path(__file__).with_name("measured.json")
DOCS = ROOT / "docs"

INTRO = """# Every agent: what holds where

One hook file, on every agent CLI that has hooks. Each of them has its own events, its own words for an answer, and all
of them let the tool run when a hook times out or prints garbage. Hookline knows the words, and answers in time.

```sh
hookline install claude codex gemini --hooks hooks.py    # writes each agent's own configuration
hookline prove                                            # runs them on a scripted model: does it hold?
```

## What each can do

✓ it can · ‒ it cannot. On a gate, what an agent cannot do becomes a deny: a question nobody can be asked, a rewritten
call that would not be used, a stop. `hookline install` says so for each of your hooks; `--strict` refuses.

"""
MEASURED = """
## What was seen

`make hosts` installs the agents, runs each headless against a scripted model on loopback, with one hook file that was
put in place by `hookline install HOST --hooks FILE.py --scope user --yes`, and writes this table. ✓ means: the call ran
if it should, did not run if it should not, and the model read why.

"""
FAILURES = """
## Without Hookline

What the agents themselves do with a hook that fails, measured on the same versions: on all of them a hook that times
out, and one that prints garbage, lets the tool run. No deny works everywhere: `decision: deny` beside a correct answer
makes Claude Code drop the whole answer and run the tool. That is why each has a writer of its own, and why the answer
always comes from us, before the agent gives up.
"""


def main(argv: list[str]) -> int:
    """Write the pages; exit 1 if something that was run did not hold."""
    seen: dict[str, Any] = json.loads(SEEN.read_text()) if SEEN.exists() else {}
    if "--run" in argv:
        names = [word for word in argv if word in HOSTS]
        for host in HOSTS.values():
            if (host.verified and not names) or host.name in names:
                found = measure(host)
                print(f"{host.name}: {_summary(found)}", flush=True)
                if found.get("cases"):
                    seen[host.name] = {**found, "date": datetime.now(UTC).date().isoformat()}
        SEEN.write_text(json.dumps(seen, indent=1, sort_keys=True) + "\n")
    (DOCS / "hosts.md").write_text(matrix(seen))
    (DOCS / "hosts").mkdir(exist_ok=True)
    for host in HOSTS.values():
        (DOCS / "hosts" / f"{host.name}.md").write_text(page(host, seen.get(host.name)))
    return 0 if all(held is not False for row in seen.values() for held in row["cases"].values()) else 1


def _summary(found: dict[str, Any]) -> str:
    if not found.get("cases"):
        return str(found["skipped"])
    bad = [name for name, good in found["cases"].items() if good is False]
    return f"{found['version']}: " + (f"does not hold: {', '.join(bad)}" if bad else "all of it holds")


def matrix(seen: dict[str, Any]) -> str:
    """The page people link to."""
    head = ("agent", "measured", *ABILITIES)
    rows = [(f"[{host.title}](hosts/{host.name}.md)", host.verified or "from docs",
             *("✓" if able(host, name) else "‒" for name in ABILITIES)) for host in HOSTS.values()]  # fmt: skip
    tried = [(HOSTS[name].title, row["version"], row["date"], *(_mark(row["cases"].get(case)) for case in CASES))
             for name, row in seen.items() if name in HOSTS]  # fmt: skip
    order = list(HOSTS)
    tried.sort(key=lambda row: next(index for index, name in enumerate(order) if HOSTS[name].title == row[0]))
    return INTRO + table(head, rows) + MEASURED + table(("agent", "version", "date", *CASES), tried) + FAILURES


def _mark(held: bool | None) -> str:  # noqa: FBT001 - a value to show
    return "‒" if held is None else "✓" if held else "✗"


def page(host: Host, seen: dict[str, Any] | None) -> str:
    """One host's page."""
    parts = [f"# {host.title}\n", _status(host, seen), _installing(host), "## Events\n\n" + _events(host)]
    parts += ["## What it obeys\n\n" + _words(host), _notes(host)]
    return "\n".join(part for part in parts if part) + "\n[All agents](../hosts.md)\n"


def _status(host: Host, seen: dict[str, Any] | None) -> str:
    if not host.verified:
        return (
            "**Unverified.** This agent could not be run here: what follows repeats its documentation or source.\n"
            "Try it before you rely on it.\n"
        )
    when = f" The battery last ran on {seen['version']}, {seen['date']}." if seen else ""
    return f"Measured on version {host.verified}.{when}\n"


def _installing(host: Host) -> str:
    rows = [("user", f"`~/{host.config.user}`")]
    if host.config.project:
        rows.append(("project", f"`{host.config.project}`"))
    moved = (
        f"\n`{host.config.home_env}` moves the first part of it, as for {host.title} itself.\n"
        if host.config.home_env
        else ""
    )
    unit = "milliseconds" if host.config.second == 1000 else "seconds"
    patience = (
        ""
        if host.config.shape in ("scripts", "plugin")
        else (f"Timeouts are written in {unit}, ten seconds longer than Hookline takes at most. ")
    )
    return (
        "## Install\n\n```sh\n"
        f"hookline install {host.name} --hooks hooks.py{' --yes' if host.name == 'codex' else ''}\n```\n\n"
        + table(("scope", "file"), rows)
        + f"{moved}\n{patience}"
        f"`hookline uninstall {host.name}` puts everything back.\n"
    )


def _events(host: Host) -> str:
    rows = [(f"`{theirs}`", f"`{ours}`") for theirs, ours in host.events.items()]
    tools = [(f"`{name}`", f"`{tool.name}`") for name, tool in host.tools.items()]
    named = (
        f"\nIts tools go by our names, so that one matcher fits all agents:\n\n{table(('there', 'here'), tools)}"
        if tools
        else ""
    )
    return table(("there", "here"), rows) + named


def _words(host: Host) -> str:
    rows = [
        (f"`{event}`", f"`{kind}`", _shown(template))
        for event, words in host.says.items()
        for kind, template in words.items()
    ]
    return table(("event", "answer", f"what {host.title} is told"), rows)


def _shown(template: Any) -> str:
    if isinstance(template, Exit):
        return f"exit code {template.code}, the text on stderr"
    if isinstance(template, Plain):
        return "the text on stdout"
    if callable(template):
        return (template.__doc__ or "").partition("\n")[0].rstrip(".")
    return f"`{json.dumps(template)}`" if template else "as part of the decision"


def _notes(host: Host) -> str:
    if not host.notes:
        return ""
    return "## Good to know\n\n" + "".join(f"- {note[0].upper()}{note[1:]}.\n" for note in host.notes)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    subprocess.run(["git", "status", "--short", "docs/hosts.md", "docs/hosts"], cwd=ROOT, check=False)
    sys.exit(code)
