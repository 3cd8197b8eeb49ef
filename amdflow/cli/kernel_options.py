"""Options that the kernels' commands share."""

from __future__ import annotations

from typing import Annotated

import typer

KernelNames = Annotated[
    str | None, typer.Option("--kernel", help="Operators, separated by commas (gemm,rope).", show_default=False)
]
Dtypes = Annotated[
    str | None, typer.Option("--dtype", help="Value types, separated by commas (bfloat16,float16).", show_default=False)
]
Jobs = Annotated[int | None, typer.Option("--jobs", "-j", help="Processes at a time.", show_default="one a core")]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        "--time-limit",
        metavar="MINUTES",
        min=0.05,
        max=10080,
        help="Begin nothing new after so long.",
        show_default=False,
    ),
]


def words(text: str | None) -> tuple[str, ...] | None:
    """The words of a list with commas; None when nothing was given."""
    return None if text is None else tuple(word.strip() for word in text.split(",") if word.strip())
