"""The command of a confined line: what it gets, and the process that confines itself and turns into it."""

from __future__ import annotations

import _socket
import marshal
import os
import stat
import struct
import sys

from hookline.core import template
from hookline.core.paths import inside_any
from hookline.sandbox import kernel, places, signals, syscalls
from hookline.sandbox.policy import Policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hookline.sandbox.egress import Egress

    Order = tuple[list[str], dict[str, str], str, list[int], list[int]]
    """A command, its environment, folder, limits and descriptors."""

_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 1 << 1, 1 << 2, 1 << 3
_REMOVE = 1 << 4 | 1 << 5
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_MAKE = 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 12
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
_SINCE = {2: _REFER, 3: _TRUNCATE, 5: _IOCTL}
_SIGNALS_AND_ABSTRACT_SOCKETS = 1 | 2
BIND_TCP, CONNECT_TCP, TCP_SINCE = 1, 2, 4
SCOPED_SINCE = 6
"""The version from which signals and abstract sockets stay inside."""

_OWN = (sys.prefix, sys.base_prefix, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
"""This interpreter and Hookline: the supervisor, which has the same rules, reads modules as it needs them."""


class PathRights:
    """The rights that a policy grants, by path. What programs write to as a matter of course is granted from the start.

    The rules may be made ahead: they bind the process that enforces them.
    """

    def __init__(self, version: int, *, reading: bool, scoped: bool = True, tcp: int = 0) -> None:
        self._newer = sum(right for since, right in _SINCE.items() if version >= since)
        self._writes = WRITE_FILE | _REMOVE | _MAKE | self._newer
        self._reads = EXECUTE | READ_FILE | READ_DIR if reading else 0
        scopes = _SIGNALS_AND_ABSTRACT_SOCKETS if scoped and version >= SCOPED_SINCE else 0
        handled = self._writes | _MAKE_CHAR | _MAKE_BLOCK | self._reads
        fields = [handled, tcp, scopes][: 3 if version >= SCOPED_SINCE else 2 if version >= TCP_SINCE else 1]
        known = struct.pack(f"{len(fields)}Q", *fields)  # what a kernel does not know is left out
        self._ruleset = kernel.call("landlock_create_ruleset", known, len(known), 0)
        for path in places.DEVICES:
            self._allow(path, self._writes | self._reads)

    def allow_writing(self, paths: Iterable[str]) -> None:
        """Grant everything beneath these real paths; one that has become a link meanwhile is granted nothing."""
        for path in paths:
            self._allow(path, self._writes | self._reads, links=False)

    def allow_reading(self, paths: Iterable[tuple[str, bool]]) -> None:
        """Grant reading of these, where it is restricted: real paths, each with whether it is a folder."""
        for path, folder in paths:
            try:
                fd = os.open(path, _LOOK)
            except OSError:
                continue  # it has gone
            self._grant(fd, self._reads if folder else self._reads & ~READ_DIR)

    def allow_listing(self) -> None:
        """Grant the names in every folder, where reading is restricted."""
        self._allow("/", self._reads & READ_DIR)

    def enforce(self) -> None:
        """Hold this process, and all that it starts, to the rules. There is no way back."""
        kernel.call("landlock_restrict_self", self._ruleset, 0)
        os.close(self._ruleset)

    def _allow(self, path: str, rights: int, *, links: bool = True) -> None:
        try:
            fd = kernel.open_plainly(syscalls.AT_FDCWD, path, os.O_PATH | os.O_CLOEXEC, links=links)
        except OSError:
            return
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            rights &= EXECUTE | WRITE_FILE | READ_FILE | (self._newer & (_TRUNCATE | _IOCTL))
        self._grant(fd, rights)

    def _grant(self, fd: int, rights: int) -> None:
        """Grant rights beneath an open folder, or on an open file, which is closed."""
        rule = struct.pack("=Qi", rights, fd)
        try:
            kernel.call("landlock_add_rule", self._ruleset, 1, rule, 0)
        finally:
            os.close(fd)


class ReadRules:
    """What may be read, as Landlock's rules, which take the longest of all rules to make: they may be made ahead."""

    def __init__(self, read: tuple[str, ...] | None, hidden: places.HiddenPlaces) -> None:
        self._read, self._hidden = read, hidden
        self._said = read, hidden.outside, hidden.shown
        self._rights: PathRights | None = None
        self._times: dict[str, int] = {}

    def fits(self, other: ReadRules) -> bool:
        """Whether these say what others say, and nothing has appeared in a folder that they list."""
        return self._said == other._said and self._times == _times(self._times)

    def rights(self) -> PathRights | None:
        """The rules, with those for devices; None where there is no Landlock."""
        version = kernel.landlock_version()
        if self._rights is None and version:
            reading = self._read is not None or bool(self._hidden.outside)
            self._rights = PathRights(version, reading=reading, scoped=False)
            if reading:
                self._grant(self._rights)
        return self._rights

    def _grant(self, rights: PathRights) -> None:
        hidden = [*self._hidden.outside, "/dev"]
        if self._read is None:
            tops = ["/", *(own for own in map(os.path.realpath, _OWN) if inside_any(own, hidden))]  # installed in /tmp
            rights.allow_listing()
        else:
            tops = [*self._read, *places.read_table("system"), *_OWN]
            if not places.limits_view(self._read):
                tops += ["/proc", *(row.partition("=")[0] for row in places.read_table("view"))]
            tops = list(map(os.path.realpath, tops))
            hidden += [path for path in places.read_table("accounts") if not inside_any(path, self._read)]
        self._times = _times(places.folders_around(hidden))
        rights.allow_reading(places.around([*tops, *self._hidden.shown], hidden))


def _times(folders: Iterable[str]) -> dict[str, int]:
    """When something was last made or removed in each of some folders."""
    return {folder: os.stat(folder).st_mtime_ns for folder in folders}


_MOST_FILES = 16
LIMITED, FAILED, CANNOT_START, NOT_FOUND = 124, 125, 126, 127
"""Exit codes: a limit ended it; it could not be confined; it could not be started; there is no such program."""


class ConfinedLine:
    """A command, its variables and its policy, with the room that it was given and what is hidden from it.

    `owner` is a descriptor on which the exit code is told at once, besides the launcher; -1 for none. `ahead` are rules
    for reading, and `devices` those for writing without the line's folders, made before and used where they fit.
    """

    namespace = False
    """Whether it has a network of its own."""

    def __init__(
        self, policy: Policy, argv: list[str], variables: dict[str, str], room: places.WritableDirs, *,
        owner: int = -1, before: ConfinedLine | None = None, hidden: places.HiddenPlaces | None = None,
    ) -> None:  # fmt: skip
        self.policy: Policy = policy
        self.argv: list[str] = argv
        self.variables: dict[str, str] = variables
        self.room: places.WritableDirs = room
        self.owner: int = owner
        self.shown: dict[str, str] = {}
        self.command: CommandProcess | None = None
        self.later: Callable[[], None] = lambda: None
        """What can wait until the command starts; at the latest, done before the launcher is told of its end."""
        self.confined: tuple[object, ...] = ()
        """The facts that the rules depend on to which this process is held already."""
        self.hidden: places.HiddenPlaces = hidden or places.hidden_places(policy, variables)
        if self.hidden.inside and not kernel.waits_killable():
            say(f"`{self.hidden.inside[0]}` can be read: it lies in a writable folder, and this kernel is before 5.19")
            self.hidden.inside = []
        if policy.read is not None and not kernel.waits_killable():
            say("`/proc` and `/etc/passwd` can be read: this kernel is before 5.19")
        self.view = places.files_in_part(policy.read, variables.get("HOME") or "/")
        read = ReadRules(policy.read, self.hidden)
        self.read: ReadRules = before.read if before is not None and before.read.fits(read) else read

    def confine_ahead(self) -> None:
        """Confine this process, the supervisor, and one that waits to be told what to turn into, if lines like it can.

        Not where the supervisor opens every file or a broker is needed: those are made for one line.
        """
        if self.policy.network == "hosts" or self.reads:
            return
        self.confined = self._facts()
        try:
            self.enter_rules()
            self.command = CommandProcess(self, waits=True)
            self.command.listener()
            self.command.start(([], dict(os.environ), "", [], []))
        except (kernel.Unsupported, OSError):
            return  # it is of no use for any line

    def hand_over(self, line: ConfinedLine, folder: str, limits: list[int], files: list[int]) -> bool:
        """Have the process that waits turn into a line's command, if it is confined as that line has to be."""
        fits = self.confined == line._facts() and self.read is line.read
        order = (line.argv, line.environment, folder, limits, files)
        if self.command is None or not fits or not self.command.start(order):
            return False
        line.command = self.command
        return True

    def _facts(self) -> tuple[object, ...]:
        """What the rules depend on, but for reading: the policy, the places, and which files these are."""
        found = [(path, *_identity(path)) for path in self.room.granted]
        mask = os.umask(0o077)
        os.umask(mask)
        return self.kind(), found, self.reads, mask

    def kind(self) -> dict[str, object]:
        """The policy as it is for every call of an agent."""
        calls = "".join(f"{folder}/call" for folder in self._notes())
        return vars(self.policy) | {"call": calls}

    def _notes(self) -> list[str]:
        """The folder in which the supervisor notes what it refuses."""
        return [os.path.dirname(os.path.realpath(self.policy.call))] if self.policy.call else []

    @property
    def reads(self) -> bool:
        """Whether every file is opened by the supervisor."""
        return bool(self.hidden.inside) or self.view is not None

    @property
    def environment(self) -> dict[str, str]:
        """The command's variables: also where it may put temporary files and caches."""
        found = self.variables
        if self.policy.network == "hosts":
            from hookline.sandbox.egress import variables

            found = variables(self.shown or found, namespace=self.namespace)
        temporary, caches = self.room.temporary, self.room.caches
        if not temporary:
            return found
        moved = {name: f"{caches}/{part}" for name, part in places.CACHES.items()}  # where the user has set none
        return {**moved, **found, "TMPDIR": temporary, "TMUX_TMPDIR": temporary}

    def egress(self) -> Egress | None:
        """The way to hosts by name, with the broker started; as the supervisor, before it is held to any rules."""
        if self.policy.network != "hosts":
            return None
        from hookline.sandbox.egress import Egress

        tokens = None
        if self.policy.tokens:
            from hookline.sandbox.placeholders import Placeholders

            tokens = Placeholders(self.policy.tokens, self.variables)
            folder = self.room.temporary or places.temporary_folder("tokens")
            self.shown = tokens.variables(self.variables, folder)
        return Egress(self.policy, self.variables, tokens)

    def enter_rules(self) -> None:
        """Hold this process, and all that it starts, to what the line may read and write; once, as the supervisor.

        It may also note refusals, and set up a namespace. The line itself may not: `own_rights`.
        """
        rights = self.read.rights()
        self._around_proc = places.around(["/"], ["/proc"]) if self.view is not None else []
        if rights is not None:
            rights.allow_writing([*self.room.granted, "/proc", *self._notes()])
            kernel.no_new_privileges()
            rights.enforce()

    def own_rights(self) -> PathRights | None:
        """The rules that only the line itself is held to, besides; None where there is no Landlock."""
        version = kernel.landlock_version()
        if not version:
            return None
        tcp = 0 if self.policy.network != "hosts" or version < TCP_SINCE else CONNECT_TCP
        viewed = self.view is not None
        rights = PathRights(version, reading=viewed, tcp=tcp if self.namespace or not tcp else tcp | BIND_TCP)
        rights.allow_reading(self._around_proc)
        rights.allow_writing(self.room.granted)
        return rights


def _identity(path: str) -> tuple[int, int]:
    try:
        facts = os.stat(path)
    except OSError:
        return 0, 0
    return facts.st_dev, facts.st_ino


class CommandProcess:
    """The process that turns into the command, at once or, where it `waits`, when it is told to."""

    def __init__(self, line: ConfinedLine, *, waits: bool = False) -> None:
        self._ready, ready = os.pipe()
        self._orders: _socket.socket | None
        self._orders, orders = _socket.socketpair() if waits else (None, None)
        self._listener: list[int] = []
        self.problem: str | None = None
        supervisor = os.getpid()
        self.pid: int = os.fork()
        if self.pid == 0:
            os.close(self._ready)
            kernel.die_with_parent(signals.KILL)
            if os.getppid() == supervisor:
                _become(line, ready, orders)
            os._exit(FAILED)
        os.close(ready)
        if orders is not None:
            orders.close()

    def start(self, order: Order) -> bool:
        """Tell one that waits what to turn into; False if it cannot be. An order without words is only a rehearsal."""
        if self._orders is None or self._listener[:1] == [-1]:
            return False
        file = kernel.memory_file(marshal.dumps(order))
        try:
            template.send(self._orders, b".", [file, *order[-1]])
            if order[0]:
                self._orders.close()
        except OSError:
            return False
        finally:
            os.close(file)
        return True

    def listener(self) -> list[int]:
        """Where its calls arrive, once they are handed over, and the doors of its network; -1 if they cannot be."""
        if self._listener:
            return self._listener
        data = os.read(self._ready, 64)
        os.close(self._ready)
        try:
            numbers = struct.unpack(f"{len(data) // 4}i", data)
            self._listener = [kernel.take_descriptor(self.pid, number) for number in numbers] or [-1]
        except OSError as error:
            self.problem = error.strerror
            self._listener = [-1]
        return self._listener

    def end(self) -> int:
        """End it; its exit code if it has ended by itself, else a negative number."""
        signals.send(self.pid, signals.KILL)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def say(text: str) -> None:
    """One line on standard error."""
    try:
        os.write(2, f"hookline confine: {text}\n".encode("utf-8", "replace"))
    except OSError:
        return


def candidates(program: str, environment: dict[str, str]) -> list[str]:
    """The paths at which a program may lie."""
    folders = environment.get("PATH", "/usr/bin:/bin").split(":")
    return [program] if "/" in program else [f"{place or '.'}/{program}" for place in folders]


def use_limits(limits: list[int]) -> None:
    """Have these limits of resources, soft and hard, from the first resource on."""
    for which, (soft, hard) in enumerate(zip(limits[::2], limits[1::2], strict=True)):
        kernel.limit(0, which, soft, hard)


def place_descriptors(given: list[int], numbers: list[int]) -> None:
    """Give descriptors the numbers that they have in the line."""
    for fd, number in zip(given, numbers, strict=True):
        os.dup2(fd, number)
        os.close(fd)


def _execute(argv: list[str], environment: dict[str, str]) -> None:
    """Turn into a program that is looked for in PATH; nothing is imported here, since it might not be readable now."""
    problem: OSError = FileNotFoundError()
    for path in candidates(argv[0], environment):
        try:
            os.stat(path)  # sooner answered than an attempt to start it
            os.execve(path, argv, environment)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            problem = error
    raise problem


def _keep_sockets(numbers: Iterable[int]) -> None:
    """Do not hand on sockets that are connected outside to the command, standard streams apart."""
    for number in numbers:
        try:
            if number > 2 and stat.S_ISSOCK(os.fstat(number).st_mode):
                os.set_inheritable(number, False)
        except OSError:
            continue


def _own_network(line: ConfinedLine) -> list[int]:
    """Move to a network of its own where the line is to have one; its doors, if hosts are reached by name."""
    if line.policy.network not in ("loopback", "hosts"):
        return []
    from hookline.sandbox import egress

    doors = []
    if line.policy.network == "loopback":
        egress.unshare_network()
    elif egress.can_unshare():
        egress.unshare_network()
        doors = egress.listeners()
    line.namespace = bool(doors)
    return doors


def _hand_over(line: ConfinedLine, network: str) -> int:
    """Have this process's calls handed over from here on; the descriptor on which they arrive."""
    policy = line.policy
    kernel.no_new_privileges()
    program = syscalls.program(
        kernel.MACHINE,
        network=network,
        scoped_signals=kernel.landlock_version() >= SCOPED_SINCE,
        starts=bool(policy.block),
        forks="processes" in policy.limits,
        reads=line.reads,
    )
    listener = kernel.install_filter(program)
    kernel.drop_capabilities()
    return listener


def _order(channel: _socket.socket) -> tuple[list[str], dict[str, str]]:
    """Wait for what to turn into, and take over its folder, limits and descriptors."""
    while True:
        data, descriptors = template.receive(channel, 1, _MOST_FILES)
        if not data:
            os._exit(FAILED)  # there will be no line
        order, *given = descriptors
        argv, environment, folder, limits, files = marshal.loads(template.read_file(order))  # noqa: S302 - written by us
        if argv:
            break
    use_limits(limits)
    kernel.close_all_but(*given)
    place_descriptors(given, files)
    _keep_sockets(files)
    os.chdir(folder)
    return argv, environment


def _become(line: ConfinedLine, ready: int, orders: _socket.socket | None) -> None:
    """Confine this process and turn it into the command; never comes back."""
    program = line.argv[0] if line.argv else ""
    try:
        try:
            doors = _own_network(line)
            if orders is None:
                _keep_sockets(map(int, os.listdir("/proc/self/fd")))  # before opens are handed over
            rights = line.own_rights()  # made before its calls are handed over
            network = {"none": "none", "hosts": "all" if doors else "tcp"}.get(line.policy.network, "all")
            os.write(ready, struct.pack(f"{1 + len(doors)}i", _hand_over(line, network), *doors))
            if rights is not None:
                rights.enforce()
        except (kernel.Unsupported, OSError) as error:
            say(kernel.why(error))
            os._exit(FAILED)
        signals.default(signals.PIPE, signals.XFSZ)  # Python ignores these; a command expects to be ended by them
        argv, environment = (line.argv, line.environment) if orders is None else _order(orders)
        program = argv[0]
        _execute(argv, environment)
    except FileNotFoundError:
        say(f"`{program}`: no such program")
        os._exit(NOT_FOUND)
    except OSError as error:
        say(f"cannot start `{program}`: {error.strerror}")
        os._exit(CANNOT_START)
    finally:
        os._exit(FAILED)
