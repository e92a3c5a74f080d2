"""Batches as a test writes, runs and reads them."""

import json
from pathlib import Path
from typing import Any

from PIL import Image
from stubs.token_server import TokenServer

from serverctl.commands.load.batch import main

ROOT = Path(__file__).resolve().parents[4]


def write(path: Path, *lines: Any) -> Path:
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


def ask_for(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{"id": f"r{number}", "instruction": f"request {number}", **more} for number in range(count)]


def answers(path: Path) -> list[dict[str, Any]]:
    """Every line; each must be whole."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def ok_ids(path: Path) -> list[str]:
    return sorted(line["id"] for line in answers(path) if line["ok"])


def picture(path: Path, width: int = 64, height: int = 48) -> Path:
    Image.new("RGB", (width, height), (9, 99, 200)).save(path)
    return path


def run(server: TokenServer, requests: Path, *more: str) -> int:
    return main([str(requests), "--endpoint", server.url, *more])
