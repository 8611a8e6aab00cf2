"""Which shell lines only read, or only edit: as measured on the real CLI, which runs some unasked."""

import pytest

from hookline.guards.permissions import edits_only, reads_only
from hookline.guards.permissions.readonly_commands import FORMS

READS = """
git branch
git branch -a
git branch -vv
git branch --list
git branch --show-current
git branch --merged main
git branch --contains HEAD
git branch --sort=-committerdate
git tag
git tag --list --sort=-v:refname
git remote -v
git stash list
git stash show -p
git config --get user.name
git reflog show
git reflog -n 3
git for-each-ref refs/heads
git worktree list --porcelain
ps
ps aux
ps -p 1
sleep 0.1
free -m
hostname -I
history 10
lsof -i :80
node --version
python3 --version
docker ps -a
docker images -q
docker logs web
sed -n 1,5p f.txt
base64 -d f.txt
cal 2020
locale -a
help cd
netstat -an
ss -tulpn
ifconfig eth0
ip addr
pgrep -l x
printf '%s\\n' a
tput cols
numfmt --to=iec 1
fmt -w 20 f.txt
builtin pwd
command ls
timeout 5s cat f.txt
ls . | xargs echo
sort f.txt | uniq -c
ps aux | grep x
cd . && git status
""".strip().splitlines()

ASKS = """
git branch foo
git branch -D x
git branch -m a b
git branch '-a foo'
git tag v1
git tag -d v1
git remote add x y
git stash
git stash pop
git config user.name x
git reflog expire
git worktree add x
git ls-remote origin
git -c core.pager=x branch
ps e
hostname foo
history -c
node -e 1
node
python3
python3 --version x.py
docker run x
docker exec x ls
docker logs -f x
sed -i s/a/b/ f.txt
sed -n 1p -i f.txt
sed -n 'w out' f.txt
sed -n '1p w' f.txt
base64 /etc/shadow
ss -K
ifconfig eth0 down
ip addr add x
printf -v x y
printf hi > out
tput reset
uniq f.txt out
builtin cd ..
builtin eval ls
command rm x
command -p rm x
timeout 5 rm x
timeout 5 cat /etc/passwd
timeout 5 ls > out
timeout -k 1 5 ls
ls . | xargs rm
ls . | xargs cat
ls . | xargs sh -c 'rm x'
sleep $(rm x)
ps $(rm x)
""".strip().splitlines()


@pytest.mark.parametrize("line", READS)
def test_lines_that_only_read_need_no_permission(line: str) -> None:
    """People are not asked about looking."""
    assert reads_only(line, cwd="/p", dirs=["/p"], home="/h")


@pytest.mark.parametrize("name", [*FORMS])
@pytest.mark.parametrize("word", ["a", "-a", "1", "x "])
def test_no_line_takes_long_to_be_refused(name: str, word: str) -> None:
    """A form that tries every way to split a word would hang here: an agent writes these lines."""
    line = f"{name} {word * 5000}!"

    assert not reads_only(line, cwd="/p", dirs=["/p"], home="/h")


@pytest.mark.parametrize("line", ASKS)
def test_the_same_programs_are_asked_about_when_they_might_do_more(line: str) -> None:
    """A form that is not known to read is not taken for reading."""
    assert not reads_only(line, cwd="/p", dirs=["/p"], home="/h")


@pytest.mark.parametrize(
    "line",
    [
        "sed -i s/b/z/g f.txt",
        "sed --in-place s/a/b/ f.txt",
        "sed -i -E 's/a+/b c/' f.txt g.txt",
        "sed s/a/b/2 f.txt",
        "sed -i 's/a/\\n/' f.txt",
        "touch x && sed -i s/a/b/I x",
    ],
)
def test_a_plain_substitution_is_an_edit(line: str) -> None:
    """`acceptEdits` accepts it; `default` asks."""
    assert edits_only(line, cwd="/p", dirs=["/p"], home="/h")
    assert not reads_only(line, cwd="/p", dirs=["/p"], home="/h")


@pytest.mark.parametrize(
    "line",
    [
        "sed -i 's/a/b/e' f.txt",
        "sed -i 's/a/b/w out' f.txt",
        "sed -i 's/a/b/;e ls' f.txt",
        "sed -i 1d f.txt",
        "sed -i.bak s/a/b/ f",
        "sed -i 's|a|b|' f.txt",
        "sed -i s/a/b/ *.txt",
        "sed -i s/a/b/ /etc/hosts",
        "sed -i s/a/b/ .git/config",
        "sed -i s/a/b/",
        "sed -i -f script f.txt",
        "sed -i s/a/b/ f.txt -e 'e ls'",
        "sed -i s/a/b/$X f.txt",
        "timeout 5 touch x",
        "xargs touch x",
    ],
)
def test_whatever_else_sed_can_do_is_no_plain_edit(line: str) -> None:
    """It could run commands, write elsewhere, or delete; and what a wrapper runs is not edited by hand."""
    assert not edits_only(line, cwd="/p", dirs=["/p"], home="/h")
