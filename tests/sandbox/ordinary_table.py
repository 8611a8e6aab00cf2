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
strace -o t.log true || true | gdb --version || true | valgrind --version || true | perl -e 'print 1' | perl -pi -e 's/a/b/' README.md | awk '{print $1}' README.md | bash -n scripts/build.sh | shellcheck scripts/build.sh || true | env | sort | env FOO=1 ./scripts/build.sh | time make | timeout 60 make | nice make | nohup make > nohup.out | xargs -a .gitignore echo
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

MORE = r"""
git worktree add -q wt feature && ls wt
git worktree add -q wt feature && git worktree remove wt
git rebase -q --root --exec true
git -c sequence.editor=: rebase -q -i --root
git rebase -q HEAD~1 && git log --oneline
git bisect start HEAD HEAD~1 -- && git bisect run true; git bisect reset
git -c protocol.file.allow=always submodule add -q ./ sub && git submodule status
git clone -q . copy && cd copy && git log -1
git clone -q --depth 1 file://$PWD copy
git init -q --bare up.git && git remote add up up.git && git push -q up main
git init -q --bare up.git && git remote add up up.git && git push -q up main && git fetch up && git pull -q up main
git stash push -q -m x -- README.md || true; git stash list
git switch -q feature && git merge -q main && git switch -q main
git checkout -q -b t && echo a >> README.md && git commit -qam a && git switch -q main && echo b >> README.md && git commit -qam b && ! git merge t && git merge --abort
git cherry-pick feature || git cherry-pick --abort || true
git revert --no-edit HEAD
git commit -q --amend --no-edit --date=now
git tag -a v2 -m two && git describe
git repack -adq && git prune && git count-objects
git maintenance run --task=gc --quiet
git config --local core.fsmonitor false && git status -s
git init -q sub && printf '#!/bin/sh\nexit 0\n' > sub/.git/hooks/pre-commit && chmod +x sub/.git/hooks/pre-commit && git -C sub commit -qm x --allow-empty
git sparse-checkout set src && ls && git sparse-checkout disable
git diff --no-index README.md config.yaml || true
git filter-branch -f --msg-filter cat HEAD~1..HEAD
git ls-remote . HEAD
git bundle create b.bundle --all && git clone -q b.bundle fromb
git show-ref && git for-each-ref && git symbolic-ref HEAD
git update-index --chmod=+x scripts/build.sh
git blame -L1,1 README.md | cat
git lfs version || true
git daemon --help > /dev/null || true
git shortlog -sn < /dev/null
git interpret-trailers --trailer 'a: b' < README.md
git credential fill <<< $'protocol=https\nhost=none.invalid\nusername=x\npassword=y\n'
python3 -m venv --without-pip .v && .v/bin/python -c 'import sys; print(sys.prefix)'
python3 -c 'import venv; venv.create(".v2", with_pip=False, symlinks=False)'
python3 -m venv .v3 && .v3/bin/pip --version
python3 -m pip install --no-index --target t --no-deps . || true
python3 -c 'import multiprocessing as m; p = m.Pool(2); print(p.map(abs, [-1])); p.close()'
python3 -c 'import multiprocessing as m; m.set_start_method("spawn"); q = m.Queue(); q.put(1); print(q.get())'
python3 -c 'import multiprocessing as m; m.set_start_method("forkserver"); e = m.Event(); e.set(); print(e.is_set())'
python3 -c 'from multiprocessing import shared_memory as s; x = s.SharedMemory(create=True, size=8); x.buf[0] = 1; x.close(); x.unlink()'
python3 -c 'from multiprocessing.managers import SyncManager as S; m = S(); m.start(); d = m.dict(); d[1] = 2; print(d)'
python3 -c 'import socket, threading; s = socket.socket(1); s.bind("x.sock"); s.listen(); c = socket.socket(1); c.connect("x.sock"); print(c.send(b"x"))'
python3 -c 'import socket; a, b = socket.socketpair(1, 2); a.send(b"x"); print(b.recv(1))'
python3 -c 'import socket; a, b = socket.socketpair(1, 2); a.sendmsg([b"x"]); b.settimeout(1); print(b.recvmsg(1)[0], a.type)'
python3 -c 'import socketserver as s, socket; u = s.UnixStreamServer("u.sock", s.StreamRequestHandler); assert u.server_address == "u.sock"; socket.socket(1).connect("u.sock")'
python3 -c 'import socket; s = socket.socket(1); s.bind("\0own-name"); s.listen(); socket.socket(1).connect("\0own-name"); t = socket.socket(1); t.bind(""); t.listen(); socket.socket(1).connect(t.getsockname())'
python3 -c 'import socket, os; s = socket.socket(1); s.bind(os.getcwd() + "/w.sock"); s.listen(); os.symlink("w.sock", "l.sock"); c = socket.socket(1); c.connect("l.sock"); assert c.getpeername() == os.getcwd() + "/w.sock"; c = socket.socket(1); c.setblocking(False); c.connect("/proc/self/cwd/w.sock")'
python3 -c 'import socket; s = socket.socket(2, 2); print(s.sendto(b"x", ("127.0.0.1", 9)))'
python3 -c 'import socket; s = socket.socket(2, 2); print(s.sendmsg([b"x"], [], 0, ("127.0.0.1", 9)))'
python3 -c 'import os; f = os.memfd_create("x"); os.write(f, b"1"); os.fchmod(f, 0o700); print(open(f"/proc/self/fd/{f}", "r+").read())'
python3 -c 'import os; print(os.nice(1)); os.sched_setaffinity(0, {0}); os.setpriority(os.PRIO_PROCESS, os.getpid(), 5)'
python3 -c 'import resource, os; resource.prlimit(os.getpid(), resource.RLIMIT_NOFILE, (100, 200))'
python3 -c 'import os, signal; p = os.fork() or signal.pause(); os.kill(p, 9); print(os.waitpid(p, 0))'
python3 -c 'import pty, os; pid, fd = pty.fork(); pid or os._exit(0); print(os.ttyname(fd))'
python3 -c 'import pty; pty.spawn(["ls"])'
python3 -c 'import os; m, s = os.openpty(); os.write(s, b"x"); print(open(os.ttyname(s), "w"))'
python3 -c 'import mmap; m = mmap.mmap(-1, 4096); m[0] = 1'
python3 -c 'import shutil, os; shutil.copy2("README.md", "r2"); shutil.copystat("README.md", "config.yaml"); os.utime("r2", ns=(1, 2)); os.chmod("r2", 0o600)'
python3 -c 'import os; os.setxattr("README.md", "user.a", b"b"); print(os.listxattr("README.md")); os.removexattr("README.md", "user.a")'
python3 -c 'import os; os.chown("README.md", os.getuid(), os.getgid()); os.chown("README.md", -1, -1, follow_symlinks=False)'
python3 -c 'import os; os.symlink("README.md", "l"); os.utime("l", (1, 1), follow_symlinks=False); os.lchown("l", -1, -1)'
python3 -c 'import os; d = os.open(".", 0); os.chmod("README.md", 0o644, dir_fd=d); os.utime("README.md", dir_fd=d); os.fchmod(d, 0o755)'
python3 -c 'import os; assert os.chmod("README.md", 0o4755) is None; print(oct(os.stat("README.md").st_mode))'
python3 -c 'import tempfile, os; d = tempfile.mkdtemp(); open(d + "/x", "w"); os.chmod(d, 0o700)'
python3 -c 'import asyncio; asyncio.run(asyncio.create_subprocess_exec("ls"))'
python3 -c 'import subprocess; print(subprocess.run("echo $0", shell=True, capture_output=True, timeout=60))'
python3 -c 'import threading, subprocess; ts = [threading.Thread(target=subprocess.run, args=(["true"],)) for _ in range(20)]; [t.start() for t in ts]; [t.join() for t in ts]'
python3 -c 'import logging.handlers as h; h.SysLogHandler(address="/dev/log")' || true
python3 -c 'import sysconfig, ssl; ssl.create_default_context()'
python3 -c 'import ctypes; print(ctypes.CDLL(None).getpid() > 0)'
python3 -c 'import os; os.execvp("true", ["true"])'
python3 -m http.server 8123 --bind 127.0.0.1 > /dev/null 2>&1 & sleep 0.7; curl -sf http://127.0.0.1:8123/README.md; kill %1
python3 -m unittest -q 2>&1 | tail -1
python3 -m pytest -q -p no:cacheprovider tests 2>&1 | tail -1
python3 -m pytest -q tests -n 2 2>&1 | tail -1
python3 -m pydoc json > /dev/null
python3 -m trace --count -C cov src/calc.py
python3 -m tarfile -c a.tar README.md && python3 -m tarfile -e a.tar out
python3 -m zipapp src -m calc:add -o app.pyz
python3 -m ensurepip --version
python3 -q -c 'import readline'
PYTHONPYCACHEPREFIX=.cache python3 -c 'import src.calc'
node -e 'const {fork} = require("child_process"); if (process.send) process.send(1); else fork(__filename)' || true
node -e 'require("fs").copyFileSync("README.md", "r3"); require("fs").chmodSync("r3", 0o600); require("fs").utimesSync("r3", 1, 1)'
node -e 'const n = require("net"); const s = n.createServer(c => { c.end(); s.close() }).listen("n.sock", () => n.connect("n.sock"))'
node -e 'require("cluster").isPrimary && console.log(1)'
node -e 'const d = require("dgram").createSocket("udp4"); d.send("x", 9, "127.0.0.1", () => d.close())'
node -e 'require("worker_threads"); require("zlib").gzip("x", () => {})'
node -e 'require("fs").watch(".", function () {}).close()'
node -e 'require("fs").mkdtempSync(require("os").tmpdir() + "/x-")'
node -e 'require("os").setPriority(5)'
npm init -y > /dev/null && npm install --offline --no-audit --no-fund && npm ls
npm pack --silent && tar tzf *.tgz > /dev/null
npm run build --silent && ls dist
npm test -- --x
npm exec --offline -c 'node -v'
npx --no-install --offline node -v || true
corepack --version || true
pnpm --version || true
yarn --version || true
uv --version || true
poetry --version || true
tox --version || true
cargo init --offline -q --name other other && cd other && cargo build --offline -q && cargo run --offline -q
cargo init --offline -q --lib lib1 && cd lib1 && cargo test --offline -q
cargo clippy --offline -q || true
go env GOPATH || true
mvn -v
gradle --version || true
docker build -q . || true
docker compose version || true
docker ps || true
make -j4 && make -q
make -C . -s
gcc -O2 -flto -o h hello.c && ./h
gcc -fprofile-arcs -ftest-coverage -o h hello.c && ./h && ls *.gcda
gcc -fsanitize=address -o h hello.c && ./h
gcc -pthread -o h hello.c && ldd h > /dev/null
gcc -c -o x.o hello.c && ar rcs l.a x.o && ranlib l.a && nm l.a > /dev/null
gdb -batch -ex run -ex quit /bin/true
strace -f -o s.log ls
valgrind --version || true
ssh-keygen -q -t ed25519 -N '' -f ./key && ssh-keygen -lf key.pub
ssh -G example.invalid > /dev/null
eval $(ssh-agent -s) > /dev/null && ssh-add -l; kill $SSH_AGENT_PID
mkdir -m 700 g && GNUPGHOME=$PWD/g gpg --batch --list-keys
mkdir -m 700 g && GNUPGHOME=$PWD/g gpg --batch --passphrase '' --quick-gen-key a@b.c default default never && GNUPGHOME=$PWD/g gpg --batch -b README.md
tmux new-session -d 'sleep 100' && tmux kill-server
tmux new-session -d -s work 'sleep 100' && tmux send-keys -t work q && tmux capture-pane -p -t work && tmux kill-session -t work
TMUX_TMPDIR=$PWD tmux new-session -d 'sleep 1'; true
mktemp -d && mktemp -u && mktemp -t x.XXX
sort -T . README.md && sort --parallel=2 README.md
sort -S1b README.md
sqlite3 t.db 'create table t(a); insert into t values(1); select * from t; pragma journal_mode=wal'
sqlite3 :memory: 'select 1'
ffmpeg -version || true
rsync --version || true
tar czf a.tgz src && mkdir o && tar xzpf a.tgz -C o && diff -r src o/src
tar cf - src | (cd docs && tar xf -)
cp -a src src3 && cp -rp docs d2 && cp --preserve=all README.md r4
install -m 755 -D scripts/build.sh bin/b && touch -r README.md bin/b
chmod -R go-w . && chmod 1777 docs && chown -R $(id -u):$(id -g) src
touch -t 200101010000 README.md && touch -h README.md
setfattr -n user.k -v v README.md || true
chattr -V README.md || true
lsattr README.md || true
find . -type f -name '*.py' -exec chmod 644 {} + -exec touch {} +
find . -newer README.md -print0 | xargs -0 ls -d
ls -R | tee >(wc -l > count) > /dev/null; until [ -s count ]; do sleep 0.1; done; cat count
script -qc 'echo hi' typescript
nohup sleep 0.1 > /dev/null 2>&1
setsid -w true && nice -n 5 true && ionice -c 3 true && taskset 1 true && chrt -b 0 true
prlimit --nofile=256 true && ulimit -n 256 && ulimit -c 0
renice 3 $$ && kill -0 $$ && kill -CONT $$
timeout 2 sleep 0.1 && timeout -s INT 0.2 sleep 5; true
flock .lock true && flock -n README.md true
mkfifo p && (cat p > got &) && echo x > p && sleep 0.2 && cat got
ipcmk -M 100 > /dev/null && ipcs -m > /dev/null
echo x > /dev/shm/mine && rm /dev/shm/mine
logger hi || true
exec 3<> /dev/null && echo x >&3
echo a > /dev/stdout && echo b > /dev/stderr && cat /dev/stdin < README.md > /dev/fd/1
stty -a < /dev/tty || true
coproc cat && echo x >&${COPROC[1]} && read -r l <&${COPROC[0]} && kill $COPROC_PID
diff <(sort README.md) <(sort config.yaml) > d.txt; wc -l d.txt
vim -es -c 'wq' README.md
sed -i -e 's/x/y/' README.md config.yaml && perl -i.b -pe 's/y/z/' config.yaml
awk '{print > "parts.txt"}' README.md && awk 'BEGIN{system("true")}'
curl -sf file:///etc/hostname -o host.txt; true
openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=x -keyout k.pem -out c.pem
base64 README.md | base64 -d > r5 && cmp README.md r5
split -b 10 README.md part- && cat part-* > whole
watch -n 0.1 -g -t date > /dev/null & sleep 0.3; kill %1; true
HISTFILE=.hist bash -ic 'history -s x; history -w' 2> /dev/null
bash -lc 'echo login' && sh -lc true
su -c true || true
crontab -l || true
gzip -k README.md && zcat README.md.gz && xz -k README.md && bzip2 -k README.md || true
unshare -r true || true
getfacl README.md || true
systemctl --user status || true
dbus-send --session --dest=a / b.c || true
"""
"""One line each: descriptors, sockets, shared memory, terminals, processes, metadata, builds, keys."""


def lines() -> list[str]:
    """Every line; in the tables above ` | ` at a word that begins a new command separates lines, so pipes are kept."""
    found: list[str] = []
    for table in (GIT, PYTHON, NODE, BUILD, FILES, SHELL):
        for row in table.strip().splitlines():
            found += [line.replace("\\n", "\n").replace("\\$", "$") for line in _split(row)]
    return [*found, *MORE.strip("\n").split("\n")]


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
