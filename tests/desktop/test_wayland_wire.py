"""The Wayland client and the pipes beside it, against peers that hang, go away, or send what is no message."""

import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.desktop.protocol.clipboard import HungError
from agent.desktop.wayland import selection, wire
from agent.desktop.wayland.selection import read_all, write_all
from agent.desktop.wayland.wire import Arguments, Connection
from foundation.errors import EnvironmentLacksError

HEADER = struct.Struct("=IHH")
REGISTRY, CALLBACK, DONE, GLOBAL = 2, 3, 0, 0
#: What answers the first roundtrip of a connection.
GREETING = HEADER.pack(CALLBACK, DONE, 12) + b"\0\0\0\0"

Serve = Callable[..., str]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """A compositor that says some bytes to whoever comes, and reads nothing."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    path = str(tmp_path / "wayland")
    server.bind(path)
    server.listen()
    came: list[socket.socket] = []

    def start(said: bytes) -> str:
        def answer() -> None:
            came.append(server.accept()[0])
            came[-1].sendall(said)

        threading.Thread(target=answer, daemon=True).start()
        return path

    yield start
    for one in (server, *came):
        one.close()


@pytest.mark.parametrize(
    "said",
    [
        HEADER.pack(REGISTRY, GLOBAL, 0),  # of no length: whatever follows would never be reached
        HEADER.pack(REGISTRY, GLOBAL, 12) + b"\0\0\0\0",  # without the text that it must have
        HEADER.pack(REGISTRY, GLOBAL, 16) + struct.pack("=II", 1, 4000),  # with a text that is not whole
    ],
)
def test_what_is_no_message_ends_the_connection_in_words(serve: Serve, said: bytes) -> None:
    with pytest.raises(EnvironmentLacksError, match="an invalid message"):
        Connection(serve(said))


def test_a_file_that_did_not_come_is_told() -> None:
    with pytest.raises(EnvironmentLacksError, match="an invalid message"):
        Arguments(b"", wire.deque()).file()


def test_a_compositor_that_reads_nothing_holds_nobody_up(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "_PATIENCE", 0.2)
    connection = Connection(serve(GREETING))
    began = time.monotonic()
    with pytest.raises(EnvironmentLacksError):
        for _ in range(10_000):
            connection.request(1, 0, "s", "x" * 4000)
    assert time.monotonic() - began < 5
    connection.close()


def test_a_large_clipboard_is_read_within_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "_PATIENCE", 2.0)  # on a busy machine; it takes 0.2
    data = os.urandom(1 << 20) * 32
    reading, writing = os.pipe()
    threading.Thread(target=write_all, args=(writing, data), daemon=True).start()
    assert read_all(reading) == data
    os.close(reading)


def test_who_hands_nothing_over_is_given_up() -> None:
    reading, writing = os.pipe()
    with pytest.raises(HungError):
        read_all(reading)
    os.close(reading)
    os.close(writing)


def test_who_takes_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "_PATIENCE", 0.1)
    reading, writing = os.pipe()
    began = time.monotonic()
    write_all(writing, bytes(1 << 20))
    assert time.monotonic() - began < 5
    with pytest.raises(OSError):
        os.fstat(writing)
    os.close(reading)


def test_who_goes_away_while_something_is_handed_over_does_no_harm() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    write_all(writing, b"text")
    with pytest.raises(OSError):
        os.fstat(writing)
