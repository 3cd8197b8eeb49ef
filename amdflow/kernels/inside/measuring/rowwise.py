"""Cases of the operators that memory bounds: norms, gated activations, rotary embedding."""

from __future__ import annotations

from typing import Any

import tilelang_ops as ops
import torch
from torch import Tensor
from torch.nn import functional

from .case import EPS, SAME, Case, Part, liger
from .clock import draw


def rms_norm(rows: int, hidden: int) -> Case:
    """RMSNorm as in Llama."""
    fused = liger("LigerRMSNormFunction")
    build, run = {"hidden": hidden}, {"rows": rows}
    return Case(
        "rms_norm",
        {"rows": rows, "hidden": hidden},
        lambda dtype, device: [
            draw(rows, hidden, dtype=dtype, device=device),
            1 + draw(hidden, dtype=dtype, device=device, scale=0.1),
        ],
        2,
        ours=lambda x, w: ops.rms_norm(x, w, EPS),
        eager=_norm,
        torch=lambda x, w: functional.rms_norm(x, (hidden,), w, EPS),
        liger=fused and (lambda x, w: fused.apply(x, w, EPS, 0.0, "llama", True, None)),
        forward=[Part("rms_norm", build, run)],
        backward=_norm_backward("rms_norm_backward", build, rows, hidden),
    )


def add_rms_norm(rows: int, hidden: int) -> Case:
    """The residual add and the norm after it."""
    fused = liger("LigerFusedAddRMSNormFunction")
    build, run = {"hidden": hidden, "residual": True}, {"rows": rows}

    def eager(x: Tensor, r: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        s = x + r
        return _norm(s, w), s

    return Case(
        "add_rms_norm",
        {"rows": rows, "hidden": hidden},
        lambda dtype, device: [
            draw(rows, hidden, dtype=dtype, device=device),
            draw(rows, hidden, dtype=dtype, device=device),
            1 + draw(hidden, dtype=dtype, device=device, scale=0.1),
        ],
        3,
        ours=lambda x, r, w: ops.add_rms_norm(x, r, w, EPS),
        eager=eager,
        liger=fused and (lambda x, r, w: fused.apply(x, r, w, EPS, 0.0, "llama", False)),
        forward=[Part("rms_norm", build, run)],
        backward=_norm_backward("rms_norm_backward", build, rows, hidden),
        slack=2.0,
    )


def layer_norm(rows: int, hidden: int) -> Case:
    """LayerNorm with weight and bias; eager models call torch's fused operator already."""
    fused = liger("LigerLayerNormFunction")
    build, run = {"hidden": hidden}, {"rows": rows}

    return Case(
        "layer_norm",
        {"rows": rows, "hidden": hidden},
        lambda dtype, device: [
            draw(rows, hidden, dtype=dtype, device=device),
            1 + draw(hidden, dtype=dtype, device=device, scale=0.1),
            draw(hidden, dtype=dtype, device=device),
        ],
        3,
        ours=lambda x, w, b: ops.layer_norm(x, w, b, EPS),
        eager=lambda x, w, b: functional.layer_norm(x, (hidden,), w, b, EPS),
        liger=fused and (lambda x, w, b: fused.apply(x, w, b, EPS)),
        forward=[Part("layer_norm", build, run)],
        backward=_norm_backward("layer_norm_backward", build, rows, 2 * hidden),
    )


def swiglu(rows: int, width: int) -> Case:
    """SwiGLU as in Llama."""
    return _gated("swiglu", "silu", liger("LigerSiLUMulFunction"), rows, width)


def geglu(rows: int, width: int) -> Case:
    """GeGLU as in Gemma."""
    return _gated("geglu", "gelu_tanh", liger("LigerGELUMulFunction"), rows, width)


def _gated(op: str, act: Any, fused: Any, rows: int, width: int) -> Case:
    def eager(g: Tensor, u: Tensor) -> Tensor:
        return (functional.silu(g) if act == "silu" else functional.gelu(g, approximate="tanh")) * u

    lanes = 1 if rows * width % 8 else 8
    build, run = {"lanes": lanes, "act": act}, {"groups": rows * width // lanes}
    return Case(
        op,
        {"rows": rows, "width": width},
        lambda dtype, device: [draw(rows, width, dtype=dtype, device=device) for _ in range(2)],
        2,
        ours=lambda g, u: ops.swiglu(g, u, act),
        eager=eager,
        liger=fused and (lambda g, u: fused.apply(g, u)),
        forward=[Part("swiglu", build, run)],
        backward=[Part("swiglu_backward", build, run)],
    )


def rope(batch: int, tokens: int, q_heads: int, k_heads: int, head: int) -> Case:
    """Queries and keys of (batch, tokens, heads, head), tables as transformers hand them to a layer."""
    fused = liger("LigerRopeFunction")

    def inputs(dtype: torch.dtype, device: str) -> list[Tensor]:
        cos, sin = (torch.cat([part, part], -1).to(dtype) for part in ops.rope_tables(tokens, head, device=device))
        return [
            draw(batch, tokens, q_heads, head, dtype=dtype, device=device),
            draw(batch, tokens, k_heads, head, dtype=dtype, device=device),
            cos,
            sin,
        ]

    def eager(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, ...]:
        cos, sin = cos[:, None], sin[:, None]

        def turned(x: Tensor) -> Tensor:
            low, high = x.chunk(2, -1)
            return x * cos + torch.cat([-high, low], -1) * sin

        return turned(q), turned(k)

    def theirs(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, ...]:
        turned = fused.apply(q.transpose(1, 2), k.transpose(1, 2), cos[None], sin[None])
        return tuple(part.transpose(1, 2) for part in turned)

    part = Part(
        "rope",
        {"head": head, "table": head, "angles": SAME},
        {"tokens": batch * tokens, "q_heads": q_heads, "k_heads": k_heads},
    )
    return Case(
        "rope",
        {"batch": batch, "tokens": tokens, "q_heads": q_heads, "k_heads": k_heads, "head": head},
        inputs,
        2,
        ours=ops.rope,
        eager=eager,
        liger=fused and theirs,
        forward=[part],
        backward=[part],
    )


def _norm(x: Tensor, w: Tensor) -> Tensor:
    wide = x if x.dtype == torch.float64 else x.float()
    return w * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPS)).to(x.dtype)


def _norm_backward(kernel: str, build: dict[str, Any], rows: int, width: int) -> list[Part]:
    """A norm's two kernels; the rows of sums that go from one to the other are no work that must be done."""
    return [Part(kernel, build, {"rows": rows, "parts": 0}), Part("column_sum", {"width": width}, {"parts": 0})]
