"""Read, Write and Edit on real files."""

# ruff: noqa: ASYNC230 - a test may block: nothing else runs on its loop

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hookline.agent.hook_messages import TEXTS
from hookline.agent.tools import Tool, ToolEnv, ToolResult
from hookline.agent.tools.files import Edit, Read, Write

PIXEL = bytes.fromhex("89504e470d0a1a0a")


async def call(tool: Tool, env: ToolEnv, **given: object) -> ToolResult | str:
    """The result, or why `check` refuses the call."""
    valid = tool.validate(given)
    return await tool.check(valid, env) or await tool.run(valid, env)


def file(env: ToolEnv, name: str, content: str) -> str:
    path = Path(env.cwd, name)
    path.write_text(content)
    return str(path)


async def test_a_text_is_read_with_line_numbers(env: ToolEnv) -> None:
    """Numbers, a tab, the line; hooks get the text and how much of it there is."""
    path = file(env, "r.txt", "content\nsecond\n")

    assert await call(Read(), env, file_path=path) == ToolResult(
        "1\tcontent\n2\tsecond\n3",
        {
            "type": "text",
            "file": {"filePath": path, "content": "content\nsecond\n", "numLines": 3, "startLine": 1, "totalLines": 3},
        },
    )


async def test_a_part_is_read(env: ToolEnv) -> None:
    """`offset` is the first line, `limit` how many."""
    path = file(env, "r.txt", "a\nb\nc\nd")

    result = await call(Read(), env, file_path=path, offset=2, limit=2)

    assert isinstance(result, ToolResult)
    assert result.content == "2\tb\n3\tc"


@pytest.mark.parametrize(
    "name,says",
    [
        ("none.txt", "File does not exist. Note: your current working directory is"),
        (".", "EISDIR: illegal operation on a directory"),
        ("binary", "cannot read binary files"),
        ("pipe", "is a device or a pipe"),
        ("big", "exceeds the maximum"),
    ],
)
async def test_what_cannot_be_read_says_why(env: ToolEnv, name: str, says: str) -> None:
    """Missing, a folder, binary, a pipe that would block for ever, far too large."""
    Path(env.cwd, "binary").write_bytes(b"ELF\0\0")
    os.mkfifo(Path(env.cwd, "pipe"))
    with Path(env.cwd, "big").open("wb") as big:
        big.truncate(1 << 30)

    result = await call(Read(), env, file_path=str(Path(env.cwd, name)))

    assert isinstance(result, ToolResult)
    assert result.is_error
    assert says in str(result.content)


async def test_an_image_is_shown(env: ToolEnv) -> None:
    """As a block the model can look at."""
    path = Path(env.cwd, "p.png")
    path.write_bytes(PIXEL)

    result = await call(Read(), env, file_path=str(path))

    assert isinstance(result, ToolResult)
    assert isinstance(result.content, list)
    assert result.content[0]["source"]["media_type"] == "image/png"


async def test_a_new_file_is_written_with_its_folders(env: ToolEnv) -> None:
    """Hooks are told that it is new."""
    path = Path(env.cwd, "a/b/w.txt")

    result = await call(Write(), env, file_path=str(path), content="x\n")

    assert path.read_text() == "x\n"
    assert isinstance(result, ToolResult)
    assert result.response == {
        "type": "create",
        "filePath": str(path),
        "content": "x\n",
        "structuredPatch": [],
        "originalFile": None,
        "userModified": False,
    }


async def test_a_file_must_be_read_before_it_is_changed(env: ToolEnv) -> None:
    """For writing and editing alike, and again when someone else changed it meanwhile."""
    path = file(env, "r.txt", "old")
    edit = {"file_path": path, "old_string": "old", "new_string": "new"}

    assert await call(Write(), env, file_path=path, content="new") == TEXTS["unread"]
    assert await call(Edit(), env, **edit) == TEXTS["unread"]
    await call(Read(), env, file_path=path)
    os.utime(path, ns=(1, 2**62))
    assert await call(Edit(), env, **edit) == TEXTS["stale"]
    assert Path(path).read_text() == "old"


async def test_a_piece_is_replaced(env: ToolEnv) -> None:
    """The default of `replace_all` is filled in before hooks look; the patch says what changed."""
    path = file(env, "r.txt", "content\nsecond\n")
    await call(Read(), env, file_path=path)

    result = await call(Edit(), env, file_path=path, old_string="content", new_string="changed")

    assert Path(path).read_text() == "changed\nsecond\n"
    assert Edit().validate({"file_path": "f", "old_string": "a", "new_string": "b"})["replace_all"] is False
    assert isinstance(result, ToolResult)
    assert result.response["structuredPatch"] == [
        {"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2, "lines": ["-content", "+changed", " second"]}
    ]


async def test_every_piece_is_replaced_on_request(env: ToolEnv) -> None:
    """`replace_all` takes them all."""
    path = file(env, "r.txt", "c c c")
    await call(Read(), env, file_path=path)

    await call(Edit(), env, file_path=path, old_string="c", new_string="d", replace_all=True)

    assert Path(path).read_text() == "d d d"


@pytest.mark.parametrize(
    "old,new,says",
    [
        ("nothere", "x", "String to replace not found in file.\nString: nothere"),
        ("c", "d", "Found 2 matches of the string to replace, but replace_all is false."),
        ("c", "c", "No changes to make: old_string and new_string are exactly the same."),
        ("", "x", "Cannot create new file - file already exists."),
    ],
)
async def test_an_edit_that_cannot_work_is_refused_before_any_hook(env: ToolEnv, old: str, new: str, says: str) -> None:
    """In the words the model knows."""
    path = file(env, "r.txt", "c and c")
    await call(Read(), env, file_path=path)

    refusal = await call(Edit(), env, file_path=path, old_string=old, new_string=new)

    assert isinstance(refusal, str)
    assert refusal.startswith(says)


async def test_mode_links_and_odd_bytes_survive_an_edit(env: ToolEnv) -> None:
    """A script stays executable, a link stays a link, bytes that are no UTF-8 and line ends stay as they are."""
    target, link = Path(env.cwd, "run.sh"), Path(env.cwd, "link.sh")
    target.write_bytes(b"echo \xff\r\nx\r\n")
    target.chmod(0o750)
    link.symlink_to(target)
    await call(Read(), env, file_path=str(link))

    result = await call(Edit(), env, file_path=str(link), old_string="x", new_string="y")

    assert isinstance(result, ToolResult)
    assert result.response["originalFile"] == "echo \ufffd\r\nx\r\n"
    assert target.read_bytes() == b"echo \xff\r\ny\r\n"
    assert target.stat().st_mode & 0o777 == 0o750
    assert link.is_symlink()


async def test_a_write_that_fails_is_an_error_and_leaves_the_file(env: ToolEnv) -> None:
    """A folder in the way is told to the model; no draft is left."""
    Path(env.cwd, "f").write_text("x")

    result = await call(Write(), env, file_path=str(Path(env.cwd, "f", "g")), content="y")

    assert isinstance(result, ToolResult)
    assert result.is_error
    assert sorted(path.name for path in Path(env.cwd).iterdir()) == ["f"]


async def test_half_characters_of_a_model_are_written_as_question_marks(env: ToolEnv) -> None:
    """They stand for no byte, and must not stop the write."""
    path = Path(env.cwd, "w.txt")

    await call(Write(), env, file_path=str(path), content="a \ud800 b")

    assert path.read_text() == "a ? b"
