"""What a shell line runs and writes, told from its text: plain lines, evasions, and a comparison with the real bash."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hookline.core.shell import Redirect, SimpleCommand, parse_line, parser, writes
from hookline.core.shell.programs.table import ROWS
from tests.tables import each

BASH = shutil.which("bash")


def names(line: str) -> list[str]:
    """The programs of a line, in order."""
    return [command.name for command in parse_line(line).commands if command.words]


@pytest.mark.parametrize(
    "line,expected",
    [
        ("git status", ["git"]),
        ("a; b && c || d | e |& f & g\nh", ["a", "b", "c", "d", "e", "f", "g", "h"]),
        ("(a; (b)) && { c; }", ["a", "b", "c"]),
        ("if a; then b; elif c; then d; else e; fi 2>/dev/null", ["a", "b", "c", "d", "e"]),
        ("while a; do b; done < f; until c; do d; done", ["a", "b", "c", "d"]),
        ("for x in a b; do c; done; for x do d; done; for x\nin y; do e; done", ["c", "d", "e"]),
        ("for ((i=0; i<3; i++)); do a; done; select x in y; do b; done", ["a", "b"]),
        ("case $x in a|b) c;; (d) e ;& *) f\nesac; g", ["c", "e", "f", "g"]),
        ("case x in esac; a", ["a"]),
        ("f() { a; }; function g { b; }; function h() { c; }", ["a", "b", "c"]),
        ("! a; time { b; }; time -p (c); time d", ["a", "b", "c", "time", "d"]),
        ("[[ -f a && b < c || ! (d) ]] && e", ["e"]),
        ("[[ a =~ ^(b|c)$ ]]; d", ["d"]),
        ("(( x + 1 )); ((y = (1 + $z) * 2)); a", ["a"]),
        ("a # b\nc #d; e\n#f", ["a", "c"]),
        ("a#b c", ["a#b"]),
        ("a {b }{c", ["a"]),
        ("a {b}} {{c},d}", ["a"]),
        ("\\\n a \\\n b", ["a"]),
        ("x=1 y+=2 z[0]=3 a", ["a"]),
        ("x=(a $(b)\n c # d\n) e", ["b", "e"]),
        ("declare -a x=(y z); a", ["declare", "a"]),
        ("a <<'E' && b\nc $(d)\nE\ne", ["b", "a", "e"]),
        ("a <<-E\n\tb\n\tE\nc", ["a", "c"]),
        ('a <<E\nx $(b) `c` \\$(d) "e" \\" $y\nE\nf', ["b", "c", "a", "f"]),
        ("a <<E\nplain\nE", ["a"]),
        ("", []),
        (";", []),
        (
            "bash --version; bash -c; eval; alias; xargs; env; sudo; trap - EXIT; watch",
            ["bash", "bash", "eval", "alias", "xargs", "env", "sudo", "trap", "watch"],
        ),
        (
            "command -v rm; git log; tar tf x; hash; set -e; export X=1; python --version; sed s/e/x/ f",
            ["command", "git", "tar", "hash", "set", "export", "python", "sed"],
        ),
        ('x=ls; $x -l; "$x" a; ${x}', ["ls", "ls", "ls"]),
        ("x='ls -l'; $x; echo $x/y", ["ls", "echo"]),
        (
            "uv run; docker ps; npx; find . -name x; find . -exec ; git bisect run",
            ["uv", "docker", "npx", "find", "find", "git"],
        ),
        ("/lib/ld-linux.so.2; uv run pytest; ssh host", ["ld-linux.so.2", "uv", "pytest", "ssh"]),
    ],
)
def test_every_command_of_a_plain_line_is_listed(line: str, expected: list[str]) -> None:
    """The list is complete, and nothing is in doubt."""
    assert (names(line), parse_line(line).undecidable) == (expected, ())


SEEN = [
    "ssh host <<E\nrm x\nE",
    "docker run -v a:/b --name c image rm x",
    "npm exec -- rm x",
    "npm exec -c 'rm x'",
    "npx --call='rm x'",
    "yarn exec rm x",
    "xargs -I% rm %",
    "rm -rf /",
    "/bin/rm -rf /",
    "./rm x",
    "\\rm x",
    "r\\m x",
    "'rm' x",
    '"rm" x',
    "r''m x",
    'r""m x',
    "$'rm' x",
    "$'\\x72m' x",
    "$'\\162\\155' x",
    "$'\\u0072m' x",
    '$"rm" x',
    "r\\\nm x",
    "{rm,-rf,/}",
    "{rm,x}",
    "r{m,} x",
    "  rm x",
    "\trm x",
    "\nrm x",
    ";rm x",
    "a;rm x",
    "a&&rm x",
    "a||rm x",
    "a|rm x",
    "a&rm x",
    "a|&rm x",
    "a\nrm x",
    "(rm x)",
    "{ rm x; }",
    "! rm x",
    "if rm x; then y; fi",
    "if y; then rm x; fi",
    "while rm x; do y; done",
    "until y; do rm x; done",
    "for i in 1; do rm x; done",
    "for i do rm x; done",
    "for ((;;)); do rm x; done",
    "case a in a) rm x;; esac",
    "case a in (a) rm x; esac",
    "f() { rm x; }; f",
    "f() rm x",
    "function f { rm x; }",
    "f() (rm x)",
    "echo $(rm x)",
    "echo `rm x`",
    'echo "$(rm x)"',
    'echo "`rm x`"',
    "echo $(echo $(rm x))",
    "echo `echo \\`rm x\\``",
    "cat <(rm x)",
    "tee >(rm x)",
    "echo ${x:-$(rm x)}",
    'echo "${x:-$(rm x)}"',
    "echo ${x:-`rm x`}",
    "echo ${x//a/$(rm x)}",
    "echo $(( $(rm x) ))",
    "(( $(rm x) ))",
    "x=$(rm x)",
    "x[$(rm x)]=1",
    "x=($(rm x))",
    "[ a | rm x ]",
    "[ $(rm x) ]",
    "[[ $(rm x) ]]",
    "[[ a ]] && rm x",
    "> f rm x",
    "2>&1 rm x",
    "<f rm x",
    "&>f rm x",
    "rm x > f",
    "X=1 rm x",
    "X=1 Y=2 rm x",
    "x= rm x",
    "sudo rm x",
    "sudo -u root rm x",
    "sudo -uroot rm x",
    "sudo --user=root rm x",
    "sudo -n -- rm x",
    "sudo X=1 rm x",
    "sudo -E env X=1 rm x",
    "doas rm x",
    "env rm x",
    "env -i rm x",
    "env X=1 rm x",
    "env -u X rm x",
    "env -S 'rm x'",
    "env -S'rm x'",
    "env --split-string='rm x'",
    "/usr/bin/env rm x",
    "nice rm x",
    "nice -n 5 rm x",
    "nice -5 rm x",
    "nohup rm x",
    "time rm x",
    "time -p rm x",
    "\\time -o f rm x",
    "timeout 5 rm x",
    "timeout -k 1 5 rm x",
    "timeout -s KILL 5 rm x",
    "command rm x",
    "command -p rm x",
    "builtin command rm x",
    "exec rm x",
    "exec -a y rm x",
    "stdbuf -oL rm x",
    "setsid rm x",
    "setsid -f rm x",
    "ionice -c 3 rm x",
    "busybox rm x",
    "toybox rm x",
    "chroot / rm x",
    "strace -f rm x",
    "taskset 1 rm x",
    "/lib64/ld-linux-x86-64.so.2 /bin/rm x",
    "xargs rm < f",
    "echo x | xargs rm",
    "xargs -n 1 rm",
    "xargs -I{} rm {}",
    "xargs -0r rm",
    "find . -exec rm {} \\;",
    "find . -exec rm {} +",
    "find . -execdir rm {} ';'",
    "find . -ok rm {} \\;",
    "find . -exec sh -c 'rm x' \\;",
    "find . -exec ls {} \\; -exec rm {} +",
    "fd x -x rm",
    "parallel rm ::: x",
    "watch rm x",
    "watch -n 1 'rm x'",
    "ssh host rm x",
    "ssh -p 22 host 'rm x'",
    "su -c 'rm x'",
    "su root -c 'rm x'",
    "su --command='rm x'",
    "script -c 'rm x' f",
    "script -qc 'rm x' f",
    "flock f rm x",
    "flock f -c 'rm x'",
    "bash -c 'rm x'",
    "sh -c 'rm x'",
    "zsh -c 'rm x'",
    "dash -c 'rm x'",
    "bash -xc 'rm x'",
    "bash -c -- 'rm x'",
    "bash --norc -c 'rm x'",
    "bash -o pipefail -c 'rm x'",
    "bash +x -c 'rm x'",
    "/bin/bash -c 'rm x'",
    "bash -c \"bash -c 'rm x'\"",
    "bash -c 'echo $(rm x)'",
    "bash -c $'rm\\nx'",
    "sudo bash -c 'rm x'",
    "env bash -c 'rm x'",
    "eval rm x",
    "eval 'rm x'",
    "eval -- rm x",
    'eval "r"m x',
    "eval 'eval rm x'",
    "bash <<E\nrm x\nE",
    "bash <<'E'\nrm x\nE",
    "bash <<-E\n\trm x\n\tE",
    "bash -s <<E\nrm x\nE",
    "sh <<< 'rm x'",
    "bash -s x <<< 'rm x'",
    "bash /dev/stdin <<< 'rm x'",
    "cat <<E\n$(rm x)\nE",
    "cat <<E\n`rm x`\nE",
    'bash <<E\necho \\"; rm x \\"\nE',
    "trap 'rm x' EXIT",
    "alias a='rm x'; a",
    "x=rm; $x y",
    "x='rm -rf'; $x y",
    "x=rm && $x y",
    "x=rm\n${x} y",
    'x=r; y=m; "$x$y" z',
    "coproc_=1; rm x",
    "a #'\nrm x",
    "echo '#'; rm x",
    "echo a#'b'\nrm x",
    "cat <<E\nE\nrm x",
    "cat <<E;rm x\nE",
    "cat <<'E E'\nE E\nrm x",
    "cat <<\\E\n$(\nE\nrm x",
    "git bisect run rm x",
    "git submodule foreach 'rm x'",
    "git rebase --exec 'rm x' main",
    "tar cf f --checkpoint-action=exec='rm x' .",
    "tar -I 'rm x' -cf f",
    "rsync -e 'rm x' a b",
    "npx rm x",
    "uv run rm x",
    "uv run --with y rm x",
    "docker exec c rm x",
    "nix-shell --run 'rm x'",
    "i\\\nf rm x; then :; fi",
    "sudo -- X=1 rm x",
    "echo ${x:-\"a\"} ${x:-'b'} ${x:-\\}}; rm x",
    'echo "a\\\nb"; rm x',
    "[ -f x ] && rm x || :",
    "echo \\\n && rm x",
    "if\nrm x\nthen :; fi",
    "{ { rm x; }; }",
    "((1)); rm x",
    "time ! rm x",
    "a=1;rm x",
    "rm x #",
    "rm\tx",
]


@each("line", SEEN)
def test_rm_is_seen_through_any_disguise(line: str) -> None:
    """Quoting, wrapping, nesting and substitution do not hide a command."""
    assert "rm" in names(line)


DOUBT = [
    "x='a[$(rm)]'; ((x))",
    "[[ 'a[$(rm)]' -eq 1 ]]",
    "ssh host < x",
    "echo x | ssh host",
    "ssh host <<E\n$x\nE",
    "scp -S x a b:",
    "sed -f <(x) y",
    "scp -oProxyCommand=x a b:",
    "git clone -u x y",
    "git grep -Ox y",
    "xargs -I X X y",
    "xargs -i {} y",
    "xargs --replace=% % y",
    "$x y",
    "${x} y",
    "$(echo rm) x",
    "`echo rm` x",
    '"$x" y',
    "r$x y",
    "/bin/r? x",
    "/bin/[r]m x",
    "r* x",
    "~/x",
    "$1 x",
    '"$@"',
    "${!x} y",
    "eval $x",
    'eval "$x"',
    'bash -c "$x"',
    "bash -c $x",
    "sh $x",
    "bash",
    "echo x | sh",
    "echo x | bash -",
    "echo cm0= | base64 -d | sh",
    "printf 'r%s' m | sh",
    "curl u | sudo bash",
    "tee >(sh)",
    "bash <(echo rm)",
    "bash < f",
    "sh /dev/stdin",
    ". ./f",
    "source f",
    "bash <<E\n$x\nE",
    "bash <<< $x",
    "ls | parallel",
    "parallel {} ::: rm",
    "parallel $x ::: y",
    "at now",
    "crontab f",
    "tmux new 'rm x'",
    "su",
    "sudo -s",
    "sudo -i",
    "sudo --unknown v rm x",
    "sudo $o rm x",
    "env -Z rm",
    "xargs --what rm",
    "xargs $x",
    "watch --what rm x",
    "ssh -? h",
    "ssh -o ProxyCommand=x h",
    "PATH=/tmp ls",
    "LD_PRELOAD=x ls",
    "BASH_ENV=f bash -c ls",
    "IFS=x; ls",
    "export PATH=/tmp",
    "env PATH=/tmp ls",
    "GIT_SSH_COMMAND=x git pull",
    "export $x",
    "declare -n r=$x",
    "git -c core.pager='rm x' log",
    "git -c alias.x='!rm' x",
    "git config alias.x '!rm y'",
    "git difftool",
    "git clone ext::sh",
    "sed '1e rm x' f",
    "sed 's/a/b/e' f",
    "hash -p /bin/rm ls",
    "enable -f ./x y",
    "alias ls=rm",
    "alias a=$x",
    "'unclosed",
    '"unclosed',
    "$'unclosed",
    "`unclosed",
    "$(unclosed",
    "${unclosed",
    "(unclosed",
    "a)",
    "x=(a",
    "a; )",
    "{ a; } )",
    "case x in a",
    "case x",
    "case x in a) b",
    "case x in (",
    "[[ a",
    "[[ a; b ]]",
    "cat <<E\nx",
    "cat <<E",
    "cat <<$x\na\nE",
    "$(cat <<E)\nE",
    "cat <<E\na\\\nE\nE",
    "a <",
    "a > ;",
    "echo @(a)",
    "echo !(a)",
    "a ( b )",
    "coproc a",
    "function",
    "for ((x; y",
    "for (($(a);;)); do b; done",
    "$((a;b))",
    "((a;b))",
    "echo $[1]",
    "${ rm x; }",
    "echo \"${x:-'a'}\"",
    "echo ${x@P}",
    "a\r\nb",
    "a\u00a0b",
    "a\x00b",
    "\ue001",
    "\ud800",
    "a\\",
    "a ;; b",
    "$'\\c'",
    "$'\\xff'",
    "$'\\q'",
    '"$\\\n(rm x)"',
    "x=ls; $x\\\ny",
    "a=(x)if {rm,x}",
    "sh -c '[[ a || rm x ]]'",
    "dash -c '((rm))'",
    "printf -v 'a[$(rm x)]' y",
    "test -v 'a[$(rm x)]'",
    "x=ls; eval $'\\x78=rm'; $x y",
    "x=ls; {ev,}al x; $x",
    "x=ls; read x; $x",
    "for x in rm; do $x y; done",
    "x=rm $x y",
    "x=a; x=b; $x",
    'f() { "$@"; }; f rm x',
    "a{b,c}" * 9,
    "{" * 40,
    "{1..3} x",
    "(" * 100,
    "$(" * 100,
    "${x:-" * 100,
    "bash -c " * 3 + "x",
    "sudo " * 12 + "ls",
    "a;" * 1100,
    "x" * 70_000,
    "time { $x; }",
    "nsenter -t 1 rm",
    "find . $x",
    "mapfile -C rm x",
    "tar -I $x",
    "rsync -e $x a b",
    'su -c "$x"',
    "flock f $x",
    "sh -s",
    "bash --rcfile f",
    "exec $x",
]


@each("line", DOUBT)
def test_what_cannot_be_told_is_said(line: str) -> None:
    """A line whose commands depend on something else is never passed off as understood."""
    assert parse_line(line).undecidable


@pytest.mark.parametrize(
    "line,note",
    [
        ("python3 -c 'x'", "`python3` runs code in another language"),
        ("perl -ne 'x' f", "`perl` runs code in another language"),
        ("awk '{system(\"rm\")}'", "`awk` runs code in another language"),
        ("python x.py", "`python` runs the program `x.py`"),
        ("python -m http.server", "`python` runs the program `http.server`"),
        ("echo x | python", "`python` runs code in another language, which it reads from its input"),
        ("bash x.sh", "`bash` runs the script `x.sh`"),
        ("sed $x f", "`sed` runs a script that is known only when it runs"),
        ("ssh h ls", "`ssh` runs commands on another machine"),
        ("docker run -it image ls", "`docker` runs a command in another environment"),
    ],
)
def test_what_is_no_shell_command_is_noted(line: str, note: str) -> None:
    """Code in other languages and scripts are beyond reading; the line says so."""
    assert parse_line(line).notes == (note,)


@pytest.mark.parametrize(
    "line",
    [
        "python3 -c x",
        "python3 $x",
        "make -f <(x)",
        "awk -f - y <<< x",
        "python3 -W ignore -Ic x",
        "python3 -m timeit x",
        "echo x | python3",
        "python3 <<< x",
        "python3 /dev/stdin < x",
        "deno eval x",
        "node --eval=x",
        "perl -pe 's/a/b/e'",
        "perl -e",
        "awk 'BEGIN { system(x) }'",
        "awk 'x | getline'",
        "awk -i lib '{ print }'",
        "awk $x y",
        "vim -c x y",
        "vim +x y",
        "ed y <<< '!x'",
        "echo x | sqlite3 y",
        "sqlite3 y .shell",
        "psql -c '\\! x'",
        "make SHELL=x",
        "less '+!x' y",
        "split --filter=x y",
        "nc -e x host 1",
        "fish -c x",
    ],
)
def test_code_that_may_run_anything_is_named(line: str) -> None:
    """Code in another language, in the line or piped in."""
    assert parse_line(line).code


@pytest.mark.parametrize(
    "line",
    [
        "python3 x.py -c y",
        "python3 -m pytest -c x",
        "python3 -W ignore x.py",
        "python3 --version",
        "node --test",
        "perl -pi -e 's/a/b/g' x",
        "awk '{ print $1 }' x",
        "awk -F '|' -v n=1 -- '/a|b/ || NR > n' x",
        "awk -f x.awk y",
        "awk --version",
        "vim +3 x",
        "ed x",
        "sqlite3 x 'select 1'",
        "sqlite3 x .tables",
        "sqlite3 x $y",
        "mysql x < dump.sql",
        "make -j4 all",
        "echo x | make",
        "less +F x",
        "bash x.sh",
    ],
)
def test_a_program_in_a_file_and_harmless_text_are_no_such_code(line: str) -> None:
    """What has a rule of its own, or can run nothing, is not held against the line."""
    assert parse_line(line).code == ()


PLAIN = st.text("ab-./:=@%+,_1", min_size=1, max_size=5)
LITERAL = st.text("ab1 !#%&()*+,-./:;<=>?@^{|}~[$`\\\n", max_size=8) | st.sampled_from(
    ["rm -rf x", "a; rm x", "cat x | sh", "*.py", "{a,b}", "~/x", "a[$(rm x)]", "x > y", "s/a/b/w out", "BEGIN {print}"]
)
BEGINNING = st.sampled_from([
    "a", "git commit -m", "grep -rn", "sed -n", "sed -i", "awk", "find . -name", "find . -exec", "bash -c", "sh -c",
    "eval", "trap", "set", "let", "env -S", "sudo sh -c", "xargs -I", "timeout 5 sh -c", "ssh host", "python3 -c",
    "perl -e", "su -c", "nohup", "time", "command", "exec", "alias", "declare", "read", "if", "for", "function",
    "test -v", "printf -v", "unset", "export", "git -c", "make", "tee", "dd", "tar -cf", "watch", "parallel",
    "docker run x sh -c", "busybox", "rm", "cd", "cp a", "mv",
])  # fmt: skip


@settings(max_examples=500, deadline=None)
@given(BEGINNING, st.lists(PLAIN | LITERAL.map("'{}'".format) | LITERAL.map('"{}"'.format), max_size=4))
def test_the_short_way_through_plain_and_quoted_words_is_the_long_way(beginning: str, words: list[str]) -> None:
    """A line of plain words, and of quoted ones, means the same when it is read letter by letter."""
    line = " ".join([beginning, *words])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parser, "_PLAIN_LINE", re.compile("(?!)"))
        long = parse_line.__wrapped__(line)

    assert parse_line.__wrapped__(line) == long


def test_a_command_is_one_whole_value() -> None:
    """Everything there is to know about one command."""
    line = parse_line('cd x && A=1 sudo -u "root" /bin/rm "$y" > out 2>>log')

    outer = SimpleCommand(
        name="sudo",
        words=("sudo", "-u", "root", "/bin/rm", "$y"),
        assignments=(("A", "1"),),
        redirects=(Redirect(">", "out"), Redirect(">>", "log", "2")),
        raw='A=1 sudo -u "root" /bin/rm "$y" > out 2>>log',
        unknown=(4,),
        wraps=True,
        after="&&",
    )
    inner = SimpleCommand(
        name="rm",
        words=("/bin/rm", "$y"),
        redirects=outer.redirects,
        raw=outer.raw,
        unknown=(1,),
        via=("sudo",),
        after="&&",
    )
    assert line.commands[1:] == (outer, inner)
    assert (line.commands[2].dynamic, line.commands[2].text, line.substitutes) == (True, "/bin/rm $y", False)


@pytest.mark.parametrize(
    "line,targets",
    [
        ("echo x > a 2>&1 >> b >| c &> d", {"a", "b", "c", "d"}),
        ("a <> b; exec 3> c; > d; echo >&2; echo > /dev/null; a >& e", {"b", "c", "d", "e"}),
        ("(a) > b; { c; } > d; if e; then f; fi > g", {"b", "d", "g"}),
        ("cd /tmp && touch x && cd y && touch z", {"/tmp/x", "/tmp/y/z"}),
        ("cd /tmp; touch x", {"x", "/tmp/x"}),
        ("(cd /tmp && touch x); touch y", {"/tmp/x", "y"}),
        ("cd a && (touch b)", {"a/b"}),
        ("cd a && echo $(cd /b; touch c) > d", {"/b/c", "a/c", "c", "a/d"}),
        ("bash -c 'cd /etc && touch x'; touch y", {"/etc/x", "y"}),
        ("eval 'cd /etc' && touch x", {"/etc/x"}),
        ("cd && touch x; cd -P -- /a && touch y", {"~/x", "/a/y"}),
        ("cd sub && echo a > ../b", {"sub/../b"}),
        ("tee -a /etc/x; touch -- -a; mkdir -p b/c; rm -rf /; rmdir d", {"/etc/x", "-a", "b/c", "/", "d"}),
        (
            "cp a b /etc; cp -t /x a; cp --target-directory=/y a; install -m 1 a /z; mv a ../b",
            {"/etc", "/x", "a", "/y", "/z", "../b"},
        ),
        ("cp -t/w a", {"/w", "a"}),
        ("ln -s /etc/passwd; ln -s a b", {"passwd", "b"}),
        ("dd if=a of=/dev/sda", {"/dev/sda"}),
        ("cp -l /a b; cp --link /c d; ln /e f; ln /g", {"/a", "b", "/c", "d", "/e", "f", "/g", "."}),
        ("awk '{ print > \"a\"; print >> \"b\" }' x; awk '$1 > 2' y", {"a", "b"}),
        ("cargo new /a; cargo test; docker cp c:/x b; docker ps; python3 -m venv d; python3 -m x e", {"/a", "b", "d"}),
        ("tool -o /a --log-file=b; grep -o /c d; make -C /e; 7z x a -o/f", {"/a", "b", "/e", "x", "a", "/f"}),
        ("ln -s /a b; touch ./b/c; ln -s d e; touch f", {"b", "./b/c", "/a/c", "e", "f"}),
        ("ln -s ../x a/b; touch a/b c", {"a/b", "a/../x", "c"}),
        ("tar xPf a; git archive -o b HEAD; tcpdump -w c; touch $PWD/d", {".", "/", "b", "c", "./d"}),
        ("sed -i s/a/b/ f; sed -i.bak -e x g; sed x h; perl -pi -e s/a/b/ i", {"f", "g", "i", "x", "s/a/b/"}),
        ("chmod 777 /a; chown --reference=r b; truncate -s0 c", {"/a", "b", "r", "c"}),
        (
            "tar xf a -C /o; tar -xf b; tar czf /c.tgz d; tar tf e; tar -cf f g; tar --extract --file=h -P",
            {"/o", ".", "/c.tgz", "f", "/"},
        ),
        ("unzip a; unzip -d /b c; unzip -l d", {".", "/b"}),
        ("curl -o /a u; curl -O u; curl -sSLo /b u; curl --output=/c u; curl u", {"/a", ".", "/b", "/c"}),
        ("wget -O /a u", {"/a"}),
        ("wget u; wget -P /b u; wget -qP /c u", {".", "/b", "/c"}),
        (
            "git clone u /a; git -C /b commit; git config --global c d; git init /e; git worktree add /f; git log; git",
            {"/a", "/b", "~/.gitconfig", ".", "/e", "/f"},
        ),
        ("git clone u; git init; git diff --output=/x; git rm /y", {".", "/x", "/y"}),
        ("find /a -delete; find -L /b -exec rm {} +; find . -fprint /c; find -name x", {"/a", "/b", "/c"}),
        ("rsync -a a/ h:/b; rsync -a a/ /c; scp h:a /d", {"/c", "/d"}),
        ("patch -p1 < x; split a b; sort -o /c d; uniq e /f; gcc -o /g h.c", {".", "a", "b", "/c", "/f", "/g"}),
        ("cat <<E > /a\nx\nE", {"/a"}),
        ("curl -o/a u; find '(' -name x ')' -delete; tee -; find /b", {"/a", "."}),
        ("echo hi; ls; cat -", set()),
    ],
)
def test_targets_of_writing(line: str, targets: set[str]) -> None:
    """Redirections and well-known programs, with every `cd` applied."""
    found = writes(line)

    assert (set(found.targets), found.undecidable) == (targets, ())


@pytest.mark.parametrize(
    "line",
    [
        "echo > ~+/x",
        "echo > ~-/x",
        "awk '{ print > $1 }' x",
        "python3 -m venv $x",
        "touch $x",
        "echo > $x",
        'echo > "$(pwd)/x"',
        "cd $x && touch y",
        "cd -; touch x",
        "pushd /a; popd; touch c",
        "ls | xargs rm",
        "for i in 1 2; do cd ..; done; touch x",
        "sed 'w /etc/x' f",
        "sed 's/a/b/w f' g",
        "curl -K f",
        "env -C /etc touch x",
        "tar cf $x y",
        "curl -o $x u",
        "dd of=$x",
        "find $x -delete",
        "cd " + "a;cd " * 20 + "a; touch b",
        "rm *{1..3}",
        "f() { cd ..; }; f; f; touch x",
        "echo x | sh",
        "sudo -D / touch x",
    ],
)
def test_targets_that_cannot_be_told(line: str) -> None:
    """A target that depends on something else is a doubt, not an omission."""
    assert writes(line).undecidable


@given(st.text(max_size=60))
def test_no_text_raises(line: str) -> None:
    """Any text is a line."""
    assert writes(line).undecidable[: len(parse_line(line).undecidable)] == parse_line(line).undecidable


WORD = st.lists(
    st.sampled_from(["a", "-b", "'", '"', "\\", "{", "}", ",", "c d", "$", "#", "\\\n", "$'", "\\x41", "=", "]"]),
    max_size=8,
)


@pytest.mark.skipif(BASH is None, reason="compares with the real bash")
@settings(max_examples=100, deadline=None)
@example(["{", ",", "}"])
@example(["{", ",", "a", "}"])
@example(["{", ",", "$", "}", "a"])
@given(WORD)
def test_words_are_what_bash_passes_on(pieces: list[str]) -> None:
    """Where nothing is in doubt, the words are those that bash hands to the program."""
    source = "".join(pieces)
    line = parse_line("echo " + source)
    command = line.commands[0] if len(line.commands) == 1 else None
    if line.undecidable or command is None or command.dynamic or command.assignments or command.redirects:
        return

    script = f"show() {{ printf '%s\\0' \"$@\"; }}; show {source}\n"
    done = subprocess.run([str(BASH), "--norc", "-c", script], capture_output=True, text=True, timeout=20, check=False)

    assert [word for word in done.stdout.split("\0")[:-1] if word or len(command.words) > 1] == list(command.words[1:])


BRACES = {
    "{,rm} -rf x": ("rm", "-rf", "x"),
    "rm{,} x": ("rm", "rm", "x"),
    "echo {,a,,b}": ("echo", "a", "b"),
    "echo a{,b}{,c}": ("echo", "a", "ac", "ab", "abc"),
}


def test_braces_leave_no_empty_word() -> None:
    """`{,rm} x` runs `rm`: bash drops a word that is empty. Where a quoted part may keep it, the line is in doubt."""
    assert {line: parse_line(line).commands[0].words for line in BRACES} == BRACES
    for line in ("{,}", "echo {,}", "{,} rm x", "{'',rm} x", '""{,} x', "{,$x} y"):
        assert parse_line(line).undecidable, line


PIECES = [
    "rm",
    "rm ",
    " ",
    " ",
    "x",
    "'",
    '"',
    "\\",
    "$",
    "$(",
    ")",
    "(",
    "`",
    ";",
    "&&",
    "|",
    "&",
    "\n",
    "#",
    "{ ",
    "; }",
    "<<E",
    "\nE\n",
    "<<'E'\n",
    "<<<",
    "> f",
    "case x in ",
    "x)",
    ";;",
    "esac",
    "if ",
    "then ",
    "fi",
    "for x in ",
    "do ",
    "done",
    "[[ ",
    "]]",
    "((",
    "))",
    "${",
    "x=rm",
    "$x",
    "$'",
    "eval ",
    "echo ",
    "function ",
    "()",
    "{rm,x}",
    "${x:-",
    "command ",
    "\\\n",
    "bash -c ",
    "trap ",
    "EXIT",
    "a=(",
    "r''m",
]


@pytest.mark.skipif(BASH is None, reason="compares with the real bash")
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(PIECES), min_size=2, max_size=10))
def test_what_bash_runs_is_seen_or_doubted(tmp_path: Path, pieces: list[str]) -> None:
    """Whatever makes the real bash run `rm`, reading the line has listed it or said that it cannot tell."""
    source = "".join(pieces)
    line = parse_line(source)
    if line.undecidable or "rm" in names(source):
        return

    mark, work = tmp_path / "ran", tmp_path / "work"
    work.mkdir(exist_ok=True)
    script = 'rm() { builtin echo ran >> "$MARK"; }; export -f rm; eval "$1"'
    subprocess.run(
        [str(BASH), "--norc", "--noprofile", "-c", script, "_", source],
        cwd=work,
        env={"MARK": str(mark), "PATH": ""},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
        check=False,
    )

    assert not mark.exists()


def test_no_function_of_the_package_is_called_like_one_of_its_modules() -> None:
    """A module imported late would take the function's place in the package."""
    import pkgutil

    from hookline.core import shell

    assert {module.name for module in pkgutil.iter_modules(shell.__path__)}.isdisjoint(shell.__all__)


def test_no_program_and_no_argument_makes_the_reader_raise() -> None:
    """Every program that a table knows: alone, with an option, a value, an expansion; plain, wrapped, as an alias."""
    endings = ("", "-", "--", "-v", "-c", "-e x", "x", "$x", "-x=$y", "=", "'' ''", "-C", "< x", "<<< x", "*", "+")
    lines = [f"{name} {ending}".strip() for names in ROWS for name in names.split() for ending in endings]
    for line in [*lines, *(f"alias foo='{line}'" for line in lines if "'" not in line), *(f"env {x}" for x in lines)]:
        parse_line(line)
        writes(line)

    assert parse_line("alias foo=printf").undecidable == ("`alias` changes what a later word means",)
