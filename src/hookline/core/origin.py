"""Whether a web request comes from a page of this machine's own server, and what each answer to one says. Pure."""

from collections.abc import Mapping

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
        " font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
        " require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}  # what every answer says: no code but our own files, no other origin, nothing kept


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
