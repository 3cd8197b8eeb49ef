"""A LLaMA-Factory config is read as its users have it, and everything odd in it is named before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from amdflow.errors import UsageError
from amdflow.finetune.recipe import check_recipe, parse_overrides, read_recipe
from tests.unit.finetune.workshop import facts

GOOD = """
model_name_or_path: model
stage: sft
do_train: true
dataset: tiny
learning_rate: 1e-4
max_steps: 10
"""


def check(tmp_path: Path, text: str, **overrides: Any) -> dict[str, Any]:
    path = tmp_path / "train.yaml"
    path.write_text(text)
    return check_recipe(path, read_recipe(path, overrides), facts())


def test_numbers_are_read_as_llama_factory_reads_them(tmp_path: Path) -> None:
    values = check(tmp_path, GOOD)
    assert values["learning_rate"] == 1e-4
    assert values["max_steps"] == 10


def test_a_number_may_stand_where_text_is_meant(tmp_path: Path) -> None:
    assert check(tmp_path, GOOD + "run_name: 2024\n")["run_name"] == "2024"


def test_a_list_may_stand_for_text_with_commas(tmp_path: Path) -> None:
    assert check(tmp_path, GOOD + "lora_target: [q_proj, v_proj]\n")["lora_target"] == ["q_proj", "v_proj"]


def test_overrides_win_and_reach_into_mappings(tmp_path: Path) -> None:
    overrides = parse_overrides(["learning_rate=2e-5", "fsdp_config.fsdp_version=2", "bf16=true"])
    values = check(tmp_path, GOOD, **overrides)
    assert values["learning_rate"] == 2e-5
    assert values["fsdp_config"] == {"fsdp_version": 2}
    assert values["bf16"] is True


@pytest.mark.parametrize("word", ["learning_rate", "=3", "lr"])
def test_a_word_that_is_no_override_is_refused(word: str) -> None:
    with pytest.raises(UsageError, match="is not an override"):
        parse_overrides([word])


def test_a_json_config_is_taken_too(tmp_path: Path) -> None:
    path = tmp_path / "train.json"
    path.write_text('{"model_name_or_path": "m", "do_train": true, "dataset": "tiny", "learning_rate": 1e-4}')
    assert check_recipe(path, read_recipe(path, {}), facts())["learning_rate"] == 1e-4


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("a.yaml", "- one\n- two\n", "holds a list, not a mapping"),
        ("a.yaml", "a: [1\n", "not valid YAML"),
        ("a.yaml", "", "is empty"),
        ("a.json", "{'a': 1}", "not valid JSON"),
        ("a.json", "[1]", "does not hold a mapping"),
    ],
)
def test_a_file_that_is_no_config_is_refused(tmp_path: Path, name: str, text: str, complaint: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(UsageError, match=complaint):
        read_recipe(path, {})


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    for name in ("no.yaml", "no.json"):
        with pytest.raises(UsageError, match=name):
            read_recipe(tmp_path / name, {})
    with pytest.raises(UsageError, match="is a folder"):
        read_recipe(tmp_path, {})


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("lerning_rate: 1", r"unknown key 'lerning_rate' \(did you mean learning_rate\?\)"),
        ("learning_rate: -1e-4", "learning_rate must be greater than 0"),
        ("learning_rate: 0", "learning_rate must be greater than 0"),
        ("learning_rate: .nan", "learning_rate is nan"),
        ("learning_rate: fast", "learning_rate must be float, not 'fast'"),
        ("max_steps: 0", "nothing would be trained"),
        ("max_steps: -5", "nothing would be trained"),
        ("max_steps: 2.5", "max_steps must be int"),
        ("num_train_epochs: 0", "num_train_epochs must be greater than 0"),
        ("cutoff_len: 0", "cutoff_len must be at least 1"),
        ("per_device_train_batch_size: 0", "per_device_train_batch_size must be at least 1"),
        ("gradient_accumulation_steps: -1", "gradient_accumulation_steps must be at least 1"),
        ("lora_rank: 0", "lora_rank must be at least 1"),
        ("lora_dropout: 1.0", "lora_dropout must be at least 0 and below 1"),
        ("weight_decay: -0.1", "weight_decay must be at least 0"),
        ("save_steps: 0", "save_steps must be greater than 0"),
        ("do_train: false", "do_train is not true"),
        ("do_train: yesterday", "do_train must be bool"),
        ("stage: sfft", r"stage cannot be 'sfft' \(did you mean sft\?\)"),
        ("flash_attn: fa4", "flash_attn cannot be 'fa4'"),
        ("quantization_bit: 7", "quantization_bit cannot be 7"),
        ("{fp16: true, bf16: true}", "fp16 and bf16 exclude each other"),
        ("{packing: true, cutoff_len: 1}", "packing needs cutoff_len"),
        ("model_name_or_path: null", "model_name_or_path is missing"),
        ("dataset: null", "dataset is missing"),
    ],
)
def test_absurd_values_are_refused_by_key(tmp_path: Path, line: str, complaint: str) -> None:
    import yaml

    with pytest.raises(UsageError, match=complaint):
        check(tmp_path, GOOD, **yaml.safe_load(line))
