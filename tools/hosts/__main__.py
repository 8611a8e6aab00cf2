"""`python -m tools.hosts [--run]`: write docs/hosts.md and a page per host from the table of hosts.

With `--run [HOST…]` agent CLIs are fetched, put through the battery and measured; what was seen goes into
`measured.json` beside this file. Without it the pages are written from what was seen last.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hookline.hosts.host import ABILITIES, EXIT, PLAIN, Host, able
from hookline.hosts.table import HOSTS
from tools.hosts.each import HostRunner, Interrupted, summary
from tools.hosts.measure import CASES
from tools.reference.markdown import table

ROOT = Path(__file__).resolve().parents[2]
SEEN = Path(__file__).with_name("measured.json")
DOCS = ROOT / "docs"

INTRO = """# Every agent: what holds where

One hook file, on every agent CLI that has hooks. Each of them has its own events, its own words for an answer, and all
of them let the tool run when a hook times out or prints garbage. Hookline knows the words, and answers in time.

<!-- skip: tests/hosts/install runs it for every agent -->
```sh
hookline install claude codex gemini --hooks hooks.py    # writes each agent's own configuration
hookline prove                                            # runs them on a scripted model: does it hold?
```

## What each can do

✓ it can · ‒ it cannot. On a gate, what an agent cannot do becomes a deny: a question that no one can be asked, a
rewritten call that would not be used, a stop. `hookline install` says so for each of your hooks; `--strict` refuses.

"""
SCOPES = """
## The user's hooks and a project's

Both are asked, and one deny is enough. The same hook file in both is asked once. OpenHands reads only the project's
file, so our entry there asks the user's hooks as well. Codex, Copilot CLI and Grok run a project's hooks only where
they are trusted; Kimi Code has none.
"""
MEASURED = """
## What was seen

`make hosts` installs the agents, runs each headless against a scripted model on loopback, with one hook file that was
put in place by `hookline install HOST --hooks FILE.py --scope user --yes`, and writes this table. ✓ means: the call ran
if it should, did not run if it should not, and the model read why. *files* and *patches*: a hook on `Write|Edit` held
for the agent's file tool, and for the patches that it has for some models (GPT's, mostly; ‒ where no model was offered
any). *known tools*: each tool that it offered a model, of every family that was tried, is one that Hookline knows.

"""
FAILURES = """
## Without Hookline

What the agents themselves do with a hook that fails, measured on the same versions: on all of them a hook that times
out, and one that prints garbage, lets the tool run. No deny works everywhere: `decision: deny` beside a correct answer
makes Claude Code drop the whole answer and run the tool. That is why each has a writer of its own, and why the answer
always comes from us, before the agent gives up.
"""


def main(argv: list[str]) -> int:
    """Write the pages; exit 1 if a host could not be had or does not hold, 130 after Ctrl-C."""
    seen: dict[str, Any] = json.loads(SEEN.read_text()) if SEEN.exists() else {}
    good = True
    if "--run" in argv:
        try:
            good = _run([word for word in argv if word != "--run"], seen)
        except Interrupted:
            print("\ninterrupted; nothing was written", file=sys.stderr)
            return 130
        SEEN.write_text(json.dumps(seen, indent=1, sort_keys=True) + "\n")
    (DOCS / "hosts.md").write_text(matrix(seen))
    (DOCS / "hosts").mkdir(exist_ok=True)
    for host in HOSTS.values():
        (DOCS / "hosts" / f"{host.name}.md").write_text(page(host, seen.get(host.name)))
    return 0 if good else 1


def _run(names: list[str], seen: dict[str, Any]) -> bool:
    """Try the hosts named, or all that were ever measured, and note what was seen; whether all of it holds."""
    began = time.monotonic()
    outcomes = HostRunner().run(names or [host.name for host in HOSTS.values() if host.verified])
    today = datetime.now(UTC).date().isoformat()
    seen |= {one.name: {**one.measured, "date": today} for one in outcomes if one.measured}
    print(summary(outcomes, time.monotonic() - began), flush=True)
    return not any(one.problem for one in outcomes)


def matrix(seen: dict[str, Any]) -> str:
    """The page people link to."""
    head = ("agent", "measured", *ABILITIES)
    rows = [(f"[{host.title}](hosts/{host.name}.md)", host.verified or "from docs",
             *("✓" if able(host, name) else "‒" for name in ABILITIES)) for host in HOSTS.values()]  # fmt: skip
    tried = [(HOSTS[name].title, row["version"], row["date"], *(_mark(row["cases"].get(case)) for case in CASES))
             for name, row in seen.items() if name in HOSTS]  # fmt: skip
    order = list(HOSTS)
    tried.sort(key=lambda row: next(index for index, name in enumerate(order) if HOSTS[name].title == row[0]))
    return INTRO + table(head, rows) + SCOPES + MEASURED + table(("agent", "version", "date", *CASES), tried) + FAILURES


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
        if host.config.kind in ("scripts", "plugin")
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
    if template == EXIT:
        return "exit code 2, the text on stderr"
    if template == PLAIN:
        return "the text on stdout"
    return f"`{json.dumps(template)}`" if template else "as part of the decision"


def _notes(host: Host) -> str:
    if not host.notes:
        return ""
    return "## Good to know\n\n" + "".join(f"- {note[0].upper()}{note[1:]}.\n" for note in host.notes)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    subprocess.run(["git", "status", "--short", "docs/hosts.md", "docs/hosts"], cwd=ROOT, check=False)
    sys.exit(code)
