"""How many questions a learned policy spares, on shell lines that agents ran: `python -m tools.learn_corpus FOLDER`.

FOLDER holds transcripts in Markdown (`.specstory/history/*.md`), a file a session, named by its time. Four fifths of
the lines are learned from and the questions about the rest are counted: three times with another fifth of the lines,
then with every fifth session, then with the last fifth in time. Every line of our attack tables is tried each time.
`--left` prints the questions that stay; PROJECT and HOME are those of whoever recorded the transcripts. The ceiling is
what a policy could spare that knows nothing but the programs and subcommands of what it learned from.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from hookline.core.paths import absolute, inside
from hookline.core.shell import parse_line
from hookline.guards import learned_words as grammar
from hookline.guards.permissions.rules import Rules
from hookline.records.learn import Evidence, is_question, learn, shipped_attacks

_CALL = re.compile(
    r'<tool-use data-tool-type="shell"[^>]*>(?P<block>.*?)</tool-use>'
    r"|\*\*Tool:\*\* Bash\n\*\*Input:\*\* ```json\n(?P<json>.*?)\n```$"
    r"|^Tool use: \*\*Bash\*\*[^\n]*\n\n(?P<bare>`[^`\n]+`)$",
    re.DOTALL | re.MULTILINE,
)
_LINE = re.compile(r"^`([^`\n]+)`\s*$|```(?:bash|sh)\n(.*?)\n```", re.MULTILINE | re.DOTALL)


def sessions_of(folder: Path, user: str) -> Iterator[list[str]]:
    """The shell lines of each transcript, in order; where a user's name was taken out, this one stands."""
    for file in sorted(folder.rglob("*.md"), key=lambda file: file.name):
        if ".specstory/history" in str(file):
            text = file.read_text(errors="replace").replace("<USER_ID_REDACTED>", user)
            yield [line for call in _CALL.finditer(text) for line in _lines(call)]


def _lines(call: re.Match[str]) -> Iterator[str]:
    if call["json"]:
        try:
            given = json.loads(call["json"])
        except ValueError:
            return
        if isinstance(given.get("command"), str):
            yield given["command"]
    elif match := _LINE.search(call["block"] or call["bare"]):
        yield match[1] or match[2]


def main(argv: list[str]) -> int:
    """Measure and print."""
    flags = argparse.ArgumentParser(prog="learn_corpus")
    flags.add_argument("folder", type=Path)
    flags.add_argument("project", nargs="?", default="/home/me/code/app")
    flags.add_argument("home", nargs="?", default="/home/me")
    flags.add_argument("--left", action="store_true")
    args = flags.parse_args(argv)
    sessions = [list(_calls(lines, args.project)) for lines in sessions_of(args.folder, Path(args.home).name) if lines]
    calls = [call for session in sessions for call in session]
    if not calls:
        print(f"{args.folder}: no shell lines in .specstory/history", file=sys.stderr)
        return 1
    print(f"{len(calls):,} lines of {len(sessions)} sessions")
    cut, mixed = len(calls) * 4 // 5, list(calls)
    for seed in (1, 2, 3):
        random.Random(seed).shuffle(mixed)  # noqa: S311 - the same three shuffles every time
        _measure(f"shuffle {seed}", mixed[:cut], mixed[cut:], args)
    fifth = [call for session in sessions[4::5] for call in session]
    _measure("every fifth session", [call for at, s in enumerate(sessions) if at % 5 != 4 for call in s], fifth, args)
    _measure("the last fifth", calls[:cut], calls[cut:], args)
    return 0


def _calls(lines: list[str], project: str) -> Iterator[Evidence]:
    """The lines with the folder that each starts in: a `cd` stays in force, as long as it leads into the project."""
    cwd = project
    for line in lines:
        yield Evidence("Bash", {"command": line}, cwd, "2026-11-01")
        for part in parse_line(line).commands:
            if part.name == "cd" and len(part.words) == 2 and not (part.scope or part.unknown):
                cwd = absolute(part.words[1], cwd, "/")
        cwd = cwd if inside(cwd, project) else project


def _runs(call: Evidence) -> set[tuple[str, ...]]:
    """The programs of a line with their subcommands."""
    return {grammar.head_of(part)[:3] or (part.name,) for part in parse_line(str(call.given["command"])).commands}


def _measure(name: str, known: list[Evidence], held: list[Evidence], args: argparse.Namespace) -> None:
    project, home = args.project, args.home
    policy = learn(known, [], project=project, home=home).policy
    asked = [call for call in held if is_question(call, project, home, Rules())]
    left = [call for call in asked if not policy.covering(call.tool, call.given, call.cwd, [project], home)]
    attacks = [one.given for one in shipped_attacks(project)]
    allowed = sum(bool(policy.covering("Bash", given, project, [project], home)) for given in attacks)
    runs = {run for call in known for run in _runs(call)}
    new = sum(not runs.issuperset(_runs(call)) for call in asked)
    spared, ceiling = (number / max(len(asked), 1) - 1 for number in (len(left), new))
    print(
        f"{name}: {len(held)} calls, {len(asked)} questions, {len(left)} left ({spared:.0%}, ceiling {ceiling:.0%});"
        f" {allowed} attacks allowed"
    )
    for call in left if args.left else ():
        print(f"    {call.given['command']!r}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
