"""What is checked before a training starts, and what its freshness depends on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from amdflow.errors import AmdflowError, EnvironmentProblem, UsageError
from amdflow.finetune.engine import EngineFacts
from amdflow.finetune.planning import Job, check_job, describe, inputs_of
from tests.unit.finetune.workshop import GOOD_ROW, facts, make_data, make_model


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    make_model(tmp_path / "model")
    make_data(tmp_path / "data", [GOOD_ROW])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def plan(workspace: Path, *, gpu: bool = False, engine: EngineFacts | None = None, **changes: Any) -> Job:
    values = {
        "model_name_or_path": "model",
        "dataset": "tiny",
        "do_train": True,
        "learning_rate": 1e-4,
        "template": "smollm2",
    }
    return check_job(workspace / "train.yaml", values | changes, engine or facts(), workspace, gpu=gpu)


def test_a_good_config_becomes_a_job(workspace: Path) -> None:
    job = plan(workspace)
    assert job.rows == 1
    assert job.local
    assert job.base.name == "model"
    assert job.args["model_name_or_path"] == str(workspace / "model")


def test_the_users_output_dir_is_replaced_and_said_so(workspace: Path) -> None:
    job = plan(workspace, output_dir="saves/x")
    assert "output_dir" not in job.args
    assert any("output_dir saves/x is replaced" in note for note in job.notes)


def test_paths_are_found_from_the_workspace_and_from_the_configs_folder(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    job = plan(workspace)
    assert job.args["dataset_dir"] == str(workspace / "data")
    assert any("model is taken relative to the workspace" in note for note in job.notes)
    make_model(workspace / "recipes" / "own-model")
    values = {"model_name_or_path": "own-model", "dataset": "tiny", "dataset_dir": "data", "do_train": True}
    job = check_job(workspace / "recipes" / "train.yaml", values, facts(), workspace, gpu=False)
    assert any("own-model is taken relative to the folder of train.yaml" in note for note in job.notes)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"template": "smollm"}, r"template 'smollm' is not known \(did you mean smollm2\?\)"),
        ({"flash_attn": "fa2"}, "flash_attn: fa2 needs the package flash-attn"),
        ({"flash_attn": "fa3"}, "flash_attn: fa3 is not available"),
        ({"bf16": True}, "bf16 without a GPU needs use_cpu: true"),
        ({"fp16": True}, "fp16 needs a GPU"),
        ({"pure_bf16": True, "use_cpu": True}, "pure_bf16 needs a GPU"),
        ({"quantization_bit": 4}, "quantization_bit needs the package bitsandbytes"),
        ({"deepspeed": "ds.json"}, "deepspeed needs the package deepspeed"),
        ({"report_to": "wandb"}, "report_to: wandb needs the package wandb"),
        ({"report_to": ["tensorboard"]}, "report_to: tensorboard needs"),
        ({"dataset": "tinny"}, "has no dataset 'tinny'"),
        ({"dataset_dir": "nowhere"}, "no such folder: nowhere"),
        ({"model_name_or_path": "./nowhere"}, "no such folder: ./nowhere"),
        ({"resume_from_checkpoint": "data"}, "is not a complete checkpoint"),
    ],
)
def test_what_would_stop_or_mislead_the_engine_is_refused(
    workspace: Path, changes: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(AmdflowError, match=complaint):
        plan(workspace, **changes)


def test_a_gpu_lifts_what_only_a_cpu_cannot_do(workspace: Path) -> None:
    assert plan(workspace, gpu=True, bf16=True, flash_attn="fa2", engine=facts(flash_attention_2=True)).rows == 1


def test_a_hub_id_out_of_reach_is_an_environment_problem(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EnvironmentProblem, match="out of reach"):
        plan(workspace, model_name_or_path="owner/some-model")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(EnvironmentProblem, match="HF_HUB_OFFLINE is set"):
        plan(workspace, model_name_or_path="owner/some-model")


def test_a_hub_model_that_is_already_here_needs_no_network(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "hub/models--owner--some-model/snapshots/abc").mkdir(parents=True)
    job = plan(workspace, model_name_or_path="owner/some-model", engine=facts(hub_cache=tmp_path / "hub"))
    assert job.base.folder is None
    assert not job.local


def test_a_truncated_base_model_is_refused(workspace: Path) -> None:
    weights = workspace / "model/model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    with pytest.raises(UsageError, match=r"model\.safetensors is truncated"):
        plan(workspace)


def test_freshness_sees_values_data_and_model_but_not_where_the_workspace_is(workspace: Path) -> None:
    job = plan(workspace)
    config = describe(job, workspace)
    assert config["learning_rate"] == 1e-4
    assert config["model_name_or_path"] == "model"
    assert config["dataset_info"] == {"tiny": {"file_name": "tiny.jsonl"}}
    assert str(workspace) not in str(config)
    names = {item.name for item in inputs_of(job, workspace)}
    assert {"model/model.safetensors", "model/config.json", "data/tiny/tiny.jsonl"} <= names


def test_a_file_with_settings_is_an_input(workspace: Path) -> None:
    (workspace / "ds.json").write_text("{}")
    job = plan(workspace, deepspeed="ds.json", engine=facts(modules=frozenset({"deepspeed"})))
    assert "deepspeed/ds.json" in {item.name for item in inputs_of(job, workspace)}
