"""Engines are read from their folders, without starting their interpreter."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from amdflow import process
from amdflow.config import ToolchainConfig
from amdflow.errors import EnvironmentProblem, UsageError
from amdflow.toolchain import Toolchain
from amdflow.toolchain.find_engine import find_engine
from amdflow.toolchain.store import Store
from tests.unit.gpu.test_machine import MI300X, add_node
from tests.unit.toolchain.places import environment, publish, write

CPU = "__version__ = '2.13.0+cpu'\ncuda: Optional[str] = None\nhip: Optional[str] = None\n"
CUDA = "__version__ = '2.13.0'\ncuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n"
ROCM = "cuda: Optional[str] = None\nhip: Optional[str] = '7.2.53211-e1a6bc5663'\n"
SERVE = {"torch": "2.13.0+cpu", "sglang": "0.5.23"}


def test_packages_and_device(tmp_path: Path) -> None:
    python = environment(
        tmp_path / "env", {"torch": "2.13.0+cpu", "tilelang": "0.1.15", "Typing_Extensions": "4.16.0"}, torch=CPU
    )
    engine = find_engine("kernels", str(python), Store(tmp_path / "cache"), tmp_path)
    assert dict(engine.packages) == {"torch": "2.13.0+cpu", "tilelang": "0.1.15", "typing-extensions": "4.16.0"}
    assert (engine.device, engine.torch_build, engine.origin) == ("cpu", "cpu", "config toolchain.kernels")
    assert find_engine("kernels", str(tmp_path / "env"), Store(tmp_path / "cache"), tmp_path).python == python, (
        "a folder will do"
    )


@pytest.mark.parametrize(
    ("torch", "amd", "nvidia", "device", "build"),
    [
        (ROCM, True, False, "rocm", "rocm"),
        (ROCM, False, False, "cpu", "rocm"),
        (CUDA, False, True, "cuda", "cuda"),
        (CUDA, True, False, "cpu", "cuda"),
        (CPU, True, True, "cpu", "cpu"),
    ],
)
def test_the_device_is_what_torch_and_the_machine_share(
    tmp_path: Path, torch: str, amd: bool, nvidia: bool, device: str, build: str
) -> None:
    if amd:
        add_node(tmp_path, 1, MI300X)
    if nvidia:
        write(tmp_path, {"proc/driver/nvidia/gpus/0/information": ""})
    python = environment(tmp_path / "env", SERVE, torch=torch)
    engine = find_engine("serve", str(python), Store(tmp_path / "cache"), tmp_path)
    assert (engine.device, engine.torch_build) == (device, build)
    assert bool(engine.stand_ins) == (device == "cpu")


def test_errors_name_the_command(tmp_path: Path) -> None:
    store = Store(tmp_path / "cache")
    with pytest.raises(EnvironmentProblem) as caught:
        find_engine("finetune", "", store, tmp_path)
    assert caught.value.hint == "amdflow toolchain install finetune"
    with pytest.raises(EnvironmentProblem, match="there is no Python interpreter"):
        find_engine("finetune", str(tmp_path / "nowhere"), store, tmp_path)
    python = environment(tmp_path / "env", {"torch": "2.13.0"})
    with pytest.raises(EnvironmentProblem, match="has no llamafactory"):
        find_engine("finetune", str(python), store, tmp_path)
    with pytest.raises(UsageError, match="no engine 'finetunes'"):
        find_engine("finetunes", "", store, tmp_path)


def test_the_installed_one(tmp_path: Path) -> None:
    store = Store(tmp_path / "cache")
    build = store.new_build("serve")
    environment(build, SERVE, torch=CPU)
    toolchain = Toolchain(ToolchainConfig(), store, tmp_path)
    publish(store, "serve", build)
    engine = toolchain.engine("serve")
    assert engine.python == build / "bin/python"
    assert engine is toolchain.engine("serve")


def test_packages_of_a_parent_environment_count(tmp_path: Path) -> None:
    parent = environment(tmp_path / "parent", {"torch": "2.13.0"})
    child = environment(tmp_path / "child", {"tilelang": "0.1.15"})
    write(tmp_path / "child", {"pyvenv.cfg": f"home = {parent.parent}\ninclude-system-site-packages = true\n"})
    assert find_engine("kernels", str(child), Store(tmp_path / "cache"), tmp_path).packages["torch"] == "2.13.0"


def test_variables_for_a_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HUB_OFFLINE", "OMP_NUM_THREADS", "OMP_WAIT_POLICY", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    python = environment(tmp_path / "env", SERVE, torch=CPU)
    engine = find_engine("serve", str(python), Store(tmp_path / "cache"), tmp_path)
    variables = engine.environment()
    assert variables["HF_HUB_OFFLINE"] == "1"
    assert variables["OMP_WAIT_POLICY"] == "PASSIVE"
    assert Path(variables["PYTHONPATH"], "sgl_kernel.py").is_file()
    assert "HF_HUB_OFFLINE" not in engine.environment(offline=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.setenv("PYTHONPATH", "/mine")
    assert "OMP_NUM_THREADS" not in engine.environment(), "what the user has set stays"
    assert engine.environment()["PYTHONPATH"].endswith(f"{os.pathsep}/mine")


def test_a_stand_in_is_not_put_before_the_real_module(tmp_path: Path) -> None:
    python = environment(tmp_path / "env", SERVE, torch=CPU)
    write(tmp_path / "env", {"lib/python3.11/site-packages/sgl_kernel/__init__.py": ""})
    assert not find_engine("serve", str(python), Store(tmp_path / "cache"), tmp_path).stand_ins


def test_the_stand_ins_let_another_sitecustomize_run(tmp_path: Path) -> None:
    write(tmp_path, {"sitecustomize.py": "print('mine ran')\n"})
    python = environment(tmp_path / "env", SERVE, torch=CPU)
    engine = find_engine("serve", str(python), Store(tmp_path / "cache"), tmp_path)
    path = os.pathsep.join([*map(str, engine.stand_ins), str(tmp_path)])
    code = "import sgl_kernel\ntry:\n    sgl_kernel.gelu(1)\nexcept RuntimeError as error:\n    print(error)"
    done = process.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path})
    assert done.stdout.startswith("mine ran\nsgl_kernel.gelu is compiled code for a GPU")
