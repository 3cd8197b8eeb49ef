"""Headers that a machine does not have, and whose they are."""

from __future__ import annotations

import pytest

from amdflow.migrate.diagnostics import missing_in_translation
from amdflow.migrate.third_party import owner


@pytest.mark.parametrize(
    ("header", "library"),
    [
        ("torch/extension.h", "PyTorch"),
        ("ATen/cuda/CUDAContext.h", "PyTorch"),
        ("cute/tensor.hpp", "CUTLASS and CuTe"),
        ("../cub/cub.cuh", "CUB"),
        ("cupti.h", "CUPTI"),
        ("../third_party/x.h", ""),
        ("nppi.h", "NPP"),
        ("Windows.h", "the Windows SDK"),
        ("my_header.h", ""),
    ],
)
def test_the_library_is_named_by_its_headers(header: str, library: str) -> None:
    found = owner(header)
    assert (found.name if found else "") == library


def test_what_stands_for_a_library_is_said_as_in_the_report() -> None:
    found = owner("nvshmem.h")
    assert found is not None
    assert found.advice == "On ROCm rocSHMEM stands for it. Names begin with rocshmem_."


def test_each_missing_header_is_one_finding_with_its_files() -> None:
    reasons = {
        "b.cu": "b.cu:1: 'torch/all.h' file not found",
        "a.cu": "before.h:3: 'torch/all.h' file not found; then: a.cu:1: 'odd.h' file not found",
        "c.cu": "c.cu:9: 'cuda_profiler_api.h' file not found",
    }
    found = missing_in_translation(reasons, {"cuda_profiler_api.h"})
    assert [(finding.message, finding.path) for finding in found] == [
        ("header torch/all.h, of PyTorch, is not found (2 files)", "a.cu"),
        ("header odd.h is not found", "a.cu"),
    ]
    assert "--extra-arg" in found[0].fix
