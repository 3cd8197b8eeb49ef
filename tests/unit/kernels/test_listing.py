"""What there is can be read without TileLang, torch or a compiler."""

from __future__ import annotations

import sys
from pathlib import Path

from amdflow.kernels.listing import list_kernels, operator_cells, operators
from amdflow.kernels.sources import Folders, find_kernels, open_folders


def test_a_kernel_of_ones_own_is_listed(folder: Path, folders: Folders) -> None:
    (folder / "shapes.yaml").write_text("scale: [{width: 8}, {width: 16}]\n")
    (found,) = list_kernels(folders, ("gfx942",))
    assert found.cells() == ["scale", "f32, bf16", "width=8; width=16", "gfx942", "y = 2 x"]
    assert operators([found]) == []


def test_matrix_kernels_are_not_for_targets_without_matrix_instructions(tmp_path: Path) -> None:
    folders = open_folders(tmp_path / "kernels", given="kernels")
    found = {one.kernel: one for one in list_kernels(folders, ("gfx1030", "gfx942"), ("gemm", "rope"))}
    assert found["gemm"].targets == ("gfx942",)
    assert found["rope"].targets == ("gfx1030", "gfx942")


def test_the_classes_of_models_are_plain_data_and_name_kernels_that_exist(tmp_path: Path) -> None:
    folders = open_folders(tmp_path / "kernels", given="kernels")
    every = operators(list_kernels(folders, ("gfx942",)))
    assert {"rms_norm", "swiglu", "rope", "attention"} <= {entry["operator"] for entry in every}
    names = {kernel.op for kernel in find_kernels(folders)}
    for entry in every:
        assert set(entry["kernels"]) <= names
        assert entry["classes"]
    assert "LlamaRMSNorm" in operator_cells(every[0])[-1]
    assert "torch" not in sys.modules
