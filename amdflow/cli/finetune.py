"""``amdflow finetune``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amdflow.cli.options import ConfigFile, DryRun, Force, FormatOption, FromManifest, Output, Quiet, Verify
from amdflow.terminal import Format

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from amdflow.pipeline.runner import StageReport
    from amdflow.terminal import Terminal

_CONFIG_HELP = "A LLaMA-Factory training config (.yaml or .json). Default: finetune.config of amdflow.yaml."
_PROCESSES_HELP = "Training processes; default: one for each GPU, one on a CPU."
_ABLATE_HELP = "Measure custom operators instead: a few steps with none, each alone, and all. Leaves no result."
_STEPS_HELP = "Steps of each trial of --ablate."
_STEPS = 10


def finetune(
    config_file: Annotated[Path | None, typer.Argument(metavar="CONFIG", help=_CONFIG_HELP, show_default=False)] = None,
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="LLaMA-Factory keys that win over the file's.")
    ] = None,
    processes: Annotated[int | None, typer.Option("--processes", help=_PROCESSES_HELP, show_default=False)] = None,
    ablate: Annotated[bool, typer.Option("--ablate", help=_ABLATE_HELP)] = False,
    ablate_steps: Annotated[int, typer.Option("--ablate-steps", min=5, help=_STEPS_HELP)] = _STEPS,
    output: Output = None,
    force: Force = False,
    dry_run: DryRun = False,
    verify: Verify = False,
    from_manifest: FromManifest = None,
    format: FormatOption = Format.HUMAN,
    quiet: Quiet = False,
    config: ConfigFile = None,
) -> None:
    """Fine-tune a language model with LLaMA-Factory, from its own config.

    Checks config, model and data first; stops at the first loss that is not finite; goes on after an interruption.

    Example:  amdflow finetune finetuning/lora.yaml learning_rate=1e-4 max_steps=100
    Example:  amdflow finetune finetuning/lora.yaml 'kernels={rms_norm: all}' --ablate
    """
    from amdflow.cli.context import run_stage
    from amdflow.finetune.recipe import parse_overrides

    words = list(overrides or [])
    if config_file is not None and "=" in str(config_file) and not config_file.exists():
        words.insert(0, str(config_file))
        config_file = None
    flags = {
        "config": str(config_file.absolute()) if config_file else None,
        "overrides": parse_overrides(words) or None,
        "processes": processes,
    }
    if ablate:
        _ablate(flags, ablate_steps, output, from_manifest, format, dry_run=dry_run, quiet=quiet, config=config)
        return
    run_stage(
        "finetune",
        flags,
        output=output,
        force=force,
        dry_run=dry_run,
        verify=verify,
        from_manifest=from_manifest,
        format=format,
        quiet=quiet,
        config=config,
    )


def _ablate(
    flags: Mapping[str, Any],
    steps: int,
    output: Path | None,
    from_manifest: Path | None,
    format: Format,
    *,
    dry_run: bool,
    quiet: bool,
    config: Path | None,
) -> None:
    from amdflow import stages
    from amdflow.cli.context import open_context
    from amdflow.errors import UsageError
    from amdflow.finetune import ablation
    from amdflow.pipeline.stage import Request

    if output is not None:
        raise UsageError("--ablate leaves no result, so there is nothing for --output", hint="leave --output away")
    context = open_context(format=format, quiet=quiet, config=config)
    stage = stages.load("finetune")
    resolved = context.project.resolve("finetune", stage.config_type, flags)
    request = Request(
        resolved.value,
        context.project.root,
        context.settings.targets,
        context.upstream(stage, from_manifest),
        context.terminal,
        context.toolchain,
    )
    work = ablation.plan_ablation(request)
    context.terminal.say(f"  {work.job.operators.sentence()}")
    if dry_run:
        return
    found = ablation.ablate(work, context.destination(stage), request, steps)
    context.terminal.table(ablation.HEADINGS, ablation.table_rows(found), right=range(1, len(ablation.HEADINGS)))
    for remark in ablation.remarks(found):
        context.terminal.say(f"  {remark}")
    context.terminal.data(found.to_json())
    if found.failed:
        raise typer.Exit(1)


def render(report: StageReport, terminal: Terminal) -> None:
    """Show what the stage did."""
    manifest = report.manifest
    if manifest is None:
        return
    metrics = manifest.metrics
    trained = next((artifact for artifact in manifest.outputs if artifact.role in ("adapter", "model")), None)
    memory = metrics.get("peak_gpu_mb") or metrics.get("peak_rss_mb")
    rows = [
        ("base model", str(metrics.get("base_model"))),
        (
            "steps",
            f"{metrics.get('steps')}"
            + (f" (resumed at {metrics['resumed_from']})" if metrics.get("resumed_from") else ""),
        ),
        ("loss", f"{metrics.get('first_loss')} -> {metrics.get('final_loss')}"),
        ("tokens", f"{metrics.get('tokens'):,} ({metrics.get('tokens_per_second')}/s)"),
        ("device", f"{metrics.get('device')}, {metrics.get('processes')} process(es), peak memory {memory} MB"),
        ("result", os.path.normpath((report.manifest_path.parent / trained.path).parent) if trained else "-"),
    ]
    for row in metrics.get("operators", []):
        used = f"{row['calls']:,} calls in {row['modules']} modules"
        traced = f", in {row['in_compiled_graphs']} compiled graphs" if row["in_compiled_graphs"] else ""
        rows.append((row["op"], f"{used}{traced}: {', '.join(row['kernels'])}"))
    terminal.table(("", "fine-tuning"), rows)
