"""The case of a mixture of experts."""

from __future__ import annotations

import tilelang_ops as ops
import torch
from torch import Tensor
from torch.nn import functional

from .case import Case, Part
from .clock import draw


def moe(tokens: int, hidden: int, width: int, experts: int, top: int) -> Case:
    """The experts of a mixture, beside one product an expert and beside torch's grouped product."""
    rows = tokens * top

    def inputs(dtype: torch.dtype, device: str) -> list[Tensor]:
        index, weights = ops.moe_route(draw(tokens, experts, dtype=torch.float32, device=device), top)
        return [
            draw(tokens, hidden, dtype=dtype, device=device),
            weights.to(dtype),
            draw(experts, 2 * width, hidden, dtype=dtype, device=device, scale=hidden**-0.5),
            draw(experts, hidden, width, dtype=dtype, device=device, scale=width**-0.5),
            index,
        ]

    up, down = {"n": 2 * width, "k": hidden}, {"n": hidden, "k": width}
    run = {"experts": experts, "rows": rows}
    gather = Part("gather_sum", {"width": hidden}, {"tokens": tokens, "top": top})
    return Case(
        "moe",
        {"tokens": tokens, "hidden": hidden, "width": width, "experts": experts, "top": top},
        inputs,
        4,
        ours=lambda x, s, g, d, index: ops.moe_experts(x, index, s, g, d),
        eager=_one_by_one,
        torch=_grouped if hasattr(functional, "grouped_mm") else None,
        forward=[
            Part("grouped_gemm", up, run),
            Part("moe_gate", {"width": width, "act": "silu"}, {"rows": rows}),
            Part("grouped_gemm", down, run),
            gather,
        ],
        backward=[
            Part("grouped_gemm", {"layout": "nn", "n": hidden, "k": 2 * width}, run),
            Part("grouped_gemm", {"layout": "nn", "n": width, "k": hidden}, run),
            Part("grouped_gemm_dw", up, run),
            Part("grouped_gemm_dw", down, run),
            Part("moe_gate_backward", {"width": width, "act": "silu"}, {"rows": rows}),
            gather,
        ],
        slack=6.0,
    )


def _one_by_one(x: Tensor, weights: Tensor, gate_up: Tensor, down: Tensor, index: Tensor) -> Tensor:
    """As transformers' models write it."""
    y = torch.zeros_like(x)
    for expert in range(gate_up.shape[0]):
        token, place = torch.where(index == expert)
        gate, up = functional.linear(x[token], gate_up[expert]).chunk(2, -1)
        part = functional.linear(functional.silu(gate) * up, down[expert]) * weights[token, place, None]
        y = y.index_add(0, token, part)
    return y


def _grouped(x: Tensor, weights: Tensor, gate_up: Tensor, down: Tensor, index: Tensor) -> Tensor:
    """As transformers does with torch's grouped product."""
    order = index.reshape(-1).argsort()
    bounds = torch.arange(gate_up.shape[0], device=index.device)
    ends = torch.searchsorted(index.reshape(-1)[order], bounds, right=True, out_int32=True)
    h = functional.grouped_mm(x[order // index.shape[1]], gate_up.mT, offs=ends)
    gate, up = h.chunk(2, -1)
    z = functional.grouped_mm(functional.silu(gate) * up, down.mT, offs=ends) * weights.reshape(-1)[order, None]
    return z[order.argsort()].view(*index.shape, -1).sum(1)
