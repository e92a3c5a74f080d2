"""A real vLLM on the processor that serves one of the models in tests/models, for as long as it is open."""

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil

#: Seconds until it must answer: usually 15 to 20, on a machine that does much else several times that.
_TIMEOUT = 110


class RealVllm:
    """The server; a context manager, which waits until it answers.

    Args:
        python: of the environment with a vLLM for the CPU.
        model: the folder of the model.
        name: under which it is served; a family is told by it.
        environ: variables for a quick start.
        log: file for what it prints.
    """

    def __init__(self, python: Path, model: Path, name: str, environ: dict[str, str], log: Path) -> None:
        self.name = name
        self._log = log
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = int(free.getsockname()[1])
        options = {
            "host": "127.0.0.1", "port": str(self._port), "model": str(model), "served-model-name": name,
            "max-model-len": "8192", "limit-mm-per-prompt": '{"image": 6, "video": 0}',
            "kv-cache-memory-bytes": str(256 * 2**20),
            "dtype": "float32",  # a processor without instructions for bfloat16 takes a third longer with that
        }  # fmt: skip
        line = [word for option, value in options.items() for word in (f"--{option}", value)]
        kept = {name: value for name, value in os.environ.items() if name != "OMP_THREAD_LIMIT"}  # it hangs with that
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                [python, "-m", "vllm.entrypoints.openai.api_server", "--enforce-eager", *line],
                env=kept | environ, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
            )  # fmt: skip

    @property
    def url(self) -> str:
        """As given to --endpoint."""
        return f"http://127.0.0.1:{self._port}"

    def __enter__(self) -> "RealVllm":
        end = time.monotonic() + _TIMEOUT
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                self.close()
                raise AssertionError("vLLM does not answer:\n" + self._log.read_text(errors="replace")[-4000:])
            time.sleep(0.2)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the server and whatever it started."""
        try:
            started = psutil.Process(self._process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            started = []
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for process in started:
            if process.is_running():
                process.kill()

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=2) as response:
                return bool(response.status == 200)
        except (urllib.error.URLError, OSError):
            return False
