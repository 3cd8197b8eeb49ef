"""Attention in models: a backend of transformers' attention interface that says which kernel it takes, and why."""

from __future__ import annotations

import inspect
import sys
import warnings
from typing import Any

import torch
from torch import Tensor

from .attention import AttentionCall, attention, choose_attention
from .attention_varlen import attention_varlen
from .launch import NAMES
from .site import Declined, Forward, Site, while_tracing

BACKEND = "amdflow"
_WINDOWS_KNOWN: set[str] = set()
"""Types of models whose attention modules tell how far they see, not only by a mask."""


def attention_of(site: Site) -> Forward:
    """An attention module's forward, its model's configuration turned to the backend.

    Modules that were not chosen share the configuration: they get torch's SDPA. Raises Declined where the kernel would
    never be taken, by what is known of the module and of the machine that it lies on.
    """
    module = site.module
    weight = next(module.parameters())
    if weight.device.type in ("cpu", "cuda"):
        name, reason = choose_attention(_expected(module, weight))
        if name != BACKEND:
            raise Declined(reason)
    _register()
    module.config._attn_implementation = BACKEND
    module.attention_site = site
    if "sliding_window=" in inspect.getsource(type(module)):
        _WINDOWS_KNOWN.add(module.config.model_type)
    forward: Forward = module.forward  # asks transformers for the backend as before
    return forward


def _expected(module: Any, weight: Tensor) -> AttentionCall:
    """The calls that training will make: weights in float32 or packed in few bits mean autocast on a GPU."""
    dtype = weight.dtype
    if dtype not in NAMES or (weight.device.type == "cuda" and dtype == torch.float32):
        dtype = torch.bfloat16
    return AttentionCall(
        weight.device.type,
        dtype,
        module.head_dim,
        1,
        1,
        dropout=getattr(module, "attention_dropout", 0.0),
        softcap=getattr(module.config, "attn_logit_softcapping", None),
        scale=module.scaling,
    )


def _register() -> None:
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface

    AttentionInterface.register(BACKEND, attend)
    AttentionMaskInterface.register(BACKEND, mask)


def mask(**named: Any) -> Tensor | None:
    """The mask that SDPA would get; none where a layer is causal and padding, if any, only follows the text.

    A causal layer's tokens never look at what follows them, so nothing that is looked at changes; what comes out for the
    padding itself does, and counts for nothing.
    """
    from transformers.masking_utils import sdpa_mask

    if _just_causal(named) and (named["attention_mask"] is None or _behind_the_text(named["attention_mask"])):
        return None
    found: Tensor | None = sdpa_mask(**named)
    return found


def _just_causal(named: dict[str, Any]) -> bool:
    """Whether, but for padding, every token looks at itself and all before it, or as far as a window that it knows of."""
    place, window = named.get("q_length", named.get("cache_position")), named.get("local_size")
    tokens = place.shape[0] if isinstance(place, Tensor) else place
    narrow = window is not None and window <= tokens and named["config"].model_type not in _WINDOWS_KNOWN
    whole: bool = named["kv_length"] == tokens and not narrow
    return whole and bool(named.get("allow_is_causal_skip"))


def _behind_the_text(padding: Tensor) -> bool:
    """Whether nothing follows padding; unknown while a graph is traced."""
    if padding.dim() != 2 or torch.compiler.is_compiling():
        return False
    return bool((padding[:, 1:] <= padding[:, :-1]).all())


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

    window, packed = named.get("sliding_window"), named.get("cu_seq_lens_q") is not None
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
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
            masked=attention_mask is not None and not packed,
            window=window,
            causal=causal,
            packed=packed,
            softcap=named.get("softcap"),
            scale=scaling,
        )
        name, reason = choose_attention(call)
        _say(name, reason)
        if name == BACKEND:
            site.count()
            return _attend(query, key, value, call, named), None
    if attention_mask is None and window is not None and window < key.shape[2]:
        attention_mask = _window_mask(key.shape[2], window, query.device)
    result: tuple[Tensor, None] = sdpa_attention_forward(
        module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, is_causal=is_causal, **named
    )
    return result


def _attend(query: Tensor, key: Tensor, value: Tensor, call: AttentionCall, named: dict[str, Any]) -> Tensor:
    q, k, v = (part.transpose(1, 2) for part in (query, key, value))
    if not call.packed:
        return attention(q, k, v, causal=call.causal, window=call.window)
    cu_q, cu_kv = (named[name].to(torch.int32) for name in ("cu_seq_lens_q", "cu_seq_lens_k"))
    longest = max(named.get(name) or 0 for name in ("max_length_q", "max_length_k")) or None
    rows = [part.flatten(0, 1) for part in (q, k, v)]
    y = attention_varlen(
        rows[0], rows[1], rows[2], cu_q, cu_kv, causal=call.causal, window=call.window, longest=longest
    )
    return y.view(q.shape)


def _window_mask(tokens: int, window: int, device: torch.device) -> Tensor:
    """What a causal layer with a window sees, where :func:`mask` left that to the window's size."""
    seen = torch.ones(1, 1, tokens, tokens, dtype=torch.bool, device=device).tril()
    return seen.triu(1 - window)


_said: set[tuple[str, str]] = set()


@while_tracing
def _say(name: str, reason: str) -> bool:
    """Say once what was chosen; a warning where it is not the kernel that was asked for."""
    if (name, reason) not in _said:
        _said.add((name, reason))
        if name == BACKEND:
            sys.stderr.write(f"attention: {name}'s kernels ({reason})\n")
        else:
            warnings.warn(f"attention falls back to torch's {name}: {reason}", stacklevel=3)
    return True
