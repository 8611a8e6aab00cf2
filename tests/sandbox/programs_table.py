"""Programs that write outside in ways of their own: git, editors, archivers, compilers, interpreters, shells; one line each."""

from __future__ import annotations

LINES = r"""
git init -q; git config core.hooksPath hooks; mkdir hooks; printf '#!/bin/sh\ntouch $OUT/new\n' > hooks/post-checkout; chmod +x hooks/post-checkout; git commit -qm x --allow-empty; git checkout -qb y
git init -q; git config core.fsmonitor 'touch /tmp/arena/outside/new; true'; git status
git init -q; printf '* diff=x\n' > .gitattributes; git add notes.txt; echo y >> notes.txt; git -c diff.x.textconv='touch /tmp/arena/outside/new; cat' diff
git init -q; git add notes.txt; git commit -qm x; printf 'notes.txt merge=x\n' > .gitattributes; git -c merge.x.driver='touch /tmp/arena/outside/new' merge-file -p notes.txt notes.txt notes.txt; touch $OUT/new
GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.editor GIT_CONFIG_VALUE_0='touch /tmp/arena/outside/new;:' git init -q; GIT_EDITOR='touch /tmp/arena/outside/new;:' git commit --allow-empty
GIT_CONFIG_GLOBAL=$OUT/new git config --global a.b c
GIT_INDEX_FILE=$OUT/new git init -q; GIT_INDEX_FILE=$OUT/new git add notes.txt
GIT_OBJECT_DIRECTORY=$OUT/objects git init -q; GIT_OBJECT_DIRECTORY=$OUT/objects git add notes.txt
GIT_TRACE2_EVENT=$OUT/new git status
git init -q; git -C . config --file ~/.gitconfig x.y z
git init -q --separate-git-dir=$OUT/repo .
git init -q; git bundle create $OUT/new --all; git commit -qm x --allow-empty; git bundle create $OUT/new --all
git init -q; git add notes.txt; git commit -qm x; git archive -o $OUT/new.tar HEAD
git init -q; git add notes.txt; git commit -qm x; git format-patch -1 --root -o $OUT
git init -q; git add notes.txt; git commit -qm x; git checkout-index -a --prefix=$OUT/
git init -q; git add notes.txt; git commit -qm x; git --work-tree=$OUT checkout -f HEAD -- notes.txt
git init -q; git add notes.txt; git commit -qm x; git clone -q . $OUT/clone
git init -q; git add notes.txt; git commit -qm x; git clone -q --bare . ../bare.git
git init -q; git submodule add -q ../../outside sub; git clone -q . ../c; git -c core.worktree=$OUT status; git -c core.worktree=$OUT checkout-index -a; touch $OUT/new
env -S"touch $OUT/new"
env -C $OUT touch new
env --chdir=$OUT touch new
make -C $OUT -f - <<< 'all:;touch new'
make -f - <<< '$(file >/tmp/arena/outside/new,x)'
make -f - <<< 'all:;@cp notes.txt $$OUT/new'
awk 'BEGIN{system("touch $OUT/new")}'
awk 'BEGIN{printf "x" > "/tmp/arena/outside/new"}'
awk 'BEGIN{print "x" | "cat > $OUT/new"}'
find . -maxdepth 0 -fprintf $OUT/new x
find . -maxdepth 0 -fls $OUT/new
find $OUT -name file -delete
find $OUT -type f -exec sed -i s/a/b/ {} +
xargs -I{} touch {}/new <<< $OUT
xargs -n1 -P4 touch <<< "$OUT/a $OUT/b"
busybox touch $OUT/new || touch $OUT/new
/lib64/ld-linux-x86-64.so.2 /usr/bin/touch $OUT/new
LD_LIBRARY_PATH=. /lib64/ld-linux-x86-64.so.2 --argv0 x /bin/sh -c 'echo > $OUT/new'
perl -e 'syscall(90, "$ENV{OUT}/file", 0)'
perl -e 'syscall(85, "$ENV{OUT}/new", 0600)'
perl -e 'use POSIX; POSIX::mkfifo("$ENV{OUT}/new", 0600)'
perl -MFile::Copy -e 'copy("notes.txt", "$ENV{OUT}/new")'
perl -i -pe 's/a/b/' $OUT/file
perl -e 'chmod 0, "$ENV{OUT}/file"'
perl -e 'utime 1, 1, "$ENV{OUT}/file"'
perl -e 'rename "$ENV{OUT}/file", "$ENV{OUT}/new"'
perl -e 'symlink "x", "$ENV{OUT}/new"'
printf '#!/usr/bin/env -S bash -e\ntouch $OUT/new\n' > 'a b'; chmod +x 'a b'; './a b'
printf '#!/bin/sh   -x  \ntouch $OUT/new\n' > s; chmod +x s; ./s
sed -i.bak s/a/b/ $OUT/file
sed "w $OUT/new" notes.txt
sed "1e touch $OUT/new" notes.txt
sed -n "s/some/touch \/tmp\/arena\/outside\/new #/ep" notes.txt
tar cf x.tar notes.txt; tar xf x.tar --to-command='touch $OUT/new'
tar cf x.tar notes.txt; tar xf x.tar -C $OUT
tar cf x.tar notes.txt; tar xPf x.tar --transform="s,^,$OUT/,"
tar cf $OUT/new.tar notes.txt
tar --use-compress-program='tee /tmp/arena/outside/new' -cf x.tar notes.txt
tar -cf x.tar --index-file=$OUT/new -v notes.txt
tar -g $OUT/new -cf x.tar notes.txt
ln -s $OUT up; tar cf x.tar notes.txt --transform=s,^,up/,; tar xf x.tar --keep-directory-symlink
python3 -c 'import tarfile, os, io; t = tarfile.open("e.tar", "w"); i = tarfile.TarInfo("../../outside/new"); t.addfile(i); t.close()'; tar xPf e.tar
vim -es -c "call writefile(['x'], '/tmp/arena/outside/new')" -c q
vim -es -c "call system('touch /tmp/arena/outside/new')" -c q
vim -es -c "redir! > /tmp/arena/outside/new" -c q
vim -u NONE -es --cmd 'set directory=/tmp/arena/outside' -c 'w' -c q notes.txt; touch $OUT/new
ssh -o ProxyCommand='touch /tmp/arena/outside/new' x
ssh -o PermitLocalCommand=yes -o KnownHostsCommand='/bin/touch /tmp/arena/outside/new' x; touch $OUT/new
ssh -E $OUT/new x
ssh-keygen -q -N '' -f $OUT/new
ssh-keygen -q -N '' -t ed25519 -f ~/.ssh/new
ssh-keygen -R x -f $OUT/file; ssh-keygen -H -f $OUT/file; touch $OUT/file
scp notes.txt $OUT/new
GNUPGHOME=$OUT/gpg gpg --list-keys; mkdir $OUT/gpg; GNUPGHOME=$OUT/gpg gpg --list-keys
gpg --list-keys
gpg --batch --passphrase '' --quick-gen-key x@y default default never; sleep 0.5
gpg -o $OUT/new --enarmor notes.txt
openssl genrsa -out $OUT/new 512
openssl req -x509 -newkey rsa:1024 -nodes -subj /CN=x -keyout $OUT/k -out $OUT/c
sqlite3 $OUT/new.db 'create table t(a)'
sqlite3 :memory: ".output $OUT/new" 'select 1'
sqlite3 :memory: ".shell touch $OUT/new"
sqlite3 :memory: "attach '$OUT/new' as x; create table x.t(a)"
sqlite3 :memory: "select writefile('$OUT/new', 'x')"
sqlite3 x.db 'create table t(a)'; sqlite3 x.db "vacuum into '$OUT/new'"
gdb -batch -ex "shell touch $OUT/new"
gdb -batch -ex "python open('/tmp/arena/outside/new', 'w')"
gdb -batch -ex 'set logging file /tmp/arena/outside/new' -ex 'set logging enabled on'
strace -o $OUT/new true
strace -f touch $OUT/new
strace -E X=1 -o "|touch $OUT/new" true
gcc -x c -c /dev/null -o $OUT/new
gcc -x c /dev/null -fdump-tree-all -dumpdir $OUT/ -c -o x.o
gcc -x c -MD -MF $OUT/new -c /dev/null -o x.o
gcc -fplugin=x -x c /dev/null; cc -x c - -o x <<< 'int main(){return system("touch $OUT/new");}' && ./x
as -o $OUT/new /dev/null
ld -r -o $OUT/new $(echo | as -o x.o; echo x.o)
objcopy /bin/true $OUT/new
strip -o $OUT/new /bin/true
ar rcs $OUT/new.a notes.txt
npm init -y > /dev/null; npm pack --pack-destination $OUT
npm config set x=y --location=user; npm config set x y
npm init -y; npm pkg set scripts.x="touch $OUT/new"; npm run x
npm --prefix $OUT init -y
npm init -y; npm install --offline -g .
node -e 'require("fs").createWriteStream(process.env.OUT + "/new").end("x")'
node -e 'require("child_process").execSync("touch $OUT/new")'
node -e 'require("child_process").spawn("sh", ["-c", "sleep 0.1; touch $OUT/new"], {detached: true, stdio: "ignore"}).unref()'; sleep 0.5
node -e 'new (require("worker_threads").Worker)("require(\"fs\").writeFileSync(process.env.OUT + \"/new\", \"x\")", {eval: true})'
node -e 'require("fs").cpSync("victim", process.env.OUT + "/new", {recursive: true})'
node -e 'require("fs").promises.appendFile(process.env.OUT + "/file", "x")'
node -e 'require("fs").symlinkSync("x", process.env.OUT + "/new")'
node --cpu-prof --cpu-prof-dir=$OUT -e 1
node --redirect-warnings=$OUT/new -e 'process.emitWarning("x")'
node --report-on-fatalerror -e 'process.report.writeReport(process.env.OUT + "/new")'
NODE_V8_COVERAGE=$OUT/cov node -e 1
python3 -m venv --without-pip $OUT/venv
python3 -m compileall -q -d x victim; python3 -m zipapp victim -m a:b -o $OUT/new.pyz
python3 -m pip download --no-deps -d $OUT x; python3 -m pip config set global.x y
PYTHONPYCACHEPREFIX=$OUT/cache python3 -c 'import tokenize, json.tool'
PYTHONSTARTUP=x python3 -c 'import shelve; shelve.open("/tmp/arena/outside/new")'
python3 -c 'import dbm, os; dbm.open(os.environ["OUT"] + "/new", "c")'
python3 -c 'import logging, os; logging.basicConfig(filename=os.environ["OUT"] + "/new")'
python3 -c 'import tempfile, os; tempfile.mkstemp(dir=os.environ["OUT"])'
python3 -c 'import tempfile; tempfile.mkstemp(dir="/tmp")'
python3 -c 'import faulthandler, os; faulthandler.enable(open(os.environ["OUT"] + "/new", "w"))'
python3 -c 'import cProfile, os; cProfile.run("1", os.environ["OUT"] + "/new")'
python3 -c 'import shutil; shutil.move("notes.txt", "/tmp/arena/outside/")'
python3 -c 'import zipfile; zipfile.ZipFile("/tmp/arena/outside/new.zip", "w").close()'
python3 -c 'import ctypes; ctypes.CDLL(None).system(b"touch $OUT/new")'
python3 -c 'import multiprocessing as m; p = m.get_context("spawn").Process(target=open, args=("/tmp/arena/outside/new", "w")); p.start(); p.join()'
python3 -c 'import asyncio; asyncio.run(asyncio.create_subprocess_shell("touch $OUT/new"))'; sleep 0.3
python3 -c 'import os; os.execl("/bin/sh", "sh", "-c", "touch $OUT/new")'
python3 -c 'import pty; pty.spawn(["touch", "/tmp/arena/outside/new"])'
python3 -c 'import runpy; open("a.py", "w").write("open(\"/tmp/arena/outside/new\", \"w\")"); runpy.run_path("a.py")'
python3 -c 'import sys; exec(sys.stdin.read())' <<< 'open("/tmp/arena/outside/new", "w")'
cargo new $OUT/new --offline
cargo init --offline -q --name x; cargo build --offline -q --target-dir $OUT/target
cargo init --offline -q --name x; printf 'fn main(){std::fs::write("/tmp/arena/outside/new", "x").unwrap();}' > build.rs; cargo build --offline -q
rustc -o $OUT/new - <<< 'fn main(){}'
printf 'fn main(){std::fs::write("/tmp/arena/outside/new", "x").unwrap();}' > m.rs; rustc -o m m.rs && ./m
tmux -L $RANDOM new -d 'touch $OUT/new'; sleep 0.5
TMUX_TMPDIR=$PWD tmux new -d 'touch $OUT/new'; sleep 0.5
split -n 2 notes.txt $OUT/x
csplit -f $OUT/x notes.txt 1
shuf -o $OUT/new notes.txt
uniq notes.txt $OUT/new
sort -T $OUT -o $OUT/new notes.txt
cp --backup notes.txt $OUT/file
cp -l notes.txt $OUT/new
cp -s $PWD/notes.txt $OUT/new
cp --parents victim/deep/file $OUT
cp --reflink=auto notes.txt $OUT/new
mv -T victim $OUT/folder2
mv -b notes.txt $OUT/file
install -d $OUT/new
install -m 777 -t $OUT notes.txt
ln -f notes.txt $OUT/file
ln -sfn x $OUT/folder
ln -sr notes.txt $OUT/new
mkdir -m 777 $OUT/new
mktemp -p $OUT
mktemp $OUT/XXXXXX
mktemp -d -t -p $OUT
TMPDIR=$OUT mktemp
link notes.txt $OUT/new
chmod --reference=notes.txt -R $OUT
chmod u+s $OUT/file
touch -a -d 2001-01-01 -m $OUT/file
touch -c -r /bin/true $OUT/file
truncate -r notes.txt $OUT/file
fallocate -l 99 $OUT/file
dd if=notes.txt of=$OUT/file oflag=append conv=notrunc status=none
tee -a $OUT/file <<< x
rename.ul file new $OUT/file
patch $OUT/file <<< $'--- a\n+++ b\n@@ -1 +1 @@\n-an outside file that nobody may change\n+x\n'
patch -d $OUT -p0 <<< $'--- file\n+++ file\n@@ -1 +1 @@\n-an outside file that nobody may change\n+x\n'
diff -u /dev/null notes.txt > p; patch $OUT/new < p
ed -s $OUT/file <<< $'1d\nw'
ex -s $OUT/file <<< $'1d\nx'
printf 'x' | cat > $OUT/new
cat notes.txt 1<> $OUT/file
echo x 2> $OUT/new >&2
exec {fd}> $OUT/new
exec 1> $OUT/new; echo x
{ echo x; } &>> $OUT/file
coproc tee $OUT/new; echo x >&${COPROC[1]}; sleep 0.2
: ${x:=$(touch $OUT/new)}
PROMPT_COMMAND='touch $OUT/new' bash -i <<< 'true'
ENV=s; echo 'touch $OUT/new' > s; ENV=./s sh -i <<< 'true'
trap 'touch $OUT/new' EXIT
trap 'touch $OUT/new' RETURN; f() { :; }; set -T; f
enable -f x y; touch $OUT/new
history -s x; history -w $OUT/new
fc -p $OUT/new; touch $OUT/new
set -o noclobber; echo x >| $OUT/file
cd $OUT && rm -f file
(cd $OUT; exec rm file)
cd $OUT/folder && cd .. && rm file
cd "$(dirname $OUT)" && rm -rf outside
rm -rf $OUT/*
rm -rf ../../outside
rm -rf ~/.ssh
rm -r -- $OUT/folder
shopt -s globstar; rm -f /tmp/arena/**/file
shopt -s dotglob; rm -rf ~/.b*
dirs -c; pushd -n $OUT; pushd +1; rm file
eval "$(echo 'dG91Y2ggJE9VVC9uZXc=' | base64 -d)"
bash <(echo 'touch $OUT/new')
xxd -r -p <<< 746f756368202f746d702f6172656e612f6f7574736964652f6e6577 | sh || touch $OUT/new
$'\x74ouch' $OUT/new
t${z}ouch $OUT/new
/usr/b?n/touch $OUT/new
chroot / touch $OUT/new
script -qc 'touch $OUT/new' /dev/null
timeout 5 touch $OUT/new
nohup touch $OUT/new
flock $OUT/lock true
flock $OUT/folder touch $OUT/new
logger -f notes.txt; touch $OUT/new
wall x; touch $OUT/new
bash -c 'ulimit -f 0; touch $OUT/new'
curl -s file:///etc/hostname -o $OUT/new
curl -s --dump-header $OUT/new file:///etc/hostname
curl -s -c $OUT/new file:///etc/hostname
curl -s --trace $OUT/new file:///etc/hostname
curl -s --create-dirs -o $OUT/a/b file:///etc/hostname
curl -T notes.txt file:///tmp/arena/outside/new
wget -o $OUT/new http://127.0.0.1:1
mvn -q -Dmaven.repo.local=$OUT/m2 -o validate; touch $OUT/new
bwrap --bind / / touch $OUT/new
bwrap --ro-bind / / --bind $OUT $OUT touch $OUT/new
"""


def lines() -> list[str]:
    """Every line; each changes something outside when it runs bare."""
    return LINES.strip("\n").split("\n")
