"""Runs one public client's parser, in a process of its own: `oracle_client.py CHECKOUT MODULE EXPRESSION`.

Reads answers as JSON lines, and writes the code that the client makes of each, or its error. Packages of others that
the client imports are replaced by mocks, so only the parser itself works.
"""

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import json
import sys
from pathlib import Path
from types import ModuleType
from unittest.mock import MagicMock


class Lacking(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a mock for every module that is neither Python's nor the client's."""

    def __init__(self, checkout: Path) -> None:
        self._own = {path.stem for path in checkout.iterdir()}

    def find_spec(self, name: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:  # noqa: ARG002
        if name.partition(".")[0] in self._own | sys.stdlib_module_names:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module: ModuleType = MagicMock(name=spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module: ModuleType) -> None:
        pass


def main() -> None:
    checkout, name, expression = sys.argv[1:4]
    sys.path.insert(0, checkout)
    sys.meta_path.insert(0, Lacking(Path(checkout)))
    module = importlib.import_module(name)
    for line in sys.stdin:
        told = json.loads(line)
        values = {"module": module, "bare": lambda kind: kind.__new__(kind), **told}
        with contextlib.redirect_stdout(sys.stderr):
            try:
                made = eval(expression, values)
                result = {"code": list(made) if isinstance(made, (list, tuple)) else [made]}
            except Exception as error:
                result = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps(result, default=str) + "\n")


main()
