"""The norms of models: alone, and with the residual add before them, which decoder layers do in two steps."""

from __future__ import annotations

import inspect
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from .norm import add_rms_norm, layer_norm, rms_norm
from .site import Declined, Forward, Site, always


def _settings(norm: Any) -> tuple[float, float]:
    """eps, and what is added to the weight."""
    eps = norm.variance_epsilon if hasattr(norm, "variance_epsilon") else norm.eps
    return eps, 1.0 if type(norm).__name__.startswith("Gemma") else 0.0


@always
def rms_norm_of(module: Any) -> Forward:
    """An RMSNorm's forward."""
    eps, offset = _settings(module)
    return lambda x: rms_norm(x, module.weight, eps, offset)


@always
def layer_norm_of(module: Any) -> Forward:
    """A LayerNorm's forward. Raises Declined for one without weight or bias, or over several dimensions."""
    if module.weight is None or module.bias is None:
        raise Declined("it has no weight or no bias")
    if len(module.normalized_shape) != 1:
        raise Declined(f"it norms {len(module.normalized_shape)} dimensions together")
    return lambda x: layer_norm(x, module.weight, module.bias, module.eps)


class _Handover:
    """What a norm is going to be asked for, ready before it is asked: the residual add has normed its sum on the way.

    The norm is still called, so its hooks run; it computes itself when it is given anything else than that very sum.
    """

    def __init__(self, norm: Any) -> None:
        self.norm, self.inner = norm, norm.forward
        self.count = getattr(norm.forward, "count", lambda: None)  # of rms_norm, where that is at work in the norm
        self.settings = _settings(norm)
        self.total: Tensor | None = None
        self.normed: Tensor | None = None
        self.version = 0
        norm.forward = self.forward
        norm.handover = self

    @classmethod
    def of(cls, norm: Any) -> _Handover:
        found: _Handover = norm.handover if hasattr(norm, "handover") else cls(norm)
        return found

    def add(self, x: Tensor, residual: Tensor) -> Tensor:
        """``x + residual``, its norm kept for the norm's next call."""
        if x.dtype != residual.dtype:  # as under autocast
            wide = torch.promote_types(x.dtype, residual.dtype)
            x, residual = x.to(wide), residual.to(wide)
        normed, total = add_rms_norm(x, residual, self.norm.weight, *self.settings)
        self.normed, self.total, self.version = normed, total, _version(total)
        return total

    def forward(self, x: Tensor) -> Tensor:
        """The norm's forward."""
        total, normed, self.total, self.normed = self.total, self.normed, None, None
        if normed is None or x is not total or _version(x) != self.version:
            result: Tensor = self.inner(x)
            return result
        self.count()
        return normed

    def usable(self, x: Tensor) -> bool:
        """Whether the weight lies here in one piece: sharded training gathers it only for its own layer."""
        weight = self.norm.weight
        plain = type(weight) in (torch.nn.Parameter, Tensor)
        here = plain and weight.shape == x.shape[-1:] and weight.device == x.device
        return here and (torch.compiler.is_compiling() or weight.untyped_storage().nbytes() > 0)


def _version(x: Tensor) -> int:
    """How often ``x`` was changed in place; a compiler keeps track of that by itself."""
    return 0 if torch.compiler.is_compiling() else x._version


def add_rms_norm_of(site: Site) -> Forward:
    """A decoder layer's forward, its residual adds fused with the norms that follow.

    The second add is followed by a norm of the next layer, or of the model: those are fused as long as neither layer is
    computed again for its gradient (checkpointing), which would see another course of events. Raises Declined for a
    layer of another build.
    """
    layer = site.module
    _check(layer)
    plan = list(inspect.signature(layer.forward).parameters)
    sandwich = hasattr(layer, "pre_feedforward_layernorm")  # Gemma 2 and 3 norm what a block gives, too
    before_mlp = _Handover.of(layer.pre_feedforward_layernorm if sandwich else layer.post_attention_layernorm)
    next_layer, next_norm = _follower(site)
    behind = None if next_norm is None else _Handover.of(next_norm)

    def add(norm: _Handover | None, x: Tensor, residual: Tensor) -> Tensor:
        if norm is None or not norm.usable(x):
            return residual + x
        site.count()
        return norm.add(x, residual)

    @wraps(layer.forward)
    def forward(hidden_states: Tensor, *arguments: Any, **named: Any) -> Tensor:
        named |= dict(zip(plan[1:], arguments, strict=False))
        x = layer.self_attn(hidden_states=layer.input_layernorm(hidden_states), **named)[0]
        x = layer.post_attention_layernorm(x) if sandwich else _dropped(layer, "resid_attn_dropout", x)
        total = add(before_mlp, x, hidden_states)
        x = layer.mlp(before_mlp.norm(total))
        x = x[0] if isinstance(x, tuple) else x  # with the choices of a router
        x = layer.post_feedforward_layernorm(x) if sandwich else _dropped(layer, "resid_mlp_dropout", x)
        return add(None if _computed_again(layer, next_layer) else behind, x, total)

    return forward


def _dropped(layer: Any, name: str, x: Tensor) -> Tensor:
    dropout = getattr(layer, name, None)
    result: Tensor = x if dropout is None else dropout(x)
    return result


def _check(layer: Any) -> None:
    try:
        text = inspect.getsource(inspect.unwrap(type(layer).forward))
    except OSError:
        return
    if "outputs = (hidden_states,)" in text:
        raise Declined("its forward gives a tuple, as older releases of transformers had it")
    names = ["input_layernorm", "post_attention_layernorm"]
    names += [name for name in ("pre_feedforward_layernorm",) if hasattr(layer, name)]
    for name in names:
        norm = getattr(layer, name)
        if not type(norm).__name__.endswith("RMSNorm"):
            raise Declined(f"its {name} is a {type(norm).__name__}")


def _follower(site: Site) -> tuple[Any, Any]:
    """The layer behind and its first norm, or nothing and the model's last norm."""
    layers, index = site.parent(), int(site.name.rpartition(".")[2])
    if index + 1 < len(layers):
        layer = layers[index + 1]
        return layer, layer.input_layernorm if type(layer) is type(site.module) else None
    norm = getattr(site.parent(2), "norm", None)
    return None, norm if type(norm).__name__.endswith("RMSNorm") else None


def _computed_again(*layers: Any) -> bool:
    """Whether one of the layers is under gradient checkpointing, of its own or by hooks around it."""
    if any(
        layer is not None and layer.training and getattr(layer, "gradient_checkpointing", False) for layer in layers
    ):
        return True
    if torch.compiler.is_compiling():
        return False
    hooks = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)  # not in releases before 2.6
    return hooks is not None and hooks(False) is not None
