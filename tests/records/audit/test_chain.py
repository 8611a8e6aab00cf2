"""The chain: any edit is found, and found where it was made."""

import random

import pytest

from hookline.records.audit.chain import Link, chain_line, follow, link_before, link_of

RECORDS = [{"event": "PreToolUse", "tool": "Bash", "input": {"command": f"echo {n}"}} for n in range(20)]


def chained(key: bytes | None = None) -> list[bytes]:
    last, lines = Link(), []
    for record in RECORDS:
        line, last = chain_line(record, last, key)
        lines.append(line)
    return lines


def problems(lines: list[bytes], key: bytes | None = None) -> list[tuple[int, str]]:
    found = enumerate(follow(lines, Link(), key), 1)
    return [(number, problem) for number, (_, problem) in found if problem is not None]


def test_an_untouched_chain_holds() -> None:
    """Nothing is wrong with what was written."""
    assert problems(chained()) == []
    assert problems(chained(b"key"), b"key") == []


@pytest.mark.parametrize("where", [0, 7, 18])
def test_a_removed_line_is_missed_where_it_stood(where: int) -> None:
    """One removed line is one problem, at the line that came after it."""
    lines = chained()
    del lines[where]

    assert problems(lines) == [(where + 1, f"record {where + 1} is missing: found record {where + 2}")]


def test_two_swapped_lines_are_found() -> None:
    """Neither of them may change places."""
    lines = chained()
    lines[4], lines[5] = lines[5], lines[4]

    assert [number for number, _ in problems(lines)] == [5, 6, 7]


def test_a_line_put_in_twice_is_found() -> None:
    """A copy of a good line is not good."""
    lines = chained()
    lines.insert(4, lines[3])

    assert problems(lines)[0] == (5, "out of order: found record 4 after record 4")


def test_any_changed_byte_is_found_at_its_line() -> None:
    """Wherever a byte is changed (seq, prev, hash, newline or text), that line is named first."""
    chance = random.Random(7)
    whole = b"".join(chained())
    line_ends = [i for i, byte in enumerate(whole) if byte == 10]
    for at in [*range(400), *line_ends, *(chance.randrange(len(whole)) for _ in range(400))]:
        byte = chance.choice([b for b in (0, 10, 32, 48, 49, 65, 125, 255, whole[at] ^ 1) if b != whole[at]])
        changed = whole[:at] + bytes([byte]) + whole[at + 1 :]
        found = problems(changed.splitlines(keepends=True) if byte != 13 else [changed])

        assert found, at
        assert found[0][0] == whole[:at].count(b"\n") + 1, at


def test_without_the_key_the_chain_cannot_be_redone() -> None:
    """Somebody who edits a line and redoes every hash is found out all the same."""
    forged = chained(key=None)

    assert [number for number, _ in problems(forged, b"key")] == list(range(1, 21))


def test_a_record_cannot_name_its_own_place() -> None:
    """Whatever a record calls `seq`, `prev` or `hash`, the chain's own count."""
    line, last = chain_line({"seq": 99, "prev": "x", "hash": "y", "event": "Stop"}, Link())

    assert (link_of(line), link_before(line)) == (last, Link())
    assert last.seq == 1
