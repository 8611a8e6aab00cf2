"""Files → hooks: `load` reads settings, `Trust` knows which of them may run, `Reloader` notices edits."""

from hookline.settings.files import Markdown, Problem, parse_markdown, read_markdown
from hookline.settings.load import LoadedSettings, Skill, load
from hookline.settings.parse import ParsedSettings, parse_hooks
from hookline.settings.policy import File, Permissions, Switches
from hookline.settings.sources import SettingsFolders, SettingsSource, places
from hookline.settings.trust.store import Item, Policy, Status, Trust, ensure, items_of, trust_file
from hookline.settings.watcher import Reloader, SettingsChange

__all__ = [
    "File",
    "Item",
    "LoadedSettings",
    "Markdown",
    "ParsedSettings",
    "Permissions",
    "Policy",
    "Problem",
    "Reloader",
    "SettingsChange",
    "SettingsFolders",
    "SettingsSource",
    "Skill",
    "Status",
    "Switches",
    "Trust",
    "ensure",
    "items_of",
    "load",
    "parse_hooks",
    "parse_markdown",
    "places",
    "read_markdown",
    "trust_file",
]
