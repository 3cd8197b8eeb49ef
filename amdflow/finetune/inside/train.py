"""Train with LLaMA-Factory and report every step: ``python train.py JOB.json`` (or torchrun ... train.py JOB.json).

JOB.json holds ``args`` (a LLaMA-Factory config), ``events`` (JSON lines are appended there), ``result`` (written last)
and, for custom operators, ``operators`` (see custom_operators.py). With ``trial`` it ends without saving the weights.
Stops at the first loss or gradient norm that is not finite. On SIGTERM saves a checkpoint and ends with status 143.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import resource
import signal
import sys
import time
import traceback
from pathlib import Path
from types import FrameType
from typing import Any

from custom_operators import OperatorProblem, Operators, make_switch

RANK = int(os.environ.get("RANK", "0"))
WORLD = int(os.environ.get("WORLD_SIZE", "1"))
STOPPED = 143
TROUBLE = ("not_finite", "operators", "error")
# A float16 loss scaler finds its scale by overflowing: that many in a row are part of the method.
SCALER_PATIENCE = 25


class NotFinite(Exception):
    """A loss, gradient norm or weight is NaN or infinite."""

    def __init__(self, what: str, value: float, step: int) -> None:
        super().__init__(f"{what} is {value} at step {step}")
        self.what, self.value, self.step = what, value, step


class Stopped(Exception):
    """SIGTERM came and a checkpoint was saved."""


class TrialOver(Exception):
    """All steps of a training that is only measured are done."""


class Watch:
    """What is known of the step under way, shared by the guards and the callback."""

    def __init__(self, events: Path) -> None:
        self.events = events
        self.step = 0
        self.loss = 0.0
        self.norm: float | None = None
        self.tokens = 0
        self.overflows = 0
        self.training = False
        self.stop = False

    def emit(self, kind: str, **fields: Any) -> None:
        """Append one event: progress from the first rank, trouble from any. A line is written at once, so that readers see whole ones."""
        if RANK and kind not in TROUBLE:
            return
        line = json.dumps({"event": kind, "time": round(time.time(), 6), "rank": RANK, **fields}) + "\n"
        handle = os.open(self.events, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(handle, line.encode())
        finally:
            os.close(handle)

    def on_signal(self, _number: int, _frame: FrameType | None) -> None:
        """Before training: leave. During it: stop after this step."""
        if not self.training:
            raise SystemExit(STOPPED)
        self.stop = True


def guard(watch: Watch) -> None:
    """Look at every loss and gradient norm where the trainer computes them.

    Its log shows neither: a NaN is replaced by an average of earlier losses there.
    """
    from transformers import Trainer

    Accelerator = importlib.import_module("accelerate").Accelerator  # noqa: N806 - a class
    plain_step, plain_clip = Trainer.training_step, Accelerator.clip_grad_norm_

    def training_step(self: Any, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        watch.step = self.state.global_step + 1
        tokens = inputs.get("input_ids")
        watch.tokens += int(tokens.numel()) if tokens is not None else 0
        loss = plain_step(self, model, inputs, *args, **kwargs)
        value = float(loss)
        if not math.isfinite(value):
            raise NotFinite("the loss", value, watch.step)
        watch.loss += value
        return loss

    def clip_grad_norm_(self: Any, *args: Any, **kwargs: Any) -> Any:
        norm = plain_clip(self, *args, **kwargs)
        if norm is None:
            return norm
        value = float(norm.full_tensor() if hasattr(norm, "full_tensor") else norm)
        scaled = getattr(self, "mixed_precision", "") == "fp16"
        watch.overflows = 0 if math.isfinite(value) else watch.overflows + 1
        if watch.overflows and not (scaled and watch.overflows < SCALER_PATIENCE):
            raise NotFinite("the gradient norm", value, watch.step)
        watch.norm = value
        return norm

    Trainer.training_step, Accelerator.clip_grad_norm_ = training_step, clip_grad_norm_


def teach_cpu_ranks() -> None:
    """Let several processes on a CPU read their checkpoints: the trainer asks for device ``cpu:0``, torch knows ``cpu``."""
    import torch

    torch.serialization.register_package(
        5, lambda _storage: None, lambda storage, place: storage if place.startswith("cpu:") else None
    )


def agreed_to_stop(watch: Watch) -> bool:
    """Has any rank been asked to stop? All must stop after the same step, whenever each got its signal."""
    import torch

    if WORLD == 1 or not torch.distributed.is_initialized():
        return watch.stop
    on_gpu = torch.distributed.get_backend() == "nccl"
    flag = torch.tensor(
        [int(watch.stop)], device=torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if on_gpu else "cpu"
    )
    torch.distributed.all_reduce(flag, op=torch.distributed.ReduceOp.MAX)
    return bool(flag.item())


def check_weights(model: Any, step: int) -> None:
    """The last update is seen by no later loss: look at what it made of the weights."""
    import torch

    for name, weight in model.named_parameters():
        if weight.requires_grad and not bool(torch.isfinite(getattr(weight, "_local_tensor", weight)).all()):
            raise NotFinite(f"weight {name}", math.nan, step)


def widen(model: Any, args: Any, *, pure_bf16: bool) -> bool:
    """On a CPU, compute in float32 unless the config asks for less.

    LLaMA-Factory keeps frozen weights as the file has them; most CPUs are several times slower in bfloat16.
    """
    import torch

    wanted = torch.cuda.is_available() or args.bf16 or args.fp16 or pure_bf16 or getattr(model, "is_quantized", False)
    narrow = any(weight.dtype in (torch.bfloat16, torch.float16) for weight in model.parameters())
    if wanted or not narrow:
        return False
    model.float()
    return True


def leave_together() -> None:
    """Wait until every rank has written its part of the checkpoint, then give up."""
    import torch

    if WORLD > 1:
        torch.distributed.barrier()
    raise Stopped


def make_callback(watch: Watch, *, pure_bf16: bool) -> Any:
    """The callback that reports steps and obeys signals."""
    from transformers import TrainerCallback

    class Report(TrainerCallback):  # type: ignore[misc]
        stopping = False

        def on_train_begin(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
            watch.training = True
            watch.emit("start", step=state.global_step, total=state.max_steps)

        def on_init_end(self, args: Any, _state: Any, _control: Any, model: Any = None, **_: Any) -> None:
            if widen(model, args, pure_bf16=pure_bf16):
                watch.emit("note", text="on a CPU and without bf16: true, the model is computed in float32")

        def on_step_begin(self, *_: Any, **__: Any) -> None:
            watch.loss = 0.0

        def on_step_end(self, _args: Any, state: Any, control: Any, **_: Any) -> None:
            watch.emit(
                "step",
                step=state.global_step,
                total=state.max_steps,
                loss=watch.loss,
                norm=_number(watch.norm),
                tokens=watch.tokens * WORLD,
            )
            if agreed_to_stop(watch):
                self.stopping = control.should_save = control.should_training_stop = True

        def on_log(self, _args: Any, state: Any, _control: Any, logs: Any = None, **_: Any) -> None:
            numbers = {key: _number(value) for key, value in (logs or {}).items() if isinstance(value, (int, float))}
            watch.emit("log", **(numbers | {"step": state.global_step}))

        def on_save(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
            watch.emit("checkpoint", step=state.global_step)
            if self.stopping:
                leave_together()

        def on_train_end(self, _args: Any, state: Any, _control: Any, model: Any = None, **_: Any) -> None:
            watch.training = False
            check_weights(model, state.global_step)

    return Report()


def make_end() -> Any:
    """The callback that leaves when the last step is done, before the weights are written."""
    from transformers import TrainerCallback

    class End(TrainerCallback):  # type: ignore[misc]
        def on_train_end(self, *_: Any, **__: Any) -> None:
            raise TrialOver

    return End()


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def describe(watch: Watch, operators: Operators, started: float) -> dict[str, Any]:
    """What the result file says after a training that ended well."""
    import torch

    gpu = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {
        "status": "finished",
        "step": watch.step,
        "seconds": round(time.time() - started, 3),
        "peak_rss_mb": memory,
        "peak_gpu_mb": gpu >> 20,
        "device": "cuda" if gpu else "cpu",
        "processes": WORLD,
        "operators": operators.report(),
        "operators_left_out": operators.left_out,
        "kernels": operators.origins(),
    }


def train(job: dict[str, Any], watch: Watch) -> int:
    """Run LLaMA-Factory; returns the exit status."""
    started = time.time()
    operators = Operators(job.get("operators"))
    try:
        guard(watch)
        teach_cpu_ranks()
        from llamafactory.train.tuner import run_exp

        report = make_callback(watch, pure_bf16=bool(job["args"].get("pure_bf16")))
        run_exp(args=job["args"], callbacks=[report, make_switch(operators, watch.emit)])
    except NotFinite as problem:
        watch.emit("not_finite", step=problem.step, what=problem.what, value=str(problem.value))
        return 1
    except OperatorProblem as problem:
        watch.emit("operators", step=watch.step, message=problem.message, hint=problem.hint)
        return 1
    except Stopped:
        watch.emit("stopped", step=watch.step)
        return STOPPED
    except Exception as error:
        traceback.print_exc()
        watch.emit("error", type=type(error).__name__, message=str(error)[:2000], step=watch.step)
        return 1
    if RANK == 0:
        result = Path(job["result"])
        partial = result.with_suffix(".partial")
        partial.write_text(json.dumps(describe(watch, operators, started)), encoding="utf-8")
        partial.replace(result)
    return 0


def main() -> None:
    """Read the job, train, leave without waiting for anybody's threads."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    watch = Watch(Path(job["events"]))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, watch.on_signal)
    status = train(job, watch)
    sys.stdout.flush()
    sys.stderr.flush()
    if status:
        os._exit(status)  # a process group of several ranks would wait here for ranks that are gone
    sys.exit(0)


if __name__ == "__main__":
    main()
