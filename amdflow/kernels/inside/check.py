"""Runs in the kernels environment: runs built kernels beside their torch references, one JSON line each on stdout.

    python check.py probe          says what GPU torch sees: {"gpu": null} or {"gpu": {"target": "cuda" or a gfx name, "name"}}
    python check.py run JOBS.json  checks every job

A job is {"id", "module", "target", "build", "run", "dtype"}, with {"library", "launch"} when the target is ``cpu``; on a
GPU TileLang compiles the kernel itself. A line is {"id", "worst"}: the largest error of any element, relative to the
element's size plus the root mean square of the whole result; or {"id", "error"}.
"""

from __future__ import annotations

import ctypes
import json
import sys
import traceback
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

# a script's folder is first on its path
from tilelang_ops.library import call_library
from tilelang_ops.lowering import compile_for_gpu, language_for, load_module

_GUARD = 256
Kernel = tuple[Callable[[dict[str, Any]], None], dict[str, str]]
"""What runs it on values by name, and the value type of each of its tensors."""


def main() -> int:
    """Check every job; a failed one does not stop the others."""
    if sys.argv[1] == "probe":
        _answer({"gpu": _gpu()})
        return 0
    for job in json.loads(Path(sys.argv[2]).read_text(encoding="utf-8")):
        try:
            _answer({"id": job["id"], "worst": check(job)})
        except Exception as error:
            traceback.print_exc()
            _answer({"id": job["id"], "error": f"{type(error).__name__}: {error}".splitlines()[0]})
    return 0


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
    return max(_worst(results[name].double(), value) for name, value in expected.items())


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
    function = module.build(language_for(job["target"]), **job["build"])
    kernel = compile_for_gpu(module, function)
    types = {str(buffer.name): str(buffer.dtype) for buffer in function.buffer_map.values()}

    def run(values: dict[str, Any]) -> None:
        kernel(*(values[_name(function, parameter)] for parameter in function.params))
        torch.cuda.synchronize()

    return run, types


def _name(function: Any, parameter: Any) -> str:
    return str(function.buffer_map.get(parameter, parameter).name)


def _worst(result: torch.Tensor, expected: torch.Tensor) -> float:
    if not result.isfinite().all():
        return float("inf")
    scale = expected.abs() + expected.square().mean().sqrt()
    return float(((result - expected).abs() / scale.clamp_min(1e-30)).max())


def _gpu() -> dict[str, str] | None:
    if not torch.cuda.is_available():
        return None
    facts = torch.cuda.get_device_properties(0)
    arch = getattr(facts, "gcnArchName", "") if torch.version.hip else ""
    return {"target": arch.partition(":")[0] or "cuda", "name": facts.name}


def _answer(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
