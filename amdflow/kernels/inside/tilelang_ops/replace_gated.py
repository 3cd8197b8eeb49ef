"""SwiGLU and GeGLU in the gated MLPs of models."""

from __future__ import annotations

from typing import Any

import torch

from .gated import Activation, swiglu, swiglu_linear
from .site import Declined, Forward, always

_ACTIVATIONS: dict[str, Activation] = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_new": "gelu_tanh",
}


@always
def gated_of(module: Any) -> Forward:
    """A gated MLP's forward. Raises Declined for another activation."""
    name = getattr(module.config, "hidden_activation", None) or module.config.hidden_act
    act = _ACTIVATIONS.get(name)
    if act is None:
        raise Declined(f"its activation is {name}, the kernel has {', '.join(_ACTIVATIONS)}")

    def forward(x: torch.Tensor) -> torch.Tensor:
        gate, up, down = module.gate_proj(x), module.up_proj(x), module.down_proj
        if _is_plain(down, gate):
            return swiglu_linear(gate, up, down.weight, act)
        result: torch.Tensor = down(swiglu(gate, up, act))
        return result

    return forward


def _is_plain(layer: Any, like: torch.Tensor) -> bool:
    """Whether calling ``layer`` is its matrix product alone: no adapter, no quantization, no bias, no hook, no autocast."""
    return (
        type(layer) is torch.nn.Linear
        and layer.bias is None
        and layer.weight.dtype == like.dtype
        and not (layer._forward_hooks or layer._forward_pre_hooks or layer._backward_hooks)
    )
