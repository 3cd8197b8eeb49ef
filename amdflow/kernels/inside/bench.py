"""Runs with the kernels environment's Python: errors and medians of the operators on the GPU that torch sees (HIP or CUDA).

    python amdflow/kernels/inside/bench.py [--only rms_norm,rope] [--dtype bfloat16,float16] [--sizes rows=8192,hidden=4096]
                                           [--check] [--no-times] [--time-limit SECONDS] [--tiles gfx942] [--json result.json]

It needs torch and tilelang on its path, Liger-Kernel where it is to be compared with, and nothing of amdflow's own
dependencies; ``amdflow kernels bench`` calls it so. ``--only`` takes operators and names of kernels: a kernel that no
operator of ours stands on is timed beside its own reference. ``--check`` compares results and gradients at real sizes with
float64 before anything is timed. ``--tiles`` builds with another target's tile settings. One JSON line on stdout for
each row, a summary at the end on stderr; the file is written after every row, and beside it, at the end, a roofline
picture for each value type (result.bfloat16.svg). Exit status: 0, 1 when a number is wrong
or one of our operators failed, 2 for a bad argument, 5 without a GPU.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

# a script's folder is first on its path
from measuring.case import Case
from measuring.cases import case
from measuring.clock import ceilings
from measuring.compare import check, compile_all, time_contender
from measuring.record import Record, say
from measuring.roofline import roofline
from measuring.sizes import CHECKED, OPERATORS, TIMED, Sizes
from measuring.summary import is_wrong, summary_lines
from measuring.tolerance import ALLOWED
from tilelang_ops import launch
from tilelang_ops.tiles import tiles_of

NO_GPU = 5


def main() -> int:
    """Check and time what was asked for."""
    options = _options()
    if not torch.cuda.is_available():
        sys.stderr.write("torch sees no GPU here\n")
        return NO_GPU
    try:
        checked, timed = _cases(options, CHECKED), _cases(options, TIMED)
    except (ValueError, FileNotFoundError) as error:
        say({"refused": str(error)})
        sys.stderr.write(f"{error}\n")
        return 2
    record = Record(options.json, options.time_limit, _facts(options))
    checked, timed = checked if options.check else [], [] if options.no_times else timed
    say({"total": _total(checked, timed, options.dtype)})
    record.add("compile", {}, lambda: compile_all([*checked, *timed], options.dtype, launch.target_of("cuda")))
    for one in checked:
        for dtype in filter(one.has, options.dtype):
            labels = {"op": one.op, "dtype": dtype, "sizes": dict(one.sizes)}
            record.add("check", labels, lambda one=one, dtype=dtype: check(one, dtype, "cuda"))
    if timed:
        _time(timed, options.dtype, record)
    _draw(record.document, options)
    sys.stderr.write("\n".join(summary_lines(record.document)) + "\n")
    return 1 if any(map(is_wrong, record.rows)) else 0


def _time(cases: Sequence[Case], dtypes: Sequence[str], record: Record) -> None:
    for dtype in dtypes:
        ceiling = record.add("ceilings", {"dtype": dtype}, lambda dtype=dtype: ceilings(getattr(torch, dtype)))
        for one in (one for one in cases if one.has(dtype)):
            torch.compiler.reset()
            for name, function in one.contenders().items():
                labels = {"op": one.op, "dtype": dtype, "sizes": dict(one.sizes), "contender": name}
                record.add(
                    "time",
                    labels,
                    lambda one=one, function=function, dtype=dtype, ceiling=ceiling: time_contender(
                        one, dtype, function, ceiling
                    ),
                )


def _draw(document: Mapping[str, Any], options: argparse.Namespace) -> None:
    for dtype in options.dtype if options.json else ():
        picture = roofline(document, dtype)
        if picture is not None:
            Path(options.json).with_suffix(f".{dtype}.svg").write_text(picture, encoding="utf-8")


def _cases(options: argparse.Namespace, defaults: Mapping[str, Sequence[Sizes]]) -> list[Case]:
    ops = options.only or OPERATORS
    return [case(op, sizes) for op in ops for sizes in ([options.sizes] if options.sizes else defaults.get(op, [{}]))]


def _total(checked: Sequence[Case], timed: Sequence[Case], dtypes: Sequence[str]) -> int:
    """Rows to come."""
    rows = 1 + (len(dtypes) if timed else 0)
    for dtype in dtypes:
        rows += sum(one.has(dtype) for one in checked)
        rows += sum(len(one.contenders()) for one in timed if one.has(dtype))
    return rows


def _facts(options: argparse.Namespace) -> dict[str, Any]:
    import tilelang

    target = launch.target_of("cuda")
    if options.tiles:
        launch.tiles_of = lambda _target, op, build: tiles_of(options.tiles, op, build)
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    return {
        "gpu": properties.name,
        "target": target,
        "compute_units": properties.multi_processor_count,
        "tiles": options.tiles or target,
        "torch": torch.__version__,
        "runtime": f"HIP {torch.version.hip}" if torch.version.hip else f"CUDA {torch.version.cuda}",
        "tilelang": tilelang.__version__,
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="errors and medians of the kernels on this machine's GPU")
    parser.add_argument("--only", type=_words, default=[], help="operators or kernels, separated by commas")
    parser.add_argument("--dtype", type=_dtypes, default=["bfloat16"], help="value types")
    parser.add_argument("--sizes", type=_sizes, default={}, help="sizes of the one operator that --only names")
    parser.add_argument("--check", action="store_true", help="compare with float64 first")
    parser.add_argument("--no-times", action="store_true", help="time nothing")
    parser.add_argument("--time-limit", type=float, default=float("inf"), help="seconds after which nothing is begun")
    parser.add_argument("--tiles", default="", help="build with this target's tile settings")
    parser.add_argument("--json", default="", help="file for the results")
    options = parser.parse_args()
    if options.sizes and len(options.only) != 1:
        parser.error("--sizes needs --only with one operator")
    return options


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _dtypes(text: str) -> list[str]:
    for word in _words(text):
        if word not in ALLOWED:
            raise argparse.ArgumentTypeError(f"{word!r} is none of {', '.join(ALLOWED)}")
    return _words(text)


def _sizes(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for word in _words(text):
        name, _, value = word.partition("=")
        if not value:
            raise argparse.ArgumentTypeError(f"{word!r} is not of the form size=value")
        found[name] = {"true": True, "false": False}.get(value, int(value) if value.isdigit() else value)
    return found


if __name__ == "__main__":
    sys.exit(main())
