"""The training operators in the kernels environment, on the CPU: gradients, shape functions, torch.compile, memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from amdflow import process
from amdflow.cli.context import open_context
from amdflow.kernels.item import SCRIPTS

CHECKS = Path(__file__).with_name("kernel_operators_inside.py")


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each check printed, by its name; one process for all, since the imports take longest."""
    toolchain = open_context(start=tmp_path_factory.mktemp("operators")).toolchain
    engine, models = toolchain.engine("kernels"), toolchain.engine("finetune")
    packages = models.python.parent.parent.glob("lib/python3.*/site-packages")
    environment = {**os.environ, **engine.environment(), "PYTHONPATH": str(SCRIPTS)}
    done = process.run([str(engine.python), str(CHECKS), str(next(packages))], env=environment)
    return dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)


@pytest.mark.parametrize(
    "name",
    [
        "rms_norm",
        "add_rms_norm",
        "add_rms_norm, one of the results used",
        "layer_norm",
        "swiglu",
        "geglu tanh",
        "geglu erf",
        "swiglu_linear",
        "swiglu_linear, weight frozen",
        "rope",
        "rope at given positions",
        "partial interleaved rope",
        "linear_cross_entropy mean",
        "linear_cross_entropy sum",
        "linear_cross_entropy in parts",
        "frozen weight",
    ],
)
def test_results_and_gradients_are_those_of_float64(said: dict[str, str], name: str) -> None:
    assert float(said[name]) < 2e-5


@pytest.mark.parametrize("scaling", ["linear", "llama3", "yarn"])
def test_scaled_tables_turn_fast_dimensions_as_before_and_slow_ones_slower(said: dict[str, str], scaling: str) -> None:
    fastest, slowest = map(float, said[f"tables {scaling}"].split())
    assert fastest == pytest.approx(0.25 if scaling == "linear" else 1.0, rel=1e-6)
    assert slowest == pytest.approx(0.25, rel=1e-6)


def test_torch_compile_traces_through(said: dict[str, str]) -> None:
    assert said["graph breaks"] == "0"


def test_operators_keep_to_what_their_schemas_say(said: dict[str, str]) -> None:
    assert said["opcheck"] == "passed"


def test_another_process_lowers_no_kernel_again(said: dict[str, str]) -> None:
    assert said["kernels found again"] == "True"


def test_repeated_calls_take_no_more_memory(said: dict[str, str]) -> None:
    assert int(said["tensors left over"]) <= 0


def test_a_value_type_that_no_kernel_has_is_refused(said: dict[str, str]) -> None:
    assert said["refusal"] == "rms_norm is not built for torch.float64, only for bfloat16, float16, float32"


def test_a_model_learns_the_same_with_its_modules_replaced_and_uses_every_one(said: dict[str, str]) -> None:
    difference, fallen = map(float, said["losses off and on"].split())
    assert difference < 1e-5
    assert fallen < 0.98
    assert said["replaced"] == "rms_norm=7 swiglu=2"
    assert said["calls of each"] == "[3]"


def test_a_choice_that_finds_nothing_is_refused(said: dict[str, str]) -> None:
    assert said["rms_norm refused"].startswith("rms_norm: 'encoder' finds none of the modules it can replace")
    assert said["softmax refused"].startswith("no operator called 'softmax' replaces modules, only rms_norm")
