"""The finetune stage: check a LLaMA-Factory config and its data, train, leave an adapter or a model behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from amdflow.errors import AmdflowError, UsageError
from amdflow.files import portable
from amdflow.findings import Finding
from amdflow.finetune.config import FinetuneConfig
from amdflow.finetune.engine import EngineFacts, probe
from amdflow.finetune.handed import Handed
from amdflow.finetune.operators import KEY, Choice, missing_kernels, offer, plan_operators, take_choice
from amdflow.finetune.outcome import collect, kind_of_result
from amdflow.finetune.planning import Job, check_job, describe, inputs_of
from amdflow.finetune.recipe import check_recipe, read_recipe
from amdflow.finetune.training import Launch, train
from amdflow.gpu.machine import gpus
from amdflow.pipeline.stage import Outcome, Plan, Request, Run, Stage
from amdflow.toolchain import Engine
from amdflow.weights import read_header, read_weights

_TOOLS = ("llamafactory", "torch", "transformers", "peft", "trl", "accelerate", "datasets")


@dataclass(frozen=True)
class Work:
    """The stage's work order."""

    job: Job
    launch: Launch
    handed: Handed
    facts: EngineFacts
    kernels: Path
    """The project's own folder of kernels; it need not exist."""
    target: str
    """What kernels are compiled for: a gfx name, ``cuda`` or ``cpu``."""

    def with_operators(self, choice: Choice) -> Work:
        """The same training with other operators."""
        operators = plan_operators(choice, self.facts, self.handed, self.kernels, self.target)
        return replace(self, job=replace(self.job, operators=operators))


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
        work, tools = prepare(request)
        job = work.job
        for note in job.notes:
            request.terminal.say(f"  {note}")
        for sentence in missing_kernels(job.operators, work.facts, work.handed):
            request.terminal.warn(sentence)
        for finding in job.findings:
            request.terminal.warn(f"{finding.id} {finding.path}: {finding.message}")
        return Plan(
            describe(job, request.root) | {"processes": work.launch.processes},
            inputs_of(job, request.root),
            tools,
            _steps(work, request.root),
            job=work,
            taken=dict(job.operators.taken),
        )

    def execute(self, plan: Plan, run: Run) -> Outcome:
        """Train, or go on where an interrupted attempt with the same inputs left off."""
        work: Work = plan.job
        result = train(work.job, work.launch, run)
        return collect(work.job, work.handed.ops, result, run)

    def verify(self, plan: Plan, outcome: Outcome, run: Run) -> Sequence[Finding]:  # noqa: ARG002 - the files are looked at, not what was said of them
        """The weights are there and whole."""
        work: Work = plan.job
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


def prepare(request: Request[FinetuneConfig]) -> tuple[Work, dict[str, str]]:
    """The work order of a checked config, and the versions of the tools that count for it.

    Raises UsageError and EnvironmentProblem for what is wrong with config, model, data or environment.
    """
    config = request.config
    if not config.config:
        raise UsageError(
            "no training config is named", hint="amdflow finetune CONFIG.yaml, or set finetune.config in amdflow.yaml"
        )
    source = request.path(config.config)
    recipe = read_recipe(source, config.overrides)
    engine = request.toolchain.engine("finetune")
    facts = probe(engine.python, engine.packages, engine.environment(), request.toolchain.store.root / "probes")
    choice = take_choice(source, recipe, facts)
    job = check_job(source, check_recipe(source, recipe, facts), facts, request.root, gpu=engine.device != "cpu")
    handed = Handed.read(request.upstream)
    target = "cpu" if job.args.get("use_cpu") else _target(engine)
    processes = _processes(config, facts)
    spread = processes > 1 or facts.gpus > 1 or bool(job.args.get("deepspeed"))
    launch = Launch(engine.python, engine.environment(offline=job.local), processes, torchrun=spread)
    names = (*_TOOLS, "tilelang") if choice else _TOOLS
    tools = {name: engine.packages[name] for name in names if name in engine.packages} | {"device": engine.device}
    work = Work(job, launch, handed, facts, request.path(handed.source or KEY), target)
    return work.with_operators(choice), tools


def _target(engine: Engine) -> str:
    """What kernels are compiled for on this machine: ``cpu``, ``cuda``, or the gfx name of its first AMD GPU."""
    found = gpus() if engine.device == "rocm" else []
    return found[0].gfx if found else engine.device


def _processes(config: FinetuneConfig, facts: EngineFacts) -> int:
    if config.processes != "auto":
        if facts.gpus and config.processes > facts.gpus:
            raise UsageError(
                f"{config.processes} training processes, but the fine-tuning environment sees {facts.gpus} GPUs",
                hint="processes: auto",
            )
        return config.processes
    return max(1, facts.gpus)


def _steps(work: Work, root: Path) -> list[str]:
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
    operators = job.operators.sentence() if job.operators.choice else offer(work.facts, work.handed)
    return [
        *steps,
        *filter(None, [operators]),
        f"with {work.launch.python}, {work.launch.processes} process(es)",
    ]
