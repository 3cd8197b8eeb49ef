"""The cases by operator."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping

from . import experts, few_bits, products, rowwise
from .alone import kernel_case
from .case import Case
from .sizes import Sizes

FACTORIES: Mapping[str, Callable[..., Case]] = {
    "rms_norm": rowwise.rms_norm,
    "add_rms_norm": rowwise.add_rms_norm,
    "layer_norm": rowwise.layer_norm,
    "swiglu": rowwise.swiglu,
    "geglu": rowwise.geglu,
    "rope": rowwise.rope,
    "linear_cross_entropy": products.linear_cross_entropy,
    "gemm": products.gemm,
    "linear": products.linear,
    "attention": products.attention,
    "moe": experts.moe,
    "dequant_linear": few_bits.dequant_linear,
}


def case(op: str, sizes: Sizes) -> Case:
    """The case of ``op`` at ``sizes``; a kernel's own name stands for the kernel by itself, at its typical sizes.

    Raises ValueError for a size that the operator does not have, or that is missing, and for an unknown operator.
    """
    factory = FACTORIES.get(op)
    if factory is None:
        return kernel_case(op, sizes)
    try:
        inspect.signature(factory).bind(**sizes)
    except TypeError as error:
        names = ", ".join(inspect.signature(factory).parameters)
        raise ValueError(f"{op}: {error}; its sizes are {names}") from error
    return factory(**sizes)
