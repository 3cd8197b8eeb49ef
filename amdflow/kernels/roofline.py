"""What would limit a kernel on its target, from the work it does and published peaks: predicted, never measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from amdflow.gpu.targets import PEAKS

Bound = Literal["memory", "matrix", "vector"]


@dataclass(frozen=True)
class Prediction:
    """Arithmetic intensity against what the target needs to keep its units busy."""

    intensity: float
    """Operations for each byte to and from memory, at the kernel's typical sizes."""
    balance: float
    """The target's peak operations for each byte its memory moves: more than this is bound by the units."""
    bound: Bound


def predict(arch: str, launch: Mapping[str, Any], *, matrix: bool) -> Prediction | None:
    """The bound of one build; None when its kernel's file does not say what work it does (``work`` and ``typical``)."""
    work = launch.get("work")
    if not work:
        return None
    peak = PEAKS[arch]
    units: Bound = "matrix" if matrix and peak.matrix else "vector"
    balance = 1000 * (peak.matrix if units == "matrix" else peak.vector) / peak.memory
    intensity = work["flop"] / work["bytes"]
    return Prediction(intensity, balance, "memory" if intensity < balance else units)
