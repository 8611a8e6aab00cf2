"""Shell lines by class, those that do more than read beside those that only read. Nothing here is ever run."""

from __future__ import annotations

MORE_THAN_READING: dict[str, str] = {
    "a pager or program that git is told to run": """
git grep --open-files-in-pager=./x foo
git grep --open-files-in-pager foo
git grep --open-files foo
git grep --open=./x foo
git grep --op=./x foo
git grep -O./x foo
git grep -O foo
git grep -nO./x foo
git grep -lO foo
git --no-pager grep -O./x foo
git -c core.pager=./x log
git -ccore.pager=./x log
git -c core.fsmonitor=./x status
git --config-env=core.pager=X log
git --exec-path=. status
git --exec-path . status
git -p log
git --paginate log
git diff --ext-diff
git diff --ext
git log -p --ext-diff
git show --textconv HEAD:a
git show --textc HEAD:a
git blame --textconv a
git cat-file --textconv HEAD:a
git cat-file --filters HEAD:a
git log --show-signature
git log --format=%G?
git log --pretty=%GG
git show --pretty=format:%GS
git difftool
git mergetool
git bisect run ./x
git submodule foreach ls
git rebase -x ls HEAD
git help log
git log --help
""",
    "a file that git writes": """
git diff --output=x
git diff --output x
git diff --outp=x
git log -p --output=x
git show --output=x
git format-patch -1
git archive -o x HEAD
git bundle create x HEAD
git status --output=x
git blame --output=x a
git diff-tree --output=x HEAD
git shortlog --output=x
""",
    "another repository": """
git -C sub status
git -Csub status
git -C . status
git --git-dir=x status
git --git-dir x status
git --work-tree=x status
git --bare status
git --namespace=x log
cd sub && git status
cd sub; git status
cd sub || git status
(cd sub && git log)
cd ./sub && git diff
cd sub/deeper && git --no-pager log
cd . && cd sub && git status
{ cd sub; git status; }
pushd sub && git status
if cd sub; then git status; fi
GIT_DIR=sub git status
GIT_WORK_TREE=sub git status
GIT_COMMON_DIR=sub git log
HOME=sub git status
XDG_CONFIG_HOME=sub git status
env GIT_DIR=sub git status
export GIT_DIR=sub; git status
git diff --no-index a b
""",
    "a program that an option names": """
sort --compress-program=./x a
sort --compress-program ./x a
sort --compress-prog=./x a
sort --compress=./x a
sort --comp=./x a
sort --co=./x a
sort -u --compress-program=./x a
rg --pre ./x foo
rg --pre=./x foo
rg --hostname-bin=./x foo
rg -z foo
rg --search-zip foo
fd -x rm
fd a -x rm
fd a -X rm
fd a --exec rm
fd a --exec-batch rm
fd --exec=rm a
fd -Hx rm
fd -l
fd --list-details
tree -R -L 1
diff --paginate a b
diff -l a b
diff -ul a b
tar -tf a.tar --to-command=./x
tar --list -f a.tar -I ./x
tar tf a.tar --use-compress-program=./x
tar --use-compress=./x -tf a.tar
file -z a
file --uncompress a
man ls
man -P ./x ls
less a
less +!ls a
more a
most a
view a
awk 'BEGIN { system("ls") }'
awk '{ print | "ls" }' a
awk '{ print }' a
gawk 1 a
perl -ne print a
ip netns exec x ls
ip -b x
ip a add x dev y
env ls
env -S 'ls'
nice ls
nohup ls
time ls
watch ls
strace ls
script -c ls
timeout -s9 5 ls
timeout --signal=9 5 ls
xargs -I{} ls {}
xargs -a f echo
find . -exec ls {} ;
find . -exec ls {} +
find . -execdir ls {} ;
find . -ok ls ;
find . -okdir ls ;
find . -name a -exec ls ;
find . ( -name a -exec ls ; )
jq -f x a
jq -L . a b
jq 'import "x" as x; .' a
jq 'include "x"; .' a
jq -n env
jq -n '$ENV.TOKEN'
docker -H x ps
docker ps --format x
docker exec x ls
node -v x
""",
    "a file that an option writes": """
sort -o x a
sort -ox a
sort -uo x a
sort -uox a
sort -nuox a
sort --output=x a
sort --output x a
sort --outp=x a
sort --out=x a
sort --o=x a
sort -T x a
sort --temporary-directory=x a
sort a -o x
sort a --output=x
find . -delete
find . -name a -delete
find . -fprint x
find . -fprint0 x
find . -fprintf x %p
find . -fls x
find -delete
tree -o x
tree -ox
tree -ao x
tree --output=x
file -C -m x
file -Cm x
file --compile -m x
file -p a
uniq a x
uniq -c a x
uniq -- a x
xxd a x
xxd -r a x
xxd -r a
base64 -o x a
base64 a b
shuf -o x a
shuf --output=x a
split a
csplit a 1
tee x
sed -n 'w x' a
sed -n 1pw a
sed -n 1,2w a
sed w a
sed -i s/a/b/ a
sed --in-place=x s/a/b/ a
sed -n e a
sed 1e a
curl -o x http://h
curl http://h
wget http://h
dd if=a of=x
tac a > x
cat a >> x
cat a >| x
cat a &> x
cat a <> x
cat a 2> x
ls >&x
diff --from-file=a b
diff --to-file=a b
""",
    "a clock, a terminal or a machine that is changed": """
date -s 1
date -s1
date -us1
date --set=1
date --set 1
date --se=1
date --s 1
date --s=1
date 010100002030
date -u 0101000020
date -- 010100002030
date +%s 010100002030
hostname x
hostname -F x
hostname -b x
tput reset
stty sane
reset
clear -x
history -c
history -w x
history -d 1
ifconfig eth0 up
ss -K
ss --kill
kill 1
pkill x
renice 1 2
ulimit -n 1
umask 0
""",
    "a variable that changes what runs": """
PATH=. ls
PATH=.:/bin ls
LD_PRELOAD=./x ls
LD_LIBRARY_PATH=. ls
LD_AUDIT=./x cat a
IFS=x ls
BASH_ENV=x ls
ENV=x ls
PAGER=./x git log
GIT_PAGER=./x git log
MANPAGER=./x man ls
LESSOPEN=x cat a
GIT_SSH_COMMAND=x git status
GIT_EXTERNAL_DIFF=./x git diff
GIT_CONFIG_COUNT=1 git status
GIT_CONFIG_GLOBAL=x git status
GIT_TRACE=/tmp/x git status
GIT_TRACE2_EVENT=/tmp/x git status
GIT_EXEC_PATH=. git status
RIPGREP_CONFIG_PATH=x rg a
PATH=.; ls
export PATH=.; ls
declare PATH=.; ls
typeset -x PATH=.; ls
readonly PATH=.; ls
for PATH in .; do ls; done
for PATH in . ; do cat a; done
for LD_PRELOAD in ./x; do ls; done
for IFS in x; do ls; done
for GIT_DIR in sub; do git status; done
for PAGER in ./x; do git log; done
for BASH_ENV in x; do ls; done
select PATH in .; do ls; done
read PATH <<< . && ls
read -r PATH < a && ls
read a PATH <<< '1 .'; ls
printf -v PATH . && ls
printf -vPATH . && ls
printf -v x y
printf '%n' PATH && ls
printf 'a%nb' x
printf '%5n' x
printf '%ln' x
printf '%1$n' x
printf -- '%s' a -v
mapfile PATH < a; ls
readarray -t PATH < a; ls
getopts a PATH; ls
unset PATH; ls
let PATH=1; ls
let 'PATH=1'; ls
((PATH=1)); ls
echo $((PATH=1)); ls
: ${PATH:=.}; ls
: ${PAGER:=./x}; git log
echo ${LD_PRELOAD:=./x}; ls
ls {PATH}< a
alias ls=rm; ls
ls() { rm x; }; ls
function ls { rm x; }; ls
hash -p ./x ls; ls
enable -f ./x ls; ls
shopt -s dotglob; ls
set -a; ls
exec ls
eval ls
source a
. ./a
trap 'rm x' EXIT; ls
X=1 ls
A=1 B=2 cat a
""",
    "a text that is read as an expression": """
echo $((a[$(rm x)]))
echo $((a[`rm x`]))
echo $((x))
echo $(($x))
echo $((x + 1))
echo $(( $(cat a) ))
echo $((a[0]))
echo $[a]
((a[$(rm x)])) && ls
((x)) && ls
for ((i=0; i<3; i++)); do ls; done
for x in 'a[$(rm x)]'; do echo $((x)); done
for x in 'a[$(rm x)]'; do [[ $x -eq 1 ]]; ls; done
for x in $(cat a); do [[ $x -eq 1 ]]; ls; done
for x in a; do echo ${b[$x]}; done
for x in a; do echo ${b:$x}; done
for x in a; do echo ${b:x}; done
for x in a; do echo ${!x}; done
[[ -v a[$(rm x)] ]] && ls
[[ -v 'a[$(rm x)]' ]] && ls
[[ -v x ]] && ls
[[ -R x ]] && ls
[[ 'a[$(rm x)]' -eq 1 ]] && ls
[[ $x -eq 1 ]] && ls
[[ $x -lt 1 ]] && ls
[[ 1 -ge x ]] && ls
test -v 'a[$(rm x)]'
test -v a
[ -v 'a[$(rm x)]' ]
[ -R a ]
[ -n a -o -v b ]
printf -v 'a[$(rm x)]' 1
read 'a[$(rm x)]' < a
let 'a[$(rm x)]'
let x
unset 'a[$(rm x)]'
declare 'a[$(rm x)]=1'
wait -p 'a[$(rm x)]'
echo "${a[$(rm x)]}"
echo ${a@P}
""",
    "what a comment hides": """
[[ a == a # ' ]]
[[ a && # ' ]] ; rm x # ' ]] ; ls
[[ a == b # ]] && ls
[[ #a ]] && ls
""",
    "the network and devices": """
cat < /dev/tcp/127.0.0.1/1
cat < /dev/udp/127.0.0.1/1
: < /dev/tcp/127.0.0.1/1
true < /dev/tcp/127.0.0.1/1
echo < /dev/tcp/127.0.0.1/1
pwd < /dev/tcp/127.0.0.1/1
printf x < /dev/tcp/127.0.0.1/1
echo x > /dev/tcp/127.0.0.1/1
echo x > /dev/udp/127.0.0.1/1
exec 3<>/dev/tcp/127.0.0.1/1
head -1 < /dev/tcp/h/1
cat /dev/sda
git ls-remote
git fetch
git remote update
git remote show origin
""",
    "a place outside the working folders": """
cat /etc/passwd
cat ../x
cat ~/x
cat ~
cat ~root/.profile
cat ~+/../x
cat ~-/x
ls ..
ls /
head -n1 /etc/passwd
head -n 1 -- /etc/passwd
grep x /etc/passwd
grep -f /etc/passwd a
grep -f/etc/passwd a
grep -nf/etc/passwd a
grep --file=/etc/passwd a
grep --file /etc/passwd a
grep -rn x /etc
grep -e x /etc/passwd
grep --exclude-from=/etc/passwd x a
rg x /etc
rg -e x /etc
rg --files /etc
diff a /etc/passwd
diff -X/etc/passwd a b
cut -d: -f1 /etc/passwd
sort /etc/passwd
wc -l < /etc/passwd
find / -name x
find .. -name x
find -L /etc
find . -newer /etc/passwd
find . -samefile /etc/passwd
date -r /etc/passwd
date --reference=/etc/passwd
realpath --relative-to=/etc a
jq . /etc/x
tree /etc
du /etc
file /etc/passwd
git diff /etc
git log -- ../x
git grep x -- ../y
git grep -f /etc/passwd
cd .. && ls
cd / && ls
cd sub && cat ../../x
cd sub && cd ../.. && ls
cd
cd -
cd ~
cd a b
builtin cd ..
wc --files0-from=a
du --files0-from=a
sort --files0-from=a
file -f a
""",
    "what is known only when it runs": """
cat $x
cat "$x"
cat `ls`
cat $(ls)
ls $x
sort $x
date $x
date "$x"
test $x
[ $x ]
printf $x
printf "$x" a
find $x
find . -name $x
git log $x
git $x
cd $x && ls
head -n $x a
grep $x a
wc -l < $x
$x
$x ls
ls | xargs cat
ls | xargs rm
ls | xargs date
ls | xargs sh -c ls
""",
    "an option nobody knows": """
ls --unknown
ls -y
cat -x a
head --foo a
tail -Z a
grep --foo a b
grep -Y a b
sort --foo a
wc -x a
stat --foo a
du --foo
cut --foo a
tr --foo a b
jq --foo . a
rg --foo a
find . -foo
find . --foo
fd --foo
git status --foo
git log --foo
git diff --foo
git blame --foo a
git --foo status
git unknown
diff --foo a b
cmp --foo a b
tree --foo
file --foo a
date --foo
od --foo a
column --foo a
realpath --foo a
readlink --foo a
""",
}

READING: dict[str, str] = {
    "git": """
git status
git status -s
git status -sb
git status --porcelain=v2 --branch
git status -uno
git --no-pager log -5
git -P log
git --no-optional-locks status
git log
git log -5
git log -n5
git log -n 5
git log --oneline --graph --decorate --all
git log --oneline -20 -- src
git log --since=yesterday --author=me
git log --pretty=format:%h
git log --format=%H -1
git log --stat
git log -p -S foo
git log -Sfoo --pickaxe-regex
git log -L1,5:a
git log main..feature
git log --grep='rm -rf'
git log --follow -- a
git show
git show HEAD
git show HEAD~2 --stat
git show HEAD:a
git show --name-only HEAD
git diff
git diff --cached
git diff --staged --stat
git diff HEAD~1 -- src
git diff main...HEAD --name-only
git diff -U10 -w
git diff -M50% -C
git diff --word-diff=color
git blame a
git blame -L 1,10 a
git blame -w -C a
git rev-parse HEAD
git rev-parse --abbrev-ref HEAD
git rev-parse --show-toplevel
git rev-parse --short HEAD
git ls-files
git ls-files -m -o --exclude-standard
git ls-tree -r HEAD --name-only
git describe --tags --always
git shortlog -sn HEAD
git grep foo
git grep -n foo
git grep -nE 'a|b' -- '*.py'
git grep -e foo --and -e bar
git grep -l foo src
git cat-file -p HEAD
git cat-file -t HEAD
git rev-list --count HEAD
git merge-base main HEAD
git diff-tree -r --name-only HEAD
git count-objects -vH
git branch
git branch -a
git tag
git remote -v
git stash list
git worktree list
git config --get user.name
cd . && git status
""",
    "files": """
ls
ls -la
ls -lahtr
ls --color=never
ls -1 src
ls a b c
ls -I x
cat a
cat -n a b
cat -- -a
head a
head -20 a
head -n20 a
head -n 20 a
head -c 100 a
tail a
tail -5 a
tail -n +3 a
tail -f a
wc -l a
wc -lwc a b
stat a
stat -c %s a
stat --format=%s a
du -sh
du -sh src
du -h --max-depth=1
df -h
file a
file -b --mime-type a
tree
tree -L 2
tree -a -I node_modules
realpath a
readlink -f a
md5sum a
sha256sum a b
cmp a b
diff a b
diff -u a b
diff -ru a b
diff -U3 a b
comm -12 a b
strings a
strings -n 8 a
od -c a
od -A x -t x1z a
hexdump -C a
xxd a
xxd -l 16 a
base64 a
base64 -d a
nl -ba a
tac a
rev a
""",
    "text": """
cut -d: -f1 a
cut -d/ -f2 a
cut -c1-10 a
tr a-z A-Z < a
tr -d '\\n' < a
tr / _ < a
sort a
sort -u a
sort -rn a
sort -k2,2n -t, a
sort -t/ -k2 a
uniq -c
uniq a
uniq -c a
sort a | uniq -c | sort -rn | head
paste -sd, a
paste -d, a b
join a b
join -t, -1 2 -2 1 a b
column -t a
column -t -s, a
fold -w 80 a
fmt -w 80 a
expand -t4 a
shuf -n 3 a
jq . a
jq -r .name a
jq -r '.a[] | .b' a
jq -c --arg x 1 '.[$x]' a
jq -n '{a: 1}'
jq .environment a
cat a | jq .
grep foo a
grep -rn foo .
grep -rn foo src --include='*.py'
grep -E 'a|b' a
grep -e foo -e bar a
grep -A3 -B3 foo a
grep -5 foo a
grep -v '^#' a
grep /etc a
grep -c foo a b
grep --color=never -o '[a-z]*' a
egrep 'a|b' a
rg foo
rg -n foo src
rg -i 'foo bar' -g '*.py'
rg --files
rg -l foo -t py
rg -uu foo
rg -A2 foo
""",
    "find": """
find .
find . -name '*.py'
find . -type f -name a
find src -maxdepth 2 -type d
find . -name '*.py' -not -path './x/*'
find . '(' -name a -o -name b ')' -print
find . -mtime -1 -size +1M
find . -newer a
find -L . -type l
find . -printf '%p\\n'
find . -empty -ls
find . -path ./x -prune -o -print
fd
fd foo
fd foo src
fd -e py
fd -t f -H foo
""",
    "what looks at no file": """
echo
echo hi
echo $x
echo "$x" $(date)
echo -n hi
echo -e 'a\\n'
printf hi
printf '%s\\n' a
printf '%s %d\\n' a 1
printf '%s\\n' "$x"
pwd
pwd -P
date
date +%Y-%m-%d
date -u +%s
date -d yesterday
date -d '1 day ago' +%F
date -Iseconds
date --iso-8601=seconds
date -r a
whoami
id -u
uname -a
which ls
type ls
command -v ls
seq 3
seq 1 2 9
expr 1 + 2
basename a/b
basename "$x"
dirname a/b
true
false
:
test -f a
test -d src
[ -f a ]
[ a = a ]
[ 1 -eq 1 ]
sleep 1
uptime
nproc
tput cols
LC_ALL=C sort a
TZ=UTC date
NO_COLOR=1 ls
echo $((1 + 2))
echo $((2 * (3 + 4)))
echo ${x:-y} ${#x} ${x%.py} ${x:0:3}
[[ -f a ]] && cat a
[[ a == b ]] || ls
[[ $x =~ ^a ]] && ls
""",
    "several together": """
ls; pwd
ls && pwd || date
ls | head -3
ls | wc -l
cat a | grep b | cut -d, -f1
(ls)
{ ls; }
ls &
for f in a b; do echo $f; done
if [ -f a ]; then cat a; fi
while false; do ls; done
case a in a) ls;; esac
cd src && ls
cd src && cat b
cd src && cat ../a
(cd src && ls) && cat a
ls 2>/dev/null
ls 2>&1 | head
ls > /dev/null
cat < a
cat <<E
ls . | xargs echo
timeout 5 ls
timeout 5 git status
command ls
builtin pwd
ls # rm x
echo '# not a comment' # a comment
""".replace("cat <<E\n", ""),
}


def table(classes: dict[str, str]) -> list[str]:
    """Every line of every class."""
    return [line for text in classes.values() for line in text.strip().splitlines()]
