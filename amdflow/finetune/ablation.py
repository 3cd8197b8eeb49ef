"""``finetune --ablate``: the same few steps with no operator, with each alone and with all, measured beside each other."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from amdflow.errors import AmdflowError, Cancelled
from amdflow.finetune.config import FinetuneConfig
from amdflow.finetune.events import last_usage, read_events
from amdflow.finetune.operators import Choice, everything
from amdflow.finetune.stage import Work, prepare
from amdflow.finetune.training import Result, train
from amdflow.pipeline.stage import Request, Run
from amdflow.pipeline.workspace import Destination, check_writable, locked

WARM_UP = 2
"""First steps whose time does not count: kernels are compiled in them, and memory is taken."""
LEAST_STEPS = WARM_UP + 3
_NONE, _TOGETHER = "none", "all together"
_OURS = {
    "save_strategy": "no",
    "eval_strategy": "no",
    "plot_loss": False,
    "load_best_model_at_end": False,
    "resume_from_checkpoint": None,
}


@dataclass(frozen=True)
class Trial:
    """A short training with some operators on."""

    name: str
    operators: tuple[str, ...]
    step_ms: float | None = None
    """Median time of a step, the first ones left out."""
    peak_mb: int | None = None
    """On a GPU what torch took of its memory; on a CPU the whole process."""
    losses: tuple[float, ...] = ()
    calls: int = 0
    error: str = ""

    def to_json(self, base: Trial) -> dict[str, Any]:
        """Plain JSON values, with what differs from ``base``."""
        return asdict(self) | {
            "losses": list(self.losses),
            "operators": list(self.operators),
            "time_ratio": self.ratio(base),
            "loss_difference": self.loss_difference(base),
        }

    def ratio(self, base: Trial) -> float | None:
        """Step time relative to ``base``."""
        return self.step_ms / base.step_ms if self.step_ms and base.step_ms else None

    def loss_difference(self, base: Trial) -> float | None:
        """Largest difference of a step's loss, relative to ``base``'s."""
        pairs = list(zip(self.losses, base.losses, strict=False))
        return max(abs(mine - its) / max(abs(its), 1e-12) for mine, its in pairs) if pairs else None


@dataclass(frozen=True)
class Ablation:
    """All trials; the first is the one without operators."""

    device: str
    target: str
    steps: int
    trials: tuple[Trial, ...]
    left_out: tuple[str, ...]
    """Why operators that were not named by the config have no trial."""

    @property
    def failed(self) -> bool:
        """Whether a trial could not be run."""
        return any(trial.error for trial in self.trials)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "schema": "amdflow/ablation",
            "version": "1.0",
            "device": self.device,
            "target": self.target,
            "steps": self.steps,
            "warm_up_steps": WARM_UP,
            "trials": [trial.to_json(self.trials[0]) for trial in self.trials],
            "left_out": list(self.left_out),
        }


def plan_ablation(request: Request[FinetuneConfig]) -> Work:
    """The checked training, with the operators to try: those that the config chooses, else all that can be used."""
    work, _tools = prepare(request)
    if work.job.operators.choice:
        return work
    return work.with_operators(everything(work.job.source, work.job.args, work.facts))


def ablate(work: Work, destination: Destination, request: Request[FinetuneConfig], steps: int) -> Ablation:
    """Run the trials one after the other, below ``destination.private``; the last good training stays as it is.

    A trial that fails is listed with its reason, except the one without operators, whose AmdflowError is raised.
    """
    job = work.job
    args = {**job.args, **_OURS, "max_steps": steps, "seed": job.args.get("seed", 42)}
    work = replace(
        work, job=replace(job, args={key: value for key, value in args.items() if value is not None}, trial=True)
    )
    check_writable(destination.evidence)
    with locked(destination.private, "ablation"):
        bench = _Bench(work, destination, request)
        try:
            base, result = bench.run(_NONE, Choice())
            together, everything_on = bench.run(_TOGETHER, job.operators.choice)
            names = together.operators
            alone = (
                [bench.run(op, Choice({op: job.operators.choice.where[op]}))[0] for op in names]
                if len(names) > 1
                else []
            )
        finally:
            bench.clear()
    if len(names) == 1:
        together = replace(together, name=names[0])
    left_out = everything_on.facts.get("operators_left_out", {}).values() if everything_on else ()
    device = str(result.facts.get("device")) if result else ""
    return Ablation(device, job.operators.target, steps, (base, *alone, together), tuple(left_out))


class _Bench:
    """Runs trials in a folder of its own."""

    def __init__(self, work: Work, destination: Destination, request: Request[FinetuneConfig]) -> None:
        self.work, self.destination, self.request = work, destination, request
        self.folder = destination.private / "ablation"
        self.logs = destination.logs(f"{datetime.now(UTC):%Y%m%dT%H%M%S}-ablation")

    def run(self, name: str, choice: Choice) -> tuple[Trial, Result | None]:
        """One trial, and what its process said."""
        self.clear()
        work, request, word = self.work.with_operators(choice), self.request, name.replace(" ", "-")
        scratch = self.folder / word
        run = Run(
            scratch, scratch / "training", "training", self.logs / word, self.destination.cache, request.root,
            self.destination.evidence, request.terminal,
        )  # fmt: skip
        for folder in (run.payload, run.logs, run.cache):
            folder.mkdir(parents=True, exist_ok=True)
        request.terminal.heading(f"ablation: operators on: {name}")
        try:
            result = train(work.job, work.launch, run)
        except Cancelled as stop:
            stop.hint = "every child process was ended; trials are not kept, the same command starts over"
            raise
        except AmdflowError as error:
            if not choice:
                raise
            request.terminal.warn(error.message)
            on = tuple(last_usage(read_events(run.scratch / "events.jsonl"))) or tuple(choice.where)
            return Trial(name, on, error=error.message.splitlines()[0]), None
        rows = result.facts.get("operators", [])
        on = tuple(row["op"] for row in rows if row["calls"] or row["compiled"])
        return _measured(name, on, result, sum(row["calls"] for row in rows)), result

    def clear(self) -> None:
        """Drop what the last trial left."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _measured(name: str, on: tuple[str, ...], result: Result, calls: int) -> Trial:
    facts, history = result.facts, result.history
    counted = list(history.step_seconds)[WARM_UP:]
    memory = facts["peak_gpu_mb"] if facts.get("device") != "cpu" else facts["peak_rss_mb"]
    median = round(statistics.median(counted) * 1000, 3) if counted else None
    return Trial(name, on, median, memory, tuple(loss for _step, loss in history.loss), calls)


def table_rows(ablation: Ablation) -> list[list[str]]:
    """The trials for a person: operators, step time, ratio, memory, loss difference, calls."""
    base = ablation.trials[0]
    return [_row(trial, base) for trial in ablation.trials]


def _row(trial: Trial, base: Trial) -> list[str]:
    if trial.error:
        return [trial.name, "failed", "", "", "", ""]
    ratio, difference = trial.ratio(base), trial.loss_difference(base)
    return [
        trial.name,
        f"{trial.step_ms:.1f}" if trial.step_ms else "-",
        f"{ratio:.2f}" if ratio else "-",
        f"{trial.peak_mb:,}" if trial.peak_mb else "-",
        f"{difference:.1e}" if difference is not None and trial is not base else "-",
        f"{trial.calls:,}",
    ]


def remarks(ablation: Ablation) -> Iterable[str]:
    """What must be known to read the table."""
    yield f"{ablation.steps} steps each, the same seed and data; step time is the median, the first {WARM_UP} left out."
    if ablation.device == "cpu":
        yield (
            "These are times and memory of a CPU, where a kernel is a plain loop of C: they say nothing about a GPU. "
            "Memory is the whole process, compiler included. The loss differences count."
        )
    for reason in ablation.left_out:
        yield f"left out: {reason}"
    for trial in ablation.trials:
        if trial.error:
            yield f"{trial.name} failed: {trial.error}"


HEADINGS: Sequence[str] = ("operators on", "step, ms", "of none", "peak, MB", "loss differs by", "calls")
