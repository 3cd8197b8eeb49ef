"""Runs in the kernels environment: launches kernels from code objects, with HIP's runtime replaced by one that takes notes.

    python kernel_objects_inside.py alone FOLDER    the exported folder's own loader, no TileLang to be had
    python kernel_objects_inside.py operators       torch operators, with AMDFLOW_KERNEL_OBJECTS

Prints one JSON line: the addresses and numbers that each launch was given, by name.
"""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import torch

STREAM = 0x5EED


def main() -> None:
    # No GPU here: tensors of the CPU stand for those of the card, whose device and stream torch would name.
    torch.cuda.device = lambda _device: nullcontext()
    torch.cuda.current_device = lambda: 0
    torch.cuda.current_stream = lambda: SimpleNamespace(cuda_stream=STREAM)
    if sys.argv[1] == "alone":
        sys.modules["tilelang"] = None  # type: ignore[assignment]  # importing it fails
        sys.path.insert(0, sys.argv[2])
        alone(sys.argv[2])
    else:
        operators()


def alone(folder: str) -> None:
    kernels = import_module("objects").Folder(folder)
    x, w, y = torch.zeros(5, 576).bfloat16(), torch.ones(576).bfloat16(), torch.zeros(5, 576).bfloat16()
    rstd = torch.zeros(5)
    rms_norm = kernels.find("rms_norm", "bfloat16", "gfx942", hidden=576)
    rms_norm(x, w, y, rstd, 1e-5, 0.25)
    rms_norm(x[:2], w, y[:2], rstd[:2], 1e-6, 0.0)  # loaded once, launched twice
    empty = torch.zeros(0, 576).bfloat16()
    rms_norm(empty, w, empty, torch.zeros(0), 1e-5, 0.0)  # an empty grid: no launch
    q, k = torch.zeros(7, 9, 64).bfloat16(), torch.zeros(7, 3, 64).bfloat16()
    cos, sin = torch.zeros(14, 32), torch.zeros(14, 32)
    turned = [torch.zeros_like(q), torch.zeros_like(k)]
    kernels.find("rope", "bfloat16", "gfx942", head=64)(q, k, cos, sin, *turned, 4, -1.0)
    errors = [
        refused(lambda: rms_norm(x.float(), w, y, rstd, 1e-5, 0.0)),
        refused(lambda: rms_norm(x, w[:77], y, rstd, 1e-5, 0.0)),
        refused(lambda: rms_norm(x, w, y.T.contiguous().T, rstd, 1e-5, 0.0)),
        refused(lambda: rms_norm(x, w)),
    ]
    named = {"x": x, "w": w, "y": y, "rstd": rstd, "eps": 1e-5, "offset": 0.25, "rows": 5}
    turning = {"q": q, "k": k, "cos": cos, "sin": sin, "q_turned": turned[0], "k_turned": turned[1]}
    turning |= {"period": 4, "direction": -1.0, "tokens": 7, "q_heads": 9, "k_heads": 3, "places": 14}
    answer({"rms_norm": plain(named), "rope": plain(turning), "errors": errors})


def operators() -> None:
    import tilelang_ops as ops
    from tilelang_ops import launch

    launch.target_of = lambda _device: "gfx942"
    gate, up = torch.zeros(3, 8).bfloat16(), torch.zeros(3, 8).bfloat16()
    ops.swiglu(gate, up)  # act and lanes as its file has them
    sys.modules["tilelang"] = None  # type: ignore[assignment]
    error = refused(lambda: ops.swiglu(gate, up, "gelu"))  # was not built
    answer({"origins": launch.origins(), "error": error})


def refused(call: Any) -> str:
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: one.data_ptr() if isinstance(one, torch.Tensor) else one for name, one in values.items()}


def answer(line: dict[str, Any]) -> None:
    print(json.dumps(line))


if __name__ == "__main__":
    main()
