"""Gated activations: SwiGLU and GeGLU."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from .define import operator
from .launch import kernel

Activation = Literal["silu", "gelu", "gelu_tanh"]


def swiglu(gate: Tensor, up: Tensor, act: Activation = "silu") -> Tensor:
    """``act(gate) * up``, element by element, computed in float32."""
    y: Tensor = _swiglu(gate, up, act)
    return y


def _grouped(*tensors: Tensor) -> tuple[int, list[Tensor]]:
    """The tensors as (groups, lanes), 8 elements a group where their number allows."""
    lanes = 1 if tensors[0].numel() % 8 else 8
    return lanes, [tensor.contiguous().view(-1, lanes) for tensor in tensors]


def _run(gate: Tensor, up: Tensor, act: str) -> Tensor:
    y = torch.empty_like(gate, memory_format=torch.contiguous_format)
    if y.numel():
        lanes, parts = _grouped(gate, up, y)
        kernel("swiglu", gate, lanes=lanes, act=act)(*parts)
    return y


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG001 - torch's own signature
    gate, up, ctx.act = inputs
    ctx.save_for_backward(gate, up)


def _gradients(ctx: Any, dy: Tensor) -> tuple[Any, ...]:
    return (*_backward(dy, *ctx.saved_tensors, ctx.act), None)


def _backward_run(dy: Tensor, gate: Tensor, up: Tensor, act: str) -> tuple[Tensor, Tensor]:
    dgate, dup = (torch.empty_like(gate, memory_format=torch.contiguous_format) for _ in range(2))
    if dgate.numel():
        lanes, parts = _grouped(dy, gate, up, dgate, dup)
        kernel("swiglu_backward", gate, lanes=lanes, act=act)(*parts)
    return dgate, dup


_swiglu = operator(
    "swiglu(Tensor gate, Tensor up, str act) -> Tensor",
    _run,
    fake=lambda gate, _up, _act: gate.new_empty(gate.shape),
    save=_save,
    backward=_gradients,
)
_backward = operator(
    "swiglu_backward(Tensor dy, Tensor gate, Tensor up, str act) -> (Tensor, Tensor)",
    _backward_run,
    fake=lambda _dy, gate, _up, _act: (gate.new_empty(gate.shape), gate.new_empty(gate.shape)),
)
