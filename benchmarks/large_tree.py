"""Memory and time of ``amdflow migrate --no-compile`` on generated trees of growing size.

    python benchmarks/large_tree.py [--files 1250,2500,5000] [--cuda-share 0.02] [--json result.json]

The trees are mixed .cu, .cuh, .h and .cpp files of 2 to 10 KB in folders of fifty. Most are plain C++; ``--cuda-share`` of
them hold kernels and API calls, for which hipify-clang runs (seconds each, in processes of its own). Memory is the peak
and processor seconds are those of amdflow itself, children not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path

from amdflow import process

PLAIN = """\
// Accumulates samples of channel {n} and hands out their moments.
#pragma once
#include <cmath>
#include <vector>

namespace lab{n} {{

struct Moments {{
  double mean = 0.0, variance = 0.0;
  long count = 0;
}};

{functions}
}}  // namespace lab{n}
"""
FUNCTION = """\
/* Step {k}: one pass over the values, in the order in which they came. */
inline Moments moments_{k}(const std::vector<double>& values) {{
  Moments result;
  for (double value : values) {{
    const double delta = value - result.mean;
    result.count += 1;
    result.mean += delta / static_cast<double>(result.count);
    result.variance += delta * (value - result.mean);
  }}
  if (result.count > {k}) result.variance /= static_cast<double>(result.count - 1);
  return result;
}}
"""
KERNEL = """\
#include <cuda_runtime.h>
#include <cstdio>
{includes}
__global__ void scale_{n}(float* data, float by, int count) {{
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < count) data[at] *= by;
  int lane = threadIdx.x & 31;
  if (lane == 0) data[at] += __shfl_sync(0xffffffff, data[at], 0);
}}

int run_{n}(int count) {{
  float* data = nullptr;
  if (cudaMalloc(&data, count * sizeof(float)) != cudaSuccess) return 1;
  scale_{n}<<<(count + 255) / 256, 256>>>(data, 2.0f, count);
  cudaDeviceSynchronize();
  return cudaFree(data) == cudaSuccess ? 0 : 1;
}}
"""
DEVICE_HEADER = """\
#pragma once
__device__ inline float lerp_{n}(float from, float to, float by) {{ return from + by * (to - from); }}
"""


def generate(root: Path, files: int, cuda_share: float) -> None:
    """A tree of ``files`` files, the same for the same arguments."""
    chance = random.Random(files)
    cuda_every = round(1 / cuda_share) if cuda_share else files + 1
    for number in range(files):
        folder = root / f"part{number // 50}"
        folder.mkdir(parents=True, exist_ok=True)
        if number % cuda_every == 0:
            neighbour = f'#include "device{number}.cuh"' if number + 1 < files else ""
            (folder / f"kernel{number}.cu").write_text(KERNEL.format(n=number, includes=neighbour))
            (folder / f"device{number}.cuh").write_text(DEVICE_HEADER.format(n=number))
            continue
        functions = "\n".join(FUNCTION.format(k=k) for k in range(chance.randint(3, 16)))
        ending = ".cpp" if number % 5 == 0 else ".h"
        (folder / f"plain{number}{ending}").write_text(PLAIN.format(n=number, functions=functions))


def migrate(tree: Path, workspace: Path) -> dict[str, float]:
    """Wall seconds, processor seconds and peak memory (MB) of the command itself."""
    here = Path(__file__).resolve().parent.parent
    argv = [sys.executable, "-m", "amdflow", "migrate", str(tree), "--no-compile", "--quiet"]
    start = time.monotonic()
    peak = processor = 0.0
    with open(workspace / "said", "ab") as said:
        child = process.Child(
            argv, cwd=workspace, env={**os.environ, "PYTHONPATH": str(here)}, stdout=said, stderr=said
        )
        while child.poll() is None:
            peak = max(peak, _peak_megabytes(child.pid))
            processor = max(processor, _processor_seconds(child.pid))
            time.sleep(0.05)
    if child.sweep():
        raise SystemExit((workspace / "said").read_text(encoding="utf-8", errors="replace")[-800:])
    return {
        "seconds": round(time.monotonic() - start, 1),
        "processor": round(processor, 1),
        "peak_mb": round(peak, 1),
    }


def _peak_megabytes(pid: int) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM:")), 0.0)


def _processor_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Generate, migrate twice (nothing remembered, then everything), print a line for each size."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--files", default="1250,2500,5000")
    parser.add_argument("--cuda-share", type=float, default=0.02)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = []
    columns = "".join(
        f"{run + ' ' + what:>20}" for run in ("first", "again") for what in ("wall s", "processor s", "MB")
    )
    print(f"{'files':>8}{columns}")
    for files in map(int, options.files.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            tree, workspace = Path(folder) / "tree", Path(folder) / "workspace"
            workspace.mkdir()
            generate(tree, files, options.cuda_share)
            first, again = migrate(tree, workspace), migrate(tree, workspace)
        rows.append({"files": files, "first": first, "again": again})
        print(f"{files:>8}" + "".join(f"{value:>20}" for run in (first, again) for value in run.values()), flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
