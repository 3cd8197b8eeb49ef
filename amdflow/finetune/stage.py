"""The finetune stage: check a LLaMA-Factory config and its data, train, leave an adapter or a model behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from amdflow.errors import AmdflowError, UsageError
from amdflow.files import portable
from amdflow.findings import Finding
from amdflow.finetune.config import FinetuneConfig
from amdflow.finetune.engine import EngineFacts, probe
from amdflow.finetune.outcome import collect, kind_of_result
from amdflow.finetune.planning import Job, check_job, describe, inputs_of
from amdflow.finetune.recipe import check_recipe, read_recipe
from amdflow.finetune.training import Launch, train
from amdflow.pipeline.manifest import Upstream
from amdflow.pipeline.stage import Outcome, Plan, Request, Run, Stage
from amdflow.weights import read_header, read_weights

_TOOLS = ("llamafactory", "torch", "transformers", "peft", "trl", "accelerate", "datasets")


class _Kernels(BaseModel):
    """What the kernels stage hands over, as far as it is read here."""

    ops: dict[str, dict[str, Any]] = {}


@dataclass(frozen=True)
class _Work:
    """The stage's work order."""

    job: Job
    launch: Launch
    kernels: Mapping[str, Sequence[str]]
    """Operators that the kernels stage built -> their targets."""


class FinetuneStage(Stage[FinetuneConfig]):
    """``amdflow finetune``."""

    name = "finetune"
    version = 1
    payload = "training"
    summary = "train with LLaMA-Factory"
    upstream = "kernels"
    resumable = True
    config_type = FinetuneConfig

    def plan(self, request: Request[FinetuneConfig]) -> Plan:
        """Check config, model, data and environment."""
        config = request.config
        if not config.config:
            raise UsageError(
                "no training config is named",
                hint="amdflow finetune CONFIG.yaml, or set finetune.config in amdflow.yaml",
            )
        source = request.path(config.config)
        recipe = read_recipe(source, config.overrides)
        engine = request.toolchain.engine("finetune")
        facts = probe(engine.python, engine.packages, engine.environment(), request.toolchain.store.root / "probes")
        job = check_job(source, check_recipe(source, recipe, facts), facts, request.root, gpu=engine.device != "cpu")
        processes = _processes(config, facts)
        spread = processes > 1 or facts.gpus > 1 or bool(job.args.get("deepspeed"))
        launch = Launch(engine.python, engine.environment(offline=job.local), processes, torchrun=spread)
        for note in job.notes:
            request.terminal.say(f"  {note}")
        for finding in job.findings:
            request.terminal.warn(f"{finding.id} {finding.path}: {finding.message}")
        tools = {name: engine.packages[name] for name in _TOOLS if name in engine.packages} | {"device": engine.device}
        work = _Work(job, launch, _available(request.upstream))
        return Plan(
            describe(job, request.root) | {"processes": processes},
            inputs_of(job, request.root),
            tools,
            _steps(work, request.root),
            job=work,
            taken=work.kernels,
        )

    def execute(self, plan: Plan, run: Run) -> Outcome:
        """Train, or go on where an interrupted attempt with the same inputs left off."""
        work: _Work = plan.job
        result = train(work.job, work.launch, run)
        return collect(work.job, work.kernels, result, run)

    def verify(self, plan: Plan, outcome: Outcome, run: Run) -> Sequence[Finding]:  # noqa: ARG002 - the files are looked at, not what was said of them
        """The weights are there and whole."""
        work: _Work = plan.job
        kind, adapter = kind_of_result(work.job.args), run.payload / "adapter_model.safetensors"
        if kind == "adapter":
            tensors = read_header(adapter) if adapter.is_file() else {}
        else:
            weights = read_weights(run.payload)
            tensors = weights.tensors if weights else {}
        if not tensors:
            raise AmdflowError(f"the training ended without writing its {kind}", hint=f"its log: {run.logs}")
        return ()


STAGE = FinetuneStage()


def _processes(config: FinetuneConfig, facts: EngineFacts) -> int:
    if config.processes != "auto":
        if facts.gpus and config.processes > facts.gpus:
            raise UsageError(
                f"{config.processes} training processes, but the fine-tuning environment sees {facts.gpus} GPUs",
                hint="processes: auto",
            )
        return config.processes
    return max(1, facts.gpus)


def _available(upstream: Upstream | None) -> dict[str, list[str]]:
    handed = _Kernels.model_validate(upstream.manifest.handoff, extra="ignore") if upstream else _Kernels()
    return {op: sorted(targets) for op, targets in sorted(handed.ops.items())}


def _steps(work: _Work, root: Path) -> list[str]:
    job = work.job
    how = f"{job.args.get('stage', 'sft')}, {job.args.get('finetuning_type', 'lora')}"
    length = (
        f"{job.args['max_steps']} steps"
        if job.args.get("max_steps", -1) > 0
        else f"{job.args.get('num_train_epochs', 3.0):g} epochs"
    )
    base = (
        f"{job.base.name} ({job.base.weights.parameters / 1e6:.1f} M parameters)" if job.base.weights else job.base.name
    )
    data = ", ".join(dataset.name for dataset in job.datasets) or "tokenized data"
    steps = [f"train {base} on {data} ({job.rows} rows): {how}, {length}", f"config: {portable(job.source, root)}"]
    return [
        *steps,
        f"with {work.launch.python}, {work.launch.processes} process(es)",
    ]
