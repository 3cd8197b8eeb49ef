"""Runs in the kernels environment; prints ``name: result`` lines that test_kernel_attention.py looks at."""

from __future__ import annotations

from typing import Any

import torch

# TileLang's sources, found through the path
from tilelang_ops.launch import kernel
from tilelang_ops.lowering import load_module
from tilelang_ops.tiles import kernel_file
from torch import Tensor

NO_WINDOW = 2**30


def attend(q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
    """Plain attention of one sequence, (tokens, heads, head); ``seen`` is (heads or 1, queries, keys)."""
    k, v = (part.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for part in (k, v))
    scores = torch.einsum("qhd,khd->hqk", q, k) * q.shape[2] ** -0.5
    weights = torch.where(seen, (scores - scores.detach().amax(-1, keepdim=True)).exp(), 0.0)
    return torch.einsum("hqk,khd->qhd", weights / weights.sum(-1, keepdim=True).clamp_min(1e-300), v)


def visible(queries: int, keys: int, causal: bool, window: int) -> Tensor:
    """Row by row, as a person would say it."""
    rows = [[key - (query + keys - queries) for key in range(keys)] for query in range(queries)]
    return torch.tensor(
        [[-window < ahead < (1 if causal else window) for ahead in row] for row in rows], dtype=torch.bool
    ).view(1, queries, keys)


def report(name: str, found: list[Tensor], expected: list[Tensor]) -> None:
    """Print the worst error of any result or gradient, relative to its largest element."""
    worst = max(float((a.double() - b).abs().max() / b.abs().max()) for a, b in zip(found, expected, strict=True))
    finite = all(part.isfinite().all() for part in found)
    print(f"{name}: {worst if finite else 'not finite'}", flush=True)


def dense(name: str, *, head: int, causal: bool, tokens: int, heads: int, kv_heads: int) -> None:
    batch = 2
    q, dy = (torch.randn(batch, tokens, heads, head) for _ in range(2))
    k, v = (torch.randn(batch, tokens, kv_heads, head) for _ in range(2))
    y, lse = torch.full_like(q, torch.nan), torch.full((batch, heads, tokens), torch.nan)
    kernel("attention", q, head=head, causal=causal)(q, k, v, y, lse)
    delta, dq = (y * dy).sum(-1).transpose(1, 2).contiguous(), torch.zeros_like(q)
    dk, dv = (torch.full_like(q, torch.nan) for _ in range(2))
    kernel("attention_backward", q, head=head, causal=causal)(q, k, v, dy, lse, delta, dq, dk, dv)
    wide = [part.double().requires_grad_() for part in (q, k, v)]
    seen = visible(tokens, tokens, causal, NO_WINDOW)
    right = torch.stack([attend(wide[0][each], wide[1][each], wide[2][each], seen) for each in range(batch)])
    expected = torch.autograd.grad(right, wide, dy.double())
    report(name, [y, *_finished(dq, dk, dv, kv_heads)], [right.detach(), *expected])


def packed(
    name: str,
    queries: list[int],
    keys: list[int],
    *,
    causal: bool = True,
    window: int = NO_WINDOW,
    mask: Tensor | None = None,
    heads: int = 4,
    kv_heads: int = 2,
    sparse: int = 0,
) -> None:
    head = 32
    forward = load_module(str(kernel_file("attention_varlen")))
    q, dy = (torch.randn(sum(queries), heads, head) for _ in range(2))
    k, v = (torch.randn(sum(keys), kv_heads, head) for _ in range(2))
    cu_q, cu_kv = forward.bounds_of(queries), forward.bounds_of(keys)
    y, lse = torch.full_like(q, torch.nan), torch.full((heads, sum(queries)), torch.nan)
    rows = [] if mask is None else list(forward.block_lists(mask))
    columns = [] if mask is None else list(forward.block_lists(mask.transpose(1, 2)))
    sizes = {"head": head, "causal": causal, "sparse": sparse}
    kernel("attention_varlen", q, **sizes)(q, k, v, cu_q, cu_kv, *rows, y, lse, max(queries), window)
    delta, dq = (y * dy).sum(-1).T.contiguous(), torch.zeros_like(q)
    dk, dv = (torch.full((sum(keys), heads, head), torch.nan) for _ in range(2))
    backward = kernel("attention_varlen_backward", q, **sizes)
    backward(q, k, v, dy, lse, delta, cu_q, cu_kv, *columns, dq, dk, dv, max(keys), window)
    wide: list[Any] = [part.double().requires_grad_() for part in (q, k, v)]
    parts, blind = [], []
    first_q = first_k = 0
    for m, n in zip(queries, keys, strict=True):
        seen = visible(m, n, causal, window)
        if mask is not None:
            seen = seen & mask.repeat_interleave(sparse, 1).repeat_interleave(sparse, 2)[:, :m, :n]
        blind.append(~seen.any(-1).expand(heads, m))
        q_part, (k_part, v_part) = wide[0][first_q : first_q + m], (part[first_k : first_k + n] for part in wide[1:])
        parts.append(attend(q_part, k_part, v_part, seen) if n else 0 * q_part)
        first_q, first_k = first_q + m, first_k + n
    right = torch.cat(parts)
    expected = torch.autograd.grad(right, wide, dy.double())
    report(name, [y, *_finished(dq, dk, dv, kv_heads)], [right.detach(), *expected])
    sees_nothing = torch.cat(blind, dim=1)
    silent = bool((lse[sees_nothing] == -torch.inf).all() and (y.transpose(0, 1)[sees_nothing] == 0).all())
    print(
        f"{name}, blind rows: {int(sees_nothing.sum())} {silent and bool((dq.transpose(0, 1)[sees_nothing] == 0).all())}"
    )


def _finished(dq: Tensor, dk: Tensor, dv: Tensor, kv_heads: int) -> list[Tensor]:
    """What is left to the caller: the scale of dq, and the sum of dk and dv over a group's heads."""
    summed = [part.unflatten(-2, (kv_heads, -1)).sum(-2) for part in (dk, dv)]
    return [dq * dq.shape[-1] ** -0.5, *summed]


def main() -> None:
    torch.manual_seed(0)
    dense("head 96, causal", head=96, causal=True, tokens=45, heads=2, kv_heads=1)
    packed("packed", [33, 0, 1, 77], [33, 0, 1, 77])
    packed("packed, window", [70, 5], [70, 5], window=7)
    packed("more keys than queries", [1, 40], [70, 57])
    packed("more queries than keys", [50, 9, 4], [33, 9, 0])
    packed("window on both sides", [77, 20], [60, 20], causal=False, window=11)
    mask = torch.rand(4, 5, 5) > 0.5
    mask[:, 1], mask[:, :, 2] = False, False
    packed("listed blocks", [300, 65], [300, 65], mask=mask, sparse=64)
    packed("listed blocks, one layer, a window", [200], [280], mask=mask[:1], sparse=64, window=100)


if __name__ == "__main__":
    main()
