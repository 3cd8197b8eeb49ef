"""How test results are judged and told."""

from __future__ import annotations

import pytest

from amdflow.kernels.check import ALLOWED, Result, failure


def result(worst: float | None, error: str = "") -> Result:
    return Result("gemm", "bfloat16", "cpu", {"n": 8, "causal": True}, False, worst, ALLOWED["bfloat16"], error)


@pytest.mark.parametrize(
    ("worst", "error", "passed"),
    [(0.001, "", True), (0.1, "", False), (float("inf"), "", False), (None, "it crashed", False)],
)
def test_only_a_small_error_passes(worst: float | None, error: str, passed: bool) -> None:
    assert result(worst, error).passed is passed
    assert (failure([result(0.0), result(worst, error)]) is None) is passed


def test_an_infinite_error_is_still_json() -> None:
    assert result(float("inf")).to_json()["worst"] is None


def test_a_row_tells_what_was_tested() -> None:
    assert result(0.001).cells() == ["gemm", "bf16", "cpu", "n=8 causal", "1.0e-03", "7.8e-03", "ok"]
    assert result(0.5).cells()[-1] == "WRONG"


def test_the_failure_names_kernels_and_how_to_look_at_one() -> None:
    wrong = failure([result(0.5), result(0.0)])
    assert wrong is not None
    assert "1 of 2 kernel tests failed: gemm bf16 on cpu" in wrong.message
    assert "--kernel gemm --dtype bfloat16" in wrong.hint
