"""How an operator is made known to torch: schema, implementation, shape function and gradient in one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

NAMESPACE = "amdflow"
_LIBRARY = torch.library.Library(NAMESPACE, "DEF")


def operator(
    schema: str,
    run: Callable[..., Any],
    *,
    fake: Callable[..., Any],
    save: Callable[..., None] | None = None,
    backward: Callable[..., Any] | None = None,
) -> Any:
    """Define ``amdflow::NAME`` and return it.

    ``fake`` gives empty results, so that torch.compile traces through; ``save(ctx, inputs, output)`` and
    ``backward(ctx, *gradients)`` are its gradient.
    """
    name = schema.partition("(")[0]
    _LIBRARY.define(schema)
    _LIBRARY.impl(name, run, "CompositeExplicitAutograd")
    torch.library.register_fake(f"{NAMESPACE}::{name}", fake, lib=_LIBRARY)
    if backward is not None:
        torch.library.register_autograd(f"{NAMESPACE}::{name}", backward, setup_context=save, lib=_LIBRARY)
    return getattr(getattr(torch.ops, NAMESPACE), name).default
