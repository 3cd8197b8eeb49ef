"""A linear layer with its bias and activation in the product's epilogue, and all three products of its training step."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from .define import operator
from .launch import kernel, workgroups

Activation = Literal["none", "relu", "gelu", "gelu_tanh", "silu"]
_ROWS, _COLUMNS = 32, 128
"""What one workgroup of activation_backward takes at a time."""


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, act: Activation = "none") -> Tensor:
    """``act(x @ weight.T + bias)``: x (..., k), weight (n, k), bias (n); summed, biased and activated in float32.

    Within torch.autocast everything is taken in its type, else in x's, as torch's own linear layer does. Raises TypeError
    for float32 on a GPU, where it has no matrix instructions to run on.
    """
    x = in_kernels_type(x)
    weight, bias = weight.to(x.dtype), None if bias is None else bias.to(x.dtype)
    trains = torch.is_grad_enabled() and any(part is not None and part.requires_grad for part in (x, weight, bias))
    y: Tensor = _linear(x, weight, bias, act, trains and act not in ("none", "relu"))[0]
    return y


def in_kernels_type(x: Tensor) -> Tensor:
    """``x`` in the type in which it is to be multiplied. Raises TypeError for one without matrix instructions."""
    kind = x.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype
    if kind != "cpu" and dtype not in (torch.bfloat16, torch.float16):
        raise TypeError(f"matrix kernels on a GPU take bfloat16 and float16, not {dtype}")
    return x.to(dtype)


def rows_of(x: Tensor) -> Tensor:
    """``x`` as a matrix without gaps."""
    return x.reshape(-1, x.shape[-1]).contiguous()


def _run(x: Tensor, weight: Tensor, bias: Tensor | None, act: str, keep: bool) -> tuple[Tensor, Tensor]:
    rows, (n, k) = rows_of(x), weight.shape
    y = rows.new_empty(rows.shape[0], n)
    z = torch.empty_like(y) if keep else rows.new_empty(0)
    if y.numel():
        sizes = {"n": n, "k": k, "bias": bias is not None or None, "act": None if act == "none" else act}
        given = (rows, weight.contiguous()) if bias is None else (rows, weight.contiguous(), bias.contiguous())
        kernel("gemm", rows, **sizes, keep=keep or None)(*given, *((z, y) if keep else (y,)))
    shape = (*x.shape[:-1], n)
    return y.view(shape), z.view(shape) if keep else z


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    x, weight, _bias, ctx.act, keep = inputs
    before = output[1] if keep else output[0] if ctx.act == "relu" else None  # relu's result tells as much
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x, weight, before)


def _gradients(ctx: Any, dy: Tensor | None, _dz: Any) -> tuple[Any, ...]:
    wanted = ctx.needs_input_grad[:3]
    if dy is None:
        return None, None, None, None, None
    found = _backward(dy, *ctx.saved_tensors, ctx.act, *wanted)
    return *(part if asked else None for part, asked in zip(found, wanted, strict=True)), None, None


def _backward_run(
    dy: Tensor, x: Tensor, weight: Tensor, z: Tensor | None, act: str, for_x: bool, for_weight: bool, for_bias: bool
) -> tuple[Tensor, Tensor, Tensor]:
    dz, rows, (n, k) = rows_of(dy), rows_of(x), weight.shape
    if not dz.numel():
        empty = _fake_backward(dy, x, weight, z, act, for_x, for_weight, for_bias)
        return empty[0].zero_(), empty[1].zero_(), empty[2].zero_()
    dz, db = _through_epilogue(dz, None if z is None else rows_of(z), act, for_bias)
    dx, dw = torch.empty_like(rows) if for_x else rows.new_empty(0), weight.new_empty((n, k) if for_weight else 0)
    if for_x:
        kernel("gemm", dz, layout="nn", n=k, k=n)(dz, weight.contiguous(), dx)
    if for_weight:
        kernel("gemm", dz, layout="tn", m=n, n=k)(dz, rows, dw)
    return dx.view(x.shape) if for_x else dx, dw, db


def _through_epilogue(dy: Tensor, z: Tensor | None, act: str, for_bias: bool) -> tuple[Tensor, Tensor]:
    """The gradient of what goes into the activation, and that of the bias."""
    if act == "none" and not for_bias:
        return dy, dy.new_empty(0)
    rows, width = dy.shape
    dz = dy if act == "none" else torch.empty_like(dy)
    groups = -(-workgroups(dy.device.type, 4) // -(-width // _COLUMNS))  # that share the rows of a block of columns out
    sums = dy.new_empty((min(-(-rows // _ROWS), groups), width), dtype=torch.float32) if for_bias else None
    run = kernel("activation_backward", dy, width=width, act=None if act == "none" else act, bias=for_bias or None)
    run(dy, *(() if act == "none" else (z, dz)), *(() if sums is None else (sums,)))
    db = dy.new_empty(width if for_bias else 0)
    if sums is not None:
        kernel("column_sum", db, width=width)(sums, db)
    return dz, db


def _fake(x: Tensor, weight: Tensor, _bias: Tensor | None, _act: str, keep: bool) -> tuple[Tensor, Tensor]:
    y = x.new_empty((*x.shape[:-1], weight.shape[0]))
    return y, torch.empty_like(y) if keep else x.new_empty(0)


def _fake_backward(
    _dy: Tensor, x: Tensor, weight: Tensor, _z: Tensor | None, _act: str, for_x: bool, for_weight: bool, for_bias: bool
) -> tuple[Tensor, Tensor, Tensor]:
    return (
        x.new_empty(x.shape if for_x else 0),
        weight.new_empty(weight.shape if for_weight else 0),
        weight.new_empty(weight.shape[0] if for_bias else 0),
    )


_linear = operator(
    "linear(Tensor x, Tensor weight, Tensor? bias, str act, bool keep) -> (Tensor, Tensor)",
    _run,
    fake=_fake,
    save=_save,
    backward=_gradients,
)
_backward = operator(
    "linear_backward(Tensor dy, Tensor x, Tensor weight, Tensor? z, str act, bool for_x, bool for_weight, bool for_bias)"
    " -> (Tensor, Tensor, Tensor)",
    _backward_run,
    fake=_fake_backward,
)
