"""Which files concern CUDA at all, and what the tool's answer is taken for."""

from __future__ import annotations

from pathlib import Path

import pytest

from amdflow.migrate.hipify import Attempt, Message
from amdflow.migrate.scan import Entry, classify
from amdflow.migrate.translate import branches_before, concerns_cuda


def entry(name: str) -> Entry:
    return Entry(name, Path("/tree") / name, classify(name), 1)


@pytest.mark.parametrize(
    "text",
    [
        "cudaFree(p);",
        "#include <cuda_runtime.h>",
        "#include <cub/cub.cuh>",
        "__device__ int f();",
        "k<<<1, 2>>>();",
        "CUdevice d; cuInit(0);",
        "using thrust::device_vector;",
        "ncclComm_t c;",
    ],
)
def test_cuda_is_seen(text: str) -> None:
    assert concerns_cuda(entry("a.cpp"), text)


@pytest.mark.parametrize(
    "text",
    [
        "int current = cube(2); float half = 0.5f;",
        "// cudaFree(p)",
        'puts("cudaFree");',
        "a <<= 1; std::cout << x << y;",
        "",
    ],
)
def test_plain_code_is_not_touched(text: str) -> None:
    assert not concerns_cuda(entry("a.cpp"), text)


def test_a_cu_file_always_concerns_cuda() -> None:
    assert concerns_cuda(entry("a.cu"), "")
    assert concerns_cuda(entry("a.cuh"), "int x;")


def test_an_attempt_survives_the_cache() -> None:
    attempt = Attempt("text \udcf6", (Message(1, 2, "odd"),), "")
    assert Attempt.from_json(attempt.to_json() | {"messages": [{"line": 1, "column": 2, "text": "odd"}]}) == attempt


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("#ifndef A_H\n#define A_H\nint a;\n#endif\n", 3, False),
        ("#if !defined(A_H)\n# define A_H\nint a;\n#endif\n", 0, False),
        ("#ifdef FAST\nint a;\n#else\nint a;\n#endif\n", 4, True),
        ("int a;\n#ifdef FAST\n#endif\n", 1, False),
        ("int a;\n#ifdef FAST\n#endif\n", 0, True),
    ],
)
def test_only_a_branch_before_the_error_makes_the_ordinary_preprocessor_worth_a_try(
    text: str, line: int, expected: bool
) -> None:
    assert branches_before(text, line) is expected
