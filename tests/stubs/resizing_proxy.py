"""A server between client and model that silently makes large images smaller, as several local servers do.

Ollama, LM Studio and llama.cpp resize what they are sent to what suits them and say nothing of it. Points on a relative
grid survive that; pixels of the image as sent do not, as the model counts those of an image that the client never saw.
"""

import http.client
import io
import json
import math
import threading
from base64 import b64decode, b64encode
from urllib.parse import urlsplit

from PIL import Image
from stubs.http_stub import Handler, HttpStub

from agent.core.geometry import Size

#: Headers that concern one connection, or that change with the body.
_OWN = {"host", "connection", "content-length", "transfer-encoding", "accept-encoding", "keep-alive"}


class ResizingProxy:
    """The proxy, on loopback; a context manager.

    Args:
        upstream: the server's address, as given to --endpoint.
        max_pixels: area in pixels to which larger images are reduced; their proportions stay, to the pixel.
    """

    def __init__(self, upstream: str, max_pixels: int) -> None:
        self.max_pixels = max_pixels
        #: per image that went through: its size as sent, and as passed on
        self.resized: list[tuple[Size, Size]] = []
        self._upstream = urlsplit(upstream)
        self._lock = threading.Lock()
        self._server = HttpStub(
            lambda handler: self._pass_on(handler, "GET", None),
            lambda handler: self._pass_on(handler, "POST", self._smaller(handler.body())),
        )

    def __enter__(self) -> "ResizingProxy":
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    @property
    def url(self) -> str:
        """As given to --endpoint."""
        return self._server.url

    def _smaller(self, body: bytes) -> bytes:
        """The request with every image at most `max_pixels` large."""
        request = json.loads(body)
        for message in request.get("messages", ()):
            content = message.get("content")
            for part in content if isinstance(content, list) else ():
                if part.get("type") == "image_url" and part.get("image_url"):
                    part["image_url"]["url"] = self._resize(part["image_url"]["url"])
                    part.pop("uuid", None)  # the name of other bytes
        return json.dumps(request).encode()

    def _resize(self, url: str) -> str:
        with Image.open(io.BytesIO(b64decode(url.partition(",")[2]))) as image:
            image.load()
        before = Size(*image.size)
        shrink = math.sqrt(self.max_pixels / before.area)
        after = before
        if shrink < 1:
            after = Size(max(1, math.floor(before.width * shrink)), max(1, math.floor(before.height * shrink)))
        with self._lock:
            self.resized.append((before, after))
        if after == before:
            return url
        file = io.BytesIO()
        image.convert("RGB").resize((after.width, after.height), Image.Resampling.BICUBIC).save(file, "PNG")
        return "data:image/png;base64," + b64encode(file.getvalue()).decode()

    def _pass_on(self, handler: Handler, method: str, body: bytes | None) -> None:
        host, port = self._upstream.hostname, self._upstream.port
        assert host is not None
        connection = http.client.HTTPConnection(host, port, timeout=100)
        headers = {name: value for name, value in handler.headers.items() if name.lower() not in _OWN}
        try:
            connection.request(method, handler.path, body, headers)
            response = connection.getresponse()
            handler.send_response(response.status)
            for name, value in response.getheaders():
                if name.lower() not in _OWN:
                    handler.send_header(name, value)
            handler.send_header("Transfer-Encoding", "chunked")
            handler.end_headers()
            while piece := response.read1(65536):  # as it comes, so that what streams still streams
                handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                handler.wfile.flush()
            handler.wfile.write(b"0\r\n\r\n")
        finally:
            connection.close()
