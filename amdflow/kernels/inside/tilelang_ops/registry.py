"""Which modules of Hugging Face models each operator can stand in, and how it is put there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from . import replace_attention, replace_gated, replace_loss, replace_norm, replace_rope
from .attention import HEADS
from .launch import NAMES
from .site import Declined, Forward, Replaced, Site, noting

ALL, OFF = "all", "off"


@dataclass(frozen=True)
class Entry:
    """One operator: the classes it works in, by name, since importing every model's code would take minutes."""

    op: str
    modules: tuple[str, ...]
    forward: Callable[[Site], Forward]
    """A module's new forward. Raises Declined for a module that does not do what the operator does."""
    kernels: tuple[str, ...]
    """What is built for it; every target that kernels are built for has them."""
    shapes: str = "any"
    """What it takes, in words."""
    dtypes: tuple[str, ...] = tuple(NAMES.values())


def replace_modules(model: torch.nn.Module, choice: Mapping[str, str]) -> Replaced:
    """Switch operators on in ``model``, in place: ``{"rms_norm": "all", "swiglu": "layers.[0-3].mlp", "rope": "off"}``.

    A choice is ``all``, ``off``, or a regular expression that is looked for in a module's name. Raises ValueError for an
    unknown operator, and for a choice that no module answers to, so that nothing stays off unnoticed.
    """
    for op in choice:
        if op not in REGISTRY:
            raise ValueError(f"no operator called {op!r} replaces modules, only {', '.join(REGISTRY)}")
    found = Replaced()
    for op, entry in REGISTRY.items():  # in this order: some build upon those before them
        where = choice.get(op, OFF)
        if where != OFF:
            _replace(model, entry, "" if where == ALL else where, found)
            if not found.modules[op]:
                raise ValueError(_nothing_found(entry, where, found.declined[op]))
    return found


def _replace(model: torch.nn.Module, entry: Entry, pattern: str, found: Replaced) -> None:
    names: list[str] = []
    calls: dict[str, int] = {}
    traced: set[str] = set()
    declined: dict[str, str] = {}
    found.modules[entry.op], found.calls[entry.op], found.declined[entry.op] = names, calls, declined
    found.traced[entry.op] = traced
    for name, module in list(model.named_modules()):
        if type(module).__name__ not in entry.modules or not re.search(pattern, name):
            continue
        try:
            module.forward = entry.forward(Site(model, name, module, calls, noting(traced, name)))
        except Declined as reason:
            declined[name] = str(reason)
            continue
        calls[name] = 0
        names.append(name)


def _nothing_found(entry: Entry, where: str, declined: Mapping[str, str]) -> str:
    if declined:
        name, reason = next(iter(declined.items()))
        others = f" (and {len(declined) - 1} more)" if len(declined) > 1 else ""
        return f"{entry.op}: {where!r} finds only modules it cannot stand in: {name or 'the model'}{others}: {reason}"
    return f"{entry.op}: {where!r} finds none of the modules it can replace ({', '.join(entry.modules)})"


def _names(families: tuple[str, ...], part: str) -> tuple[str, ...]:
    return tuple(f"{family}{part}" for family in families)


_LLAMAS = ("Llama", "Mistral", "Qwen2", "Qwen3", "Gemma", "Gemma2", "Gemma3", "SmolLM3")
"""Families whose blocks are alike."""
_MOES = ("Mixtral", "Qwen2Moe", "Qwen3Moe")
_NORMS = ("rms_norm", "rms_norm_backward", "column_sum")

REGISTRY = {
    entry.op: entry
    for entry in (
        Entry("rms_norm", _names((*_LLAMAS, *_MOES, "Phi3", "Olmo2"), "RMSNorm"), replace_norm.rms_norm_of, _NORMS),
        Entry(
            "layer_norm",
            ("LayerNorm",),
            replace_norm.layer_norm_of,
            ("layer_norm", "layer_norm_backward", "column_sum"),
            "one normed dimension, with weight and bias",
        ),
        Entry(
            "add_rms_norm",
            _names((*_LLAMAS, *_MOES, "Phi3"), "DecoderLayer"),
            replace_norm.add_rms_norm_of,
            _NORMS,
            "layers whose norms come before their blocks; a norm whose weight lies on this device in one piece",
        ),
        Entry(
            "swiglu",
            _names((*_LLAMAS, "Qwen2Moe", "Qwen3Moe", "Olmo2"), "MLP"),
            replace_gated.gated_of,
            ("swiglu", "swiglu_backward"),
            "gate and up as layers of their own; SiLU or GELU",
        ),
        Entry(
            "rope",
            _names((*_LLAMAS, *_MOES, "Phi3", "Olmo2"), "Attention"),
            replace_rope.rope_of,
            ("rope",),
            "halves rotated, an even number of elements a head",
        ),
        Entry(
            "attention",
            _names((*_LLAMAS, *_MOES, "Phi3", "Olmo2"), "Attention"),
            replace_attention.attention_of,
            ("attention", "attention_delta", "attention_backward"),
            f"causal or full, as many keys as tokens, heads of {' or '.join(map(str, HEADS))}; else torch's SDPA, with a warning",
            ("bfloat16", "float16"),
        ),
        Entry(
            "linear_cross_entropy",
            _names((*_LLAMAS, "Phi3", "Olmo2"), "ForCausalLM"),
            replace_loss.loss_of,
            ("cross_entropy", "scale_in_place"),
            "training with labels; a plain lm_head without bias, logits neither capped nor scaled",
        ),
    )
}
"""Operators by name, in the order in which they are put in place."""
