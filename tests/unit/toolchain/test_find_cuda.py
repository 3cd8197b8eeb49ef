"""Which CUDA headers are used."""

from __future__ import annotations

from pathlib import Path

import pytest

from amdflow.errors import EnvironmentProblem
from amdflow.toolchain import find_cuda as module
from amdflow.toolchain.find_cuda import find_cuda, read_version
from amdflow.toolchain.store import Store
from tests.unit.toolchain.places import cuda, publish


@pytest.fixture(autouse=True)
def _no_system_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    places = module.installed_places
    monkeypatch.setattr(
        module,
        "installed_places",
        lambda environment: [place for place in places(environment) if "/usr/local" not in str(place[0])],
    )


def test_an_installed_cuda_12(tmp_path: Path) -> None:
    root = cuda(tmp_path / "cuda", 12040)
    found = find_cuda("", Store(tmp_path / "cache"), {"CUDA_HOME": str(root)})
    assert (found.root, found.version, found.origin) == (root, "12.4", "CUDA_HOME")


def test_cuda_13_is_passed_over_for_ours(tmp_path: Path) -> None:
    store = Store(tmp_path / "cache")
    new = cuda(tmp_path / "cuda", 13000)
    with pytest.raises(EnvironmentProblem) as caught:
        find_cuda("", store, {"CUDA_HOME": str(new)})
    assert caught.value.hint == "amdflow toolchain install cuda-headers"
    build = store.new_build("cuda-headers")
    publish(store, "cuda-headers", build, "12.9")
    assert find_cuda("", store, {"CUDA_HOME": str(new)}).version == "12.9"


def test_a_configured_folder_must_have_the_headers(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match=r"toolchain\.cuda: .* lacks include/cuda_runtime\.h"):
        find_cuda(str(tmp_path), Store(tmp_path / "cache"))
    assert find_cuda(str(cuda(tmp_path)), Store(tmp_path / "cache")).origin == "config toolchain.cuda"


def test_version(tmp_path: Path) -> None:
    assert read_version(tmp_path) == "unknown"
    assert read_version(cuda(tmp_path, 12090)) == "12.9"
    assert read_version(cuda(tmp_path, 11080)) == "11.8"
