"""A mixture of experts: rows sorted by expert, one grouped product for all of them, results back in the tokens' order."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .define import operator
from .gated import Activation
from .launch import kernel
from .linear import in_kernels_type


def moe_experts(
    x: Tensor, index: Tensor, weights: Tensor, gate_up: Tensor, down: Tensor, act: Activation = "silu"
) -> Tensor:
    """The sum over each token's experts e of ``weights * (act(gate) * up) @ down[e].T``, gate and up from ``x @ gate_up[e].T``.

    x (tokens, hidden); index and weights (tokens, top); gate_up (experts, 2 * width, hidden), the gates first; down
    (experts, hidden, width). Differentiable in x, weights, gate_up and down. An index of ``experts`` or more stands for
    an expert that is elsewhere: it adds nothing. Within torch.autocast everything is taken in its type, else in x's.
    Raises TypeError for float32 on a GPU.
    """
    x = in_kernels_type(x)
    order, ends, place = sort_by_expert(index, gate_up.shape[0])
    source = order // index.shape[1]  # the token that each row is of
    rows = _gather(x, source, place)
    inner = grouped_linear(rows, gate_up.to(x.dtype), ends)
    inner = _gate(inner, weights.float().reshape(-1).gather(0, order), act)
    y: Tensor = _combine(grouped_linear(inner, down.to(x.dtype), ends), source, place)
    return y


def moe_route(logits: Tensor, top: int, *, normalize: bool = True) -> tuple[Tensor, Tensor]:
    """Each token's ``top`` experts by softmax in float32: (index, weights) of (tokens, top).

    With ``normalize`` a token's weights sum to 1, else they are the experts' probabilities among all.
    """
    weights, index = logits.float().softmax(-1).topk(top, dim=-1)
    return index, weights / weights.sum(-1, keepdim=True) if normalize else weights


def sort_by_expert(index: Tensor, experts: int) -> tuple[Tensor, Tensor, Tensor]:
    """Of an index (tokens, top): the order that sorts its elements, where each expert's end, and where each went.

    order int64 (tokens * top); ends int32 (experts); place int32 (tokens, top). Nothing waits for the device.
    """
    flat = index.reshape(-1)
    order = flat.argsort(stable=True)
    bounds = torch.arange(experts, device=index.device, dtype=flat.dtype)
    ends = torch.searchsorted(flat[order], bounds, right=True, out_int32=True)
    place = torch.empty_like(order, dtype=torch.int32)
    place[order] = torch.arange(order.shape[0], device=index.device, dtype=torch.int32)
    return order, ends, place.view(index.shape)


def grouped_linear(x: Tensor, weight: Tensor, ends: Tensor) -> Tensor:
    """``x[rows of e] @ weight[e].T`` for each expert e: x (rows, k) sorted by expert, weight (experts, n, k), ends (experts).

    ``ends`` is int32: the row behind each expert's last. Rows behind the last expert's give 0.
    """
    y: Tensor = _grouped_linear(x, weight, ends)
    return y


def _grouped_run(x: Tensor, weight: Tensor, ends: Tensor) -> Tensor:
    y = x.new_empty(x.shape[0], weight.shape[1])
    if y.numel():
        run = kernel("grouped_gemm", x, n=weight.shape[1], k=weight.shape[2])
        run(x.contiguous(), weight.contiguous(), ends, y)
    return y


def _grouped_save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG001 - torch's own signature
    ctx.save_for_backward(*inputs)


def _grouped_gradients(ctx: Any, dy: Tensor) -> tuple[Any, ...]:
    wanted = ctx.needs_input_grad[:2]
    found = _grouped_backward(dy, *ctx.saved_tensors, *wanted)
    return *(part if asked else None for part, asked in zip(found, wanted, strict=True)), None


def _grouped_backward_run(
    dy: Tensor, x: Tensor, weight: Tensor, ends: Tensor, for_x: bool, for_weight: bool
) -> tuple[Tensor, Tensor]:
    dx, dw = _grouped_fake(dy, x, weight, ends, for_x, for_weight)
    dy, (n, k) = dy.contiguous(), weight.shape[1:]
    if not dy.numel():
        return dx.zero_(), dw.zero_()
    if for_x:
        kernel("grouped_gemm", dy, layout="nn", n=k, k=n)(dy, weight.contiguous(), ends, dx)
    if for_weight:
        kernel("grouped_gemm_dw", dy, n=n, k=k)(dy, x.contiguous(), ends, dw)
    return dx, dw


def _grouped_fake(
    _dy: Tensor, x: Tensor, weight: Tensor, _ends: Tensor, for_x: bool, for_weight: bool
) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape if for_x else 0), weight.new_empty(weight.shape if for_weight else 0)


def _gather_run(x: Tensor, source: Tensor, _place: Tensor) -> Tensor:
    return x.index_select(0, source)


def _combine_run(x: Tensor, _source: Tensor, place: Tensor) -> Tensor:
    y = x.new_empty(place.shape[0], x.shape[1])
    if y.numel():
        kernel("gather_sum", x, width=x.shape[1])(x.contiguous(), place.contiguous(), y)
    return y


def _save_places(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG001 - torch's own signature
    ctx.save_for_backward(*inputs[1:])


def _gather_gradients(ctx: Any, dy: Tensor) -> tuple[Any, ...]:
    return _combine(dy, *ctx.saved_tensors), None, None


def _combine_gradients(ctx: Any, dy: Tensor) -> tuple[Any, ...]:
    return _gather(dy, *ctx.saved_tensors), None, None


def _gate_run(h: Tensor, weight: Tensor, act: str) -> Tensor:
    y = h.new_empty(h.shape[0], h.shape[1] // 2)
    if y.numel():
        kernel("moe_gate", h, width=y.shape[1], act=act)(h.contiguous(), weight.contiguous(), y)
    return y


def _gate_save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG001 - torch's own signature
    h, weight, ctx.act = inputs
    ctx.save_for_backward(h, weight)


def _gate_gradients(ctx: Any, dy: Tensor) -> tuple[Any, ...]:
    return (*_gate_backward(dy, *ctx.saved_tensors, ctx.act), None)


def _gate_backward_run(dy: Tensor, h: Tensor, weight: Tensor, act: str) -> tuple[Tensor, Tensor]:
    dh, dweight = h.new_empty(h.shape), torch.zeros_like(weight, memory_format=torch.contiguous_format)
    if dy.numel():
        run = kernel("moe_gate_backward", h, width=dy.shape[1], act=act)
        run(dy.contiguous(), h.contiguous(), weight.contiguous(), dh, dweight)
    return dh, dweight


_grouped_linear = operator(
    "grouped_linear(Tensor x, Tensor weight, Tensor ends) -> Tensor",
    _grouped_run,
    fake=lambda x, weight, _ends: x.new_empty(x.shape[0], weight.shape[1]),
    save=_grouped_save,
    backward=_grouped_gradients,
)
_grouped_backward = operator(
    "grouped_linear_backward(Tensor dy, Tensor x, Tensor weight, Tensor ends, bool for_x, bool for_weight)"
    " -> (Tensor, Tensor)",
    _grouped_backward_run,
    fake=_grouped_fake,
)
_gather = operator(
    "moe_gather(Tensor x, Tensor source, Tensor place) -> Tensor",
    _gather_run,
    fake=lambda x, source, _place: x.new_empty(source.shape[0], x.shape[1]),
    save=_save_places,
    backward=_gather_gradients,
)
_combine = operator(
    "moe_combine(Tensor x, Tensor source, Tensor place) -> Tensor",
    _combine_run,
    fake=lambda x, _source, place: x.new_empty(place.shape[0], x.shape[1]),
    save=_save_places,
    backward=_combine_gradients,
)
_gate = operator(
    "moe_gate(Tensor h, Tensor weight, str act) -> Tensor",
    _gate_run,
    fake=lambda h, _weight, _act: h.new_empty(h.shape[0], h.shape[1] // 2),
    save=_gate_save,
    backward=_gate_gradients,
)
_gate_backward = operator(
    "moe_gate_backward(Tensor dy, Tensor h, Tensor weight, str act) -> (Tensor, Tensor)",
    _gate_backward_run,
    fake=lambda _dy, h, weight, _act: (h.new_empty(h.shape), torch.empty_like(weight)),
)
