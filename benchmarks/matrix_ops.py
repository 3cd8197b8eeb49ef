"""GEMM and attention forward, called as kernels, beside torch's own operators."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own custom

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "amdflow" / "kernels" / "inside"))

from measuring import median_ms, worst_error  # noqa: E402 - beside this file
from tilelang_ops.lowering import language_for, load_module  # noqa: E402 - found through the path above
from tilelang_ops.tiles import tiles_of  # noqa: E402

# Sizes at which the whole float64 reference fits, odd ones among them; then the sizes that are timed.
CHECKED: dict[str, list[dict[str, Any]]] = {
    "gemm": [
        {"m": 512, "n": 768, "k": 1024},
        {"m": 1000, "n": 1000, "k": 1000},
        {"m": 1, "n": 4096, "k": 4096},
        {"m": 67, "n": 130, "k": 104},
    ],
    "attention": [
        {"batch": 2, "tokens": 512, "heads": 8, "kv_heads": 2, "head": 128, "causal": True},
        {"batch": 1, "tokens": 1000, "heads": 6, "kv_heads": 2, "head": 64, "causal": True},
        {"batch": 1, "tokens": 333, "heads": 4, "kv_heads": 4, "head": 128, "causal": False},
        {"batch": 1, "tokens": 1, "heads": 2, "kv_heads": 1, "head": 64, "causal": True},
    ],
}
TIMED: dict[str, list[dict[str, Any]]] = {
    "gemm": [{"m": 4096, "n": 4096, "k": 4096}, {"m": 8192, "n": 8192, "k": 8192}, {"m": 4096, "n": 14336, "k": 4096}],
    "attention": [
        {"batch": 4, "tokens": 4096, "heads": 32, "kv_heads": 32, "head": 128, "causal": True},
        {"batch": 4, "tokens": 4096, "heads": 32, "kv_heads": 8, "head": 64, "causal": True},
    ],
}


def check(op: str, sizes: dict[str, Any], dtype: str, target: str, allowed: float) -> dict[str, Any]:
    """Worst error against float64."""
    module, kernel, values, results = _ready(op, sizes, dtype, target)
    expected = module.reference(
        **{name: value.double() if isinstance(value, torch.Tensor) else value for name, value in values.items()}
    )
    for result in results.values():
        result.fill_(torch.nan)
    kernel({**values, **results})
    return {
        "worst": max(worst_error(results[name], value) for name, value in expected.items()),
        "allowed": allowed * module.KERNEL.get("slack", 1),
    }


def time_it(op: str, sizes: dict[str, Any], dtype: str, target: str) -> dict[str, Any]:
    """Median milliseconds of the kernel and of torch's own operator, and what that comes to."""
    _module, kernel, values, results = _ready(op, sizes, dtype, target)
    theirs, work = _torch_operator(op, values, sizes)
    mine_ms, torch_ms = median_ms(lambda: kernel({**values, **results})), median_ms(theirs)
    return {"ms": {"ours": mine_ms, "torch": torch_ms}, "ratio": torch_ms / mine_ms, "tflop_s": work / mine_ms / 1e9}


def _ready(
    op: str, sizes: dict[str, Any], dtype: str, target: str
) -> tuple[Any, Callable[[dict[str, Any]], Any], dict[str, Any], dict[str, torch.Tensor]]:
    """The kernel's module, the kernel, its inputs by name, and room for its results."""
    import tilelang

    module = load_module(str(ROOT / "kernels" / f"{op}.py"))
    fixed = {"dtype": dtype, **{name: sizes[name] for name in module.KERNEL["sizes"] if name in sizes}}
    function = module.build(language_for(target), **fixed, **tiles_of(target, op, fixed))
    names = [str(function.buffer_map.get(parameter, parameter).name) for parameter in function.params]
    kernel = tilelang.compile(function, target="auto")
    values = module.inputs(lambda *shape: torch.randn(*shape, dtype=torch.float64, device="cuda"), **sizes)
    for name, value in values.items():
        if isinstance(value, torch.Tensor):
            values[name] = value.to(getattr(torch, dtype)).contiguous()
    buffers = {str(buffer.name): buffer for buffer in function.buffer_map.values()}
    extents = {
        str(extent): size
        for name, buffer in buffers.items()
        if name in values
        for extent, size in zip(buffer.shape, values[name].shape, strict=True)
    }
    results = {
        name: torch.empty(
            [extents.get(str(extent)) or int(extent) for extent in buffer.shape],
            dtype=getattr(torch, str(buffer.dtype)),
            device="cuda",
        )
        for name, buffer in buffers.items()
        if name not in values
    }
    return module, lambda given: kernel(*(given[name] for name in names)), values, results


def _torch_operator(op: str, values: dict[str, Any], sizes: dict[str, Any]) -> tuple[Callable[[], Any], float]:
    """What a user would call instead; the work in FLOP."""
    if op == "gemm":
        return lambda: F.linear(values["x"], values["w"]), 2.0 * sizes["m"] * sizes["n"] * sizes["k"]
    q, k, v = (values[name].transpose(1, 2) for name in "qkv")
    work = 4.0 * sizes["batch"] * sizes["heads"] * sizes["tokens"] ** 2 * sizes["head"] / (2 if sizes["causal"] else 1)
    grouped = sizes["heads"] != sizes["kv_heads"]

    def attention() -> torch.Tensor:
        y = F.scaled_dot_product_attention(q, k, v, is_causal=sizes["causal"], enable_gqa=grouped)
        return y.transpose(1, 2)

    return attention, work
