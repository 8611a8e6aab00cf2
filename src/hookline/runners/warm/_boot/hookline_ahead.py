"""Modules imported ahead of time, hidden until the script imports them."""

# mypy: ignore-errors
# It runs in any Python from 3.8 on, and may import next to nothing: no annotations, no pathlib, no contextlib.

import builtins
import os
import sys

import _frozen_importlib_external as external

# Modules whose import is most of a small script's time: imported ahead, then hidden until the script imports them.
# None of them does more on import than define things (`logging` notes the time, `random` is seeded: they are not here).
AHEAD = (
    "json re pathlib subprocess datetime shlex typing dataclasses argparse fnmatch functools collections "
    "contextlib enum string textwrap glob base64 urllib.parse operator"
).split()


class Ahead:
    """Modules imported ahead of time and hidden until the script imports them."""

    def __init__(self):
        self.modules = {}
        self.needs = {}
        self.attributes = []
        self.finders = []

    def load(self):
        original = builtins.__import__
        builtins.__import__ = self._recording(original)
        try:
            for name in AHEAD:
                original(name)
        finally:
            builtins.__import__ = original

    def _recording(self, original):
        """An `__import__` that notes which module needs which."""

        def importing(name, globals=None, locals=None, fromlist=(), level=0):
            module = original(name, globals, locals, fromlist, level)
            importer = (globals or {}).get("__name__")
            if importer is not None:
                self.needs.setdefault(importer, []).extend(named(name, globals, fromlist, level))
            return module

        return importing

    def hide(self, before):
        """Make `sys.modules` look as it did `before`, also the attributes that submodules leave on their packages."""
        self.modules = {name: module for name, module in sys.modules.items() if name not in before}
        for name in self.modules:
            del sys.modules[name]
        needed = {name for names in self.needs.values() for name in names}.union(AHEAD)
        kept = {id(module) for module in sys.modules.values()}
        for name, module in self.modules.items():
            package, _, last = name.rpartition(".")
            # Put there by its package, without an import (`typing.io`), or as a second name (`importlib._bootstrap`).
            if name not in needed or id(module) in kept:
                self.needs.setdefault(package, []).append(name)
            holder = sys.modules.get(package) or self.modules.get(package)
            if holder is not None and vars(holder).get(last) is module:
                delattr(holder, last)
                self.attributes.append((holder, last, name))

    def offer(self):
        """Let the import system take a hidden module where it would otherwise load the very same file."""
        basics = external._LoaderBasics
        original = basics.create_module
        ahead = self

        def create_module(self, spec):
            module = ahead.modules.get(spec.name)
            if module is None or not ahead.can_give(spec, module):
                return original(self, spec)
            self.exec_module = lambda module: ahead.give(spec.name, self)
            return module

        create_module.__qualname__ = original.__qualname__
        create_module.__module__ = original.__module__
        create_module.__doc__ = original.__doc__
        basics.create_module = create_module
        self.finders = list(sys.meta_path)

    def can_give(self, spec, module):
        """Whether the module and all it needs would be these very ones: nothing shadowed, nothing replaced."""
        if getattr(module.__spec__, "origin", None) != spec.origin or sys.meta_path != self.finders:
            return False
        closure = self.closure(spec.name)
        if any(name in sys.modules for name in closure):
            return False
        return not shadowed({name for name in closure if "." not in name})

    def closure(self, name):
        """The module and what its import would import that is still hidden, in the order of importing."""
        order, stack = {}, [name]
        while stack:
            one = stack.pop()
            if one not in order and one in self.modules:
                order[one] = True
                stack.extend(reversed(self.needs.get(one, ())))
        return order

    def give(self, name, loader):
        del loader.exec_module
        self.modules[name].__loader__ = loader
        given = {one: self.modules.pop(one) for one in self.closure(name)}
        sys.modules.update(given)
        for holder, last, one in self.attributes:
            if one in given:
                setattr(holder, last, given[one])


def named(name, globals, fromlist, level):
    """The full names of the modules that an import statement names."""
    if level:
        package = globals.get("__package__") or ""
        base = package.rsplit(".", level - 1)[0] if level > 1 else package
        name = base + "." + name if name else base
    parts = name.split(".")
    names = [".".join(parts[: count + 1]) for count in range(len(parts))]
    for one in fromlist or ():
        if name + "." + one in sys.modules:
            names.append(name + "." + one)
    return names


def shadowed(names):
    """Whether the path has modules of these names before the standard library."""
    try:
        stdlib = os.path.dirname(os.__file__)
        for entry in sys.path:
            if entry == stdlib:
                return False
            if os.path.exists(entry) and not names.isdisjoint(one.partition(".")[0] for one in files_in(entry)):
                return True
    except (OSError, TypeError):  # another archive, or not even a string: let Python look for itself
        pass
    return True


def files_in(entry):
    """The files of a folder, or of an archive that has been looked into, as a trusted script's own."""
    archive = getattr(sys.path_importer_cache.get(entry), "_files", None)
    return os.listdir(entry) if archive is None else [name.replace(os.sep, ".") for name in archive]
