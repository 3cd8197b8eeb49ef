"""``amdflow kernels bench``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amdflow.cli.kernel_options import Dtypes, KernelNames, TimeLimit, words
from amdflow.cli.options import ConfigFile, FormatOption, Quiet
from amdflow.terminal import Format

if TYPE_CHECKING:
    from amdflow.kernels.bench import Measured
    from amdflow.terminal import Terminal


def bench(
    kernel: KernelNames = None,
    dtype: Dtypes = None,
    sizes: Annotated[
        str | None,
        typer.Option(help="Sizes of the one operator named (rows=8192,hidden=5120).", show_default="the usual ones"),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="First compare results and gradients at real sizes with float64.")
    ] = False,
    time_limit: TimeLimit = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Folder for results and picture.",
            show_default="one of this run's own in <workdir>/kernels-bench",
        ),
    ] = None,
    format: FormatOption = Format.HUMAN,
    quiet: Quiet = False,
    config: ConfigFile = None,
) -> None:
    """Time operators on this machine's GPU beside torch, torch.compile and Liger-Kernel.

    Example:  amdflow kernels bench --kernel rms_norm,swiglu --check --time-limit 10
    """
    from amdflow.cli.context import open_context
    from amdflow.kernels.bench import Wanted, bench_kernels, failure

    context = open_context(format=format, quiet=quiet, config=config)
    wanted = Wanted(words(kernel) or (), words(dtype) or ("bfloat16",), sizes or "", check, time_limit)
    measured = bench_kernels(context, wanted, output)
    _show(measured, context.terminal)
    context.terminal.data(measured.document)
    wrong = failure(measured)
    if wrong is not None:
        raise wrong


def _show(measured: Measured, terminal: Terminal) -> None:
    from amdflow.files import portable
    from amdflow.kernels.inside.measuring import summary

    document = measured.document
    checks = summary.check_cells(document)
    if checks:
        terminal.table(summary.CHECK_COLUMNS, checks, right=(2, 3, 4))
    rows = [one.cells() for one in summary.comparisons(document)]
    if rows:
        terminal.table(summary.COLUMNS, rows, right=summary.NUMBERS)
    for row in document["rows"]:
        if row["kind"] == "ceilings" and "error" not in row:
            terminal.say(
                f"  {document['gpu']} copies {row['copy_gb_s']:.0f} GB/s, multiplies {row['matmul_tflop_s']:.0f} TFLOP/s in {row['dtype']}"
            )
    for line in summary.problems(document):
        terminal.warn(line)
    if document["left_out"]:
        terminal.warn(f"{document['left_out']} measurements were left out for lack of time")
    for path in (measured.results, *measured.pictures):
        terminal.say(f"  {portable(path, Path.cwd())}")
