"""From a path to a checked model directory: every form a path may take, and every way a directory may be wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from amdflow.errors import AmdflowError, UsageError
from amdflow.pipeline.manifest import Status, Upstream
from amdflow.serve.model import Location, inspect, locate
from tests.unit.serve.conftest import write_export, write_model, write_safetensors


def test_a_plain_directory_is_named_after_its_folder(model: Path) -> None:
    place = locate(model, None)
    assert (place.folder, place.name, place.probe) == (model, "some-model", "")


@pytest.mark.parametrize("named", ["out", "out/export", "out/export/manifest.json", "out/export/model"])
def test_an_export_is_found_from_workdir_stage_manifest_and_model(tmp_path: Path, named: str) -> None:
    write_export(tmp_path / "out/export")
    write_model(tmp_path / "out/export/model")
    place = locate(tmp_path / named, None)
    assert place.folder == tmp_path / "out/export/model"
    assert (place.name, place.probe) == ("tuned", "What is a wavefront?")


def test_an_export_delivered_with_output_is_found_from_its_folder(tmp_path: Path) -> None:
    write_model(tmp_path / "delivered")
    write_export(tmp_path / "delivered/amdflow-report", model="..")
    place = locate(tmp_path / "delivered", None)
    assert (place.folder, place.name) == (tmp_path / "delivered", "tuned")


def test_without_a_path_the_upstream_manifest_counts(tmp_path: Path) -> None:
    path = write_export(tmp_path / "out/export")
    write_model(tmp_path / "out/export/model")
    assert locate(None, Upstream.read(path)).name == "tuned"
    with pytest.raises(UsageError, match="no model to serve") as caught:
        locate(None, None)
    assert "amdflow export" in caught.value.hint


def test_a_manifest_may_not_lead_out_of_its_folder(tmp_path: Path) -> None:
    write_model(tmp_path / "elsewhere")
    write_export(tmp_path / "out/export", model="../../elsewhere")
    with pytest.raises(UsageError, match="leaves"):
        locate(tmp_path / "out", None)


def test_manifests_of_other_stages_and_failed_exports_are_refused(tmp_path: Path) -> None:
    write_export(tmp_path / "tuned", stage="finetune")
    with pytest.raises(UsageError, match="manifest of finetune, not of export"):
        locate(tmp_path / "tuned", None)
    write_export(tmp_path / "failed", status=Status.FAILED)
    with pytest.raises(AmdflowError, match="export did not end well"):
        locate(tmp_path / "failed", None)
    write_export(tmp_path / "gone")
    with pytest.raises(UsageError, match="which is not there"):
        locate(tmp_path / "gone", None)


def test_what_is_not_a_model_is_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such model directory"):
        locate(tmp_path / "nothing", None)
    with pytest.raises(UsageError) as caught:
        locate(tmp_path / "Qwen/Qwen3-0.6B", None)
    assert "Qwen/Qwen3-0.6B" in caught.value.hint
    (tmp_path / "weights.gguf").write_text("")
    with pytest.raises(UsageError, match="is a file, not a model directory"):
        locate(tmp_path / "weights.gguf", None)
    (tmp_path / "adapter").mkdir()
    (tmp_path / "adapter/adapter_config.json").write_text("{}")
    with pytest.raises(UsageError, match="LoRA adapter") as caught:
        locate(tmp_path / "adapter", None)
    assert "amdflow export" in caught.value.hint
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="not a model directory"):
        locate(tmp_path / "empty", None)


def test_a_good_directory(model: Path) -> None:
    found = inspect(Location(model, "m"))
    assert (found.architecture, found.context, found.chat_template, found.weights.bytes) == (
        "LlamaForCausalLM",
        512,
        True,
        16,
    )
    assert [file.name for file in found.small_files] == ["config.json", "tokenizer_config.json", "tokenizer.json"]


def test_a_context_length_inside_text_config_counts(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "vision", max_position_embeddings=None, text_config={"max_position_embeddings": 99})
    assert inspect(Location(folder, "m")).context == 99


@pytest.mark.parametrize("where", ["chat_template.jinja", "tokenizer_config.json", "nowhere"])
def test_the_chat_template_is_looked_for_in_both_places(model: Path, where: str) -> None:
    (model / "tokenizer_config.json").write_text(
        json.dumps({"chat_template": "x"} if where == "tokenizer_config.json" else {})
    )
    if where == "chat_template.jinja":
        (model / where).write_text("x")
    assert inspect(Location(model, "m")).chat_template is (where != "nowhere")


def test_truncated_missing_and_foreign_weights_are_named(model: Path) -> None:
    write_safetensors(model / "model.safetensors", cut=5)
    with pytest.raises(UsageError, match=r"model\.safetensors is truncated.* 16 bytes of tensors, 11 are there"):
        inspect(Location(model, "m"))
    (model / "model.safetensors").unlink()
    (model / "pytorch_model.bin").write_text("")
    with pytest.raises(UsageError, match=r"no SafeTensors weights; pytorch_model\.bin is there"):
        inspect(Location(model, "m"))
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (model / "model.safetensors.index.json").write_text(json.dumps(index))
    write_safetensors(model / "model-00001-of-00002.safetensors", ("a",))
    with pytest.raises(UsageError, match="shard model-00002-of-00002"):
        inspect(Location(model, "m"))


def test_a_torn_config_and_a_missing_tokenizer_are_named(model: Path) -> None:
    (model / "tokenizer.json").unlink()
    with pytest.raises(UsageError, match="no tokenizer"):
        inspect(Location(model, "m"))
    (model / "config.json").write_text('{"architectures": [')
    with pytest.raises(UsageError, match=r"config\.json is not valid JSON"):
        inspect(Location(model, "m"))
    (model / "config.json").write_text("[]")
    with pytest.raises(UsageError, match="holds no mapping"):
        inspect(Location(model, "m"))
