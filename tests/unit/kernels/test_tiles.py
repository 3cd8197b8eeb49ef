"""Tile settings come from the wave size's file, the target's file over it, the user's over the shipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from amdflow.errors import UsageError
from amdflow.gpu.targets import TARGETS
from amdflow.kernels.sources import Folders, Kernel, find_kernels, open_folders
from amdflow.kernels.tiles import shapes_for, tile_files, tiles_for

BUILD = {"dtype": "bfloat16", "width": 8}


def test_the_special_file_goes_over_the_general_one(folder: Path, folders: Folders, kernel: Kernel) -> None:
    (folder / "tiles" / "wave64.yaml").write_text("scale: {block_m: 4, threads: 128}\n")
    (folder / "tiles" / "gfx950.yaml").write_text("scale: {block_m: 8}\n")
    assert tiles_for(folders, kernel, "gfx942", BUILD) == {"block_m": 4, "threads": 128}
    assert tiles_for(folders, kernel, "gfx950", BUILD) == {"block_m": 8, "threads": 128}
    assert tiles_for(folders, kernel, "gfx1100", BUILD) == {}


def test_conditions_on_sizes_and_dtype(folder: Path, folders: Folders, kernel: Kernel) -> None:
    (folder / "tiles" / "gfx942.yaml").write_text(
        "scale width=8 dtype=bfloat16: {block_m: 2}\nscale width=9: {block_m: 3}\nscale: {block_m: 1}\n"
    )
    assert tiles_for(folders, kernel, "gfx942", BUILD) == {"block_m": 2}
    assert tiles_for(folders, kernel, "gfx942", {"dtype": "float32", "width": 8}) == {"block_m": 1}


def test_a_users_tiles_go_over_the_shipped_ones_setting_by_setting(tmp_path: Path) -> None:
    (tmp_path / "tiles").mkdir()
    (tmp_path / "tiles" / "gfx942.yaml").write_text("gemm: {block_k: 64}\n")
    folders = open_folders(tmp_path, given="kernels")
    (gemm,) = find_kernels(folders, ("gemm",))
    found = tiles_for(folders, gemm, "gfx942", {"dtype": "float16"})
    assert (found["block_k"], found["block_m"]) == (64, 128)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("scale: {blok_m: 1}", r"no setting 'blok_m' \(did you mean block_m\?\)"),
        ("scale: {block_m: -1}", "block_m must be a whole number"),
        ("scale: {block_m: big}", "block_m must be a whole number"),
        ("scale: 7", "must be a mapping of settings"),
        ("scale width: {block_m: 1}", "condition 'width' is not of the form"),
        ("- scale", "not a mapping"),
    ],
)
def test_a_bad_tile_file_is_one_clear_line(
    folder: Path, folders: Folders, kernel: Kernel, text: str, complaint: str
) -> None:
    (folder / "tiles" / "gfx942.yaml").write_text(text)
    with pytest.raises(UsageError, match=complaint):
        tiles_for(folders, kernel, "gfx942", BUILD)


def test_shapes_default_to_one_open_build(folders: Folders, kernel: Kernel) -> None:
    assert shapes_for(folders, kernel) == [{}]


def test_a_shape_named_twice_is_built_once(folder: Path, folders: Folders, kernel: Kernel) -> None:
    (folder / "shapes.yaml").write_text("scale: [{width: 1}, {width: 2}, {width: 1}]")
    assert shapes_for(folders, kernel) == [{"width": 1}, {"width": 2}]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("scale: [{widht: 1}]", r"no size 'widht' \(did you mean width\?\)"),
        ("scale: []", "list of mappings"),
        ("scale: {width: 1}", "list of mappings"),
    ],
)
def test_a_bad_shapes_file_is_one_clear_line(
    folder: Path, folders: Folders, kernel: Kernel, text: str, complaint: str
) -> None:
    (folder / "shapes.yaml").write_text(text)
    with pytest.raises(UsageError, match=complaint):
        shapes_for(folders, kernel)


def test_shipped_kernels_have_valid_settings_shapes_and_cases_for_every_target(tmp_path: Path) -> None:
    folders = open_folders(tmp_path / "kernels", given="kernels")
    kernels = find_kernels(folders)
    assert {"attention", "gemm", "rms_norm", "rms_norm_backward", "rope", "swiglu"} <= {kernel.op for kernel in kernels}
    for kernel in kernels:
        assert kernel.cases
        open_sizes = set(kernel.declaration.sizes) - set(kernel.size_defaults)
        assert all(open_sizes <= set(shape) for shape in shapes_for(folders, kernel)), f"{kernel.op}: shapes.yaml"
        for target in (*TARGETS, "cpu", "cuda"):
            for shape in shapes_for(folders, kernel):
                tiles_for(folders, kernel, target, {"dtype": "bfloat16", **shape})
    assert all(tile_files(folders, target) for target in (*TARGETS, "cpu", "cuda"))
