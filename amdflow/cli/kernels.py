"""``amdflow kernels``: build TileLang kernels for AMD targets, test their numbers, measure and tune them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amdflow.cli.kernel_bench import bench
from amdflow.cli.kernel_export import export
from amdflow.cli.kernel_list import list_all
from amdflow.cli.kernel_options import Dtypes, Jobs, KernelNames, words
from amdflow.cli.kernel_tune import tune
from amdflow.cli.options import Arch, ConfigFile, DryRun, Force, FormatOption, FromManifest, Output, Quiet, Verify
from amdflow.terminal import Format

if TYPE_CHECKING:
    from amdflow.pipeline.manifest import Manifest
    from amdflow.pipeline.runner import StageReport
    from amdflow.terminal import Terminal

app = typer.Typer(
    help="Build TileLang kernels for AMD targets, test their numbers, measure and tune them.\n\nExample:  amdflow kernels build --kernel gemm",
    no_args_is_help=True,
)


@app.command()
def build(
    kernel: KernelNames = None,
    arch: Arch = None,
    dtype: Dtypes = None,
    jobs: Jobs = None,
    output: Output = None,
    update_baseline: Annotated[
        bool, typer.Option("--update-baseline", help="Accept what the kernels take now in kernels/baseline.json.")
    ] = False,
    force: Force = False,
    dry_run: DryRun = False,
    verify: Verify = False,
    from_manifest: FromManifest = None,
    format: FormatOption = Format.HUMAN,
    quiet: Quiet = False,
    config: ConfigFile = None,
) -> None:
    """Lower kernels to HIP, compile them to code objects, and check each against its target's limits.

    Example:  amdflow kernels build --arch gfx942,gfx1100 --kernel gemm,attention
    """
    from amdflow.cli.context import run_stage

    flags = {"kernels": words(kernel), "dtypes": words(dtype), "targets": words(arch), "jobs": jobs}
    report = run_stage(
        "kernels",
        flags | ({"baseline": "ignore"} if update_baseline else {}),
        output=output,
        force=force,
        dry_run=dry_run,
        verify=verify,
        from_manifest=from_manifest,
        format=format,
        quiet=quiet,
        config=config,
        arch=arch,
    )
    if update_baseline and report.manifest is not None and not dry_run:
        _accept(report.manifest, config)


def _accept(manifest: Manifest, config: Path | None) -> None:
    from amdflow.cli.context import open_context
    from amdflow.files import portable
    from amdflow.kernels.baseline import write_baseline
    from amdflow.kernels.config import KernelsConfig

    context = open_context(quiet=True, config=config)
    source = context.project.resolve("kernels", KernelsConfig, {}).value.source
    folder = (context.project.root / Path(source).expanduser()).resolve()
    path = write_baseline(folder, manifest.metrics["kernels"], manifest.toolchain)
    context.terminal.success(f"wrote {portable(path, Path.cwd())}")


@app.command("test")
def check(
    kernel: KernelNames = None,
    dtype: Dtypes = None,
    jobs: Jobs = None,
    format: FormatOption = Format.HUMAN,
    quiet: Quiet = False,
    config: ConfigFile = None,
) -> None:
    """Run each kernel against its float64 reference: on the CPU, and on the GPU where torch sees one.

    Example:  amdflow kernels test --kernel attention --dtype bfloat16
    """
    from amdflow.cli.context import open_context
    from amdflow.kernels.check import check_kernels, failure

    context = open_context(format=format, quiet=quiet, config=config)
    flags = {"kernels": words(kernel), "jobs": jobs}
    results = check_kernels(context, flags, words(dtype) or ())
    columns = ("kernel", "dtype", "on", "sizes", "worst error", "allowed", "result")
    context.terminal.table(columns, [result.cells() for result in results], right=(4, 5))
    context.terminal.data(
        {"schema": "amdflow/kernel-tests", "version": "1.0", "tests": [result.to_json() for result in results]}
    )
    wrong = failure(results)
    if wrong is not None:
        raise wrong
    context.terminal.success(f"{len(results)} tests passed")


app.command()(bench)
app.command()(tune)
app.command()(export)
app.command("list")(list_all)


def render(report: StageReport, terminal: Terminal) -> None:
    """Show what the stage did."""
    from amdflow.kernels import table

    rows: list[dict[str, Any]] = report.manifest.metrics.get("kernels", []) if report.manifest else []
    if rows:
        terminal.table(table.COLUMNS, table.cells(rows), right=table.NUMBERS)
        terminal.say(f"  {table.NOTE}", style="dim")
