"""RoPE in the attention modules of models, whose code calls a function ``apply_rotary_pos_emb`` of its own file."""

from __future__ import annotations

import sys
from functools import wraps
from types import ModuleType
from typing import Any

from torch import Tensor

from .rotary import rope
from .site import Declined, Forward, Site

_FUNCTION = "apply_rotary_pos_emb"


class _Angles:
    """A table on its way from an attention module with the operator to the rotation: it says that the operator is wanted."""

    def __init__(self, table: Tensor, site: Site) -> None:
        self.table, self.site = table, site


def rope_of(site: Site) -> Forward:
    """An attention module's forward, which differs by the kind of table it is given.

    Raises Declined for a layer without positions, and for code that rotates in another way.
    """
    attention = site.module
    if not getattr(attention, "use_rope", True):
        raise Declined("this layer has no positions")
    _listen(sys.modules[type(attention).__module__])
    inner = attention.forward

    @wraps(inner)
    def forward(*arguments: Any, **named: Any) -> Any:
        tables = named.get("position_embeddings")
        if tables is not None:
            named["position_embeddings"] = tuple(_Angles(table, site) for table in tables)
        return inner(*arguments, **named)

    return forward


def _listen(code: ModuleType) -> None:
    """Let the function that rotates in ``code`` look at its tables; with plain ones it does what it did."""
    original = getattr(code, _FUNCTION, None)
    if original is None:
        raise Declined(f"{code.__name__} has no function {_FUNCTION}")
    if hasattr(original, "for_tables"):
        return

    @wraps(original)
    def apply(q: Tensor, k: Tensor, cos: Any, sin: Any, *rest: Any, **named: Any) -> Any:
        if not isinstance(cos, _Angles):
            return original(q, k, cos, sin, *rest, **named)
        if rest or named:  # a layout or positions of its own
            return original(q, k, cos.table, sin.table, *rest, **named)
        cos.site.count()
        return _rotate(q, k, cos.table, sin.table)

    apply.for_tables = original  # type: ignore[attr-defined]
    setattr(code, _FUNCTION, apply)


def _rotate(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """Turn q and k of (batch, heads, tokens, head), views of the layout that projections leave, so that nothing is copied."""
    q, k = q.transpose(1, 2), k.transpose(1, 2)
    shapes = q.shape, k.shape
    if cos.shape[0] > 1:  # a table for each sequence: one long sequence of all
        q, k = q.flatten(0, 1), k.flatten(0, 1)
    rotary = cos.shape[-1]
    q, k = rope(q, k, cos.reshape(-1, rotary), sin.reshape(-1, rotary), rotary=rotary)
    return q.view(shapes[0]).transpose(1, 2), k.view(shapes[1]).transpose(1, 2)
