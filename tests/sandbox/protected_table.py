"""Ways into files that run later: each line tries to leave something in `.git/hooks`, in git's settings or beside them.

For bash in a project that is a repository, with a file `f`. `H` is a hook that must not appear.
"""

from __future__ import annotations

HOOK = ".git/hooks/post-merge"

HOOKS = (
    "echo x > $H", "cp f $H", "ln f $H", "ln -s ../../f $H", "mv f $H", "install f $H", "dd if=f of=$H", "tee $H < f",
    "mkdir -p d/hooks; cp f d/hooks/post-merge; rm -rf .git; mv -T d .git",
    "mv .git/hooks h2; mkdir .git/hooks; cp f h2/post-merge; mv h2/post-merge .git/hooks",
    "ln -s .git/hooks hk; echo x > hk/post-merge", "cd .git/hooks && echo x > post-merge",
    "mv .git g2; cp -r g2 .git; echo x > g2/hooks/post-merge; rm -rf .git; mv g2 .git",
    "mv .git/hooks/pre-push.sample $H", "cp f .git/hooks/a.sample; mv .git/hooks/a.sample $H",
    "cp f .git/hooks/a.sample; ln .git/hooks/a.sample $H", "echo x > .GIT/hooks/post-merge; echo x > .git/HOOKS/post-merge",
    "mkdir d; mkdir d/hooks; cp f d/hooks/post-merge; ln -s d/hooks .git/hooks2; mv -T .git/hooks2 .git/hooks",
    "tar cf t.tar --transform 's,^f,.git/hooks/post-merge,' f; tar xf t.tar", "printf 'x' | sponge $H; sed -n w$H f",
    "git config core.hooksPath h; mkdir h; cp f h/post-merge", "git -c core.hooksPath=h config --local core.hooksPath h",
    "mkdir e; cp -r .git e/c; cp f e/c/hooks/post-merge; echo e/c > .git/commondir", "rsync -a f $H; busybox cp f $H",
    "git init -q --template=d .; git init -q --separate-git-dir=new .; echo x > new/hooks/post-merge",
)  # fmt: skip

CALLS = (
    """
import ctypes, os, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
hook = "{hook}"
def tmpfile():
    fd = os.open(".", os.O_TMPFILE | os.O_WRONLY); os.write(fd, b"x")
    os.link(f"/proc/self/fd/{{fd}}", hook, follow_symlinks=True)
def exchange_hooks(): os.makedirs("d/hooks"); open("d/hooks/post-merge", "w"); libc.renameat2(-100, b"d/hooks", -100, b".git/hooks", 2)
def exchange_git(): os.makedirs("d/hooks", exist_ok=True); libc.renameat2(-100, b"d", -100, b".git", 2)
def mknod(): os.mknod(hook)
def bind(): socket.socket(socket.AF_UNIX).bind(hook)
def by_root(): open("/proc/self/root" + os.getcwd() + "/" + hook, "w")
def by_cwd(): open("/proc/self/cwd/" + hook, "w")
def openat2(): libc.syscall(437, -100, hook.encode(), struct.pack("QQQ", 0x41, 0o755, 0), 24)
def by_folder(): d = os.open(".git", os.O_PATH); os.fchdir(d); open("hooks/post-merge", "w")
def by_descriptor(): d = os.open(".git/hooks", os.O_RDONLY); os.open("post-merge", os.O_CREAT | os.O_WRONLY, dir_fd=d)
def by_thread_folder(): open("/proc/thread-self/cwd/" + hook, "w")
def dangling(): os.symlink(hook, "l"); open("l", "w")
def two_links(): os.symlink("m", "l2"); os.symlink(os.getcwd() + "/" + hook, "m"); open("l2", "w")
def creat(): libc.creat(hook.encode(), 0o755)
def empty_settings(): os.truncate(".git/config", 0)
def by_open_file(): fd = os.open(".git/config", os.O_RDONLY); open(f"/proc/self/fd/{{fd}}", "r+").write("[core]")
def hard_link(): os.link(".git/config", "c2"); open("c2", "a").write("[core]\\n fsmonitor = x\\n")
def renamed_over(): open("n", "w").write("[core]\\n\\tfsmonitor = x\\n"); os.rename("n", ".git/config")
def hidden_in_comment(): open("n", "w").write("# \\\\\\n[core]\\n\\tfsmonitor = x\\n"); os.rename("n", ".git/config")
def still_open():
    f = open("n", "w"); f.write("[user]\\n\\tname = x\\n"); f.flush(); os.rename("n", ".git/config")
    f.write("[core]\\n\\tfsmonitor = x\\n"); f.flush()
top = os.open(".", os.O_RDONLY)
for name, call in [*globals().items()]:
    if callable(call) and getattr(call, "__module__", "") == "__main__":
        os.fchdir(top)
        try: call()
        except OSError: pass
""".replace("{hook}", HOOK)
    .replace("{{", "{")
    .replace("}}", "}")
)

NAMES = (
    "mkdir -p .claude && echo x > .claude/settings.json", "mkdir s; echo x > s/a; mv s .claude", "echo x > .mcp.json",
    "echo x > .envrc", "mkdir .vscode; echo x > .vscode/tasks.json", "mkdir -p .idea; cp f .idea/workspace.xml",
    "ln -s ../f .vscode/tasks.json", "rm -rf .claude", "mv .claude old", "mkdir -p deep; cp f old-folder/.envrc",
    "mkdir n; mkdir n/.idea; mv n/.idea .idea", "echo x > .CLAUDE/settings.json", "git config alias.x '!touch y'",
    "git config core.sshCommand x", "git config include.path ../f", "git config --global core.pager x", "cp f .venv/bin/git",
    "git config filter.x.clean x", "git config credential.helper x", "ln -s ../../f .venv/bin/ls", "mv f .venv/bin/rm",
    "mkdir -p .git/modules/x; cp f .git/modules/x/config", "cp f .git/config.worktree", "cp f .git/info/attributes",
    "cd old-folder; mkdir objects refs; echo ref: refs/heads/x > HEAD", "cd old-folder; echo .. > commondir && echo x > HEAD || rm commondir",
    "cd old-folder; echo x > HEAD; mkdir objects n; mv -T n refs || rm HEAD", "mkdir objects; ln -s objects refs; ln f HEAD",
    "cp f .cursor/mcp.json || mkdir .cursor && cp f .cursor/mcp.json", "cp f protected/inner/file", "mv protected p2",
)  # fmt: skip
SETUP = """
git init -q -b main . && git config user.name a && git config user.email b@c && echo '#!/bin/sh' > f && chmod +x f
mkdir -p .claude old-folder .venv/bin protected/inner && echo '{}' > .claude/settings.json && git add f && git commit -qm 1
"""
WORKS = (
    "git config user.name b && git config user.name", "git remote add o https://host.example/r && git remote -v", "git checkout -q -b n",
    "git branch --track t main", "echo x > g && git add g && git commit -qm g && git log -1 --format=%s", "git stash; git tag v; git gc -q",
    "git clone -q . sub && cd sub && git log -1 --format=%s && mkdir .vscode && echo x > .vscode/a", "git init -q new && ls new/.git/hooks | head -1",
    "mkdir -p .claude/worktrees && git worktree add -q .claude/worktrees/w && echo x > .claude/worktrees/w/y", "cp f .venv/bin/mytool",
    "mkdir n && mkdir n/.idea && echo x > n/.idea/y", "git config --unset user.email; git config user.email d@e", "rm -rf old-folder",
    "echo '[x]' > config && mkdir hooks && echo y > hooks/z", "git clone -q --bare . b.git && git push -q ./b.git main:other",
    "git init -q --bare c.git && git push -q ./c.git main", "git config --file own.cfg core.pager x", "printf x > .git/description", "git update-ref refs/heads/hooks/a main && git branch config",
)  # fmt: skip
