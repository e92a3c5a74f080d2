"""Answers requests without a server: vLLM's own engine in a child process, which runs `engine.py`.

vLLM's `run-batch` reads the whole file, and writes all answers at its end: a stop or a crash loses them.
"""

import asyncio
import json
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from foundation.errors import EnvironmentLacksError
from serverctl.load.batch.answers import Answer
from serverctl.load.batch.prepare import Prepared
from serverctl.load.client import ServerGoneError
from serverctl.plan.goal import Plan

SCRIPT = Path(__file__).resolve().with_name("engine.py")

#: Bytes of the longest line that is read from the engine: an answer of a whole context is well below.
_LONGEST_LINE = 64 * 1024 * 1024
#: Seconds that the engine has to end by itself before its process group is killed.
_GRACE_S = 10.0
#: Settings of a plan whose names vLLM's engine takes as they are.
_SAME = (
    "dtype", "quantization", "max_num_seqs", "max_num_batched_tokens", "gpu_memory_utilization",
    "kv_cache_memory_bytes", "kv_cache_dtype", "enforce_eager", "tensor_parallel_size", "pipeline_parallel_size",
    "mm_encoder_tp_mode",
)  # fmt: skip


def engine_arguments(plan: Plan) -> dict[str, Any]:
    """A plan's settings as arguments of vLLM's `LLM` class, with the limits of a server of the same preset."""
    settings = plan.settings
    arguments = {name: value for name, value in settings.given().items() if name in _SAME}
    arguments |= {"model": plan.model.source, "max_model_len": plan.context, "generation_config": "vllm"}
    if settings.images is not None:
        arguments["limit_mm_per_prompt"] = {"image": settings.images, "video": 0}
    if settings.longest_edge is not None:
        size = {"shortest_edge": plan.model.min_pixels, "longest_edge": settings.longest_edge}
        arguments["mm_processor_kwargs"] = {"size": size}
    return arguments


@dataclass(slots=True)
class OfflineAsker:
    """Starts an engine and asks it; an async context manager that ends the engine with all its processes."""

    python: Path  # of an environment that has vLLM
    engine: Mapping[str, Any]  # arguments of `vllm.LLM`, "model" among them
    log: Path  # for everything that vLLM prints
    chunk: int = 64  # requests that the engine gets at once; answers come when a whole chunk is done
    say: Callable[[str], None] = lambda _: None  # told when the engine is ready
    _child: asyncio.subprocess.Process = field(init=False)
    _reader: asyncio.Task[None] = field(init=False)
    _waiting: dict[str, asyncio.Future[Answer]] = field(init=False, default_factory=dict)
    _writing: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)
    _problem: ServerGoneError | None = field(init=False, default=None)
    _fatal: str = field(init=False, default="")
    _unanswered: int = field(init=False, default=0)  # by the engine, abandoned requests included

    async def __aenter__(self) -> Self:
        engine, chunk = json.dumps(dict(self.engine)), str(self.chunk)
        with self.log.open("ab") as log:
            try:
                self._child = await asyncio.create_subprocess_exec(
                    str(self.python), str(SCRIPT), "--engine", engine, "--chunk", chunk,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=log,
                    start_new_session=True,  # Ctrl-C is for us; and its whole group can be ended
                    limit=_LONGEST_LINE,
                    env=_engine_env(os.environ),
                )  # fmt: skip
            except OSError as error:
                raise EnvironmentLacksError(
                    f"{self.python} cannot be started: {error.strerror or error}.",
                    "Name the Python of an environment that has vLLM with --python.",
                ) from error
        self.say(f"the engine is starting; its log is {self.log}")
        self._reader = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        assert self._child.stdin is not None
        self._child.stdin.close()  # the end of its work, if it is still there
        if self._unanswered or kind is not None:
            self._signal(signal.SIGTERM)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._child.wait(), _GRACE_S)
        self._signal(signal.SIGKILL)  # also what outlived the engine: workers do
        await self._child.wait()
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, number)

    async def ask(self, prepared: Prepared) -> Answer:
        """The answer or the failure. Raises ServerGoneError if the engine has ended."""
        if self._problem is not None:
            raise self._problem
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[prepared.id] = future
        try:
            line = json.dumps(asdict(prepared)).encode() + b"\n"
            assert self._child.stdin is not None
            async with self._writing:
                self._child.stdin.write(line)
                self._unanswered += 1
                # A broken pipe is told by the reader, which knows more.
                with suppress(ConnectionError):
                    await self._child.stdin.drain()
            return await future
        finally:
            self._waiting.pop(prepared.id, None)

    async def _read(self) -> None:
        """Hand out answers as they come; if the engine ends, raise in every task that waits."""
        assert self._child.stdout is not None
        with suppress(ValueError):  # a line beyond any sense
            async for raw in self._child.stdout:
                self._take(raw)
        status = await self._child.wait()
        reason = self._fatal or f"The engine ended with status {status}."
        self._problem = ServerGoneError(
            reason, f"Its log says why: {self.log}. Then run the same command: it goes on where it stopped."
        )
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(self._problem)

    def _take(self, raw: bytes) -> None:
        try:
            document = json.loads(raw)
        except ValueError:
            return  # not ours: something wrote past the script's care
        match document:
            case {"ready": {"vllm": version}}:
                self.say(f"vLLM {version} is ready")
            case {"fatal": str(reason)}:
                self._fatal = reason
            case {"id": str(name)}:
                self._unanswered -= 1
                future = self._waiting.get(name)
                if future is not None and not future.done():
                    future.set_result(_answer(document))


def _engine_env(environ: Mapping[str, str]) -> dict[str, str]:
    # OMP_THREAD_LIMIT: vLLM's attention on the processor (0.32) waits for ever for the threads that it does not get.
    env = {name: value for name, value in environ.items() if name != "OMP_THREAD_LIMIT"}
    return {"VLLM_NO_USAGE_STATS": "1", **env}


def _answer(document: dict[str, Any]) -> Answer:
    if not document.pop("ok"):
        return Answer(document["id"], **document["error"])
    return Answer(**document)
