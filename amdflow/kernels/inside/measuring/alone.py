"""The case of any kernel by itself, beside its own reference: for kernels that no operator of ours stands on."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import torch
from tilelang_ops.launch import NAMES, kernel, target_of
from tilelang_ops.lowering import language_for, load_module
from tilelang_ops.tiles import kernel_file, tiles_of
from torch import Tensor

from .case import Case, Part
from .numbers import empty_results


def kernel_case(op: str, sizes: Mapping[str, Any]) -> Case:
    """The kernel ``op`` at ``sizes``, over those of its first test and its typical launch; forward only.

    What a user would pick instead is taken to be the kernel's reference in the same value type, eager and compiled.
    A result that takes an input's place is not compared. Raises ValueError for a kernel that does not say what work it
    does, or that has no other result.
    """
    module = load_module(str(kernel_file(op)))
    declared, typical = module.KERNEL["sizes"], module.KERNEL.get("typical")
    if not typical or not hasattr(module, "work"):
        raise ValueError(f"{op} does not say at what sizes it is typically launched, or what work it does then")
    whole = {**module.CASES[0]["build"], **typical, **sizes}
    build = {name: value for name, value in whole.items() if name in declared}
    run = {name: value for name, value in whole.items() if name not in declared}
    given: dict[str, Any] = {}
    drawn: list[Tensor] = []  # a tensor of the type and on the device that were asked for last

    def inputs(dtype: torch.dtype, device: str) -> list[Tensor]:
        generator = torch.Generator(device).manual_seed(0)
        given.clear()
        drawn[:] = [torch.empty(0, dtype=dtype, device=device)]
        with torch.device(device):
            given.update(module.inputs(lambda *shape: torch.randn(*shape, generator=generator, dtype=dtype), **whole))
        given.update({name: part.contiguous() for name, part in given.items() if isinstance(part, Tensor)})
        return [part for part in given.values() if isinstance(part, Tensor)]

    def named(tensors: tuple[Tensor, ...]) -> dict[str, Any]:
        names = [name for name, part in given.items() if isinstance(part, Tensor)]
        return {**given, **dict(zip(names, tensors, strict=True))}

    def eager(*tensors: Tensor) -> list[Tensor]:
        results = module.reference(**named(tensors))
        return [results[name] for name in sorted(results) if name not in given]

    @cache
    def signature(dtype: str, target: str) -> tuple[dict[str, Any], list[str]]:
        fixed = {"dtype": dtype, **build}
        function = module.build(language_for(target), **fixed, **tiles_of(target, op, fixed))
        buffers = {str(buffer.name): buffer for buffer in function.buffer_map.values()}
        return buffers, [str(function.buffer_map.get(parameter, parameter).name) for parameter in function.params]

    def ours(*tensors: Tensor) -> list[Tensor]:
        values = named(tensors)
        (like,) = drawn
        buffers, names = signature(NAMES[like.dtype], target_of(like.device.type))
        results = empty_results(buffers, values, whole, like.device.type)
        if not results:
            raise ValueError(f"{op} only changes an input, so that each run would start from other numbers")
        kernel(op, like, **build)(*({**values, **results}[name] for name in names))
        return [results[name] for name in sorted(results)]

    part = Part(op, build, run)
    slack = module.KERNEL.get("slack", 1.0)
    return Case(op, whole, inputs, 0, ours=ours, eager=eager, forward=[part], slack=slack)
