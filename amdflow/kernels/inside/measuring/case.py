"""One operator at one size: what is timed, beside what, and the work that no implementation can do without."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from tilelang_ops.lowering import load_module
from tilelang_ops.tiles import kernel_file
from torch import Tensor

Function = Callable[..., Any]
FORWARD, BOTH = "forward", "forward+backward"
EPS = 1e-5
SAME = "the same value type"
"""Stands in a part's ``build`` for the value type of the case's tensors."""


class Part(NamedTuple):
    """One kernel that TileLang compiles for a case: its operator, what is fixed at build time, what is given at launch."""

    kernel: str
    build: Mapping[str, Any]
    run: Mapping[str, Any]

    def fixed(self, dtype: str) -> dict[str, Any]:
        """What is fixed at build time for the value type called ``dtype``, that type among it."""
        return {"dtype": dtype, **{name: dtype if value is SAME else value for name, value in self.build.items()}}


@dataclass(frozen=True)
class Case:
    """One operator at one size. Every function takes the tensors that ``inputs`` gives."""

    op: str
    sizes: Mapping[str, Any]
    inputs: Callable[[torch.dtype, str], list[Tensor]]
    """Tensors of a value type on a device."""
    differentiable: int
    """How many of the inputs get a gradient; they come first. 0: it is timed forward only."""
    ours: Function
    eager: Function
    """As transformers' models write it."""
    torch: Function | None = None
    """Torch's own fused operator."""
    liger: Function | None = None
    forward: Sequence[Part] = ()
    backward: Sequence[Part] = ()
    own_work: Mapping[str, Callable[[int], tuple[float, float]]] = field(default_factory=dict)
    """FLOP and bytes of a pass, by the bytes of a value, where the kernels' own sum is not what must be done."""
    slack: float = 1.0
    """How often the tolerance of one rounding it may be off: intermediate results that are rounded."""
    cancels: bool = False
    """Its gradients are small beside what cancels out in them: it may be as far off as eager torch, and a quarter more."""

    @property
    def passes(self) -> tuple[str, ...]:
        """What is timed."""
        return (FORWARD, BOTH) if self.differentiable else (FORWARD,)

    def has(self, dtype: str) -> bool:
        """Whether each of its kernels is built for the value type called ``dtype``."""
        return all(
            dtype in load_module(str(kernel_file(part.kernel))).KERNEL["dtypes"]
            for part in (*self.forward, *self.backward)
        )

    def work(self, which: str, dtype: str) -> tuple[float, float]:
        """FLOP, and bytes to and from memory, of one of the ``passes`` with values of the type called ``dtype``."""
        size = getattr(torch, dtype).itemsize
        if which in self.own_work:
            return self.own_work[which](size)
        parts = [*self.forward, *(self.backward if which == BOTH else ())]
        sums = [kernel_work(part.kernel, {**part.fixed(dtype), **part.run}, size) for part in parts]
        return float(sum(flop for flop, _ in sums)), float(sum(moved for _, moved in sums))

    def contenders(self) -> dict[str, Function]:
        """By name; ``torch.compile`` is given what ``eager`` is."""
        found = {
            "ours": self.ours,
            "eager": self.eager,
            "torch": self.torch,
            "torch.compile": torch.compile(self.eager, dynamic=False),
            "liger": self.liger,
        }
        return {name: function for name, function in found.items() if function is not None}


def kernel_work(op: str, sizes: Mapping[str, Any], dtype_bytes: int) -> tuple[float, float]:
    """FLOP, and bytes to and from memory, of one call of a kernel, as its own file states them."""
    given = {name: value for name, value in sizes.items() if name != "dtype"}
    flop, moved = load_module(str(kernel_file(op))).work(dtype_bytes=dtype_bytes, **given)
    return float(flop), float(moved)


def liger(name: str) -> Any:
    """A function of Liger-Kernel, as its own patches of transformers call it; None where it is not installed."""
    try:
        import liger_kernel.ops as functions
    except ImportError:
        return None
    return getattr(functions, name, None)
