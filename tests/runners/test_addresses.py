"""`allowedHttpHookUrls`: a list of hosts admits those hosts, however an address is dressed up."""

from __future__ import annotations

import pytest

from hookline.core.hooks.hook import Http
from hookline.errors import HookFailed
from hookline.runners.http import admits, check_url

CORP = "https://*.corp.example/*"
ONE = "https://corp.example/*"
DEEP = "https://corp.example/hooks/*"
LOCAL = "http://localhost:*"


@pytest.mark.parametrize(
    "pattern,url",
    [
        (CORP, "https://a.corp.example/"),
        (CORP, "https://a.corp.example/x/y?z=1"),
        (CORP, "https://a.b.corp.example/x"),
        (CORP, "https://A.CORP.Example/x"),
        (CORP, "HTTPS://a.corp.example/x"),
        (CORP, "https://a.corp.example./x"),
        (CORP, "https://a.corp.example:443/x"),
        (CORP, "https://a.corp.example"),
        (ONE, "https://corp.example/x"),
        (ONE, "https://corp.example/x#y"),
        (DEEP, "https://corp.example/hooks/a/b"),
        (LOCAL, "http://localhost:8080/hook"),
        (LOCAL, "http://localhost/hook"),
        ("http://localhost*", "http://localhost:8080/hook"),
        ("http://localhost:8080/*", "http://localhost:8080/hook"),
        ("https://hooks-*.corp.example/*", "https://hooks-eu.corp.example/x"),
        ("https://corp.example", "https://corp.example/"),
        ("https://corp.example/a?k=*", "https://corp.example/a?k=1"),
        ("https://bücher.example/*", "https://xn--bcher-kva.example/x"),
        ("https://xn--bcher-kva.example/*", "https://BÜCHER.example/x"),
        ("http://[::1]:8080/*", "http://[::1]:8080/x"),
        ("*://corp.example/*", "http://corp.example/x"),
        ("corp.example/*", "https://corp.example/x"),
        ("https://*/*", "https://any.where/x"),
        ("https://*", "https://any.where:8443/x"),
        ("*", "http://any.where/x"),
    ],
)
def test_a_host_on_the_list_is_asked(pattern: str, url: str) -> None:
    """Capitals, the usual port, a closing dot and the two ways to write other scripts are the same host."""
    assert admits([pattern], url)
    check_url(Http(url=url, allowed_urls=("https://other.example/*", pattern)))


@pytest.mark.parametrize(
    "pattern,url",
    [
        (CORP, "https://evil.net/x.corp.example/y"),
        (CORP, "https://evil.net/.corp.example/"),
        (CORP, "https://evil.net?x.corp.example/y"),
        (CORP, "https://evil.net#x.corp.example/y"),
        (CORP, "https://evil.net:443/a.corp.example/"),
        (CORP, "https://a.corp.example@evil.net/x"),
        (CORP, "https://a.corp.example:pw@evil.net/x"),
        (CORP, "https://evil.net\\.corp.example/x"),
        (CORP, "https://a.corp.example\\@evil.net/x"),
        (CORP, "https://evil.net%2f.corp.example/x"),
        (CORP, "https://evil.net%00.corp.example/x"),
        (CORP, "https://evil.net\t.corp.example/x"),
        (CORP, "https://evil.net\n.corp.example/x"),
        (CORP, "https://evil.net／x.corp.example/y"),
        (CORP, "https://corp.example/x"),
        (CORP, "https://.corp.example/x"),
        (CORP, "https://evilcorp.example/x"),
        (CORP, "https://a.corp.example.evil.net/x"),
        (CORP, "https://a.corp.example:8443/x"),
        (CORP, "http://a.corp.example/x"),
        (ONE, "https://corp.example.evil.net/x"),
        (ONE, "https://corp.example@evil.net/"),
        (ONE, "https://user@corp.example/x"),
        (ONE, "https://a.corp.example/x"),
        (ONE, "https://corp.example:444/x"),
        (ONE, "https://corp.example../x"),
        (ONE, "https://cоrp.example/x"),
        (DEEP, "https://corp.example/hooks/../admin"),
        (DEEP, "https://corp.example/hooks/%2e%2e/admin"),
        (DEEP, "https://corp.example/hooks/%252e%252e/admin"),
        (DEEP, "https://corp.example/hooks"),
        (DEEP, "https://corp.example/Hooks/a"),
        (LOCAL, "http://localhost.evil.net/x"),
        (LOCAL, "http://localhost@evil.net:80/x"),
        (LOCAL, "http://127.0.0.1:80/x"),
        ("http://localhost*", "http://localhost.evil.net/x"),
        ("http://localhost*", "http://localhostevil.net/x"),
        ("http://127.0.0.1/*", "http://2130706433/x"),
        ("https://hooks-*.corp.example/*", "https://hooks-a.evil.corp.example/x"),
        ("https://hooks-*.corp.example/*", "https://hooks-.evil.net/.corp.example/x"),
        ("https://corp.example", "https://corp.example/x"),
        ("https://", "https://corp.example/"),
        ("", "https://corp.example/"),
        ("https://u@corp.example/*", "https://corp.example/x"),
        ("*", "ftp://corp.example/x"),
        ("*", "https:///x"),
        ("*", "https://[::1/x"),
        ("*", "https://corp.example:x/"),
    ],
)
def test_another_host_is_refused(pattern: str, url: str) -> None:
    """Neither the path, a user's name, a port nor a strange letter makes an address one of the list's."""
    assert not admits([pattern], url)
    with pytest.raises(HookFailed):
        check_url(Http(url=url, allowed_urls=(pattern,)))


def test_an_empty_list_admits_nothing() -> None:
    """No list restricts nothing; an empty one everything."""
    check_url(Http(url="https://any.where/x"))

    with pytest.raises(HookFailed, match="add it to allowedHttpHookUrls"):
        check_url(Http(url="https://any.where/x", allowed_urls=()))


def test_patterns_take_linear_time() -> None:
    """Stars do not multiply."""
    assert not admits(
        ["https://" + "*a" * 2_000 + ".example/*", "https://h/" + "*a" * 2_000 + "b"], "https://h/" + "a" * 8_000
    )
