"""Whether a web request comes from a page of this machine's own server. Pure."""

from __future__ import annotations

from collections.abc import Mapping

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def foreign(headers: Mapping[str, str], port: int) -> str:
    """Why a request does not come from a program or a page on this port of this machine; empty if nothing says so."""
    hosts = {f"{name}:{port}" for name in LOOPBACK}
    if headers.get("host", "") not in hosts:
        return "the Host header names another machine"
    origin = headers.get("origin")
    if origin is not None and origin not in {f"http://{host}" for host in hosts}:
        return "the request comes from another origin"
    if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        return "the request comes from another site"
    return ""
