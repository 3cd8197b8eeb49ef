"""The case of a linear layer over a frozen weight of few bits."""

from __future__ import annotations

import tilelang_ops as ops
import torch
from tilelang_ops.dequant import MANY_ROWS
from torch import Tensor
from torch.nn import functional

from .case import BOTH, FORWARD, Case, Part
from .clock import draw


def dequant_linear(rows: int, n: int, k: int, bits: int = 4) -> Case:
    """A weight of 4 (groups of 128) or 8 bits, beside a linear layer over the same weight written out beforehand."""
    held: dict[torch.device, ops.QuantizedWeight] = {}
    wide: dict[tuple[torch.device, torch.dtype], Tensor] = {}

    def there(device: torch.device) -> ops.QuantizedWeight:
        if device not in held:
            weight = draw(n, k, dtype=torch.float32, device=str(device), scale=k**-0.5)
            held[device] = ops.quantize_int4(weight) if bits == 4 else ops.quantize_int8(weight)
        return held[device]

    def written_out(x: Tensor) -> Tensor:
        key = (x.device, x.dtype)
        if key not in wide:
            wide[key] = there(x.device).dequantize(x.dtype)
        return functional.linear(x, wide[key])

    form = {"form": f"int{bits}", "n": n, "k": k} | ({"group": 128} if bits == 4 else {})
    forward = [Part("dequant_gemm", form, {"m": rows})]
    backward = [Part("dequant_gemm", {**form, "layout": "nn"}, {"m": rows})]
    if rows >= MANY_ROWS:
        forward = [Part("dequantize", form, {}), Part("gemm", {"n": n, "k": k}, {"m": rows})]
        backward = [forward[0], Part("gemm", {"layout": "nn", "n": k, "k": n}, {"m": rows})]

    def moved(size: int) -> int:
        scales = n * k // 128 if bits == 4 else n
        return rows * (n + k) * size + n * k * bits // 8 + 4 * scales

    return Case(
        "dequant_linear",
        {"rows": rows, "n": n, "k": k, "bits": bits},
        lambda dtype, device: [draw(rows, k, dtype=dtype, device=device)],
        1,
        ours=lambda x: ops.dequant_linear(x, there(x.device)),
        eager=written_out,
        forward=forward,
        backward=backward,
        own_work={
            FORWARD: lambda size: (2.0 * rows * n * k, moved(size)),
            BOTH: lambda size: (4.0 * rows * n * k, 2 * moved(size)),
        },
        slack=2.0,
    )
