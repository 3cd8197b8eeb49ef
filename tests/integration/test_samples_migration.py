"""The sample CUDA library, migrated with the real tools: ``migration/samples/README.md`` is the answer sheet.

Places are named by text that stands in the source, never by line number.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from amdflow import process
from amdflow.toolchain import Toolchain
from tests.conftest import REPOSITORY, CommandLine
from tests.integration.hip_builds import cmake, configure, hipcc_environment, targets_of

SAMPLES = REPOSITORY / "migration" / "samples"
TARGETS = ("gfx942", "gfx1100")
COMPILING = ("reduce", "rmsnorm", "select", "softmax", "swiglu", "tile_gemm")


@dataclass(frozen=True)
class Migrated:
    """A finished migration of the samples."""

    tree: Path
    summary: Any
    findings: list[dict[str, Any]]
    manifest: dict[str, Any]

    def at(self, path: str, line: int) -> list[dict[str, Any]]:
        """Findings that name this line."""
        return [
            finding
            for finding in self.findings
            if finding.get("path") == path
            and line in {finding.get("line", 0), *finding.get("extra", {}).get("lines", ())}
        ]


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Migrated:
    folder = tmp_path_factory.mktemp("samples")
    amdflow = CommandLine(folder, {"XDG_CONFIG_HOME": str(folder / "config-home")})
    said = amdflow("migrate", SAMPLES, "--output", "hip", "--arch", ",".join(TARGETS), "--format", "json")
    assert said.code == 0, said.err
    report = folder / "hip" / "amdflow-report"
    return Migrated(
        folder / "hip",
        said.json,
        json.loads((report / "findings.json").read_text())["findings"],
        json.loads((report / "manifest.json").read_text()),
    )


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Findings of the samples with warps as wide as the hardware's waves."""
    folder = tmp_path_factory.mktemp("native")
    amdflow = CommandLine(folder, {"XDG_CONFIG_HOME": str(folder / "config-home")})
    said = amdflow("migrate", SAMPLES, "--output", "hip", "--arch", "gfx942", "--native-warp", "--no-compile")
    assert said.code == 0, said.err
    found: list[dict[str, Any]] = json.loads((folder / "hip" / "amdflow-report" / "findings.json").read_text())[
        "findings"
    ]
    return found


def line_of(path: str, marker: str) -> int:
    """The first line of a source that holds ``marker``."""
    lines = [number for number, line in enumerate((SAMPLES / path).read_text().splitlines(), 1) if marker in line]
    assert lines, f"{path} has no line with {marker!r}"
    return lines[0]


WARP = [
    ("src/block_reduce.inl", "threadIdx.x & 31"),
    ("src/block_reduce.inl", "threadIdx.x >> 5"),
    ("src/block_reduce.inl", "partial[FUSEDOPS_BLOCK_THREADS / 32]"),
    ("src/block_reduce.inl", "lane < FUSEDOPS_BLOCK_THREADS / 32"),
    ("include/fusedops/warp.cuh", "kWarpSize = 32"),
    ("include/fusedops/warp.cuh", "int offset = 16"),
    ("include/fusedops/warp.cuh", "__shfl_sync(kFullMask"),
    ("src/softmax.cu", "int offset = kWarpSize / 2"),
    ("src/softmax.cu", "dim3 block(kWarpSize"),
    ("src/reduce.cu", "__popc(__ballot_sync"),
    ("src/reduce.cu", "threadIdx.x % 32"),
    ("src/select.cu", "unsigned int votes = __ballot_sync"),
    ("src/select.cu", "__ffs(votes)"),
    ("src/select.cu", "__popc(votes)"),
    ("src/select.cu", "__popc(votes & ptx::lanemask_lt())"),
]
SILENT = [
    ("src/tile_gemm.cu", "#if __CUDA_ARCH__ >= 800"),
    ("src/tile_gemm.cu", "major >= 8"),
    ("src/rope.cu", "#if CUDART_VERSION < 11000"),
]


@pytest.mark.parametrize(("path", "marker"), SILENT)
def test_what_computes_the_wrong_thing_is_named_by_line(migrated: Migrated, path: str, marker: str) -> None:
    found = migrated.at(path, line_of(path, marker))
    assert any(finding["severity"] == "silent" for finding in found), found


@pytest.mark.parametrize(("path", "marker"), WARP)
def test_warp_code_is_kept_or_else_named_by_line(
    migrated: Migrated, native: list[dict[str, Any]], path: str, marker: str
) -> None:
    line = line_of(path, marker)
    assert [found for found in migrated.at(path, line) if found["severity"] == "silent"] == []
    assert any(
        found["severity"] == "silent" and found.get("line") == line for found in native if found.get("path") == path
    )


BLOCKING = [
    ("src/attention_scores.cu", "#include <mma.h>"),
    ("src/gemm.cu", "cublasSetSmCountTarget"),
    ("src/rope.cu", "texture<float2"),
]


@pytest.mark.parametrize(("path", "marker"), BLOCKING)
def test_what_blocks_the_compiler_is_named_by_line(migrated: Migrated, path: str, marker: str) -> None:
    found = migrated.at(path, line_of(path, marker))
    assert any(finding["severity"] == "compile" for finding in found), found


REWRITTEN = [
    ("include/fusedops/ptx.cuh", "%%laneid"),
    ("include/fusedops/ptx.cuh", "%%lanemask_lt"),
    ("include/fusedops/ptx.cuh", "ld.global.nc"),
    ("include/fusedops/ptx.cuh", "prefetch.global.L2"),
    ("include/fusedops/ptx.cuh", "bfe.u32"),
    ("include/fusedops/ptx.cuh", "ex2.approx"),
]


@pytest.mark.parametrize(("path", "marker"), REWRITTEN)
def test_ptx_with_an_equivalent_is_rewritten(migrated: Migrated, path: str, marker: str) -> None:
    assert [found for found in migrated.at(path, line_of(path, marker)) if found["severity"] != "note"] == []
    (line,) = (line for line in (migrated.tree / path).read_text().splitlines() if marker in line)
    assert line.strip().startswith("AMDFLOW_PTX(asm")


SLOW_OR_LIMITED = [
    ("src/rmsnorm.cu", "__launch_bounds__(FUSEDOPS_BLOCK_THREADS, 4)"),
    ("src/reduce.cu", "__launch_bounds__(FUSEDOPS_BLOCK_THREADS, 8)"),
    ("src/softmax.cu", "__launch_bounds__(kWarpSize* kRowsPerBlock, 8)"),
    ("src/softmax.cu", "cudaFuncAttributeMaxDynamicSharedMemorySize"),
]


@pytest.mark.parametrize(("path", "marker"), SLOW_OR_LIMITED)
def test_launch_settings_made_for_nvidia_are_named(migrated: Migrated, path: str, marker: str) -> None:
    assert migrated.at(path, line_of(path, marker))


CONVERTED = [
    ("CMakeLists.txt", "LANGUAGES CXX CUDA", "AMF1510"),
    ("CMakeLists.txt", "LANGUAGES CXX CUDA", "AMF1512"),
    ("CMakeLists.txt", "find_package(CUDAToolkit", "AMF1517"),
    ("CMakeLists.txt", "-Xptxas", "AMF1513"),
    ("CMakeLists.txt", "CUDA::cublas", "AMF1511"),
    ("Makefile", "NVCC ?=", "AMF1515"),
    ("Makefile", "-lineinfo", "AMF1513"),
    ("Makefile", "-lcublas", "AMF1511"),
    ("python/setup.py", "-gencode", "AMF1512"),
    ("python/setup.py", "--expt-relaxed-constexpr", "AMF1513"),
]


@pytest.mark.parametrize(("path", "marker", "rule"), CONVERTED)
def test_conversions_of_build_scripts_are_recorded(migrated: Migrated, path: str, marker: str, rule: str) -> None:
    assert rule in {finding["id"] for finding in migrated.at(path, line_of(path, marker))}


def test_what_is_left_to_do_in_build_scripts_is_named(migrated: Migrated) -> None:
    assert migrated.at("python/setup.py", line_of("python/setup.py", "CUDAExtension("))
    left = {"AMF1501", "AMF1502", "AMF1503", "AMF1504", "AMF1505"}
    assert [finding for finding in migrated.findings if finding["id"] in left] == []


def test_the_cmake_project_configures_and_its_portable_part_builds(migrated: Migrated, tmp_path: Path) -> None:
    build = tmp_path / "build"
    configure(migrated.tree, build)
    process.run([cmake(), "--build", str(build), "--target", "fusedops_rows"], timeout=600)
    objects = build / "CMakeFiles" / "fusedops_rows.dir" / "src"
    assert {path.name for path in objects.iterdir()} >= {"reduce.cu.o", "rmsnorm.cu.o", "softmax.cu.o"}
    assert targets_of(objects / "reduce.cu.o") == set(TARGETS)


def test_the_makefile_builds_for_the_targets_of_the_run_or_others(migrated: Migrated, tmp_path: Path) -> None:
    for build, argument, targets in (("a", "", set(TARGETS)), ("b", "HIP_ARCH=gfx90a", {"gfx90a"})):
        argv = ["make", "-C", str(migrated.tree), f"BUILD={tmp_path / build}", argument, f"{tmp_path / build}/reduce.o"]
        process.run([word for word in argv if word], env=hipcc_environment(), timeout=600)
        assert targets_of(tmp_path / build / "reduce.o") == targets


def test_no_file_is_lost_and_no_cuda_call_is_left(migrated: Migrated) -> None:
    for source in SAMPLES.rglob("*"):
        if source.is_file():
            assert (migrated.tree / source.relative_to(SAMPLES)).is_file(), source
    for path in (
        "src/block_reduce.inl",
        "src/elementwise.cuh",
        "src/rope.cu",
        "python/torch_ops.cu",
        "tests/test_ops.cu",
    ):
        text = (migrated.tree / path).read_text()
        assert "cudaMalloc" not in text
        assert "cudaStream_t" not in text


def test_tensor_core_kernels_are_handed_to_the_kernels_stage(migrated: Migrated) -> None:
    regions = {(region["path"], region["kind"], region["op"]) for region in migrated.manifest["handoff"]["regions"]}
    assert ("src/tile_gemm.cu", "tensor-core-ptx", "gemm") in regions
    assert ("src/attention_scores.cu", "wmma", "attention") in regions


def test_what_can_compile_compiles_for_both_wave_sizes(migrated: Migrated) -> None:
    rocm = Toolchain().rocm()
    units = [*(migrated.tree / "src" / f"{name}.cu" for name in COMPILING), migrated.tree / "tests" / "test_ops.cu"]

    def compile_unit(unit: Path) -> str:
        argv = [str(rocm.clang), *rocm.compile_flags(), *(f"--offload-arch={target}" for target in TARGETS)]
        argv += ["-std=c++17", "-O1", "-w", f"-I{migrated.tree / 'include'}", "-c", str(unit), "-o", "/dev/null"]
        done = process.run(argv, timeout=300, check=False)
        return "" if done.returncode == 0 else f"{unit.name}: {done.stderr[-2000:]}"

    with ThreadPoolExecutor(2) as pool:
        assert [problem for problem in pool.map(compile_unit, units) if problem] == []


def test_a_branch_that_comes_alive_is_refused_where_there_are_no_images(migrated: Migrated) -> None:
    """``CUDART_VERSION`` is not defined for HIP, so rope.cu's texture branch is compiled: gfx942 has no image instructions, gfx1100 has."""
    errors = [finding for finding in migrated.findings if finding.get("targets") and "rope.cu" in json.dumps(finding)]
    assert {target for finding in errors for target in finding["targets"]} == {"gfx942"}
    branch = migrated.at("src/rope.cu", line_of("src/rope.cu", "#if CUDART_VERSION < 11000"))
    assert [finding["message"] for finding in branch if "undefined counts as 0" in finding["message"]]
