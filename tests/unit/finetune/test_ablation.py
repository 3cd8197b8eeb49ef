"""Operators measured one by one: what is tried, what the table says, and that a trial that fails does not hide the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from amdflow.errors import AmdflowError, Cancelled
from amdflow.finetune import ablation
from amdflow.finetune.ablation import Ablation, Trial, ablate, remarks, table_rows
from amdflow.finetune.config import FinetuneConfig
from amdflow.finetune.events import History
from amdflow.finetune.handed import Handed
from amdflow.finetune.operators import Choice
from amdflow.finetune.planning import Job, check_job
from amdflow.finetune.stage import Work
from amdflow.finetune.training import Launch, Result
from amdflow.pipeline.stage import Request, Run
from amdflow.pipeline.workspace import Destination
from amdflow.terminal import Format, Terminal
from tests.unit.finetune.workshop import GOOD_ROW, facts, make_data, make_model

NONE = Trial("none", (), 100.0, 500, (2.0, 1.0))


def measured(*trials: Trial, device: str = "cuda") -> Ablation:
    return Ablation(device, "gfx942", 10, (NONE, *trials), ("layer_norm: finds nothing",))


def test_a_row_says_time_memory_and_loss_beside_none() -> None:
    swiglu = Trial("swiglu", ("swiglu",), 80.0, 1450, (2.0, 1.001), calls=1200)
    none, row = table_rows(measured(swiglu))
    assert none == ["none", "100.0", "1.00", "500", "-", "0"]
    assert row == ["swiglu", "80.0", "0.80", "1,450", "1.0e-03", "1,200"]
    listed = measured(swiglu).to_json()["trials"][1]
    assert listed["time_ratio"] == pytest.approx(0.8)
    assert listed["loss_difference"] == pytest.approx(1e-3)


def test_times_of_a_cpu_are_not_sold_as_those_of_a_gpu() -> None:
    assert any("they say nothing about a GPU" in text for text in remarks(measured(device="cpu")))
    assert not any("nothing about a GPU" in text for text in remarks(measured()))
    assert "left out: layer_norm: finds nothing" in list(remarks(measured()))


class Trainer:
    """In place of the training process, whose failures with one operator cannot be provoked."""

    def __init__(self, failing: str) -> None:
        self.failing = failing
        self.jobs: list[Job] = []

    def __call__(self, job: Job, launch: Launch, run: Run) -> Result:
        self.jobs.append(job)
        assert run.payload.is_dir()
        on = list(job.operators.choice.where)
        if on == [self.failing]:
            raise AmdflowError("custom operators: out of registers\nmore")
        said = {
            "device": "cpu",
            "peak_rss_mb": 300,
            "operators": [{"op": op, "calls": 5, "compiled": []} for op in on],
            "operators_left_out": {},
        }
        times = (9.0, 9.0, 0.1, 0.3, 0.2)
        return Result(said, History([(1, 2.0), (2, 1.5)], [], 10, 1.0, 1.0, 0, times))


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Work:
    make_model(tmp_path / "model")
    make_data(tmp_path / "data", [GOOD_ROW])
    monkeypatch.chdir(tmp_path)
    values = {"model_name_or_path": "model", "dataset": "tiny", "do_train": True, "resume_from_checkpoint": None}
    job = check_job(tmp_path / "train.yaml", values, facts(), tmp_path, gpu=False)
    launch = Launch(Path("python"), {}, 1, torchrun=False)
    return Work(job, launch, Handed(), facts(), tmp_path / "kernels", "cpu")


def run(work: Work, tmp_path: Path, trainer: Trainer, monkeypatch: pytest.MonkeyPatch) -> Ablation:
    monkeypatch.setattr(ablation, "train", trainer)
    destination = Destination.in_workdir(tmp_path / "out", "finetune", "training")
    request: Request[Any] = Request(FinetuneConfig(), tmp_path, (), None, Terminal(Format.JSON, quiet=True))
    return ablate(work, destination, request, 5)


def test_none_each_and_all_are_tried_on_the_same_few_steps(
    work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = Trainer("")
    found = run(work.with_operators(Choice({"rms_norm": "all", "swiglu": "mlp"})), tmp_path, trainer, monkeypatch)
    assert [trial.name for trial in found.trials] == ["none", "rms_norm", "swiglu", "all together"]
    assert found.trials[0].step_ms == 200, "the median, without the first two"
    assert {tuple(job.operators.choice.where.items()) for job in trainer.jobs} == {
        (),
        (("rms_norm", "all"),),
        (("swiglu", "mlp"),),
        (("rms_norm", "all"), ("swiglu", "mlp")),
    }
    for job in trainer.jobs:
        assert job.trial
        assert job.args["max_steps"] == 5
        assert job.args["seed"] == 42
        assert job.args["save_strategy"] == "no"
    assert not (tmp_path / "out/finetune").exists()
    assert not (tmp_path / "out/.amdflow/ablation").exists()


def test_one_operator_alone_is_tried_once(work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = Trainer("")
    found = run(work.with_operators(Choice({"swiglu": "all"})), tmp_path, trainer, monkeypatch)
    assert [trial.name for trial in found.trials] == ["none", "swiglu"]
    assert len(trainer.jobs) == 2


def test_a_trial_that_fails_is_listed_and_the_others_go_on(
    work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = work.with_operators(Choice({"rms_norm": "all", "swiglu": "all"}))
    found = run(both, tmp_path, Trainer("rms_norm"), monkeypatch)
    assert found.failed
    assert [trial.error for trial in found.trials] == ["", "custom operators: out of registers", "", ""]
    assert table_rows(found)[1][:2] == ["rms_norm", "failed"]
    assert "rms_norm failed: custom operators: out of registers" in list(remarks(found))
    assert not (tmp_path / "out/.amdflow/ablation").exists()


def test_a_stopped_ablation_says_that_it_starts_over(
    work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped(Trainer):
        def __call__(self, *_: Any) -> Result:
            raise Cancelled(2)

    with pytest.raises(Cancelled) as caught:
        run(work, tmp_path, Stopped(""), monkeypatch)
    assert "starts over" in caught.value.hint
