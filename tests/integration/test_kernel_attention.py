"""Attention forward, then backward with what forward left, on the CPU: results and gradients beside float64 autograd."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from amdflow import process
from amdflow.cli.context import open_context
from amdflow.kernels.item import SCRIPTS

CHECKS = Path(__file__).with_name("kernel_attention_inside.py")


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each check printed, by its name; one process for all, since the imports take longest."""
    engine = open_context(start=tmp_path_factory.mktemp("attention")).toolchain.engine("kernels")
    environment = {**os.environ, **engine.environment(), "PYTHONPATH": str(SCRIPTS)}
    done = process.run([str(engine.python), str(CHECKS)], env=environment)
    return dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)


@pytest.mark.parametrize(
    "name",
    [
        "head 96, causal",
        "packed",
        "packed, window",
        "more keys than queries",
        "more queries than keys",
        "window on both sides",
        "listed blocks",
        "listed blocks, one layer, a window",
    ],
)
def test_results_and_gradients_are_those_of_float64(said: dict[str, str], name: str) -> None:
    assert float(said[name]) < 2e-5


@pytest.mark.parametrize("name", ["more queries than keys", "window on both sides", "listed blocks"])
def test_queries_that_see_nothing_come_out_as_zeros(said: dict[str, str], name: str) -> None:
    count, silent = said[f"{name}, blind rows"].split()
    assert int(count) > 0
    assert silent == "True"
