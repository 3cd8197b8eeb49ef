"""Grouped products in the experts of mixtures: modules called with (hidden states, each token's experts, their weights)."""

from __future__ import annotations

from typing import Any

import torch

from .gated import Activation
from .moe import moe_experts
from .site import Declined, Forward, always

_ACTIVATIONS: dict[str, Activation] = {
    "SiLU": "silu",
    "SiLUActivation": "silu",
    "silu": "silu",
    "GELUActivation": "gelu",
    "GELUTanh": "gelu_tanh",
    "NewGELUActivation": "gelu_tanh",
}


@always
def experts_of(module: Any) -> Forward:
    """The forward of stacked experts. Raises Declined where they have biases, another layout, gate or activation."""
    if not getattr(module, "has_gate", False) or module.has_bias or module.is_transposed:
        raise Declined("its experts have no gate, have biases, or hold their weights transposed")
    if type(module)._apply_gate.__name__ != "_default_apply_gate":
        raise Declined("its experts have a gate of their own")
    name = getattr(module.act_fn, "__name__", type(module.act_fn).__name__)
    act = _ACTIVATIONS.get(name)
    if act is None:
        raise Declined(f"its activation is {name}, the kernel has SiLU and GELU")

    def forward(x: torch.Tensor, index: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        return moe_experts(x, index, weights, module.gate_up_proj, module.down_proj, act).to(x.dtype)

    return forward
