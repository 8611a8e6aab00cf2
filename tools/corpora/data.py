"""Reading the collections from a folder: a checkout, or a git directory without one."""

from __future__ import annotations

import io
import json
import re
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml


class Payload(NamedTuple):
    """A line of GTFOBins: its program, what it is for, and whether it waits to be connected to."""

    program: str
    function: str
    line: str
    waits: bool = False


def read(folder: Path, below: str) -> Iterator[tuple[str, str]]:
    """Every file below a path, by name, in order."""
    if not (folder / "HEAD").is_file():
        for path in sorted((folder / below).rglob("*")):
            if path.is_file():
                yield path.name, path.read_text(errors="replace")
        return
    command = ["git", "--git-dir", str(folder), "archive", "HEAD", below]
    packed = subprocess.run(command, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in sorted(archive.getmembers(), key=lambda member: member.name):
            if (file := archive.extractfile(member)) is not None:
                yield member.name.rpartition("/")[2], file.read().decode(errors="replace")


def gtfobins(folder: Path) -> list[Payload]:
    """The payloads as a user without further rights would run them, each once."""
    found: dict[Payload, None] = {}
    for program, text in read(folder, "_gtfobins"):
        pages = yaml.safe_load_all(text)
        page: dict[str, Any] = next((page for page in pages if page), {})
        for function, rows in page.get("functions", {}).items():
            for row in rows or ():
                waits = "tcp-client" in (row.get("receiver"), row.get("connector"))
                found |= dict.fromkeys(Payload(program, function, line, waits) for line in _lines(row))
    return list(found)


def _lines(row: dict[str, Any]) -> list[str]:
    contexts = {name: given["code"] for name, given in (row.get("contexts") or {}).items() if given and "code" in given}
    own = [row["code"]] if row.get("code") else []
    return (
        list(dict.fromkeys([*own, *([contexts["unprivileged"]] if "unprivileged" in contexts else [])]))
        or [*contexts.values()][:1]
    )


def redcode(folder: Path) -> list[tuple[int, str]]:
    """RedCode-Exec's bash scripts, each with the number of its kind."""
    rows = [
        (int(row["Index"].partition("_")[0]), row["Code"])
        for _, text in read(folder, "dataset/RedCode-Exec/bash2text_dataset_json")
        for row in json.loads(text)
    ]
    return sorted(rows, key=lambda row: row[0])


def tldr(folder: Path) -> list[str]:
    """Every example command of the English pages for all systems and for Linux, placeholders filled in."""
    found: dict[str, None] = {}
    for below in ("pages/common", "pages/linux"):
        for _, text in read(folder, below):
            rows = [line.strip() for line in text.splitlines()]
            lines = [line[1:-1] for line in rows if len(line) > 2 and line.startswith("`") and line.endswith("`")]
            found |= dict.fromkeys(re.sub(r"\{\{(.*?)\}\}", _filled, line) for line in lines)
    return list(found)


def _filled(placeholder: re.Match[str]) -> str:
    text = placeholder[1]
    if text.startswith("[") and text.endswith("]") and "|" in text:
        text = text[1:-1]
    return text.partition("|")[0].replace("...", "").replace("…", "").strip() or "x"
