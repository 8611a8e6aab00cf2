"""The list of `--host`: what fits a name, and what two lists share."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookline.sandbox.hosts import Hosts, read_host, shared_hosts, upstream_proxy
from hookline.sandbox.policy import Policy

FORMS = {
    "PyPI.org.": ("pypi.org", {80, 443}), "*.example.com:443": ("*.example.com", {443}),
    "git.example.com:22,443": ("git.example.com", {22, 443}), "[::1]:80": ("::1", {80}), "::1": ("::1", {80, 443}),
    "10.0.0.5:5432": ("10.0.0.5", {5432}), "bücher.example": ("xn--bcher-kva.example", {80, 443}),
}  # fmt: skip


def test_hosts_are_read_with_their_ports() -> None:
    """Without ports, those of the web."""
    found = {text: (name, set(ports)) for text, (name, ports) in ((text, read_host(text)) for text in FORMS)}

    assert found == FORMS


@pytest.mark.parametrize("text", ["", "*", "a..b", "http://a", "a b", "a:x", "a:0", "a:70000", "*.*.a"])
def test_what_is_not_a_host_is_said_to_be_none(text: str) -> None:
    """Closed: nothing is guessed."""
    with pytest.raises(ValueError, match="is not a host"):
        read_host(text)


def test_a_pattern_means_names_below_it_and_not_itself(tmp_path: Path) -> None:
    """`*.a.b` is neither `a.b` nor `xa.b`."""
    hosts = Hosts(["*.example.com:443", "pypi.org"], str(tmp_path / "none"))
    names = ("a.example.com", "b.a.example.com", "example.com", "xexample.com", "pypi.org", "evil.pypi.org", "")

    assert [sorted(hosts.ports(name)) for name in names] == [[443], [443], [], [], [80, 443], [], []]


def test_the_machine_s_own_table_names_addresses(tmp_path: Path) -> None:
    """Programs read it before they ask anyone."""
    table = tmp_path / "hosts"
    table.write_text("127.0.0.1 localhost db.example # here\n10.0.0.5\tDB.example other\n\n")
    hosts = Hosts(["db.example:5432", "10.0.0.9:80"], str(table))

    assert hosts.addresses["db.example"] == ["127.0.0.1", "10.0.0.5"]
    assert [hosts.names_at(*at) for at in (("10.0.0.5", 5432), ("10.0.0.5", 80), ("10.0.0.9", 80))] == [
        ["db.example"], [], ["10.0.0.9"],
    ]  # fmt: skip


def test_two_policies_share_the_narrower_hosts() -> None:
    """And nothing of the network where they share none."""
    first = Policy((), hosts=("*.example.com", "pypi.org:443"))
    second = Policy((), hosts=("api.example.com:443,22", "*.org"))
    joined = first.intersected(second)

    assert shared_hosts(first.hosts, second.hosts) == ("api.example.com:443", "pypi.org:443")
    assert (joined.network, joined.hosts) == ("hosts", ("api.example.com:443", "pypi.org:443"))
    assert first.intersected(Policy(None)).hosts == first.hosts
    assert first.intersected(Policy((), hosts=("else.example",))).network == "none"
    assert first.intersected(Policy((), network="loopback")).arguments()[-1] == "--loopback"


def test_the_user_s_proxy_is_known_by_its_variables() -> None:
    """With its exceptions and credentials; one that is not understood is not passed by."""
    own = {
        "HTTPS_PROXY": "http://me:p%40ss@proxy.corp:3128", "no_proxy": "localhost,.corp.example", "http_proxy": "",
    }  # fmt: skip
    direct = (("pypi.org", 80), ("a.corp.example", 443), ("localhost", 443))

    assert upstream_proxy(own, "pypi.org", 443) == ("proxy.corp", 3128, b"bWU6cEBzcw==")
    assert [upstream_proxy(own, *at) for at in direct] == [None] * 3
    with pytest.raises(ValueError, match="not of a kind that is known"):
        upstream_proxy({"ALL_PROXY": "socks5://a:1"}, "pypi.org", 22)
