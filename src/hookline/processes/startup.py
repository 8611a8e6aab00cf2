"""Environment variables that an interpreter, or what its `site` folder loads, reads while starting up."""

STARTUP_NAMES = frozenset({"HOME", "LANG", "LANGUAGE", "TZ", "VIRTUAL_ENV", "GLIBC_TUNABLES", "__PYVENV_LAUNCHER__"})
STARTUP_PREFIXES = ("PYTHON", "LC_", "LD_", "DYLD_", "MALLOC_", "COVERAGE_", "SETUPTOOLS_", "CONDA_")


def read_at_startup(name: str) -> bool:
    """Whether two interpreters that differ in this variable may start up differently."""
    return name in STARTUP_NAMES or name.startswith(STARTUP_PREFIXES)
