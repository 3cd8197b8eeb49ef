"""What a CUDA name is called in HIP."""

from __future__ import annotations

from pathlib import Path

import pytest

from amdflow.content import shipped
from amdflow.migrate.api_map import Api, ApiMap
from amdflow.migrate.lookup import Names
from amdflow.migrate.rules.catalogue import load_catalogue
from amdflow.migrate.textual import HeaderPlaces

CATALOGUE = load_catalogue(shipped("migration").parent)


@pytest.fixture
def names(tmp_path: Path) -> Names:
    (tmp_path / "hipblas").mkdir()
    (tmp_path / "hipblas" / "hipblas.h").touch()
    tables = {
        "cudaMalloc": Api(
            "cudaMalloc", "hipMalloc", "CUDA Runtime API functions", "Memory Management", hip_added="1.5.0"
        ),
        "cudaInitDevice": Api(
            "cudaInitDevice", "", "CUDA Runtime API functions", "Device Management", cuda_added="12.0"
        ),
    }
    known = ApiMap({"cudnnCreate": "hipdnnCreate"}, {"cublas_v2.h": "hipblas.h", "sm_90.h": ""}, frozenset())
    return Names(tables, known, CATALOGUE, HeaderPlaces(tmp_path))


@pytest.mark.parametrize(
    ("name", "hip", "more"),
    [
        ("cudaMalloc", "hipMalloc", {"section": "Memory Management", "hip_added": "1.5.0"}),
        ("cudaInitDevice", None, {"cuda_added": "12.0"}),
        ("cudnnCreate", "hipdnnCreate", {"rules": ["AMF1402"]}),
        ("cublas_v2.h", "hipblas/hipblas.h", {"table": "headers"}),
        ("sm_90.h", None, {"table": "headers"}),
        ("nccl.h", "rccl/rccl.h", {"rules": ["AMF1404"]}),
        ("cub", "hipcub", {"section": "namespace"}),
        ("__ldcg", "amdflow::ldcg", {"header": "amdflow_compat/cache_operators.h"}),
        ("__shfl_sync", "amdflow::shfl_sync", {"hip_with_native_warp": "__shfl_sync"}),
        ("warpSize", "amdflow::warp_size", {"header": "amdflow_compat/warp.h"}),
        ("__nv_atomic_load_n", None, {"rules": ["AMF1604"]}),
    ],
)
def test_facts(names: Names, name: str, hip: str | None, more: dict[str, object]) -> None:
    facts = names.find(name)
    assert facts is not None
    assert facts["hip"] == hip
    assert facts | more == facts


def test_an_unknown_name_is_answered_with_those_near_it(names: Names) -> None:
    assert names.find("cudaMaloc") is None
    assert names.like("CUDAMALOC")[0] == "cudaMalloc"
    assert names.like("zzqqx") == []
