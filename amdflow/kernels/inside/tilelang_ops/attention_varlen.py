"""Attention over packed sequences, with a gradient: one behind the other, of any lengths, with a window or without."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .define import operator
from .launch import kernel

_NO_WINDOW = 2**30


def attention_varlen(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cu_q: Tensor,
    cu_kv: Tensor,
    *,
    causal: bool = True,
    window: int | None = None,
    longest: int | None = None,
) -> Tensor:
    """``softmax(q @ k.T / sqrt(head)) @ v`` in each sequence, for q of (tokens of all, heads, head), k and v likewise.

    ``cu_q`` and ``cu_kv`` (int32) are where the sequences of queries and of keys begin, and as the last number how many
    tokens there are in all. Where a sequence has more keys than queries, its last query sees its last key. ``window`` is
    how many keys a query sees, the one that it stands at among them. ``longest`` is the most queries or keys that a
    sequence has; the number of tokens when not given.
    """
    longest = longest or max(q.shape[0], k.shape[0])
    y: Tensor = _attention_varlen(q, k, v, cu_q, cu_kv, causal, window or _NO_WINDOW, longest)[0]
    return y


def group(each: Tensor, like: Tensor) -> Tensor:
    """The sum over the query heads that share a head of keys and values, the second dimension from behind."""
    heads, head = like.shape[-2:]
    return each if each.shape[-2] == heads else each.view(*like.shape[:-2], heads, -1, head).sum(-2)


def widened(rows: Tensor) -> Tensor:
    """``rows`` at a length that is a multiple of 4, which bulk loads of float32 on NVIDIA ask for."""
    missing = -rows.shape[-1] % 4
    return torch.nn.functional.pad(rows, (0, missing)) if missing else rows


def _run(
    q: Tensor, k: Tensor, v: Tensor, cu_q: Tensor, cu_kv: Tensor, causal: bool, window: int, longest: int
) -> tuple[Tensor, Tensor]:
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    y, lse = torch.empty_like(q), _per_row(q)
    if y.numel():
        run = kernel("attention_varlen", q, head=q.shape[-1], causal=causal)
        run(q, k, v, cu_q, cu_kv, y, lse, longest, window)
    return y, lse


def _per_row(q: Tensor) -> Tensor:
    return q.new_empty((q.shape[1], q.shape[0]), dtype=torch.float32)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    *parts, ctx.causal, ctx.window, ctx.longest = inputs
    ctx.save_for_backward(*parts, *output)


def _gradients(ctx: Any, dy: Tensor, _lse: Any) -> tuple[Any, ...]:
    gradients = _backward(dy, *ctx.saved_tensors, ctx.causal, ctx.window, ctx.longest)
    return (*gradients, None, None, None, None, None)


def _backward_run(
    dy: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cu_q: Tensor,
    cu_kv: Tensor,
    y: Tensor,
    lse: Tensor,
    causal: bool,
    window: int,
    longest: int,
) -> tuple[Tensor, Tensor, Tensor]:
    if not q.numel():
        return torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    q, k, v, dy = q.contiguous(), k.contiguous(), v.contiguous(), dy.contiguous()
    delta, head = torch.empty_like(lse), q.shape[-1]
    kernel("attention_delta", q, head=head)(y[None], dy[None], delta[None])
    sums, dq = torch.zeros_like(q, dtype=torch.float32), torch.empty_like(q)
    dk, dv = (part.new_empty(part.shape[0], *q.shape[1:]) for part in (k, v))  # of each query head
    run = kernel("attention_varlen_backward", q, head=head, causal=causal)
    run(q, k, v, dy, widened(lse), widened(delta), cu_q, cu_kv, sums, dk, dv, longest, window)
    torch.mul(sums, head**-0.5, out=dq)
    return dq, group(dk, k), group(dv, v)


_attention_varlen = operator(
    "attention_varlen(Tensor q, Tensor k, Tensor v, Tensor cu_q, Tensor cu_kv, bool causal, int window, int longest)"
    " -> (Tensor, Tensor)",
    _run,
    fake=lambda q, *_: (q.new_empty(q.shape), _per_row(q)),
    save=_save,
    backward=_gradients,
)
_backward = operator(
    "attention_varlen_backward(Tensor dy, Tensor q, Tensor k, Tensor v, Tensor cu_q, Tensor cu_kv, Tensor y, Tensor lse,"
    " bool causal, int window, int longest) -> (Tensor, Tensor, Tensor)",
    _backward_run,
    fake=lambda _dy, q, k, v, *_: (q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)),
)
