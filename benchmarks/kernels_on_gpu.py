"""Runs the kernels of kernels/*.py on the GPU that torch sees (NVIDIA through CUDA, AMD through HIP): errors, then medians.

    python benchmarks/kernels_on_gpu.py [--op gemm,attention] [--dtype bfloat16] [--tiles cuda] [--json result.json]

Needs torch and tilelang, nothing of amdflow's own dependencies. The sources are the ones that are built for AMD; only
the tile settings differ (kernels/tiles/<target>.yaml). ``--tiles gfx1100`` runs another target's settings here: slow,
but it shows that the numbers are right with them.

Errors are against the kernel's own torch reference in float64, relative to the element plus the result's root mean
square. Times are medians of device events with the L2 cache flushed before each run, beside torch's own operator.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own custom

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "amdflow" / "kernels" / "inside"))

from lower import language_for, load_module  # noqa: E402 - found through the path above

ALLOWED = {"float32": 2e-5, "float16": 2.0**-10, "bfloat16": 2.0**-7}

# Sizes at which the whole float64 reference fits, odd ones among them; then the sizes that are timed.
CHECKS: dict[str, list[dict[str, Any]]] = {
    "gemm": [
        {"m": 512, "n": 768, "k": 1024},
        {"m": 1000, "n": 1000, "k": 1000},
        {"m": 1, "n": 4096, "k": 4096},
        {"m": 67, "n": 130, "k": 104},
    ],
    "rms_norm": [{"rows": 1000, "hidden": 4096}, {"rows": 7, "hidden": 576}, {"rows": 3, "hidden": 1001}],
    "swiglu": [{"size": 1 << 20}, {"size": 1000001}],
    "rope": [{"tokens": 1000, "heads": 32, "head": 128}, {"tokens": 77, "heads": 9, "head": 64}],
    "attention": [
        {"batch": 2, "tokens": 512, "heads": 8, "kv_heads": 2, "head": 128, "causal": True},
        {"batch": 1, "tokens": 1000, "heads": 6, "kv_heads": 2, "head": 64, "causal": True},
        {"batch": 1, "tokens": 333, "heads": 4, "kv_heads": 4, "head": 128, "causal": False},
        {"batch": 1, "tokens": 1, "heads": 2, "kv_heads": 1, "head": 64, "causal": True},
    ],
}
TIMED: dict[str, list[dict[str, Any]]] = {
    "gemm": [{"m": 4096, "n": 4096, "k": 4096}, {"m": 8192, "n": 8192, "k": 8192}, {"m": 4096, "n": 14336, "k": 4096}],
    "rms_norm": [{"rows": 8192, "hidden": 4096}, {"rows": 8192, "hidden": 2048}],
    "swiglu": [{"size": 8192 * 14336}],
    "rope": [{"tokens": 8192, "heads": 32, "head": 128}],
    "attention": [
        {"batch": 4, "tokens": 4096, "heads": 32, "kv_heads": 32, "head": 128, "causal": True},
        {"batch": 4, "tokens": 4096, "heads": 32, "kv_heads": 8, "head": 64, "causal": True},
    ],
}


def main() -> int:
    """Check and time; the exit status is 1 when a number is wrong."""
    options = _options()
    if not torch.cuda.is_available():
        sys.stderr.write("torch sees no GPU here\n")
        return 5
    gpu = torch.cuda.get_device_properties(0)
    arch = getattr(gpu, "gcnArchName", "").partition(":")[0] if torch.version.hip else "cuda"
    print(f"{gpu.name} ({arch}), torch {torch.__version__}, tiles of {options.tiles or arch}", flush=True)
    rows = []
    for op in options.op.split(","):
        module = load_module(str(ROOT / "kernels" / f"{op}.py"))
        for dtype in options.dtype.split(","):
            if dtype in module.KERNEL["dtypes"]:
                rows += [_row(check, module, arch, options, dtype, sizes) for sizes in CHECKS[op]]
                rows += [
                    _row(time_it, module, arch, options, dtype, sizes) for sizes in TIMED[op] if not options.no_times
                ]
    if options.json:
        Path(options.json).write_text(
            json.dumps(
                {
                    "gpu": gpu.name,
                    "arch": arch,
                    "torch": torch.__version__,
                    "tiles": options.tiles or arch,
                    "rows": rows,
                },
                indent=2,
            )
            + "\n"
        )
    wrong = sum("error" in row or row.get("worst", 0) > row.get("allowed", 0) for row in rows if "ms" not in row)
    print(f"{len(rows)} rows, {wrong} wrong")
    return 1 if wrong else 0


def check(
    module: Any, kernel: Callable[[dict[str, Any]], Any], values: dict[str, Any], dtype: str, _sizes: dict[str, Any]
) -> dict[str, Any]:
    """Worst error against float64."""
    expected = module.reference(
        **{name: value.double() if isinstance(value, torch.Tensor) else value for name, value in values.items()}
    )["y"]
    result = torch.full_like(expected, torch.nan, dtype=getattr(torch, dtype))
    kernel({**values, "y": result})
    worst = (
        ((result.double() - expected).abs() / (expected.abs() + expected.square().mean().sqrt()))
        .nan_to_num(torch.inf)
        .max()
        .item()
    )
    return {"worst": worst, "allowed": ALLOWED[dtype], "max_abs": (result.double() - expected).abs().max().item()}


def time_it(
    module: Any, kernel: Callable[[dict[str, Any]], Any], values: dict[str, Any], dtype: str, sizes: dict[str, Any]
) -> dict[str, Any]:
    """Median milliseconds of the kernel and of torch's own operator, and what that comes to."""
    op = module.KERNEL["op"]
    theirs, work, unit = _torch_operator(op, values, sizes)
    result = torch.empty_like(theirs(), dtype=getattr(torch, dtype))
    mine_ms, torch_ms = _median(lambda: kernel({**values, "y": result})), _median(theirs)
    scale = 1e9 if unit == "TFLOP/s" else 1e6
    return {"ms": mine_ms, "torch_ms": torch_ms, "ratio": torch_ms / mine_ms, unit: work / mine_ms / scale}


def _row(
    measure: Callable[..., dict[str, Any]],
    module: Any,
    arch: str,
    options: argparse.Namespace,
    dtype: str,
    sizes: dict[str, Any],
) -> dict[str, Any]:
    row: dict[str, Any] = {"op": module.KERNEL["op"], "dtype": dtype, "sizes": sizes}
    try:
        fixed = {name: sizes[name] for name in module.KERNEL["sizes"] if name in sizes}
        build = {
            "dtype": dtype,
            **fixed,
            **tiles_of(options.tiles or arch, module.KERNEL["op"], {"dtype": dtype, **fixed}),
        }
        values = module.inputs(_draw, **sizes)
        for name, value in values.items():
            if isinstance(value, torch.Tensor):
                values[name] = (
                    (value.to(getattr(torch, dtype)) if value.dtype == torch.float64 else value).cuda().contiguous()
                )
        row |= measure(module, _compiled(module, arch, build), values, dtype, sizes)
    except Exception as error:  # one kernel that fails must not hide the others
        row["error"] = (
            f"{type(error).__name__}: {str(error).strip().splitlines()[-1][:300] if str(error).strip() else ''}"
        )
    print(
        "  ".join(
            f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}" for name, value in row.items()
        ),
        flush=True,
    )
    torch.cuda.empty_cache()
    return row


def _compiled(module: Any, arch: str, build: dict[str, Any]) -> Callable[[dict[str, Any]], Any]:
    import tilelang

    function = module.build(language_for(arch), **build)
    names = [str(function.buffer_map.get(parameter, parameter).name) for parameter in function.params]
    kernel = tilelang.compile(function, target="auto")
    return lambda values: kernel(*(values[name] for name in names))


def tiles_of(target: str, op: str, build: dict[str, Any]) -> dict[str, Any]:
    """The settings in kernels/tiles for ``target`` over those for its wave size; one ``op [size=value]: {name: value, ...}`` a line."""
    wave = [f"wave{32 if target.startswith('gfx1') else 64}"] if target.startswith("gfx") else []
    found: dict[str, Any] = {}
    for name in (*wave, target):
        path = ROOT / "kernels" / "tiles" / f"{name}.yaml"
        lines = path.read_text().splitlines() if path.is_file() else []
        entries = [match.groups() for line in lines if (match := re.match(r"([a-z_]+)((?: \w+=\w+)*): (\{.*\})", line))]
        for entry_op, conditions, settings in sorted(entries, key=lambda entry: entry[1].count("=")):
            if entry_op == op and all(
                str(build.get(word.split("=")[0])).lower() == word.split("=")[1] for word in conditions.split()
            ):
                found |= json.loads(re.sub(r"(\w+):", r'"\1":', settings))
    return found


def _torch_operator(op: str, values: dict[str, Any], sizes: dict[str, Any]) -> tuple[Callable[[], Any], float, str]:
    """What a user would call instead; the work in FLOP or bytes."""
    if op == "gemm":
        return lambda: F.linear(values["x"], values["w"]), 2.0 * sizes["m"] * sizes["n"] * sizes["k"], "TFLOP/s"
    if op == "attention":
        q, k, v = (values[name].transpose(1, 2) for name in "qkv")
        work = (
            4.0 * sizes["batch"] * sizes["heads"] * sizes["tokens"] ** 2 * sizes["head"] / (2 if sizes["causal"] else 1)
        )
        grouped = sizes["heads"] != sizes["kv_heads"]
        return (
            lambda: F.scaled_dot_product_attention(q, k, v, is_causal=sizes["causal"], enable_gqa=grouped).transpose(
                1, 2
            ),
            work,
            "TFLOP/s",
        )
    if op == "rms_norm":
        return (
            lambda: F.rms_norm(values["x"], (sizes["hidden"],), values["w"], values["eps"]),
            2.0 * values["x"].nbytes,
            "GB/s",
        )
    if op == "swiglu":
        return lambda: F.silu(values["gate"]) * values["up"], 3.0 * values["gate"].nbytes, "GB/s"
    low, high = values["x"].chunk(2, -1)
    cos, sin = (values[name][:, None].to(values["x"].dtype) for name in ("cos", "sin"))
    return lambda: torch.cat([low * cos - high * sin, high * cos + low * sin], -1), 2.0 * values["x"].nbytes, "GB/s"


def _median(work: Callable[[], Any], repeats: int = 50) -> float:
    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    for _ in range(5):
        work()
    times = []
    for _ in range(repeats):
        flush.zero_()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        work()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)


def _draw(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, device="cuda")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="errors and medians of the kernels on this machine's GPU")
    parser.add_argument("--op", default=",".join(CHECKS))
    parser.add_argument("--dtype", default="bfloat16,float16,float32")
    parser.add_argument("--tiles", default="", help="another target's tile settings (gfx942, gfx1100, cuda)")
    parser.add_argument("--no-times", action="store_true", help="errors only")
    parser.add_argument("--json", default="")
    return parser.parse_args()


if __name__ == "__main__":
    torch.manual_seed(0)
    sys.exit(main())
