"""Files → hooks: `load` reads settings, `Trust` knows which of them may run, `Reloader` notices edits."""

from hookline.config.frontmatter import Markdown, parse_markdown, read_markdown
from hookline.config.load import File, Loaded, Skill, load
from hookline.config.parse import Parsed, parse_hooks
from hookline.config.problems import Problem
from hookline.config.sources import Places, Source, places
from hookline.config.switches import Permissions, Switches
from hookline.config.trust import Item, Policy, Status, Trust, ensure, items_of, trust_file
from hookline.config.watch import Change, Reloader

__all__ = [
    "Change",
    "File",
    "Item",
    "Loaded",
    "Markdown",
    "Parsed",
    "Permissions",
    "Places",
    "Policy",
    "Problem",
    "Reloader",
    "Skill",
    "Source",
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
