"""Rotary position embedding of queries and keys, and its tables with Llama 3's and YaRN's scaling."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from .define import operator
from .launch import NAMES, kernel


def rope(
    q: Tensor,
    k: Tensor,
    cos: Tensor,
    sin: Tensor,
    position: Tensor | None = None,
    *,
    rotary: int | None = None,
    interleaved: bool = False,
) -> tuple[Tensor, Tensor]:
    """Turn ``q`` and ``k`` of (..., tokens, heads, head) by the rows of the tables that ``position`` (..., tokens) names.

    ``cos`` and ``sin`` are (positions, rotary / 2), or (positions, rotary) with each angle twice, as transformers' models
    hand them over. The first ``rotary`` elements of each head are turned (all when not given), the rest is copied.
    Without ``position`` token i takes row i.
    """
    if position is not None:
        position = position.to(torch.int32).expand(q.shape[:-2]).contiguous()
    turned = _rope(q, k, cos, sin, position, rotary or q.shape[-1], interleaved, 1.0)
    return turned[0], turned[1]


def _run(
    q: Tensor,
    k: Tensor,
    cos: Tensor,
    sin: Tensor,
    position: Tensor | None,
    rotary: int,
    interleaved: bool,
    direction: float,
) -> tuple[Tensor, Tensor]:
    q, k = q.contiguous(), k.contiguous()
    q_turned, k_turned = torch.empty_like(q), torch.empty_like(k)
    if not q.numel():
        return q_turned, k_turned
    head, period = q.shape[-1], q.shape[-3]
    if interleaved:  # that kernel reads the tables element by element
        cos, sin = cos.float(), sin.float()
    if position is None and period > cos.shape[0]:
        raise ValueError(f"the tables have {cos.shape[0]} rows, fewer than the {period} tokens")
    run = kernel(
        "rope",
        q,
        head=head,
        rotary=None if rotary == head else rotary,
        table=None if cos.shape[-1] == rotary // 2 else cos.shape[-1],
        angles=NAMES[cos.dtype],
        gathered=None if position is None else True,
        interleaved=interleaved or None,
    )
    given = [tensor.view(-1, *tensor.shape[-2:]) for tensor in (q, k)] + [cos.contiguous(), sin.contiguous()]
    turned = [tensor.view(-1, *tensor.shape[-2:]) for tensor in (q_turned, k_turned)]
    if position is None:
        run(*given, *turned, period, direction)
    else:
        run(*given, position.view(-1), *turned, direction)
    return q_turned, k_turned


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:  # noqa: ARG001 - torch's own signature
    _q, _k, cos, sin, position, *ctx.settings = inputs
    ctx.save_for_backward(cos, sin, position)


def _gradients(ctx: Any, dq: Tensor, dk: Tensor) -> tuple[Any, ...]:
    rotary, interleaved, direction = ctx.settings
    dq, dk = _rope(dq, dk, *ctx.saved_tensors, rotary, interleaved, -direction)
    return dq, dk, None, None, None, None, None, None


_rope = operator(
    "rope(Tensor q, Tensor k, Tensor cos, Tensor sin, Tensor? position, int rotary, bool interleaved, float direction)"
    " -> (Tensor, Tensor)",
    _run,
    fake=lambda q, k, *_: (q.new_empty(q.shape), k.new_empty(k.shape)),
    save=_save,
    backward=_gradients,
)


def rope_tables(
    positions: int,
    rotary: int,
    *,
    base: float = 10000.0,
    scaling: Mapping[str, Any] | None = None,
    device: torch.device | str | None = None,
) -> tuple[Tensor, Tensor]:
    """The tables cos and sin of (positions, rotary / 2) in float32.

    ``scaling`` is a model config's ``rope_scaling``: none, ``linear``, ``llama3`` or ``yarn``. Raises ValueError for
    another kind.
    """
    scaling = scaling or {}
    rates = base ** (-torch.arange(0, rotary, 2, device=device, dtype=torch.float64) / rotary)
    kind, size = scaling.get("rope_type", scaling.get("type", "default")), 1.0
    if kind == "linear":
        rates = rates / scaling["factor"]
    elif kind == "llama3":
        rates = _llama3(rates, scaling)
    elif kind == "yarn":
        rates, size = _yarn(rates, rotary, base, scaling)
    elif kind != "default":
        raise ValueError(f"no tables for the rotary scaling {kind!r}, only for default, linear, llama3 and yarn")
    angles = torch.outer(torch.arange(positions, device=device, dtype=torch.float64), rates)
    return (angles.cos() * size).float(), (angles.sin() * size).float()


def _llama3(rates: Tensor, scaling: Mapping[str, Any]) -> Tensor:
    """Slow rotations are slowed by ``factor``, fast ones kept, those between blended."""
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    turns = scaling["original_max_position_embeddings"] * rates / (2 * math.pi)
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return rates * (kept + (1 - kept) / scaling["factor"])


def _yarn(rates: Tensor, rotary: int, base: float, scaling: Mapping[str, Any]) -> tuple[Tensor, float]:
    """As llama3, blended along the dimensions; the tables grow by a factor of their own."""
    factor, window = scaling["factor"], scaling["original_max_position_embeddings"]

    def dimension(turns: float) -> float:
        return rotary * math.log(window / (turns * 2 * math.pi)) / (2 * math.log(base))

    first, last = dimension(scaling.get("beta_fast") or 32), dimension(scaling.get("beta_slow") or 1)
    if scaling.get("truncate", True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, rotary - 1)
    steps = torch.arange(rotary // 2, device=rates.device, dtype=torch.float64)
    slowed = ((steps - first) / max(last - first, 1e-3)).clamp(0, 1)
    size = scaling.get("attention_factor")
    if size is None:
        size = 1.0 if factor <= 1 else 0.1 * math.log(factor) + 1.0
    return rates * (1 - slowed) + rates / factor * slowed, size
