"""What is done with a case: its kernels are compiled, its numbers checked against float64, its contenders timed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from tilelang_ops import launch
from tilelang_ops.lowering import compile_for_gpu, language_for, load_module
from tilelang_ops.tiles import kernel_file
from torch import Tensor

from .case import BOTH, FORWARD, Case
from .clock import draw, host_us, medians, peak_mib
from .numbers import worst_error
from .tolerance import ALLOWED


def compile_all(cases: Sequence[Case], dtypes: Sequence[str], target: str) -> dict[str, Any]:
    """Compile what the cases need, several at a time: TileLang keeps the results for when they are called.

    Raises RuntimeError with the first kernel that does not compile.
    """
    wanted = {
        f"{part.kernel} {part.fixed(dtype)}": (part.kernel, part.fixed(dtype))
        for case in cases
        for part in (*case.forward, *case.backward)
        for dtype in dtypes
        if case.has(dtype)
    }
    pairs = []
    for op, fixed in wanted.values():
        module = load_module(str(kernel_file(op)))
        tiles = launch.tiles_of(target, op, fixed)  # as a call of the operator has them
        pairs.append((module, module.build(language_for(target), **fixed, **tiles)))

    def compiled(pair: tuple[Any, Any]) -> str:
        try:
            compile_for_gpu(*pair)
        except Exception as error:
            return f"{pair[1].attrs['global_symbol']}: {type(error).__name__}: {str(error)[-600:]}"
        return ""

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        failures = [text for text in pool.map(compiled, pairs) if text]
    if failures:
        raise RuntimeError(failures[0])
    return {"kernels": len(pairs)}


def check(case: Case, dtype: str, device: str) -> dict[str, Any]:
    """Worst error of each result and gradient against float64, beside the error of eager torch in the same type."""
    kind = getattr(torch, dtype)
    values = case.inputs(kind, device)
    wide = [value.double() if value.is_floating_point() else value for value in values]
    cotangents = _cotangents(case.eager(*wide), kind, device)
    expected = _results_and_gradients(case, case.eager, wide, cotangents)
    ours, theirs = (_results_and_gradients(case, work, values, cotangents) for work in (case.ours, case.eager))
    errors = [worst_error(mine, right) for mine, right in zip(ours, expected, strict=True)]
    eager = [worst_error(mine, right) for mine, right in zip(theirs, expected, strict=True)]
    allowed = max(ALLOWED[dtype] * case.slack, 1.25 * max(eager) if case.cancels else 0.0)
    return {"worst": max(errors), "allowed": allowed, "errors": errors, "eager_errors": eager}


def time_contender(case: Case, dtype: str, function: Callable[..., Any], ceiling: Mapping[str, Any]) -> dict[str, Any]:
    """Medians of one contender by pass, what it achieves, what it takes of the processor and of the card's memory.

    ``ceiling`` is what :func:`measuring.clock.ceilings` gave for ``dtype``.
    """
    values = case.inputs(getattr(torch, dtype), "cuda")
    cotangents = _cotangents(function(*values), getattr(torch, dtype), "cuda")

    def forward() -> Any:
        with torch.no_grad():
            return function(*values)

    def both() -> Any:
        return _results_and_gradients(case, function, values, cotangents)

    works = {FORWARD: forward, BOTH: both}
    whole = works[case.passes[-1]]
    whole()
    found: dict[str, Any] = {"peak_mib": round(peak_mib(whole)), "host_us": round(host_us(whole)), "passes": {}}
    for name in case.passes:
        times = medians(works[name])
        found["passes"][name] = times | achieved(*case.work(name, dtype), times["cold_ms"], ceiling)
    return found


def achieved(flop: float, moved: float, cold_ms: float, ceiling: Mapping[str, Any]) -> dict[str, Any]:
    """TFLOP/s and GB/s of ``flop`` and ``moved`` bytes in ``cold_ms``, and the share of the roof where it was measured."""
    found = {
        "flop": flop,
        "bytes": moved,
        "intensity": flop / moved,
        "tflop_s": flop / cold_ms / 1e9,
        "gb_s": moved / cold_ms / 1e6,
    }
    if "matmul_tflop_s" not in ceiling:
        return found
    seconds = {"matrix": flop / ceiling["matmul_tflop_s"] / 1e12, "memory": moved / ceiling["copy_gb_s"] / 1e9}
    bound = max(seconds, key=seconds.__getitem__)
    return found | {"bound": bound, "of_roof": seconds[bound] * 1e3 / cold_ms}


def _results_and_gradients(
    case: Case, function: Callable[..., Any], values: Sequence[Tensor], cotangents: Sequence[Tensor]
) -> list[Tensor]:
    """The inputs are leaves of their own, which share the values' memory."""
    leaves = [value.detach().requires_grad_() for value in values[: case.differentiable]]
    results = _listed(function(*leaves, *values[case.differentiable :]))
    if not leaves:
        return results
    given = [part.to(result.dtype) for part, result in zip(cotangents, results, strict=True)]
    return [result.detach() for result in results] + list(torch.autograd.grad(results, leaves, given))


def _cotangents(results: Any, dtype: torch.dtype, device: str) -> list[Tensor]:
    """What arrives from the layers behind, rounded to ``dtype`` so that all start from the same; 1 at a loss."""
    parts = _listed(results)
    return [draw(*part.shape, dtype=dtype, device=device) if part.dim() else torch.ones_like(part) for part in parts]


def _listed(results: Any) -> list[Tensor]:
    return list(results) if isinstance(results, tuple | list) else [results]
