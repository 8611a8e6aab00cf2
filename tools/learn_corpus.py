"""How many questions a learned policy spares, on shell lines that agents ran: `python -m tools.learn_corpus FOLDER`.

FOLDER holds transcripts in SpecStory's form (`.specstory/history/*.md`). Four fifths of the lines are learned from, the
questions about the rest are counted, three times with another fifth; then every line of our attack tables is tried.
"""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path

from hookline.guards.permissions.rules import Rules
from hookline.records.learn import Evidence, is_question, learn, shipped_attacks

_CALL = re.compile(r'<tool-use data-tool-type="shell"[^>]*>(.*?)</tool-use>', re.DOTALL)
_LINE = re.compile(r"^`([^`\n]+)`\s*$|```(?:bash|sh)\n(.*?)\n```", re.MULTILINE | re.DOTALL)


def lines_of(folder: Path) -> list[str]:
    """Every shell line of the transcripts, in order."""
    files = sorted(folder.rglob("*.md"))
    texts = [file.read_text(errors="replace") for file in files if ".specstory/history" in str(file)]
    found = (_LINE.search(call) for text in texts for call in _CALL.findall(text))
    return [match[1] or match[2] for match in found if match]


def main(argv: list[str]) -> int:
    """Measure and print."""
    project, home = argv[1:3] if len(argv) > 2 else ("/home/me/code/app", "/home/me")
    calls = [Evidence("Bash", {"command": line}, project, "2026-11-01") for line in lines_of(Path(argv[0]))]
    if not calls:
        print(f"{argv[0]}: no shell lines in .specstory/history", file=sys.stderr)
        return 1
    print(f"{len(calls):,} lines")
    for seed in (1, 2, 3):
        random.Random(seed).shuffle(calls)  # noqa: S311 - the same three shuffles every time
        cut = len(calls) * 4 // 5
        policy = learn(calls[:cut], [], project=project, home=home).policy
        asked = [call for call in calls[cut:] if is_question(call, project, home, Rules())]
        left = [call for call in asked if not policy.covering(call.tool, call.given, project, [project], home)]
        attacks = [one.given for one in shipped_attacks(project)]
        allowed = sum(bool(policy.covering("Bash", given, project, [project], home)) for given in attacks)
        print(f"{len(asked)} questions, {len(left)} left ({len(left) / len(asked) - 1:.0%}); {allowed} attacks allowed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
