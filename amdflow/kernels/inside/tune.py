"""Runs with the kernels environment's Python: compiles and measures candidate settings on the GPU that torch sees.

    python tune.py compile JOBS.json    only compiles: TileLang keeps the results for the measuring process
    python tune.py measure JOBS.json    compiles, checks the numbers, and times

JOBS.json is {"limit": SECONDS, "jobs": [...]}; a job is {"id", "module", "target", "dtype", "build" (what ``build`` gets),
"sizes" (of one call), "cases" (sizes of the calls whose numbers are checked), "allowed"}. Before a job its {"start": id}
is said, after it {"id", "ms", "worst"} or {"id", "error"}. A job that takes longer than the limit ends this process,
with a traceback on stderr: whoever started it goes on with the next.
"""

from __future__ import annotations

import faulthandler
import json
import sys
import traceback
from functools import cache
from pathlib import Path
from typing import Any

import torch

# a script's folder is first on its path
from measuring.clock import medians
from measuring.numbers import check, empty_results, tilelang_kernel
from measuring.record import say
from tilelang_ops.lowering import load_module


def main() -> int:
    """Do every job; a failed one does not stop the others."""
    orders = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    for job in orders["jobs"]:
        say({"start": job["id"]})
        faulthandler.dump_traceback_later(orders["limit"], exit=True)
        try:
            say({"id": job["id"], **(measure(job) if sys.argv[1] == "measure" else compiled(job))})
        except Exception as error:
            traceback.print_exc()
            words = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
            say({"id": job["id"], "error": f"{type(error).__name__}: {words[0][:300]}"})
        faulthandler.cancel_dump_traceback_later()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    return 0


def compiled(job: dict[str, Any]) -> dict[str, Any]:
    """Compile only."""
    tilelang_kernel(load_module(job["module"]), job["target"], job["build"])
    return {}


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """Worst error of the cases, and median milliseconds with cold caches. Raises ValueError for a wrong number."""
    kernel, buffers, names = tilelang_kernel(load_module(job["module"]), job["target"], job["build"])
    open_sizes = {str(extent) for buffer in buffers.values() for extent in buffer.shape}
    fixed = {
        name: value for name, value in job["build"].items() if name not in open_sizes
    }  # so that cases may vary them
    worst = max(check(job | {"build": fixed, "run": case}) for case in job["cases"])
    if not worst <= job["allowed"]:
        raise ValueError(f"wrong numbers: an error of {worst:.1e}, {job['allowed']:.1e} is allowed")
    values = _inputs(job["module"], job["dtype"], json.dumps(job["sizes"]))
    results = empty_results(buffers, values, job["sizes"], "cuda")
    arguments = [{**values, **results}[name] for name in names]
    return {"ms": medians(lambda: kernel(*arguments))["cold_ms"], "worst": worst}


@cache
def _inputs(module: str, dtype: str, sizes: str) -> dict[str, Any]:
    """The same for every candidate: drawn in the kernel's own type, since only the time is looked at."""
    kind = getattr(torch, dtype)
    generator = torch.Generator("cuda").manual_seed(0)
    with torch.device("cuda"):
        found = load_module(module).inputs(
            lambda *shape: torch.randn(*shape, generator=generator, dtype=kind), **json.loads(sizes)
        )
    return {name: value.contiguous() if isinstance(value, torch.Tensor) else value for name, value in found.items()}


if __name__ == "__main__":
    sys.exit(main())
