"""What is predicted of a kernel's bound follows from its work and published peaks alone."""

from __future__ import annotations

import pytest

from amdflow.gpu.targets import PEAKS, TARGETS
from amdflow.kernels.roofline import predict


def _launch(flop: float, moved: float) -> dict[str, object]:
    return {"work": {"typical": {"rows": 1}, "flop": flop, "bytes": moved}}


def test_every_target_has_peaks_of_a_product_that_carries_it() -> None:
    assert set(PEAKS) == set(TARGETS)
    for name, peak in PEAKS.items():
        assert any(peak.product in example for example in TARGETS[name].examples)
        assert (peak.matrix > peak.vector) == (TARGETS[name].matrix is not None)


@pytest.mark.parametrize(
    ("arch", "intensity", "matrix", "bound"),
    [
        ("gfx942", 246, True, "memory"),  # 1307.4 TFLOP/s over 5.3 TB/s: 246.7 for each byte
        ("gfx942", 247, True, "matrix"),
        ("gfx942", 30, False, "memory"),  # 163.4 over 5.3: 30.8
        ("gfx942", 31, False, "vector"),
        ("gfx1151", 200, True, "memory"),  # little memory for its units: 232
        ("gfx1100", 200, True, "matrix"),  # 128
    ],
)
def test_the_bound_is_the_side_of_the_ridge(arch: str, intensity: float, matrix: bool, bound: str) -> None:
    found = predict(arch, _launch(intensity * 1000, 1000), matrix=matrix)
    assert found is not None
    assert (found.intensity, found.bound) == (intensity, bound)


def test_nothing_is_predicted_of_a_kernel_that_does_not_say_what_it_does() -> None:
    assert predict("gfx942", {}, matrix=True) is None
