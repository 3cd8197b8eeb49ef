"""Attention in models: a backend of transformers' attention interface that says which kernel it takes, and why."""

from __future__ import annotations

import sys
import warnings
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from .attention import AttentionCall, attention, choose_attention
from .site import Declined, Forward, Site

BACKEND = "amdflow"


def attention_of(site: Site) -> Forward:
    """An attention module's forward, its model's configuration turned to the backend.

    Modules that were not chosen share the configuration: they get torch's SDPA. Raises Declined for scores that are capped.
    """
    module = site.module
    softcap = getattr(module.config, "attn_logit_softcapping", None)
    if softcap is not None:
        raise Declined(f"its scores are capped at {softcap}")
    _register()
    module.config._attn_implementation = BACKEND
    module.attention_site = site
    return wraps(module.forward)(module.forward)


def _register() -> None:
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

    AttentionInterface.register(BACKEND, attend)
    AttentionMaskInterface.register(BACKEND, sdpa_mask)


def attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    **named: Any,
) -> tuple[Tensor, None]:
    """Attend as transformers' attention functions do: heads before tokens in what comes, tokens before heads in what goes."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    site = getattr(module, "attention_site", None)
    if site is not None:
        if torch.is_autocast_enabled(query.device.type):
            kind = torch.get_autocast_dtype(query.device.type)
            query, key, value = query.to(kind), key.to(kind), value.to(kind)
        call = AttentionCall(
            query.device.type,
            query.dtype,
            query.shape[-1],
            query.shape[2],
            key.shape[2],
            dropout,
            attention_mask is not None,
            named.get("sliding_window"),
            named.get("softcap"),
            scaling,
        )
        name, reason = choose_attention(call)
        _say(name, reason)
        if name == BACKEND:
            site.count()
            causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
            parts = (part.transpose(1, 2) for part in (query, key, value))
            return attention(*parts, causal=causal), None
    result: tuple[Tensor, None] = sdpa_attention_forward(
        module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, is_causal=is_causal, **named
    )
    return result


_said: set[tuple[str, str]] = set()


def _say(name: str, reason: str) -> bool:
    """Say once what was chosen; a warning where it is not the kernel that was asked for."""
    if (name, reason) not in _said:
        _said.add((name, reason))
        if name == BACKEND:
            sys.stderr.write(f"attention: {name}'s kernels ({reason})\n")
        else:
            warnings.warn(f"attention falls back to torch's {name}: {reason}", stacklevel=3)
    return True


_say._dynamo_marked_constant = True  # type: ignore[attr-defined] # said while a graph is compiled, without a break in it
