"""Which modules of Hugging Face models each operator can stand for, and how it is put in their place."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from .gated import Activation, swiglu
from .launch import NAMES
from .norm import layer_norm, rms_norm

ALL, OFF = "all", "off"
_ACTIVATIONS: dict[str, Activation] = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_new": "gelu_tanh",
}


@dataclass(frozen=True)
class Entry:
    """One operator: the classes it replaces, by name, since importing every model's code would take minutes."""

    op: str
    modules: tuple[str, ...]
    forward: Callable[[Any], Callable[..., torch.Tensor] | None]
    """A module's new forward; None for a module that does not do what the kernel does."""
    dtypes: tuple[str, ...] = tuple(NAMES.values())
    kernels: tuple[str, ...] = ()
    """What is built for it; every target that kernels are built for has them."""


@dataclass
class Replaced:
    """What came of a choice: names of modules by operator, and how often each was called since (outside of compiled graphs)."""

    modules: dict[str, list[str]] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)


def replace_modules(model: torch.nn.Module, choice: Mapping[str, str]) -> Replaced:
    """Switch operators on in ``model``, in place: ``{"rms_norm": "all", "swiglu": "layers.[0-3].mlp", "layer_norm": "off"}``.

    A choice is ``all``, ``off``, or a regular expression that is looked for in a module's name. Raises ValueError for an
    unknown operator, and for a choice that no module answers to, so that nothing stays off unnoticed.
    """
    found = Replaced()
    for op, where in choice.items():
        entry = REGISTRY.get(op)
        if entry is None:
            raise ValueError(f"no operator called {op!r} replaces modules, only {', '.join(REGISTRY)}")
        if where != OFF:
            found.modules[op] = _replace(model, entry, "" if where == ALL else where, found.calls)
            if not found.modules[op]:
                raise ValueError(
                    f"{op}: {where!r} finds none of the modules it can replace ({', '.join(entry.modules)})"
                )
    return found


def _replace(model: torch.nn.Module, entry: Entry, pattern: str, calls: dict[str, int]) -> list[str]:
    names = []
    for name, module in model.named_modules():
        if type(module).__name__ in entry.modules and re.search(pattern, name):
            forward = entry.forward(module)
            if forward is not None:
                calls[name] = 0
                module.forward = _counted(forward, name, calls)
                names.append(name)
    return names


def _counted(forward: Callable[..., torch.Tensor], name: str, calls: dict[str, int]) -> Callable[..., torch.Tensor]:
    def counted(*arguments: Any) -> torch.Tensor:
        if not torch.compiler.is_compiling():  # a count in a compiled graph would make it anew at every call
            calls[name] += 1
        return forward(*arguments)

    return counted


def _rms_norm_of(module: Any) -> Callable[..., torch.Tensor]:
    eps = module.variance_epsilon if hasattr(module, "variance_epsilon") else module.eps
    offset = 1.0 if type(module).__name__.startswith("Gemma") else 0.0
    return lambda x: rms_norm(x, module.weight, eps, offset)


def _gated_of(module: Any) -> Callable[..., torch.Tensor] | None:
    name = getattr(module.config, "hidden_activation", None) or module.config.hidden_act
    act = _ACTIVATIONS.get(name)
    if act is None:
        return None
    return lambda x: module.down_proj(swiglu(module.gate_proj(x), module.up_proj(x), act))


def _layer_norm_of(module: Any) -> Callable[..., torch.Tensor] | None:
    if module.weight is None or module.bias is None or len(module.normalized_shape) != 1:
        return None
    return lambda x: layer_norm(x, module.weight, module.bias, module.eps)


_FAMILIES = ("Llama", "Mistral", "Mixtral", "Qwen2", "Qwen3", "Gemma", "Gemma2", "Gemma3", "Phi3", "Olmo2", "SmolLM3")
_GATED = ("Llama", "Mistral", "Qwen2", "Qwen3", "Gemma", "Gemma2", "Gemma3", "Olmo2", "SmolLM3")

REGISTRY = {
    entry.op: entry
    for entry in (
        Entry(
            "rms_norm",
            tuple(f"{family}RMSNorm" for family in _FAMILIES),
            _rms_norm_of,
            kernels=("rms_norm", "rms_norm_backward", "column_sum"),
        ),
        Entry(
            "swiglu",
            tuple(f"{family}MLP" for family in _GATED),
            _gated_of,
            kernels=("swiglu", "swiglu_backward"),
        ),
        Entry(
            "layer_norm",
            ("LayerNorm",),
            _layer_norm_of,
            kernels=("layer_norm", "layer_norm_backward", "column_sum"),
        ),
    )
}
"""Operators that replace whole modules. rope, add_rms_norm and linear_cross_entropy are functions in a model's code."""
