"""A Python file that defines `hooks = Hooks()`: the way programs other than the user's own get Python hooks."""

import os
import sys
from collections.abc import Mapping
from importlib import machinery, util
from pathlib import Path
from types import CodeType
from typing import Any, ClassVar
from zlib import crc32

from hookline.api import Hooks
from hookline.errors import ConfigError


class _CompileAlways(machinery.SourceFileLoader):
    """Loads what the file says. Byte code beside it may not be its own, and is stale after two edits in one second."""

    sources: Mapping[str, bytes] | None = None
    """What the files hold, if they were read already: nothing is read from the disk then."""
    loaded: ClassVar[dict[str, bytes]] = {}
    """What was run when the hook file was loaded: `policy_digest` is over these bytes."""
    loading = True

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        data = self.get_data(path)
        if self.loading:
            self.loaded[path] = data
        return self.source_to_code(data, path)

    def get_data(self, path: str) -> bytes:
        if self.sources is None:
            return super().get_data(path)
        if path not in self.sources:
            raise ImportError(f"{path}: not among the files that were read")
        return self.sources[path]


def load_hooks(file: str | Path, sources: Mapping[str, bytes] | None = None) -> Hooks:
    """The `hooks` of a Python file, which may import what lies beside it: `import rules`, `from .rules import x`.

    The file may have any name: it does not take the place of a module that is called the same. Python's own modules
    come before its neighbours, as Hookline needs them too. A file that cannot be imported, whatever it does while it
    is, is a `ConfigError` that says why. With `sources`, which has the bytes of each file by its path, nothing of the
    file's folder is read again.
    """
    path, name = Path(file), str(file)
    if not path.is_file():
        raise ConfigError(name, "no such file; name a Python file that defines `hooks = Hooks()`")
    folder = path.resolve().parent
    own = f"{_package(folder)}.{path.stem.replace('.', '_')}"
    if path.suffix not in machinery.SOURCE_SUFFIXES:
        raise ConfigError(name, "not a Python file; its name must end in `.py`")
    make: type[_CompileAlways] = type("_Loader", (_CompileAlways,), {"sources": sources, "loaded": {}})
    loader = make(own, str(folder / path.name) if sources is not None else str(path))
    spec = machinery.ModuleSpec(own, loader, origin=str(path))
    spec.has_location = True
    module = util.module_from_spec(spec)
    sys.modules[own] = module
    kinds: list[Any] = [(make, machinery.SOURCE_SUFFIXES)]
    if sources is None:
        kinds.insert(0, (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES))
    for one in (folder, *({Path(name).parent for name in sources or ()} - {folder})):
        sys.path_importer_cache[str(one)] = machinery.FileFinder(str(one), *kinds)
    _let_import_from(str(folder))
    try:
        loader.exec_module(module)
    except (Exception, SystemExit) as error:  # a file that leaves has not said what its hooks are
        raise ConfigError(name, f"cannot be imported: {type(error).__name__}: {error}") from error
    make.loading = False
    found = getattr(module, "hooks", None)
    if not isinstance(found, Hooks):
        raise ConfigError(name, "defines no `hooks`; write `hooks = Hooks()` and register hooks on it")
    return found


def _package(folder: Path) -> str:
    """The name of a package that is a folder, so that the files in it find each other and meet no others."""
    name = f"hook_files_{crc32(os.fsencode(folder)):08x}"
    if name not in sys.modules:
        spec = machinery.ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
        sys.modules[name] = util.module_from_spec(spec)
    return name


def _let_import_from(folder: str) -> None:
    """Put a folder on the path: after Python's own modules, before everything that was installed."""
    if folder in sys.path:
        return
    own = str(Path(os.__file__).parent)
    last = max((place for place, entry in enumerate(sys.path) if entry in (own, f"{own}/lib-dynload")), default=-1)
    sys.path.insert(last + 1, folder)
