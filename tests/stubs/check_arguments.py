"""Says whether the vLLM of the running Python takes some argument lists; run by that Python.

    VENV/bin/python tests/stubs/check_arguments.py FILE

FILE is a JSON list of argument lists, each what would follow `vllm serve`; prints a JSON list of {"ok", "error"}.
"""

import argparse
import contextlib
import importlib
import io
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))

from serverctl.vllm.parser_dump import (
    CLI_ARGS,
    asked,
    first,
    make_parser,
    only_ours_on_standard_output,
    quantization_methods,
    reasoning_parsers,
)


class RefusedError(Exception):
    """The parser refused an argument list."""


def main(file: str) -> int:
    lists = json.loads(Path(file).read_text(encoding="utf-8"))
    with only_ours_on_standard_output() as say:
        parser = make_parser()
        say(json.dumps([_check(parser, each) for each in lists], sort_keys=True))
    return 0


def _check(parser: argparse.ArgumentParser, arguments: list[str]) -> dict[str, Any]:
    try:
        with _raising(parser):
            parsed = parser.parse_args([*arguments[1:]] if arguments[:1] == ["serve"] else [*arguments])
        with _said_by_vllm():
            _validate(parsed)
    except RefusedError as refusal:
        return {"ok": False, "error": _without_addresses(str(refusal))}
    except Exception as error:  # vLLM's own checks raise whatever they like
        return {"ok": False, "error": _without_addresses(f"{type(error).__name__}: {error}")}
    return {"ok": True, "error": None}


def _without_addresses(text: str) -> str:
    """The same words every time: some of vLLM's messages show a function as Python does, with its place in memory."""
    return re.sub(r" at 0x[0-9a-f]+", "", text)


@contextlib.contextmanager
def _raising(parser: argparse.ArgumentParser) -> Iterator[None]:
    """Lets a parser raise where it would end the program."""

    def leave(status: int = 0, message: str | None = None) -> None:
        text = (message or "").strip()
        raise RefusedError(text.split("error: ", 1)[-1] or f"exit status {status}")

    said = io.StringIO()
    setattr(parser, "exit", leave)  # noqa: B010  mypy forbids to assign to a method
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            yield
    finally:
        delattr(parser, "exit")


@contextlib.contextmanager
def _said_by_vllm() -> Iterator[None]:
    with contextlib.redirect_stdout(sys.stderr):
        yield


def _validate(parsed: argparse.Namespace) -> None:
    """What vLLM checks of parsed arguments before it looks at a model, in its order; raises as it does."""
    first(CLI_ARGS, "validate_parsed_serve_args")(parsed)
    # An engine's arguments look a model up when the hub is offline; whether it is there is not the question here.
    hub: Any = importlib.import_module("huggingface_hub.constants")
    hub.HF_HUB_OFFLINE = False
    arg_utils = importlib.import_module("vllm.engine.arg_utils")
    engine = arg_utils.AsyncEngineArgs.from_cli_args(parsed)
    _validate_names(engine)
    config = importlib.import_module("vllm.config")
    _construct(config.MultiModalConfig, engine, {"limit_mm_per_prompt": "limit_per_prompt"})
    _construct(
        config.CacheConfig,
        engine,
        {"kv_cache_dtype": "cache_dtype"},
        ("gpu_memory_utilization", "kv_cache_memory_bytes", "kv_cache_dtype"),
    )


def _validate_names(engine: Any) -> None:
    """Names that the parser takes for free text, and that are looked up only after the model's files were read."""
    methods = asked(quantization_methods)
    if engine.quantization is not None and methods and engine.quantization not in methods:
        raise RefusedError(f"Unknown quantization method: {engine.quantization}. Must be one of {methods}.")
    parsers = asked(reasoning_parsers)
    wanted = getattr(engine, "reasoning_parser", None)
    plugin = getattr(engine, "reasoning_parser_plugin", None)
    if wanted and not plugin and parsers and wanted not in parsers:
        raise RefusedError(f"Reasoning parser '{wanted}' not found. Available: {', '.join(parsers)}")


def _construct(config: Any, engine: Any, renamed: Mapping[str, str], only: Iterable[str] | None = None) -> None:
    """Makes a part of the configuration from the engine's arguments, for the sake of its validation."""
    fields = set(config.__dataclass_fields__)
    taken: dict[str, Any] = {}
    for name in only if only is not None else vars(engine):
        field = renamed.get(name, name)
        value = getattr(engine, name, None)
        if field in fields and value is not None:
            taken[field] = value
    config(**taken)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
