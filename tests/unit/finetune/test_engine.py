"""Asking an environment what its LLaMA-Factory accepts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from amdflow.errors import EnvironmentProblem
from amdflow.finetune.engine import EngineFacts, probe


def test_an_environment_without_llama_factory_is_an_environment_problem(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="LLaMA-Factory cannot be used from") as caught:
        probe(Path(sys.executable), {}, {}, tmp_path)
    assert caught.value.hint == "amdflow toolchain install finetune"
    assert not list(tmp_path.iterdir())


def test_facts_are_read_from_the_probes_answer() -> None:
    facts = EngineFacts.from_json(
        {
            "fields": {"stage": {"kinds": ["str"], "choices": ["sft", "pt"], "default": "sft"}},
            "templates": ["default"],
            "file_types": {"jsonl": "json"},
            "flash_attention_2": True,
            "bf16_gpu": True,
            "gpus": 8,
            "modules": ["deepspeed"],
            "hub_endpoint": "http://hub",
            "hub_cache": "/cache",
            "operators": {"swiglu": {"modules": ["LlamaMLP"], "kernels": ["swiglu", "swiglu_backward"]}},
            "operators_problem": "",
        }
    )
    assert facts.fields["stage"].choices == ("sft", "pt")
    assert facts.gpus == 8
    assert facts.hub_cache == Path("/cache")
    assert facts.operators["swiglu"].kernels == ("swiglu", "swiglu_backward")
