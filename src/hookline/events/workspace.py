"""Events of the workspace: settings, instructions, folders, files and worktrees."""

from __future__ import annotations

from typing import ClassVar

from hookline.events.base import Event


class ConfigChange(Event, frozen=True, kw_only=True, eq=False):
    """A settings file changed and is about to take effect."""

    subject_field: ClassVar[str | None] = "source"

    source: str = "project_settings"
    file_path: str | None = None


class InstructionsLoaded(Event, frozen=True, kw_only=True, eq=False):
    """A file of instructions was read into the conversation."""

    subject_field: ClassVar[str | None] = "load_reason"

    file_path: str = ""
    memory_type: str = "Project"
    load_reason: str = "session_start"
    globs: list[str] | None = None
    trigger_file_path: str | None = None
    parent_file_path: str | None = None


class CwdChanged(Event, frozen=True, kw_only=True, eq=False):
    """The agent works in another folder from now on."""

    old_cwd: str = ""
    new_cwd: str = ""


class FileChanged(Event, frozen=True, kw_only=True, eq=False):
    """A watched file was changed, added or removed; a matcher looks at its base name."""

    subject_field: ClassVar[str | None] = "file_name"

    file_path: str = ""
    event: str = "change"

    @property
    def file_name(self) -> str:
        """The last part of `file_path`."""
        return self.file_path.replace("\\", "/").rpartition("/")[2]


class DirectoryAdded(Event, frozen=True, kw_only=True, eq=False):
    """The agent may work in one more folder."""

    directory: str = ""
    source: str = "slash_command"


class WorktreeCreate(Event, frozen=True, kw_only=True, eq=False):
    """A git worktree is wanted; a hook may make it and answer with its path."""

    name: str = ""


class WorktreeRemove(Event, frozen=True, kw_only=True, eq=False):
    """A git worktree is about to be removed."""

    worktree_path: str = ""
