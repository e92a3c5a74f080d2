"""The HTTP server on loopback that other stubs are made of: quiet, in threads of the test's own process."""

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or every stream waits 40 ms for an acknowledgement

    def body(self) -> bytes:
        """What was posted."""
        return self.rfile.read(int(self.headers["Content-Length"]))

    def respond(self, content: bytes, kind: str = "text/plain", status: int = 200) -> None:
        """Answer it; nobody keeps what was answered."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def _refuse(handler: Handler) -> None:
    handler.respond(b"", status=405)


class HttpStub(ThreadingHTTPServer):
    """Serves from now on, until it is closed.

    Args:
        get: answers GET.
        post: answers POST.
        port: 0 for a free one.
    """

    daemon_threads = True

    def __init__(
        self, get: Callable[[Handler], object], post: Callable[[Handler], object] = _refuse, port: int = 0
    ) -> None:
        class Own(Handler):
            def do_GET(self) -> None:
                get(self)

            def do_POST(self) -> None:
                post(self)

        super().__init__(("127.0.0.1", port), Own)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        """Its address, without a path."""
        return f"http://127.0.0.1:{self.server_port}"

    def close(self) -> None:
        """Stop listening."""
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # clients and scripts hang up on purpose
