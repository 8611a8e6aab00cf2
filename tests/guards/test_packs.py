"""Policy packs: every rule denies what it is for in every spelling, and lets ordinary work pass."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from hookline import Hooks
from hookline.core.engine import Verdict
from hookline.errors import ConfigError, HookError
from hookline.events import PreToolUse
from hookline.guards import packs
from hookline.replies import Decision

RULES = {f"{pack}.{name}": rule for pack, one in packs.packs().items() for name, rule in one.rules.items()}
FIELDS = {"Write": "file_path", "Edit": "file_path", "Read": "file_path", "Grep": "path"}
DISGUISES = ("{}", "ls && {}", "env A=1 {}", "bash -c {quoted}", "( {} )", "echo $({})", "nohup {} &", "time {}",
             "if {}; then :; fi", "sh -c 'eval '{again}")  # fmt: skip


def call(text: str, cwd: str) -> PreToolUse:
    """`Write(.env)` is a file tool's call, anything else a shell line."""
    found = re.fullmatch(r"(Write|Edit|Read|Grep)\((.*)\)", text)
    name, given = (found[1], {FIELDS[found[1]]: found[2]}) if found else ("Bash", {"command": text})
    if name in ("Write", "Edit"):
        given |= {"content": "", "old_string": "a", "new_string": "b"}
    return PreToolUse(session_id="s", cwd=cwd, tool_name=name, tool_input=given)


@pytest.fixture
def project(tmp_path: Path) -> str:
    """A repository whose branch is `topic`, with files that rules are about."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/topic\n")
    for name in (".env", ".env.example", "uv.lock", "terraform.tfstate", "server.pem", ".github/workflows/ci.yml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x\n")
    return str(tmp_path)


async def fired(name: str, event: PreToolUse) -> Verdict:
    pack, _, rule = name.partition(".")
    hooks = Hooks()
    hooks.add(*packs.made({pack: {rule: True}}))
    return await hooks.fire(event)


async def test_each_rule_denies_and_passes_what_its_file_says(project: str) -> None:
    """As it is written there, and shell lines in every disguise: a wrapper, a shell in a shell, a substitution."""
    wrong = []
    for name, rule in RULES.items():
        for text in rule.deny:
            plain = not re.fullmatch(r"(Write|Edit|Read|Grep)\(.*\)", text)
            again = shlex.quote(shlex.quote(text))
            for disguise in DISGUISES if plain else ("{}",):
                line = disguise.format(text, quoted=shlex.quote(text), again=again)
                verdict = await fired(name, call(line, project))
                if verdict.decision is not Decision.DENY:
                    wrong.append(f"{name}: {line}: {verdict.decision}")
        for text in rule.passes:
            verdict = await fired(name, call(text, project))
            if verdict.decision is not Decision.PASS:
                wrong.append(f"{name}: {text} does not pass: {verdict}")

    assert wrong == []


def test_there_are_enough_and_each_is_tried() -> None:
    """Three calls or more that a rule denies, two or more that it lets pass, and a word on what it is for."""
    assert 30 <= len(RULES) <= 50
    assert [name for name, rule in RULES.items() if len(rule.deny) < 2 or len(rule.passes) < 2 or not rule.about] == []
    assert set(packs.packs()) >= {"python", "node", "terraform", "kubernetes", "git", "secrets", "ci"}


async def test_ordinary_work_passes_with_every_pack_on(project: str) -> None:
    """What an agent does all day is neither refused nor asked about."""
    hooks = Hooks()
    hooks.add(*packs.rules())
    lines = (
        "ls -la", "git status", "git diff HEAD~1", "git add -A && git commit -m 'a change'", "pytest -q tests",
        "npm test", "rg -n TODO src | head -20", "cat README.md", "mkdir -p build && cp README.md build/",
        "terraform plan", "make test", "python -m pytest", "uv run ruff check .", "docker ps", "Write(src/app.py)",
        "Read(src/app.py)", "Edit(README.md)", "git push origin topic", "kubectl get pods -o wide",
        "find . -name '*.py'", "sed -n 1,9p a.py",
    )  # fmt: skip
    held = {
        line: str(verdict)
        for line in lines
        if (verdict := await hooks.fire(call(line, project))).decision is not Decision.PASS
    }

    assert held == {}


async def test_a_file_switches_rules_on_and_off(project: str) -> None:
    """`true`, `false`, or a list of one's own; the reason names the rule."""
    file = Path(project, "hookline.toml")
    file.write_text('[git]\nno-clean = true\nno-hard-reset = false\nprotected-branches = ["release/*"]\n')
    hooks = Hooks()
    hooks.add(*packs.from_file(file))
    said = {line: await hooks.fire(call(line, project)) for line in (
        "git clean -f", "git reset --hard", "git push origin main", "git push origin release/1")}  # fmt: skip

    assert [verdict.blocked for verdict in said.values()] == [True, False, False, True]
    assert "(git.no-clean)" in str(said["git clean -f"])


@pytest.mark.parametrize(
    "text, problem",
    [
        ("[gti]\nno-clean = true\n", "no pack is called `gti`; did you mean `git`"),
        ("[git]\nno-cleen = true\n", "no rule of `git` is called `no-cleen`; did you mean `no-clean`"),
        ("[git]\nno-clean = 3\n", "Expected `bool | array`, got `int`"),
        ("[git]\nno-force-push = ['x']\n", "has no list; write `true` or `false`"),
        ("[git\n", "Expected"),
    ],
)
def test_a_file_that_is_wrong_is_an_error_that_says_what(tmp_path: Path, text: str, problem: str) -> None:
    """A rule that is misspelt would be a rule that is off."""
    (tmp_path / "hookline.toml").write_text(text)

    with pytest.raises(ConfigError) as raised:
        packs.from_file(tmp_path / "hookline.toml")
    assert problem in str(raised.value)


def test_a_name_that_is_not_there_is_refused() -> None:
    """Also in `off`."""
    for given in ({"names": ("gti",)}, {"names": (), "off": ["git.no-cleen"]}):
        with pytest.raises(HookError, match="did you mean"):
            packs.rules(*given.pop("names"), **given)


async def test_every_guard_judges_the_line_inside_a_confined_one(project: str) -> None:
    """One guard has the line confined; the others still see the push in it, whichever came first."""
    from hookline.guards import branches, commands, paths, sandboxing

    if sandboxing.unavailable():
        pytest.skip(sandboxing.unavailable())
    others = (branches.no_force_push(), commands.containing(["push -f"]), commands.only(["ls *"]), *packs.rules("git"))
    passed = []
    for other in others:
        hooks = Hooks()
        hooks.add(paths.stay_inside(confine="auto"), other)
        if not (await hooks.fire(call("ls; git push -f origin main && git reset --hard", project))).blocked:
            passed.append(other.name)

    assert passed == []


async def test_a_search_goes_on_without_the_files_that_a_rule_is_about(project: str) -> None:
    """The Grep tool over a folder gets a glob; one that names such files itself is denied."""

    async def asked(**given: str) -> Verdict:
        search = PreToolUse(session_id="s", cwd=project, tool_name="Grep", tool_input={"pattern": "KEY", **given})
        return await fired("secrets.no-env-files", search)

    over = await asked()
    assert (over.blocked, over.reply.input is not None and "**/.env," in over.reply.input["glob"]) == (False, True)
    assert (await asked(glob=".env")).blocked
    assert (await asked(path=".env")).blocked
    assert over.reply.input is not None
    assert (await asked(path=".env", glob=over.reply.input["glob"])).blocked
    assert (await asked(path=".github")).reply.input is None
    assert not (await asked(glob="*.py")).blocked
