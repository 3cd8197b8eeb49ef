"""What is exported: named folders, or what finetune handed over."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from amdflow.errors import AmdflowError, UsageError
from amdflow.export.config import ExportConfig
from amdflow.export.source import Source, find_source
from amdflow.pipeline.manifest import Artifact, Manifest, Status, Timing, Upstream
from amdflow.pipeline.stage import Request
from amdflow.terminal import Terminal
from tests.unit.finetune.workshop import make_model, write_tensors


def make_adapter(folder: Path, base: str = "model") -> Path:
    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": base}))
    write_tensors(folder / "adapter_model.safetensors", {"lora_A": (4, 4)})
    return folder


def find(root: Path, upstream: Upstream | None = None, **config: Any) -> Source:
    return find_source(Request(ExportConfig(**config), root, (), upstream, Terminal()))


def finetuned(root: Path, *, kind: str = "adapter", **handoff: Any) -> Upstream:
    """A finetune manifest in ``root/out/finetune``."""
    folder = root / "out/finetune"
    training = folder / "training"
    if kind == "adapter":
        make_adapter(training)
        names = ["adapter_config.json", "adapter_model.safetensors"]
    else:
        make_model(training)
        names = ["config.json", "model.safetensors"]
    outputs = [
        Artifact(name=name, path=f"training/{name}", sha256="0", size=(training / name).stat().st_size, role=kind)
        for name in names
    ]
    handed = {
        "base_model": "model",
        "base_name": "tiny",
        "finetuning_type": "lora",
        "template": "smollm2",
        "adapter": None,
        "model": None,
    }
    manifest = Manifest(
        stage="finetune", stage_version=1, run_id="r", amdflow="0", status=Status.OK, exit_code=0, key="k", outputs=outputs,
        timing=Timing(started="", ended="", seconds=0), handoff=handed | {kind: "training"} | handoff,
    )  # fmt: skip
    return Upstream(folder / "manifest.json", manifest, root=root)


def test_finetunes_adapter_and_base_model_are_taken(tmp_path: Path) -> None:
    make_model(tmp_path / "model")
    source = find(tmp_path, finetuned(tmp_path))
    assert source.model == str(tmp_path / "model")
    assert source.adapter == tmp_path / "out/finetune/training"
    assert source.template == "smollm2"
    assert source.name == "tiny-lora"
    assert {item.name for item in source.inputs} >= {"adapter/adapter_model.safetensors", "model/model.safetensors"}


def test_a_full_training_is_exported_as_it_is(tmp_path: Path) -> None:
    source = find(tmp_path, finetuned(tmp_path, kind="model", finetuning_type="full"))
    assert source.model == str(tmp_path / "out/finetune/training")
    assert source.adapter is None
    assert source.name == "tiny-full"


def test_named_folders_win_and_the_adapter_names_its_base(tmp_path: Path) -> None:
    model = make_model(tmp_path / "base")
    adapter = make_adapter(tmp_path / "mine", base=str(model))
    source = find(tmp_path, adapter=str(adapter), name="flow")
    assert source.model == str(model)
    assert source.name == "flow"


def test_with_nothing_to_export_the_next_command_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to export") as caught:
        find(tmp_path)
    assert "amdflow finetune" in caught.value.hint


@pytest.mark.parametrize(
    ("handoff", "complaint"),
    [
        ({"base_model": "../elsewhere"}, "leaves"),
        ({"base_model": "gone"}, "base model of the training is gone"),
        ({"base_model": None}, "does not say what was trained"),
        ({"trust_remote_code": True}, "trust_remote_code"),
    ],
)
def test_a_handoff_that_cannot_be_followed_is_refused(tmp_path: Path, handoff: dict[str, Any], complaint: str) -> None:
    make_model(tmp_path / "model")
    with pytest.raises(UsageError, match=complaint):
        find(tmp_path, finetuned(tmp_path, **handoff))


def test_remote_code_runs_only_when_export_is_told_so_too(tmp_path: Path) -> None:
    make_model(tmp_path / "model")
    assert find(tmp_path, finetuned(tmp_path, trust_remote_code=True), trust_remote_code=True).adapter


def test_an_adapter_that_is_gone_or_cut_short_is_named(tmp_path: Path) -> None:
    make_model(tmp_path / "model")
    upstream = finetuned(tmp_path)
    weights = tmp_path / "out/finetune/training/adapter_model.safetensors"
    os.truncate(weights, weights.stat().st_size - 1)
    with pytest.raises(UsageError, match=r"adapter_model\.safetensors is truncated"):
        find(tmp_path, upstream)
    weights.unlink()
    with pytest.raises(AmdflowError, match="gone|no adapter_model"):
        find(tmp_path, upstream)


def test_a_folder_that_is_no_adapter_is_refused(tmp_path: Path) -> None:
    make_model(tmp_path / "model")
    with pytest.raises(UsageError, match="adapter_config"):
        find(tmp_path, adapter="model", model="model")
    make_adapter(tmp_path / "a,b")
    with pytest.raises(UsageError, match="comma"):
        find(tmp_path, adapter="a,b", model="model")
