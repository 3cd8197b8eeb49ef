"""A model directory and an engine environment as they look on disk, without an engine."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from amdflow.config import ToolchainConfig
from amdflow.pipeline.manifest import Manifest, Status, Timing
from amdflow.pipeline.stage import Request
from amdflow.serve.config import ServeConfig
from amdflow.terminal import Terminal
from amdflow.toolchain import Toolchain
from amdflow.toolchain.store import Store


def write_safetensors(path: Path, names: tuple[str, ...] = ("weight",), *, cut: int = 0) -> None:
    """A well-formed file with a 2x4 BF16 tensor for each name; ``cut`` bytes are missing at its end."""
    header = {
        name: {"dtype": "BF16", "shape": [2, 4], "data_offsets": [16 * index, 16 * index + 16]}
        for index, name in enumerate(names)
    }
    text = json.dumps(header).encode()
    data = struct.pack("<Q", len(text)) + text + bytes(16 * len(names))
    path.write_bytes(data[: len(data) - cut])


def write_model(folder: Path, **config: Any) -> Path:
    """A model directory that passes every check."""
    folder.mkdir(parents=True, exist_ok=True)
    values = {"architectures": ["LlamaForCausalLM"], "max_position_embeddings": 512, **config}
    (folder / "config.json").write_text(json.dumps(values))
    (folder / "tokenizer.json").write_text("{}")
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ messages }}"}))
    write_safetensors(folder / "model.safetensors")
    return folder


def write_export(
    folder: Path, *, model: str = "model", name: str = "tuned", status: Status = Status.OK, stage: str = "export"
) -> Path:
    """The manifest of an export (or another stage) in ``folder``; its path."""
    folder.mkdir(parents=True, exist_ok=True)
    manifest = Manifest(
        stage=stage,
        stage_version=1,
        run_id="r",
        amdflow="0",
        status=status,
        exit_code=0,
        key="k",
        timing=Timing(started="", ended="", seconds=0),
        handoff={
            "model": model,
            "name": name,
            "dtype": "bfloat16",
            "template": "x",
            "probe": {"prompt": "What is a wavefront?"},
        },
    )
    manifest.save(folder / "manifest.json")
    return folder / "manifest.json"


def write_environment(folder: Path, *, torch: str = "cpu", **packages: str) -> Path:
    """The folder of an engine environment: metadata of packages, and the version file of torch. Its interpreter's path."""
    site = folder / "lib/python3.11/site-packages"
    for name, version in {"torch": "2.13.0", **packages}.items():
        info = site / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Name: {name}\n")
    (site / "torch").mkdir()
    (site / "torch/version.py").write_text({"cpu": "hip = None\n", "rocm": "hip = '7.2.0'\n"}[torch])
    python = folder / "bin/python"
    python.parent.mkdir()
    python.write_text("")
    python.chmod(0o755)
    return python


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model directory."""
    return write_model(tmp_path / "some model")


@pytest.fixture
def toolchain(tmp_path: Path) -> Toolchain:
    """A toolchain with an SGLang for the CPU."""
    python = write_environment(tmp_path / "serve-env", sglang="0.5.23", transformers="5.19.0")
    return Toolchain(ToolchainConfig(serve=str(python)), Store(tmp_path / "store"))


MakeRequest = Callable[..., Request[ServeConfig]]


@pytest.fixture
def request_for(tmp_path: Path, toolchain: Toolchain) -> MakeRequest:
    """Makes a request with the given keys of the serve section."""

    def make(**config: Any) -> Request[ServeConfig]:
        return Request(ServeConfig(**config), tmp_path, (), None, Terminal(), toolchain)

    return make
