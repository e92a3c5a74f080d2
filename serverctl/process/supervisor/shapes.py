"""Notes the shapes of clients' requests for `mai-server tune`, without their content.

A shape has the lengths of texts, the sizes of pictures, and which of them are alike, by a hash whose secret is never
stored. A trial sends made-up requests of the same shapes.
"""

import base64
import contextlib
import hashlib
import io
import json
import os
from typing import Any

from serverctl.process.state import Folder

#: Most shapes to note, and characters of a text that are noted as one piece.
_MOST_SEEN, _PIECE = 64, 512


class ShapeNotes:
    """Appends to the folder's file of shapes while the file that asks for them exists."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._secret = os.urandom(16)

    @property
    def are_wanted(self) -> bool:
        """Whether somebody asks for shapes now."""
        return self._folder.look_file.exists()

    def take(self, body: bytes) -> None:
        """Note the shape of one chat request. Ignores requests that vLLM will reject, and a full disk."""
        with contextlib.suppress(Exception):
            path, messages = self._folder.seen_file, json.loads(body)["messages"]
            if path.exists() and path.read_bytes().count(b"\n") >= _MOST_SEEN:
                return
            line = json.dumps([[message["role"], self._pieces(message["content"])] for message in messages])
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "w") as file:
                file.write(line + "\n")

    def _pieces(self, content: Any) -> list[list[Any]]:
        """Return the pieces of a message: [hash, characters] of a text, [hash, width, height] of a picture."""
        from PIL import Image

        found: list[list[Any]] = []
        parts: list[Any] = [{"text": content}] if isinstance(content, str) else content or []
        for part in parts:
            if "text" in part:
                text = part["text"]
                pieces = [text[begin : begin + _PIECE] for begin in range(0, len(text), _PIECE)]
                found += [[self._hash(piece), len(piece)] for piece in pieces]
            elif "image_url" in part:
                url = part["image_url"]["url"]
                with Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))) as picture:  # reads the size only
                    found.append([self._hash(url), *picture.size])
        return found

    def _hash(self, text: str) -> str:
        return hashlib.blake2b(text.encode(), digest_size=8, key=self._secret).hexdigest()
