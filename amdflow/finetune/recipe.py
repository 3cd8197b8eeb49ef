"""A LLaMA-Factory training config: read, overridden, and checked key by key against what the engine accepts."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from amdflow.config import nearest, read_yaml_mapping
from amdflow.errors import UsageError
from amdflow.finetune.engine import EngineFacts, Field

# Inclusive lower bound, exclusive upper bound (None: none).
_RANGES: Mapping[str, tuple[float | None, float | None]] = {
    **dict.fromkeys(
        (
            "cutoff_len",
            "max_samples",
            "per_device_train_batch_size",
            "per_device_eval_batch_size",
            "gradient_accumulation_steps",
            "preprocessing_num_workers",
            "preprocessing_batch_size",
            "lora_rank",
            "lora_alpha",
            "ddp_timeout",
            "save_total_limit",
        ),
        (1, None),
    ),
    **dict.fromkeys(
        ("warmup_steps", "weight_decay", "max_grad_norm", "val_size", "dataloader_num_workers", "seed"), (0, None)
    ),
    **dict.fromkeys(("lora_dropout", "adam_beta1", "adam_beta2", "label_smoothing_factor"), (0, 1)),
}
_POSITIVE = (
    "learning_rate",
    "num_train_epochs",
    "logging_steps",
    "save_steps",
    "eval_steps",
    "adam_epsilon",
    "neftune_noise_alpha",
    "pref_beta",
)
_QUANTIZATION_BITS = (2, 3, 4, 5, 6, 8)


def parse_overrides(words: Sequence[str]) -> dict[str, Any]:
    """``key=value`` words, values read as YAML. Raises UsageError for a word without ``=``."""
    found: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"{word!r} is not an override", hint="write key=value, for example learning_rate=1e-4")
        try:
            found[key.strip()] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise UsageError(f"override {word!r}: the value is not valid YAML", hint="quote it: key='value'") from error
    return found


def read_recipe(path: Path, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The keys and values of a config with ``overrides`` laid over them (``a.b`` reaches into a mapping).

    Raises UsageError when it is no mapping, or cannot be read.
    """
    data = _read(path)
    for key, value in overrides.items():
        _put(data, key.split("."), value, key)
    if not data:
        raise UsageError(f"{path} is empty", hint="amdflow init shows a working example in finetuning/lora.yaml")
    return data


def check_recipe(path: Path, data: Mapping[str, Any], facts: EngineFacts) -> dict[str, Any]:
    """``data`` as the engine would understand it.

    Raises UsageError that names file and key for anything the engine would refuse or silently misread.
    """
    problems = [problem for key in data if (problem := _unknown(key, facts))]
    if problems:
        raise UsageError(f"{path}: " + "; ".join(problems), hint="the keys are those of the installed LLaMA-Factory")
    values = {key: _typed(path, key, value, facts.fields[key]) for key, value in data.items()}
    _check_ranges(path, values)
    return values


def _read(path: Path) -> dict[str, Any]:
    if path.suffix != ".json":
        return read_yaml_mapping(path)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", hint="check the path") from error
    except ValueError as error:
        raise UsageError(
            f"{path}: not valid JSON: {error}", hint="mend it there, or write the config as YAML"
        ) from error
    if not isinstance(data, dict):
        raise UsageError(f"{path} does not hold a mapping of keys to values", hint='write {"key": value, ...}')
    return data


def _put(data: dict[str, Any], parts: Sequence[str], value: Any, key: str) -> None:
    *folders, last = parts
    for folder in folders:
        inner = data.setdefault(folder, {})
        if not isinstance(inner, dict):
            raise UsageError(
                f"override {key}: {folder} is not a mapping in the config", hint=f"override {folder} as a whole"
            )
        data = inner
    data[last] = value


def _unknown(key: str, facts: EngineFacts) -> str:
    return "" if key in facts.fields else f"unknown key {key!r}{nearest(key, list(facts.fields))}"


def _typed(path: Path, key: str, value: Any, field: Field) -> Any:
    """``value`` as the engine's own YAML reader would see it: ``1e-4`` is a number there, text to a plain YAML reader."""
    if "any" in field.kinds or value is None:
        return value
    if isinstance(value, str) and "str" not in field.kinds:
        value = _number(value)
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and field.kinds <= {"str", "none"}:
        value = str(value)
    if not _fits(value, field):
        wanted = " or ".join(sorted(field.kinds - {"none"}))
        default = (
            f"the default is {field.default!r}"
            if field.default is not None
            else "see LLaMA-Factory's documentation of this key"
        )
        raise UsageError(f"{path}: {key} must be {wanted}, not {value!r}", hint=default)
    if field.choices and value not in field.choices:
        choices = [str(choice) for choice in field.choices]
        raise UsageError(
            f"{path}: {key} cannot be {value!r}{nearest(str(value), choices)}", hint=f"one of: {', '.join(choices)}"
        )
    return value


def _number(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def _fits(value: Any, field: Field) -> bool:
    kind = type(value).__name__
    return (
        kind in field.kinds or (kind == "int" and "float" in field.kinds) or (kind == "list" and "str" in field.kinds)
    )


def _check_ranges(path: Path, values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        if isinstance(value, float) and not math.isfinite(value):
            raise UsageError(f"{path}: {key} is {value}", hint="give it a finite number")
        if key in _POSITIVE and value <= 0:
            raise UsageError(
                f"{path}: {key} must be greater than 0, not {value}", hint=f"set {key} to a positive number"
            )
        low, high = _RANGES.get(key, (None, None))
        if (low is not None and value < low) or (high is not None and value >= high):
            limits = f"at least {low:g}" + (f" and below {high:g}" if high is not None else "")
            raise UsageError(f"{path}: {key} must be {limits}, not {value}", hint=f"change {key}")
    _check_combinations(path, values)


def _check_combinations(path: Path, values: Mapping[str, Any]) -> None:
    if values.get("max_steps", -1) == 0 or values.get("max_steps", -1) < -1:
        raise UsageError(
            f"{path}: max_steps is {values['max_steps']}: nothing would be trained",
            hint="give a positive number, or set num_train_epochs",
        )
    if not values.get("do_train", False):
        raise UsageError(f"{path}: do_train is not true, so nothing would be trained", hint="add `do_train: true`")
    if (values.get("packing") or values.get("neat_packing")) and values.get("cutoff_len", 2048) < 2:
        raise UsageError(f"{path}: packing needs cutoff_len of at least 2", hint="raise cutoff_len")
    if values.get("fp16") and values.get("bf16"):
        raise UsageError(f"{path}: fp16 and bf16 exclude each other", hint="on AMD Instinct GPUs keep bf16")
    bits = values.get("quantization_bit")
    if bits is not None and bits not in _QUANTIZATION_BITS:
        raise UsageError(f"{path}: quantization_bit cannot be {bits}", hint="4 or 8 are usual")
    if not values.get("model_name_or_path"):
        raise UsageError(f"{path}: model_name_or_path is missing", hint="name a model folder or a hub id")
    if not values.get("dataset") and not values.get("tokenized_path"):
        raise UsageError(f"{path}: dataset is missing", hint="name one or more entries of dataset_info.json")
