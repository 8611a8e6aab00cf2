"""Patterns that name flags: wherever the flag stands and however it is spelt, as text and as a program's real words."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest

from hookline.core.hooks.condition import RuleMatch
from hookline.core.shell import parse_line
from hookline.guards.commands import matches_command, pattern_of

TABLE = """
patterns: git push --force* | git push --force | git push --force * | git push -f | git push -f*
held: git push --force | git push -f | git push origin main --force | git push origin main -f | git push -uf origin
    x | git push -u --force origin x | git push origin +main | git push origin +HEAD:main | git push --forc origin
    main | git -C sub push origin --force | git -c user.name=x push -f | git push --mirror origin | git push -qfu
    origin x | git push --force-with-lease origin main | git push --force-with-lease=main:abc origin | git push
    origin -f -- main
passed: git push | git push origin main | git push -u origin main | git push --tags | git fetch --force | git push
    origin HEAD:main | git commit -m 'git push --force'

patterns: rm -rf | rm -rf* | rm -rf * | rm --recursive --force | rm -fr * | rm -R --force*
held: rm -rf x | rm -r -f x | rm x -rf | rm --recursive x --force | rm -Rf x | rm --rec --for x | grm -R -f x
passed: rm -r x | rm -f x | rm x | rm -i x | rmdir x

patterns: git commit --no-verify | git commit --no-verify* | git commit -n
held: git commit -m x -n | git commit -nm x | git commit --no-verify -m x | git commit -an -m x | git commit
    --no-veri
passed: git commit -m x | git commit -am x | git push -n | git log -n 3

patterns: git branch -D * | git branch -D | git branch --delete --force
held: git branch -D x | git branch -d -f x | git branch --delete x --force | git branch -df x
passed: git branch -d x | git branch x | git branch -f x HEAD

patterns: git push --delete* | git push -d *
held: git push origin --delete x | git push -d origin x | git push origin :x | git push --mirror
passed: git push origin x | git push -f origin x | git branch -d x

patterns: git reset --hard* | git reset --hard
held: git reset --hard | git reset HEAD~1 --hard | git reset --har
passed: git reset | git reset --soft HEAD~1

patterns: terraform apply -auto-approve | terraform apply --auto-approve*
held: terraform apply -auto-approve | terraform apply -var x=1 --auto-approve | terraform apply -auto-approve=true
passed: terraform apply | terraform plan -out x

patterns: find * -exec * | find * -exec
held: find . -name x -exec cat {} ;
passed: find . -xtype f -ctime 1 -name x

patterns: find * -delete
held: find . -name x -delete | find . -delete -name x
passed: find . -name x

patterns: kill -9 * | kill -9
held: kill -9 1 | kill -KILL 1 | kill -SIGKILL 1 | kill -s KILL 1 | kill -s 9 1 | kill -n 9 1
passed: kill 1 | kill -TERM 1 | kill -s TERM 1

patterns: docker run --privileged* | docker run --privileged
held: docker run --privileged x | docker run -it --privileged=true x | docker run --rm --privileged x sh
passed: docker run x | docker run -p 80:80 x

patterns: docker run --network=host* | docker run --network=host
held: docker run --network=host x | docker run --network host x | docker run --rm --net=host x | docker run --net
    host x
passed: docker run --network=none x | docker run x

patterns: curl -k* | curl --insecure
held: curl -k u | curl -sk u | curl u --insecure | curl --insec u
passed: curl u | curl -s u

patterns: curl -X DELETE * | curl --request=DELETE*
held: curl -X DELETE u | curl -XDELETE u | curl --request DELETE u | curl -s --request=DELETE u | curl -sX DELETE u
passed: curl -X GET u | curl u

patterns: sudo -u root *
held: sudo -u root ls | sudo -uroot ls | sudo --user root ls | sudo --user=root ls
passed: sudo -u me ls | sudo ls

patterns: chmod -R 777 *
held: chmod -R 777 x | chmod 777 -R x | chmod --recursive 777 x
passed: chmod 777 x | chmod -R 755 x

patterns: npm publish --force | npm publish -f
held: npm publish --force | npm publish . -f
passed: npm publish

patterns: npm install -g * | npm install --global*
held: npm install -g x | npm install x --global | npm install x --location=global
passed: npm install x

patterns: kubectl delete --force*
held: kubectl delete pod x --force | kubectl delete --force=true pod x
passed: kubectl delete -f x.yaml | kubectl get pods

patterns: * --force
held: npm i --force | kubectl delete x --force | made-up x --force | made-up -f
passed: npm i | made-up x

patterns: made-up --force* | made-up -f
held: made-up x --force | made-up -f x | made-up --forc | made-up -vf
passed: made-up x

patterns: made-up --wipe | made-up --wipe*
held: made-up x --wipe | made-up --wip | made-up -wipe x | made-up --wipe=yes
passed: made-up x | made-up -w x

patterns: apt-get install -y*
held: apt-get install x --yes | apt-get -y install x | apt-get install -qqy x
passed: apt-get install x
"""
"""Patterns that mean the same, lines that they hold for, and lines that they leave alone."""


def rows() -> Iterator[tuple[list[str], list[str], list[str]]]:
    """The table's rows: patterns, lines they hold for, lines they leave alone."""
    for row in TABLE.strip().split("\n\n"):
        texts = re.split(r"(?:^|\n)(?:patterns|held|passed): ", row)[1:]
        patterns, held, passed = ([cell.strip() for cell in " ".join(text.split()).split("|")] for text in texts)
        yield patterns, held, passed


def matched(pattern: str, line: str) -> dict[str, bool]:
    """Whether a pattern holds for a line: as text, and for a program that starts with those words."""
    read = pattern_of(pattern)
    words = shlex.split(line)
    return {
        "text": any(matches_command(read, part) is RuleMatch.YES for part in parse_line(line).commands),
        "confined": read.command.takes(words[0], words[1:]),
    }


def test_a_flag_is_found_wherever_it_stands_and_however_it_is_spelt() -> None:
    """With or without a star behind it; and lines without that flag are left alone."""
    wrong = [
        f"`{pattern}` on `{line}` as {way}: {found}"
        for patterns, held, passed in rows()
        for pattern in patterns
        for line, expected in [*((line, True) for line in held), *((line, False) for line in passed)]
        for way, found in matched(pattern, line).items()
        if found is not expected
    ]

    assert wrong == []


@pytest.mark.parametrize("line", ["git push $x", "git push origin $x", "git push origin main $(cat flags)"])
def test_a_flag_that_may_still_come_is_a_doubt(line: str) -> None:
    """What a word holds is known only when the line runs."""
    (part,) = [part for part in parse_line(line).commands if part.name == "git"]

    assert matches_command(pattern_of("git push --force*"), part) is RuleMatch.MAYBE
