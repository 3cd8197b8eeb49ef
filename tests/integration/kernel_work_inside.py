"""Runs in the kernels environment: what each kernel says it moves, over the bytes of the tensors it is given and hands out.

python kernel_work_inside.py FOLDER    one JSON line: {kernel: [ratio of each case]}
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from tilelang_ops.lowering import load_module


def main() -> None:
    found = {}
    for path in sorted(Path(sys.argv[1]).glob("*.py")):
        module = load_module(str(path))
        found[path.stem] = [ratio(module, case) for case in module.CASES]
    print(json.dumps(found))


def ratio(module: Any, case: dict[str, Any]) -> float:
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    sizes = {**case["build"], **case["run"]}
    given = module.inputs(draw, **sizes)
    made = module.reference(**given)
    _flop, moved = module.work(dtype_bytes=2, **sizes)
    return float(moved / sum(size(value) for part in (given, made) for value in part.values()))


def size(value: Any) -> int:
    """Bytes of a tensor as the kernel has it: float64 stands for the value type."""
    if not isinstance(value, torch.Tensor):
        return 0
    return int(value.numel() * (2 if value.dtype == torch.float64 else value.element_size()))


if __name__ == "__main__":
    main()
