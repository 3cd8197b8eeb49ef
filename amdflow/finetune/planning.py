"""Everything that can be checked before a training starts, and the work order that comes of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amdflow.config import nearest
from amdflow.errors import EnvironmentProblem, UsageError
from amdflow.files import portable
from amdflow.findings import Finding
from amdflow.finetune.base_model import BaseModel, check_base_model
from amdflow.finetune.checkpoints import is_complete
from amdflow.finetune.dataset import check_dataset
from amdflow.finetune.engine import EngineFacts
from amdflow.finetune.operators import Operators
from amdflow.finetune.places import Places
from amdflow.finetune.registry import REGISTRY, Dataset, names_of, read_registry
from amdflow.pipeline.stage import Input

# Config key -> the package it needs.
_NEEDS = {
    "deepspeed": "deepspeed",
    "use_unsloth": "unsloth",
    "enable_liger_kernel": "liger_kernel",
    "quantization_bit": "bitsandbytes",
    "use_swanlab": "swanlab",
    "plot_loss": "matplotlib",
    "use_galore": "galore_torch",
    "use_apollo": "apollo_torch",
    "use_badam": "badam",
    "use_adam_mini": "adam_mini",
}
_REPORTERS = ("wandb", "tensorboard", "swanlab")


@dataclass(frozen=True)
class Job:
    """A checked training: what to hand to LLaMA-Factory, and what to say about it."""

    source: Path
    args: Mapping[str, Any]
    base: BaseModel
    datasets: tuple[Dataset, ...]
    rows: int
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    operators: Operators = field(default_factory=Operators)
    trial: bool = False
    """It is trained to be measured: its weights are not saved."""

    @property
    def local(self) -> bool:
        """It needs nothing from a hub."""
        return self.base.folder is not None and all(dataset.files for dataset in self.datasets)


def check_job(source: Path, values: Mapping[str, Any], facts: EngineFacts, workspace: Path, *, gpu: bool) -> Job:
    """The work order for a config whose keys have been checked. Raises UsageError or EnvironmentProblem."""
    places = Places(workspace, source)
    args = places.resolve({"dataset_dir": "data", **values})
    _check_template(source, args, facts)
    _check_engine(source, args, facts, gpu=gpu)
    base = check_base_model(args["model_name_or_path"], facts)
    names = [*names_of(args.get("dataset")), *names_of(args.get("eval_dataset"))]
    datasets = read_registry(args["dataset_dir"], names, facts.file_types) if names else []
    rows, findings = 0, []
    for dataset in datasets:
        count, found = check_dataset(dataset, args.get("stage", "sft"), facts.file_types)
        rows += count
        findings += found
    _check_resume(source, args)
    if "output_dir" in values:
        places.notes.append(
            f"output_dir {values['output_dir']} is replaced: the result goes to the stage's own folder (or --output)"
        )
    return Job(source, args, base, tuple(datasets), rows, tuple(findings), tuple(places.notes))


def _check_template(source: Path, args: Mapping[str, Any], facts: EngineFacts) -> None:
    template = args.get("template")
    if template is not None and template not in facts.templates:
        raise UsageError(
            f"{source}: template {template!r} is not known{nearest(str(template), facts.templates)}",
            hint=f"the installed LLaMA-Factory has {len(facts.templates)} templates; none at all takes the tokenizer's own",
        )


def _check_engine(source: Path, args: Mapping[str, Any], facts: EngineFacts, *, gpu: bool) -> None:
    attention = args.get("flash_attn")
    if attention == "fa2" and not facts.flash_attention_2:
        raise EnvironmentProblem(
            f"{source}: flash_attn: fa2 needs the package flash-attn, which is not installed; LLaMA-Factory would go on without it",
            hint="use flash_attn: sdpa, or install flash-attn for ROCm into the fine-tuning environment",
        )
    if attention == "fa3":
        raise EnvironmentProblem(
            f"{source}: flash_attn: fa3 is not available in this LLaMA-Factory", hint="use flash_attn: sdpa or fa2"
        )
    reporters = args.get("report_to") or []
    needed = {package: key for key, package in _NEEDS.items() if args.get(key)}
    needed |= {name: f"report_to: {name}" for name in _REPORTERS if name == reporters or name in names_of(reporters)}
    for package, key in needed.items():
        if package not in facts.modules:
            raise EnvironmentProblem(
                f"{source}: {key} needs the package {package.replace('_', '-')}, which the fine-tuning environment does not have",
                hint=f"install it there, or remove {key.partition(':')[0]} from the config",
            )
    if not gpu:
        _check_cpu(source, args)


def _check_cpu(source: Path, args: Mapping[str, Any]) -> None:
    for key in ("fp16", "pure_bf16", "tf32", "fp8"):
        if args.get(key):
            raise EnvironmentProblem(
                f"{source}: {key} needs a GPU, and the fine-tuning environment sees none",
                hint="on a CPU: bf16: true and use_cpu: true",
            )
    if args.get("bf16") and not args.get("use_cpu"):
        raise EnvironmentProblem(
            f"{source}: bf16 without a GPU needs use_cpu: true", hint="amdflow finetune CONFIG use_cpu=true"
        )


def _check_resume(source: Path, args: Mapping[str, Any]) -> None:
    given = args.get("resume_from_checkpoint")
    if given and (not Path(given).is_dir() or not is_complete(Path(given))):
        raise UsageError(
            f"{source}: resume_from_checkpoint: {given} is not a complete checkpoint",
            hint="name a checkpoint-N folder; an interrupted amdflow run finds its own",
        )


def inputs_of(job: Job, root: Path) -> list[Input]:
    """The files whose content decides the result. The config counts by its values, not by its bytes."""
    files = [Input(f"model/{path.name}", path, "model") for path in job.base.files]
    for dataset in job.datasets:
        files += [Input(f"data/{dataset.name}/{path.name}", path, "data") for path in dataset.files]
    for key in ("deepspeed", "fsdp_config", "new_special_tokens_config"):
        value = job.args.get(key)
        if isinstance(value, str) and os.path.isfile(value):
            files.append(Input(f"{key}/{portable(Path(value), root)}", Path(value), "config"))
    for folder in str(job.args.get("adapter_name_or_path") or "").split(","):
        if folder and os.path.isdir(folder):
            files += [
                Input(f"adapter/{path.name}", path, "model")
                for path in sorted(Path(folder).iterdir())
                if path.is_file()
            ]
    return [*files, *job.operators.inputs()]


def describe(job: Job, root: Path) -> dict[str, Any]:
    """The config as it counts for freshness: every value, paths relative to the workspace, the registry entries and operators used."""
    values = {
        key: portable(Path(value), root) if isinstance(value, str) and value.startswith("/") else value
        for key, value in job.args.items()
    }
    entries = {dataset.name: dict(dataset.entry) for dataset in job.datasets}
    return {**values, **({REGISTRY.removesuffix(".json"): entries} if entries else {}), **job.operators.describe()}
