"""Operators inside of Hugging Face models, on the CPU: losses and gradients with them and without, and loud fall-backs."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

from amdflow import process
from amdflow.cli.context import open_context
from amdflow.kernels.item import SCRIPTS

CHECKS = Path(__file__).with_name("kernel_models_inside.py")
FLOAT32 = 5e-6
"""Of the largest element: some ten roundings of 2^-24 in a row, through three layers forward and backward."""
OPERATORS = ("rms_norm", "add_rms_norm", "swiglu", "rope", "attention", "linear_cross_entropy")


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each check printed, by its name; one process for all, since imports and kernels take longest."""
    toolchain = open_context(start=tmp_path_factory.mktemp("models")).toolchain
    engine, models = toolchain.engine("kernels"), toolchain.engine("finetune")
    packages = models.python.parent.parent.glob("lib/python3.*/site-packages")
    environment = {**os.environ, **engine.environment(), "PYTHONPATH": str(SCRIPTS), "HF_HUB_OFFLINE": "1"}
    done = process.run([str(engine.python), str(CHECKS), str(next(packages))], env=environment)
    return dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)


@pytest.mark.parametrize(
    "name",
    [
        *("llama", "mistral", "qwen2", "qwen3", "gemma"),
        *(f"llama, {op} alone" for op in OPERATORS),
        "llama, one layer",
        "llama, tokens counted elsewhere",
        "llama, counted in a tensor",
        "llama, positions of each row",
        "lora",
        "checkpointing, reentrant False",
        "checkpointing, reentrant True",
        "packed",
    ],
)
def test_loss_and_every_gradient_are_those_of_float64_and_every_place_is_used(said: dict[str, str], name: str) -> None:
    assert float(said[name]) < FLOAT32
    assert said[f"{name}, idle"] == "[]"


@pytest.mark.parametrize(
    "name",
    [
        *("checkpointing from outside", "compiled", "parallel", "sharded"),
        *("padding behind", "padding before", "window", "window in one layer"),
    ],
)
def test_loss_and_every_gradient_are_those_of_float64(said: dict[str, str], name: str) -> None:
    assert float(said[name]) < FLOAT32


def test_a_pattern_chooses_layers(said: dict[str, str]) -> None:
    places = {"add_rms_norm": ["model.layers.1"], "rope": ["model.layers.1.self_attn"]}
    assert ast.literal_eval(said["one layer's places"]) == places


def test_autocast_is_as_exact_with_the_operators_as_without(said: dict[str, str]) -> None:
    assert float(said["autocast on"]) < 1.5 * float(said["autocast off"])


def test_a_compiled_graph_holds_every_operator(said: dict[str, str]) -> None:
    assert ast.literal_eval(said["compiled, places"]) == {
        "rms_norm": 7,
        "add_rms_norm": 3,
        "swiglu": 3,
        "rope": 3,
        "attention": 3,
        "linear_cross_entropy": 1,
    }


def test_norms_whose_weights_are_gathered_for_another_layer_only_are_not_fused(said: dict[str, str]) -> None:
    assert said["sharded, residual adds fused"] == "[1, 1, 2]"  # the last layer's follower is the model's own norm


def test_only_training_with_labels_goes_without_logits(said: dict[str, str]) -> None:
    assert said["logits in training"] == "None"
    assert float(said["evaluation"]) < FLOAT32
    assert said["calls of the loss"] == "{'': 1}"
    assert said["generation"] == "True"


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        ("softcap, attention", "model.layers.0.self_attn (and 2 more): scores capped at 50.0"),
        ("softcap, linear_cross_entropy", "the model: its logits go through final_logit_softcapping = 30.0"),
        ("dropout, attention", "model.layers.0.self_attn (and 2 more): dropout of 0.1"),
        ("activation, swiglu", "model.layers.0.mlp (and 2 more): its activation is relu"),
        ("lora on the last layer", "base_model.model: its lm_head is a peft.tuners.lora.layer.Linear"),
    ],
)
def test_what_an_operator_cannot_do_is_declined_with_the_reason(said: dict[str, str], check: str, reason: str) -> None:
    assert reason in said[check]


def test_padding_behind_the_text_and_windows_keep_the_kernel(said: dict[str, str]) -> None:
    assert said["padding behind, kernels"] == said["window, kernels"] == "3"
    assert said["window in one layer, kernels"] == "1"
    assert said["padding behind, warnings"] == "[]"


def test_attention_falls_back_with_one_warning_for_each_reason(said: dict[str, str]) -> None:
    assert said["padding before, kernels"] == "0"
    fall_back = "attention falls back to torch's sdpa: "
    assert ast.literal_eval(said["padding before, warnings"]) == [f"{fall_back}a mask that is more than causal"]
    assert ast.literal_eval(said["generation warns"]) == [
        f"{fall_back}tokens that look at more than themselves, as in generation"
    ]


@pytest.mark.parametrize(
    ("name", "choice"),
    [
        ("MI300X", "amdflow because of HIP on gfx942, bfloat16, heads of 128"),
        ("RX 9070", "amdflow because of HIP on gfx1201, float16, heads of 64, a window of 5 tokens"),
        ("H200", "amdflow because of CUDA, bfloat16, heads of 64, packed sequences"),
        ("MI50", "sdpa because of gfx906 has no matrix units that the kernel is written for"),
        ("float32", "sdpa because of float32, for which matrix units have no attention kernel"),
        ("wide heads", "sdpa because of heads of 80, not of "),
        ("scale", "sdpa because of a scale of 0.1"),
        ("another device", "sdpa because of no kernels for the device xpu"),
    ],
)
def test_attention_is_chosen_by_the_machine_and_the_call(said: dict[str, str], name: str, choice: str) -> None:
    assert said[f"choice, {name}"].startswith(choice)


def test_repeated_steps_take_no_more_memory(said: dict[str, str]) -> None:
    assert int(said["tensors left over"]) <= 0
    assert int(said["bytes left over"]) < 4 << 20
