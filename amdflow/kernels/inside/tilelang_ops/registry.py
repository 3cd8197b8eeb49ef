"""Which modules of Hugging Face models each operator can stand in, and how it is put there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from . import replace_attention, replace_gated, replace_loss, replace_moe, replace_norm, replace_rope
from .classes import OPERATORS, Operator
from .site import Declined, Forward, Replaced, Site, noting

ALL, OFF = "all", "off"


@dataclass(frozen=True, kw_only=True)
class Entry(Operator):
    """One operator and what it does to a module."""

    forward: Callable[[Site], Forward]
    """A module's new forward. Raises Declined for a module that does not do what the operator does."""


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


_FORWARDS: dict[str, Callable[[Site], Forward]] = {
    "rms_norm": replace_norm.rms_norm_of,
    "layer_norm": replace_norm.layer_norm_of,
    "add_rms_norm": replace_norm.add_rms_norm_of,
    "swiglu": replace_gated.gated_of,
    "moe": replace_moe.experts_of,
    "rope": replace_rope.rope_of,
    "attention": replace_attention.attention_of,
    "linear_cross_entropy": replace_loss.loss_of,
}

REGISTRY = {op: Entry(**vars(operator), forward=_FORWARDS[op]) for op, operator in OPERATORS.items()}
"""Operators by name, in the order in which they are put in place."""
