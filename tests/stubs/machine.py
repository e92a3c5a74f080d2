"""The server of an OSWorld machine, on loopback, for a sandbox: its routes and forms, with our own insides."""

import io
import json
import subprocess
import sys
from collections.abc import Mapping

from stubs.http_stub import Handler, HttpStub

from agent.desktop.portable import MssScreen


class MachineStub(HttpStub):
    """Serves the desktop that this process sees, and runs commands with an environment."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.commands: list[list[str]] = []
        self._environ = dict(environ)
        super().__init__(self._get, self._post)

    def _get(self, handler: Handler) -> None:
        if handler.path != "/screenshot":
            handler.respond(b"", status=404)
            return
        screen, picture = MssScreen(), io.BytesIO()
        screen.grab().image.save(picture, "PNG")
        screen.close()
        handler.respond(picture.getvalue(), "image/png")

    def _post(self, handler: Handler) -> None:
        body = json.loads(handler.body())
        assert handler.path == "/execute"
        assert body["shell"] is False
        program, *arguments = body["command"]
        assert program == "python"
        self.commands.append(arguments)
        done = subprocess.run(
            [sys.executable, *arguments], env=self._environ, capture_output=True, text=True, timeout=60, check=False
        )
        told = {"status": "success", "output": done.stdout, "error": done.stderr, "returncode": done.returncode}
        handler.respond(json.dumps(told).encode(), "application/json")
