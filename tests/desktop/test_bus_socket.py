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


@pytest.mark.parametrize("files", [False, True])
def test_the_bus_is_told_no_user_and_asked_for_files_where_messages_can_bring_some(tmp_path: Path, files: bool) -> None:
    agreed = [b"AGREE_UNIX_FD\r\n"] if files else []
    with bus(tmp_path / "bus", b"DATA\r\n", b"OK 1234\r\n", *agreed) as heard:
        open_bus_socket(str(tmp_path / "bus"), 5.0, files=files).close()
    asked = [b"NEGOTIATE_UNIX_FD\r\n"] if files else []
    assert heard == [b"\0AUTH EXTERNAL\r\n", b"DATA\r\n", *asked, b"BEGIN\r\n"]


@pytest.mark.parametrize(
    ("answer", "seconds", "error", "said"),
    [
        (b"REJECTED EXTERNAL\r\n", 5.0, PermissionError, "REJECTED"),
        (b"DA", 0.2, TimeoutError, "time"),  # it hangs
    ],
)
def test_a_bus_that_does_not_let_us_in_is_an_error(
    tmp_path: Path, answer: bytes, seconds: float, error: type[OSError], said: str
) -> None:
    with bus(tmp_path / "bus", answer), pytest.raises(error, match=said):
        open_bus_socket(str(tmp_path / "bus"), seconds)
    with pytest.raises(OSError, match="No such file"):
        open_bus_socket(str(tmp_path / "nothing"), 0.2)
