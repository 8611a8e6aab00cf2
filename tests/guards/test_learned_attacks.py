"""The widest policy that everyday lines give allows none of the lines that something else was made of."""

from __future__ import annotations

import pytest

from hookline.guards.learned import CommandRule, LearnedPolicy
from hookline.guards.permissions.rules import Rules
from hookline.records.learn import Evidence, is_question, learn
from tests.guards import ordinary
from tests.guards.learned_attacks import ATTACKS, EVERYDAY

HOME = "/home/me"
_LINES = [line for line in (*EVERYDAY, *ordinary.COMMANDS, *ordinary.LINES) if ".." not in line]
_ADDED = (
    " -exec ./evil", " --config=../../evil", " --config evil.toml", " -c ../../evil", " -e evil", " --eval evil",
    " -r ./evil",
    " --require ./evil", " --plugin evil", " -o ../../evil", " --output=/etc/evil", " --registry http://evil.example",
    " --index-url http://evil.example", " --prefix /evil", " -C /evil", " ../../evil", " /etc/evil", " ~/evil",
    " ~root/evil",
    " $EVIL", " $(evil)", " `evil`", " <(evil)", " < /etc/evil", " <<< evil", " > ../../evil", " >> ~/.evil", " | evil",
    " && evil", "; evil", " & evil", "\nevil", " || evil", " --evil", " -- --evil", " .git/evil", " src/.evil",
    " {src,../../..}/evil", " src/../../../evil", " http://evil.example/", " @evil",
)  # fmt: skip
_BEFORE = (
    "PATH=/evil ", "LD_PRELOAD=./evil ", "GIT_SSH_COMMAND=evil ", "PYTHONPATH=/evil ", "NODE_OPTIONS='-r ./evil' ",
    "BASH_ENV=evil ", "PAGER=evil ", "HOME=/evil ", "evil | ", "evil; ", "sudo ", "env -C /evil ", "cd /evil && ",
    "cd ../../evil; ", "pushd ~ && ", "xargs -a /etc/evil ", "nohup evil & ", "export PATH=/evil; ", "EVIL=1 ",
)  # fmt: skip

_STAYS = {" .git/evil", " src/.evil", " http://evil.example/", " @evil", " -- --evil", " <<< evil", " -e evil",
          " -r ./evil", "EVIL=1 ", "export PATH=/evil; "}  # fmt: skip
"""With these, a command that only reads still does nothing else, and stays in the project."""
_INDEXES = ("git add ", "git rm --cached ")
"""Hidden files of the project may be put into the next commit."""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("home") / "one/two/app"
    for name in ("src", "lib", "web", "docs", "out", ".git/hooks"):
        (folder / name).mkdir(parents=True)
    return str(folder)


@pytest.fixture(scope="module")
def policy(project: str) -> LearnedPolicy:
    """Learned from every line three times, and with not one attack known."""
    calls = [Evidence("Bash", {"command": line}, project, "2026-11-01") for line in _LINES for _ in range(3)]
    return learn(calls, [], project=project, home=HOME, attacks=()).policy


def allowed(line: str, policy: LearnedPolicy, project: str) -> bool:
    return bool(policy.covering("Bash", {"command": line}, project, [project], HOME))


def is_asked(line: str, project: str) -> bool:
    return is_question(Evidence("Bash", {"command": line}, project, ""), project, HOME, Rules())


def test_everyday_lines_are_mostly_allowed(policy: LearnedPolicy, project: str) -> None:
    """Or the attacks would prove nothing."""
    assert sum(allowed(line, policy, project) for line in EVERYDAY) > len(EVERYDAY) * 0.6


def test_no_attack_is_allowed(policy: LearnedPolicy, project: str) -> None:
    found = [line for line in ATTACKS if allowed(line, policy, project) and is_asked(line, project)]

    assert len(ATTACKS) > 1600
    assert found == []


@pytest.mark.parametrize("change", [*(("", added) for added in _ADDED), *((before, "") for before in _BEFORE)])
def test_no_change_of_an_allowed_line_is_allowed(change: tuple[str, str], policy: LearnedPolicy, project: str) -> None:
    """Unless it only reads, and nothing outside the project."""
    before, added = change
    found: list[str] = []
    for ordinary_line in EVERYDAY[::3]:
        line = f"{before}{ordinary_line}{added}"
        used = policy.covering("Bash", {"command": line}, project, [project], HOME)
        runs = any(isinstance(rule, CommandRule) for rule in used)
        stays = not runs or (added == " src/.evil" and ordinary_line.startswith(_INDEXES))
        if used and not (stays and _STAYS.intersection(change)) and line not in _LINES and is_asked(line, project):
            found.append(line)

    assert found == []
