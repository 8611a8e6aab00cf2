"""Files → hooks: `load` reads settings, `Trust` knows which of them may run, `Reloader` notices edits."""

from hookline.settings.files import Problem
from hookline.settings.load import LoadedSettings, load
from hookline.settings.parse import parse_hooks
from hookline.settings.trust.store import Policy, Status, Trust
from hookline.settings.watcher import Reloader

__all__ = ["LoadedSettings", "Policy", "Problem", "Reloader", "Status", "Trust", "load", "parse_hooks"]
