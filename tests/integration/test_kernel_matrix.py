"""Linear layers, mixtures of experts and weights of few bits as operators, in the kernels environment, on the CPU."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from amdflow import process
from amdflow.cli.context import open_context
from amdflow.kernels.item import SCRIPTS

CHECKS = Path(__file__).with_name("kernel_matrix_inside.py")
FORMS = ("int8", "int4", "int4 with zeros", "e4m3fn", "e4m3fnuz")


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each check printed, by its name; one process for all, since the imports take longest."""
    toolchain = open_context(start=tmp_path_factory.mktemp("matrix")).toolchain
    engine, models = toolchain.engine("kernels"), toolchain.engine("finetune")
    packages = models.python.parent.parent.glob("lib/python3.*/site-packages")
    environment = {**os.environ, **engine.environment(), "PYTHONPATH": str(SCRIPTS)}
    done = process.run([str(engine.python), str(CHECKS), str(next(packages))], env=environment)
    return dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)


@pytest.mark.parametrize(
    "name",
    [
        *(f"linear {act}" for act in ("none", "relu", "gelu")),
        "linear without bias",
        "linear, frozen weight",
        *(f"mixture, {what}" for what in ("an expert without tokens", "one expert with all", "experts elsewhere")),
        "mixture, routed",
        *(f"dequant_linear {form}" for form in ("int8", "int4 with zeros", "e4m3fnuz")),
        "dequant_linear of many rows",
        "dequant_linear of odd sizes with bias",
    ],
)
def test_results_and_gradients_are_those_of_float64(said: dict[str, str], name: str) -> None:
    assert float(said[name]) < 2e-5


def test_autocast_decides_the_type(said: dict[str, str]) -> None:
    assert said["autocast"] == "torch.bfloat16 True"


def test_without_rows_the_weight_has_a_gradient_of_zeros(said: dict[str, str]) -> None:
    assert said["no rows"] == "0.0"


def test_a_mixture_is_traced_without_a_break(said: dict[str, str]) -> None:
    assert said["graph breaks"] == "0"


def test_operators_keep_to_what_their_schemas_say(said: dict[str, str]) -> None:
    assert said["opcheck"] == "passed"


def test_a_models_experts_compute_and_learn_the_same_and_are_all_called(said: dict[str, str]) -> None:
    assert float(said["a model's experts off and on"]) < 1e-4
    assert said["experts called"] == "[1, 1]"


@pytest.mark.parametrize("form", FORMS)
def test_quantized_weights_are_off_by_no_more_than_stated(said: dict[str, str], form: str) -> None:
    assert 0.5 < float(said[f"{form} off by"]) < 1.001


@pytest.mark.parametrize("form", ["e4m3fn", "e4m3fnuz"])
def test_every_byte_of_a_float8_is_widened_exactly(said: dict[str, str], form: str) -> None:
    assert said[f"bytes of {form} widened"] == "True"


def test_float8_forms_are_converted_without_a_change_of_value(said: dict[str, str]) -> None:
    assert said["to fnuz"] == said["to fn"] == "True"
    assert said["to fnuz, bytes"] == "[0, 0, 128, 128, 56] 2.0"
    assert said["to fn, byte 0x80"] == "127 0.5"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("240 to fn", "2 elements are 240 or -240, which e4m3fn has no number for"),
        ("a scale that overflows", "a scale times 2 is no float32 any more"),
        ("int8 to fn", "from int8 to e4m3fn: only the two forms of float8"),
        ("an infinite weight", "the weight holds elements that are infinite or not a number"),
        ("a cut group", "96 columns in groups of 64"),
    ],
)
def test_what_cannot_be_represented_is_refused(said: dict[str, str], name: str, reason: str) -> None:
    assert said[f"{name} refused"].startswith(reason)
