"""What tests of trainings share: a random Llama and a folder that is ready to train it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import CommandLine
from tests.models import make_tiny_model

TRAINING: dict[str, Any] = {
    "model_name_or_path": "model",
    "stage": "sft",
    "do_train": True,
    "finetuning_type": "lora",
    "lora_rank": 4,
    "lora_target": "all",
    "dataset_dir": "data",
    "dataset": "tiny",
    "template": "smollm2",
    "cutoff_len": 64,
    "output_dir": "saves/somewhere",
    "logging_steps": 5,
    "save_steps": 3,
    "per_device_train_batch_size": 2,
    "learning_rate": 1e-3,
    "max_steps": 6,
    "use_cpu": True,
}


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("models"))


@pytest.fixture
def trainer(amdflow: CommandLine, tiny_model: Path) -> CommandLine:
    """The command line in a folder with a model, twelve rows of data and train.yaml."""
    root = amdflow.folder
    shutil.copytree(tiny_model, root / "model")
    (root / "data").mkdir()
    rows = [{"instruction": f"Add {n} and {n}.", "input": "", "output": f"The sum is {2 * n}."} for n in range(12)]
    (root / "data/tiny.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (root / "data/dataset_info.json").write_text(json.dumps({"tiny": {"file_name": "tiny.jsonl"}}))
    (root / "train.yaml").write_text(yaml.safe_dump(TRAINING))
    return amdflow
