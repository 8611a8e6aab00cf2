"""The authority of a line: certificates that real TLS accepts, for its hosts only."""

from __future__ import annotations

import ssl

import pytest

from hookline.sandbox.placeholders import Authority


def handshake(server: ssl.SSLContext, trusted: str, name: str) -> str:
    """Shake hands in memory; the name that the server's certificate is for."""
    client = ssl.create_default_context(cadata=trusted)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client.wrap_bio(to_client, to_server, server_hostname=name)
    far = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(10):
        done = 0
        for side in (near, far):
            try:
                side.do_handshake()
                done += 1
            except ssl.SSLWantReadError:
                continue
        if done == 2:
            break
    found = near.getpeercert()
    assert found is not None
    return str(dict(found["subjectAltName"])["DNS"])  # type: ignore[arg-type]


def test_a_host_s_certificate_is_trusted_by_those_who_trust_the_authority() -> None:
    """Names below a pattern, too."""
    authority = Authority(["api.example", "*.code.example"])
    names = ("api.example", "git.code.example")

    assert [handshake(authority.context(name), authority.certificate, name) for name in names] == list(names)


def test_the_authority_is_good_for_its_hosts_only() -> None:
    """Whatever it signs."""
    authority = Authority(["api.example"])

    with pytest.raises(ssl.SSLCertVerificationError, match="permitted subtree"):
        handshake(authority.context("pypi.org"), authority.certificate, "pypi.org")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(authority.context("api.example"), Authority(["api.example"]).certificate, "api.example")
