"""Places that hold secrets: a confined line does not read them, and guards let no file tool read them.

One table for both. What is not there needs no hiding, and neither does what this user cannot read anyway.
"""

from __future__ import annotations

import os
import stat
import time
from _blake2 import blake2s  # without `hashlib`, which loads OpenSSL
from _collections_abc import Iterable, Iterator, Mapping  # without `collections`, which takes longer than this module

from hookline.core.paths import inside_any
from hookline.sandbox import kernel
from hookline.sandbox.policy import Policy


def read_table(name: str) -> list[str]:
    """The words of one part of the table of places."""
    with open(os.path.join(os.path.dirname(__file__), "places.txt")) as file:
        return file.read().partition(f"[{name}]")[2].partition("\n")[2].partition("\n[")[0].split()


FREE = frozenset({"plans", "projects", "todos", "worktrees", "memories", "tmp", "sessions"})
"""Folders in an agent's own one that it has its model write to: plans, memories, work trees."""
_PLACES = [row.partition("=")[::2] for row in read_table("secrets")]
"""Each place, and the text that a file must hold to count: without it, a tool's settings are only settings."""
_PUBLIC = ("known_hosts", "known_hosts2", "known_hosts.old", "config", "config.d", "authorized_keys")
"""What lies in `~/.ssh` and is no secret, besides `*.pub`: without it, no push over ssh finds its host."""
_VARIABLES = ("AWS_SHARED_CREDENTIALS_FILE", "AZURE_CONFIG_DIR", "CLOUDSDK_CONFIG", "GH_CONFIG_DIR", "GNUPGHOME",
              "GOOGLE_APPLICATION_CREDENTIALS", "HISTFILE", "KUBECONFIG", "NETRC", "PASSWORD_STORE_DIR", "PGPASSFILE",
              )  # fmt: skip
"""Variables that move such a place."""
_HOMES = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "CARGO_HOME")
"""Variables that move many."""
_MOVING = (*_VARIABLES, *_HOMES)
_MOVING_BYTES = tuple(map(os.fsencode, _MOVING))
_known: dict[tuple[str | bytes | None, ...], dict[str, str]] = {}
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts",
           "/dev/shm", "/dev/dri")  # fmt: skip
"""What programs write to as a matter of course; none of it is anybody's file."""
SHARED = ("/tmp", "/var/tmp")
"""Folders that all programs put something into: a line has a temporary folder of its own."""
_NAMING = ("PATH", "HOME", "PWD", "DIR", "ROOT", "PREFIX", "_ENV", "_CONFIG")
"""How variables end that name where programs and their parts lie; `TMPDIR` names no part of anything."""

_PRIVATE_KEY, _LONGEST_KEY = b"PRIVATE KEY", 65_536
_KEY_FILES = (".pem", ".key", ".ppk")
_SECRET_FILES = (".p12", ".pfx", ".jks", ".keystore", ".kdbx")
_SECRET_NAMES = (".env", ".envrc.local", ".netrc", ".pypirc", ".git-credentials", ".htpasswd", "id_rsa", "id_dsa",
                 "id_ecdsa", "id_ed25519")  # fmt: skip
_SAMPLES = (".example", ".sample", ".template", ".dist", ".defaults", ".test", ".ci", ".schema", ".d.ts")
"""Endings of `.env.…` that are committed and hold no secrets."""
_NOT_SEARCHED = frozenset({
    ".git", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".nox", "site-packages", "target", "dist", "build",
    "vendor", "test", "tests", "testdata", "fixtures", "spec", "__tests__", "examples",
})  # fmt: skip
"""Folders of a project in which nothing is looked for: they hold what was installed or built, and keys for tests."""
_MOST_FOLDERS = 100


def default_places(environ: Mapping[str, str]) -> list[str]:
    """The places of the table that are there and could be read, by where they really are."""
    home = f"{environ.get('HOME') or ''}/"
    config = f"{environ.get('XDG_CONFIG_HOME') or home + '.config'}/"
    names, tools = frozenset(names_in(home)), frozenset(names_in(config))  # sooner read than to look for each
    found = [
        os.path.realpath(path)
        for path, text in reversed(known_places(environ).items())
        if (not path.startswith(home) or path[len(home) :].partition("/")[0] in names or not names)
        and (not path.startswith(config) or path[len(config) :].partition("/")[0] in tools or not tools)
        and os.path.lexists(path)
        and (os.access(path, os.R_OK) or os.access(path, os.X_OK))
        and (not text or _holds(path, text.encode()))
    ]
    return list(dict.fromkeys(found))


def known_places(environ: Mapping[str, str]) -> dict[str, str]:
    """Every place of this user's, there or not, with the text that a file must hold to count, for `holds_secrets`."""
    own = vars(environ).get("_data") if environ is os.environ and os.supports_bytes_environ else None
    # the bytes as they are kept: to look a variable up by its name takes ten times as long, and every line asks
    moving = tuple(map(environ.get, _MOVING)) if own is None else tuple(map(own.get, _MOVING_BYTES))
    if moving not in _known:  # the environment of a process hardly changes, and every line asks
        _known.clear()
        given = {name: value for name in _MOVING if (value := environ.get(name))}
        _known[moving] = {place.rstrip("/"): text for place, text in reversed([*_rows(given)])}
    return _known[moving]


def place_of(path: str, places: Mapping[str, str]) -> str:
    """The one of these places that a path is or lies in."""
    while path and path not in places:
        path = path.rpartition("/")[0]
    return path


def places_below(folder: str, places: Mapping[str, str]) -> Iterator[str]:
    """Those that are there below a folder."""
    start = folder.rstrip("/") + "/"
    for place, text in places.items():
        if place.startswith(start) and os.path.lexists(place) and (not text or _holds(place, text.encode())):
            yield place


def holds_secrets(path: str, places: Mapping[str, str]) -> bool:
    """Whether a file is in one of these places, or a secret of a project, as far as its path and what it holds tell."""
    place = place_of(path, places)
    if not place:
        return is_project_secret(path) and os.path.isfile(path)
    public = place.endswith("/.ssh") and _is_public(path[len(place) + 1 :].partition("/")[0])
    return not public and os.path.isfile(path) and (not places[place] or _holds(path, places[place].encode()))


def _rows(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each place of this user's, with the text that a file there must hold to count."""
    home = environ.get("HOME") or "/"
    moved = {"~/.config": environ.get("XDG_CONFIG_HOME"), "~/.local/share": environ.get("XDG_DATA_HOME"),
             "~/.local/state": environ.get("XDG_STATE_HOME"), "~/.cargo": environ.get("CARGO_HOME")}  # fmt: skip
    moved = {base: value for base, value in moved.items() if value}
    yield from ((part, "") for name in _VARIABLES for part in environ.get(name, "").split(":") if part)
    yield f"{environ.get('XDG_RUNTIME_DIR') or '/run/user'}/containers/auth.json", ""
    for place, text in _PLACES:
        base = next((base for base in moved if place.startswith(base + "/")), "~")
        yield place.replace(base, moved.get(base) or home, 1), text


def _holds(path: str, text: bytes) -> bool:
    """Whether a file holds a text near its beginning; also where that cannot be told."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return True
    try:
        return stat.S_ISREG(os.fstat(fd).st_mode) and text in os.read(fd, _LONGEST_KEY)
    except OSError:
        return True
    finally:
        os.close(fd)


def is_project_secret(path: str) -> bool:
    """Whether a file of a project holds secrets: by its name, and a key also by what it holds."""
    name = path.rpartition("/")[2].lower()
    if name in _SECRET_NAMES or name.endswith(_SECRET_FILES):
        return True
    if name.startswith(".env."):
        return not name.endswith(_SAMPLES)
    return (name.endswith(_KEY_FILES) and _holds(path, _PRIVATE_KEY)) or (name == ".npmrc" and _holds(path, b"_auth"))


def project_secrets(folders: Iterable[str]) -> list[str]:
    """The secrets in some folders, as far as a look at the folders near their top shows them."""
    found: list[str] = []
    waiting = list(folders)
    for looked, folder in enumerate(waiting):  # which grows on the way: the folders nearest to the top come first
        if looked >= _MOST_FOLDERS:
            break
        for entry in entries_in(folder):
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in _NOT_SEARCHED:
                    waiting.append(entry.path)
            elif is_project_secret(entry.path) and os.path.isfile(entry.path):
                found.append(os.path.realpath(entry.path))
    return found


def limits_view(read: tuple[str, ...] | None) -> bool:
    """Whether a line sees only a part of `/proc` and of the system's files: reading is limited, and not to these."""
    return read is not None and not inside_any("/proc", read) and kernel.waits_killable()


def files_in_part(read: tuple[str, ...] | None, home: str) -> dict[str, tuple[str, bytes]] | None:
    """The files of which a line sees a part: each with what its lines must match, and its content while it can be read.

    Those of `/proc`, which change, are read later. None where the line's view is not limited.
    """
    if not limits_view(read):
        return None
    found = {}
    for row in read_table("view"):
        path, _, pattern = row.partition("=")
        path = path.replace("~", home, 1)
        if not inside_any(path, read or ()):
            try:
                found[path] = pattern, b"" if path.startswith("/proc/") else kernel.content(path)
            except OSError:
                continue  # there is none
    return found


class HiddenPlaces:
    """What a line may not read: `outside` of the folders that it may write to, and `inside` of one of them.

    Landlock holds what is outside; inside, where the line makes files of its own, the supervisor opens every file.
    """

    def __init__(self, outside: list[str], inside: list[str], shown: list[str]) -> None:
        self.outside: list[str] = outside
        self.inside: list[str] = inside
        self.shown: list[str] = shown


def hidden_places(policy: Policy, environ: Mapping[str, str]) -> HiddenPlaces:
    """What is hidden from a line: the table's places, the projects' secrets and those given, without those shown.

    In a folder that all programs share, what the line's variables name is shown: its home, programs and libraries.
    """
    if not policy.holds_files:
        return HiddenPlaces([], [], [])
    writable, shown = policy.write or (), policy.show
    places = [*default_places(environ), *project_secrets(writable)]
    places = [*(path for path in places if not inside_any(path, shown)), *policy.hide]
    inside = [path for path in places if inside_any(path, writable)]
    outside = [path for path in places if path not in inside]
    homes = [place for place in outside if place.endswith("/.ssh")]
    public = [f"{place}/{name}" for place in homes for name in names_in(place) if _is_public(name)]
    known = [*shown, *(path for path in public if policy.read is None or inside_any(path, policy.read))]
    if policy.read is None:
        outside += [path for path in SHARED if not inside_any(path, (*writable, *shown))]
        names = [name for name in environ if name.endswith(_NAMING) and name not in ("TMPDIR", "OLDPWD")]
        named = [part for name in names for part in environ[name].split(":")]
        tops = [part[: -len("/bin")] for part in named if part.startswith(SHARED) and part.endswith("/bin")]
        named += [top for top in tops if os.path.exists(f"{top}/pyvenv.cfg")]  # Python's parts lie beside it
        known += [os.path.realpath(path) for path in named if path.startswith(SHARED)]
    return HiddenPlaces(outside, inside, [path for path in known if path not in outside])


def _is_public(name: str) -> bool:
    """Whether a name in `~/.ssh` may be read although that place is hidden."""
    return name in _PUBLIC or name.endswith(".pub")


def names_in(folder: str) -> list[str]:
    """What a folder holds; nothing where it cannot be listed."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def entries_in(folder: str) -> list[os.DirEntry[str]]:
    """The same with what a look at the folder tells of each."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def around(tops: Iterable[str], hidden: Iterable[str]) -> list[tuple[str, bool]]:
    """What to grant so that all below some folders can be read but for what is hidden: paths, and which are folders.

    Landlock cannot subtract. At every folder on the way to a hidden place each entry that leads to none is granted.
    What appears there later cannot be read; everything deeper can.
    """
    hidden = set(hidden)
    way = folders_around(hidden)
    granted: list[tuple[str, bool]] = []
    waiting = [top for top in tops if top not in hidden]
    while waiting:
        top = waiting.pop()
        if top not in way:
            granted.append((top, os.path.isdir(top)))
            continue
        for entry in entries_in(top):
            if entry.path in hidden or entry.is_symlink():
                continue
            if entry.path in way:
                waiting.append(entry.path)
            else:
                granted.append((entry.path, entry.is_dir()))
    return granted


def folders_around(hidden: Iterable[str]) -> set[str]:
    """The folders on the way to hidden places."""
    found = set()
    for path in hidden:
        folder = path
        while folder not in ("/", ""):
            folder = folder.rpartition("/")[0] or "/"
            found.add(folder)
    return {folder for folder in found if os.path.isdir(folder)}


_TEMPORARY = "hookline-confine-"
_KEPT = 7 * 24 * 3600
CACHES = {
    "PIP_CACHE_DIR": "pip", "npm_config_cache": "npm", "UV_CACHE_DIR": "uv", "GOCACHE": "go-build",
    "YARN_CACHE_FOLDER": "yarn", "CCACHE_DIR": "ccache",
}  # fmt: skip
"""Variables that move a tool's cache: what a confined line puts there is never read by an unconfined one."""


class WritableDirs:
    """Where a line may write: its projects, or everywhere, its own temporary folder, its caches and its open files."""

    def __init__(self, projects: list[str] | None, temporary: str, caches: str, granted: list[str]) -> None:
        self.projects: list[str] | None = projects
        self.temporary: str = temporary
        self.caches: str = caches
        self.granted: list[str] = granted

    @classmethod
    def make(cls, policy: Policy) -> WritableDirs:
        """Room for one line on this machine: the same for every line that may write to the same folders."""
        if policy.write is None:
            return cls(None, "", "", ["/"])
        key = blake2s("\0".join(sorted(policy.write)).encode("utf-8", "surrogateescape"), digest_size=6).hexdigest()
        temporary = temporary_folder(key)
        caches = cache_folder(key, temporary)
        projects = [*policy.write, *worktree_folders(policy.write)]
        return cls(projects, temporary, caches, [*projects, caches, temporary, *open_files()])


def temporary_folder(key: str) -> str:
    """The temporary folder of lines that share a key, which stays; a new one where something else lies in its place."""
    base = os.path.realpath(os.environ.get("TMPDIR") or "/tmp")
    for number in range(100):
        path = os.path.join(base, _TEMPORARY + (os.urandom(6).hex() if number else f"{os.geteuid()}-{key}"))
        try:
            os.mkdir(path, 0o700)
            _tidy(base, f"{_TEMPORARY}{os.geteuid()}-")
        except FileExistsError:
            if not _is_ours(path):
                continue
        return path
    raise FileExistsError(17, os.strerror(17), base)


def _tidy(base: str, start: str) -> None:
    """Remove folders of other lines that are empty and have been for a week; called where a new one is made."""
    oldest = time.time() - _KEPT
    for entry in entries_in(base):
        try:
            is_folder = entry.name.startswith(start) and entry.is_dir(follow_symlinks=False)
            if is_folder and entry.stat(follow_symlinks=False).st_mtime < oldest:
                os.rmdir(entry.path)
        except OSError:
            continue  # it is not empty


def _is_ours(path: str) -> bool:
    """Whether a path is a folder that no other user can write to, and not a link to one."""
    status = os.lstat(path)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022


def cache_folder(key: str, temporary: str) -> str:
    """Where a line's caches lie: kept from line to line where the user has a cache folder, else with the line.

    Lines that may write to other folders have others: what one project's line puts there, no other installs. A folder
    on the way that is a link was put there by a line which may write to the user's caches.
    """
    home = os.environ.get("HOME") or "/"
    folder = os.environ.get("XDG_CACHE_HOME") or f"{home}/.cache"
    if not os.path.isdir(folder):
        return temporary
    folder = os.path.realpath(folder)
    for name in ("hookline", "confined", key):
        folder = f"{folder.rstrip('/')}/{name}"
        try:
            os.mkdir(folder, 0o700)
            _tidy(os.path.dirname(folder), "" if name == key else "/")
        except FileExistsError:
            if not _is_ours(folder):
                return temporary
        except OSError:
            return temporary
    return folder


def open_files() -> list[str]:
    """The files that standard output and error go to, which programs may open again as `/dev/stdout`."""
    found = []
    for fd in (1, 2):
        try:
            if stat.S_ISREG(os.fstat(fd).st_mode) or os.isatty(fd):
                found.append(os.readlink(f"/proc/self/fd/{fd}"))
        except OSError:
            continue
    return [path for path in found if os.path.exists(path)]


def worktree_folders(folders: tuple[str, ...]) -> list[str]:
    """What git writes to outside of folders that are worktrees: each one's own part, and what all of them share.

    The pointer in a worktree may be a line's work, so that it counts only where the repository points back; and the
    repository is the one that the own part lies in, whatever is written there.
    """
    return [part for folder in folders for part in _repository(folder, folders)]


def _repository(folder: str, writable: tuple[str, ...]) -> list[str]:
    pointer = os.path.join(folder, ".git")
    if not os.path.isfile(pointer):
        return []
    try:
        own = os.path.realpath(os.path.join(folder, first_line(pointer).removeprefix("gitdir: ")))
        back = os.path.realpath(first_line(os.path.join(own, "gitdir")))
    except OSError:
        return []
    common, name = os.path.split(os.path.dirname(own))
    if back != os.path.realpath(pointer) or name != "worktrees" or inside_any(own, writable):
        return []
    return [own, *(f"{common}/{part}" for part in ("objects", "refs", "logs") if os.path.isdir(f"{common}/{part}"))]


def first_line(path: str) -> str:
    """The first line of a file, such as a pointer of git's."""
    with open(path, errors="surrogateescape") as file:
        return file.readline(4096).rstrip("\n")
