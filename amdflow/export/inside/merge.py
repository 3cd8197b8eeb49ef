"""Merge and write a model with LLaMA-Factory: ``python merge.py JOB.json``.

JOB.json holds ``args`` (LLaMA-Factory's export keys), ``trained`` (a folder whose SafeTensors must be finite first),
``widen`` (merge in float32) and ``result``.
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from typing import Any


def first_not_finite(folder: Path) -> str:
    """The name of the first tensor with a NaN or an infinity, "" when there is none."""
    import torch
    from safetensors import safe_open

    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 - not a mapping
                tensor = file.get_tensor(name)
                if tensor.is_floating_point() and not bool(torch.isfinite(tensor.float()).all()):
                    return f"{name} in {path.name}"
    return ""


def merge_in_float32() -> None:
    """LLaMA-Factory merges in the data type of the base model's file; a finer export would keep that rounding."""
    import torch
    from llamafactory.model import loader

    plain = loader.load_config

    def load_config(*args: Any, **kwargs: Any) -> Any:
        config = plain(*args, **kwargs)
        config.dtype = torch.float32
        return config

    loader.load_config = load_config


def work(job: dict[str, Any]) -> str:
    """Do it; returns what is wrong, "" when nothing is."""
    broken = first_not_finite(Path(job["trained"]))
    if broken:
        return f"the trained tensor {broken} holds NaN or infinite values"
    from llamafactory.train.tuner import export_model

    if job["widen"]:
        merge_in_float32()
    export_model(job["args"])
    return ""


def main() -> int:
    """Write ``{"error": ...}`` (empty when all went well) to the result file."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    try:
        error = work(job)
    except Exception as problem:
        traceback.print_exc()
        error = f"{type(problem).__name__}: {problem}"[:2000]
    Path(job["result"]).write_text(json.dumps({"error": error}), encoding="utf-8")
    return 1 if error else 0


if __name__ == "__main__":
    sys.exit(main())
