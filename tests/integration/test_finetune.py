"""The finetune stage with the real LLaMA-Factory and a random Llama of 0.7 million parameters."""

from __future__ import annotations

import json
import os
import shutil
import signal
from typing import Any

import pytest

from amdflow.pipeline.manifest import Manifest, Status, find_manifest, read_manifest
from tests.conftest import CommandLine, until

pytestmark = pytest.mark.usefixtures("no_orphans")


def manifest_of(trainer: CommandLine, name: str = "manifest.json") -> Manifest:
    return read_manifest(trainer.folder / "out/finetune" / name)


def events_of(trainer: CommandLine) -> list[dict[str, Any]]:
    paths = [
        *trainer.folder.glob("out/.amdflow/scratch/finetune-*/events.jsonl"),
        *trainer.folder.glob("out/finetune/events.jsonl"),
    ]
    return [json.loads(line) for line in paths[0].read_text().splitlines()] if paths else []


def test_a_lora_training_leaves_an_adapter_figures_and_a_fresh_manifest(trainer: CommandLine) -> None:
    done = trainer("finetune", "train.yaml")
    assert done.code == 0, done.err
    assert "output_dir saves/somewhere is replaced" in done.err
    assert not (trainer.folder / "saves").exists()
    manifest = manifest_of(trainer)
    assert manifest.status is Status.OK
    assert {artifact.role for artifact in manifest.outputs} >= {"adapter", "log", "metrics"}
    assert manifest.handoff["base_model"] == "model"
    assert manifest.handoff["adapter"] == "training"
    assert manifest.handoff["template"] == "smollm2"
    assert manifest.metrics["steps"] == 6
    assert [step for step, _loss in manifest.metrics["loss"]] == [1, 2, 3, 4, 5, 6]
    assert manifest.metrics["tokens"] > 0
    adapter = trainer.folder / "out/finetune/training/adapter_model.safetensors"
    assert adapter.stat().st_mode & 0o044, "others may read it"

    again = trainer("finetune", "train.yaml")
    assert again.code == 0
    assert "skipped" in again.err
    changed = trainer("finetune", "train.yaml", "learning_rate=2e-3", "--dry-run")
    assert "config learning_rate changed: 0.001 -> 0.002" in changed.err
    (trainer.folder / "data/tiny.jsonl").write_text('{"instruction": "a", "input": "", "output": "b"}\n')
    assert "input file data/tiny/tiny.jsonl changed" in trainer("finetune", "train.yaml", "--dry-run").err


def test_a_loss_that_is_not_finite_ends_the_training_and_names_the_step(trainer: CommandLine) -> None:
    done = trainer("finetune", "train.yaml", "learning_rate=1e30", "max_grad_norm=0")
    assert done.code == 1
    assert "training stopped at step 2: the loss is nan" in done.err
    assert manifest_of(trainer).status is Status.FAILED
    assert not (trainer.folder / "out/finetune/training").exists()


def test_weights_spoilt_by_the_last_step_are_noticed(trainer: CommandLine) -> None:
    done = trainer("finetune", "train.yaml", "learning_rate=1e39", "max_grad_norm=0", "max_steps=1", "optim=sgd")
    assert done.code == 1
    assert "step 1" in done.err


def test_sigterm_saves_a_checkpoint_and_the_same_command_goes_on_from_it(trainer: CommandLine) -> None:
    long = ("finetune", "train.yaml", "max_steps=30", "save_steps=1000")
    running = trainer.start(*long)
    until(lambda: any(event.get("step", 0) >= 4 for event in events_of(trainer)), seconds=180, what="the fourth step")
    running.send_signal(signal.SIGTERM)
    assert running.wait(timeout=120) == 143
    assert manifest_of(trainer).status is Status.CANCELLED
    stopped = [event for event in events_of(trainer) if event["event"] == "checkpoint"][-1]["step"]

    again = trainer(*long)
    assert again.code == 0, again.err
    assert f"going on from step {stopped} of the interrupted attempt" in again.err
    metrics = manifest_of(trainer).metrics
    assert metrics["resumed_from"] == stopped
    assert [step for step, _loss in metrics["loss"]] == list(range(1, 31))


def test_a_checkpoint_cut_off_by_a_kill_is_dropped_and_the_one_before_is_used(trainer: CommandLine) -> None:
    long = ("finetune", "train.yaml", "max_steps=12", "save_steps=2")
    running = trainer.start(*long)
    until(lambda: any(event.get("step", 0) >= 5 for event in events_of(trainer)), seconds=180, what="the fifth step")
    running.kill()
    running.wait()
    payload = next(trainer.folder.glob("out/.amdflow/scratch/finetune-*/training"))
    checkpoints = sorted(payload.glob("checkpoint-*"), key=lambda path: int(path.name[11:]))
    whole = checkpoints[-2] if len(checkpoints) > 2 else checkpoints[0]
    torn = payload / "checkpoint-11"
    shutil.copytree(whole, torn)
    os.truncate(torn / "trainer_state.json", 10)

    again = trainer(*long)
    assert again.code == 0, again.err
    assert "checkpoint-11 was not written to its end" in again.err
    assert "going on from step" in again.err
    assert manifest_of(trainer).metrics["steps"] == 12


def test_two_processes_stop_together_and_go_on_together(trainer: CommandLine) -> None:
    long = ("finetune", "train.yaml", "max_steps=40", "save_steps=1000", "--processes", "2")
    running = trainer.start(*long)
    until(lambda: any(event.get("step", 0) >= 4 for event in events_of(trainer)), seconds=240, what="the fourth step")
    running.send_signal(signal.SIGTERM)
    assert running.wait(timeout=120) == 143
    stopped = [event for event in events_of(trainer) if event["event"] == "checkpoint"][-1]["step"]

    again = trainer(*long)
    assert again.code == 0, again.err
    metrics = manifest_of(trainer).metrics
    assert metrics["processes"] == 2
    assert metrics["resumed_from"] == stopped
    assert [step for step, _loss in metrics["loss"]] == list(range(1, 41))


def test_a_full_training_leaves_a_model(trainer: CommandLine) -> None:
    done = trainer("finetune", "train.yaml", "finetuning_type=full", "max_steps=2", "bf16=true", "--output", "tuned")
    assert done.code == 0, done.err
    assert (trainer.folder / "tuned/model.safetensors").is_file()
    manifest = find_manifest(trainer.folder / "tuned/amdflow-report/manifest.json")
    assert manifest is not None
    assert manifest.handoff["model"] == "..", "relative to the manifest, wherever the result was delivered"
    assert not (trainer.folder / "tuned/training_args.bin").exists()


def test_what_llama_factory_refuses_is_said_in_one_line(trainer: CommandLine) -> None:
    # A combination that only the engine knows to be wrong.
    done = trainer("finetune", "train.yaml", "neat_packing=true", "stage=pt", "template=default")
    assert done.code == 1
    assert "LLaMA-Factory stopped" in done.err


def test_the_engine_in_use_is_asked_what_it_accepts(trainer: CommandLine) -> None:
    done = trainer("finetune", "train.yaml", "lerning_rate=1")
    assert done.code == 2
    assert "unknown key 'lerning_rate' (did you mean learning_rate?)" in done.err
