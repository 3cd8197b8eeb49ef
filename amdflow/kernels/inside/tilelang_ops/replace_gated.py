"""SwiGLU and GeGLU in the gated MLPs of models."""

from __future__ import annotations

from typing import Any

from .gated import Activation, swiglu
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
    return lambda x: module.down_proj(swiglu(module.gate_proj(x), module.up_proj(x), act))
