"""The export stage with the real LLaMA-Factory: a trained adapter becomes a model that computes the same."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest
import yaml

import amdflow.export
from amdflow import process
from amdflow.config import ToolchainConfig
from amdflow.errors import AmdflowError
from amdflow.export.verdict import judge
from amdflow.pipeline.manifest import Status, read_manifest
from amdflow.toolchain import Toolchain
from amdflow.weights import read_weights
from tests.conftest import CommandLine
from tests.models import make_tiny_model

TRAINING: dict[str, Any] = {
    "model_name_or_path": "model",
    "stage": "sft",
    "do_train": True,
    "finetuning_type": "lora",
    "lora_target": "all",
    "dataset": "tiny",
    "template": "smollm2",
    "cutoff_len": 64,
    "per_device_train_batch_size": 4,
    "learning_rate": 1e-2,
    "max_steps": 8,
    "use_cpu": True,
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A workspace in which finetune has run."""
    root = tmp_path_factory.mktemp("workspace")
    shutil.move(make_tiny_model(tmp_path_factory.mktemp("models")), root / "model")
    (root / "data").mkdir()
    rows = [{"instruction": f"Add {n} and {n}.", "input": "", "output": f"The sum is {2 * n}."} for n in range(16)]
    (root / "data/tiny.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (root / "data/dataset_info.json").write_text(json.dumps({"tiny": {"file_name": "tiny.jsonl"}}))
    (root / "train.yaml").write_text(yaml.safe_dump(TRAINING))
    run = CommandLine(root, {"XDG_CONFIG_HOME": str(root / "config-home")})
    done = run("finetune", "train.yaml")
    assert done.code == 0, done.err
    return run


def test_an_adapter_becomes_sharded_verified_safetensors(trained: CommandLine) -> None:
    done = trained("export", "--shard-size", "0.0005", "--name", "sums")
    assert done.code == 0, done.err
    manifest = read_manifest(trained.folder / "out/export/manifest.json")
    assert manifest.status is Status.OK
    assert manifest.upstream is not None
    assert manifest.upstream.stage == "finetune"
    assert manifest.handoff["name"] == "sums"
    assert manifest.handoff["template"] == "smollm2"
    assert manifest.handoff["probe"]["prompt"]
    assert manifest.metrics["shards"] >= 3
    assert manifest.metrics["dtypes"] == {"bfloat16": manifest.metrics["tensors"]}
    logits = manifest.metrics["logits"]
    assert 0 < logits["relative"] < logits["tolerance"] < manifest.metrics["adapter_effect"]
    model = trained.folder / "out/export/model"
    weights = read_weights(model)
    assert weights is not None
    assert len(weights.shards) == manifest.metrics["shards"]
    for name in ("config.json", "generation_config.json", "tokenizer.json", "chat_template.jinja"):
        assert (model / name).is_file(), name
    assert json.loads((model / "tokenizer_config.json").read_text())["tokenizer_class"] == "PreTrainedTokenizerFast"
    assert all(path.stat().st_mode & 0o044 for path in weights.shards), "others may read it"
    assert "skipped" in trained("export", "--shard-size", "0.0005", "--name", "sums").err


def test_named_folders_are_exported_without_a_pipeline(trained: CommandLine) -> None:
    training = trained.folder / "out/finetune/training"
    done = trained(
        "export",
        "--adapter",
        training,
        "--model",
        "model",
        "--dtype",
        "float32",
        "--output",
        "flat",
        "--format",
        "json",
    )
    assert done.code == 0, done.err
    assert done.json["metrics"]["logits"]["relative"] < 0.001
    assert (trained.folder / "flat/model.safetensors").is_file()
    assert (trained.folder / "flat/amdflow-report/manifest.json").is_file()


def test_an_adapter_with_a_nan_is_refused_by_tensor(trained: CommandLine) -> None:
    spoilt = trained.folder / "spoilt"
    shutil.copytree(trained.folder / "out/finetune/training", spoilt, ignore=shutil.ignore_patterns("checkpoint-*"))
    weights = spoilt / "adapter_model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-4:] = struct.pack("<f", float("nan"))
    weights.write_bytes(data)
    done = trained("export", "--adapter", spoilt, "--model", "model", "--output", "never")
    assert done.code == 1
    assert "holds NaN or infinite values" in done.err
    assert not (trained.folder / "never/config.json").exists()


def test_the_check_tells_an_unmerged_model_from_a_merged_one(trained: CommandLine, tmp_path: Path) -> None:
    python = Toolchain(ToolchainConfig()).engine("finetune").python
    script = Path(amdflow.export.__file__).parent / "inside/check.py"
    job = {
        "model": str(trained.folder / "model"),
        "base": str(trained.folder / "model"),
        "adapter": str(trained.folder / "out/finetune/training"),
        "prompts": ["Add 3 and 3."],
        "probe": "Add 3 and 3.",
        "trust_remote_code": False,
        "result": str(tmp_path / "found.json"),
    }
    (tmp_path / "job.json").write_text(json.dumps(job))
    process.run([str(python), str(script), str(tmp_path / "job.json")], timeout=300)
    found = json.loads((tmp_path / "found.json").read_text())
    with pytest.raises(AmdflowError, match="does not compute what was trained"):
        judge(found, "bfloat16", adapter=True)
