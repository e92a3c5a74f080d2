"""Lets a torchvision that was built for CUDA be imported on a torch for processors.

`packages.py` copies this file into the environment of such a build, where it runs at every start of Python. The
compiled half of that torchvision cannot load there, so two operators that its Python half registers fakes for do not
exist. vLLM calls neither; they need only be declared before torchvision is imported.
"""

import importlib
import sys
from typing import Any

_kept: list[Any] = []  # a torch.library.Library takes its definitions back when it is collected


class _DeclaresOperators:
    """Finds no module itself: it only sees that torchvision is about to be imported."""

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
    """Declares the operators at the first import of torchvision; asked twice (as `site` does) it is done once."""
    if _DeclaresOperators not in sys.meta_path:
        sys.meta_path.insert(0, _DeclaresOperators)
