"""Kernels ready to be called with torch tensors: built ahead of time, or compiled at first use for the tensors' device."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from .lowering import compile_for_gpu, language_for, load_module
from .objects import Folder, Kernel, ObjectError
from .on_cpu import launcher_for_cpu
from .tiles import kernel_file, tiles_of

Launcher = Callable[..., None]
OBJECTS = "AMDFLOW_KERNEL_OBJECTS"
"""Environment variable: a folder of code objects (``amdflow kernels export``) that are taken where they fit."""
_ORIGINS: dict[str, str] = {}
NAMES = {torch.bfloat16: "bfloat16", torch.float16: "float16", torch.float32: "float32"}
"""Value types that kernels are built for."""


def kernel(op: str, like: torch.Tensor, **sizes: Any) -> Launcher:
    """The kernel called ``op`` for ``like``'s device and value type; it takes the kernel's parameters in order.

    Raises TypeError for a value type that no kernel is built for.
    """
    if like.dtype not in NAMES:
        raise TypeError(f"{op} is not built for {like.dtype}, only for {', '.join(NAMES.values())}")
    return _kernel(op, target_of(like.device.type), NAMES[like.dtype], tuple(sizes.items()))


@cache
def target_of(device: str) -> str:
    """``cpu``, ``cuda``, or the gfx name of the current GPU. Raises TypeError for another kind of device."""
    if device == "cpu":
        return "cpu"
    if device != "cuda":
        raise TypeError(
            f"no kernels for device type {device!r}, only for cpu and cuda (which is what HIP is called, too)"
        )
    if not torch.version.hip:
        return "cuda"
    return str(torch.cuda.get_device_properties(torch.cuda.current_device()).gcnArchName).partition(":")[0]


@cache
def workgroups(device: str, each: int) -> int:
    """How many workgroups keep every compute unit busy with ``each`` of them; a few on a CPU, to exercise the sums."""
    return (
        3
        if device == "cpu"
        else each * torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count
    )


def origins() -> dict[str, str]:
    """Where each kernel that was asked for so far came from, for a report: ``rms_norm bfloat16 hidden=4096`` and so on."""
    return dict(_ORIGINS)


@cache
def _kernel(op: str, target: str, dtype: str, sizes: tuple[tuple[str, Any], ...]) -> Launcher:
    fixed = {"dtype": dtype, **{name: value for name, value in sizes if value is not None}}
    asked = " ".join([op, dtype, *(f"{name}={value}" for name, value in fixed.items() if name != "dtype")])
    ready = _ahead_of_time(op, target, fixed) if target.startswith("gfx") else None
    if ready is not None:
        _ORIGINS[asked] = f"ahead of time: {ready.code_object}"
        return ready
    if importlib.util.find_spec("tilelang") is None:
        raise ObjectError(
            f"no {asked} for {target}: TileLang is not installed here, and {OBJECTS} "
            + (f"({os.environ[OBJECTS]}) has none that fits" if OBJECTS in os.environ else "names no folder of objects")
        )
    _ORIGINS[asked] = "compiled here by TileLang"
    module = load_module(str(kernel_file(op)))
    function = module.build(language_for(target), **fixed, **tiles_of(target, op, fixed))
    if target == "cpu":
        return launcher_for_cpu(function)
    launcher: Launcher = compile_for_gpu(module, function)
    return launcher


def _ahead_of_time(op: str, target: str, fixed: dict[str, Any]) -> Kernel | None:
    folder = _objects()
    sizes = {name: value for name, value in fixed.items() if name != "dtype"}
    return folder.find(op, fixed["dtype"], target, **sizes) if folder else None


@cache
def _objects() -> Folder | None:
    return Folder(os.environ[OBJECTS]) if os.environ.get(OBJECTS) else None
