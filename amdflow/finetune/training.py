"""Runs a checked training to its end, or goes on with one that was cut off."""

from __future__ import annotations

import json
import re
import shutil
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amdflow.errors import AmdflowError
from amdflow.files import write_atomic
from amdflow.finetune.checkpoints import last_complete, step_of, trim_log
from amdflow.finetune.events import Event, History, followed, last_usage, read_events, summarize
from amdflow.finetune.planning import Job
from amdflow.pipeline.stage import Run
from amdflow.process import Completed
from amdflow.terminal import Bar, Terminal

SCRIPT = Path(__file__).parent / "inside" / "train.py"
LOG = "train.log"
# SIGTERM lets the step under way end and a checkpoint be written.
_GRACE_SECONDS = 90.0
_STOPPED = 143
_ATTENTION = re.compile(r"attention(?:: \w+'s kernels \(| falls back to ).*")


@dataclass(frozen=True)
class Launch:
    """How to start the training script."""

    python: Path
    environment: Mapping[str, str]
    processes: int
    torchrun: bool

    def argv(self, job_file: Path) -> list[str]:
        """The command line; torchrun is started by us, so that ending it ends its workers."""
        launcher = (
            ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={self.processes}", "--max-restarts=0"]
            if self.torchrun
            else []
        )
        return [str(self.python), *launcher, str(SCRIPT), str(job_file)]

    def variables(self, cache: Path, *, local: bool) -> dict[str, str]:
        """Environment of the training: caches stay in the workspace, a hub's models where the user keeps them."""
        home = {"HF_HOME": str(cache / "huggingface")} if local else {"HF_DATASETS_CACHE": str(cache / "datasets")}
        threads = self.environment.get("OMP_NUM_THREADS")
        shared = (
            {"OMP_NUM_THREADS": str(max(1, int(threads) // self.processes))} if threads and self.processes > 1 else {}
        )
        return {**self.environment, **shared, **home, "PYTHONUTF8": "1", "LLAMAFACTORY_VERBOSITY": "WARN"}


@dataclass(frozen=True)
class Result:
    """A training that ended well."""

    facts: Mapping[str, Any]
    """What ``inside/train.py`` wrote last."""
    history: History


def train(job: Job, launch: Launch, run: Run) -> Result:
    """Train below ``run.payload``. Raises AmdflowError naming the step for a loss that is not finite, or the engine's complaint."""
    events, result = run.scratch / "events.jsonl", run.scratch / "result.json"
    if result.is_file():
        run.terminal.say("  the training itself had ended before; its result is taken up")
        return Result(_read_result(result), summarize(read_events(events)))
    resume = _prepare(run)
    job_file = run.scratch / "job.json"
    args = _arguments(job, run.payload, resume)
    before = read_events(events)
    order = {
        "args": args,
        "events": str(events),
        "result": str(result),
        "trial": job.trial,
        "operators": job.operators.order() | {"before": last_usage(before)},
    }
    write_atomic(job_file, json.dumps(order, indent=2, ensure_ascii=False))
    with (
        run.terminal.progress("training", unit="steps") as bar,
        followed(events, lambda event: _show(event, bar, run.terminal)),
    ):
        variables = {**launch.variables(run.cache, local=job.local), **job.operators.variables()}
        done = run.call(
            launch.argv(job_file),
            log=LOG,
            cwd=run.scratch,
            extra_env=variables,
            on_line=passing_on(run.terminal),
            check=False,
            grace=_GRACE_SECONDS,
            sweep_descendants=launch.torchrun,
        )
    said = read_events(events)
    if done.returncode or not result.is_file():
        raise explain_failure(done, said[len(before) :], run.logs / LOG)
    return Result(_read_result(result), summarize(said))


def _prepare(run: Run) -> Path | None:
    """The checkpoint to go on from. Without one, what an earlier attempt left in the payload is cleared away."""
    checkpoint, removed = last_complete(run.payload)
    for folder in removed:
        run.terminal.warn(f"{folder.name} was not written to its end; it is dropped")
    if checkpoint is None:
        for item in run.payload.iterdir():
            shutil.rmtree(item) if item.is_dir() else item.unlink()
        (run.scratch / "events.jsonl").unlink(missing_ok=True)
        return None
    trim_log(run.payload, step_of(checkpoint))
    run.terminal.say(f"  going on from step {step_of(checkpoint)} of the interrupted attempt")
    return checkpoint


def _arguments(job: Job, output: Path, resume: Path | None) -> dict[str, Any]:
    """The user's config with the few keys that are ours."""
    defaults = {"report_to": "none", "disable_tqdm": True, "include_num_input_tokens_seen": True}
    ours: dict[str, Any] = {"output_dir": str(output), "overwrite_output_dir": False}
    if resume is not None:
        ours["resume_from_checkpoint"] = str(resume)
    return {**defaults, **job.args, **ours}


def _show(event: Event, bar: Bar, terminal: Terminal) -> None:
    if event["event"] == "start":
        bar.update(done=event["step"], total=event["total"])
    elif event["event"] == "step":
        bar.update(done=event["step"], total=event["total"], note=f"loss {event['loss']:.4f}")
    elif event["event"] == "checkpoint":
        bar.update(note=f"checkpoint at step {event['step']}")
    elif event["event"] == "note":
        terminal.say(f"  {event['text']}")
    elif event["event"] == "warning":
        terminal.warn(event["text"])


def passing_on(terminal: Terminal) -> Callable[[str], None]:
    """Tells a person, once, which attention the model got and why; the rest of the output is for the log."""
    told: set[str] = set()

    def hear(line: str) -> None:
        found = _ATTENTION.search(line)
        if found and found.group() not in told:
            told.add(found.group())
            (terminal.warn if "falls back" in found.group() else terminal.say)(f"  {found.group()}")

    return hear


def explain_failure(done: Completed, events: list[Event], log: Path) -> AmdflowError:
    """What to tell a person about a training that did not end well. Of several ranks' complaints the first is the cause."""
    first = {event["event"]: event for event in reversed(events)}
    hint = f"the whole log: {log}"
    if "not_finite" in first:
        event = first["not_finite"]
        return AmdflowError(
            f"training stopped at step {event['step']}: {event['what']} is {event['value']}",
            hint="lower learning_rate, set max_grad_norm: 1.0, use bf16 instead of fp16, or look for odd rows in the data",
        )
    if "operators" in first:
        event = first["operators"]
        return AmdflowError(f"custom operators: {event['message']}", hint=event["hint"])
    if "error" in first:
        event = first["error"]
        if "OutOfMemory" in event["type"] or "out of memory" in event["message"]:
            hint = "lower per_device_train_batch_size or cutoff_len, or use quantization_bit: 4"
        return AmdflowError(
            f"LLaMA-Factory stopped at step {event['step']}: {event['type']}: {event['message']}", hint=hint
        )
    if done.returncode == _STOPPED or "stopped" in first:
        at = f" after step {first['stopped']['step']}, with a checkpoint" if "stopped" in first else ""
        return AmdflowError(
            f"the training was ended from outside{at}",
            hint="run the same command again: it goes on from the last checkpoint",
        )
    if done.returncode == -signal.SIGKILL:
        return AmdflowError(
            "the training was killed (SIGKILL), most often because memory ran out",
            hint="lower per_device_train_batch_size or cutoff_len; the same command goes on from the last checkpoint",
        )
    tail = [line for line in done.output.splitlines() if line.strip()][-6:]
    return AmdflowError(
        f"the training ended with exit status {done.returncode}" + "".join(f"\n    {line[:300]}" for line in tail),
        hint=hint,
    )


def _read_result(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return data
