"""`hookline confine`: read the flags by hand, because importing argparse would cost a third of the start."""

import os
import sys

from hookline.core.paths import inside_any
from hookline.sandbox.policy import GUARDS, LISTS, Policy, records
from hookline.sandbox.syscalls import MACHINES

USAGE_ERROR, FAILED = 64, 125
_LISTS = {flag: name for name, flag in LISTS.items()}
_TEXTS = {f"--{name.replace('_', '-')}": name for name in ("call", *GUARDS)}
_LIMITS = {f"--{name}": name for name in ("cpu", "memory", "processes", "seconds")}
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_WITH_VALUE = (*_LISTS, *_TEXTS, *_LIMITS, "--tell-folder")
_NETWORKS = {"--no-network": "none", "--loopback": "loopback"}


def help_text() -> str:
    """What `--help` says."""
    with open(os.path.join(os.path.dirname(__file__), "help.txt")) as file:
        return file.read().rstrip("\n")


class UsageError(Exception):
    """The flags cannot be understood, or what they ask for cannot be had."""

    code = USAGE_ERROR


def main(argv: list[str]) -> int:
    """Run what the flags say; its exit code."""
    if not argv or argv[0] in ("-h", "--help"):
        print(help_text())
        return 0 if argv else USAGE_ERROR
    if argv == ["--check"]:
        return report()
    try:
        if argv[0] == "--seatbelt":
            return _print_profile(argv[1:])
        policy, command = understand(argv)
    except UsageError as error:
        return complain(error)
    from hookline.sandbox.run import run

    return run(policy, command)


def _print_profile(flags: list[str]) -> int:
    import re

    from hookline.sandbox import seatbelt
    from hookline.sandbox.places import hidden_places

    policy = _policy(_read(flags))
    hidden = hidden_places(policy, os.environ)
    writable = [*(policy.write or ()), os.environ.get("TMPDIR", "/private/tmp").rstrip("/")]
    protected = [*seatbelt.protected_expressions(), *(f"^{re.escape(path)}(/|$)" for path in policy.protect)]
    print(seatbelt.profile(policy, writable, [*hidden.outside, *hidden.inside], protected), end="")
    return 0


def understand(argv: list[str]) -> tuple[Policy, list[str]]:
    """The policy and the command that the flags ask for; what cannot be confined never runs."""
    policy, command = parse(argv)
    policy = _with_recorded(policy)
    command = _telling(argv, command)
    if problem := missing(policy):
        error = UsageError(problem)
        error.code = FAILED
        raise error
    return policy, command


def _with_recorded(policy: Policy) -> Policy:
    """The policy, narrowed by those that other guards left for the same call."""
    if not policy.call:
        return policy
    try:
        with open(f"{policy.call}.policy", "rb") as file:
            recorded = records(file.read())
    except FileNotFoundError:
        return policy
    except OSError as error:
        raise UsageError(f"--call: `{policy.call}.policy` cannot be read: {error.strerror}") from None
    for words in recorded:
        policy = policy.intersected(_policy(_read(words)))
    return policy


def _telling(argv: list[str], command: list[str]) -> list[str]:
    """A `bash -c` line that tells its last folder, if it is to; what it starts does not hold the descriptor."""
    fd = _read(argv[: argv.index("--")]).get("--tell-folder", [""])[-1]
    if not fd:
        return command
    if not fd.isdigit() or command[:2] != ["bash", "-c"] or len(command) != 3:
        raise UsageError("--tell-folder: takes a descriptor's number, and a command of the form `bash -c LINE`")
    return ["bash", "-c", f'eval "$0" {fd}>&-; s=$?; pwd -P >&{fd}; exit $s', command[2]]


def complain(error: Exception | None) -> int:
    """Say what is wrong; the exit code."""
    os.write(2, f"hookline confine: {error}\n".encode("utf-8", "replace"))
    return error.code if isinstance(error, UsageError) else FAILED


def parse(argv: list[str]) -> tuple[Policy, list[str]]:
    """The policy and the command that the flags ask for."""
    if "--" not in argv:
        raise UsageError("write `--` before the command: `hookline confine --write . -- make`")
    at = argv.index("--")
    flags, command = argv[:at], argv[at + 1 :]
    if not command:
        raise UsageError("no command after `--`")
    return _policy(_read(flags)), command


def _read(flags: list[str]) -> dict[str, list[str]]:
    """The flags with their values; each list flag takes one or more."""
    found: dict[str, list[str]] = {}
    name = ""
    for word in flags:
        if word.partition("=")[0] in (*_WITH_VALUE, *_NETWORKS, "--write-anywhere"):
            name, given, value = word.partition("=")
            found.setdefault(name, [])
            if given:
                found[name].append(value)
        elif name in _LISTS or (name in _WITH_VALUE and not found[name]):
            found[name].append(word)
        else:
            raise UsageError(f"unknown argument `{word}`; put the command after `--`")
    empty = next((flag for flag in _WITH_VALUE if found.get(flag) == []), None)
    if empty:
        raise UsageError(f"{empty}: a value is missing")
    return found


def _policy(found: dict[str, list[str]]) -> Policy:
    given: dict[str, object] = {_TEXTS[name]: found[name][-1] for name in _TEXTS if name in found}
    given |= {_LISTS[name]: tuple(found[name]) for name in _LISTS if name in found}
    for name in ("write", "read", "hide", "show", "protect", "unprotect"):
        if name in given:
            given[name] = tuple(_folder(f"--{name}", path) for path in found[f"--{name}"])
    for pattern in found.get("--block", []):
        if not pattern.strip():
            raise UsageError("--block: an empty pattern; write one such as `rm -rf *`")
    given["sockets"] = tuple(os.path.expandvars(os.path.expanduser(path)) for path in found.get("--socket", []))
    _check_hosts(found)
    if "--write-anywhere" in found:
        given["write"] = None
    given["limits"] = {_LIMITS[flag]: _limit(flag, found[flag][-1]) for flag in _LIMITS if flag in found}
    given["network"] = next((kind for flag, kind in _NETWORKS.items() if flag in found), "all")
    return Policy(**given)  # type: ignore[arg-type]  # the names and types of the two tables


def _limit(flag: str, text: str) -> float:
    """A limit as it is written: `90`, `1.5`, `512M`."""
    unit = _UNITS.get(text[-1:].upper(), 0) if flag == "--memory" else 0
    try:
        number = float(text[:-1] if unit else text) * (unit or 1)
    except ValueError:
        number = 0
    if 0 < number < 1 << 62:
        return number
    example = "512M" if flag == "--memory" else "60"
    raise UsageError(f"{flag}: expected a number above 0, got `{text}`; write one such as `{example}`")


def _check_hosts(found: dict[str, list[str]]) -> None:
    """Hosts that can be read, and tokens for hosts that may be reached."""
    if "--host" not in found and "--token" not in found:
        return
    from hookline.sandbox.hosts import Hosts

    try:
        hosts = Hosts(found.get("--host", []))
    except ValueError as error:
        raise UsageError(f"--host: {error}") from None
    for text in found.get("--token", []):
        name, equals, host = text.partition("=")
        if not name or not equals or not host:
            raise UsageError(f"--token: expected NAME=HOST, got `{text}`")
        if not os.environ.get(name):
            raise UsageError(f"--token: the variable `{name}` is not set")
        if not hosts.ports(host.removeprefix("*.")) and not hosts.ports(host):
            raise UsageError(f"--token: `{host}` is not among the hosts; add `--host {host}`")


def _folder(flag: str, path: str) -> str:
    place = os.path.realpath(os.path.expanduser(path))
    if not os.path.exists(place) and flag in ("--write", "--read", "--hide"):
        raise UsageError(f"{flag}: `{path}` does not exist")
    return place


# -- what this kernel offers for confinement, found out by asking it ---------------------------------------------------


def held(landlock: int, *, notifications: bool, killable: bool, namespaces: bool) -> list[tuple[bool, str, str]]:
    """Line by line: whether it is held, what, and by what; or what happens without.

    It follows from Landlock's version, 0 for none; whether calls are handed to a supervisor, and not interrupted when
    it makes them, since they would be made twice (Linux 5.19); and whether a network of one's own can be made.
    """
    rules = f"Landlock {landlock}"
    of_landlock = [
        (1, "writes stay in the folders of `--write`", "cannot be held: `--write` does not run"),
        (1, "secret places are not read, nor what lies outside of `--read`", "cannot be held: `--hide` does not run"),
        (2, "files are moved between folders", "`mv` copies and removes instead"),
        (3, "files outside are not emptied", "a file outside can be emptied by its path"),
        (5, "devices take no orders but from their own users", "a device that can be opened can be given orders"),
    ]
    calls = "seccomp notifications"
    rows = [(landlock >= since, what, rules if landlock >= since else without) for since, what, without in of_landlock]
    signals = rules if landlock >= 6 else "the supervisor, which sends them itself" if notifications else "no"
    rows.append((landlock >= 6 or notifications, "signals stay inside", signals))
    judged = (
        "programs are judged as they start, on their real words (`--block`)",
        "modes, owners, times and attributes outside are not changed",
        "sockets, limits and shared memory of programs outside are not reached",
        "there is no network (`--no-network`), or named hosts alone (`--host`)",
    )
    how = calls if notifications else "no line runs without them (Linux 5.9)"
    rows += [(notifications, what, how) for what in judged]
    kept = notifications and killable
    snapshot = "Linux 5.19 is needed to hold them; before, they are compared and put back when the line has ended"
    rows.append((kept, "protected paths in writable folders are not changed", calls if kept else snapshot))
    own = "a network namespace" if namespaces else "namespaces are not allowed here: the line does not run"
    rows.append((namespaces, "a loopback of its own (`--loopback`)", own))
    return [*rows, (True, "time, processor time, memory and processes are limited", "the supervisor")]


def missing(policy: Policy) -> str:
    """Why a policy cannot be held here; empty if nothing speaks against it."""
    if not sys.platform.startswith("linux"):
        return f"confinement needs Linux; this is {sys.platform}"
    from hookline.sandbox import kernel  # which only Linux can import

    if kernel.MACHINE not in MACHINES:
        return f"confinement is not known for `{kernel.MACHINE}` machines; it works on {' and '.join(MACHINES)}"
    inside = any(inside_any(path, policy.write or ()) for path in policy.hide)
    if inside and not kernel.waits_killable():
        return "what lies in a writable folder cannot be hidden before Linux 5.19; `--hide` it outside of `--write`"
    if policy.holds_files and not kernel.landlock_version():
        return (
            "this kernel has no Landlock (Linux 5.13 and later, `landlock` in its list of security modules), "
            "so writes cannot be confined; `--write-anywhere` judges program starts alone"
        )
    return ""


def no_notifications() -> str:
    """Why a supervisor could not be told of calls, by asking the kernel and without trying; empty if it could."""
    from hookline.sandbox import kernel

    if kernel.notifications():
        return ""
    return "this kernel (Linux 5.9 and later is needed), or the container, does not offer seccomp notifications"


def report() -> int:
    """Print what is held here, line by line, and try it; 0 if lines can be confined."""
    from textwrap import fill

    problem = missing(Policy())
    if sys.platform.startswith("linux"):
        from hookline.sandbox import kernel
        from hookline.sandbox.egress import can_unshare

        print(f"kernel     {os.uname().release} on {kernel.MACHINE}")
        abilities = {
            "notifications": kernel.notifications(), "killable": kernel.waits_killable(), "namespaces": can_unshare(),
        }  # fmt: skip
        for holds, what, how in [] if problem else held(kernel.landlock_version(), **abilities):
            print(fill(f"  {'yes' if holds else 'no ':3}  {what}: {how}", 80, subsequent_indent=" " * 7))
    problem = problem or _trial()
    print(f"confine    {problem or 'works: a write outside was refused, and so was a blocked program'}")
    return 1 if problem else 0


def _trial() -> str:
    """Confine a small line and look at what it could do; what went wrong, or nothing."""
    import subprocess

    from hookline.core.interpreter import launch_argv

    script = "true; (: > /hookline-trial) 2>/dev/null; a=$?; (exec sleep 0) 2>/dev/null; b=$?; exit $((a * 8 + b % 8))"
    argv = [*launch_argv(), "--block", "sleep *", "--", "sh", "-c", script]
    code = subprocess.run(argv, stderr=subprocess.DEVNULL, check=False).returncode
    refused_write, refused_start = code // 8, code % 8 == 126 % 8
    if code == 125:
        return "the kernel, or the container this runs in, does not allow Landlock or seccomp notifications"
    return "" if refused_write and refused_start else f"a trial line was not held (it ended with {code})"
