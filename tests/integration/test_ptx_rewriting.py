"""Real-looking CUDA code with inline PTX, migrated with the real tools: it compiles for both wave sizes and still as CUDA."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from amdflow import process
from amdflow.migrate.compat import header
from amdflow.toolchain import Toolchain
from tests.conftest import REPOSITORY, CommandLine

SOURCE = REPOSITORY / "tests" / "integration" / "ptx" / "snippets.cu"
CUDA = [
    "--cuda-gpu-arch=sm_90",
    "--cuda-device-only",
    "-nocudalib",
    "-S",
    "-emit-llvm",
    "-O1",
    "-w",
    "-std=c++17",
    "-D__HIP_PLATFORM_NVIDIA__",
    "-Wno-unknown-cuda-version",
]
UNKNOWN = """
__device__ void known_and_unknown(float* d, unsigned a, unsigned b, int n) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0}, {%1}, {%2}, {%0};" : "+f"(d[0]) : "r"(a), "r"(b));
  asm volatile("bar.sync 1, 64;");
  asm volatile("add.cc.u32 %0, %0, %1;" : "+r"(a) : "r"(b));
  asm volatile("{ add.u32 %0, %0, 1; mapa.u32 %0, %0, 1; }" : "+r"(a));
}
"""


class Done:
    """What came of the migration."""

    def __init__(self, folder: Path) -> None:
        self.tree = folder / "hip"
        self.text = (self.tree / "snippets.cu").read_text()
        report = self.tree / "amdflow-report"
        self.findings: list[dict[str, Any]] = json.loads((report / "findings.json").read_text())["findings"]

    def of(self, path: str) -> list[dict[str, Any]]:
        """Findings of one file."""
        return [finding for finding in self.findings if finding["path"] == path]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    folder = tmp_path_factory.mktemp("ptx")
    (folder / "cuda").mkdir()
    shutil.copy(SOURCE, folder / "cuda" / "snippets.cu")
    (folder / "cuda" / "unknown.cu").write_text(UNKNOWN)
    amdflow = CommandLine(folder, {"XDG_CONFIG_HOME": str(folder / "config-home")})
    said = amdflow("migrate", folder / "cuda", "--output", "hip", "--arch", "gfx942,gfx1100", "--format", "json")
    assert said.code == 0, said.err
    return Done(folder)


def test_every_statement_is_rewritten_and_the_file_compiles_for_both_wave_sizes(done: Done) -> None:
    assert done.text.count("AMDFLOW_PTX(") == SOURCE.read_text().count("asm")
    assert [finding for finding in done.of("snippets.cu") if finding["severity"] in ("compile", "silent")] == []


def test_lines_stay_where_they_were(done: Done) -> None:
    before = [number for number, line in enumerate(SOURCE.read_text().split("\n")) if "asm" in line]
    after = [number for number, line in enumerate(done.text.split("\n")) if "asm" in line]
    assert len({new - old for old, new in zip(before, after, strict=True)}) == 1


def test_what_costs_time_or_differs_is_said(done: Done) -> None:
    said = {(finding["id"], finding["severity"]) for finding in done.of("snippets.cu")}
    assert {("AMF1031", "note"), ("AMF1215", "slow"), ("AMF1216", "note")} <= said
    slow = [finding["line"] for finding in done.of("snippets.cu") if finding["id"] == "AMF1215"]
    lines = SOURCE.read_text().split("\n")
    assert all("asm" in lines[line - 1] for line in slow)


def test_a_statement_with_one_unknown_instruction_is_left_whole_and_the_instruction_is_named(done: Done) -> None:
    assert (done.tree / "unknown.cu").read_text().count("AMDFLOW_PTX") == 0
    found = {(finding["line"], finding["severity"]): finding["message"] for finding in done.of("unknown.cu")}
    assert "mma.sync" in found[3, "compile"]
    assert "a named barrier or one for part of the block" in found[4, "compile"]
    assert "leaves its carry to another asm statement" in found[5, "compile"]
    assert "mapa.u32" in found[6, "compile"]


FUNCTIONS = """
#include "simd_in_word.h"
#include "device_functions.h"
#include "cache_operators.h"
#include "directed_rounding.h"
__global__ void all(int* i, unsigned* u, float* f, float4* v, const void* p, unsigned long long* l, double* d) {
  __shared__ float4 tile[64];
  amdflow::atomicAdd_block(i, 1); amdflow::atomicAdd_block(f, 1.0f); amdflow::atomicSub_block(i, 2);
  amdflow::atomicCAS_block(l, 1, 2); amdflow::atomicMax_block(l, 7); amdflow::atomicExch_block(f, 3);
  u[0] = amdflow::atomicInc_system(u, 5u) + amdflow::atomicDec_block(u, 7u);
  amdflow::pipeline_memcpy_async(&tile[threadIdx.x], v, 16, 8); amdflow::pipeline_commit();
  amdflow::pipeline_wait_prior(0); amdflow::nanosleep(20); amdflow::prof_trigger(1);
  i[3] = amdflow::is_shared(p) + amdflow::is_global(p) + amdflow::dp4a(i[1], i[2], i[3]) + amdflow::dp2a_hi(i[1], i[2], 4);
  v[2] = amdflow::ldcg(v + 1); v[3] = amdflow::ldcv(v + 2); v[4] = tile[3];
  bool high, low;
  u[1] = amdflow::vibmax_s16x2(u[2], u[3], &high, &low) + amdflow::viaddmax_s16x2_relu(u[1], u[2], u[3]) + high + low;
  u[2] = amdflow::vsads4(u[1], u[2]) + amdflow::vabsss4(u[4]) + amdflow::vimax3_u32(u[1], u[2], u[3]);
  f[3] = amdflow::fadd_rz(f[1], f[2]) + amdflow::fsqrt_ru(f[1]) + amdflow::fmaf_rd(f[1], f[2], f[3]);
  d[1] = amdflow::ddiv_rd(d[2], d[3]);
}
"""


@pytest.mark.parametrize("vendor", ["gfx942", "gfx1100", "nvidia"])
def test_device_functions_compile_for_everyone(tmp_path: Path, vendor: str) -> None:
    toolchain = Toolchain()
    rocm = toolchain.rocm()
    text = FUNCTIONS if vendor == "nvidia" else f"#include <hip/hip_runtime.h>{FUNCTIONS}"
    (tmp_path / "all.cu").write_text(text)
    flags = [*rocm.compile_flags(), f"--offload-arch={vendor}", "-O1", "-std=c++17", "-c"]
    if vendor == "nvidia":
        sysroot = [flag for flag in rocm.compile_flags() if "rocm" not in flag or flag.startswith("--sysroot")]
        flags = ["-x", "cuda", *sysroot[2:], f"--cuda-path={toolchain.cuda_headers().root}", *CUDA]
    argv = [str(rocm.clang), *flags, f"-I{header('ptx.h').parent}", "all.cu", "-o", "all.o"]
    done = process.run(argv, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr


def test_the_ptx_is_what_nvidia_compiles(done: Done, tmp_path: Path) -> None:
    """With HIP's NVIDIA platform the headers hand the statements on as they were."""
    toolchain = Toolchain()
    rocm, cuda = toolchain.rocm(), toolchain.cuda_headers()
    header = done.tree / "amdflow_compat" / "ptx.h"
    original = SOURCE.read_text().replace("#include <cstdint>", f'#include "{header}"\n#include <cstdint>', 1)
    rewritten = done.text[done.text.index("__device__ __forceinline__ unsigned lane()") :]
    head = original[: original.index("__device__ __forceinline__ unsigned lane()")]
    code = {"before": original, "after": head + rewritten}
    seen = {}
    for name, text in code.items():
        (tmp_path / f"{name}.cu").write_text(text)
        sysroot = [flag for flag in rocm.compile_flags() if "rocm" not in flag or flag.startswith("--sysroot")]
        argv = [str(rocm.clang), "-x", "cuda", *sysroot[2:], f"--cuda-path={cuda.root}", *CUDA]
        process.run([*argv, f"{name}.cu", "-o", f"{name}.ll"], cwd=tmp_path)
        seen[name] = [
            line.split("asm ", 1)[1] for line in (tmp_path / f"{name}.ll").read_text().split("\n") if " asm " in line
        ]
    assert len(seen["before"]) > 60
    assert seen["before"] == seen["after"]
