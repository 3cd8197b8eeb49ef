"""Warp code means the same on waves of 32 and 64 lanes: run in a lockstep simulator, and looked up in code objects.

The library's headers are compiled as they are; only ``wave_primitives.h``, the hardware's part, is the simulator's.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from amdflow import process
from amdflow.migrate.compat import header, with_dependencies
from amdflow.toolchain import Rocm, Toolchain
from tests.conftest import CommandLine

SIMULATOR = Path(__file__).parent / "wave_simulator"
# Code laid out as it is written: the simulator takes the lowest address for the place where diverged lanes meet again.
HOST_COMPILER = ("g++", "-std=c++17", "-O0", "-w")

OPERATIONS = """\
#include "warp.h"
__global__ void broadcast(int* x) { x[threadIdx.x] = amdflow::shfl_sync(~0u, x[threadIdx.x], 5); }
__global__ void down(int* x) { x[threadIdx.x] = amdflow::shfl_down_sync(~0u, x[threadIdx.x], 5); }
__global__ void vote(unsigned int* x) { x[threadIdx.x] = amdflow::ballot_sync(~0u, x[threadIdx.x]); }
"""

TYPES = """\
#include <{half}>
#include <{bfloat16}>
#include "warp.h"
template <typename T> __device__ void shuffle(T* x) {{
  T value = x[threadIdx.x];
  value = amdflow::shfl_sync(0xffffffff, value, 3);
  value = amdflow::shfl_up_sync(~0ull, value, 3, 16);
  value = amdflow::shfl_down_sync(-1, value, 3, 16);
  value = amdflow::shfl_xor_sync(~0u, value, 3);
  value = amdflow::shfl(value, 3);
  x[threadIdx.x] = value;
}}
__global__ void k(int* a, unsigned* b, long long* c, float* d, double* e, __half* f, __half2* g, {prefix}bfloat16* h, char* i) {{
  shuffle(a); shuffle(b); shuffle(c); shuffle(d); shuffle(e); shuffle(f); shuffle(g); shuffle(h); shuffle(i);
  __shared__ float slots[amdflow::warp_size];
  slots[amdflow::lane_id()] = amdflow::warp_id() + max(amdflow::warp_size, a[0]);
  amdflow::syncwarp();
  amdflow::syncwarp(0xff);
  int same;
  b[1] = amdflow::match_any_sync(~0u, d[0]) + amdflow::match_any_sync(~0u, e[0]) + amdflow::match_all_sync(~0u, a[0], &same);
  b[2] = amdflow::reduce_add_sync(~0u, a[0]) + amdflow::reduce_add_sync(~0u, b[0]) + amdflow::reduce_xor_sync(~0u, b[3]);
  b[3] = amdflow::lanemask_lt() + amdflow::ballot_sync(~0u, same) + amdflow::any(same) + amdflow::all(same)
       + amdflow::uni_sync(~0u, same) + amdflow::activemask() + slots[0];
}}
"""

LIBRARIES = """\
#include <hip/hip_runtime.h>
#include <hip/hip_cooperative_groups.h>
#include <hipcub/hipcub.hpp>
#include "cooperative_groups_coalesced.h"
#include "warp_size_query.h"
struct Less { __device__ bool operator()(int a, int b) const { return a < b; } };
__global__ void k(int* x) {
  auto group = cooperative_groups::coalesced_warp_threads();
  x[0] = group.shfl(x[1], 0) + group.size() + group.thread_rank() + group.ballot(1) + group.any(x[0]);
  using Reduce = hipcub::WarpReduce<int, 32>;
  using Load = hipcub::WarpLoad<int, 4, hipcub::WARP_LOAD_DIRECT, 32>;
  using Exchange = hipcub::WarpExchange<int, 4, 32>;
  using Sort = hipcub::WarpMergeSort<int, 4, 32>;
  using Store = hipcub::WarpStore<int, 4, hipcub::WARP_STORE_DIRECT, 32>;
  __shared__ typename Reduce::TempStorage a;
  __shared__ typename Load::TempStorage b;
  __shared__ typename Exchange::TempStorage c;
  __shared__ typename Sort::TempStorage d;
  __shared__ typename Store::TempStorage e;
  int items[4];
  Load(b).Load(x, items);
  Exchange(c).BlockedToStriped(items, items);
  Sort(d).Sort(items, Less());
  Store(e).Store(x, items);
  x[3] = Reduce(a).Sum(x[2]);
}
int main() { int n = 0; return amdflow::device_attribute(&n, hipDeviceAttributeWarpSize, 0) == hipSuccess ? n : 0; }
"""


@dataclass(frozen=True)
class Kernels:
    """The idioms as CUDA, and what the real tools made of them."""

    original: Path
    migrated: Path
    compat: Path
    said: str


@pytest.fixture(scope="module")
def rocm() -> Rocm:
    return Toolchain().rocm()


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Kernels:
    folder = tmp_path_factory.mktemp("idioms")
    (folder / "cuda").mkdir()
    shutil.copy(SIMULATOR / "idioms.cu", folder / "cuda")
    amdflow = CommandLine(folder, {"XDG_CONFIG_HOME": str(folder / "none")})
    said = amdflow("migrate", "cuda", "--arch", "gfx942,gfx1100", "--fail-on", "silent")
    hip = folder / "out" / "migrate" / "hip"
    assert said.code == 0, said.err
    return Kernels(folder / "cuda" / "idioms.cu", hip / "idioms.cu", hip / "amdflow_compat", said.out)


def play_hardware(library: Path) -> None:
    """Put the simulator in the place of the hardware."""
    shutil.copy(SIMULATOR / "wave_primitives.h", library)


def run_idioms(folder: Path, kernels: Path, wave: int) -> str:
    program = folder / f"idioms{wave}"
    source = SIMULATOR / "idioms_main.cpp"
    process.run(
        [*HOST_COMPILER, f"-I{SIMULATOR}", f'-DKERNELS="{kernels}"', str(source), "-o", str(program)], cwd=folder
    )
    return process.run([str(program), str(wave)], cwd=folder).stdout


def test_every_function_does_what_cudas_does_for_both_wave_sizes(tmp_path: Path) -> None:
    for name in with_dependencies({"warp.h"}):
        shutil.copy(header(name), tmp_path)
    play_hardware(tmp_path)
    source, program = SIMULATOR / "functions.cpp", tmp_path / "functions"
    process.run([*HOST_COMPILER, f"-I{tmp_path}", f"-I{SIMULATOR}", str(source), "-o", str(program)], cwd=tmp_path)
    done = process.run([str(program)], cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout
    assert re.fullmatch(r"\d{6,} checks, 0 wrong\n", done.stdout)


def test_migrated_idioms_compute_what_the_cuda_original_computes(tmp_path: Path, kernels: Kernels) -> None:
    wanted = run_idioms(tmp_path, kernels.original, 32)
    assert wanted.count("\n") == 10
    shutil.copytree(kernels.migrated.parent, tmp_path / "hip")
    play_hardware(tmp_path / "hip" / "amdflow_compat")
    migrated = tmp_path / "hip" / kernels.migrated.name
    assert run_idioms(tmp_path, migrated, 32) == wanted
    assert run_idioms(tmp_path, migrated, 64) == wanted


def test_the_same_program_compiles_for_a_gpu(tmp_path: Path, rocm: Rocm, kernels: Kernels) -> None:
    argv = [str(rocm.clang), *rocm.compile_flags(), "--offload-arch=gfx942", "--offload-arch=gfx1100", "-std=c++17"]
    source = SIMULATOR / "idioms_main.cpp"
    process.run([*argv, f'-DKERNELS="{kernels.migrated}"', "-c", str(source), "-o", "idioms.o"], cwd=tmp_path)


def test_the_simulator_tells_a_library_that_takes_the_whole_wave(tmp_path: Path, kernels: Kernels) -> None:
    shutil.copytree(kernels.migrated.parent, tmp_path / "hip")
    library = tmp_path / "hip" / "amdflow_compat"
    play_hardware(library)
    lanes = library / "warp_lanes.h"
    lanes.write_text(lanes.read_text().replace("wave_mask >> wave::warp_start()", "wave_mask"))
    migrated = tmp_path / "hip" / kernels.migrated.name
    assert run_idioms(tmp_path, migrated, 32) != run_idioms(tmp_path, migrated, 64)


def test_migrated_idioms_keep_their_masks_and_constants(kernels: Kernels) -> None:
    text = kernels.migrated.read_text()
    assert '#include "amdflow_compat/warp.h"' in text
    assert "#define FULL_MASK 0xffffffff\n" in text
    assert "unsigned votes = amdflow::ballot_sync(FULL_MASK, wanted);" in text
    assert "int rank = __popc(votes & ((1u << lane) - 1))" in text
    assert not re.search(r"\b__(shfl|ballot|any|all|match|reduce|syncwarp|activemask)", text)


@pytest.mark.parametrize(("target", "stays_in_half"), [("gfx942", True), ("gfx1100", False)])
def test_code_objects_stay_within_halves_of_a_wave(
    tmp_path: Path, rocm: Rocm, target: str, stays_in_half: bool
) -> None:
    (tmp_path / "operations.hip").write_text(OPERATIONS)
    argv = [str(rocm.clang), *rocm.compile_flags(), f"--offload-arch={target}", "-O2", f"-I{header('warp.h').parent}"]
    device = ["--cuda-device-only", "--no-gpu-bundle-output", "-c", "operations.hip", "-o", "operations.co"]
    process.run([*argv, *device], cwd=tmp_path)
    shown = process.run([str(rocm.tool("llvm-objdump")), "-d", "operations.co"], cwd=tmp_path).stdout
    code = dict(
        zip(("broadcast", "down", "vote"), re.split(r"^\w+ <\w+>:$", shown, flags=re.MULTILINE)[1:], strict=True)
    )
    assert "ds_bpermute_b32" in code["down"]
    # Lane 5 of the own half is byte 20 plus 128 for the upper one; votes are shifted down by 32 there.
    assert (
        bool(re.search(r"v_and_b32\S* v\d+, 0x80, .*ds_bpermute_b32 [^\n]*offset:20", code["broadcast"], re.DOTALL))
        is stays_in_half
    )
    assert bool(re.search(r"v_and_b32\S* v\d+, 32, .*v_lshrrev_b64", code["vote"], re.DOTALL)) is stays_in_half


@pytest.mark.parametrize("target", ["gfx90a", "gfx1201"])
def test_every_type_compiles(tmp_path: Path, rocm: Rocm, target: str) -> None:
    (tmp_path / "types.hip").write_text(TYPES.format(half="hip/hip_fp16.h", bfloat16="hip/hip_bf16.h", prefix="__hip_"))
    argv = [str(rocm.clang), *rocm.compile_flags(), f"--offload-arch={target}", f"-I{header('warp.h').parent}"]
    process.run([*argv, "-std=c++14", "-O1", "-c", "types.hip", "-o", "types.o"], cwd=tmp_path)


def test_groups_cub_classes_and_host_queries_compile_against_rocms_libraries(tmp_path: Path, rocm: Rocm) -> None:
    (tmp_path / "libraries.hip").write_text(LIBRARIES)
    argv = [str(rocm.clang), *rocm.compile_flags(), "--offload-arch=gfx942", f"-I{header('warp.h').parent}"]
    process.run([*argv, "-std=c++17", "-O1", "-c", "libraries.hip", "-o", "libraries.o"], cwd=tmp_path)


@pytest.mark.parametrize("platform", ["AMD", "NVIDIA"])
def test_a_host_compiler_without_rocm_or_cuda_gets_the_size(tmp_path: Path, platform: str) -> None:
    (tmp_path / "host.cpp").write_text('#include "warp.h"\nint slots[amdflow::warp_size];\n')
    argv = ["g++", "-std=c++11", "-Wall", "-Werror", f"-D__HIP_PLATFORM_{platform}__", f"-I{header('warp.h').parent}"]
    process.run([*argv, "-fsyntax-only", "host.cpp"], cwd=tmp_path)


@pytest.mark.parametrize("side", ["--cuda-device-only", "--cuda-host-only"])
def test_hips_nvidia_platform_gets_cudas_own_functions(tmp_path: Path, rocm: Rocm, side: str) -> None:
    cuda = Toolchain().cuda_headers()
    (tmp_path / "types.cu").write_text(TYPES.format(half="cuda_fp16.h", bfloat16="cuda_bf16.h", prefix="__nv_"))
    system = rocm.compile_flags()[4:]  # without the language and ROCm's own folders
    argv = [str(rocm.clang), "-x", "cuda", f"--cuda-path={cuda.root}", "--cuda-gpu-arch=sm_80", side, *system]
    process.run(
        [*argv, "-D__HIP_PLATFORM_NVIDIA__", f"-I{header('warp.h').parent}", "-fsyntax-only", "types.cu"], cwd=tmp_path
    )
