"""Runs `mai-agent` inside the test, with its standard streams captured."""

import io
from dataclasses import dataclass

import pytest

from agent.cli import main


@dataclass(frozen=True)
class Ran:
    """How a command ended, and what it wrote."""

    status: int
    out: str
    err: str


class CommandLine:
    """What the `mai` fixture gives: call it with arguments, and with what standard input holds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Ran:
        self._monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        self._capsys.readouterr()
        status = main(arguments)
        out, err = self._capsys.readouterr()
        return Ran(status, out, err)
