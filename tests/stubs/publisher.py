"""A made-up repository of a publisher on loopback, and what this program knows of it."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

from stubs.http_stub import Handler, HttpStub

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CLIENT = b'''"""A client."""
import json
raise SystemExit("this file must not be run")

SYSTEM = """You use a made-up computer of {size}.

# Tools
""" + json.dumps({"name": "computer_use"})


class Client:
    def ask(self, instruction, previous):
        self.screen.capture()
        prompt = f"""
Task of today: {instruction}
So far:
{previous}"""
        self.send(prompt)
'''
PHONE = b'PROMPT = "A made-up phone."\nPOINT = "Where is it?"\n'
FILES = {"made/up client.py": CLIENT, "made/phone.py": PHONE}


def digest(content: bytes) -> str:
    """Return what the data of this program holds of a file."""
    return hashlib.sha256(content).hexdigest()


def prompts_data(address: str) -> dict[str, Any]:
    """Return the content of configs/prompts.toml for the made-up repository."""
    common = {"repository": "made-up/client", "commit": COMMIT}
    computer = {
        "files": {"made/up client.py": digest(CLIENT)},
        "within": "Client.ask",
        "parts": {"system": "SYSTEM.replace('{size}', size)", "asked": "prompt"},
        "given": {"instruction": "{instruction}", "previous": "{previous}", "size": "{width}x{height}"},
    }
    phone = {
        "files": {"made/phone.py": digest(PHONE)},
        "parts": {"system": "PROMPT", "grounding": "POINT"},
        "phone": ["system"],
    }
    return {"address": address, "families": {"qwen3-vl": common | computer, "mai-ui": common | phone}}


class Repository(HttpStub):
    """Serves the files of the made-up repository; `asked` are the paths that were asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.files = {f"/made-up/client/{COMMIT}/{path}": content for path, content in FILES.items()}
        super().__init__(self._answer)

    def _answer(self, handler: Handler) -> None:
        path = unquote(handler.path)
        self.asked.append(path)
        content = self.files.get(path)
        handler.respond(content or b"", status=404 if content is None else 200)


@contextmanager
def serving() -> Iterator[Repository]:
    """Serve it for a while."""
    repository = Repository()
    try:
        yield repository
    finally:
        repository.close()
