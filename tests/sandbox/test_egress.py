"""Egress by name: real programs reach named hosts without proxies, and what goes wrong ends the line or is said."""

# ruff: noqa: E501 - lines of a shell
from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.sandbox import internet

pytestmark = [
    pytest.mark.skipif(bool(internet.possible()), reason=internet.possible() or "there is a world"),
    pytest.mark.timeout(300),
]
WAYS = pytest.mark.parametrize("namespaces", [True, False], ids=["namespaces", "none"])


@pytest.fixture(scope="module")
def world() -> Iterator[internet.World]:
    with internet.world() as made:
        yield made


def bash(world: internet.World, line: str, *hosts: str, **options: Any) -> dict[str, Any]:
    return world.confined("bash", "-c", line, flags=("--host", *hosts) if hosts else (), **options)


PROGRAMS = {
    "curl": ("pypi.example", "curl -sS -m 9 https://pypi.example/hello", "hello from the world"),
    "curl plain": ("pypi.example", "curl -sS -m 9 http://pypi.example/hello", "hello from the world"),
    "curl upload": ("pypi.example", "curl -sS -m 9 -T- http://pypi.example/hello < /etc/hostname", "hello from the world"),
    "wget": ("pypi.example", "wget -qO- --ca-certificate=$SSL_CERT_FILE https://pypi.example/hello", "hello from the world"),
    "python": (
        "pypi.example", "python3 -c 'import urllib.request as u; print(u.urlopen(\"https://pypi.example/hello\").read())'",
        "hello from the world",
    ),
    "node": (
        "pypi.example", "NODE_EXTRA_CA_CERTS=$SSL_CERT_FILE node -e 'fetch(\"https://pypi.example/hello\").then(r => r.text()).then(console.log)'",
        "hello from the world",
    ),
    "node c-ares": ("pypi.example", "node -e 'require(\"dns\").resolve4(\"pypi.example\", (e, a) => console.log(e, a))'", "198.18."),
    "perl": (
        "pypi.example", "perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(q(pypi.example:80)); print $s qq(GET /hello HTTP/1.0\\r\\nHost: pypi.example\\r\\n\\r\\n); print <$s>'",
        "hello from the world",
    ),
    "bash": ("echo.example:7001", "exec 3<>/dev/tcp/echo.example/7001; echo hello there >&3; head -1 <&3", "hello there"),
    "psql": ("db.example:5432", "psql -h db.example -U me -d x -tAc 'select 1'", "hello"),
    "own server": (
        "pypi.example", "python3 -m http.server 8099 > /dev/null 2>&1 & until curl -s http://localhost:8099/ > /dev/null; do :; done; curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8099/; kill %1",
        "200",
    ),
    "a host of the table": ("table.example:7001", "exec 3<>/dev/tcp/table.example/7001; echo by table >&3; head -1 <&3", "by table"),
    "a local service": ("local.example:7001", "exec 3<>/dev/tcp/local.example/7001; echo local >&3; head -1 <&3", "local"),
    "an address that is named": ("11.0.0.14:7001", "exec 3<>/dev/tcp/11.0.0.14/7001; echo named >&3; head -1 <&3", "named"),
    "a pattern": ("*.code.example", "curl -sS -m 9 https://api.code.example/hello", "hello from the world"),
}  # fmt: skip


@WAYS
@pytest.mark.parametrize("user", [False, True], ids=["root", "user"])
def test_programs_reach_named_hosts(world: internet.World, user: bool, namespaces: bool) -> None:
    """Any TCP client, without proxy variables; and nothing is looked up outside that is not on the list."""
    wrong = {}
    for name, (host, line, expected) in PROGRAMS.items():
        if shutil.which(line.split()[0].partition("=")[0]) is None and "=" not in line.split()[0]:
            continue
        done = bash(world, line, host, user=user, namespaces=namespaces)
        asked = {entry.split()[1] for entry in done["log"] if entry.startswith("lookup") and entry.endswith(".example")}
        if expected not in done["out"] or not asked <= {host.partition(":")[0], "api.code.example"}:
            wrong[name] = done

    assert wrong == {}


PIP = "python3 -m venv v && PIP_CERT=$SSL_CERT_FILE v/bin/pip install -q --disable-pip-version-check -i https://pypi.example/simple demo-pkg && v/bin/python -m demo_pkg"
NPM = "npm_config_cafile=$SSL_CERT_FILE npm install --no-audit --no-fund --registry https://npm.example/ demo-pkg > /dev/null && node -p 'require(\"demo-pkg\")'"
GIT = """
    git init -q -b main r && cd r && git config user.email a@b && git config user.name a && echo pushed > a &&
    b=b$(date +%s%N) && git add . && git commit -qm a && git push -q {url} HEAD:$b && cd .. && git clone -q -b $b {url} c &&
    cat c/a
"""
SSH = "export GIT_SSH_COMMAND='ssh -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o BatchMode=yes';"
CARGO = """
    export CARGO_HOME=$PWD/cargo CARGO_HTTP_CAINFO=$SSL_CERT_FILE PATH=$CARGO:$PATH; mkdir -p cargo a/src &&
    printf '[source.crates-io]\\nreplace-with = "own"\\n[source.own]\\nregistry = "sparse+https://crates.example/index/"\\n' > cargo/config.toml &&
    printf '[package]\\nname = "a"\\nversion = "0.1.0"\\nedition = "2021"\\n[dependencies]\\ndemo-crate = "1"\\n' > a/Cargo.toml &&
    echo 'fn main() { println!("{}", demo_crate::seven()) }' > a/src/main.rs && cd a && cargo run -q
"""
PROJECTS = {
    "pip": ("python3", PIP, ("pypi.example",), "hello from the package"),
    "npm": ("npm", NPM, ("npm.example",), "7"),
    "git over https": ("git", GIT.format(url="https://code.example/demo.git"), ("code.example",), "pushed"),
    "git over ssh": ("ssh", SSH + GIT.format(url="ssh://git@code.example/demo.git"), ("code.example:22",), "pushed"),
    "cargo": ("cargo", CARGO, ("crates.example",), "7"),
}  # fmt: skip


@WAYS
@pytest.mark.parametrize("kind", PROJECTS)
def test_projects_install_and_push_by_name(world: internet.World, kind: str, namespaces: bool) -> None:
    """On stand-ins for a registry and a code host, as the tools' own documentation says."""
    program, line, hosts, expected = PROJECTS[kind]
    if shutil.which(program) is None:
        pytest.skip(f"needs {program}")
    if kind == "git over ssh":
        pytest.importorskip("asyncssh")
    shutil.rmtree(world.folder / "project")
    (world.folder / "project").mkdir()
    home = {**os.environ, "HOME": pwd.getpwuid(os.getuid()).pw_dir}
    which = ["bash", "-c", "rustup which cargo || command -v cargo"]
    found = subprocess.run(which, env=home, capture_output=True, text=True, check=False)
    variables = {"GIT_SSL_CAINFO": str(world.folder / "ca.pem"), "CARGO": found.stdout.strip().rpartition("/")[0]}
    done = bash(world, line, *hosts, namespaces=namespaces, seconds=200, **variables)

    assert expected in done["out"], done


@WAYS
@pytest.mark.parametrize("who", ["broker", "supervisor"])
def test_a_line_ends_with_those_who_hold_it(world: internet.World, who: str, namespaces: bool) -> None:
    """The line could reach nothing any more, or anything; and nothing is left of it."""
    line = "curl -s http://pypi.example/hello; touch started; exec sleep 6123"
    before = f"{internet.PYTHON} {internet.NO_NAMESPACES}" if not namespaces else "env"
    kill = f"""
        {before} {internet.PYTHON} -I -S {internet.LAUNCH} --write . --host pypi.example -- bash -c '{line}' & line=$!
        until [ -e started ]; do sleep 0.05; done; rm started
        supervisor=$(pgrep -P $line); broker=$(for pid in $(pgrep -P $supervisor); do
          [ "$(tr '\\0' ' ' < /proc/$pid/cmdline | grep -c launch.py)" = 1 ] && echo $pid; done)
        kill -9 ${who}; wait $line; echo ended $?; pgrep -xf 'sleep 6123' | wc -l
    """
    done = world.run("bash", "-c", kill, seconds=30)

    assert done["out"].endswith("ended 125\n0\n"), done
    assert f"the {who} was ended, and so is the line" in done["err"]


def test_thousands_of_connections(world: internet.World) -> None:
    """One after another and many at once; each byte comes back."""
    script = """
import resource, socket, selectors
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
good = 0
for _ in range(9000):
    with socket.create_connection(("echo.example", 7002)) as s:
        good += s.recv(1) == b"x"
held = [socket.create_connection(("echo.example", 7001)) for _ in range(1000)]
for s in held: s.sendall(b"hello")
print(good, sum(s.recv(5, socket.MSG_WAITALL) == b"hello" for s in held))
"""
    flags = ("--host", "echo.example:7001,7002")
    done = world.confined(internet.PYTHON, "-c", script, flags=flags, seconds=200)

    assert done["out"] == "9000 1000\n", done["err"][-500:]


@WAYS
def test_the_user_s_proxy_is_the_way_out(world: internet.World, namespaces: bool) -> None:
    """With its password, which the line does not see."""
    proxy = "http://me:pass@proxy.example:3128"
    done = bash(
        world, "env | grep -ci proxy; curl -sS -m 9 https://pypi.example/hello; curl -sS -m 9 http://pypi.example/hello",
        "pypi.example", namespaces=namespaces, HTTPS_PROXY=proxy, http_proxy=proxy, no_proxy="localhost",
    )  # fmt: skip
    through = [entry for entry in done["log"] if entry.startswith("proxy")]

    assert done["out"] == "0\nhello from the world\nhello from the world\n", done
    assert through == [
        "proxy CONNECT pypi.example:443 HTTP/1.1 True",
        "proxy GET http://pypi.example/hello HTTP/1.1 True",
    ]


@WAYS
def test_a_machine_with_ipv6_alone(world: internet.World, namespaces: bool) -> None:
    """Names are then given IPv6 addresses, too, and looked up over it; in a network of its own IPv4 is there."""
    four, six = "11.0.0.2/24 dev near0", "default via 2a11::10 dev near0"
    world.run("bash", "-c", f"ip addr del {four}; ip -6 route add {six}")
    try:
        done = bash(
            world, "curl -sS -m 9 http://six.example/hello; getent ahosts six.example | sort -r | head -1",
            "six.example", namespaces=namespaces,
        )  # fmt: skip
    finally:
        world.run("bash", "-c", f"ip addr add {four}; ip route add default via 11.0.0.1; ip -6 route del {six}")

    assert done["out"].startswith("hello from the world\n" + ("198.18." if namespaces else "fd68:6f6f:6b")), done


def test_without_a_supervisor_no_line_runs(world: internet.World) -> None:
    """Where calls cannot be handed over, `--host` fails closed and says so."""
    inner = [internet.PYTHON, "-I", "-S", str(internet.LAUNCH), "--write", ".", "--host", "pypi.example", "--"]
    done = world.confined(*inner, "curl", "-s", "http://pypi.example/hello", flags=("--host", "pypi.example"))

    assert (done["code"], done["out"]) == (125, ""), done
    assert "hookline confine: " in done["err"]
    assert [entry for entry in done["log"] if entry.startswith("web")] == []


def test_what_is_asked_for_is_understood_or_refused(world: internet.World) -> None:
    """Flags that cannot be held to run nothing."""
    rows = [
        (("--host", "http://x"), "`http://x` is not a host"), (("--token", "A=b.example"), "is not set"),
        (("--token", "HOME=b.example"), "`b.example` is not among the hosts"), (("--token", "HOME"), "expected NAME=HOST"),
    ]  # fmt: skip
    for flags, said in rows:
        done = world.confined("true", flags=flags)

        assert (done["code"], said in done["err"]) == (64, True), done
