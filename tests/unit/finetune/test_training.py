"""How the training is started, and what is said when it does not end well."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from amdflow.finetune.training import Launch, explain_failure, passing_on
from amdflow.process import Completed
from amdflow.terminal import Format, Terminal


def ended(status: int, *events: dict[str, Any], output: str = "") -> str:
    done = Completed(("python",), status, "", output, 1.0)
    error = explain_failure(done, list(events), Path("train.log"))
    return f"{error.message} | {error.hint}"


def test_a_loss_that_is_not_finite_names_its_step() -> None:
    said = ended(1, {"event": "not_finite", "step": 7, "what": "the loss", "value": "nan"})
    assert "stopped at step 7: the loss is nan" in said
    assert "learning_rate" in said


def test_the_first_cause_counts_when_other_ranks_fail_after_it() -> None:
    first = {"event": "not_finite", "step": 7, "what": "the gradient norm", "value": "inf"}
    said = ended(
        1, first, {"event": "error", "step": 7, "type": "RuntimeError", "message": "connection closed by peer"}
    )
    assert "the gradient norm is inf" in said


def test_the_engines_complaint_is_passed_on() -> None:
    said = ended(1, {"event": "error", "step": 0, "type": "ValueError", "message": "neat packing is not possible"})
    assert "LLaMA-Factory stopped at step 0: ValueError: neat packing is not possible" in said
    assert "train.log" in said


def test_an_operator_that_is_not_at_work_is_told_with_what_to_do() -> None:
    said = ended(
        1, {"event": "operators", "step": 10, "message": "chosen layers were never called: a", "hint": "choose"}
    )
    assert said == "custom operators: chosen layers were never called: a | choose"


@pytest.mark.parametrize(
    ("kind", "message"),
    [("OutOfMemoryError", "HIP out of memory"), ("RuntimeError", "[enforce fail] DefaultCPUAllocator: out of memory")],
)
def test_memory_that_ran_out_gets_its_own_advice(kind: str, message: str) -> None:
    assert "lower per_device_train_batch_size" in ended(
        1, {"event": "error", "step": 3, "type": kind, "message": message}
    )


def test_a_killed_training_is_put_down_to_memory() -> None:
    assert "most often because memory ran out" in ended(-signal.SIGKILL)


def test_one_that_was_ended_from_outside_can_be_gone_on_with() -> None:
    said = ended(143, {"event": "stopped", "step": 12})
    assert "after step 12, with a checkpoint" in said
    assert "goes on from the last checkpoint" in said
    assert "the training was ended from outside |" in ended(143)


def test_without_any_word_the_end_of_the_log_is_shown() -> None:
    assert "Segmentation fault" in ended(139, output="loading\nSegmentation fault\n")


def test_several_processes_start_through_torchrun() -> None:
    launch = Launch(Path("/env/bin/python"), {"OMP_NUM_THREADS": "8"}, processes=4, torchrun=True)
    argv = launch.argv(Path("/work folder/job.json"))
    assert argv[1:3] == ["-m", "torch.distributed.run"]
    assert "--nproc-per-node=4" in argv
    assert argv[-1] == "/work folder/job.json"
    assert launch.variables(Path("/cache"), local=True)["OMP_NUM_THREADS"] == "2"


def test_caches_stay_in_the_workspace_unless_a_hub_is_needed() -> None:
    launch = Launch(Path("/env/bin/python"), {}, processes=1, torchrun=False)
    assert launch.variables(Path("/cache"), local=True)["HF_HOME"] == "/cache/huggingface"
    hub = launch.variables(Path("/cache"), local=False)
    assert "HF_HOME" not in hub
    assert hub["HF_DATASETS_CACHE"] == "/cache/datasets"


def test_which_attention_a_model_got_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    hear = passing_on(Terminal(Format.HUMAN))
    for _ in range(2):
        hear("attention: amdflow's kernels (gfx942, bfloat16, heads of 128)")
        hear("x.py:9: UserWarning: attention falls back to torch's sdpa: heads of 80")
    hear("the attention mask is not set")
    said = capsys.readouterr().err
    assert said.count("amdflow's kernels (gfx942, bfloat16, heads of 128)") == 1
    assert said.count("warning: ") == 1
    assert "mask" not in said
