"""``amdflow export``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amdflow.cli.options import ConfigFile, DryRun, Force, FormatOption, FromManifest, Output, Quiet, Verify
from amdflow.terminal import Format

if TYPE_CHECKING:
    from amdflow.pipeline.runner import StageReport
    from amdflow.terminal import Terminal


def export(
    adapter: Annotated[
        Path | None,
        typer.Option("--adapter", help="An adapter folder; default: what finetune made.", show_default=False),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option("--model", help="The adapter's base model, or a fully trained model.", show_default=False),
    ] = None,
    shard_size: Annotated[
        float | None,
        typer.Option("--shard-size", help="Largest SafeTensors file, in GB; default 5.", show_default=False),
    ] = None,
    dtype: Annotated[
        str | None, typer.Option("--dtype", help="bfloat16 (default), float16 or float32.", show_default=False)
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Name to serve the model under.", show_default=False)
    ] = None,
    output: Output = None,
    force: Force = False,
    dry_run: DryRun = False,
    verify: Verify = False,
    from_manifest: FromManifest = None,
    format: FormatOption = Format.HUMAN,
    quiet: Quiet = False,
    config: ConfigFile = None,
) -> None:
    """Write a trained model as merged, sharded SafeTensors, and verify it.

    Example:  amdflow export --adapter out/finetune/training --shard-size 2 --output my-model
    """
    from amdflow.cli.context import run_stage

    flags = {
        "adapter": _absolute(adapter),
        "model": _absolute(model),
        "shard_size": shard_size,
        "dtype": dtype,
        "name": name,
    }
    run_stage(
        "export",
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


def _absolute(path: Path | None) -> str | None:
    """A folder as an absolute path; anything else may be a hub id and stays."""
    return str(path.absolute() if path.exists() else path) if path else None


def render(report: StageReport, terminal: Terminal) -> None:
    """Show what the stage did."""
    manifest = report.manifest
    if manifest is None:
        return
    metrics, logits = manifest.metrics, manifest.metrics.get("logits")
    compared = (
        f"differ by {logits['relative']:.2%} of the largest from the trained model's ({logits['tolerance']:.1%} allowed)"
        if logits
        else "not compared"
    )
    rows = [
        (
            "model",
            f"{manifest.handoff['name']}, {metrics['parameters'] / 1e6:.1f} M parameters, {manifest.handoff['dtype']}",
        ),
        ("files", f"{metrics['shards']} SafeTensors file(s), {metrics['tensors']} tensors, all finite"),
        ("logits", compared),
        ("asked", str(manifest.handoff["probe"]["prompt"])),
        ("it says", str(metrics.get("answer") or "-")),
    ]
    terminal.table(("", "export"), rows)
