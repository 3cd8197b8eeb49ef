"""The model to start from: a folder that must be whole, or a hub id that must be within reach."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from amdflow.errors import EnvironmentProblem, UsageError
from amdflow.finetune.engine import EngineFacts
from amdflow.finetune.places import looks_like_path
from amdflow.weights import Weights, check_model_folder, model_files

_PATIENCE_SECONDS = 10.0


@dataclass(frozen=True)
class BaseModel:
    """A checked model. ``folder`` is None for one that a hub holds."""

    name: str
    folder: Path | None
    files: tuple[Path, ...] = ()
    weights: Weights | None = None


def check_base_model(value: str, facts: EngineFacts) -> BaseModel:
    """The model that ``model_name_or_path`` names. Raises UsageError for a broken folder, EnvironmentProblem for a hub out of reach."""
    folder = Path(value)
    if folder.is_dir():
        return BaseModel(folder.name, folder, model_files(folder), check_model_folder(folder))
    if folder.is_file():
        raise UsageError(
            f"model_name_or_path: {value} is a file, not a model folder", hint="name the folder that holds config.json"
        )
    if looks_like_path(value):
        raise UsageError(
            f"model_name_or_path: no such folder: {value}", hint="check the path; a hub id looks like owner/name"
        )
    _check_hub(value, facts)
    return BaseModel(value, None)


def _check_hub(name: str, facts: EngineFacts) -> None:
    kept = facts.hub_cache / f"models--{name.replace('/', '--')}" / "snapshots"
    if kept.is_dir() and any(kept.iterdir()):
        return
    advice = "name a local model folder, or fetch the model first on a machine with a network (hf download)"
    if any(
        os.environ.get(variable, "").upper() in ("1", "ON", "YES", "TRUE")
        for variable in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    ):
        raise EnvironmentProblem(
            f"model_name_or_path: {name} is no local folder, not in {facts.hub_cache}, and HF_HUB_OFFLINE is set",
            hint=advice,
        )
    import httpx

    try:
        answer = httpx.head(
            f"{facts.hub_endpoint}/{name}/resolve/main/config.json", timeout=_PATIENCE_SECONDS, follow_redirects=True
        )
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        problem = f"model_name_or_path: {name} is no local folder, and the hub {facts.hub_endpoint} is out of reach ({type(error).__name__})"
        raise EnvironmentProblem(problem, hint=advice) from error
    if answer.status_code == httpx.codes.NOT_FOUND:
        raise UsageError(
            f"model_name_or_path: {name} is neither a local folder nor a model of {facts.hub_endpoint}",
            hint="check the spelling",
        )
