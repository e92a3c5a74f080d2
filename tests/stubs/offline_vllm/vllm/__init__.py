"""A vLLM without an engine for tests of `serverctl/load/batch/engine.py`: the same calls, the same kinds of failures.

What a prompt's text says decides what happens: "refuse", "crash" (the engine dies), "hang".
"""

import os
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

__version__ = "0.0-stub"


class EngineDeadError(Exception):
    pass


class LLM:
    def __init__(self, **arguments: Any) -> None:
        print("INFO the engine prints to standard output")
        os.write(1, b"INFO and so do its workers\n")
        if arguments["model"] == "missing":
            raise ValueError("Invalid repository ID or local directory specified: 'missing'")
        # A worker, as engines have them: whoever ends the engine must end it too.
        self.worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        if log := os.environ.get("STUB_VLLM_PIDS"):
            with open(log, "a") as file:  # noqa: PTH123
                print(os.getpid(), self.worker.pid, file=file)

    def chat(self, messages: list[Any], params: list[Any], use_tqdm: bool) -> list[Any]:
        assert not use_tqdm
        assert len(messages) == len(params)
        print(f"CHUNK {len(messages)}", file=sys.stderr, flush=True)
        texts = [str(one[-1]["content"]) for one in messages]
        for text in texts:
            if "refuse" in text:
                raise ValueError("The prompt is longer than the maximum model length of 10 (max_model_len).")
            if "crash" in text:
                raise EngineDeadError("EngineCore encountered an issue")
            if "hang" in text:
                time.sleep(600)
        return [answer(one, text) for one, text in zip(params, texts, strict=True)]


def answer(params: Any, text: str) -> Any:
    said = params.structured_outputs.regex if params.structured_outputs else f"{len(text)} characters"
    output = SimpleNamespace(text=said, token_ids=[1, 2, 3], finish_reason="stop")
    return SimpleNamespace(outputs=[output], prompt_token_ids=[0] * 7, num_cached_tokens=5)
