"""``amdflow kernels tune``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from amdflow.cli.kernel_options import Dtypes, Jobs, KernelNames, TimeLimit, words
from amdflow.cli.options import Arch, ConfigFile, FormatOption, Quiet
from amdflow.terminal import Format

if TYPE_CHECKING:
    from amdflow.kernels.tune import Tuned
    from amdflow.terminal import Terminal

_SHOWN = 5


def tune(
    kernel: KernelNames = None,
    arch: Arch = None,
    dtype: Dtypes = None,
    shape: Annotated[
        str | None,
        typer.Option(help="Sizes of the one kernel named (hidden=5120,rows=8192).", show_default="shapes.yaml's"),
    ] = None,
    time_limit: TimeLimit = 10.0,
    write: Annotated[
        bool | None,
        typer.Option(
            "--write/--no-write",
            help="Write the best settings to tiles/<target>.yaml in your kernels folder.",
            show_default="if they were measured",
        ),
    ] = None,
    jobs: Jobs = None,
    format: FormatOption = Format.HUMAN,
    quiet: Quiet = False,
    config: ConfigFile = None,
) -> None:
    """Search tile settings: measured on this machine's GPU; for another target, or without one, ranked by a model.

    Example:  amdflow kernels tune --kernel gemm --shape m=4096,n=14336,k=4096 --time-limit 15
    """
    from amdflow.cli.context import open_context
    from amdflow.kernels.tune import Wanted, tune_kernels

    context = open_context(format=format, quiet=quiet, config=config, arch=arch)
    wanted = Wanted(
        words(kernel) or (),
        words(dtype) or ("bfloat16",),
        words(arch) or (),
        sizes_of(shape),
        time_limit or 10.0,
        write,
        jobs or 0,
    )
    results = tune_kernels(context, wanted)
    for result in results:
        _show(result, context.terminal)
    context.terminal.data(
        {"schema": "amdflow/kernel-tuning", "version": "1.0", "tasks": [result.to_json() for result in results]}
    )


def sizes_of(text: str | None) -> dict[str, Any] | None:
    """Names with whole numbers, true, false, or words. Raises UsageError."""
    from amdflow.errors import UsageError

    if text is None:
        return None
    found: dict[str, Any] = {}
    for word in words(text) or ():
        name, equals, value = word.partition("=")
        number = int(value) if value.isascii() and value.lstrip("-").isdecimal() else None
        if not (name and equals and value) or (number is not None and number < 1):
            raise UsageError(f"--shape: {word!r} is not of the form size=value", hint="--shape rows=8192,hidden=4096")
        found[name] = {"true": True, "false": False}.get(value, value) if number is None else number
    return found


def _show(result: Tuned, terminal: Terminal) -> None:
    from amdflow.kernels import tune_table

    columns, rows, right = tune_table.table(result, _SHOWN)
    if rows:
        terminal.table(columns, rows, title=result.task.title, right=right)
    for line in tune_table.remarks(result):
        terminal.say(f"  {line}")
