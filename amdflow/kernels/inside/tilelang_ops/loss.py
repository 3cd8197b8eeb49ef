"""The last linear layer and the cross-entropy together: the logits of a part of the rows at a time, never of all."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from .define import operator
from .launch import kernel

_INDEXED = 2**31 - 1


def linear_cross_entropy(
    x: Tensor,
    weight: Tensor,
    target: Tensor,
    *,
    ignore_index: int = -100,
    reduction: Literal["mean", "sum"] = "mean",
    count: Tensor | int | None = None,
) -> Tensor:
    """The loss of ``x @ weight.T`` against ``target``, a float32 scalar: x (..., hidden), weight (vocab, hidden), target (...).

    The gradients come out of the forward pass, where each part of the logits is at hand once; they can be taken once.
    Rows whose target is ``ignore_index`` count for nothing. Targets must lie below vocab. ``count`` is what the sum is
    divided by, in place of ``reduction``: the rows of all the parts of a batch that is computed in parts.
    """
    wanted = torch.is_grad_enabled()
    if torch.is_autocast_enabled(x.device.type):
        kind = torch.get_autocast_dtype(x.device.type)
        x, weight = x.to(kind), weight.to(kind)
    scale = _scale_of(x, target, ignore_index, reduction, count)
    loss: Tensor = _linear_cross_entropy(
        x,
        weight,
        target,
        scale,
        ignore_index,
        wanted and x.requires_grad,
        wanted and weight.requires_grad,
    )[0]
    return loss.clone()  # trainers scale a loss in place, which torch refuses for one output of several


def _scale_of(x: Tensor, target: Tensor, ignored: int, reduction: str, count: Tensor | int | None) -> Tensor:
    if isinstance(count, Tensor):
        return count.to(x.device, torch.float32).reciprocal().view(1)
    if count is not None or reduction == "sum":
        return torch.full((1,), 1.0 / (count or 1), dtype=torch.float32, device=x.device)
    return (target != ignored).sum().float().reciprocal().view(1)


def rows_at_a_time(rows: int, hidden: int, vocab: int) -> int:
    """Rows whose logits take half the memory of the weight's gradient, as a multiple of 256."""
    return max(1, min(rows, -(-hidden // 512) * 256, _INDEXED // vocab))


def _run(
    x: Tensor, weight: Tensor, target: Tensor, scale: Tensor, ignored: int, for_x: bool, for_weight: bool
) -> tuple[Tensor, Tensor, Tensor]:
    rows, targets = x.reshape(-1, x.shape[-1]), target.reshape(-1).contiguous()
    vocab = weight.shape[0]
    losses = rows.new_empty(rows.shape[0], dtype=torch.float32)
    dx = torch.empty_like(rows) if for_x else rows.new_empty(0)
    dw = torch.zeros_like(weight) if for_weight and not rows.numel() else weight.new_empty(0)
    early = torch.ones_like(scale) if _late(x) else scale
    step = rows_at_a_time(rows.shape[0], rows.shape[1], vocab)
    room = rows.new_empty(step, vocab)  # one for all parts: the last part's logits are not kept beside the next one's
    for first in range(0, rows.shape[0], step):
        part = slice(first, first + step)
        logits = room[: rows[part].shape[0]]
        torch.mm(rows[part], weight.T, out=logits)
        run = kernel("cross_entropy", logits, vocab=vocab)
        run(logits, targets[part], early, losses[part], ignored)
        if for_x:
            torch.mm(logits, weight, out=dx[part])
        if for_weight and first:
            dw.addmm_(logits.T, rows[part])
        elif for_weight:
            dw = logits.T @ rows[part]
    return (losses.sum() * scale).view(()), dx.view(x.shape) if for_x else dx, dw


def _late(x: Tensor) -> bool:
    """Whether the gradients are scaled only at the end: a probability over the number of rows is 0 in float16."""
    late: bool = x.dtype == torch.float16
    return late


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    x, _weight, _target, scale, _ignored, *ctx.wanted = inputs
    ctx.late = _late(x)
    ctx.set_materialize_grads(False)  # nothing arrives at the gradients, and zeros of their size would be made
    ctx.save_for_backward(scale, *output[1:])


def _gradients(ctx: Any, dloss: Tensor, _dx: Any, _dw: Any) -> tuple[Any, ...]:
    scale, *gradients = ctx.saved_tensors
    factor = dloss.float().view(1) * scale if ctx.late else dloss.float().view(1)
    dx, dw = (_scaled(part, factor) if wanted else None for part, wanted in zip(gradients, ctx.wanted, strict=True))
    return dx, dw, None, None, None, None, None


def _scale_run(x: Tensor, factor: Tensor) -> None:
    if x.numel():
        lanes = 1 if x.numel() % 8 else 8
        kernel("scale_in_place", x, lanes=lanes)(x.view(-1, lanes), factor)


def _scaled(x: Tensor, factor: Tensor) -> Tensor:
    _scale(x, factor)
    return x


def _fake(
    x: Tensor, weight: Tensor, _target: Tensor, _scale: Tensor, _ignored: int, for_x: bool, for_weight: bool
) -> tuple[Tensor, Tensor, Tensor]:
    return (
        x.new_empty((), dtype=torch.float32),
        x.new_empty(x.shape if for_x else 0),
        weight.new_empty(weight.shape if for_weight else 0),
    )


_linear_cross_entropy = operator(
    "linear_cross_entropy(Tensor x, Tensor weight, Tensor target, Tensor scale, int ignored, bool for_x, bool for_weight)"
    " -> (Tensor, Tensor, Tensor)",
    _run,
    fake=_fake,
    save=_save,
    backward=_gradients,
)
_scale = operator("scale_in_place(Tensor(a!) x, Tensor factor) -> ()", _scale_run, fake=lambda _x, _factor: None)
