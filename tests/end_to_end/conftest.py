"""A whole project, small enough to run many times: two CUDA files, one kernel, a tiny model, twelve rows of data."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path

import pytest

from tests.conftest import CommandLine
from tests.models import make_tiny_model

CUDA = """#include <cuda_runtime.h>

__global__ void scale(float* values, float factor, int count) {
  int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) values[index] *= factor;
}

int main() {
  float* values;
  cudaMalloc(&values, 1024);
  scale<<<1, 256>>>(values, 2.0f, 256);
  return cudaDeviceSynchronize() != cudaSuccess;
}
"""

TRAINING = {
    "stage": "sft",
    "do_train": True,
    "finetuning_type": "lora",
    "lora_target": "all",
    "lora_rank": 4,
    "dataset_dir": "data",
    "dataset": "tiny",
    "template": "smollm2",
    "cutoff_len": 64,
    "logging_steps": 1,
    "save_steps": 4,
    "per_device_train_batch_size": 2,
    "learning_rate": 1e-3,
    "max_steps": 8,
    "report_to": "none",
    "use_cpu": True,
}


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Llama of 0.7 million parameters."""
    return make_tiny_model(tmp_path_factory.mktemp("models"))


@pytest.fixture
def project(amdflow: CommandLine, tiny_model: Path) -> CommandLine:
    """The command line in a complete little project."""
    write_project(amdflow.folder, tiny_model)
    return amdflow


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Path:
    """Such a project after ``run-all --until export``; to be copied, not changed."""
    root = tmp_path_factory.mktemp("exported")
    write_project(root, tiny_model)
    done = CommandLine(root, {"XDG_CONFIG_HOME": str(root / "config-home")})("run-all", "--until", "export")
    assert done.code == 0, done.err
    return root


def write_project(root: Path, model: Path) -> None:
    """Sources, model, data and config."""
    (root / "cuda").mkdir()
    (root / "cuda" / "scale.cu").write_text(CUDA)
    shutil.copytree(model, root / "model")
    (root / "data").mkdir()
    rows = [{"instruction": f"Add {n} and {n}.", "input": "", "output": f"The sum is {2 * n}."} for n in range(12)]
    (root / "data/tiny.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns = {"prompt": "instruction", "query": "input", "response": "output"}
    (root / "data/dataset_info.json").write_text(json.dumps({"tiny": {"file_name": "tiny.jsonl", "columns": columns}}))
    (root / "train.yaml").write_text(json.dumps({"model_name_or_path": "model", **TRAINING}))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    sections = (
        "migrate: {source: cuda}\nkernels: {kernels: [rms_norm], dtypes: [bfloat16]}\nfinetune: {config: train.yaml}"
    )
    (root / "amdflow.yaml").write_text(f"targets: [gfx942]\n{sections}\nserve: {{port: {port}}}\n")
