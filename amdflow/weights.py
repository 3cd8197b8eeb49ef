"""SafeTensors files as they lie on disk: complete or not, without reading a single weight.

A header says where every tensor begins and ends; a file that is shorter or longer than it says is damaged.
"""

from __future__ import annotations

import json
import math
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amdflow.errors import UsageError

INDEX_NAME = "model.safetensors.index.json"
_LONGEST_HEADER = 100_000_000
_BITS = {
    "BOOL": 8,
    "U8": 8,
    "I8": 8,
    "F8_E5M2": 8,
    "F8_E4M3": 8,
    "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8,
    "U16": 16,
    "I16": 16,
    "F16": 16,
    "BF16": 16,
    "U32": 32,
    "I32": 32,
    "F32": 32,
    "U64": 64,
    "I64": 64,
    "F64": 64,
    "C64": 64,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
}
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "tokenizer_config.json")
_AGAIN = "copy or download the model again"


@dataclass(frozen=True, slots=True)
class Tensor:
    """One entry of a header. ``dtype`` is SafeTensors' name (``BF16``)."""

    dtype: str
    shape: tuple[int, ...]
    bytes: int


@dataclass(frozen=True)
class Weights:
    """The weights of a model folder: its shards, and every tensor with the shard that holds it."""

    shards: tuple[Path, ...]
    tensors: dict[str, Tensor]

    @property
    def bytes(self) -> int:
        """Size of all tensors."""
        return sum(tensor.bytes for tensor in self.tensors.values())

    @property
    def parameters(self) -> int:
        """Number of values in all tensors."""
        return sum(math.prod(tensor.shape) for tensor in self.tensors.values())


def read_header(path: Path) -> dict[str, Tensor]:
    """The tensors a SafeTensors file holds. Raises UsageError when it is truncated or no such file."""
    try:
        size = path.stat().st_size
        with path.open("rb") as stream:
            raw = stream.read(8)
            length = struct.unpack("<Q", raw)[0] if len(raw) == 8 else 0
            if not 2 <= length <= min(_LONGEST_HEADER, max(size - 8, 0)):
                raise UsageError(f"{path} is not a complete SafeTensors file ({size} bytes)", hint=_AGAIN)
            header = json.loads(stream.read(length))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", hint="check the path and its permissions") from error
    except ValueError as error:
        raise UsageError(f"{path}: its header is damaged ({error})", hint=_AGAIN) from error
    if not isinstance(header, dict):
        raise UsageError(f"{path}: its header is damaged (not a mapping)", hint=_AGAIN)
    return _check_layout(path, header, size - 8 - length)


def _check_layout(path: Path, header: dict[str, Any], room: int) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    reached = 0
    try:
        entries = [
            (
                name,
                str(entry["dtype"]),
                tuple(int(side) for side in entry["shape"]),
                int(entry["data_offsets"][0]),
                int(entry["data_offsets"][1]),
            )
            for name, entry in header.items()
            if name != "__metadata__"
        ]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise UsageError(f"{path}: its header is damaged ({error})", hint=_AGAIN) from error
    for name, dtype, shape, begin, end in sorted(entries, key=lambda entry: entry[3:]):
        bits = _BITS.get(dtype)
        if begin != reached or end < begin or (bits is not None and math.prod(shape) * bits != (end - begin) * 8):
            raise UsageError(f"{path}: the extent of tensor {name} does not fit its shape", hint=_AGAIN)
        reached = end
        tensors[name] = Tensor(dtype, shape, end - begin)
    if reached != room:
        how = "truncated" if room < reached else "longer than it says"
        raise UsageError(
            f"{path} is {how}: its header speaks of {reached} bytes of tensors, {room} are there", hint=_AGAIN
        )
    return tensors


def read_weights(folder: Path) -> Weights | None:
    """All SafeTensors weights of a model folder, or None when it holds none.

    Raises UsageError naming the file when a shard is missing or damaged, or the index does not fit the shards.
    """
    index = folder / INDEX_NAME
    if index.is_file():
        return _read_sharded(folder, index)
    single = folder / "model.safetensors"
    shards = [single] if single.is_file() else sorted(folder.glob("*.safetensors"))
    shards = [shard for shard in shards if not shard.name.startswith("adapter_")]
    tensors: dict[str, Tensor] = {}
    for shard in shards:
        tensors |= read_header(shard)
    return Weights(tuple(shards), tensors) if shards else None


def _read_sharded(folder: Path, index: Path) -> Weights:
    try:
        places = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        names = sorted({str(name) for name in places.values()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{index} is damaged: no readable weight_map", hint=_AGAIN) from error
    tensors: dict[str, Tensor] = {}
    for name in names:
        if os.path.basename(name) != name:
            raise UsageError(f"{index} names {name!r}, which is not a file beside it", hint=_AGAIN)
        if not (folder / name).is_file():
            raise UsageError(
                f"{folder}: shard {name} is missing ({len(names)} are listed in {INDEX_NAME})", hint=_AGAIN
            )
        held = read_header(folder / name)
        lost = next((tensor for tensor, place in places.items() if place == name and tensor not in held), None)
        if lost is not None:
            raise UsageError(f"{folder / name} lacks the tensor {lost} that {INDEX_NAME} puts there", hint=_AGAIN)
        tensors |= held
    return Weights(tuple(folder / name for name in names), tensors)


def check_model_folder(folder: Path) -> Weights | None:
    """The weights of a Hugging Face model folder that has a readable config.json, a tokenizer and complete weights.

    None when the weights are in PyTorch's older format, which is not looked into. Raises UsageError naming what is missing.
    """
    read_config(folder)
    if not any((folder / name).is_file() for name in _TOKENIZERS):
        raise UsageError(
            f"{folder} has no tokenizer (none of {', '.join(_TOKENIZERS[:3])})", hint="copy the tokenizer files into it"
        )
    weights = read_weights(folder)
    if weights is None and not any(folder.glob("pytorch_model*.bin")):
        raise UsageError(f"{folder} holds no weights (*.safetensors)", hint=_AGAIN)
    return weights


def read_config(folder: Path) -> dict[str, Any]:
    """A model folder's config.json. Raises UsageError when there is none, or it is not readable."""
    if not folder.is_dir():
        raise UsageError(f"no such model folder: {folder}", hint="check the path")
    path = folder / "config.json"
    if not path.is_file():
        raise UsageError(
            f"{folder} is not a model folder: it has no config.json", hint="name a Hugging Face model folder"
        )
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} is not readable JSON: {error}", hint=_AGAIN) from error
    if not isinstance(config, dict):
        raise UsageError(f"{path} is not a model's config: it holds no mapping", hint=_AGAIN)
    return config


def model_files(folder: Path) -> tuple[Path, ...]:
    """The files of a model folder, hidden ones and folders left out."""
    return tuple(sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")))
