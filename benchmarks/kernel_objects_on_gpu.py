"""Launches every code object of an export that is for the GPU at hand, and compares the results with the references.

    PYTHONPATH=amdflow/kernels/inside AMDFLOW_KERNEL_OBJECTS=kernel-objects python benchmarks/kernel_objects_on_gpu.py

Needs a ROCm build of torch, no TileLang. Each kernel runs twice, on the default stream and on another one, at the sizes of
its file's first case that leaves the built ones as they are. A line is: kernel, sizes, largest error relative to the element plus the
root mean square (see docs/how-to/kernels.md), stream. The exit status is 1 when an error is above the value type's limit.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import torch
from tilelang_ops.lowering import load_module
from tilelang_ops.objects import Folder, Kernel

KERNELS = Path(__file__).resolve().parent.parent / "kernels"
ALLOWED = {"float32": 2e-5, "float16": 2.0**-10, "bfloat16": 2.0**-7}


def main() -> int:
    """Run what fits; 1 when a number is wrong."""
    target = torch.cuda.get_device_properties(0).gcnArchName.partition(":")[0]
    folder = Folder(os.environ["AMDFLOW_KERNEL_OBJECTS"])
    other = torch.cuda.Stream()
    wrong = 0
    for entry in folder.kernels:
        if entry["target"] != target:
            continue
        module = load_module(str(KERNELS / f"{entry['op']}.py"))
        kernel = folder.find(entry["op"], entry["dtype"], target, **entry["sizes"])
        assert kernel is not None
        sizes = sizes_of_a_case(module, entry["sizes"], folder.defaults[entry["op"]])
        if sizes is None:
            print(f"{entry['op']} {entry['dtype']} {entry['sizes']}: not run, no case of its file is like it")
            continue
        limit = ALLOWED[entry["dtype"]] * module.KERNEL.get("slack", 1)
        for name, stream in (("default", torch.cuda.default_stream()), ("another", other)):
            with torch.cuda.stream(stream):
                error = run(kernel, module, entry["dtype"], sizes)
            wrong += not error <= limit
            print(f"{entry['op']} {entry['dtype']} {entry['sizes']}: {error:.1e} (allowed {limit:.1e}), {name} stream")
    print(f"{wrong} wrong, ahead of time for {target}: {folder.path}")
    return 1 if wrong else 0


def run(kernel: Kernel, module: Any, dtype: str, sizes: dict[str, Any]) -> float:
    """The largest error of one launch."""
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    found = module.inputs(draw, **sizes)
    given = {name: on_card(value, dtype) for name, value in found.items()}
    wide = {name: value.double() if floating(value) else value for name, value in given.items()}
    expected = module.reference(**wide)
    types = {parameter["name"]: parameter["dtype"] for parameter in kernel.description["parameters"]}
    results = {
        name: given[name].clone() if name in given else torch.empty(value.shape, dtype=kind(types[name]), device="cuda")
        for name, value in expected.items()
    }
    kernel(*(results.get(name, given.get(name)) for name in kernel.description["arguments"]))
    torch.cuda.current_stream().synchronize()
    return max(worst(results[name].double(), value) for name, value in expected.items())


def sizes_of_a_case(module: Any, fixed: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any] | None:
    """What ``inputs`` is called with: the first case that differs from the build in numbers only, with the build's numbers."""
    for case in module.CASES:
        build = case["build"]
        if all(
            value == build[name] or not isinstance(value, bool | str) if name in build else value == defaults.get(name)
            for name, value in fixed.items()
        ):
            return {**build, **case["run"], **{name: fixed[name] for name in build if fixed.get(name) is not None}}
    return None


def on_card(value: Any, dtype: str) -> Any:
    """A tensor on the card, float64 rounded to ``dtype``; anything else as it is."""
    if not isinstance(value, torch.Tensor):
        return value
    return (value.to(kind(dtype)) if value.dtype == torch.float64 else value).cuda().contiguous()


def kind(name: str) -> torch.dtype:
    """Torch's value type of that name."""
    found: torch.dtype = getattr(torch, name)
    return found


def floating(value: Any) -> bool:
    """Whether it is a tensor of floating-point values."""
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def worst(result: torch.Tensor, expected: torch.Tensor) -> float:
    """The largest error, relative to the element plus the root mean square of the whole."""
    if not result.isfinite().all():
        return float("inf")
    scale = expected.abs() + expected.square().mean().sqrt()
    return float(((result - expected).abs() / scale.clamp_min(1e-30)).max())


if __name__ == "__main__":
    sys.exit(main())
