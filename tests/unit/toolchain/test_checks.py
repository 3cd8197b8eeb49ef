"""What doctor says about machines that are not well."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from amdflow.config import ToolchainConfig
from amdflow.toolchain import Toolchain, checks
from amdflow.toolchain.checks import Check, Scene, State
from amdflow.toolchain.store import Store
from tests.unit.gpu.test_machine import MI300X, add_node
from tests.unit.toolchain.places import amd_layout, cuda, environment, publish, write
from tests.unit.toolchain.test_find_engine import CPU, CUDA, ROCM

Look = Callable[[Scene], Iterator[Check]]


class Machine:
    """A made-up machine below a folder."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.store = Store(folder / "cache")
        self.settings: dict[str, str] = {}
        self.environment: dict[str, str] = {"PATH": ""}

    def look(self, check: Look) -> list[Check]:
        toolchain = Toolchain(ToolchainConfig(**self.settings), self.store, self.root)
        return list(check(Scene(toolchain, self.root, self.environment)))

    def warning(self, check: Look) -> Check:
        (found,) = [result for result in self.look(check) if result.state is State.WARNING]
        assert found.fix, "every warning comes with what mends it"
        return found

    def add_gpu(self, render: int = 128) -> None:
        add_node(self.root, 1, MI300X, render)
        write(self.root, {"dev/kfd": "", f"dev/dri/renderD{render}": "", "sys/module/amdgpu/version": "6.14.14\n"})

    def add_engine(self, name: str, torch: str, packages: dict[str, str]) -> None:
        python = environment(self.root / "envs" / name, {"torch": "2.13.0", **packages}, torch=torch)
        self.settings[name] = str(python)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr("amdflow.toolchain.find_rocm.installed_places", lambda _environment=None: iter(()))
    monkeypatch.setattr("amdflow.toolchain.find_cuda.installed_places", lambda _environment=None: iter(()))
    return Machine(tmp_path)


def test_missing_tools_each_with_their_command(machine: Machine) -> None:
    found = {check.name: check for check in machine.look(checks.check_tools)}
    assert {name for name, check in found.items() if check.state is State.MISSING} == {
        "rocm",
        "hipify-clang",
        "cuda-headers",
        "kernels",
        "finetune",
        "serve",
    }
    assert found["finetune"].fix == "amdflow toolchain install finetune"
    assert found["hipify-clang"].fix == "amdflow toolchain install rocm"
    assert found["vllm"].state is State.NOTE, "it is optional"


def test_tools_that_are_there(machine: Machine) -> None:
    machine.settings["rocm"] = str(amd_layout(machine.root / "opt/rocm"))
    machine.settings["cuda"] = str(cuda(machine.root / "cuda"))
    machine.add_engine("kernels", CPU, {"tilelang": "0.1.15"})
    found = {check.name: check for check in machine.look(checks.check_tools)}
    assert found["rocm"].version == "7.1.0"
    assert found["hipify-clang"].path.endswith("bin/hipify-clang")
    assert found["cuda-headers"].version == "12.9"
    assert found["kernels"].version == "tilelang 0.1.15, torch 2.13.0 (cpu)"
    assert found["kernels"].state is State.OK


def test_an_interrupted_install_is_told_apart(machine: Machine) -> None:
    machine.store.new_build("serve")
    found = {check.name: check for check in machine.look(checks.check_tools)}
    assert "not finished" in found["serve"].detail
    assert "not finished" not in found["kernels"].detail


def test_no_gpu_is_a_note(machine: Machine) -> None:
    (found,) = machine.look(checks.check_gpu)
    assert found.state is State.NOTE
    assert "runs on the CPU" in found.detail
    assert machine.look(checks.check_access) == []


def test_a_gpu_in_order(machine: Machine) -> None:
    machine.add_gpu()
    (gpu,) = machine.look(checks.check_gpu)
    assert (gpu.state, gpu.version) == (State.OK, "6.14.14")
    assert "gfx942" in gpu.detail
    (access,) = machine.look(checks.check_access)
    assert access.state is State.OK


def test_a_card_without_driver(machine: Machine) -> None:
    device = "sys/bus/pci/devices/0000:03:00.0"
    write(machine.root, {f"{device}/vendor": "0x1002\n", f"{device}/class": "0x120000\n"})
    assert "0000:03:00.0 has no driver" in machine.warning(checks.check_gpu).detail
    write(machine.root, {"sys/module/amdgpu/version": "6.14.14\n"})
    assert "offers none" in machine.warning(checks.check_gpu).detail


def test_a_user_outside_the_render_group(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.add_gpu()
    monkeypatch.setattr(os, "access", lambda path, _mode: "renderD128" not in str(path))
    found = machine.warning(checks.check_access)
    assert "renderD128" in found.detail
    assert found.fix.startswith("sudo usermod -aG render,video")


def test_a_container_without_the_device(machine: Machine) -> None:
    machine.add_gpu()
    (machine.root / "dev/kfd").unlink()
    assert "--device=/dev/kfd" in machine.warning(checks.check_access).fix


@pytest.mark.parametrize(("torch", "said"), [(CUDA, "built for CUDA 13.0"), (CPU, "built for CPUs")])
def test_a_wrong_torch_on_a_rocm_host(machine: Machine, torch: str, said: str) -> None:
    machine.add_engine("kernels", torch, {"tilelang": "0.1.15"})
    assert machine.look(checks.check_wheels) == [], "without an AMD GPU it is right"
    machine.add_gpu()
    found = machine.warning(checks.check_wheels)
    assert said in found.detail
    assert found.fix == "amdflow toolchain install kernels --force"


def test_a_cuda_sglang_on_a_rocm_host(machine: Machine) -> None:
    machine.add_gpu()
    machine.add_engine("serve", ROCM, {"sglang": "0.5.23", "flashinfer_python": "0.6"})
    found = machine.warning(checks.check_wheels)
    assert "CUDA-only packages (flashinfer-python)" in found.detail
    assert "lmsysorg/sglang" in found.fix


def test_torch_of_another_rocm_than_the_installed_one(machine: Machine) -> None:
    machine.add_gpu()
    machine.add_engine("finetune", ROCM, {"llamafactory": "0.9.5"})
    machine.settings["rocm"] = str(amd_layout(machine.root / "opt/rocm", "6.4.1"))
    found = machine.warning(checks.check_hip_version)
    assert "ROCm 7, and ROCm 6.4.1 is installed" in found.detail
    assert "AMDFLOW_TORCH_INDEX=" in found.fix
    machine.settings["rocm"] = str(amd_layout(machine.root / "opt/rocm7", "7.0.2"))
    assert machine.look(checks.check_hip_version) == []


def test_torch_too_new_for_the_driver(machine: Machine) -> None:
    machine.add_gpu()
    machine.add_engine("finetune", ROCM, {"llamafactory": "0.9.5"})
    assert machine.look(checks.check_hip_version) == []
    write(machine.root, {"sys/module/amdgpu/version": "6.7.0\n"})
    assert "driver 6.7.0 is older" in machine.warning(checks.check_hip_version).detail


def test_cuda_13_headers(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    root = cuda(machine.root / "cuda", 13000)
    machine.settings["cuda"] = str(root)
    found = machine.warning(checks.check_cuda_headers)
    assert "hipify-clang crashes on CUDA 13.0" in found.detail
    assert "amdflow toolchain install cuda-headers" in found.fix
    del machine.settings["cuda"]
    monkeypatch.setattr(
        "amdflow.toolchain.find_cuda.installed_places", lambda _environment=None: iter([(root, "CUDA_HOME")])
    )
    (note,) = machine.look(checks.check_cuda_headers)
    assert note.state is State.NOTE
    assert "passed over" in note.detail


def test_variables_that_mislead(machine: Machine) -> None:
    assert machine.look(checks.check_variables) == []
    machine.environment["HSA_OVERRIDE_GFX_VERSION"] = "11.0.0"
    assert machine.warning(checks.check_variables).fix == "unset HSA_OVERRIDE_GFX_VERSION"
    del machine.environment["HSA_OVERRIDE_GFX_VERSION"]
    machine.environment["ROCM_PATH"] = "/nowhere"
    assert "it lacks a clang" in machine.warning(checks.check_variables).detail


def test_two_rocms_on_the_path(machine: Machine) -> None:
    roots = [amd_layout(machine.root / name, version) for name, version in (("a", "6.4.1"), ("b", "7.1.0"))]
    machine.environment["PATH"] = os.pathsep.join(f"{root}/bin" for root in (roots[0], roots[0]))
    assert machine.look(checks.check_path) == []
    machine.environment["PATH"] = os.pathsep.join(f"{root}/bin" for root in roots)
    found = machine.warning(checks.check_path)
    assert "6.4.1" in found.detail
    assert "7.1.0" in found.detail


def test_an_environment_of_another_version_of_amdflow(machine: Machine) -> None:
    build = machine.store.new_build("kernels")
    environment(build, {"torch": "2.13.0", "tilelang": "0.1.14"}, torch=CPU)
    publish(machine.store, "kernels", build, pins="of old", device="cpu")
    assert machine.warning(checks.check_outdated).fix == "amdflow toolchain install kernels"


def test_little_space(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = machine.look(checks.check_space)
    assert "GiB free" in found.detail
    monkeypatch.setattr(checks, "_SPACE_GB", 1e9)
    assert "AMDFLOW_CACHE" in machine.warning(checks.check_space).fix


def test_python(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = machine.look(checks.check_python)
    assert found.state is State.OK
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    assert machine.warning(checks.check_python).fix.startswith("apt-get install python3.")


def test_every_check_runs_on_this_machine() -> None:
    names = [check.name for check in checks.run_all(Scene(Toolchain()))]
    assert {"python", "disk", "rocm", "serve"} <= set(names)
