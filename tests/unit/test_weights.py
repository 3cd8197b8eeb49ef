"""SafeTensors files on disk: whole, cut short, mislabelled."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from amdflow.errors import UsageError
from amdflow.weights import INDEX_NAME, check_model_folder, read_header, read_weights
from tests.unit.finetune.workshop import make_model, write_tensors


def sharded(folder: Path) -> Path:
    folder.mkdir()
    write_tensors(folder / "model-00001-of-00002.safetensors", {"a": (2, 3)})
    write_tensors(folder / "model-00002-of-00002.safetensors", {"b": (4,)})
    places = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    (folder / INDEX_NAME).write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return folder


def test_a_whole_file_gives_its_tensors(tmp_path: Path) -> None:
    tensors = read_header(write_tensors(tmp_path / "m.safetensors", {"x": (2, 3), "scalar": ()}))
    assert tensors["x"].shape == (2, 3)
    assert tensors["x"].bytes == 24
    assert tensors["scalar"].bytes == 4


@pytest.mark.parametrize("size", [0, 5, 40, 130])
def test_a_truncated_file_is_refused_by_name(tmp_path: Path, size: int) -> None:
    path = write_tensors(tmp_path / "m.safetensors", {"x": (64,)})
    os.truncate(path, size)
    with pytest.raises(UsageError, match=r"m\.safetensors"):
        read_header(path)


def test_a_file_with_too_much_behind_it_is_refused(tmp_path: Path) -> None:
    path = write_tensors(tmp_path / "m.safetensors", {"x": (4,)})
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(UsageError, match="longer than it says"):
        read_header(path)


def test_a_shape_that_does_not_fit_its_bytes_is_refused(tmp_path: Path) -> None:
    path = write_tensors(tmp_path / "m.safetensors", {"x": (4,)})
    path.write_bytes(path.read_bytes().replace(b'"shape": [4]', b'"shape": [9]'))
    with pytest.raises(UsageError, match="tensor x does not fit"):
        read_header(path)


def test_text_that_is_no_header_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    with pytest.raises(UsageError, match="not a complete SafeTensors file"):
        read_header(path)


def test_shards_are_read_through_their_index(tmp_path: Path) -> None:
    weights = read_weights(sharded(tmp_path / "m"))
    assert weights is not None
    assert weights.parameters == 10
    assert weights.bytes == 40
    assert len(weights.shards) == 2


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    folder = sharded(tmp_path / "m")
    (folder / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(UsageError, match=r"shard model-00002-of-00002\.safetensors is missing"):
        read_weights(folder)


def test_a_tensor_that_the_index_promises_must_be_there(tmp_path: Path) -> None:
    folder = sharded(tmp_path / "m")
    write_tensors(folder / "model-00002-of-00002.safetensors", {"other": (4,)})
    with pytest.raises(UsageError, match="lacks the tensor b"):
        read_weights(folder)


def test_an_index_may_not_name_files_elsewhere(tmp_path: Path) -> None:
    folder = sharded(tmp_path / "m")
    (folder / INDEX_NAME).write_text(json.dumps({"weight_map": {"a": "../outside.safetensors"}}))
    with pytest.raises(UsageError, match="not a file beside it"):
        read_weights(folder)


@pytest.mark.parametrize(
    ("missing", "complaint"),
    [("config.json", "no config.json"), ("tokenizer.json", "no tokenizer"), ("model.safetensors", "no weights")],
)
def test_a_model_folder_must_have_its_parts(tmp_path: Path, missing: str, complaint: str) -> None:
    folder = make_model(tmp_path / "m")
    check_model_folder(folder)
    (folder / missing).unlink()
    with pytest.raises(UsageError, match=complaint):
        check_model_folder(folder)
