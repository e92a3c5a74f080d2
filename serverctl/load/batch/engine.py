"""The offline half of `mai-server batch`: answers requests with vLLM's own engine, without a server.

    python engine.py --engine '{"model": ...}' [--chunk N]

Run by the Python of an environment that has vLLM, and by itself: it imports nothing of this project. Standard input
has one request a line, as `serverctl.load.batch.prepare` makes them:

    {"id", "messages", "max_tokens", "temperature", "schema": optional, "regex": optional}

Standard output has one JSON object a line: first {"ready": {"vllm": version}}, then for each request in any order
{"id", "ok": true, "text", "finish_reason", "usage", "seconds"} or {"id", "ok": false, "error": {"kind", "message"}}; at
last {"fatal": message} if the engine died. Everything that vLLM prints goes to standard error.
"""

import argparse
import importlib
import json
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

#: How often it is looked whether the program that started this one still lives, in seconds.
_LOOK_S = 2.0
_ORPHANED_S = 0.2
_CONTEXT_WORDS = ("max_model_len", "maximum model length", "max model len", "context length", "longer than the maximum")


def main() -> int:
    """Answer requests until standard input ends."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--engine", required=True, type=json.loads, help="arguments of vllm.LLM, as a JSON object")
    parser.add_argument("--chunk", type=int, default=64, help="requests that are given to the engine at once")
    options = parser.parse_args()
    answers = _take_standard_output()
    parent = os.getppid()
    _watch_parent(parent)
    try:
        return _serve(options.engine, max(1, options.chunk), answers)
    finally:
        # Input also ends when the parent is killed, and then nobody is left to end what the engine has started. The
        # kernel closes files before it gives children away, so the moment between is waited for.
        time.sleep(_ORPHANED_S)
        if os.getppid() != parent:
            _end_all()


def _serve(arguments: dict[str, Any], size: int, answers: TextIO) -> int:
    try:
        vllm: Any = importlib.import_module("vllm")  # by name: only the environment that runs this has it
        engine = vllm.LLM(**arguments)
    except Exception as error:
        _write(answers, {"fatal": f"The engine did not start: {_sentence(error)}"})
        raise
    _write(answers, {"ready": {"vllm": vllm.__version__}})
    for chunk in _chunks(size):
        if not _answer_chunk(engine, chunk, answers):
            return 1
    return 0


def _take_standard_output() -> TextIO:
    """Keep standard output for answers; whatever else prints, in this process or its children, goes to the log."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def _watch_parent(parent: int) -> None:
    """End this process and its group when the program that started it is gone: a card must not stay occupied."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_S)
        _end_all()

    threading.Thread(target=watch, daemon=True).start()


def _end_all() -> None:
    """End this process and, where the group is its own, everything that the engine has started."""
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


def _chunks(size: int) -> Iterator[list[dict[str, Any]]]:
    """Requests as they come, so many at a time at most; never waits for more than one."""
    lines: queue.Queue[bytes | None] = queue.Queue(2 * size)

    def read() -> None:
        for line in sys.stdin.buffer:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    ended = False
    while not ended:
        chunk: list[dict[str, Any]] = []
        line = lines.get()
        while line is not None:
            chunk.append(json.loads(line))
            if len(chunk) == size:
                break
            try:
                line = lines.get(timeout=0.2)
            except queue.Empty:
                break
        ended = line is None
        if chunk:
            yield chunk


def _answer_chunk(engine: Any, chunk: list[dict[str, Any]], answers: TextIO) -> bool:
    """Answer a chunk at once; where the engine refuses it, in halves, so that in the end only the culprit fails.

    Returns:
        False when the engine is dead.
    """
    began = time.monotonic()
    try:
        outputs = engine.chat([one["messages"] for one in chunk], [_sampling(one) for one in chunk], use_tqdm=False)
    except Exception as error:
        if _is_dead(error):
            _write(answers, {"fatal": f"The engine died: {_sentence(error)}"})
            return False
        if len(chunk) > 1:
            middle = len(chunk) // 2
            return all(_answer_chunk(engine, half, answers) for half in (chunk[:middle], chunk[middle:]))
        failure = {"kind": _kind(error), "message": f"The engine refuses the request: {_sentence(error)}"}
        _write(answers, {"id": chunk[0]["id"], "ok": False, "error": failure})
        return True
    seconds = time.monotonic() - began
    for one, output in zip(chunk, outputs, strict=True):
        answer = output.outputs[0]
        usage = {
            "prompt_tokens": len(output.prompt_token_ids or ()),
            "completion_tokens": len(answer.token_ids),
            "cached_tokens": getattr(output, "num_cached_tokens", None),
        }
        document = {"id": one["id"], "ok": True, "text": answer.text, "finish_reason": answer.finish_reason}
        _write(answers, {**document, "usage": usage, "seconds": round(seconds, 3)})
    return True


def _sampling(request: dict[str, Any]) -> Any:
    params: Any = importlib.import_module("vllm.sampling_params")
    structure = None
    if request.get("schema") is not None:
        structure = params.StructuredOutputsParams(json=request["schema"])
    elif request.get("regex") is not None:
        structure = params.StructuredOutputsParams(regex=request["regex"])
    return params.SamplingParams(
        max_tokens=request["max_tokens"], temperature=request["temperature"], structured_outputs=structure
    )


def _kind(error: BaseException) -> str:
    """The kinds that a server's refusals have too (foundation/refusals.py)."""
    if "At most" in str(error) and "image" in str(error):
        return "too_many_images"
    return "context_too_long" if any(word in str(error) for word in _CONTEXT_WORDS) else "refused"


def _is_dead(error: BaseException) -> bool:
    names = {type(one).__name__ for one in (error, error.__cause__, error.__context__) if one is not None}
    return bool(names & {"EngineDeadError", "OutOfMemoryError"})


def _sentence(error: BaseException) -> str:
    text = " ".join(str(error).split())[:400].rstrip(".")
    return f"{text or type(error).__name__}."


def _write(answers: TextIO, document: dict[str, Any]) -> None:
    answers.write(json.dumps(document) + "\n")
    answers.flush()


if __name__ == "__main__":
    # This file's folder is not a place to import from: its neighbours have names that others may mean.
    here = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != here]
    sys.exit(main())
