"""Calls a kernel that was built for the CPU: a shared library and its launch description."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

from .objects import sizes_of

_CTYPES = {"int32": ctypes.c_int32, "int64": ctypes.c_int64, "float32": ctypes.c_float}


def call_library(function: Any, parameters: Sequence[Mapping[str, Any]], values: Mapping[str, Any]) -> None:
    """Call ``function`` with ``values`` (tensors and numbers by name); sizes known at launch are read off the shapes.

    Raises ObjectError for a tensor of another shape or value type than the kernel was built for.
    """
    scalars = sizes_of(parameters, values)
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
