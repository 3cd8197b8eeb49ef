"""From what the user named to a model directory that an engine can load, every file checked before anything starts."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from amdflow.errors import UsageError
from amdflow.pipeline.manifest import MANIFEST_NAME, REPORT_FOLDER, Upstream
from amdflow.weights import INDEX_NAME, Weights, read_weights

_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "tiktoken.model", "tekken.json")
_SMALL_FILES = (
    "config.json",
    "generation_config.json",
    INDEX_NAME,
    "tokenizer_config.json",
    "chat_template.jinja",
    *_TOKENIZERS,
)


class _Probe(BaseModel):
    model_config = ConfigDict(extra="ignore")
    prompt: str = ""


class _Handoff(BaseModel):
    """What serve reads of an export manifest's handoff."""

    model_config = ConfigDict(extra="ignore")
    model: str
    name: str = ""
    probe: _Probe = _Probe()


@dataclass(frozen=True)
class Location:
    """Where the model is, what it is called, and the question its export proposes."""

    folder: Path
    name: str
    probe: str = ""
    manifest: Path | None = None


@dataclass(frozen=True)
class ServedModel:
    """A checked model directory."""

    folder: Path
    name: str
    probe: str
    architecture: str
    weights: Weights
    context: int | None
    """Longest context the config allows, in tokens."""
    chat_template: bool

    @property
    def small_files(self) -> list[Path]:
        """Config, tokenizer and index: what identifies the model besides its weights."""
        return [self.folder / name for name in _SMALL_FILES if (self.folder / name).is_file()]


def locate(path: Path | None, upstream: Upstream | None) -> Location:
    """Find the model that ``path`` means, or what the export stage made when there is no path.

    Raises UsageError that says what was found instead.
    """
    if path is None:
        if upstream is None:
            raise UsageError(
                "no model to serve: the workdir has no exported one",
                hint="amdflow export, or amdflow serve --model DIR",
            )
        return _from_manifest(upstream)
    if path.is_file():
        if path.name != MANIFEST_NAME:
            raise UsageError(f"{path} is a file, not a model directory", hint="name the folder that holds config.json")
        return _from_manifest(_read(path))
    if not path.is_dir():
        raise UsageError(f"no such model directory: {path}", hint=_missing_hint(path))
    if (path / "config.json").is_file():
        return _plain(path)
    for manifest in (path / MANIFEST_NAME, path / "export" / MANIFEST_NAME, path / REPORT_FOLDER / MANIFEST_NAME):
        if manifest.is_file():
            return _from_manifest(_read(manifest))
    if (path / "adapter_config.json").is_file():
        raise UsageError(
            f"{path} holds a LoRA adapter, not a whole model", hint="amdflow export merges it into its base model"
        )
    raise UsageError(
        f"{path} is not a model directory: it has no config.json and no export manifest",
        hint="amdflow export makes one; or name the folder that holds config.json",
    )


def inspect(place: Location) -> ServedModel:
    """Check the directory: config, complete weights, tokenizer. Raises UsageError naming the file that is wrong."""
    config = _read_config(place.folder / "config.json")
    weights = read_weights(place.folder)
    if weights is None:
        other = next(
            (file.name for pattern in ("*.bin", "*.gguf", "*.pt") for file in sorted(place.folder.glob(pattern))), ""
        )
        found = f"; {other} is there, which is not SafeTensors" if other else ""
        raise UsageError(
            f"{place.folder} has no SafeTensors weights{found}",
            hint="amdflow export writes them; or download the model again",
        )
    if not any((place.folder / name).is_file() for name in _TOKENIZERS):
        raise UsageError(
            f"{place.folder} has no tokenizer (looked for {', '.join(_TOKENIZERS[:3])}, ...)",
            hint="copy the tokenizer files of the base model there",
        )
    text = config.get("text_config") if isinstance(config.get("text_config"), dict) else config
    context = text.get("max_position_embeddings") if text else None
    names = config.get("architectures")
    return ServedModel(
        place.folder,
        place.name,
        place.probe,
        str(names[0]) if isinstance(names, list) and names else str(config.get("model_type", "unknown")),
        weights,
        context if isinstance(context, int) else None,
        _has_chat_template(place.folder),
    )


def _read(manifest: Path) -> Upstream:
    return Upstream.read(manifest, stage="export")


def _from_manifest(upstream: Upstream) -> Location:
    try:
        handoff = _Handoff.model_validate(upstream.manifest.handoff)
    except ValidationError as error:
        raise UsageError(
            f"{upstream.path} hands over no model", hint="run the export again: amdflow export --force"
        ) from error
    folder = upstream.handed(handoff.model)
    if not (folder / "config.json").is_file():
        raise UsageError(f"{upstream.path} names the model {folder}, which is not there", hint="amdflow export --force")
    return Location(folder, _clean(handoff.name) or _folder_name(folder), handoff.probe.prompt, upstream.path)


def _plain(path: Path) -> Location:
    """A model directory; when it is an export's payload, its name and question are taken from the manifest."""
    for manifest in (path / REPORT_FOLDER / MANIFEST_NAME, path.parent / MANIFEST_NAME):
        if manifest.is_file():
            try:
                place = _from_manifest(_read(manifest))
            except UsageError:
                continue
            if place.folder.resolve() == path.resolve():
                return place
    return Location(path, _folder_name(path))


def _read_config(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError(f"{path} is not valid JSON: {error}", hint="copy or download the model again") from error
    if not isinstance(data, dict):
        raise UsageError(f"{path} holds no mapping", hint="copy or download the model again")
    return data


def _has_chat_template(folder: Path) -> bool:
    if any(
        (folder / name).exists()
        for name in ("chat_template.jinja", "chat_template.json", "chat_templates", "additional_chat_templates")
    ):
        return True
    try:
        data = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(data, dict) and bool(data.get("chat_template"))


def _missing_hint(path: Path) -> str:
    if len(path.parts) >= 2 and not path.parent.exists():
        return f"models are served from a local folder; is {'/'.join(path.parts[-2:])} the name of one on a hub? Then download it first, and name the folder"
    return "check the path; amdflow export writes out/export/model"


def _folder_name(folder: Path) -> str:
    return _clean(folder.resolve().name) or "model"


def _clean(name: str) -> str:
    return "/".join(
        part for part in (re.sub(r"[^A-Za-z0-9._-]+", "-", part).strip("-._") for part in name.split("/")) if part
    )
