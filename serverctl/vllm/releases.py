"""Reads the capabilities of a vLLM release without installing it, and compares two releases.

pip downloads the wheel, and `parser_dump.py` runs on its Python files (60 MB, without half a gigabyte of compiled
files) in an environment with another vLLM.
"""

import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

from foundation.errors import EnvironmentLacksError
from serverctl.vllm.capabilities import ask_parser

_WANTED = {".py", ".json", ".jinja", ".txt", ".typed", ".toml", ".yaml"}
#: Maximum number of missing packages to download for a release.
_MOST_MISSING = 8


@dataclass(frozen=True, slots=True)
class Releases:
    """Downloaded releases, each in its own folder."""

    _cache: Path  # the parent folder
    _python: Path  # of an environment with vLLM, whose packages the releases use
    _say: Callable[[str], None]  # receives messages about slow steps

    def fetch(self, version: str) -> Path:
        """Return the folder with the Python files of a release. Download it if it is missing."""
        folder = self._cache / version
        if folder.is_dir():
            return folder
        self._cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._cache, prefix=f"{version}-") as work:
            self._say(f"getting the wheel of vLLM {version} (once; about 400 MB, of which a tenth is kept)")
            self._pip("download", "--no-deps", "--only-binary", ":all:", "--dest", work, f"vllm=={version}")
            return self._unpack(next(Path(work).glob("vllm-*.whl")), Path(work), folder)

    def open_wheel(self, wheel: Path) -> Path:
        """Unpack a downloaded wheel, and return the folder with its Python files."""
        if not zipfile.is_zipfile(wheel):
            raise EnvironmentLacksError(f"{wheel} is no wheel.", "Name the file that `pip download` gave: vllm-*.whl.")
        self._cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._cache, prefix="wheel-") as work:
            return self._unpack(wheel, Path(work), self._cache / f"{wheel.stem}-unpacked")

    def _unpack(self, wheel: Path, work: Path, folder: Path) -> Path:
        new = work / "unpacked"
        with zipfile.ZipFile(wheel) as files:
            for name in files.namelist():
                if Path(name).suffix in _WANTED or ".dist-info/" in name:
                    files.extract(name, new)
        _requirements(new)
        shutil.rmtree(folder, ignore_errors=True)
        new.rename(folder)
        return folder

    def document(self, folder: Path) -> dict[str, Any]:
        """Return the output of `parser_dump.py` for the release in a folder.

        Missing packages that the release requires are downloaded.
        """
        wanted, tried = _requirements(folder), set[str]()
        while True:
            try:
                return ask_parser(self._python, folder)
            except EnvironmentLacksError as error:
                missing = re.search(r"ModuleNotFoundError: No module named '([A-Za-z0-9_]+)", error.what)
                name = missing[1].replace("_", "-") if missing else ""
                if name not in wanted or name in tried or len(tried) == _MOST_MISSING:
                    raise
            tried.add(name)
            self._say(f"getting {name}, which this release asks for")
            self._pip("install", "--no-deps", "--target", str(folder), f"{name}{wanted[name]}")

    def _pip(self, *arguments: str) -> None:
        """Run pip, with one retry: downloads of large files fail now and then."""
        command = [str(self._python), "-I", "-m", "pip", *arguments, "-q", "--disable-pip-version-check", "--no-input"]
        for last in (False, True):
            done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
            if done.returncode == 0:
                return
            if not last:
                self._say(f"pip {arguments[0]} did not succeed; trying once more")
        reason = (done.stderr.strip().splitlines() or ["nothing"])[-1][:300]
        raise EnvironmentLacksError(f"pip {arguments[0]} failed: {reason}", f"It was asked for {arguments[-1]}.")


def _requirements(folder: Path) -> dict[str, str]:
    """Return the wheel's requirements without extras: names with version specifiers.

    Raises EnvironmentLacksError if it is no wheel of vLLM.
    """
    metadata = next(folder.glob("vllm*.dist-info/METADATA"), None)
    if metadata is None:
        raise EnvironmentLacksError("That wheel is not one of vLLM.", "Name vllm-*.whl.")
    lines = HeaderParser().parsestr(metadata.read_text(encoding="utf-8")).get_all("Requires-Dist") or []
    found: dict[str, str] = {}
    for line in lines:
        requirement, _, marker = line.partition(";")
        match = re.fullmatch(r"([A-Za-z0-9._-]+)\s*(?:\[[^]]*\])?\s*\(?([^)]*)\)?\s*", requirement)
        if match and "extra" not in marker:
            found.setdefault(match[1].lower().replace("_", "-"), match[2].strip())
    return found


#: The parts of a dump to compare, and their display names.
NAMES = {
    "options": "flags",
    "env": "environment variables",
    "quantization_methods": "quantization methods",
    "reasoning_parsers": "reasoning parsers",
    "architectures": "architectures",
}


@dataclass(frozen=True, slots=True)
class Drift:
    """The differences between two dumps, by part."""

    came: Mapping[str, tuple[str, ...]]
    went: Mapping[str, tuple[str, ...]]
    changed: tuple[str, ...]  # descriptions of flags that accept other values now

    def __bool__(self) -> bool:
        return bool(self.changed or any(self.came.values()) or any(self.went.values()))


def drift(known: Mapping[str, Any], now: Mapping[str, Any]) -> Drift:
    """Compare two documents of `parser_dump.py`. Parts that are missing in either are skipped."""
    parts = [part for part in NAMES if known.get(part) and now.get(part)]
    came = {part: tuple(sorted(_names(now[part]) - _names(known[part]))) for part in parts}
    went = {part: tuple(sorted(_names(known[part]) - _names(now[part]))) for part in parts}
    both = sorted(set(known.get("options", ())) & set(now.get("options", ())))
    pairs = [(flag, known["options"][flag], now["options"][flag]) for flag in both]
    changed = tuple(f"{flag}: {words}" for flag, was, entry in pairs for words in _differences(was, entry))
    return Drift(came, went, changed)


def _differences(was: Mapping[str, Any], entry: Mapping[str, Any]) -> Iterator[str]:
    """Describe the changes of an option, without its aliases, which are compared as flags."""
    for key, value in sorted(entry.items()):
        before = was.get(key)
        if key == "aliases" or before == value or (key == "names" and before is None):
            continue
        if isinstance(before, list) and isinstance(value, list):
            old, new = set(map(str, before)), set(map(str, value))
            words = (("without", old - new), ("with", new - old))
            yield f"{key} {', '.join(f'{word} {name}' for word, names in words for name in sorted(names))}"
        else:
            yield f"{key} was {before}, is {value}"


def _names(part: Any) -> set[str]:
    """Return the names of a part. For options include the aliases, since a flag may have become an alias."""
    if not isinstance(part, Mapping):
        return set(part)
    return {name for flag, entry in part.items() for name in (flag, *(entry.get("aliases") or ()))}
