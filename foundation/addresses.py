"""Addresses of OpenAI-compatible endpoints: as people write them, and whether they leave this machine."""

import ipaddress
import urllib.parse

from foundation.errors import UsageError


def normalize_url(text: str) -> str:
    """The base URL of an endpoint as a person may write it: a host with a port, a URL with or without /v1.

    Raises UsageError: it is no address.
    """
    address = text.strip()
    if "://" not in address:
        address = f"http://{address}"
    try:
        parts = urllib.parse.urlsplit(address)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        valid = False
    if not valid or " " in address:
        raise UsageError(f"{text!r} is not the address of an endpoint.", "It looks like http://127.0.0.1:8000/v1.")
    path = parts.path.rstrip("/").removesuffix("/chat/completions") or "/v1"
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def is_loopback(url: str) -> bool:
    """Whether what is sent to this URL stays on this machine."""
    host = urllib.parse.urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name, also one that only looks like an address: 127.0.0.1.example.org
        return False
