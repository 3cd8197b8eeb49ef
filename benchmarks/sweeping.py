"""Tries tile settings of the memory-bound kernels on this card: each kernel by itself, at one large size."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from measuring import Record, draw, median_ms
from tilelang_ops import loss
from tilelang_ops.launch import target_of, workgroups
from tilelang_ops.lowering import language_for, load_module
from tilelang_ops.tiles import kernel_file
from torch.profiler import ProfilerActivity, profile
from training_ops import linear_cross_entropy

ROWS, HIDDEN, WIDTH, VOCAB = 8192, 4096, 8192 * 14336 // 8, 128256

# Sizes, and the values of each setting that are tried in every combination. ``each`` is no setting of the kernel: it
# is the number of workgroups of a backward pass on each compute unit.
CANDIDATES: dict[str, list[tuple[dict[str, Any], dict[str, Sequence[int]]]]] = {
    "rms_norm": [
        ({"hidden": HIDDEN}, {"threads": (128, 256, 512), "block_m": (1, 2)}),
        ({"hidden": 2 * HIDDEN}, {"threads": (256, 512, 1024)}),
    ],
    "rms_norm_backward": [
        ({"hidden": HIDDEN}, {"threads": (128, 256, 512), "each": (1, 2, 3, 4, 8)}),
        ({"hidden": HIDDEN // 2}, {"threads": (128, 256), "each": (2, 4, 8)}),
        ({"hidden": 2 * HIDDEN}, {"threads": (256, 512, 1024), "each": (1, 2, 4)}),
    ],
    "column_sum": [({"width": HIDDEN}, {"block_m": (16, 32, 64), "block_n": (16, 32, 64)})],
    "swiglu": [({"lanes": 8, "act": "silu"}, {"block": (1024, 2048, 4096, 8192), "threads": (128, 256, 512)})],
    "swiglu_backward": [({"lanes": 8, "act": "silu"}, {"block": (1024, 2048, 4096), "threads": (128, 256, 512)})],
    "rope": [({"head": 128, "table": 128}, {"block_h": (8, 16, 32, 64), "threads": (64, 128, 256), "hold": (0, 1)})],
    "cross_entropy": [({"vocab": VOCAB}, {"threads": (256, 512, 1024), "vector": (8, 16)})],
}


def sweep(record: Record, ops: Sequence[str], dtype: str = "bfloat16") -> None:
    """Add one row a kernel and size: milliseconds by setting, the fastest first."""
    for op in ops:
        for sizes, choices in CANDIDATES[op]:
            record.add(
                "sweep",
                {"op": op, "sizes": sizes},
                lambda op=op, sizes=sizes, choices=choices: _try(op, sizes, choices, dtype),
            )


def sweep_rows_at_a_time(record: Record) -> None:
    """Add one row: milliseconds of the last layer with its loss by the number of rows whose logits are held."""
    case = linear_cross_entropy(ROWS, 2048, VOCAB)

    def measure() -> dict[str, Any]:
        values = case.inputs(torch.bfloat16, "cuda")
        leaves = [value.requires_grad_() for value in values[:2]]
        times, original = {}, loss.rows_at_a_time
        for rows in (1024, 2048, 4096, 8192):
            loss.rows_at_a_time = lambda *_, rows=rows: rows
            times[str(rows)] = median_ms(lambda: torch.autograd.grad(case.ours(*leaves, values[2]), leaves), 10)
        loss.rows_at_a_time = original
        with profile(activities=[ProfilerActivity.CUDA]) as seen:
            torch.autograd.grad(case.ours(*leaves, values[2]), leaves)
            torch.cuda.synchronize()
        kernels = {event.key[:90]: [event.count, event.device_time_total / 1e3] for event in seen.key_averages()}
        return {"ms": times, "kernels": {name: pair for name, pair in kernels.items() if pair[1] > 0.02}}

    record.add("sweep", {"op": case.op, "sizes": dict(case.sizes)}, measure)


def _try(op: str, sizes: dict[str, Any], choices: dict[str, Sequence[int]], dtype: str) -> dict[str, Any]:
    import tilelang

    module, language = load_module(str(kernel_file(op))), language_for(target_of("cuda"))
    settings = [dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())]
    angles = {"angles": dtype} if op == "rope" else {}

    def build(setting: dict[str, int]) -> Any:
        tiles = {name: value for name, value in setting.items() if name != "each"}
        return module.build(language, dtype=dtype, **sizes, **angles, **tiles)

    def compiled(function: Any) -> Any:
        try:
            return tilelang.compile(function, target="auto")
        except Exception as error:
            return error

    functions = [build(setting) for setting in settings]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        kernels = list(pool.map(compiled, functions))
    times: dict[str, float] = {}
    failed: dict[str, str] = {}
    for setting, kernel in zip(settings, kernels, strict=True):
        name = " ".join(f"{key}={value}" for key, value in setting.items())
        try:
            if isinstance(kernel, Exception):
                raise kernel
            times[name] = median_ms(_call(op, kernel, sizes, setting, getattr(torch, dtype)), 20)
        except Exception as error:
            failed[name] = str(error)[-200:]
    return {"ms": dict(sorted(times.items(), key=lambda pair: pair[1])), "failed": failed}


def _call(
    op: str, kernel: Callable[..., Any], sizes: dict[str, Any], setting: dict[str, int], dtype: torch.dtype
) -> Callable[[], Any]:
    """The kernel with its arguments."""

    def tensor(*shape: int, kind: torch.dtype = dtype) -> torch.Tensor:
        return draw(*shape, dtype=kind)

    wide = torch.float32
    arguments: tuple[Any, ...]
    if op in ("rms_norm", "rms_norm_backward"):
        hidden = sizes["hidden"]
        x, w, y = tensor(ROWS, hidden), tensor(hidden), tensor(ROWS, hidden)
        rstd, residual = tensor(ROWS, kind=wide), "residual" in sizes
        other = (tensor(ROWS, hidden),) if residual else ()
        if op == "rms_norm":
            arguments = (x, *other, w, y, *(torch.empty_like(part) for part in other), rstd, 1e-5, 0.0)
        else:
            sums = tensor(workgroups("cuda", setting["each"]), hidden, kind=wide)
            arguments = (y, *other, x, w, rstd, torch.empty_like(x), sums, 0.0)
    elif op == "column_sum":
        arguments = (tensor(workgroups("cuda", 4), sizes["width"], kind=wide), tensor(sizes["width"]))
    elif op in ("swiglu", "swiglu_backward"):
        arguments = tuple(tensor(WIDTH, 8) for _ in range(3 if op == "swiglu" else 5))
    elif op == "rope":
        head, table = sizes["head"], tensor(4096, sizes["table"])
        q, k = tensor(ROWS, 32, head), tensor(ROWS, 8, head)
        arguments = (q, k, table, table.clone(), torch.empty_like(q), torch.empty_like(k), 4096, 1.0)
    else:
        target = torch.arange(2048, device="cuda") * 61
        arguments = (tensor(2048, sizes["vocab"]), target, tensor(1, kind=wide), tensor(2048, kind=wide), -100)
    return lambda: kernel(*arguments)
