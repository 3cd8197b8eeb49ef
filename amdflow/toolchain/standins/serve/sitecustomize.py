# ruff: noqa: INP001
"""Lets torchvision be imported beside a CPU build of torch.

torchvision's compiled operators do not load there, and it registers Python fallbacks for two of them that must already
be declared. They are declared just before torchvision is imported.

Any other ``sitecustomize`` further down the path is still run.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

_OPERATORS = ("nms", "qnms")


class _DeclareOperators(MetaPathFinder):
    """Finds nothing; acts when ``torchvision`` is looked for, once."""

    def find_spec(self, fullname: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        if fullname == "torchvision":
            sys.meta_path.remove(self)
            import torch

            for operator in _OPERATORS:
                if not hasattr(torch.ops.torchvision, operator):
                    torch.library.define(
                        f"torchvision::{operator}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
                    )
        return None


def _run_next() -> None:
    here = Path(__file__).parent
    spec = PathFinder.find_spec("sitecustomize", [entry for entry in sys.path if Path(entry).absolute() != here])
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


sys.meta_path.insert(0, _DeclareOperators())
_run_next()
