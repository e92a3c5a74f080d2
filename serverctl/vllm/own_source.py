"""Reads what a vLLM knows from its own source files, without importing it: that takes many seconds."""

import ast
import json
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

_RENDER = Path(__file__).with_name("render_template.py")
#: Timeout for rendering a template, seconds. A template that takes longer is not judged.
_RENDER_SECONDS = 30.0


@cache
def words_in(python: Path, *modules: str) -> frozenset[str]:
    """Return all string constants of some modules, "vllm/model_executor/x.py"; none if one of them is not there."""
    found: set[str] = set()
    for module in modules:
        path = next(iter(sorted(python.parent.parent.glob(f"lib/python*/site-packages/{module}"))), None)
        try:
            tree = ast.parse(path.read_text(encoding="utf-8")) if path else None
        except (OSError, ValueError, SyntaxError):
            tree = None
        if tree is None:
            return frozenset()
        nodes = ast.walk(tree)
        found |= {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return frozenset(found)


def rendered_by(python: Path, template: str, variables: Mapping[str, str]) -> Mapping[str, Mapping[str, str]]:
    """Return the "text" or "error" of each conversation that `render_template.py` tries; empty if it cannot run."""
    request = json.dumps({"template": template, "variables": dict(variables)})
    with suppress(OSError, ValueError, subprocess.TimeoutExpired):
        done = subprocess.run(
            [str(python), "-I", str(_RENDER)], input=request, capture_output=True, text=True, errors="replace",
            timeout=_RENDER_SECONDS, check=False,
        )  # fmt: skip
        found: Any = json.loads(done.stdout) if done.returncode == 0 else {}
        return found if isinstance(found, dict) else {}
    return {}
