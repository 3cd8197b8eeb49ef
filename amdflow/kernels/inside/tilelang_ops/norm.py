"""RMSNorm, alone and fused with the residual add before it, and LayerNorm."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .define import operator
from .launch import kernel, workgroups

_SPREAD = 8192
"""Columns, of all its workgroups together, that a backward pass has on each compute unit (measured on an H200)."""


def rms_norm(x: Tensor, weight: Tensor, eps: float, offset: float = 0.0) -> Tensor:
    """``x * rsqrt(mean(x^2) + eps) * (weight + offset)`` over the last dimension, reduced in float32."""
    y: Tensor = _rms_norm(x, weight, eps, offset)[0]
    return y


def add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float, offset: float = 0.0) -> tuple[Tensor, Tensor]:
    """The norm of ``x + residual``, and that sum: (y, s)."""
    y, s, _rstd = _add_rms_norm(x, residual, weight, eps, offset)
    return y, s


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """``(x - mean) * rsqrt(var + eps) * weight + bias`` over the last dimension, reduced in float32."""
    y: Tensor = _layer_norm(x, weight, bias, eps)[0]
    return y


def _rows(x: Tensor) -> Tensor:
    return x.reshape(-1, x.shape[-1]).contiguous()


def _like(x: Tensor) -> Tensor:
    """Room of x's shape without gaps; never a view, which some wrappers of modules warn about."""
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _per_row(x: Tensor) -> Tensor:
    return x.new_empty(x.shape[:-1], dtype=torch.float32)


def _rms_norm_run(x: Tensor, weight: Tensor, eps: float, offset: float) -> tuple[Tensor, Tensor]:
    rows = _rows(x)
    y, rstd = _like(x), _per_row(x)
    if rows.numel():
        run = kernel("rms_norm", rows, hidden=rows.shape[1])
        run(rows, weight.to(x.dtype), _rows(y), rstd.view(-1), eps, offset)
    return y, rstd


def _rms_norm_save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    x, weight, _eps, ctx.offset = inputs
    ctx.save_for_backward(x, weight, output[1])


def _rms_norm_gradients(ctx: Any, dy: Tensor, _rstd: Any) -> tuple[Any, ...]:
    x, weight, rstd = ctx.saved_tensors
    return (*_rms_norm_backward(dy, None, x, weight, rstd, ctx.offset), None, None)


def _rms_norm_backward_run(
    dy: Tensor, ds: Tensor | None, x: Tensor, weight: Tensor, rstd: Tensor, offset: float
) -> tuple[Tensor, Tensor]:
    rows, hidden = _rows(x), x.shape[-1]
    dx = _like(x)
    if not rows.numel():
        return dx, torch.zeros_like(weight)
    sums = _sums(rows, hidden)
    run = kernel("rms_norm_backward", rows, hidden=hidden, residual=None if ds is None else True)
    given = (_rows(dy),) if ds is None else (_rows(dy), _rows(ds))
    run(*given, rows, weight.to(x.dtype), rstd.view(-1), _rows(dx), sums, offset)
    return dx, _column_sum(sums, weight)


def _sums(rows: Tensor, width: int) -> Tensor:
    each = max(1, min(4, _SPREAD // rows.shape[1]))
    parts = min(rows.shape[0], workgroups(rows.device.type, each))  # each leaves one row of sums
    return rows.new_empty((parts, width), dtype=torch.float32)


def _column_sum(sums: Tensor, like: Tensor) -> Tensor:
    result = sums.new_empty(sums.shape[1], dtype=like.dtype)
    kernel("column_sum", like, width=sums.shape[1])(sums, result)
    return result


def _add_rms_norm_run(
    x: Tensor, residual: Tensor, weight: Tensor, eps: float, offset: float
) -> tuple[Tensor, Tensor, Tensor]:
    rows = _rows(x)
    y, s, rstd = _like(x), _like(x), _per_row(x)
    if rows.numel():
        run = kernel("rms_norm", rows, hidden=rows.shape[1], residual=True)
        run(rows, _rows(residual), weight.to(x.dtype), _rows(y), _rows(s), rstd.view(-1), eps, offset)
    return y, s, rstd


def _add_rms_norm_save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    _x, _residual, weight, _eps, ctx.offset = inputs
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(output[1], weight, output[2])


def _add_rms_norm_gradients(ctx: Any, dy: Tensor | None, ds: Tensor | None, _rstd: Any) -> tuple[Any, ...]:
    s, weight, rstd = ctx.saved_tensors
    if dy is None:
        return ds, ds, None, None, None
    dx, dw = _rms_norm_backward(dy, ds, s, weight, rstd, ctx.offset)
    return dx, dx, dw, None, None


def _layer_norm_run(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    rows = _rows(x)
    y, mean, rstd = _like(x), _per_row(x), _per_row(x)
    if rows.numel():
        run = kernel("layer_norm", rows, hidden=rows.shape[1])
        run(rows, weight.to(x.dtype), bias.to(x.dtype), _rows(y), mean.view(-1), rstd.view(-1), eps)
    return y, mean, rstd


def _layer_norm_save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*inputs[:2], *output[1:])


def _layer_norm_gradients(ctx: Any, dy: Tensor, _mean: Any, _rstd: Any) -> tuple[Any, ...]:
    x, weight, mean, rstd = ctx.saved_tensors
    return (*_layer_norm_backward(dy, x, weight, mean, rstd), None)


def _layer_norm_backward_run(
    dy: Tensor, x: Tensor, weight: Tensor, mean: Tensor, rstd: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    rows, hidden = _rows(x), x.shape[-1]
    dx = _like(x)
    if not rows.numel():
        return dx, torch.zeros_like(weight), torch.zeros_like(weight)
    sums = _sums(rows, 2 * hidden)
    run = kernel("layer_norm_backward", rows, hidden=hidden)
    run(_rows(dy), rows, weight.to(x.dtype), mean.view(-1), rstd.view(-1), _rows(dx), sums)
    pair = _column_sum(sums, weight)
    return dx, pair[:hidden].clone(), pair[hidden:].clone()


_rms_norm = operator(
    "rms_norm(Tensor x, Tensor weight, float eps, float offset) -> (Tensor, Tensor)",
    _rms_norm_run,
    fake=lambda x, _weight, _eps, _offset: (x.new_empty(x.shape), _per_row(x)),
    save=_rms_norm_save,
    backward=_rms_norm_gradients,
)
_rms_norm_backward = operator(
    "rms_norm_backward(Tensor dy, Tensor? ds, Tensor x, Tensor weight, Tensor rstd, float offset) -> (Tensor, Tensor)",
    _rms_norm_backward_run,
    fake=lambda _dy, _ds, x, weight, _rstd, _offset: (x.new_empty(x.shape), torch.empty_like(weight)),
)
_add_rms_norm = operator(
    "add_rms_norm(Tensor x, Tensor residual, Tensor weight, float eps, float offset) -> (Tensor, Tensor, Tensor)",
    _add_rms_norm_run,
    fake=lambda x, _residual, _weight, _eps, _offset: (x.new_empty(x.shape), x.new_empty(x.shape), _per_row(x)),
    save=_add_rms_norm_save,
    backward=_add_rms_norm_gradients,
)
_layer_norm = operator(
    "layer_norm(Tensor x, Tensor weight, Tensor bias, float eps) -> (Tensor, Tensor, Tensor)",
    _layer_norm_run,
    fake=lambda x, _weight, _bias, _eps: (x.new_empty(x.shape), _per_row(x), _per_row(x)),
    save=_layer_norm_save,
    backward=_layer_norm_gradients,
)
_layer_norm_backward = operator(
    "layer_norm_backward(Tensor dy, Tensor x, Tensor weight, Tensor mean, Tensor rstd) -> (Tensor, Tensor, Tensor)",
    _layer_norm_backward_run,
    fake=lambda _dy, x, weight, _mean, _rstd: (
        x.new_empty(x.shape),
        torch.empty_like(weight),
        torch.empty_like(weight),
    ),
)
