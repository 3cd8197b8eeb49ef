"""Custom operators in the real LLaMA-Factory: TileLang's kernels as C code in a random Llama of four layers on the CPU."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from amdflow.content import shipped
from amdflow.pipeline.manifest import read_manifest
from tests.conftest import CommandLine

pytestmark = pytest.mark.usefixtures("no_orphans")

CLOSE = 1e-3
LAYERS = 4


def result_of(trainer: CommandLine, name: str) -> Any:
    return json.loads((trainer.folder / "out/finetune" / name).read_text())


def test_each_operator_and_all_together_train_as_without(trainer: CommandLine) -> None:
    choice = "kernels={rms_norm: all, swiglu: 'layers[.][0-2][.]mlp'}"
    done = trainer("finetune", "train.yaml", choice, "--ablate", "--ablate-steps", "5", "--format", "json")
    assert done.code == 0, done.err
    assert "they say nothing about a GPU" in done.err
    assert done.json["device"] == "cpu"
    trials = {trial["name"]: trial for trial in done.json["trials"]}
    assert list(trials) == ["none", "rms_norm", "swiglu", "all together"]
    assert [trial["operators"] for trial in trials.values()] == [
        [],
        ["rms_norm"],
        ["swiglu"],
        ["rms_norm", "swiglu"],
    ]
    losses = [trial["losses"] for trial in trials.values()]
    assert losses[0][0] > losses[0][-1], "it learns"
    for trial in trials.values():
        assert len(trial["losses"]) == 5
        assert trial["losses"] == pytest.approx(trials["none"]["losses"], rel=CLOSE)
        assert trial["loss_difference"] <= CLOSE
        assert trial["step_ms"] > 0
        assert trial["peak_mb"] > 100
    assert trials["none"]["calls"] == 0
    # the last norm stands behind the checkpointed layers: it runs once a step, the others run again for the backward pass
    assert trials["rms_norm"]["calls"] == 5 * (2 * 2 * LAYERS + 1)
    assert trials["swiglu"]["calls"] == 5 * 2 * 3
    assert trials["all together"]["calls"] == trials["rms_norm"]["calls"] + trials["swiglu"]["calls"]
    assert not (trainer.folder / "out/finetune").exists(), "nothing is left that looks like a result"
    assert not (trainer.folder / "out/.amdflow/ablation").exists()


def test_chosen_layers_use_their_operator_and_only_they(trainer: CommandLine) -> None:
    own = trainer.folder / "kernels"
    own.mkdir()
    (own / "swiglu.py").write_bytes((shipped("kernels") / "swiglu.py").read_bytes())
    choice = "kernels={swiglu: 'layers[.](1|3)[.]mlp'}"
    done = trainer("finetune", "train.yaml", choice, "max_steps=3")
    assert done.code == 0, done.err
    assert "custom operators: swiglu in 2 modules" in done.err
    assert re.search(r"swiglu +12 calls in 2 modules: kernels/swiglu.py", done.out)

    (used,) = result_of(trainer, "operators.json")["operators"]
    assert used["modules"] == {f"base_model.model.model.layers.{layer}.mlp": 3 * 2 for layer in (1, 3)}
    assert used["kernels"] == {
        "swiglu": "kernels/swiglu.py",
        "swiglu_backward": "kernels/swiglu_backward.py (shipped)",
    }
    called = result_of(trainer, "operators.json")["kernels"]
    assert {name.split()[0] for name in called} == {"swiglu", "swiglu_backward"}
    manifest = read_manifest(trainer.folder / "out/finetune/manifest.json")
    assert manifest.metrics["operators"][0]["calls"] == 12
    assert manifest.metrics["operators"][0]["compiled_at_first_use"] == len(called)
    assert manifest.toolchain["tilelang"]
    assert "kernels/swiglu.py" in {item.name for item in manifest.inputs}

    same = trainer("finetune", "train.yaml", choice, "max_steps=3", "--dry-run")
    assert "would be skipped" in same.err
    (own / "rms_norm.py").write_text("# not in use here\n")
    assert "would be skipped" in trainer("finetune", "train.yaml", choice, "max_steps=3", "--dry-run").err
    (own / "swiglu.py").write_text((own / "swiglu.py").read_text() + "# edited\n")
    edited = trainer("finetune", "train.yaml", choice, "max_steps=3", "--dry-run")
    assert "input file kernels/swiglu.py changed" in edited.err
    off = trainer("finetune", "train.yaml", "max_steps=3", "--dry-run")
    assert "config kernels.swiglu is gone" in off.err


def test_an_operator_that_finds_no_module_ends_it_before_the_first_step(trainer: CommandLine) -> None:
    done = trainer("finetune", "train.yaml", "kernels={swiglu: 'encoder[.]'}")
    assert done.code == 1
    assert "custom operators: swiglu: 'encoder[.]' finds none of the modules it can replace" in done.err
    assert re.search(r"names look like \S+layers\.0\.", done.err)
    assert "training: 1/" not in done.err


def test_a_plan_says_what_is_built_and_how_to_switch_it_on(trainer: CommandLine, tmp_path: Path) -> None:
    handed = {
        "schema": "amdflow/manifest", "version": "1.0", "stage": "kernels", "stage_version": 1, "run_id": "r", "attempt": 1,
        "amdflow": "0", "status": "ok", "exit_code": 0, "key": "k",
        "handoff": {"ops": {name: {"gfx942": {"variants": []}} for name in ("swiglu", "swiglu_backward")}},
        "timing": {"started": "", "ended": "", "seconds": 0.0},
    }  # fmt: skip
    (tmp_path / "manifest.json").write_text(json.dumps(handed))
    command = ("finetune", "train.yaml", "--dry-run", "--from-manifest", tmp_path / "manifest.json")
    plain = trainer(*command)
    assert "custom operators are built and off: swiglu" in plain.err
    wanting = trainer(*command, "kernels={rms_norm: all}")
    assert "warning: rms_norm: the kernels stage built no rms_norm, rms_norm_backward, column_sum" in wanting.err
    assert "custom operators, compiled for cpu: rms_norm (all)" in wanting.err


def test_what_cannot_be_meant_is_said_before_anything_is_started(trainer: CommandLine) -> None:
    misspelt = trainer("finetune", "train.yaml", "kernels={rms_nrom: all}")
    assert misspelt.code == 2
    assert "there is no operator 'rms_nrom' (did you mean rms_norm?)" in misspelt.err
    delivered = trainer("finetune", "train.yaml", "--ablate", "--output", "here")
    assert delivered.code == 2
    assert "--ablate leaves no result" in delivered.err
    planned = trainer("finetune", "train.yaml", "--ablate", "--dry-run")
    assert planned.code == 0
    assert "all that find modules in this model" in planned.err
