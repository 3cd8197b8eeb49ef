"""Which ROCm is used, and what it says of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from amdflow.errors import EnvironmentProblem
from amdflow.toolchain.find_rocm import Place, find_rocm, installed_places, missing_part, read_rocm, read_version
from amdflow.toolchain.model import CudaHeaders, Rocm
from amdflow.toolchain.store import Store
from tests.unit.toolchain.places import amd_layout, debian_layout, publish, write


def private(store: Store) -> Path:
    build = store.new_build("rocm")
    debian_layout(build)
    publish(store, "rocm", build, "7.2.4")
    return build


def test_an_installed_rocm_comes_before_the_private_one(tmp_path: Path) -> None:
    store = Store(tmp_path / "cache")
    private(store)
    root = amd_layout(tmp_path / "rocm-7.1")
    rocm = find_rocm("", store, {"ROCM_PATH": str(root), "PATH": ""})
    assert (rocm.root, rocm.version, rocm.origin) == (root, "7.1.0", "ROCM_PATH")
    assert rocm.clang == root / "lib/llvm/bin/clang"
    assert rocm.tool("llvm-readelf") == root / "lib/llvm/bin/llvm-readelf"
    assert rocm.compile_flags() == ["-x", "hip", f"--rocm-path={root}", f"--rocm-device-lib-path={root}/amdgcn/bitcode"]
    assert rocm.hipify_flags(CudaHeaders(Path("/c"), "12.9")) == [
        "--cuda-path=/c",
        f"--clang-resource-directory={root}/lib/llvm/lib/clang/20",
    ]


def test_the_configured_one_comes_before_all(tmp_path: Path) -> None:
    chosen = amd_layout(tmp_path / "chosen", "6.4.1")
    other = amd_layout(tmp_path / "other")
    assert find_rocm(str(chosen), Store(tmp_path / "cache"), {"ROCM_PATH": str(other)}).version == "6.4.1"


def test_a_configured_folder_that_is_no_rocm_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match=r"toolchain\.rocm: .*nowhere is not a ROCm.*lacks a clang"):
        find_rocm(str(tmp_path / "nowhere"), Store(tmp_path / "cache"))


def test_none_at_all_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem) as caught:
        find_rocm("", Store(tmp_path), {"PATH": ""})
    assert caught.value.hint == "amdflow toolchain install rocm"
    assert caught.value.exit_code == 5


def test_the_private_prefix_is_its_own_sysroot(tmp_path: Path) -> None:
    store = Store(tmp_path)
    build = private(store)
    rocm = find_rocm("", store, {"PATH": ""})
    assert (rocm.version, rocm.origin, rocm.sysroot) == ("7.2.4", "installed by amdflow", build)
    assert rocm.llvm_bin.name == "bin"
    assert rocm.clang == build / "usr/lib/llvm-22/bin/clang", "the one with the device libraries, not another version"
    assert f"--sysroot={build}" in rocm.compile_flags()
    assert f"--extra-arg=--sysroot={build}" in rocm.hipify_flags(CudaHeaders(Path("/c"), "12.9"))


def test_hipify_comes_from_the_private_prefix_with_its_own_resources(tmp_path: Path) -> None:
    store = Store(tmp_path / "cache")
    build = private(store)
    root = amd_layout(tmp_path / "rocm", hipify=False)
    rocm = find_rocm("", store, {"ROCM_PATH": str(root), "PATH": ""})
    assert rocm.root == root
    assert rocm.hipify == build / "usr/bin/hipify-clang"
    assert f"--clang-resource-directory={build}/usr/lib/llvm-22/lib/clang/22" in rocm.hipify_flags(
        CudaHeaders(Path("/c"), "12.9")
    )
    assert not [flag for flag in rocm.compile_flags() if "sysroot" in flag]


def test_a_rocm_without_hipify_still_compiles_and_says_what_is_missing(tmp_path: Path) -> None:
    root = amd_layout(tmp_path / "rocm", hipify=False)
    rocm = find_rocm("", Store(tmp_path / "cache"), {"ROCM_PATH": str(root), "PATH": ""})
    assert rocm.hipify is None
    with pytest.raises(EnvironmentProblem, match="has no hipify-clang") as caught:
        rocm.hipify_flags(CudaHeaders(Path("/c"), "12.9"))
    assert caught.value.hint == "amdflow toolchain install rocm"


def test_found_through_a_program_on_the_path(tmp_path: Path) -> None:
    root = amd_layout(tmp_path / "somewhere")
    (root / "bin/hipcc").chmod(0o755)
    links = tmp_path / "links"
    links.mkdir()
    (links / "hipcc").symlink_to(root / "bin/hipcc")
    found = [place for place in installed_places({"PATH": str(links)}) if place.root == root]
    assert [place.origin for place in found] == ["hipcc on PATH"]


def test_found_in_the_sdk_wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    amd_layout(tmp_path / "_rocm_sdk_core")
    monkeypatch.syspath_prepend(tmp_path)
    assert any(place.origin == "rocm-sdk wheels" for place in installed_places({"PATH": ""}))


@pytest.mark.parametrize(
    ("removed", "said"),
    [
        ("lib/llvm/bin/clang", "a clang"),
        ("include/hip/hip_runtime.h", "HIP's headers"),
        ("amdgcn/bitcode/ockl.bc", "device libraries"),
        ("lib/llvm/lib/clang/20/include/__clang_hip_runtime_wrapper.h", "clang's own headers"),
    ],
)
def test_an_incomplete_rocm_is_passed_over(tmp_path: Path, removed: str, said: str) -> None:
    root = amd_layout(tmp_path)
    (root / removed).unlink()
    assert said in missing_part(root)
    assert read_rocm(Place(root, "test")) is None


def test_versions(tmp_path: Path) -> None:
    assert read_version(tmp_path) == "unknown"
    write(tmp_path, {"include/hip/hip_version.h": "#define HIP_VERSION_MAJOR 7\n#define HIP_VERSION_MINOR    2\n"})
    assert read_version(tmp_path) == "7.2"
    parts = "".join(
        f"#define ROCM_VERSION_{name} {value}\n" for name, value in (("MAJOR", 7), ("MINOR", 0), ("PATCH", 2))
    )
    write(tmp_path, {"include/rocm-core/rocm_version.h": parts})
    assert read_version(tmp_path) == "7.0.2"
    write(tmp_path, {".info/version": "6.4.3-128\n"})
    assert read_version(tmp_path) == "6.4.3"


def test_a_missing_llvm_program_is_named(tmp_path: Path) -> None:
    rocm = read_rocm(Place(amd_layout(tmp_path), "test"))
    assert isinstance(rocm, Rocm)
    with pytest.raises(EnvironmentProblem, match="llvm-objdump is not in"):
        rocm.tool("llvm-objdump")
