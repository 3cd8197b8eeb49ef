"""Runs the kernels on the GPU that torch sees (NVIDIA through CUDA, AMD through HIP): errors, then medians.

    python benchmarks/kernels_on_gpu.py [--only rms_norm,rope] [--time-limit 420] [--sweep] [--json result.json]

Needs torch and tilelang, nothing of amdflow's own dependencies. The sources are the ones that are built for AMD; only
the tile settings differ (kernels/tiles/<target>.yaml). ``--tiles gfx1100`` runs another target's settings here: slow,
but it shows that the numbers are right with them.

Training operators run forward and backward beside eager torch, torch's fused operator, torch.compile and Liger-Kernel
where it is installed; GEMM and attention run forward beside torch. Errors are against float64, relative to the element
plus the result's root mean square. Times are medians of device events over graph replays, the L2 cache flushed before
each. ``--sweep`` tries other tile settings. Rows are in the JSON file as soon as they are known.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import matrix_ops
import sweeping
import torch
import training_ops
from measuring import Record, ceilings, draw, host_us, median_ms, peak_mib, worst_error
from tilelang_ops import launch
from tilelang_ops.lowering import language_for, load_module
from tilelang_ops.tiles import kernel_file, tiles_of
from training_ops import Case

ALLOWED = {"float32": 2e-5, "float16": 2.0**-10, "bfloat16": 2.0**-7}
MATRIX = tuple(matrix_ops.CHECKED)


def main() -> int:
    """Check and time; the exit status is 1 when a number is wrong."""
    options = _options()
    if not torch.cuda.is_available():
        sys.stderr.write("torch sees no GPU here\n")
        return 5
    target = launch.target_of("cuda")
    if options.tiles:
        launch.tiles_of = lambda _target, op, build: tiles_of(options.tiles, op, build)  # type: ignore[attr-defined]
    tiles = options.tiles or target
    facts = {"gpu": torch.cuda.get_device_name(0), "target": target, "torch": torch.__version__, "tiles": tiles}
    record = Record(options.json, options.time_limit, facts)
    print(facts, flush=True)
    record.add("ceilings", {}, ceilings)
    chosen = [case for case in training_ops.CHECKED + training_ops.TIMED if _wanted(case.op, options)]
    record.add("compile", {}, lambda: compile_all(chosen, options.dtype.split(","), target, tiles))
    _check_all(options, record, tiles)
    if not options.no_times:
        _time_all(options, record, tiles)
    if options.sweep:
        if _wanted("linear_cross_entropy", options):
            sweeping.sweep_rows_at_a_time(record)
        sweeping.sweep(record, [op for op in sweeping.CANDIDATES if _wanted(op, options)])
    wrong = [row for row in record.rows if "error" in row or row.get("worst", 0) > row.get("allowed", 0)]
    record.write()
    print(
        f"{len(record.rows)} rows, {len(wrong)} wrong, {record.document.get('left_out', 0)} left out for lack of time"
    )
    return 1 if wrong else 0


def _check_all(options: argparse.Namespace, record: Record, tiles: str) -> None:
    dtypes = options.dtype.split(",")
    for case in (case for case in training_ops.CHECKED if _wanted(case.op, options)):
        for dtype in dtypes:
            labels = {"op": case.op, "dtype": dtype, "sizes": dict(case.sizes)}
            record.add("check", labels, lambda case=case, dtype=dtype: check(case, dtype))
    for op in (op for op in MATRIX if _wanted(op, options)):
        for dtype in (name for name in dtypes if name != "float32"):
            for sizes in matrix_ops.CHECKED[op]:
                labels = {"op": op, "dtype": dtype, "sizes": sizes}
                record.add(
                    "check",
                    labels,
                    lambda op=op, dtype=dtype, sizes=sizes: matrix_ops.check(op, sizes, dtype, tiles, ALLOWED[dtype]),
                )


def _time_all(options: argparse.Namespace, record: Record, tiles: str) -> None:
    dtype = options.dtype.split(",")[0]
    liger = training_ops.liger_functions()
    for case in (case for case in training_ops.TIMED if _wanted(case.op, options)):
        labels = {"op": case.op, "dtype": dtype, "sizes": dict(case.sizes)}
        record.add("time", labels, lambda case=case: time_it(case, dtype, liger))
    for op in (op for op in MATRIX if _wanted(op, options)):
        for sizes in matrix_ops.TIMED[op]:
            labels = {"op": op, "dtype": dtype, "sizes": sizes}
            record.add("time", labels, lambda op=op, sizes=sizes: matrix_ops.time_it(op, sizes, dtype, tiles))


def compile_all(cases: Sequence[Case], dtypes: Sequence[str], target: str, tiles: str) -> dict[str, Any]:
    """Compile what the cases need, several at a time: TileLang keeps the results for when they are called."""
    import tilelang

    wanted: dict[str, tuple[str, dict[str, Any]]] = {}
    for case in cases:
        for op, sizes in case.kernels:
            for dtype in dtypes:
                fixed = {"dtype": dtype, **{name: size for name, size in sizes.items() if size is not None}}
                fixed |= {"angles": dtype} if op == "rope" else {}
                wanted[f"{op} {fixed}"] = op, fixed
    functions = [
        load_module(str(kernel_file(op))).build(language_for(target), **fixed, **tiles_of(tiles, op, fixed))
        for op, fixed in wanted.values()
    ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        failures = [text for text in pool.map(lambda function: _compile(tilelang, function), functions) if text]
    return {"kernels": len(functions)} | ({"error": failures[0]} if failures else {})


def _compile(tilelang: Any, function: Any) -> str:
    try:
        tilelang.compile(function, target="auto")
    except Exception as error:
        return f"{function.attrs['global_symbol']}: {type(error).__name__}: {str(error)[-600:]}"
    return ""


def check(case: Case, dtype: str, device: str = "cuda") -> dict[str, Any]:
    """Worst error of each result and gradient against float64, beside the error of eager torch in the same type."""
    values = case.inputs(getattr(torch, dtype), device)
    wide = [value.double() if value.is_floating_point() else value for value in values]
    cotangents = _cotangents(case.eager(*wide), getattr(torch, dtype), device)
    expected = _both(case, case.eager, wide, cotangents)
    ours, theirs = (_both(case, work, values, cotangents) for work in (case.ours, case.eager))
    errors = [worst_error(mine, right) for mine, right in zip(ours, expected, strict=True)]
    eager = [worst_error(mine, right) for mine, right in zip(theirs, expected, strict=True)]
    return {"worst": max(errors), "allowed": ALLOWED[dtype] * case.slack, "errors": errors, "eager_errors": eager}


def time_it(case: Case, dtype: str, liger: Mapping[str, Callable[..., Any]]) -> dict[str, Any]:
    """Median milliseconds forward and backward of each contender, and how much faster ours is than the best of the others."""
    kind = getattr(torch, dtype)
    torch.compiler.reset()
    contenders: dict[str, Callable[..., Any] | None] = {
        "ours": case.ours,
        "eager": case.eager,
        "fused": case.fused,
        "compiled": torch.compile(case.eager, dynamic=False),
        "liger": liger.get(case.liger),
    }
    found: dict[str, Any] = {"ms": {}, "forward_ms": {}, "host_us": {}, "peak_mib": {}, "failed": {}}
    for name, function in contenders.items():
        if function is None:
            continue
        try:
            _time_one(case, name, function, case.inputs(kind, "cuda"), found)
        except Exception as error:  # a contender that fails must not hide the others
            found["failed"][name] = f"{type(error).__name__}: {str(error).strip()[-300:]}"
        torch.cuda.empty_cache()
    others = {name: ms for name, ms in found["ms"].items() if name != "ours"}
    if "ours" in found["ms"]:
        ours = found["ms"]["ours"]
        found["best_other"] = min(others, key=others.__getitem__)
        found["ratio"] = others[found["best_other"]] / ours
        if case.bytes_each:
            found["gb_s"] = case.bytes_each(kind.itemsize) / ours / 1e6
        else:
            found["tflop_s"] = case.operations / ours / 1e9
    if "ours" in found["failed"]:
        found["error"] = found["failed"]["ours"]
    return found


def _time_one(
    case: Case, name: str, function: Callable[..., Any], values: list[torch.Tensor], found: dict[str, Any]
) -> None:
    cotangents = _cotangents(function(*values), values[0].dtype, "cuda")

    def both() -> Any:
        return _both(case, function, values, cotangents)

    def forward() -> Any:
        with torch.no_grad():
            return function(*values)

    both()
    found["peak_mib"][name] = round(peak_mib(both))
    found["host_us"][name] = round(host_us(both, 10))
    found["ms"][name] = median_ms(both)
    found["forward_ms"][name] = median_ms(forward)


def _both(
    case: Case, function: Callable[..., Any], values: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """Results and gradients. The inputs are leaves of their own, which share the values' memory."""
    leaves = [value.detach().requires_grad_() for value in values[: case.differentiable]]
    results = _results(function(*leaves, *values[case.differentiable :]))
    given = [part.to(result.dtype) for part, result in zip(cotangents, results, strict=True)]
    return [result.detach() for result in results] + list(torch.autograd.grad(results, leaves, given))


def _cotangents(results: Any, dtype: torch.dtype, device: str) -> list[torch.Tensor]:
    """What arrives from the layers behind, rounded to ``dtype`` so that all start from the same; 1 at a loss."""
    parts = _results(results)
    return [draw(*part.shape, dtype=dtype, device=device) if part.dim() else torch.ones_like(part) for part in parts]


def _results(results: Any) -> list[torch.Tensor]:
    return list(results) if isinstance(results, tuple | list) else [results]


def _wanted(op: str, options: argparse.Namespace) -> bool:
    return not options.only or op in options.only.split(",")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="errors and medians of the kernels on this machine's GPU")
    parser.add_argument("--only", default="", help="operators, separated by commas; all when absent")
    parser.add_argument("--dtype", default="bfloat16,float16", help="value types; the first is timed")
    parser.add_argument("--tiles", default="", help="another target's tile settings (gfx942, gfx1100, cuda)")
    parser.add_argument("--no-times", action="store_true", help="errors only")
    parser.add_argument("--sweep", action="store_true", help="try other tile settings for the memory-bound kernels")
    parser.add_argument("--time-limit", type=float, default=1e9, help="seconds after which nothing new is begun")
    parser.add_argument("--json", default="")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
