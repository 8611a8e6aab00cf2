"""`python -m tools.extras`: what each extra adds to a bare install, in megabytes, as this environment has it."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution, metadata


def needs(name: str, extras: frozenset[str], seen: set[str]) -> set[str]:
    """The distributions that one brings along, itself included; those that are not installed are left out."""
    key = re.sub(r"[-_.]+", "-", name).lower()
    if key in seen and not extras:
        return seen
    try:
        rows = distribution(key).requires or ()
    except PackageNotFoundError:
        return seen
    seen.add(key)
    for row in rows:
        text, _, marker = row.partition(";")
        wanted = re.search(r"extra == ['\"]([\w.-]+)['\"]", marker)
        if (wanted is None and "extra" not in marker) or (wanted is not None and wanted[1] in extras):
            found = re.match(r"\s*([\w.-]+)(?:\[([\w.,-]+)\])?", text)
            if found and not ("sys_platform == 'win32'" in marker or 'sys_platform == "win32"' in marker):
                needs(found[1], frozenset((found[2] or "").split(",")) - {""}, seen)
    return seen


def megabytes(names: set[str]) -> float:
    """The size of their files."""
    paths = (path for name in names for path in distribution(name).files or ())
    return sum(path.locate().stat().st_size for path in paths if path.locate().exists()) / 1e6  # type: ignore[attr-defined]


def main() -> None:
    """Print a row for each extra."""
    bare = needs("hookline", frozenset(), set())
    for extra in metadata("hookline").get_all("Provides-Extra") or ():
        brought = needs("hookline", frozenset({extra}), set()) - bare
        print(f"{extra:<16} {megabytes(brought):7.0f} MB  {len(brought):3} packages")


if __name__ == "__main__":
    main()
