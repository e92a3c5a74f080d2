"""Makes a torchvision built for CUDA importable with a CPU build of torch.

`packages.py` copies this file into such an environment, where it runs at every start of Python. The compiled part of
that torchvision cannot load, so two operators are missing for which its Python part registers fake implementations;
vLLM calls neither, so declaring them before the import is enough.
"""

import importlib
import sys
from typing import Any

_kept: list[Any] = []  # a torch.library.Library removes its definitions when it is garbage-collected


class _DeclaresOperators:
    """A meta path finder that finds nothing itself. It only intercepts the import of torchvision."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:  # noqa: ARG004 - Python names them
        if name != "torchvision":
            return
        sys.meta_path.remove(_DeclaresOperators)
        library = importlib.import_module("torch").library.Library("torchvision", "DEF")
        for operator in ("nms", "qnms"):
            library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _kept.append(library)


def declare() -> None:
    """Declare the operators at the first import of torchvision. Repeated calls (`site` calls twice) have no effect."""
    if _DeclaresOperators not in sys.meta_path:
        sys.meta_path.insert(0, _DeclaresOperators)
