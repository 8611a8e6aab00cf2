"""What developers and their agents type all day; none of it may be asked about, and confined it must end as it does bare."""

from __future__ import annotations

SETUP = r"""
git init -q . && printf 'node_modules/\n__pycache__/\n*.o\n' > .gitignore
mkdir -p src tests docs scripts app/static
printf '{"name":"app","version":"1.0.0","scripts":{"test":"node test.js","build":"mkdir -p dist && cp app.js dist/","lint":"node --check app.js"}}\n' > package.json
printf 'module.exports = 1\n' > app.js; printf 'require("./app.js"); console.log("ok")\n' > test.js
printf 'CC = gcc\nall: hello\nhello: hello.o\n\t$(CC) -o $@ $<\n%%.o: %%.c\n\t$(CC) -c $<\nclean:\n\trm -f hello *.o\ntest: all\n\t./hello\n' > Makefile
printf '#include <stdio.h>\nint main(void) { puts("hi"); return 0; }\n' > hello.c
printf 'def add(a, b):\n    return a + b\n' > src/calc.py; printf '' > src/__init__.py
printf 'from src.calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n' > tests/test_calc.py
printf '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n[[bin]]\nname = "app"\npath = "src/main.rs"\n' > Cargo.toml
printf 'fn main() { println!("hi"); }\n#[test]\nfn works() { assert_eq!(1 + 1, 2); }\n' > src/main.rs
printf 'FROM scratch\nCOPY app.js /\n' > Dockerfile; printf '# App\n' > README.md; printf 'a: 1\n' > config.yaml; printf '{"a": [1, 2]}\n' > data.json
printf '#!/bin/sh\necho built > build.log\n' > scripts/build.sh; chmod +x scripts/build.sh
git add -A && git commit -qm first && echo more >> README.md && git commit -qam second && git branch feature
"""

GIT = """
git status | git status -sb | git diff | git diff --stat HEAD~1 | git log --oneline -5 | git log --graph --all --oneline | git show HEAD --stat
git add -A | git add README.md src/ | git commit --allow-empty -m "fix: handle empty input" | git commit -q --allow-empty -m 'wip' && git log -1
git commit --allow-empty -m "$(cat <<'EOF'\\nAdd parser\\n\\nCo-authored-by: A <a@b.c>\\nEOF\\n)" | git checkout -b topic | git switch -c topic2 && git switch - | git branch -a
git stash list | echo x >> README.md && git stash && git stash pop | git merge feature --no-edit | git rebase feature | git rebase --onto HEAD~1 HEAD~1 | git reset --soft HEAD~1
git reset --hard HEAD | git restore README.md | git rm -q --cached app.js && git status -s | git mv README.md READ.md | git tag v1.0 && git tag -l | git cherry-pick --abort || true
git remote -v | git config user.name | git config user.email me@here | git blame README.md | git ls-files | git ls-files | xargs wc -l | git grep -n TODO || true
git rev-parse HEAD | git rev-parse --show-toplevel | git describe --always | git shortlog -sn HEAD | git worktree list | git fsck --no-progress | git gc -q | git reflog -3
git clean -n | git clean -fdx -e node_modules | git apply --check /dev/null || true | git diff HEAD~1 > changes.patch && git apply -R changes.patch | git archive HEAD | tar -t
git -C . log -1 | git --no-pager log -3 --format='%h %s' | git cat-file -p HEAD | git submodule status | git notes list || true | git bisect start && git bisect reset
GIT_AUTHOR_NAME=x git commit --allow-empty -qm y | git -c core.editor=true rebase -i HEAD~1 | GIT_SEQUENCE_EDITOR=: git rebase -i HEAD~1 | git format-patch -1 -o patches | git am --abort || true
"""

PYTHON = """
python3 --version | python3 -c 'print(1 + 1)' | python3 -c "import json; print(json.load(open('data.json'))['a'])" | python3 -m json.tool data.json | python3 src/calc.py
python3 -m py_compile src/calc.py | python3 -m compileall -q src | python3 -m unittest discover -s tests || true | python3 -m venv --without-pip .venv | python3 -m venv --without-pip .venv && . .venv/bin/activate && python --version
python3 -m venv --without-pip .venv && source .venv/bin/activate && which python | PYTHONPATH=. python3 -c 'import src.calc' | PYTHONPATH=. python3 -m doctest src/calc.py | PYTHONDONTWRITEBYTECODE=1 python3 tests/test_calc.py || true
python3 - <<'EOF'\\nfrom pathlib import Path\\nPath('made.txt').write_text('x')\\nprint(sum(range(10)))\\nEOF | cat > run.py <<'EOF'\\nprint('hi')\\nEOF\\npython3 run.py | echo 'print(3)' | python3 | python3 <<< 'print(4)'
python3 -c "import tempfile; f = tempfile.NamedTemporaryFile(); f.write(b'x'); print(f.name)" | python3 -c "import subprocess; print(subprocess.check_output(['ls']).decode())" | python3 -c "import multiprocessing as m; print(m.Lock())"
python3 -c "from concurrent.futures import ProcessPoolExecutor as P; print(list(P(2).map(abs, [-1, 2])))" | python3 -c "import asyncio; asyncio.run(asyncio.sleep(0))" | python3 -c "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); print(s.getsockname()[0])"
python3 -c "import sqlite3; c = sqlite3.connect('x.db'); c.execute('create table t(a)'); c.commit()" | python3 -m http.server --help > /dev/null | python3 -m timeit -n 1 -r 1 pass | python3 -c 'import os; os.rename("data.json", "d2.json")' | python3 -m zipfile -c a.zip README.md | python3 -m pip --version
python3 -m pip list --disable-pip-version-check | pip install --help > /dev/null | pip download nothing-like-this 2>/dev/null || true | python3 -c 'import ssl, ctypes, curses' | python3 -X importtime -c pass 2> import.log | python3 -m pytest --version || true | python3 -m cProfile -o p.out src/calc.py
"""

NODE = """
node --version | npm --version | npm test --silent | npm run build | npm run lint | npm ls --depth=0 || true | npm init -y > /dev/null | npm pkg get name | npm install --offline --no-audit --no-fund | npm ci --offline || true | npm config get registry
node -e 'console.log(1)' | node app.js | node -p 'process.version' | node -e 'require("fs").writeFileSync("x.txt", "1")' | npx --no-install tsc --version || true | npm cache verify > /dev/null | npm root | npm pack --silent | npm version patch --no-git-tag-version | npm explain x || true
NODE_ENV=production node app.js | node --test || true | node -e 'require("child_process").execSync("ls")' | node -e 'new (require("worker_threads").Worker)("1", {eval: true})' | node -e 'require("http").createServer().listen(0, function() { this.close() })' | npm exec --offline -c 'echo hi' | npm prefix
"""

BUILD = """
make | make -j2 | make clean | make test | make -n all | make -B hello && ./hello | gcc -O2 -Wall -o hello hello.c && ./hello | gcc -c hello.c && ar rcs libh.a hello.o | gcc -M hello.c | gcc -g hello.c -o h && strip h | cc --version | gcc -E hello.c > out.i
CFLAGS=-O1 make -B | make CC=gcc all && make clean | nm hello || true | ldd /bin/ls | objdump -h /bin/ls | head -5 | cargo --version || true | cargo build --offline -q || true | cargo test --offline -q || true | cargo check --offline -q || true | cargo fmt --check || true | cargo metadata --offline --format-version 1 --no-deps > /dev/null || true | rustc --version || true
rustc -o r src/main.rs 2>/dev/null || true | cargo clean || true | docker build . || true | docker build -t app:latest -f Dockerfile . || true | docker --version || true | docker compose config || true | cmake --version || true | ./scripts/build.sh | bash scripts/build.sh | sh -x scripts/build.sh | go version || true | cd src && ls && cd .. | (cd src && pwd) | pushd src > /dev/null && popd > /dev/null
strace -o t.log true || true | gdb --version || true | valgrind --version || true | perl -e 'print 1' | perl -pi -e 's/a/b/' README.md | awk '{print $1}' README.md | bash -n scripts/build.sh | shellcheck scripts/build.sh || true | env | sort | env FOO=1 ./scripts/build.sh | time make | timeout 20 make | nice make | nohup make > nohup.out | xargs -a .gitignore echo
"""

FILES = """
ls -la | ls src tests | tree -L 2 || true | cat README.md | head -20 README.md | tail -n +2 README.md | wc -l src/*.py | find . -name '*.py' | find . -name '*.py' -not -path './node_modules/*' | xargs grep -n def | find . -name '__pycache__' -type d -exec rm -rf {} + | find . -type f -newer README.md | grep -rn "def " src | grep -c x README.md || true
rg TODO || true | sed -n 1,5p README.md | sed -i 's/App/Application/' README.md | sed -i.bak s/a/b/ config.yaml && rm config.yaml.bak | sed -e 's/x/y/' README.md > out.md | cp README.md README.bak | cp -r src src2 | mv app.js index.js | rm -f nothing | rm -rf node_modules dist .next build | rm README.md | mkdir -p a/b/c && rmdir a/b/c
touch new.txt | ln -s README.md link.md && cat link.md | ln README.md hard.md && echo x >> hard.md | chmod +x scripts/build.sh | chmod 644 README.md | chmod -R u+w src | touch -d yesterday README.md | truncate -s 0 config.yaml | dd if=/dev/zero of=zeros bs=1k count=4 status=none | stat README.md | file README.md || true | du -sh . | df -h .
tar czf src.tgz src && tar tzf src.tgz | tar xzf src.tgz -C docs 2>/dev/null || true | zip -qr src.zip src || true | unzip -l src.zip || true | gzip -k README.md && gunzip -f README.md.gz | diff README.md config.yaml || true | sort README.md | uniq | tee sorted.txt | cut -d: -f1 config.yaml | tr a-z A-Z < README.md | column -t README.md | jq . data.json || true | md5sum README.md | sha256sum -- *.json
cat > notes.md <<'EOF'\\n# Notes\\nrm -rf / is bad, so is sudo\\nEOF | cat <<EOF > env.sh\\nexport A=$HOME\\nEOF | echo "export PATH=\\$PATH:/x" > p.sh | printf '%s\\n' a b c > list.txt | while read -r l; do echo "$l"; done < README.md | for f in src/*.py; do echo "$f"; done | for i in 1 2 3; do echo $i > f$i; done | if [ -f README.md ]; then echo yes; fi | [ -d src ] && echo yes | test -f nope || echo no
"""

SHELL = """
echo hi | echo "$HOME" | pwd | whoami | id | uname -a | date | date +%s | hostname | which python3 node | type ls | command -v git | printenv PATH | export FOO=bar && echo $FOO | X=1; echo $((X + 1)) | a=(1 2 3); echo ${a[1]} | echo $RANDOM > /dev/null | sleep 0.1 | true && false || true | ps aux | head -3 | uptime || true | free -m || true | nproc | ulimit -a
ls nothing 2>/dev/null || echo none | ls > /dev/null 2>&1 | ls 2>&1 | head -2 | echo err >&2 | echo x > /dev/null | cat < README.md | exec 3> fd.txt; echo x >&3 | diff <(ls src) <(ls tests) || true | echo a | tee >(cat > t.txt) > /dev/null; sleep 0.1 | sleep 5 & kill $! | (sleep 0.1; echo later) & wait | kill -0 $$ | trap 'echo bye' EXIT; true | yes | head -3 | seq 1 5 | paste -sd+ | bc || true
f() { echo "in $1"; }; f x | eval 'echo hi' | bash -c 'echo $0' | sh -c 'cd src && ls' | set -e; set -o pipefail; ls | cat | mktemp | mktemp -d | T=$(mktemp); echo x > "$T"; cat "$T"; rm "$T" | D=$(mktemp -d) && touch $D/a && rm -r $D | echo x > $TMPDIR/y 2>/dev/null || echo x > y | curl --version | head -1 | curl -s http://127.0.0.1:1/ || true | ssh -V | wget --version > /dev/null || true
DEST=out; mkdir -p $DEST && cp README.md "$DEST/" | OUT=$(pwd)/out.txt; echo x > "$OUT" | cd "$(git rev-parse --show-toplevel)" && ls | source scripts/build.sh | . ./scripts/build.sh | read -r line < README.md; echo "$line" | echo 'a b' | xargs -n1 echo | ls | xargs -I{} echo {} | openssl rand -hex 4 | base64 < README.md | base64 -d || true | tput cols || true | stty -a || true | history | alias ll='ls -l' | umask | getconf PAGESIZE | locale | tty || true
"""


def lines() -> list[str]:
    """Every line; in the tables above ` | ` at a word that begins a new command separates lines, so pipes are kept."""
    found: list[str] = []
    for table in (GIT, PYTHON, NODE, BUILD, FILES, SHELL):
        for row in table.strip().splitlines():
            found += [line.replace("\\n", "\n").replace("\\$", "$") for line in _split(row)]
    return found


def _split(row: str) -> list[str]:
    """A row's lines: cut at ` | ` unless what follows is a filter, which belongs to the pipe before it."""
    parts: list[str] = []
    for part in row.split(" | "):
        if parts and (part.split()[0] in FILTERS or parts[-1].count("'") % 2 or parts[-1].count('"') % 2):
            parts[-1] += f" | {part}"
        else:
            parts.append(part)
    return parts


FILTERS = frozenset({"xargs", "head", "tar", "sort", "uniq", "tee", "paste", "bc", "cat", "base64"})
