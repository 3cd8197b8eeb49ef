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


def swiglu_linear(gate: Tensor, up: Tensor, weight: Tensor, act: Activation = "silu") -> Tensor:
    """``linear(act(gate) * up, weight)``: what goes into the linear layer is not kept for its gradient but computed again.

    ``weight`` is (columns of the result, columns of gate), of gate's value type.
    """
    y: Tensor = _swiglu_linear(gate, up, weight, act)
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
    dgate, dup, _ = _backward(dy, *ctx.saved_tensors, ctx.act, False)
    return dgate, dup, None


def _backward_run(dy: Tensor, gate: Tensor, up: Tensor, act: str, again: bool) -> tuple[Tensor, Tensor, Tensor]:
    results = [torch.empty_like(gate, memory_format=torch.contiguous_format) for _ in range(3 if again else 2)]
    if gate.numel():
        lanes, parts = _grouped(dy, gate, up, *results)
        kernel("swiglu_backward", gate, lanes=lanes, act=act, again=again or None)(*parts)
    return results[0], results[1], results[2] if again else gate.new_empty(0)


def _linear_save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG001 - torch's own signature
    *kept, ctx.act = inputs
    ctx.save_for_backward(*kept)


def _linear_gradients(ctx: Any, dz: Tensor) -> tuple[Any, ...]:
    gate, up, weight = ctx.saved_tensors
    learns = ctx.needs_input_grad[2]
    dgate, dup, y = _backward(dz @ weight, gate, up, ctx.act, learns)
    dweight = dz.flatten(0, -2).T @ y.flatten(0, -2) if learns else None
    return dgate, dup, dweight, None


_swiglu = operator(
    "swiglu(Tensor gate, Tensor up, str act) -> Tensor",
    _run,
    fake=lambda gate, _up, _act: gate.new_empty(gate.shape),
    save=_save,
    backward=_gradients,
)
_backward = operator(
    "swiglu_backward(Tensor dy, Tensor gate, Tensor up, str act, bool again) -> (Tensor, Tensor, Tensor)",
    _backward_run,
    fake=lambda _dy, gate, _up, _act, again: (
        gate.new_empty(gate.shape),
        gate.new_empty(gate.shape),
        gate.new_empty(gate.shape if again else 0),
    ),
)
_swiglu_linear = operator(
    "swiglu_linear(Tensor gate, Tensor up, Tensor weight, str act) -> Tensor",
    lambda gate, up, weight, act: _run(gate, up, act) @ weight.T,
    fake=lambda gate, _up, weight, _act: gate.new_empty((*gate.shape[:-1], weight.shape[0])),
    save=_linear_save,
    backward=_linear_gradients,
)
