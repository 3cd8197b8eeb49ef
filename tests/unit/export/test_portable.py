"""An exported folder that engines on an older transformers read the same way."""

from __future__ import annotations

import json
from pathlib import Path

from amdflow.export.portable import make_portable, open_up


def write(folder: Path, name: str, value: object) -> None:
    (folder / name).write_text(json.dumps(value))


def read(folder: Path, name: str) -> dict[str, object]:
    data: dict[str, object] = json.loads((folder / name).read_text())
    return data


def test_names_that_only_the_newest_version_knows_are_replaced(tmp_path: Path) -> None:
    write(tmp_path, "tokenizer_config.json", {"tokenizer_class": "TokenizersBackend", "eos_token": "x"})
    write(tmp_path, "config.json", {"rope_parameters": {"rope_theta": 100000.0, "rope_type": "default"}})
    changes = make_portable(tmp_path)
    assert len(changes) == 2
    assert read(tmp_path, "tokenizer_config.json") == {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "x"}
    assert read(tmp_path, "config.json")["rope_theta"] == 100000.0
    assert "rope_scaling" not in read(tmp_path, "config.json")
    assert make_portable(tmp_path) == []


def test_scaled_rope_keeps_its_scaling(tmp_path: Path) -> None:
    write(tmp_path, "config.json", {"rope_parameters": {"rope_theta": 5e5, "rope_type": "llama3", "factor": 8.0}})
    make_portable(tmp_path)
    assert read(tmp_path, "config.json")["rope_scaling"] == {"rope_type": "llama3", "factor": 8.0}


def test_a_folder_that_needs_nothing_is_left_alone(tmp_path: Path) -> None:
    write(tmp_path, "tokenizer_config.json", {"tokenizer_class": "Qwen2Tokenizer"})
    write(tmp_path, "config.json", {"rope_theta": 1e4})
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert make_portable(tmp_path) == []
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_weights_get_the_mode_of_their_neighbours(tmp_path: Path) -> None:
    write(tmp_path, "config.json", {})
    (tmp_path / "config.json").chmod(0o644)
    (tmp_path / "model.safetensors").touch(mode=0o600)
    open_up(tmp_path)
    assert (tmp_path / "model.safetensors").stat().st_mode & 0o777 == 0o644
