"""The installed tools at work, and installs that are interrupted."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from amdflow import process
from amdflow.toolchain import CudaHeaders, Rocm, Toolchain
from tests.conftest import CommandLine, until

TARGETS = ("gfx942", "gfx90a", "gfx950", "gfx1100", "gfx1151", "gfx1201")
CUDA_SOURCE = """\
#include <cublas_v2.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <curand_kernel.h>
#include <vector>
__global__ void scale(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2.0f; }
int main() {
  std::vector<float> host(64, 1.0f);
  float* x;
  cudaMalloc(&x, 256);
  scale<<<1, 64>>>(x, 64);
  cublasHandle_t handle;
  cublasCreate(&handle);
  return cudaDeviceSynchronize();
}
"""
HIP_LIBRARIES = """\
#include <vector>
#include <hip/hip_runtime.h>
#include <hip/hip_fp16.h>
#include <hip/hip_bf16.h>
#include <hipblas/hipblas.h>
#include <hipblaslt/hipblaslt.h>
#include <hipcub/hipcub.hpp>
#include <hipfft/hipfft.h>
#include <hiprand/hiprand_kernel.h>
#include <hipsolver/hipsolver.h>
#include <hipsparse/hipsparse.h>
#include <rccl/rccl.h>
#include <rocprim/rocprim.hpp>
#include <thrust/device_vector.h>
#include <thrust/sort.h>
#include <omp.h>
__global__ void twice(float* x) { x[threadIdx.x] += x[threadIdx.x]; }
int main() {
  thrust::device_vector<int> numbers(4);
  thrust::sort(numbers.begin(), numbers.end());
  twice<<<1, 64>>>(nullptr);
  return omp_get_max_threads() == 0;
}
"""


@pytest.fixture(scope="module")
def rocm() -> Rocm:
    return Toolchain().rocm()


@pytest.fixture(scope="module")
def cuda() -> CudaHeaders:
    return Toolchain().cuda_headers()


@pytest.fixture(scope="module")
def translated(rocm: Rocm, cuda: CudaHeaders, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CUDA file made HIP by hipify-clang."""
    folder = tmp_path_factory.mktemp("hipify")
    (folder / "a.cu").write_text(CUDA_SOURCE)
    hipify = rocm.needed_hipify().program
    process.run(
        [str(hipify), str(folder / "a.cu"), "-o", str(folder / "a.hip"), *rocm.hipify_flags(cuda), "--", "-std=c++17"]
    )
    text = (folder / "a.hip").read_text()
    assert "hipMalloc" in text
    assert "hipblasCreate" in text
    assert "cuda" not in text.lower().replace("hip", "")
    (folder / "a.hip").write_text(
        text.replace("<hipblas.h>", "<hipblas/hipblas.h>").replace("<hiprand_kernel.h>", "<hiprand/hiprand_kernel.h>")
    )
    return folder / "a.hip"


@pytest.mark.parametrize("target", TARGETS)
def test_translated_code_becomes_a_code_object(rocm: Rocm, translated: Path, tmp_path: Path, target: str) -> None:
    result = tmp_path / "a.co"
    flags = [*rocm.compile_flags(), f"--offload-arch={target}", "-O2", "--cuda-device-only", "--no-gpu-bundle-output"]
    process.run([str(rocm.clang), *flags, "-c", str(translated), "-o", str(result)])
    notes = process.run([str(rocm.tool("llvm-readelf")), "--notes", str(result)]).stdout
    assert f"amdgcn-amd-amdhsa--{target}" in notes
    assert ".vgpr_count" in notes


def test_host_and_device_with_every_library(rocm: Rocm, tmp_path: Path) -> None:
    (tmp_path / "all.hip").write_text(HIP_LIBRARIES)
    flags = [*rocm.compile_flags(), "--offload-arch=gfx942", "--offload-arch=gfx1100", "-std=c++17", "-c"]
    process.run([str(rocm.clang), *flags, str(tmp_path / "all.hip"), "-o", str(tmp_path / "all.o")])
    sections = process.run([str(rocm.tool("llvm-readelf")), "--sections", str(tmp_path / "all.o")]).stdout
    assert ".hip_fatbin" in sections


def test_the_disassembler_shows_the_gpus_instructions(rocm: Rocm, translated: Path, tmp_path: Path) -> None:
    flags = [*rocm.compile_flags(), "--offload-arch=gfx1100", "-O2", "--cuda-device-only", "--no-gpu-bundle-output"]
    process.run([str(rocm.clang), *flags, "-c", str(translated), "-o", str(tmp_path / "a.co")])
    shown = process.run([str(rocm.tool("llvm-objdump")), "-d", str(tmp_path / "a.co")]).stdout
    assert "global_load_b32" in shown


def test_hipify_tells_its_own_map(rocm: Rocm, tmp_path: Path) -> None:
    hipify = rocm.needed_hipify().program
    process.run([str(hipify), "--python", f"--o-python-map-dir={tmp_path}"], cwd=tmp_path)
    assert any("cudaMalloc" in path.read_text(errors="replace") for path in tmp_path.iterdir())


@pytest.mark.parametrize("name", ["kernels", "finetune", "serve"])
def test_the_engines_packages_are_read_without_starting_them(name: str) -> None:
    engine = Toolchain().engine(name)
    code = "import importlib.metadata as m, json; print(json.dumps({d.metadata['Name']: d.version for d in m.distributions()}))"
    said = json.loads(process.run([str(engine.python), "-c", code]).stdout)
    read = {key.lower().replace("_", "-").replace(".", "-"): value for key, value in said.items()}
    assert read == dict(engine.packages)


def test_sglang_starts_beside_its_stand_ins() -> None:
    engine = Toolchain().engine("serve")
    environment = {**os.environ, **engine.environment(), "SGLANG_USE_CPU_ENGINE": "1"}
    code = "import torchvision, sgl_kernel, sglang; print(sglang.__version__)"
    assert process.run([str(engine.python), "-c", code], env=environment).stdout.strip() == engine.packages["sglang"]


def test_doctor_is_content(amdflow: CommandLine) -> None:
    said = amdflow("doctor", "--format", "json")
    assert said.code == 0, said.err
    assert said.json["ok"] is True
    versions = {check["name"]: check["version"] for check in said.json["checks"] if check["state"] == "ok"}
    assert {"rocm", "hipify-clang", "cuda-headers", "kernels", "finetune", "serve"} <= versions.keys()
    assert versions["cuda-headers"].startswith("12.")
    assert said.json["machine"]["cores"] >= 1


def test_doctor_without_tools(amdflow: CommandLine, tmp_path: Path) -> None:
    said = amdflow("doctor", env={"AMDFLOW_CACHE": str(tmp_path / "empty"), "ROCM_PATH": "", "PATH": "/usr/bin:/bin"})
    assert said.code == 5
    assert "amdflow toolchain install serve" in said.out


def test_the_list(amdflow: CommandLine) -> None:
    tools = {tool["name"]: tool for tool in amdflow("toolchain", "list", "--format", "json").json["tools"]}
    for name in ("rocm", "cuda-headers", "kernels", "finetune", "serve"):
        assert tools[name]["state"] == "ready"
        assert Path(tools[name]["path"]).exists()
    assert "tilelang" in amdflow("toolchain", "list").out


def test_installing_again_does_nothing(amdflow: CommandLine) -> None:
    said = amdflow("toolchain", "install", "all", timeout=30)
    assert said.code == 0
    assert said.err.count("✓") == 5


def test_bad_names(amdflow: CommandLine) -> None:
    said = amdflow("toolchain", "install", "rockm")
    assert said.code == 2
    assert "did you mean rocm?" in said.err


def test_a_machine_without_apt_is_told_what_to_do(amdflow: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "bin"
    path.mkdir()
    (path / "python3").symlink_to(sys.executable)
    said = amdflow(
        "toolchain",
        "install",
        "rocm",
        env={"AMDFLOW_CACHE": str(tmp_path / "cache"), "ROCM_PATH": "", "PATH": str(path)},
    )
    assert said.code == 5
    assert "AMD's packages" in said.err


def test_an_install_killed_halfway_is_not_used_and_goes_on(
    amdflow: CommandLine, tmp_path: Path, no_orphans: None
) -> None:
    cache = tmp_path / "cache"
    amdflow.environment |= {"AMDFLOW_CACHE": str(cache), "ROCM_PATH": "", "PATH": "/usr/bin:/bin"}
    child = amdflow.start("toolchain", "install", "rocm")
    until(lambda: next(cache.glob("rocm/build-*/usr"), None), seconds=300, what="unpacking")
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    (state,) = [
        tool for tool in amdflow("toolchain", "list", "--format", "json").json["tools"] if tool["name"] == "rocm"
    ]
    assert state["state"] == "unfinished"
    debs = {path.name: path.stat().st_mtime_ns for path in (cache / "downloads/debs").glob("*.deb")}
    assert len(debs) > 100
    said = amdflow("toolchain", "install", "rocm")
    assert said.code == 0, said.err
    assert {path.name: path.stat().st_mtime_ns for path in (cache / "downloads/debs").glob("*.deb")} == debs, (
        "nothing was fetched twice"
    )
    assert len(list(cache.glob("rocm/build-*"))) == 1
    record = json.loads((cache / "rocm/installed.json").read_text())
    assert all(len(artifact["sha256"]) == 64 for artifact in record["artifacts"])


def test_a_script_in_an_engines_environment(amdflow: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import sys, importlib.metadata as m; print(m.version('tilelang'), sys.argv[1:]); sys.exit(3)\n"
    )
    said = amdflow("toolchain", "run", "kernels", "script.py", "--output", "x")
    assert said.code == 3
    assert "0.1.15 ['--output', 'x']" in said.err
    assert amdflow("toolchain", "run", "kernels", "nowhere.py").code == 2
