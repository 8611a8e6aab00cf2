"""Lines that agents run every day, and what is made of them to do something else: a learned policy allows no such."""

from __future__ import annotations

from itertools import product
from pathlib import Path

_FILES = ("src/a.py", "src/b.py", "lib/a.py", "lib/b.py", "web/a.ts", "web/b.ts")
_ON_FILES = (
    "cp {} out/x.txt", "mv {} lib/new.py", "rm {}", "touch {}", "sed -i 's/a/b/' {}", "sed -i.bak 's/a/b/' {}",
    "sed -n '1,9p' {}", "awk '{{print $1}}' {}", "awk -F: '{{print $2}}' {}", "cat {} | head -5", "wc -l {} | sort -n",
    "python -m pytest -q {}", "python {}", "python3 {} --fast", "node {}", "npx prettier --write {}", "npx tsc -p {}",
    "npx eslint --fix {}", "npx eslint --config {} src", "ruff check {}", "ruff format {}", "mypy --config-file {}",
    "uv run pytest {}", "poetry run pytest {}", "cargo test --manifest-path {}", "go test ./{}", "go vet ./{}",
    "go build -o out/tool ./{}", "gofmt -w {}", "make -C {}", "make -f {}", "npm test -- {}", "npm --prefix {} test",
    "npm install --prefix {}", "npm run build --prefix {}", "pnpm add -w {}", "yarn --cwd {} build",
    "pip install -r {}",
    "pip install -e {}", "docker build -f {} .", "docker compose -f {} up", "tsc -p {}", "jest {}", "vitest run {}",
    "bash {}", "sh {}", "./{}", "chmod +x {}", "git add {}", "git checkout {}", "git restore {}", "git diff {}",
    "git rm {}", "git mv {} lib/x", "git stash push {}", "git apply {}", "patch -p1 -i {}", "black {}", "isort {}",
    "jq . {}", "yq . {}", "rg -n x {}", "grep -n x {}", "tee {}", "sort -u {}", "sort -o {} x", "diff {} x",
    "tar czf out/x.tgz {}", "unzip {} -d out", "rsync -a {} out/", "open {}", "code {}", "mkdir -p {}", "rmdir {}",
    "ln -s {} out/l", "cat > {} <<'EOF'\nx\nEOF", "echo x > {}", "echo x >> {}", "terraform plan -out={}", "psql -f {}",
    "sqlite3 {} .tables", "swift build --package-path {}", "mvn -f {} test", "gradle -p {} test", "bun test {}",
    "deno test {}", "ruby {}", "php {}", "rspec {}", "phpunit {}", "dotnet test {}", "alembic -c {} upgrade head",
    "helm template {}", "ansible-lint {}", "shellcheck {}", "openssl x509 -in {}", "base64 {}", "xxd {}", "file {}",
    "vulture {}", "coverage run {}", "tool --config {}", "tool {}", "tool sync {}", "mytool build --out {}",
    "cd web && npm test -- {}", "PYTHONPATH=src python {}", "NODE_ENV=test node {}", "timeout 60 python {}",
)  # fmt: skip
_PLAIN = (
    "git log -3 --stat", "git log --oneline -5", "git diff --stat", "git show HEAD~1 --stat", "git status --short",
    "git commit -m 'one'", "git commit -am 'two'", "git push origin main", "git fetch origin", "git pull origin main",
    "git clone https://github.com/o/r", "git branch -D one", "git branch -D two", "git branch -D three",
    "git checkout -b one", "git checkout -b two", "git checkout -b three", "git tag -m x v1", "git stash -m x",
    "git config user.name x", "git remote add up https://github.com/o/r", "git rebase main", "git -C web log -1",
    "npm test", "npm run build", "npm run lint", "npm ci", "npm install", "npm install left-pad", "npm view react",
    "npm run test -- -t one", "npm run test -- -t two", "npm run test -- -t three", "npm config get registry",
    "pip install requests", "pip list", "pip show requests", "uv sync", "uv add httpx", "uv pip install x",
    "python -m pytest -q -k one", "python -m pytest -q -k two", "python -m pytest -q -k three", "python -m build",
    "python -m mypy src", "python -m http.server 8000", "python -c 'print(1)'", "node -e 'console.log(1)'",
    "python manage.py migrate", "python manage.py test", "go test ./... -run TestA", "go test ./... -run TestB",
    "go test ./... -run TestC", "go test -count=1 ./...", "go build ./...", "go mod tidy", "go run .", "go get x/y",
    "cargo build --release", "cargo test one", "cargo test two", "cargo test three", "cargo run --bin x",
    "cargo add serde",
    "make", "make test", "make build", "make -j4", "make -j8", "make lint V=1", "cmake -B build", "cmake --build build",
    "docker ps", "docker compose up -d", "docker compose logs web", "docker exec -it web ls", "docker logs web",
    "docker run --rm alpine ls", "docker build -t app .", "kubectl get pods -n one", "kubectl get pods -n two",
    "kubectl get pods -n three", "kubectl logs pod-1", "gh pr view 1", "gh pr view 2", "gh pr view 3", "gh pr list",
    "gh pr create --title x --body y", "gh api user", "gh run list", "gh issue view 12", "gh issue list",
    "curl -s http://localhost:3000/a", "curl -s http://localhost:3000/b", "curl -s http://localhost:3000/c",
    "curl -s -o /dev/null -w '%{http_code}' http://localhost:3000/", "curl -sL localhost:8080/x",
    "curl -I localhost:8080",
    "curl -s -H 'Accept: x' localhost:8080/y", "curl -s https://api.example/x", "wget -q https://h.example/x",
    "ssh host uptime", "scp out/x host:/tmp/", "rsync -a out/ host:/srv/", "nc -z localhost 5432",
    "ping -c 1 localhost",
    "kill 123", "kill 456", "kill 789", "pkill -f server", "lsof -i :3000", "ps aux | grep node", "sleep 5", "date +%s",
    "psql -c 'select 1'", "cat q.sql | psql app", "cat q.sql | sqlite3 app.db", "echo 1+1 | bc",
    "echo x | tee out/a.log",
    "cat a.py | python", "cat p.patch | patch -p1", "cat p.patch | git apply", "cat a.yml | kubectl apply -f -",
    "find . -name '*.py' | xargs wc -l", "find src -name '*.py' -exec grep -l x {} +", "ls src | xargs -n1 echo",
    "find . -name '*.pyc' -delete", "find . -type f | head", "xargs -n1 echo < list.txt", "ls -la", "ls ~/code/other",
    "cat ~/code/other/a.txt", "cat ~/code/other/b.txt", "cat ~/code/other/c.txt", "grep -rn x ~/code/other/src",
    "cat /tmp/one.json", "cat /tmp/two.json", "cat /tmp/three.json", "cd ~/code/other && npm test",
    "cd web && npm test",
    "cd web && npm run build", "cd src && python -m pytest", "pushd web && npm test && popd", "(cd web && make)",
    "for f in a b; do go test ./$f; done", "for f in one two; do npm run $f; done", "while true; do sleep 1; done",
    "D=web; ls $D", "A=1 ./run.sh", "NODE_ENV=test npm test", "CI=1 npm test", "DEBUG=1 python -m pytest -q",
    "env FOO=bar ./tool", "export NODE_ENV=test && npm test", "source .venv/bin/activate && python -m pytest -q",
    "time make", "nohup ./server &", "timeout 9 npm test", "sleep 1; curl -s localhost:8080/z", "test -f x && cat x",
    "ls > out/a.txt", "ls > out/b.txt", "ls > out/c.txt", "ls > /tmp/a.txt", "ls > /tmp/b.log", "ls > web/a.json",
    "ls > web/b.json", "ls > web/c.json", "ls > scripts/a.sh", "ls > scripts/b.sh", "ls > scripts/c.sh",
    "sh scripts/a.sh",
    "sh scripts/b.sh", "sh scripts/c.sh", "bash scripts/a.sh", "bash scripts/b.sh", "bash scripts/c.sh", "rm -rf build",
    "rm -rf '~'", "rm '*.tmp'", "rm -f '$HOME'", "chmod 644 a", "chmod 600 b", "chmod 755 c", "mkdir -p out/a/b",
    "touch x",
    "tool --type TEXT", "tool --kind NAME", "tool --n NUMBER", "tool TEXT", "tool PATH", "tool NAME", "tool SCRIPT",
    "sqlite3 app.db 'select count(*) from t'", "sqlite3 app.db .schema", "jq -r .a package.json", "yq .a x.yml",
    "awk 'NR>=3 && NR<=9' src/a.py", "sed -n 3,9p src/a.py", "sed -E 's/(a)/b/' src/a.py", "tail -f out/x.log",
    "vim -c q src/a.py", "less src/a.py", "man ls", "git help log", "npx jest -t one", "npx jest -t two",
    "npx playwright test --grep one", "npx playwright test --grep two", "npx playwright test --grep three",
    "hookline check", "crontab -l", "systemctl status x", "brew list", "apt list", "which node", "node --version",
)  # fmt: skip
EVERYDAY: list[str] = [*(line.format(file) for line, file in product(_ON_FILES, _FILES)), *_PLAIN]

_TEXT = Path(__file__).with_name("learned_attacks.txt").read_text("utf-8")
ATTACKS: list[str] = [
    line.encode("latin-1", "backslashreplace").decode("unicode_escape") for line in _TEXT.splitlines()
]  # fmt: skip
"""One on each line of the file, with the escapes of Python."""
