"""The tiny random Llama the tests train and serve, made once a session by the script that ships with the examples."""

from __future__ import annotations

from pathlib import Path

from amdflow import process
from amdflow.config import ToolchainConfig
from amdflow.content import shipped
from amdflow.toolchain import Toolchain


def make_tiny_model(folder: Path) -> Path:
    """A model directory below ``folder``."""
    python = Toolchain(ToolchainConfig()).engine("finetune").python
    model = folder / "tiny-llama"
    process.run([str(python), str(shipped("finetuning") / "models.py"), "tiny", "--output", str(model)], timeout=300)
    return model
