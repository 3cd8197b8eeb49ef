"""Libraries that a tree uses, found by includes, names and build files."""

from __future__ import annotations

import re

import pytest

from amdflow.migrate.dependencies import find_dependencies, library_table
from amdflow.report.migrated import Dependency


def found(
    text: str = "", build: str = "", gaps: tuple[str, ...] = (), settled: tuple[str, ...] = ()
) -> list[Dependency]:
    return find_dependencies({"a.cu": text} if text else {}, {"Makefile": build} if build else {}, gaps, settled)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("#include <cublas_v2.h>\n", "cuBLAS"),
        ("#include <cublasLt.h>\n", "cuBLASLt"),
        ("cublasLtHandle_t handle;\n", "cuBLASLt"),
        ("#include <thrust/sort.h>\n", "Thrust"),
        ("void f() { thrust::sort(a, b); }\n", "Thrust"),
        ("#include <cub/cub.cuh>\n", "CUB"),
        ("#include <cuda/std/atomic>\n", "libcu++"),
        ("#include <torch/extension.h>\n", "PyTorch"),
        ("#include <opencv2/core.hpp>\n", "OpenCV"),
        ("MPI_Send(p, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);\n", "MPI"),
        ("ncclAllReduce(a, b, n, ncclFloat, ncclSum, c, s);\n", "NCCL"),
        ("cudnnHandle_t h;\n", "cuDNN"),
        ("nvcuda::wmma::fragment<int> f;\n", "WMMA"),
        ("using Gemm = cutlass::gemm::device::Gemm<float>;\n", "CUTLASS and CuTe"),
        ("cudaMalloc(&p, 1);\n", "CUDA runtime and driver"),
    ],
)
def test_each_library_is_known_by_its_own_names(text: str, name: str) -> None:
    assert [item.name for item in found(text)] == [name]


@pytest.mark.parametrize(
    ("build", "name"),
    [
        ("app: a.o\n\tnvcc -o app a.o -lcublas\n", "cuBLAS"),
        ("target_link_libraries(app CUDA::cublasLt)\n", "cuBLASLt"),
        ("find_package(OpenCV REQUIRED)\n", "OpenCV"),
    ],
)
def test_build_files_count_too(build: str, name: str) -> None:
    item = found(build=build)[0]
    assert (item.name, item.files, item.uses, item.where) == (name, 1, 0, ("Makefile",))


def test_comments_strings_and_look_alikes_do_not_count() -> None:
    assert not found('// cublasCreate(&h);\nconst char* s = "ncclAllReduce";\nint custom = mycublasCreate(subtle);\n')
    assert not found(build="LIBS = -lcublasomething\n")


def test_gaps_are_the_used_names_that_hip_lacks_and_nothing_else_settles() -> None:
    item = found(
        "cublasOdd(a); cublasOdd(b); cublasCreate(c); cublasStandIn(d);\n",
        gaps=("cublasOdd", "cublasStandIn", "cublasUnused"),
        settled=("cublasStandIn",),
    )[0]
    assert item.gaps == {"cublasOdd": 2}
    assert (item.uses, item.files, item.stands, item.status) == (4, 1, "hipBLAS on rocBLAS", "renamed")


def test_the_hardest_come_first() -> None:
    statuses = [item.status for item in found("cudaFree(p); ncclSend(p); cutlass::a b; cudnnCreate(h);\n")]
    assert statuses == ["none", "partial", "renamed", "drop-in"]


def test_the_table_has_each_library_once_and_sound_patterns() -> None:
    names = [entry.name for entry in library_table()]
    assert len(names) == len(set(names))
    for entry in library_table():
        assert entry.includes or entry.api or entry.link
        for pattern in (*entry.includes, entry.api):
            assert "(?P<" not in pattern
            re.compile(pattern)
