# ruff: noqa: INP001
"""Stands in for SGLang's compiled kernels, which have no published CPU build, when the server runs on a CPU without AMX.

There every layer takes its plain PyTorch path; SGLang still imports this module and asks it for names. One of them is
called, by speculative decoding, and is written out below. Any other one explains itself when it is called.
"""

from __future__ import annotations

from typing import Any, NoReturn

__version__ = "0.0.0+amdflow.cpu"


def assign_req_to_token_pool_cpu(
    request_rows: Any, table: Any, starts: Any, ends: Any, slots: Any, _stride: int
) -> None:
    """Copy each request's share of ``slots``, in order, to columns ``start:end`` of its row of ``table``, in place."""
    taken = 0
    for row, start, end in zip(request_rows.tolist(), starts.tolist(), ends.tolist(), strict=True):
        count = end - start
        table[row, start:end] = slots[taken : taken + count].to(table.dtype)
        taken += count


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)

    def unavailable(*_positional: Any, **_named: Any) -> NoReturn:
        raise RuntimeError(
            f"sgl_kernel.{name} is compiled code for a GPU (or an AMX CPU), and there is none in this environment; "
            "turn off the option that wants it"
        )

    unavailable.__name__ = name
    return unavailable
