"""``amdflow finetune``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amdflow.cli.options import ConfigFile, DryRun, Force, FormatOption, FromManifest, Output, Quiet, Verify
from amdflow.terminal import Format

if TYPE_CHECKING:
    from amdflow.pipeline.runner import StageReport
    from amdflow.terminal import Terminal

_CONFIG_HELP = "A LLaMA-Factory training config (.yaml or .json). Default: finetune.config of amdflow.yaml."
_PROCESSES_HELP = "Training processes; default: one for each GPU, one on a CPU."


def finetune(
    config_file: Annotated[Path | None, typer.Argument(metavar="CONFIG", help=_CONFIG_HELP, show_default=False)] = None,
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="LLaMA-Factory keys that win over the file's.")
    ] = None,
    processes: Annotated[int | None, typer.Option("--processes", help=_PROCESSES_HELP, show_default=False)] = None,
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
    terminal.table(("", "fine-tuning"), rows)
