"""The training operators and what a user would pick instead: the same work forward and backward, case by case.

A case gives inputs, the operator, its contenders (eager as transformers' models write it, torch's fused operator,
torch.compile, Liger-Kernel where installed) and the bytes or operations that no implementation can do without.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own custom
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "amdflow" / "kernels" / "inside"))

import tilelang_ops as ops
from measuring import draw

EPS = 1e-5
Work = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """One operator at one size. Every function takes the tensors that ``inputs`` gives."""

    op: str
    sizes: Mapping[str, Any]
    inputs: Callable[[torch.dtype, str], list[Tensor]]
    differentiable: int
    """How many of the inputs get a gradient; they come first."""
    ours: Work
    eager: Work
    fused: Work | None = None
    """Torch's own fused operator."""
    liger: str = ""
    """Name of a function of :func:`liger_functions`."""
    kernels: Sequence[tuple[str, Mapping[str, Any]]] = ()
    """What TileLang compiles: kernel and sizes."""
    bytes_each: Callable[[int], float] | None = None
    """Bytes that must be moved forward and backward, by the bytes of a value."""
    operations: float = 0.0
    slack: float = 1.0
    """How often the tolerance of one rounding it may be off: intermediate results that are rounded."""


def liger_functions() -> dict[str, Work]:
    """Liger-Kernel's functions, called as its own patches of transformers do; nothing where it is not installed."""
    try:
        import liger_kernel.ops as liger
    except ImportError:
        return {}
    return {
        "rms_norm": lambda x, w: liger.LigerRMSNormFunction.apply(x, w, EPS, 0.0, "llama", True, None),
        "add_rms_norm": lambda x, r, w: liger.LigerFusedAddRMSNormFunction.apply(x, r, w, EPS, 0.0, "llama", False),
        "layer_norm": lambda x, w, b: liger.LigerLayerNormFunction.apply(x, w, b, EPS),
        "swiglu": lambda g, u: liger.LigerSiLUMulFunction.apply(g, u),
        "geglu": lambda g, u: liger.LigerGELUMulFunction.apply(g, u),
        "rope": lambda q, k, cos, sin: tuple(
            part.transpose(1, 2)
            for part in liger.LigerRopeFunction.apply(q.transpose(1, 2), k.transpose(1, 2), cos[None], sin[None])
        ),
        "linear_cross_entropy": lambda x, w, t: liger.LigerFusedLinearCrossEntropyFunction.apply(x, w, t)[0],
    }


def rms_norm(rows: int, hidden: int) -> Case:
    """RMSNorm as in Llama."""
    return Case(
        "rms_norm",
        {"rows": rows, "hidden": hidden},
        lambda dtype, device: [
            draw(rows, hidden, dtype=dtype, device=device),
            1 + draw(hidden, dtype=dtype, device=device, scale=0.1),
        ],
        2,
        lambda x, w: ops.rms_norm(x, w, EPS),
        _eager_norm,
        lambda x, w: F.rms_norm(x, (hidden,), w, EPS),
        "rms_norm",
        (
            ("rms_norm", {"hidden": hidden}),
            ("rms_norm_backward", {"hidden": hidden}),
            ("column_sum", {"width": hidden}),
        ),
        lambda size: 5.0 * rows * hidden * size,
    )


def add_rms_norm(rows: int, hidden: int) -> Case:
    """The residual add and the norm after it."""

    def eager(x: Tensor, r: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        s = x + r
        return _eager_norm(s, w), s

    return Case(
        "add_rms_norm",
        {"rows": rows, "hidden": hidden},
        lambda dtype, device: [
            draw(rows, hidden, dtype=dtype, device=device),
            draw(rows, hidden, dtype=dtype, device=device),
            1 + draw(hidden, dtype=dtype, device=device, scale=0.1),
        ],
        3,
        lambda x, r, w: ops.add_rms_norm(x, r, w, EPS),
        eager,
        None,
        "add_rms_norm",
        (
            ("rms_norm", {"hidden": hidden, "residual": True}),
            ("rms_norm_backward", {"hidden": hidden, "residual": True}),
            ("column_sum", {"width": hidden}),
        ),
        lambda size: 8.0 * rows * hidden * size,
        slack=2.0,
    )


def layer_norm(rows: int, hidden: int) -> Case:
    """LayerNorm with weight and bias."""
    return Case(
        "layer_norm",
        {"rows": rows, "hidden": hidden},
        lambda dtype, device: [
            draw(rows, hidden, dtype=dtype, device=device),
            1 + draw(hidden, dtype=dtype, device=device, scale=0.1),
            draw(hidden, dtype=dtype, device=device),
        ],
        3,
        lambda x, w, b: ops.layer_norm(x, w, b, EPS),
        lambda x, w, b: F.layer_norm(x, (hidden,), w, b, EPS),
        None,
        "layer_norm",
        (
            ("layer_norm", {"hidden": hidden}),
            ("layer_norm_backward", {"hidden": hidden}),
            ("column_sum", {"width": 2 * hidden}),
        ),
        lambda size: 5.0 * rows * hidden * size,
    )


def gated(op: str, act: Any, rows: int, width: int) -> Case:
    """SwiGLU (``act`` silu) or GeGLU (gelu_tanh, as in Gemma)."""

    def eager(g: Tensor, u: Tensor) -> Tensor:
        return (F.silu(g) if act == "silu" else F.gelu(g, approximate="tanh")) * u

    sizes = {"lanes": 8, "act": act}
    return Case(
        op,
        {"rows": rows, "width": width},
        lambda dtype, device: [draw(rows, width, dtype=dtype, device=device) for _ in range(2)],
        2,
        lambda g, u: ops.swiglu(g, u, act),
        eager,
        None,
        op,
        (("swiglu", sizes), ("swiglu_backward", sizes)),
        lambda size: 8.0 * rows * width * size,
    )


def rope(batch: int, tokens: int, q_heads: int, k_heads: int, head: int) -> Case:
    """Queries and keys of (batch, tokens, heads, head), tables as transformers hand them to a layer."""

    def inputs(dtype: torch.dtype, device: str) -> list[Tensor]:
        cos, sin = (torch.cat([part, part], -1).to(dtype) for part in ops.rope_tables(tokens, head, device=device))
        shape = batch, tokens
        return [
            draw(*shape, q_heads, head, dtype=dtype, device=device),
            draw(*shape, k_heads, head, dtype=dtype, device=device),
            cos,
            sin,
        ]

    def eager(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, ...]:
        cos, sin = cos[:, None], sin[:, None]

        def turned(x: Tensor) -> Tensor:
            low, high = x.chunk(2, -1)
            return x * cos + torch.cat([-high, low], -1) * sin

        return turned(q), turned(k)

    return Case(
        "rope",
        {"batch": batch, "tokens": tokens, "q_heads": q_heads, "k_heads": k_heads, "head": head},
        inputs,
        2,
        ops.rope,
        eager,
        None,
        "rope",
        (("rope", {"head": head, "table": head}),),
        lambda size: 4.0 * batch * tokens * (q_heads + k_heads) * head * size,
    )


def linear_cross_entropy(rows: int, hidden: int, vocab: int) -> Case:
    """The last layer of a language model with its loss."""

    def inputs(dtype: torch.dtype, device: str) -> list[Tensor]:
        target = torch.arange(rows, device=device) * 7919 % vocab
        target[:: max(2, rows // 16)] = -100
        return [
            draw(rows, hidden, dtype=dtype, device=device),
            draw(vocab, hidden, dtype=dtype, device=device, scale=hidden**-0.5),
            target,
        ]

    return Case(
        "linear_cross_entropy",
        {"rows": rows, "hidden": hidden, "vocab": vocab},
        inputs,
        2,
        lambda x, w, t: ops.linear_cross_entropy(x, w, t),
        lambda x, w, t: F.cross_entropy((x @ w.T).to(torch.float64 if x.dtype == torch.float64 else torch.float32), t),
        None,
        "linear_cross_entropy",
        (("cross_entropy", {"vocab": vocab}), ("scale_in_place", {"lanes": 8})),
        operations=6.0 * rows * hidden * vocab,
        slack=4.0,
    )


def _eager_norm(x: Tensor, w: Tensor) -> Tensor:
    wide = x if x.dtype == torch.float64 else x.float()
    return w * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPS)).to(x.dtype)


# Small enough for the float64 reference, odd sizes among them; then the sizes that are timed.
CHECKED = [
    *(rms_norm(4096, hidden) for hidden in (2048, 4096, 8192)),
    rms_norm(77, 1001),
    *(add_rms_norm(4096, hidden) for hidden in (2048, 4096, 8192)),
    *(layer_norm(4096, hidden) for hidden in (2048, 4096)),
    *(gated("swiglu", "silu", 4096, width) for width in (8192, 14336)),
    gated("swiglu", "silu", 77, 1001),
    gated("geglu", "gelu_tanh", 4096, 8192),
    rope(1, 4096, 32, 8, 128),
    rope(2, 77, 9, 3, 64),
    linear_cross_entropy(1024, 2048, 32000),
    linear_cross_entropy(333, 576, 5001),
]
TIMED = [
    *(rms_norm(8192, hidden) for hidden in (4096, 2048, 8192)),
    add_rms_norm(8192, 4096),
    gated("swiglu", "silu", 8192, 14336),
    gated("swiglu", "silu", 8192, 8192),
    rope(2, 4096, 32, 8, 128),
    linear_cross_entropy(8192, 2048, 128256),
    linear_cross_entropy(8192, 4096, 128256),
    layer_norm(8192, 4096),
    gated("geglu", "gelu_tanh", 8192, 14336),
]
