"""Every header that hipify-clang writes is found in the installed ROCm, or it is known why not."""

from __future__ import annotations

from pathlib import Path

from amdflow.migrate.api_map import export_map
from amdflow.migrate.rules.catalogue import load_catalogue
from amdflow.migrate.textual import HeaderPlaces
from amdflow.toolchain import Toolchain

KNOWN = {
    "caffe2/core/common_cudnn.h": "PyTorch's own header, which its own build translates",
    "caffe2/operators/spatial_batch_norm_op.h": "PyTorch's own header, which its own build translates",
    "cudnn.h": "hipDNN is no part of ROCm; MIOpen has another interface",
    "cutensor.h": "hipTensor comes apart from ROCm's core libraries",
    "cutensorMg.h": "hipTensor comes apart from ROCm's core libraries",
}


def test_every_header_of_the_map_exists_or_is_known_to_be_missing(tmp_path: Path) -> None:
    rocm = Toolchain().rocm()
    assert rocm.hipify is not None
    api = export_map(rocm.hipify, tmp_path / "map.json")
    places = HeaderPlaces(rocm.root / "include")
    renamed = load_catalogue(tmp_path).supplement.headers
    lost = set()
    for cuda, hip in api.headers.items():
        settled = places.settle(renamed.get(cuda, hip))
        if settled and not places.has(settled):
            lost.add(cuda)
    assert len(api.headers) > 50
    assert lost <= set(KNOWN)
