"""What is to be exported: a trained adapter and its base model, or a whole trained model."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ValidationError

from amdflow.errors import UsageError
from amdflow.export.config import ExportConfig
from amdflow.pipeline.manifest import Upstream
from amdflow.pipeline.stage import Input, Request
from amdflow.weights import check_model_folder, model_files, read_header

ADAPTER_WEIGHTS = "adapter_model.safetensors"


class _Handoff(BaseModel):
    """What the finetune stage hands over, as far as it is read here."""

    base_model: str
    base_name: str = ""
    base_is_local: bool = True
    finetuning_type: str = "lora"
    adapter: str | None = None
    model: str | None = None
    template: str = ""
    trust_remote_code: bool = False


@dataclass(frozen=True)
class Source:
    """A checked source. ``model`` is a folder or a hub id; ``adapter`` is None for a whole model."""

    model: str
    adapter: Path | None
    template: str
    name: str
    finetuning_type: str
    inputs: tuple[Input, ...]
    parameters: int = 0


def find_source(request: Request[ExportConfig]) -> Source:
    """The source that the config names, else what finetune handed over. Raises UsageError when there is none, or it is damaged."""
    config = request.config
    if config.adapter or config.model:
        return _explicit(request, config)
    if request.upstream is None:
        raise UsageError(
            "there is nothing to export: no finetune result, and neither --adapter nor --model",
            hint="amdflow finetune CONFIG.yaml",
        )
    return _handed_over(request, request.upstream)


def _explicit(request: Request[ExportConfig], config: ExportConfig) -> Source:
    adapter = request.path(config.adapter) if config.adapter else None
    model = config.model or _base_of(adapter)
    folder = request.path(model)
    name = config.name or f"{Path(model).name}{'-lora' if adapter else ''}"
    return _checked(
        str(folder) if folder.is_dir() or not _is_hub_id(model) else model,
        adapter,
        config.template,
        name,
        "lora" if adapter else "full",
    )


def _handed_over(request: Request[ExportConfig], upstream: Upstream) -> Source:
    try:
        handed = _Handoff.model_validate(upstream.manifest.handoff, extra="ignore")
    except ValidationError as error:
        raise UsageError(
            f"{upstream.path} does not say what was trained ({error.errors()[0]['loc'][0]})",
            hint="amdflow finetune CONFIG.yaml",
        ) from error
    if handed.trust_remote_code and not request.config.trust_remote_code:
        raise UsageError(
            "this model was trained with trust_remote_code; exporting it would run its code too",
            hint="set export.trust_remote_code: true in amdflow.yaml, if you trust it",
        )
    kind = "adapter" if handed.adapter else "model"
    trained = [upstream.file(artifact) for artifact in upstream.outputs(kind)]
    if not trained:
        raise UsageError(f"{upstream.path} lists no {kind} files", hint="amdflow finetune CONFIG.yaml")
    folder = trained[0].parent
    template = request.config.template or handed.template
    name = request.config.name or f"{handed.base_name or Path(handed.base_model).name}-{handed.finetuning_type}"
    if kind == "model":
        return _checked(str(folder), None, template, name, handed.finetuning_type)
    model = _local_base(request.root, handed.base_model, upstream.path) if handed.base_is_local else handed.base_model
    return _checked(model, folder, template, name, handed.finetuning_type)


def _local_base(root: Path, value: str, manifest: Path) -> str:
    """The base model's folder. A relative one may be a link to elsewhere, but not name a place outside the workspace."""
    if not os.path.isabs(value) and os.path.normpath(value).startswith(".."):
        raise UsageError(
            f"{manifest} names the base model {value!r}, which leaves {root}",
            hint="name it with --model DIR and --adapter DIR",
        )
    folder = root / value
    if not folder.is_dir():
        raise UsageError(
            f"the base model of the training is gone: {folder}",
            hint="put it back, or name it with --model DIR and --adapter DIR",
        )
    return str(folder)


def _base_of(adapter: Path | None) -> str:
    config = adapter / "adapter_config.json" if adapter else Path()
    try:
        return str(json.loads(config.read_text(encoding="utf-8"))["base_model_name_or_path"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{config} does not name the adapter's base model", hint="name it with --model DIR") from error


def _is_hub_id(name: str) -> bool:
    return bool(re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name)) and not name.startswith(".")


def _checked(model: str, adapter: Path | None, template: str, name: str, finetuning_type: str) -> Source:
    inputs: list[Input] = []
    parameters = 0
    if not _is_hub_id(model):
        folder = Path(model)
        weights = check_model_folder(folder)
        parameters = weights.parameters if weights else 0
        files = (
            model_files(folder)
            if adapter
            else [path for path in model_files(folder) if path.suffix not in (".png", ".jsonl", ".bin", ".md")]
        )
        inputs += [Input(f"model/{path.name}", path, "model") for path in files]
    if adapter is not None:
        _check_adapter(adapter)
        inputs += [
            Input(f"adapter/{name}", adapter / name, "adapter") for name in ("adapter_config.json", ADAPTER_WEIGHTS)
        ]
    return Source(model, adapter, template, name, finetuning_type, tuple(inputs), parameters)


def _check_adapter(folder: Path) -> None:
    if not (folder / "adapter_config.json").is_file():
        raise UsageError(
            f"{folder} is not an adapter folder: it has no adapter_config.json",
            hint="name the folder that finetune wrote",
        )
    if not (folder / ADAPTER_WEIGHTS).is_file():
        raise UsageError(f"{folder} has no {ADAPTER_WEIGHTS}", hint="amdflow finetune CONFIG.yaml")
    if not read_header(folder / ADAPTER_WEIGHTS):
        raise UsageError(f"{folder / ADAPTER_WEIGHTS} holds no tensors", hint="amdflow finetune CONFIG.yaml --force")
    if "," in str(folder):
        raise UsageError(
            f"{folder}: LLaMA-Factory takes a comma in an adapter's path for the end of it",
            hint="move it to a folder without commas",
        )
