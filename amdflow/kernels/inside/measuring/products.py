"""Cases of the operators that matrix products dominate: linear layers, attention, the last layer with its loss."""

from __future__ import annotations

from typing import Any

import tilelang_ops as ops
import torch
from tilelang_ops.launch import kernel
from tilelang_ops.linear import linear as linear_operator
from torch import Tensor
from torch.nn import functional

from .case import BOTH, FORWARD, Case, Part, liger
from .clock import draw


def gemm(m: int, n: int, k: int) -> Case:
    """X @ w.T, forward: the kernel by itself beside torch's matrix product."""

    def ours(x: Tensor, w: Tensor) -> Tensor:
        y = x.new_empty(m, n)
        kernel("gemm", x, n=n, k=k)(x, w, y)
        return y

    return Case(
        "gemm",
        {"m": m, "n": n, "k": k},
        lambda dtype, device: [
            draw(m, k, dtype=dtype, device=device),
            draw(n, k, dtype=dtype, device=device, scale=k**-0.5),
        ],
        0,
        ours=ours,
        eager=lambda x, w: x @ w.mT,
        torch=functional.linear,
        forward=[Part("gemm", {"n": n, "k": k}, {"m": m})],
    )


def linear(rows: int, n: int, k: int) -> Case:
    """A linear layer without bias: one product forward, two back, in our kernel or in torch's library."""
    return Case(
        "linear",
        {"rows": rows, "n": n, "k": k},
        lambda dtype, device: [
            draw(rows, k, dtype=dtype, device=device),
            draw(n, k, dtype=dtype, device=device, scale=k**-0.5),
        ],
        2,
        ours=linear_operator,
        eager=functional.linear,
        forward=[Part("gemm", {"n": n, "k": k}, {"m": rows})],
        backward=[
            Part("gemm", {"layout": "nn", "n": k, "k": n}, {"m": rows}),
            Part("gemm", {"layout": "tn", "m": n, "n": k}, {"k": rows}),
        ],
        slack=2.0,
    )


def attention(batch: int, tokens: int, heads: int, kv_heads: int, head: int, causal: bool = True) -> Case:
    """Tensors of (batch, tokens, heads, head), beside torch's fused operator and softmax(q @ k.T) @ v as it is written."""
    build = {"head": head, "causal": causal}

    def eager(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (part.transpose(1, 2) for part in (q, k, v))
        k, v = (part.repeat_interleave(heads // kv_heads, 1) for part in (k, v))
        scores = q @ k.mT * head**-0.5
        if causal:
            scores = scores.masked_fill(
                torch.ones(tokens, tokens, dtype=torch.bool, device=q.device).triu(1), -torch.inf
            )
        return (scores.softmax(-1) @ v).transpose(1, 2)

    def fused(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (part.transpose(1, 2) for part in (q, k, v))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=heads != kv_heads)
        return y.transpose(1, 2)

    def inputs(dtype: torch.dtype, device: str) -> list[Tensor]:
        return [draw(batch, tokens, count, head, dtype=dtype, device=device) for count in (heads, kv_heads, kv_heads)]

    sizes = {"batch": batch, "tokens": tokens, "heads": heads, "kv_heads": kv_heads}
    return Case(
        "attention",
        {**sizes, **build},
        inputs,
        3,
        ours=lambda q, k, v: ops.attention(q, k, v, causal=causal),
        eager=eager,
        torch=fused,
        forward=[Part("attention", build, sizes)],
        backward=[
            Part(
                "attention_delta", {"head": head}, {"batch": batch, "tokens": 0, "heads": heads}
            ),  # no work that must be done
            Part("attention_backward", build, sizes),
        ],
        slack=4.0,
        cancels=True,
    )


def linear_cross_entropy(rows: int, hidden: int, vocab: int) -> Case:
    """The last layer of a language model with its loss."""
    fused: Any = liger("LigerFusedLinearCrossEntropyFunction")

    def inputs(dtype: torch.dtype, device: str) -> list[Tensor]:
        target = torch.arange(rows, device=device) * 7919 % vocab
        target[:: max(2, rows // 16)] = -100
        return [
            draw(rows, hidden, dtype=dtype, device=device),
            draw(vocab, hidden, dtype=dtype, device=device, scale=hidden**-0.5),
            target,
        ]

    def eager(x: Tensor, w: Tensor, t: Tensor) -> Tensor:
        logits = (x @ w.T).to(torch.float64 if x.dtype == torch.float64 else torch.float32)
        return functional.cross_entropy(logits, t)

    def tensors(size: int) -> int:
        return (rows + vocab) * hidden * size

    products = 2.0 * rows * hidden * vocab
    return Case(
        "linear_cross_entropy",
        {"rows": rows, "hidden": hidden, "vocab": vocab},
        inputs,
        2,
        ours=ops.linear_cross_entropy,
        eager=eager,
        liger=fused and (lambda x, w, t: fused.apply(x, w, t)[0]),
        forward=[Part("cross_entropy", {"vocab": vocab}, {"rows": rows}), Part("scale_in_place", {"lanes": 8}, {})],
        own_work={
            FORWARD: lambda size: (products, tensors(size)),
            BOTH: lambda size: (3 * products, 2 * tensors(size)),
        },
        slack=4.0,
    )
