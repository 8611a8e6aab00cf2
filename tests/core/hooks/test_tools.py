"""What rules know of tools."""

from hookline.core.hooks.condition import ALIASES, ARGUMENTS, EDITING, OTHER_NAMES, READING, canonical


def test_whoever_edits_or_reads_has_a_path() -> None:
    """A rule for `Edit(src/**)` could not be held against a tool without one."""
    assert {ARGUMENTS[tool].kind for tool in EDITING | READING} == {"path", "folder"}


def test_a_tool_has_one_name_whatever_it_is_called() -> None:
    """Either name finds the other."""
    assert [(canonical(old), canonical(new), OTHER_NAMES[old], OTHER_NAMES[new]) for old, new in ALIASES.items()] == [
        (new, new, new, old) for old, new in ALIASES.items()
    ]
