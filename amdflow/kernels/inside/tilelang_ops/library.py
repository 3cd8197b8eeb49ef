"""Calls a kernel that was built for the CPU: a shared library and its launch description."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

_CTYPES = {"int32": ctypes.c_int32, "int64": ctypes.c_int64, "float32": ctypes.c_float}


def call_library(function: Any, parameters: Sequence[Mapping[str, Any]], values: Mapping[str, Any]) -> None:
    """Call ``function`` with ``values`` (tensors and numbers by name); sizes known at launch are read off the shapes.

    Raises ValueError for a tensor of another shape or value type than the kernel was built for.
    """
    scalars: dict[str, int] = {}
    for parameter in parameters:
        if parameter["kind"] == "tensor":
            _solve(parameter, values[parameter["name"]], scalars)
    words: list[Any] = []
    for parameter in parameters:
        name = parameter["name"]
        if parameter["kind"] == "tensor":
            words.append(ctypes.c_void_p(values[name].data_ptr()))
        else:
            words.append(_CTYPES[parameter["dtype"]](scalars[name] if name in scalars else values[name]))
    status = function(*words)
    if status:
        raise ValueError(f"the kernel returned {status}")


def _solve(parameter: Mapping[str, Any], tensor: Any, scalars: dict[str, int]) -> None:
    """Add what ``tensor``'s shape says of the sizes known at launch to ``scalars``."""
    name, kind = parameter["name"], str(tensor.dtype).removeprefix("torch.")
    if kind != parameter["dtype"] or not tensor.is_contiguous():
        raise ValueError(f"{name} is {kind}, the kernel takes {parameter['dtype']} without gaps")
    for extent, declared in zip(tensor.shape, parameter["shape"], strict=True):
        if isinstance(declared, dict):
            found = scalars.setdefault(declared["symbol"], extent // declared["times"])
            declared = found * declared["times"]
        if extent != declared:
            raise ValueError(f"{name} has extent {extent} where the kernel has {declared}")
