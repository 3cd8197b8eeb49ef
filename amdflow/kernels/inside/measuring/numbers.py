"""One kernel beside its float64 reference: on the CPU from a library that was built, on a GPU as TileLang compiles it."""

from __future__ import annotations

import ctypes
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tilelang_ops.library import call_library
from tilelang_ops.lowering import compile_for_gpu, language_for, load_module

_GUARD = 256
Kernel = tuple[Callable[[dict[str, Any]], None], dict[str, str]]
"""What runs it on values by name, and the value type of each of its tensors."""


def check(job: dict[str, Any]) -> float:
    """Run one job; returns the worst relative error. Raises ValueError when a kernel writes past its output."""
    module = load_module(job["module"])
    dtype, cpu = getattr(torch, job["dtype"]), job["target"] == "cpu"
    arguments = _arguments(module, job, dtype, "cpu" if cpu else "cuda")
    wide = {name: value.double() if _floating(value) else value for name, value in arguments.items()}
    expected: dict[str, Any] = module.reference(**wide)
    run, types = (_on_cpu if cpu else _on_gpu)(job, module)
    results, guards = {}, {}
    for name, value in expected.items():
        kind = getattr(torch, types[name])
        space = torch.full((value.numel() + _GUARD,), torch.nan, dtype=kind, device=value.device)
        results[name], guards[name] = space[: value.numel()].view(value.shape), space[value.numel() :]
        if name in arguments:  # the result takes an input's place
            results[name].copy_(arguments[name])
    run({**arguments, **results})
    for name, guard in guards.items():
        if not guard.isnan().all():
            raise ValueError(f"the kernel writes past the end of {name}")
    return max(worst_error(results[name], value) for name, value in expected.items())


def _floating(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _arguments(module: Any, job: dict[str, Any], dtype: Any, device: str) -> dict[str, Any]:
    """The kernel's inputs, rounded to ``dtype`` so that the reference starts from the same numbers."""
    generator = torch.Generator().manual_seed(zlib.crc32(job["id"].encode()))

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    sizes = {name: value for name, value in job["build"].items() if name in module.KERNEL["sizes"]}
    found: dict[str, Any] = module.inputs(draw, **(job["run"] | sizes))
    for name, value in found.items():
        if isinstance(value, torch.Tensor):
            found[name] = (value.to(dtype) if value.dtype == torch.float64 else value).to(device).contiguous()
    return found


def _on_cpu(job: dict[str, Any], _module: Any) -> Kernel:
    launch = json.loads(Path(job["launch"]).read_text(encoding="utf-8"))
    function = getattr(ctypes.CDLL(job["library"]), launch["symbol"])
    types = {parameter["name"]: parameter["dtype"] for parameter in launch["parameters"]}
    return lambda values: call_library(function, launch["parameters"], values), types


def _on_gpu(job: dict[str, Any], module: Any) -> Kernel:
    kernel, buffers, names = tilelang_kernel(module, job["target"], job["build"])

    def run(values: dict[str, Any]) -> None:
        kernel(*(values[name] for name in names))
        torch.cuda.synchronize()

    return run, {name: str(buffer.dtype) for name, buffer in buffers.items()}


def tilelang_kernel(
    module: Any, target: str, build: dict[str, Any]
) -> tuple[Callable[..., Any], dict[str, Any], list[str]]:
    """The kernel as compiled for the GPU at hand, its tensors by name, and the names of its parameters in order."""
    function = module.build(language_for(target), **build)
    buffers = {str(buffer.name): buffer for buffer in function.buffer_map.values()}
    names = [str(function.buffer_map.get(parameter, parameter).name) for parameter in function.params]
    return compile_for_gpu(module, function), buffers, names


def empty_results(
    buffers: dict[str, Any], values: dict[str, Any], sizes: dict[str, Any], device: str
) -> dict[str, torch.Tensor]:
    """Room for what is not among ``values``: sizes that are open in the kernel have the name of one in ``sizes``."""
    return {
        name: torch.empty(
            [int(extent) if str(extent).isdigit() else int(sizes[str(extent)]) for extent in buffer.shape],
            dtype=getattr(torch, str(buffer.dtype)),
            device=device,
        )
        for name, buffer in buffers.items()
        if name not in values
    }


def worst_error(result: torch.Tensor, expected: torch.Tensor) -> float:
    """Largest error of any element against float64, relative to the element plus the root mean square of the whole."""
    result, expected = result.detach().double(), expected.detach().double()
    finite = expected.isfinite()  # the logarithm of nothing is minus infinity, and has to be
    if not result[finite].isfinite().all() or not result[~finite].equal(expected[~finite]):
        return float("inf")
    if not finite.any():
        return 0.0
    result, expected = result[finite], expected[finite]
    scale = expected.abs() + expected.square().mean().sqrt()
    return float(((result - expected).abs() / scale.clamp_min(1e-30)).max())
