"""An engine's process reads the tile files without a YAML library: it must find what `amdflow kernels build` finds."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from amdflow.gpu.targets import TARGETS
from amdflow.kernels.item import SCRIPTS
from amdflow.kernels.sources import find_kernels, open_folders
from amdflow.kernels.tiles import shapes_for, tiles_for


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The module by its path: its package needs torch."""
    monkeypatch.setenv("AMDFLOW_KERNELS", str(tmp_path / "kernels"))
    spec = importlib.util.spec_from_file_location("inside_tiles", SCRIPTS / "tilelang_ops" / "tiles.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_both_readers_find_the_same_settings(inside: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "kernels" / "tiles").mkdir(parents=True)
    (tmp_path / "kernels" / "tiles" / "gfx942.yaml").write_text(
        "# mine\nswiglu: {block: 512}  # it was {block: 1024}\nattention head=128 causal=true: {block_m: 32, via_lds: true}\n"
    )
    folders = open_folders(tmp_path / "kernels", given="kernels")
    compared = 0
    for kernel in find_kernels(folders):
        for target in (*TARGETS, "cpu", "cuda"):
            for shape in shapes_for(folders, kernel):
                build = {"dtype": "bfloat16", **shape}
                assert inside.tiles_of(target, kernel.op, build) == tiles_for(folders, kernel, target, build)
                compared += 1
    assert compared > 100
    assert inside.tiles_of("gfx942", "swiglu", {}) == {"block": 512}


def test_the_users_kernel_wins_and_a_missing_one_is_named(inside: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "swiglu.py").write_text("")
    assert inside.kernel_file("swiglu") == tmp_path / "kernels" / "swiglu.py"
    assert inside.kernel_file("rope").parent.name == "kernels"
    with pytest.raises(FileNotFoundError, match=r"no softmax\.py in"):
        inside.kernel_file("softmax")
