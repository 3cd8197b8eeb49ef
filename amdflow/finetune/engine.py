"""What the installed LLaMA-Factory accepts, asked once and remembered for that version."""

from __future__ import annotations

import json
import os
import platform
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amdflow import process
from amdflow.errors import EnvironmentProblem
from amdflow.files import canonical_json, sha256_file, sha256_text, write_atomic

PROBE = Path(__file__).parent / "inside" / "probe.py"
OPERATORS = Path(__file__).parent.parent / "kernels" / "inside"
"""Folder of the package ``tilelang_ops``, for the path of an engine's interpreter."""
# What changes an answer besides the installed packages.
_VARIABLES = (
    "HF_ENDPOINT",
    "HF_HOME",
    "HF_HUB_CACHE",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "CUDA_VISIBLE_DEVICES",
)


@dataclass(frozen=True)
class Field:
    """One key of a training config. ``kinds`` are bool, int, float, str, list, dict, none, any."""

    kinds: frozenset[str]
    choices: tuple[Any, ...]
    default: Any


@dataclass(frozen=True)
class Operator:
    """A custom operator that can take the place of modules of a model."""

    modules: tuple[str, ...]
    """Classes that it replaces."""
    kernels: tuple[str, ...]
    """Kernels that it calls, forward and backward."""


@dataclass(frozen=True)
class EngineFacts:
    """What this LLaMA-Factory knows."""

    fields: Mapping[str, Field]
    templates: tuple[str, ...]
    file_types: Mapping[str, str]
    """File name ending -> loader (``jsonl`` -> ``json``)."""
    flash_attention_2: bool
    bf16_gpu: bool
    gpus: int
    modules: frozenset[str]
    """Optional packages that are installed."""
    hub_endpoint: str
    hub_cache: Path
    operators: Mapping[str, Operator]
    operators_problem: str
    """Why there are none, where they cannot be loaded."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> EngineFacts:
        """From the answer of ``inside/probe.py``."""
        fields = {
            name: Field(frozenset(item["kinds"]), tuple(item["choices"]), item["default"])
            for name, item in data["fields"].items()
        }
        return cls(
            fields=fields,
            templates=tuple(data["templates"]),
            file_types=dict(data["file_types"]),
            modules=frozenset(data["modules"]),
            flash_attention_2=data["flash_attention_2"],
            bf16_gpu=data["bf16_gpu"],
            gpus=data["gpus"],
            hub_endpoint=data["hub_endpoint"],
            hub_cache=Path(data["hub_cache"]),
            operators={
                op: Operator(tuple(item["modules"]), tuple(item["kernels"])) for op, item in data["operators"].items()
            },
            operators_problem=data["operators_problem"],
        )


def probe(python: Path, packages: Mapping[str, str], environment: Mapping[str, str], cache: Path) -> EngineFacts:
    """Facts about the LLaMA-Factory of ``python``; about 15 seconds the first time, read from ``cache`` afterwards.

    Raises EnvironmentProblem when it cannot even be imported.
    """
    identity = [
        str(python),
        dict(packages),
        [sha256_file(path) for path in (PROBE, *sorted(OPERATORS.glob("tilelang_ops/*.py")))],
        platform.node(),
        {name: os.environ.get(name) for name in _VARIABLES},
    ]
    remembered = cache / f"llamafactory-{sha256_text(canonical_json(identity))[:20]}.json"
    try:
        return EngineFacts.from_json(json.loads(remembered.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError):
        answer = _ask(python, environment)
    facts = EngineFacts.from_json(json.loads(answer))
    write_atomic(remembered, answer)
    return facts


def _ask(python: Path, environment: Mapping[str, str]) -> str:
    with tempfile.TemporaryDirectory(prefix="amdflow-probe-") as folder:
        result = Path(folder) / "facts.json"
        done = process.run(
            [str(python), str(PROBE), str(result), str(OPERATORS)],
            env=os.environ | environment,
            cwd=Path(folder),
            timeout=300,
            check=False,
        )
        if done.returncode or not result.is_file():
            last = next((line for line in reversed(done.output.splitlines()) if line.strip()), "it said nothing")
            raise EnvironmentProblem(
                f"LLaMA-Factory cannot be used from {python}: {last[:300]}", hint="amdflow toolchain install finetune"
            )
        return result.read_text(encoding="utf-8")
