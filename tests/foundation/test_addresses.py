"""Addresses as people write them, and which of them stay on this machine."""

import itertools

import pytest

from foundation.endpoints import is_loopback, normalize_url
from foundation.errors import UsageError


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("127.0.0.1:8000", "http://127.0.0.1:8000/v1"),
        ("http://localhost:8000/", "http://localhost:8000/v1"),
        (" https://example.org/api/v2/ ", "https://example.org/api/v2"),
        ("http://[::1]:9/v1/chat/completions", "http://[::1]:9/v1"),
    ],
)
def test_an_address_may_be_written_as_people_write_it(written: str, address: str) -> None:
    assert normalize_url(written) == address


@pytest.mark.parametrize("written", ["", "ftp://x", "http://", "host:port", "http://[::1", "a b:80", "h:99999", "h:0"])
def test_what_is_no_address_is_a_usage_error(written: str) -> None:
    with pytest.raises(UsageError, match="8000"):
        normalize_url(written)


def test_only_loopback_addresses_count_as_this_machine() -> None:
    local = ["http://127.0.0.1:1/v1", "http://127.8.9.1/v1", "http://localhost/v1", "http://[::1]:1/v1"]
    foreign = ["http://127.0.0.1.example.org/v1", "http://localhost.example.org/v1", "http://10.0.0.1/v1"]
    for address, expected in itertools.chain(((a, True) for a in local), ((a, False) for a in foreign)):
        assert is_loopback(address) is expected, address
