"""A Python file that defines `hooks = Hooks()`: the way programs other than the user's own get Python hooks."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from hookline.api import Hooks
from hookline.errors import ConfigError


def load_hooks(file: str | Path) -> Hooks:
    """The `hooks` of a Python file; what lies beside the file can be imported by it.

    A file that cannot be imported, whatever it does while it is, is a `ConfigError` that says why.
    """
    path, name = Path(file), str(file)
    if not path.is_file():
        raise ConfigError(name, "no such file; name a Python file that defines `hooks = Hooks()`")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ConfigError(name, "not a Python file; its name must end in `.py`")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # a file that leaves has not said what its hooks are
        raise ConfigError(name, f"cannot be imported: {type(error).__name__}: {error}") from error
    found = getattr(module, "hooks", None)
    if not isinstance(found, Hooks):
        raise ConfigError(name, "defines no `hooks`; write `hooks = Hooks()` and register hooks on it")
    return found
