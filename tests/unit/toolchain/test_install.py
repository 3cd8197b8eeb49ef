"""What is installed, in which order, and what is left alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from amdflow import terminal
from amdflow.config import ToolchainConfig
from amdflow.errors import EnvironmentProblem, UsageError
from amdflow.terminal import Terminal
from amdflow.toolchain import install as module
from amdflow.toolchain import install_engine, pip_steps
from amdflow.toolchain.install import already, expand, install
from amdflow.toolchain.install_engine import TORCH_INDEX, plan
from amdflow.toolchain.store import Installed, Store
from tests.unit.gpu.test_machine import MI300X, add_node
from tests.unit.toolchain.places import amd_layout, publish, write

Builder = Callable[[Store, Terminal], Installed]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cache")


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with no GPU, no ROCm and no CUDA."""
    monkeypatch.setattr(module, "installed_places", lambda: iter(()))
    monkeypatch.setattr("amdflow.toolchain.find_cuda.installed_places", lambda _environment: iter(()))
    return tmp_path / "machine"


def build(name: str, log: list[str]) -> Builder:
    """An installer that publishes an empty folder."""

    def run(store: Store, _terminal: Terminal) -> Installed:
        log.append(name)
        folder = store.new_build(name)
        facts = {"pins": install_engine.pins_digest(name), "device": "cpu"} if name in module.ENGINES else {}
        return store.publish(name, folder, version="1", origin="test", artifacts=(), facts=facts)

    return run


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Builders replaced by ones that only note that they ran."""
    ran: list[str] = []
    monkeypatch.setattr(module, "_builders", lambda _machine: {name: build(name, ran) for name in module.NAMES})
    return ran


def test_names() -> None:
    assert expand(["all"]) == ["rocm", "cuda-headers", "kernels", "finetune", "serve"]
    assert expand([]) == expand(["all"])
    assert expand(["serve", "rocm", "serve"]) == ["serve", "rocm"]
    with pytest.raises(UsageError, match=r"no tool 'kernel' \(did you mean kernels\?\)"):
        expand(["kernel"])
    with pytest.raises(UsageError, match="vllm is not installed by amdflow") as caught:
        expand(["vllm"])
    assert "toolchain: {vllm: PYTHON}" in caught.value.hint


def test_installed_once(store: Store, bare: Path, log: list[str]) -> None:
    for _again in range(2):
        install(["all"], ToolchainConfig(), store, Terminal(quiet=True), machine=bare)
    assert log == list(module.NAMES)
    install(["kernels"], ToolchainConfig(), store, Terminal(quiet=True), force=True, machine=bare)
    assert log[len(module.NAMES) :] == ["kernels"]


def test_what_the_user_has_is_left_alone(
    tmp_path: Path, store: Store, bare: Path, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = amd_layout(tmp_path / "rocm")
    monkeypatch.setattr(module, "installed_places", lambda: iter([module_place(root)]))
    assert "ROCm 7.1.0 with hipify-clang is on this machine" in already("rocm", ToolchainConfig(), store, bare)
    (root / "bin/hipify-clang").unlink()
    assert already("rocm", ToolchainConfig(), store, bare) == "", "then hipify-clang is still to be had"
    assert "your configuration" in already("serve", ToolchainConfig(serve="/my/python"), store, bare)
    assert not log


def module_place(root: Path) -> object:
    from amdflow.toolchain.find_rocm import Place

    return Place(root, "/opt/rocm")


def test_an_environment_from_another_pinned_set_is_made_anew(store: Store, bare: Path, log: list[str]) -> None:
    publish(store, "kernels", store.new_build("kernels"), pins="other", device="cpu")
    install(["kernels"], ToolchainConfig(), store, Terminal(quiet=True), machine=bare)
    assert log == ["kernels"]


def test_an_environment_for_another_device_is_made_anew(store: Store, bare: Path) -> None:
    publish(store, "kernels", store.new_build("kernels"), pins=install_engine.pins_digest("kernels"), device="cpu")
    assert already("kernels", ToolchainConfig(), store, bare)
    add_node(bare, 1, MI300X)
    assert not already("kernels", ToolchainConfig(), store, bare)


def test_one_that_fails_does_not_keep_the_others(
    store: Store, bare: Path, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_store: Store, _terminal: Terminal) -> Installed:
        raise EnvironmentProblem("no mirror", hint="another way")

    builders = {name: build(name, log) for name in module.NAMES} | {"rocm": refuse}
    monkeypatch.setattr(module, "_builders", lambda _machine: builders)
    with pytest.raises(EnvironmentProblem, match="not installed: rocm") as caught:
        install(["all"], ToolchainConfig(), store, Terminal(quiet=True), machine=bare)
    assert caught.value.hint == "amdflow toolchain install rocm"
    assert log == ["cuda-headers", "kernels", "finetune", "serve"]
    with pytest.raises(EnvironmentProblem, match="no mirror"):
        install(["rocm"], ToolchainConfig(), store, Terminal(quiet=True), machine=bare)


def test_two_at_once_install_once(store: Store, bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    began, go = threading.Event(), threading.Event()

    def slow(store: Store, terminal: Terminal) -> Installed:
        began.set()
        assert go.wait(20)
        return build("kernels", ran)(store, terminal)

    monkeypatch.setattr(module, "_builders", lambda _machine: {"kernels": slow})

    def one() -> None:
        install(["kernels"], ToolchainConfig(), store, Terminal(quiet=True), machine=bare)

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert began.wait(20)
    go.set()
    for thread in threads:
        thread.join(30)
    assert ran == ["kernels"]


def test_on_a_cpu_the_set_is_installed_as_it_stands() -> None:
    torch, rest = plan("finetune", "cpu")
    assert torch.requirements == ("torch==2.13.0",)
    assert torch.index == ""
    assert "numpy==2.4.6" in torch.constraints, "what torch needs comes in the pinned version at once"
    assert rest.alone
    assert not [name for name in rest.requirements if name.startswith(("torch==", "torchvision"))]
    assert "torchaudio==2.11.1" in rest.requirements


def test_on_an_amd_gpu_torch_comes_from_its_rocm_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AMDFLOW_TORCH_INDEX", raising=False)
    torch, rest = plan("finetune", "rocm")
    assert torch.index == TORCH_INDEX
    assert torch.requirements == ("torch==2.13.0", "torchvision", "torchaudio")
    assert not [name for name in rest.requirements if name.startswith("torchaudio")]
    monkeypatch.setenv("AMDFLOW_TORCH_INDEX", "https://mirror.example/rocm6.4")
    assert plan("kernels", "rocm")[0].index == "https://mirror.example/rocm6.4"


def test_on_an_nvidia_gpu_sglang_brings_its_own() -> None:
    (step,) = plan("serve", "cuda")
    assert step.requirements == ("sglang==0.5.23",)
    assert not step.alone, "pip resolves what it asks for"


def test_sglang_on_rocm_is_honest() -> None:
    with pytest.raises(EnvironmentProblem, match="publishes no ROCm wheels") as caught:
        plan("serve", "rocm")
    assert "lmsysorg/sglang" in caught.value.hint
    assert "toolchain: {serve: PYTHON}" in caught.value.hint


def test_torchaudio_loses_its_compiled_part_only(tmp_path: Path) -> None:
    site = "lib/python3.11/site-packages"
    write(tmp_path, {f"{site}/torchaudio/lib/x.so": "", f"{site}/torchaudio/__init__.py": "", "bin/python": ""})
    install_engine.strip_torchaudio(tmp_path / "bin/python")
    assert not (tmp_path / site / "torchaudio/lib").exists()
    assert (tmp_path / site / "torchaudio/__init__.py").exists()


def test_an_engine_that_does_not_start_is_refused(tmp_path: Path) -> None:
    import sys

    from amdflow.toolchain.model import Engine

    engine = Engine("kernels", Path(sys.executable), {}, "cpu")
    with pytest.raises(EnvironmentProblem, match="the new environment for kernels does not work") as caught:
        install_engine.prove(engine, "cpu", tmp_path / "log")
    assert str(tmp_path / "log") in caught.value.hint


def test_progress_counts_each_wanted_package_once(store: Store) -> None:
    moves: list[float] = []

    class Bar(terminal.Bar):
        def update(self, advance: float = 0.0, **_named: object) -> None:
            moves.append(advance)

    follow = pip_steps.Follower(
        Bar(print, "", 3, None, None), ("torch==2.13.0", "typing_extensions==4.16.0", "z3-solver==4.15.4.0")
    )
    for line in (
        "Looking in links: /x",
        "Collecting torch==2.13.0 (from -r requirements.txt (line 1))",
        "Processing /files/typing_extensions-4.16.0-py3-none-any.whl (from -r requirements.txt (line 2))",
        "Collecting networkx>=2.5 (from torch)",
        "Collecting z3-solver==4.15.4.0 (from -r requirements.txt (line 3))",
        "  File was already downloaded /downloads/z3_solver-4.15.4.0-py3-none-any.whl",
        "Installing collected packages: torch",
    ):
        follow(line)
    assert sum(moves) == 3
