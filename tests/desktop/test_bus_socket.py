"""How a bus lets us in, and what comes of one that does not."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.desktop.bus_socket import open_bus_socket


@contextmanager
def bus(path: Path, *answers: bytes) -> Iterator[list[bytes]]:
    """A bus that says these lines, one to each that it hears."""
    heard: list[bytes] = []
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(path))
    listening.listen()

    def serve() -> None:
        one, _ = listening.accept()
        with one:
            for answer in answers:
                heard.append(one.recv(1000))
                one.sendall(answer)
            heard.append(one.recv(1000))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield heard
    thread.join(5)
    listening.close()


def test_the_bus_is_told_no_user_and_reads_who_we_are(tmp_path: Path) -> None:
    with bus(tmp_path / "bus", b"DATA\r\n", b"OK 1234\r\n") as heard:
        opened = open_bus_socket(str(tmp_path / "bus"), 5.0)
        opened.close()
    assert heard == [b"\0AUTH EXTERNAL\r\n", b"DATA\r\n", b"BEGIN\r\n"]


def test_a_bus_is_asked_for_files_where_messages_can_bring_some(tmp_path: Path) -> None:
    with bus(tmp_path / "bus", b"DATA\r\n", b"OK 1234\r\n", b"AGREE_UNIX_FD\r\n") as heard:
        open_bus_socket(str(tmp_path / "bus"), 5.0, files=True).close()
    assert heard[2:] == [b"NEGOTIATE_UNIX_FD\r\n", b"BEGIN\r\n"]


def test_a_bus_that_refuses_is_told(tmp_path: Path) -> None:
    with bus(tmp_path / "bus", b"REJECTED EXTERNAL\r\n"), pytest.raises(PermissionError, match="REJECTED"):
        open_bus_socket(str(tmp_path / "bus"), 5.0)


def test_a_bus_that_hangs_is_given_up(tmp_path: Path) -> None:
    with bus(tmp_path / "bus", b"DA"), pytest.raises(TimeoutError):
        open_bus_socket(str(tmp_path / "bus"), 0.2)


def test_where_no_bus_is_an_error_says_so(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        open_bus_socket(str(tmp_path / "nothing"), 0.2)
