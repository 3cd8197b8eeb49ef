"""Which checkpoint a training goes on from."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import pytest

from amdflow.finetune.checkpoints import is_complete, last_complete, trim_log
from tests.unit.finetune.workshop import write_tensors


def make_checkpoint(payload: Path, step: int) -> Path:
    folder = payload / f"checkpoint-{step}"
    folder.mkdir(parents=True)
    write_tensors(folder / "adapter_model.safetensors", {"lora_A": (4, 4)})
    with zipfile.ZipFile(folder / "optimizer.pt", "w") as archive:
        archive.writestr("data", "x" * 100)
    (folder / "scheduler.pt").write_bytes(b"s")
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    return folder


def test_the_newest_complete_one_is_taken_by_number_not_by_name(tmp_path: Path) -> None:
    for step in (5, 10, 100):
        make_checkpoint(tmp_path, step)
    (tmp_path / "checkpoint-final").mkdir()
    best, removed = last_complete(tmp_path)
    assert best == tmp_path / "checkpoint-100"
    assert removed == []


@pytest.mark.parametrize("name", ["trainer_state.json", "adapter_model.safetensors", "optimizer.pt"])
@pytest.mark.parametrize("harm", ["missing", "cut"])
def test_one_cut_off_while_being_written_is_removed(tmp_path: Path, name: str, harm: str) -> None:
    good = make_checkpoint(tmp_path, 5)
    torn = make_checkpoint(tmp_path, 10)
    if harm == "missing":
        (torn / name).unlink()
    else:
        os.truncate(torn / name, (torn / name).stat().st_size // 2)
    assert last_complete(tmp_path) == (good, [torn])
    assert not torn.exists()


def test_a_state_of_another_step_does_not_count(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path, 10)
    (folder / "trainer_state.json").write_text('{"global_step": 5}')
    assert not is_complete(folder)


def test_optimizers_of_fsdp_and_deepspeed_are_recognized(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path, 10)
    (folder / "optimizer.pt").rename(folder / "optimizer.bin")
    assert is_complete(folder)
    (folder / "optimizer.bin").unlink()
    assert not is_complete(folder)
    (folder / "global_step10").mkdir()
    assert is_complete(folder)


def test_without_any_there_is_none(tmp_path: Path) -> None:
    assert last_complete(tmp_path) == (None, [])


def test_log_lines_after_the_checkpoint_are_dropped(tmp_path: Path) -> None:
    lines = [json.dumps({"current_steps": step, "loss": 1.0}) for step in (2, 4, 6)]
    (tmp_path / "trainer_log.jsonl").write_text("\n".join([*lines, '{"current_st']))
    trim_log(tmp_path, 4)
    assert (tmp_path / "trainer_log.jsonl").read_text() == f"{lines[0]}\n{lines[1]}\n"
