"""``amdflow kernels bench`` where there is no GPU: what it says, and what of it can run all the same."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from amdflow import process
from amdflow.cli.context import open_context
from amdflow.kernels.item import SCRIPTS
from amdflow.toolchain import Engine
from tests.conftest import CommandLine

CHECKS = Path(__file__).with_name("kernel_bench_inside.py")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return open_context(start=tmp_path_factory.mktemp("bench")).toolchain.engine("kernels")


@pytest.fixture(scope="module")
def said(engine: Engine) -> list[dict[str, Any]]:
    environment = {**os.environ, **engine.environment(), "PYTHONPATH": str(SCRIPTS)}
    done = process.run([str(engine.python), str(CHECKS)], env=environment)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def test_without_a_gpu_nothing_is_measured_and_the_way_out_is_named(amdflow: CommandLine) -> None:
    hidden = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "", "ROCR_VISIBLE_DEVICES": ""}
    said = amdflow("kernels", "bench", "--kernel", "rms_norm", env=hidden)
    assert said.code == 5
    assert not said.out
    assert "no GPU to measure on" in said.err
    assert "amdflow kernels tune" in said.err
    assert not (amdflow.folder / "out" / "kernels-bench").exists()


def test_each_operator_has_a_case_and_says_what_work_it_does(said: list[dict[str, Any]]) -> None:
    assert said[0] == {"operators": True}
    works = said[1]["works"]
    assert works["rms_norm forward"] == [5 * 8192 * 8192, pytest.approx(4 * 8192 * 8192, rel=1e-3)]
    assert works["gemm forward"][0] == 2 * 4096 * 14336 * 4096
    for name, (flop, moved) in works.items():
        if name.endswith("+backward"):
            alone = works[name.removesuffix("+backward")]
            assert flop > alone[0], name
            assert moved > alone[1], name


@pytest.mark.parametrize("op", ["rms_norm", "rope", "gemm", "column_sum"])
def test_operators_and_a_kernel_by_itself_are_compared_with_float64(said: list[dict[str, Any]], op: str) -> None:
    (row,) = (line for line in said if line.get("op") == op)
    assert 0 < row["worst"] <= row["allowed"]
    assert len(row["errors"]) == {"rms_norm": 3, "rope": 4, "gemm": 1, "column_sum": 1}[op]


def test_a_size_that_an_operator_does_not_have_is_refused(said: list[dict[str, Any]]) -> None:
    assert said[-1]["refused"].endswith("its sizes are rows, hidden")
