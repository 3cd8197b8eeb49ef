"""Ask an installed LLaMA-Factory what it accepts: ``python probe.py RESULT.json OPERATORS``.

OPERATORS is the folder of the package ``tilelang_ops``. The answer is taken from the engine's own dataclasses, so that
checks made before training fit the version in use.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import importlib.util
import json
import sys
import types
import typing
from pathlib import Path
from typing import Any

OPTIONAL = (
    "bitsandbytes",
    "deepspeed",
    "unsloth",
    "liger_kernel",
    "galore_torch",
    "apollo_torch",
    "badam",
    "adam_mini",
    "wandb",
    "swanlab",
    "tensorboard",
    "matplotlib",
    "tilelang",
)


def describe(annotation: Any) -> dict[str, Any]:
    """A field's type as ``{"kinds": [...], "choices": [...]}``; kinds are bool, int, float, str, list, dict, none, any."""
    kinds: set[str] = set()
    choices: list[Any] = []
    for part in parts(annotation):
        origin = typing.get_origin(part) or part
        if origin is typing.Literal:
            choices += typing.get_args(part)
            kinds.update(type(choice).__name__ for choice in typing.get_args(part))
        elif isinstance(origin, type) and issubclass(origin, enum.Enum):
            choices += [member.value for member in origin]
            kinds.add("str")
        elif origin is type(None):
            kinds.add("none")
        elif origin in (bool, int, float, str, list, dict):
            kinds.add(origin.__name__)
        else:
            kinds.add("any")
    return {"kinds": sorted(kinds), "choices": choices}


def parts(annotation: Any) -> list[Any]:
    """The members of a union, or the type itself."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return [inner for member in typing.get_args(annotation) for inner in parts(member)]
    return [annotation]


def fields() -> dict[str, Any]:
    """Every key a training config may hold, with its type and default."""
    from llamafactory.hparams import parser
    from llamafactory.hparams.training_args import RayArguments

    found: dict[str, Any] = {}
    for owner in (*parser._TRAIN_ARGS, RayArguments):
        hints = typing.get_type_hints(owner)
        for field in dataclasses.fields(owner):
            if not field.init:
                continue
            default = None if field.default is dataclasses.MISSING else field.default
            if isinstance(default, enum.Enum):
                default = default.value
            found[field.name] = {
                **describe(hints[field.name]),
                "default": default if isinstance(default, (bool, int, float, str)) else None,
            }
    return found


def operators(folder: str) -> dict[str, Any]:
    """What each custom operator replaces and calls, or why they cannot be loaded here."""
    sys.path.insert(0, folder)
    try:
        registry = importlib.import_module("tilelang_ops").REGISTRY
    except Exception as error:  # whatever it is, a training without them must not suffer
        return {"operators": {}, "operators_problem": f"{type(error).__name__}: {error}"}
    found = {op: {"modules": list(entry.modules), "kernels": list(entry.kernels)} for op, entry in registry.items()}
    return {"operators": found, "operators_problem": ""}


def main() -> None:
    """Write the answer."""
    import torch
    from llamafactory.data.template import TEMPLATES
    from llamafactory.extras.constants import FILEEXT2TYPE
    from transformers.utils import is_flash_attn_2_available, is_torch_bf16_gpu_available

    hub = importlib.import_module("huggingface_hub.constants")
    answer = {
        "fields": fields(),
        "templates": sorted(TEMPLATES),
        "file_types": dict(FILEEXT2TYPE),
        "flash_attention_2": bool(is_flash_attn_2_available()),
        "bf16_gpu": bool(is_torch_bf16_gpu_available()),
        "gpus": torch.cuda.device_count(),
        "modules": [name for name in OPTIONAL if importlib.util.find_spec(name)],
        "hub_endpoint": hub.ENDPOINT,
        "hub_cache": hub.HF_HUB_CACHE,
        **operators(sys.argv[2]),
    }
    Path(sys.argv[1]).write_text(json.dumps(answer), encoding="utf-8")


if __name__ == "__main__":
    main()
